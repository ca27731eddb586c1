//! What the overlays of a profile ask for, path by path, before it meets the base.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ledger::MANIFEST_PATH;
use super::policy;
use super::profile::Shared;
use super::program::{MESH_AGENT, VERSION};
use super::render::{SUFFIX, Templates};
use super::rules::{BELOW_NO_DIRECTORY, CONFLICT, PATH, PATH_RULE_UNUSED};
use crate::declaration::{LibraryContent, LibraryFile, Mesh, Overlay, PathRule, Profile, Program};
use crate::finding::{Finding, Source, Span};
use crate::tree::resolve::ResolveError;
use crate::tree::{Tree, TreePath};

/// Directories that are mounted over or emptied at boot.
const VOLATILE: [&str; 5] = ["proc", "sys", "dev", "run", "tmp"];

/// What is to be at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file, as it is.
    Bytes(Arc<[u8]>),
    /// A file, rendered from the template of this name.
    Template(String),
    /// A symbolic link.
    Link(Vec<u8>),
    /// A directory.
    Directory,
}

impl Content {
    /// The word for the kind of entry.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Content::Bytes(_) | Content::Template(_) => "file",
            Content::Link(_) => "symlink",
            Content::Directory => "directory",
        }
    }
}

/// One overlay's wish for one path.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Overlay.
    pub overlay: String,
    /// Where it is said, for messages.
    pub span: Span,
    /// For the ledger: file of the overlay, with the line when the manifest alone says it.
    pub file: String,
    /// For the ledger, in words.
    pub by: String,
    /// What is to be there.
    pub content: Content,
    /// Mode, when declared.
    pub mode: Option<u16>,
    /// User, when declared.
    pub user: Option<String>,
    /// Group, when declared.
    pub group: Option<String>,
    /// May change the type of what is there, and wins over earlier overlays.
    pub replace: bool,
}

impl Claim {
    /// The mode that results.
    pub fn mode(&self) -> u16 {
        match self.content {
            Content::Link(_) => 0o777,
            Content::Directory => self.mode.unwrap_or(0o755),
            _ => self.mode.unwrap_or(0o644),
        }
    }
    /// True when nothing is said of mode and owner.
    pub fn is_plain(&self) -> bool {
        self.mode.is_none() && self.user.is_none() && self.group.is_none()
    }
}

/// Gathers the claims of a profile, by path as it resolves in the base.
pub fn gather(
    mesh: &Mesh,
    profile: &Profile,
    base: &Tree,
    shared: &Shared<'_>,
    found: &mut Vec<Finding>,
) -> BTreeMap<TreePath, Claim> {
    let mut claims = BTreeMap::new();
    let base = &Ground { base, directories: new_directories(mesh, profile) };
    for overlay in profile.overlays.iter().filter_map(|name| mesh.overlays.get(&name.value)) {
        for (asked, claim) in of_overlay(overlay, shared, found) {
            add(&mut claims, base, asked, claim, &profile.name, found);
        }
        if overlay.name == policy::OVERLAY {
            for (asked, claim) in of_policy(mesh, base.base, overlay) {
                add(&mut claims, base, asked, claim, &profile.name, found);
            }
        }
    }
    claims
}

/// The base as the overlays of a profile find it.
struct Ground<'a> {
    base: &'a Tree,
    /// Directories that take the place of what the base has there.
    directories: BTreeSet<TreePath>,
}

impl Ground<'_> {
    /// Where a path leads: links of the base are followed, but not one whose place a directory takes.
    fn resolve(&self, asked: &TreePath) -> Result<TreePath, ResolveError> {
        let new = asked.ancestors().into_iter().rev().find(|above| self.directories.contains(above));
        match new {
            Some(directory) => {
                let below = &asked.as_bytes()[directory.prefix().len()..];
                Ok(self.resolve(&directory)?.join(below))
            }
            None => self.base.resolve(asked),
        }
    }
}

