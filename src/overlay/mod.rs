//! Overlays over a base: render, edit, set unit states, merge into the tree, and keep the ledger.

pub mod ledger;

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Entry, TreePath};
use ledger::{Ledger, Scope};

/// What makes a node's image out of the base.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// Node.
    pub node: String,
    /// Its profile.
    pub profile: String,
    /// Entries to put, by resolved path, each with its part. The embedded manifest is not among them.
    pub put: BTreeMap<TreePath, (Scope, Entry)>,
    /// Paths of the base that are not in the image (a directory's whole subtree is listed).
    pub removed: BTreeSet<TreePath>,
    /// What was done and why.
    pub ledger: Ledger,
}
