//! The announcer's program: from the build of the same version, and for the machine of the image.

use std::path::PathBuf;
use std::sync::Arc;

use super::elf::{self, Elf};
use super::rules::{PROGRAM_LIBRARIES, PROGRAM_MACHINE, PROGRAM_MISSING, PROGRAM_VERSION};
use crate::declaration::{Mesh, Program};
use crate::finding::{Finding, Rule, Span};
use crate::tree::{Kind, Tree, TreePath};

/// Its file name.
pub const MESH_AGENT: &str = "mesh-agent";

/// Stands before the version in the program, which has a `;` after it.
pub const VERSION_MARK: &str = "fitout mesh-agent version ";

/// The version that is put into images: this one's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The file that was found for the architecture of the base.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it was looked for.
    pub path: PathBuf,
    /// `[agent] binary.<architecture>`, when it is named there.
    pub declared: Option<Span>,
    /// Its bytes, or why there are none.
    pub content: Result<Arc<[u8]>, String>,
}

/// True when an overlay of a profile that a node uses puts it.
pub fn is_wanted(mesh: &Mesh) -> bool {
    let used = mesh.nodes.values().filter_map(|node| mesh.profiles.get(&node.profile.value));
    let overlays = used.flat_map(|profile| &profile.overlays).filter_map(|name| mesh.overlays.get(&name.value));
    overlays.flat_map(|overlay| overlay.manifest.paths.values()).any(|rule| {
        rule.program.as_ref().is_some_and(|program| match program.value {
            Program::MeshAgent => true,
        })
    })
}

/// The architecture of a base, from a program that every Debian system has.
pub fn architecture(base: &Tree) -> Option<&'static str> {
    let programs = ["/usr/lib/systemd/systemd", "/usr/bin/systemctl", "/bin/sh", "/usr/bin/dash", "/usr/bin/dpkg"];
    let elf = |path: &str| {
        let path = base.resolve_fully(&TreePath::parse(path).ok()?).ok()?;
        matches!(base.get(&path)?.kind, Kind::File(_)).then(|| elf::parse(&base.content(&path).ok()?))?
    };
    programs.into_iter().find_map(|path| elf(path)?.architecture.ok())
}

/// What is to be put into images, when nothing is wrong with it.
pub(super) fn judge(program: Option<&Found>, base: &Tree, found: &mut Vec<Finding>) -> Option<Arc<[u8]>> {
    let program = program?;
    let subject = program.path.display().to_string();
    let at = |rule: &Rule, message: String| {
        let finding = rule.finding(&subject, message);
        match &program.declared {
            Some(span) => finding.at(span),
            None => finding,
        }
    };
    let machine = architecture(base);
    let name_it = format!(
        "build it for {} and name the file: `[agent] binary.{} = \"PATH\"` in mesh.toml",
        machine.unwrap_or("the image's machine"),
        machine.unwrap_or("amd64")
    );
    let bytes = match &program.content {
        Ok(bytes) => bytes,
        Err(why) => {
            let message = format!("there is no {MESH_AGENT} to put into the images: {why}");
            let help = match program.declared {
                Some(_) => {
                    format!("correct the path in mesh.toml, or remove it: the {MESH_AGENT} beside fitout is then taken")
                }
                None => format!("install it beside fitout (`make build` puts it there), or {name_it}"),
            };
            found.push(at(&PROGRAM_MISSING, message).help(help));
            return None;
        }
    };
    let before = found.len();
    let Some(elf) = elf::parse(bytes) else {
        found.push(at(&PROGRAM_MACHINE, "is no program of Linux (ELF)".to_owned()).help(name_it));
        return None;
    };
    match (elf.architecture, machine) {
        (Ok(is), Some(want)) if is == want => {
            let lacking = lacking(&elf, base);
            if !lacking.is_empty() {
                let mut finding = at(&PROGRAM_LIBRARIES, "the base lacks what it is linked with".to_owned());
                finding.notes = lacking;
                found.push(finding.help("take a statically linked one: `make build` makes it"));
            }
        }
        (is, Some(want)) => {
            let is = is.map_or_else(|number| format!("machine number {number}"), str::to_owned);
            found.push(at(&PROGRAM_MACHINE, format!("is for {is}, and the base is for {want}")).help(name_it));
        }
        (_, None) => {
            let message = "cannot be compared with the base, in which no program of systemd or shell was found";
            found.push(at(&PROGRAM_MACHINE, message.to_owned()).help("is the base a whole root file system?"));
        }
    }
    match version(bytes) {
        Some(version) if version == VERSION => {}
        Some(version) => {
            let message = format!("is version {version}, and this is fitout {VERSION}");
            found.push(at(&PROGRAM_VERSION, message).help(format!("take the {MESH_AGENT} of fitout {VERSION}")));
        }
        None => found.push(
            at(&PROGRAM_VERSION, format!("is not {MESH_AGENT}: it does not say its version"))
                .help(format!("take the {MESH_AGENT} of fitout {VERSION}")),
        ),
    }
    (found.len() == before).then(|| bytes.clone())
}

/// The version that the program carries.
fn version(bytes: &[u8]) -> Option<&str> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
    memchr::memmem::find_iter(bytes, VERSION_MARK.as_bytes()).find_map(|at| {
        let rest = &bytes[at + VERSION_MARK.len()..];
        let end = rest.iter().take(64).position(|byte| *byte == b';')?;
        let version = std::str::from_utf8(&rest[..end]).ok()?;
        (!version.is_empty() && version.bytes().all(legal)).then_some(version)
    })
}

/// The loader, the libraries and the versions of them that the base does not have.
fn lacking(elf: &Elf, base: &Tree) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(interpreter) = &elf.interpreter {
        let path = TreePath::parse(interpreter).ok().and_then(|path| base.resolve_fully(&path).ok());
        if path.and_then(|path| base.get(&path)).is_none() {
            all.push(format!("the loader {interpreter}"));
        }
    }
    for library in &elf.libraries {
        let Some(path) = library_path(base, library) else {
            all.push(format!("the library {library}"));
            continue;
        };
        let content = base.content(&path).unwrap_or_default();
        let versions = elf.versions.iter().filter(|(of, _)| of == library).map(|(_, version)| version);
        let unknown = |version: &&String| {
            let name = [version.as_bytes(), b"\0"].concat();
            memchr::memmem::find(&content, &name).is_none()
        };
        all.extend(versions.filter(unknown).map(|version| format!("{version} of the library {library}")));
    }
    all
}

/// Where the loader would find a library: `/lib`, `/usr/lib` and their directories for one architecture (ld.so(8)).
fn library_path(base: &Tree, library: &str) -> Option<TreePath> {
    let depth = |path: &TreePath| path.elements().count();
    ["/usr/lib", "/lib", "/usr/lib64", "/lib64"].into_iter().find_map(|directory| {
        let directory = base.resolve_fully(&TreePath::parse(directory).ok()?).ok()?;
        let mut near = base.below(&directory).filter(|(path, _)| depth(path) <= depth(&directory) + 2);
        let path = near.find(|(path, _)| path.file_name() == library.as_bytes())?.0;
        base.resolve_fully(path).ok()
    })
}