/// The directories that manifests put with `replace = true`.
fn new_directories(mesh: &Mesh, profile: &Profile) -> BTreeSet<TreePath> {
    let overlays = profile.overlays.iter().filter_map(|name| mesh.overlays.get(&name.value));
    let rules = overlays.flat_map(|overlay| overlay.manifest.paths.values());
    let new = rules.filter(|rule| rule.directory && rule.replace.as_ref().is_some_and(|replace| replace.value));
    new.filter_map(|rule| TreePath::parse(rule.path.value.as_bytes()).ok()).filter(|path| !path.is_root()).collect()
}

fn add(
    claims: &mut BTreeMap<TreePath, Claim>,
    base: &Ground<'_>,
    asked: TreePath,
    claim: Claim,
    profile: &str,
    found: &mut Vec<Finding>,
) {
    let path = match base.resolve(&asked) {
        Ok(path) => path,
        Err(error) => {
            found.push(BELOW_NO_DIRECTORY.finding(asked.display(), error.to_string()).at(&claim.span));
            return;
        }
    };
    if path.elements().next().is_some_and(|first| VOLATILE.iter().any(|v| v.as_bytes() == first)) && !path.is_root() {
        found.push(
            PATH.finding(path.display(), "is hidden or emptied when the image boots")
                .at(&claim.span)
                .help("use tmpfiles.d(5) to make it at boot"),
        );
        return;
    }
    if path.as_bytes() == MANIFEST_PATH.as_bytes() {
        found.push(
            PATH.finding(path.display(), "is where fitout itself says what is in the image")
                .at(&claim.span)
                .help("choose another path"),
        );
        return;
    }
    let Some(earlier) = claims.get(&path) else {
        claims.insert(path, claim);
        return;
    };
    let equal = earlier.content == claim.content
        && (earlier.mode(), &earlier.user, &earlier.group) == (claim.mode(), &claim.user, &claim.group);
    if claim.replace {
        claims.insert(path, claim);
    } else if !equal {
        found.push(
            CONFLICT
                .finding(
                    path.display(),
                    format!(
                        "the overlays `{}` and `{}` of profile `{profile}` both give {}, and the entries differ",
                        earlier.overlay,
                        claim.overlay,
                        path.display()
                    ),
                )
                .at(&claim.span)
                .label(format!("`{}` gives it here", claim.overlay))
                .related(&earlier.span, format!("`{}` gives it here", earlier.overlay))
                .note(format!("{} and {}", earlier.span.file_line(), claim.span.file_line()))
                .help("make them equal, or let the later overlay say `replace = true` for this path"),
        );
    }
}

