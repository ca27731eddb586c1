//! `fitout init DIR`: a mesh to start from.

use std::path::{Path, PathBuf};

use super::schema::Name;
use super::usage::MESH_EXISTS;
use super::{Exit, Global, Ui, VerbResult};
use crate::declaration::{Files, MESH_FILE, Topology};
use crate::finding::{Failure, Problem};
use crate::image::output::{self, Access};

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory to make; it may exist, but without a mesh.toml
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How the registry votes
    #[arg(long, value_enum, default_value = "quorum")]
    topology: Choice,
}

/// `--topology`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Choice {
    /// Three voters in three sites
    Quorum,
    /// One control plane; nothing takes over when it is down
    Single,
}

impl From<Choice> for Topology {
    fn from(choice: Choice) -> Topology {
        match choice {
            Choice::Quorum => Topology::Quorum,
            Choice::Single => Topology::Single,
        }
    }
}

/// Where the JSON Schemas go that the first line of mesh.toml names, so that editors help without the network.
const SCHEMAS: &str = ".fitout";

/// What version control shall not keep: outputs, which are made from the rest and hold private keys.
const IGNORED: [&str; 2] = ["/dist/", "/gate/"];

/// Writes the files and says what to do next.
///
/// # Errors
/// When there is a mesh.toml already, or a file cannot be written.
pub fn run(args: &Args, _global: &Global, ui: &Ui) -> VerbResult {
    let directory = &args.directory;
    write(directory, args.topology.into())?;
    ui.object(&serde_json::json!({"type": "init", "directory": directory, "file": directory.join(MESH_FILE)}));
    if !ui.json() {
        ui.line(next_steps(directory));
    }
    Ok(Exit::Clean)
}

/// Writes `mesh.toml`, and `.gitignore` where there is none; an existing one gets the lines that it lacks.
fn write(directory: &Path, topology: Topology) -> Result<(), Problem> {
    let mesh = directory.join(MESH_FILE);
    // A dangling link counts, too: nothing that is there is replaced.
    if std::fs::symlink_metadata(&mesh).is_ok() {
        return Err(MESH_EXISTS
            .finding(mesh.display().to_string(), "there is a mesh already")
            .help("name another directory; this one is left as it is")
            .into());
    }
    std::fs::create_dir_all(directory).map_err(|e| Failure::io("make the directory", directory, &e))?;
    ignore_outputs(directory)?;
    let schemas = directory.join(SCHEMAS);
    std::fs::create_dir_all(&schemas).map_err(|e| Failure::io("make the directory", &schemas, &e))?;
    for name in Name::OF_FILES {
        output::write(&schemas.join(name.file()), Access::Everyone, name.text().as_bytes())?;
    }
    // Last, so that a directory with a mesh.toml is complete.
    output::write(&mesh, Access::Everyone, template(topology)?.as_bytes())?;
    Ok(())
}

fn template(topology: Topology) -> Result<&'static str, Failure> {
    let path = match topology {
        Topology::Quorum => "templates/init/quorum.toml",
        Topology::Single => "templates/init/single.toml",
    };
    Files::builtin_text(path).ok_or_else(|| Failure::new(format!("this program was built without {path}")))
}

fn ignore_outputs(directory: &Path) -> Result<(), Failure> {
    let path = directory.join(".gitignore");
    let old = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::io("read", &path, &error)),
    };
    let mut text = old.clone();
    for line in IGNORED {
        if !old.lines().any(|l| l.trim().trim_matches('/') == line.trim_matches('/')) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(line);
            text.push('\n');
        }
    }
    if text == old { Ok(()) } else { output::write(&path, Access::Everyone, text.as_bytes()) }
}

fn next_steps(directory: &Path) -> String {
    let here = directory.display();
    format!(
        "{here}/{MESH_FILE} declares a mesh that builds as it is. Next:\n\
         \n    fitout -C {here} plan        what will be in each image\
         \n    fitout -C {here} pki init    the two certificate authorities, once\
         \n    fitout -C {here} build       one image per node, in {here}/dist\
         \n    fitout -C {here} verify {here}/dist/*.tar.gz\
         \n\nKeep {here} under version control, with fitout.lock. {here}/pki holds private keys: encrypt it or keep it out."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::load;

    #[test]
    fn what_init_writes_loads_without_a_word() {
        for (topology, nodes) in [(Topology::Quorum, 3), (Topology::Single, 2)] {
            let directory = tempfile::tempdir().unwrap();
            let mesh = directory.path().join("new/mesh");
            write(&mesh, topology).unwrap();
            let loaded = load(&mesh).unwrap();
            assert_eq!(loaded.warnings, []);
            assert_eq!((loaded.mesh.topology.value, loaded.mesh.nodes.len()), (topology, nodes));
            let text = std::fs::read_to_string(mesh.join(MESH_FILE)).unwrap();
            let schema = text.lines().next().and_then(|l| l.strip_prefix("#:schema ")).unwrap();
            assert_eq!(std::fs::read_to_string(mesh.join(schema)).unwrap(), Name::Mesh.text());
        }
    }

    #[test]
    fn a_mesh_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(MESH_FILE), "mine").unwrap();
        let Err(Problem::Findings(findings)) = write(directory.path(), Topology::Quorum) else { panic!("overwritten") };
        assert_eq!(findings[0].code, "mesh-exists");
        assert_eq!(std::fs::read_to_string(directory.path().join(MESH_FILE)).unwrap(), "mine");
        assert!(!directory.path().join(".gitignore").exists(), "nothing is written");
    }

    #[test]
    fn outputs_are_kept_out_of_version_control() {
        let cases = [
            ("", "/dist/\n/gate/\n"),
            ("*.o", "*.o\n/dist/\n/gate/\n"),
            ("dist\n", "dist\n/gate/\n"),
            ("gate/\n/dist\n", "gate/\n/dist\n"),
        ];
        for (old, want) in cases {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(".gitignore");
            std::fs::write(&path, old).unwrap();
            ignore_outputs(directory.path()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), want, "{old:?}");
        }
    }
}
