//! The image as a file system in memory: entries in bytewise path order, each with kind, 12-bit mode,
//! numeric owner, extended attributes and content. Content is bytes, or a reference into the base's tar.
//!
//! Reading a tar ([`read`]), resolving paths inside the root ([`Tree::resolve`]), the canonical digest
//! ([`digest`]) and the one tar writer ([`write`]) live here. No root, no mount, no umask.

pub mod compare;
pub mod digest;
pub mod entry;
mod header;
pub mod path;
pub mod read;
#[cfg(test)]
pub(crate) mod readers;
pub mod resolve;
pub mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use digest::Digest;
pub use entry::{Data, Entry, Kind, LinkGroup, Place};
pub use path::TreePath;

use crate::finding::Failure;

/// A file tree. The root directory is the entry with the empty path.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Entries in bytewise path order, so that a directory comes before what it holds.
    pub entries: BTreeMap<TreePath, Entry>,
    /// Where [`Place::Base`] contents are read from.
    pub store: Option<Arc<Store>>,
}

/// The plain tar of a base, opened for reading at offsets.
#[derive(Debug)]
pub struct Store {
    /// The open file.
    pub file: std::fs::File,
    /// Its path, for messages.
    pub path: std::path::PathBuf,
}

impl Tree {
    /// The entry at exactly this path (no link is followed).
    pub fn get(&self, path: &TreePath) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Puts an entry, replacing what was there.
    pub fn insert(&mut self, path: TreePath, entry: Entry) -> Option<Entry> {
        self.entries.insert(path, entry)
    }

    /// Removes an entry and, when it is a directory, everything below it. Returns the removed paths.
    pub fn remove(&mut self, path: &TreePath) -> Vec<TreePath> {
        let mut gone: Vec<TreePath> = Vec::new();
        if self.entries.contains_key(path) {
            gone.push(path.clone());
        }
        gone.extend(self.below(path).map(|(p, _)| p.clone()));
        for path in &gone {
            self.entries.remove(path);
        }
        gone
    }

    /// Everything below a directory, at any depth, in path order; not the directory itself.
    pub fn below<'a>(&'a self, directory: &TreePath) -> impl Iterator<Item = (&'a TreePath, &'a Entry)> + use<'a> {
        let prefix = directory.prefix();
        let start = TreePath::from_normal(prefix.clone());
        self.entries
            .range(start..)
            .take_while(move |(p, _)| p.as_bytes().starts_with(&prefix))
            .filter(|(p, _)| !p.is_root())
    }

    /// The direct children of a directory, in path order.
    pub fn children<'a>(&'a self, directory: &TreePath) -> impl Iterator<Item = (&'a TreePath, &'a Entry)> + use<'a> {
        let depth = directory.prefix().len();
        self.below(directory).filter(move |(p, _)| !p.as_bytes()[depth..].contains(&b'/'))
    }

    /// The whole content of a regular file.
    ///
    /// # Errors
    /// When the entry is no file, its content was not kept by the reader, or the base cannot be read.
    pub fn content(&self, path: &TreePath) -> Result<Vec<u8>, Failure> {
        let Some(Entry { kind: Kind::File(data), .. }) = self.get(path) else {
            return Err(Failure::new(format!("{path} is not a regular file of the tree")));
        };
        self.read(data).map_err(|e| Failure::new(format!("{path}: {e}")))
    }

    /// The content behind a [`Data`].
    ///
    /// # Errors
    /// As [`Tree::content`].
    pub fn read(&self, data: &Data) -> Result<Vec<u8>, Failure> {
        use std::os::unix::fs::FileExt;
        match (&data.place, &self.store) {
            (Place::Memory(bytes), _) => Ok(bytes.to_vec()),
            (Place::Base { offset }, Some(store)) => {
                let mut bytes = vec![0; data.len as usize];
                store.file.read_exact_at(&mut bytes, *offset).map_err(|e| Failure::io("read", &store.path, &e))?;
                Ok(bytes)
            }
            (Place::Base { .. }, None) => Err(Failure::new("the base of this tree is not open")),
            (Place::Dropped, _) => Err(Failure::new("the content was not kept while reading the image")),
        }
    }
}