fn of_overlay(overlay: &Overlay, shared: &Shared<'_>, found: &mut Vec<Finding>) -> Vec<(TreePath, Claim)> {
    let templates = shared.templates;
    let mut rules: BTreeMap<TreePath, &PathRule> = BTreeMap::new();
    for rule in overlay.manifest.paths.values() {
        match TreePath::parse(rule.path.value.as_bytes()) {
            Ok(path) => drop(rules.insert(path, rule)),
            Err(error) => found.push(PATH.finding(&rule.path.value, error.to_string()).at(&rule.path.span)),
        }
    }
    let mut claims = Vec::new();
    for (name, file) in &overlay.files {
        let other = name.strip_suffix(SUFFIX).and_then(|plain| overlay.files.get(plain));
        if let Some(plain) = other.filter(|_| matches!(file.content, LibraryContent::File(_))) {
            let message = format!("{} and {} both become this path", plain.name, file.name);
            let path = format!("/{}", name.strip_suffix(SUFFIX).unwrap_or(name));
            found.push(
                CONFLICT.finding(path, message).at(&start_of(file, templates)).help("remove one of the two files"),
            );
            continue;
        }
        let is_file = matches!(file.content, LibraryContent::File(_));
        let template = name.strip_suffix(SUFFIX).filter(|_| is_file);
        let path = match TreePath::parse(template.unwrap_or(name)) {
            Ok(path) => path,
            Err(error) => {
                found.push(PATH.finding(&file.name, error.to_string()));
                continue;
            }
        };
        let content = match (&file.content, template) {
            // One that could not be parsed is reported; nothing can be said of its path.
            (LibraryContent::File(_), Some(_)) if !templates.contains(&file.name) => {
                rules.remove(&path);
                continue;
            }
            (LibraryContent::File(_), Some(_)) => Content::Template(file.name.clone()),
            (LibraryContent::File(bytes), None) => Content::Bytes(bytes.clone()),
            (LibraryContent::Link(target), _) => Content::Link(target.clone().into_bytes()),
            (LibraryContent::Directory, _) => Content::Directory,
        };
        let rule = rules.remove(&path);
        let span = rule.map_or_else(|| start_of(file, templates), |rule| rule.path.span.clone());
        claims.push((path, claim(overlay, rule, content, span, file.name.clone())));
    }
    for (path, rule) in rules {
        if let Some(program) = &rule.program {
            // One that cannot be used is reported, once for all profiles.
            let Some(bytes) = shared.agent else { continue };
            let span = rule.path.span.clone();
            let by = match program.value {
                Program::MeshAgent => format!("{MESH_AGENT} {VERSION}"),
            };
            let plain = claim(overlay, Some(rule), Content::Bytes(bytes.clone()), span.clone(), span.file_line());
            claims.push((path, Claim { by, mode: plain.mode.or(Some(0o755)), ..plain }));
            continue;
        }
        let link = rule.link.as_ref().map(|target| Content::Link(target.value.clone().into_bytes()));
        if let Some(content) = link.or(rule.directory.then_some(Content::Directory)) {
            let span = rule.path.span.clone();
            let file = span.file_line();
            claims.push((path, claim(overlay, Some(rule), content, span, file)));
        } else {
            found.push(
                PATH_RULE_UNUSED
                    .finding(&rule.path.value, format!("the overlay `{}` puts nothing there", overlay.name))
                    .at(&rule.path.span)
                    .help("name a file of the overlay's `root/`, or say `directory = true`, `link = \"TARGET\"` or `program = \"mesh-agent\"`"),
            );
        }
    }
    claims
}

fn claim(overlay: &Overlay, rule: Option<&PathRule>, content: Content, span: Span, file: String) -> Claim {
    Claim {
        overlay: overlay.name.clone(),
        span,
        file,
        by: String::new(),
        content,
        mode: rule.and_then(|r| r.mode.as_ref()).map(|m| m.value),
        user: rule.and_then(|r| r.user.as_ref()).map(|u| u.value.clone()),
        group: rule.and_then(|r| r.group.as_ref()).map(|g| g.value.clone()),
        replace: rule.and_then(|r| r.replace.as_ref()).is_some_and(|r| r.value),
    }
}

/// The first line of a library file.
fn start_of(file: &LibraryFile, templates: &Templates) -> Span {
    templates.start(&file.name).unwrap_or_else(|| {
        let text = match &file.content {
            LibraryContent::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            LibraryContent::Link(target) => target.clone(),
            LibraryContent::Directory => String::new(),
        };
        Span::new(&Source::new(file.name.clone(), text), 0..0)
    })
}

fn of_policy(mesh: &Mesh, base: &Tree, overlay: &Overlay) -> Vec<(TreePath, Claim)> {
    let manifest = Span::new(&overlay.manifest.source, 0..0);
    let policy = |content, mode, span: Span, by: &str| Claim {
        mode: Some(mode),
        by: by.to_owned(),
        ..claim(overlay, None, content, span.clone(), span.file_line())
    };
    let mut claims = Vec::new();
    for file in policy::files(base) {
        let content = Content::Template(file.template.to_owned());
        if let Ok(path) = TreePath::parse(file.path) {
            claims.push((path, policy(content, file.mode, manifest.clone(), "base policy")));
        }
    }
    if let Some(first) = mesh.image.ssh_authorized_keys.first() {
        let keys: String = mesh.image.ssh_authorized_keys.iter().map(|key| format!("{}\n", key.trim())).collect();
        let home = TreePath::root().join("root");
        let by = "ssh-authorized-keys";
        claims.push((home.join(".ssh"), policy(Content::Directory, 0o700, first.span.clone(), by)));
        let content = Content::Bytes(keys.into_bytes().into());
        claims.push((home.join(".ssh/authorized_keys"), policy(content, 0o600, first.span.clone(), by)));
    }
    claims
}
