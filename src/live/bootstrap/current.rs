//! What a registry holds of what bootstrap writes.

use std::collections::{BTreeMap, BTreeSet};

use crate::etcd::ids::Id;
use crate::layout::access::{Grant, Right};

/// A key's value as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The value.
    pub value: Vec<u8>,
    /// Revision of its last change.
    pub revision: i64,
}

/// A permission of a role, as etcd keeps it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// First key.
    pub key: Vec<u8>,
    /// End of the range; empty for the one key.
    pub end: Vec<u8>,
    /// May read.
    pub read: bool,
    /// May put and delete.
    pub write: bool,
}

impl From<Grant> for Permission {
    fn from(grant: Grant) -> Permission {
        Permission {
            key: grant.key.into_bytes(),
            end: grant.end.unwrap_or_default().into_bytes(),
            read: true,
            write: grant.right == Right::ReadWrite,
        }
    }
}

/// What a registry holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Current {
    /// Id of the etcd cluster that answered.
    pub cluster: Option<Id>,
    /// `/mesh/identity`.
    pub identity: Option<Stored>,
    /// `/mesh/schema`.
    pub schema: Option<Stored>,
    /// Every key below `/mesh/want/`.
    pub want: BTreeMap<Vec<u8>, Stored>,
    /// Roles with their permissions.
    pub roles: BTreeMap<String, BTreeSet<Permission>>,
    /// Users with their roles.
    pub users: BTreeMap<String, BTreeSet<String>>,
    /// Authentication is on.
    pub authentication: bool,
}
