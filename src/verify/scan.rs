//! Reads a finished image: one streaming pass over its final bytes.
//!
//! Decompression runs in one thread, reading the archive and hashing in another. Contents are kept only for what rules
//! read ([`keep`]) and for private keys ([`pem`]), each and together bounded, so memory does not grow with them.

mod build_info;
mod keep;
mod pem;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::container::{self, Seen};
use super::image::{Image, PrivateKey};
use crate::finding::words::plain;
use crate::finding::{Failure, Finding};
use crate::image::manifest::{MANIFEST_PATH, Manifest, SCHEMA};
use crate::regular;
use crate::tree::read::{self, ReadAhead, ReadError};
use crate::tree::{Kind, Tree, TreePath};
use keep::Keeper;
pub use keep::Unread;

/// Reads an image and gives what the rules look at, with the findings of the container family.
///
/// # Errors
/// When the file cannot be read or is no tar at all. Damage is a finding, and the tree ends where it is.
pub fn scan(path: &Path) -> Result<(Image, Vec<Finding>), Failure> {
    let name = path.display().to_string();
    let file = regular::open(path).map_err(|e| Failure::io("open", path, &e))?;
    let mut keeper = Keeper::default();
    let scanned = read::decompress(file)
        .and_then(|(_, plain)| Ok(ReadAhead::new(plain)?))
        .and_then(|plain| read::read(plain, &mut keeper))
        .map_err(|error| match error {
            ReadError::Io(error) => Failure::io("read", path, &error),
            error => Failure::new(format!("{name} is {error}")).help(
                "give images as `fitout build` makes them: `.tar`, `.tar.gz`, `.tar.xz` or `.tar.zst`, told by content",
            ),
        })?;
    let (manifest, unusable) = split(manifest(&scanned.tree));
    let image = Image {
        name,
        tree: scanned.tree,
        manifest,
        private_keys: keeper.private_keys,
        etcd_builds: keeper.etcd_builds,
    };
    let mut findings = Vec::new();
    let seen = Seen {
        image: &image,
        defects: &scanned.defects,
        implied: &scanned.implied,
        unread: &keeper.unread,
        manifest: unusable,
    };
    container::check(&seen, &mut findings);
    Ok((image, findings))
}

/// An image as [`scan`] would give it, from a tree in memory.
pub fn from_tree(name: impl Into<String>, tree: Tree) -> Image {
    let private_keys = private_keys(&tree);
    let (manifest, _) = split(manifest(&tree));
    Image { name: name.into(), tree, manifest, private_keys, etcd_builds: Vec::new() }
}

/// The private keys of a tree in memory, as [`scan`] finds them.
pub fn private_keys(tree: &Tree) -> Vec<PrivateKey> {
    let mut all = Vec::new();
    for (path, entry) in &tree.entries {
        let Kind::File(data) = &entry.kind else { continue };
        let Ok(bytes) = tree.read(data) else { continue };
        let found = keep::keys(pem::sections(&bytes), Some(&bytes));
        all.extend(found.into_iter().map(|key| PrivateKey { path: path.clone(), key }));
    }
    all
}

/// Why an image has no manifest that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoManifest {
    /// There is none.
    Missing,
    /// It is not what it should be, in words.
    Unreadable(String),
    /// Its schema is newer than this tool.
    Newer(u64),
}

fn split(result: Result<Manifest, NoManifest>) -> (Option<Manifest>, Option<NoManifest>) {
    match result {
        Ok(manifest) => (Some(manifest), None),
        Err(why) => (None, Some(why)),
    }
}

fn manifest(tree: &Tree) -> Result<Manifest, NoManifest> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: u64,
    }
    let unreadable = |text: String| NoManifest::Unreadable(text);
    let path = TreePath::from_normal(MANIFEST_PATH.into());
    let Some(entry) = tree.get(&path) else { return Err(NoManifest::Missing) };
    let Kind::File(data) = &entry.kind else { return Err(unreadable(format!("it is a {}", entry.kind_name()))) };
    let bytes = tree.read(data).map_err(|e| unreadable(e.message))?;
    let head: Head = serde_json::from_slice(&bytes).map_err(|e| unreadable(plain(&e.to_string())))?;
    if head.schema > u64::from(SCHEMA) {
        return Err(NoManifest::Newer(head.schema));
    }
    serde_json::from_slice(&bytes).map_err(|e| unreadable(plain(&e.to_string())))
}
