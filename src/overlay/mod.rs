//! Overlays over a base: render, edit, set unit states, merge into the tree, and keep the ledger.
//!
//! [`plan`] looks at a whole mesh and one base, and needs no certificates: it finds everything that is wrong with the
//! overlays of all profiles, and does what is the same for all nodes of a profile. [`fit`] adds what is one node's own.
//! [`merge`] gives the tree of the image.

mod assemble;
mod claims;
mod context;
pub mod edits;
mod elf;
mod filters;
mod fit;
pub mod ledger;
mod merge;
mod owners;
mod plan;
mod policy;
mod profile;
pub mod program;
mod removals;
mod render;
mod rules;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod units;
mod users;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Entry, TreePath};
use ledger::{Ledger, Scope};

pub use fit::fit;
pub use merge::merge;
pub use plan::{BaseView, Plan, packages, plan};
pub use policy::REGISTRY_UNIT;
pub use rules::RULES;
pub use units::PRESET;
pub use users::Ids;

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
    /// True when the store was read without its keys: the key files hold a placeholder, and no image may be written. The
    /// ledger is the same in both cases.
    pub without_keys: bool,
}

impl Fitted {
    /// Nothing put, nothing removed.
    pub fn empty(node: &str, profile: &str) -> Fitted {
        Fitted {
            node: node.to_owned(),
            profile: profile.to_owned(),
            put: BTreeMap::new(),
            removed: BTreeSet::new(),
            ledger: Ledger::default(),
            without_keys: false,
        }
    }
}
