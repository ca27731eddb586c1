//! The files of a declaration, in memory: `mesh.toml` and the library around it.
//!
//! The built-in library (`overlays/`, `profiles/`, `templates/` of this repository) is embedded in the binary.
//! Directories of the same name beside the user's `mesh.toml` add to it and override it:
//! - an overlay directory of the user's **replaces the built-in overlay of that name whole** (a mixture of two
//!   versions' files is what nobody has tested);
//! - a profile of the user's replaces the built-in profile of that name;
//! - a template of the user's replaces the built-in file of that name.
//!
//! Names and contents are taken, modes never: not the checkout's, not the umask's. A symbolic link below an overlay's
//! `root/` is kept as a link and not followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, DirEntry, include_dir};

use super::model::{LibraryContent, LibraryFile};
use crate::finding::Failure;

static OVERLAYS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/overlays");
static PROFILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/profiles");
static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// Name of the declaration's file.
pub const MESH_FILE: &str = "mesh.toml";

/// The directories of the library.
const LIBRARY: [&str; 3] = ["overlays", "profiles", "templates"];

/// Files by path relative to the mesh's directory: `mesh.toml`, `profiles/voter.toml`, `overlays/etcd/root/etc/x`.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Directory of `mesh.toml`, for messages and relative paths.
    pub directory: PathBuf,
    /// The embedded library.
    library: BTreeMap<String, LibraryFile>,
    /// The user's.
    user: BTreeMap<String, LibraryFile>,
    /// What lies in the user's directories and can be in none: the path as it can be shown, and what is wrong with it.
    pub(super) unusable: Vec<(String, &'static str)>,
}

impl Files {
    /// The embedded library alone; [`Files::with`] adds a `mesh.toml`.
    pub fn builtin() -> Files {
        let mut library = BTreeMap::new();
        for (top, directory) in LIBRARY.iter().zip([&OVERLAYS, &PROFILES, &TEMPLATES]) {
            embed(top, directory, &mut library);
        }
        Files { directory: PathBuf::from("."), library, user: BTreeMap::new(), unusable: Vec::new() }
    }

    /// Adds or replaces a file of the user's.
    pub fn with(self, path: &str, content: impl AsRef<[u8]>) -> Files {
        self.with_content(path, LibraryContent::File(content.as_ref().into()))
    }

    /// Adds or replaces an entry of the user's.
    pub fn with_content(mut self, path: &str, content: LibraryContent) -> Files {
        let name = display_name(&self.directory, path);
        self.user.insert(path.to_owned(), LibraryFile { name, content });
        self
    }

    /// Reads `mesh.toml` and the library's directories beside it; what is not there is left out.
    ///
    /// # Errors
    /// When a file cannot be read. Names that are not UTF-8 and what is neither file, directory nor link are for [`parse`]
    /// to tell.
    ///
    /// [`parse`]: super::parse
    pub fn read(directory: &Path) -> Result<Files, Failure> {
        let mut files = Files { directory: directory.to_owned(), ..Files::builtin() };
        let mesh = directory.join(MESH_FILE);
        if directory.is_file() {
            let parent = directory.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Err(Failure::new(format!("{} is a file, not a directory", directory.display()))
                .help(format!("name the directory that holds {MESH_FILE}: `-C {}`", parent.display())));
        }
        match crate::regular::read(&mesh) {
            Ok(bytes) => files = files.with(MESH_FILE, bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("read", &mesh, &error)),
        }
        for top in LIBRARY {
            if directory.join(top).is_dir() {
                files.read_directory(top)?;
            }
        }
        Ok(files)
    }

