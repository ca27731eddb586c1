//! What the rules see of an image.

use crate::etcd::versions::Version;
use crate::image::manifest::Manifest;
use crate::pki::found::Found;
use crate::tree::{Tree, TreePath};

/// A scanned image: the tree (contents only where rules read them, see `scan`), and what it says of itself.
#[derive(Debug)]
pub struct Image {
    /// File name, for messages.
    pub name: String,
    /// The tree as a reader of the archive gets it.
    pub tree: Tree,
    /// The embedded manifest; `None` when missing or unreadable (a finding of the container family).
    pub manifest: Option<Manifest>,
    /// Private keys anywhere in the tree, in archive order: PEM in files of any size, DER in files that are nothing else.
    /// Files with one are kept up to 64 KiB.
    pub private_keys: Vec<PrivateKey>,
    /// Files of the name `etcd` that say of which version they were built.
    pub etcd_builds: Vec<(TreePath, Version)>,
}

/// A private key in the tree. Its bytes are not kept here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateKey {
    /// The file.
    pub path: TreePath,
    /// What it is.
    pub key: Found,
}
