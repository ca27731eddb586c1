//! What the rules see of an image.

use crate::image::manifest::Manifest;
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
    /// Files anywhere in the tree that hold a private key in PEM; their bytes are kept up to 64 KiB.
    pub private_keys: Vec<TreePath>,
}