    fn read_directory(&mut self, path: &str) -> Result<(), Failure> {
        let real = self.directory.join(path);
        let mut entries = std::fs::read_dir(&real)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| Failure::io("read the directory", &real, &e))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        if entries.is_empty() {
            self.insert(path, LibraryContent::Directory);
        }
        for entry in entries {
            let place = entry.path();
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                self.unusable.push((format!("{path}/{}", name.display()), "has a name that is not UTF-8"));
                continue;
            };
            let child = format!("{path}/{name}");
            // From an overlay's root/ on a link is content (root/ itself may be none: a link to `/etc` would bring in the
            // build host's); elsewhere (a profile kept in another checkout) it is followed.
            let link_is_content = in_overlay_root(&child);
            let meta = if link_is_content { std::fs::symlink_metadata(&place) } else { std::fs::metadata(&place) }
                .map_err(|e| Failure::io("read", &place, &e))?;
            if meta.is_dir() {
                self.read_directory(&child)?;
            } else if meta.is_symlink() {
                let target = std::fs::read_link(&place).map_err(|e| Failure::io("read the link", &place, &e))?;
                let Some(target) = target.to_str() else {
                    self.unusable.push((child, "is a link with a target that is not UTF-8"));
                    continue;
                };
                self.insert(&child, LibraryContent::Link(target.to_owned()));
            } else if meta.is_file() {
                let bytes = crate::regular::read(&place).map_err(|e| Failure::io("read", &place, &e))?;
                self.insert(&child, LibraryContent::File(bytes.into()));
            } else {
                self.unusable.push((child, "is neither a file, nor a directory, nor a symbolic link"));
            }
        }
        Ok(())
    }

    fn insert(&mut self, path: &str, content: LibraryContent) {
        let name = display_name(&self.directory, path);
        self.user.insert(path.to_owned(), LibraryFile { name, content });
    }

    /// `mesh.toml`, when it is there.
    pub(super) fn mesh(&self) -> Option<&LibraryFile> {
        self.user.get(MESH_FILE)
    }

    /// Name of `mesh.toml` for messages.
    pub(super) fn mesh_name(&self) -> String {
        display_name(&self.directory, MESH_FILE)
    }

    /// `profiles/NAME.toml` by NAME; the flag is true for the user's own.
    pub(super) fn profiles(&self) -> BTreeMap<String, (&LibraryFile, bool)> {
        let mut all = BTreeMap::new();
        for (files, own) in [(&self.library, false), (&self.user, true)] {
            for (path, file) in files {
                let name = path.strip_prefix("profiles/").and_then(|p| p.strip_suffix(".toml"));
                if let Some(name) = name.filter(|n| !n.contains('/')) {
                    all.insert(name.to_owned(), (file, own));
                }
            }
        }
        all
    }

    /// `overlays/NAME/` by NAME, each with its files by path below it.
    pub(super) fn overlays(&self) -> BTreeMap<String, OverlayFiles<'_>> {
        let mut all: BTreeMap<String, OverlayFiles<'_>> = BTreeMap::new();
        for (files, own) in [(&self.library, false), (&self.user, true)] {
            for (path, file) in files {
                let Some((name, below)) = path.strip_prefix("overlays/").and_then(|p| p.split_once('/')) else {
                    continue;
                };
                let overlay = all.entry(name.to_owned()).or_default();
                if own && !overlay.own {
                    *overlay = OverlayFiles { own: true, files: BTreeMap::new() };
                }
                overlay.files.insert(below.to_owned(), file);
            }
        }
        all
    }

    /// Files of `templates/`, without those of `fitout init`.
    pub(super) fn templates(&self) -> BTreeMap<String, LibraryFile> {
        let mut all = BTreeMap::new();
        for files in [&self.library, &self.user] {
            for (path, file) in files {
                let name = path.strip_prefix("templates/").filter(|n| !n.starts_with("init/"));
                if let (Some(name), LibraryContent::File(_)) = (name, &file.content) {
                    all.insert(name.to_owned(), file.clone());
                }
            }
        }
        all
    }

    /// The text of a built-in file.
    pub fn builtin_text(path: &str) -> Option<&'static str> {
        let (top, below) = path.split_once('/')?;
        let directory = match top {
            "overlays" => &OVERLAYS,
            "profiles" => &PROFILES,
            "templates" => &TEMPLATES,
            _ => return None,
        };
        directory.get_file(below)?.contents_utf8()
    }
}

/// The files of one overlay.
#[derive(Debug, Default)]
pub(super) struct OverlayFiles<'a> {
    /// From the user's directory.
    pub own: bool,
    /// By path below `overlays/NAME/`.
    pub files: BTreeMap<String, &'a LibraryFile>,
}

fn in_overlay_root(path: &str) -> bool {
    let mut elements = path.split('/');
    elements.next() == Some("overlays") && elements.nth(1) == Some("root")
}

fn display_name(directory: &Path, path: &str) -> String {
    if directory == Path::new(".") || directory == Path::new("") {
        return path.to_owned();
    }
    directory.join(path).display().to_string()
}

fn embed(top: &str, directory: &Dir<'static>, into: &mut BTreeMap<String, LibraryFile>) {
    for entry in directory.entries() {
        match entry {
            DirEntry::Dir(below) => embed(top, below, into),
            DirEntry::File(file) => {
                let path = format!("{top}/{}", file.path().display());
                let name = format!("<built-in>/{path}");
                let content = LibraryContent::File(Arc::from(file.contents()));
                into.insert(path, LibraryFile { name, content });
            }
        }
    }
}
