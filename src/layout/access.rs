//! Who may do what: users by the common name of their certificate, one role per node, and the keys that it opens.
//!
//! etcd takes the common name of a client certificate as the user (`client-cert-auth`, etcd's `auth/store.go`
//! AuthInfoFromTLS). Roles grant keys and ranges of keys; a user without password can only come with its certificate.

use super::keys::{self, Key, ROOT, end_of};
use super::text::Label;

/// etcd's own superuser: there without password and without certificate, since authentication cannot be enabled without.
pub const ROOT_USER: &str = "root";
/// etcd's own role that may do everything.
pub const ROOT_ROLE: &str = "root";

const NODE: &str = "node:";
const OPERATOR: &str = "operator:";
const SNAPSHOT: &str = "snapshot:";

/// A user of the registry, by the common name of its certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum User {
    /// `root`.
    Root,
    /// `node:<node>`: has the role of the same name.
    Node(Label),
    /// `operator:<name>`: a person or CI; has the role `root`.
    Operator(String),
    /// `snapshot:<node>`: the snapshot service of a voter. It has the role `root`: etcd gives snapshots to no one else
    /// (`ServerAuthority` of its `server/etcdserver/api/v3rpc/maintenance.go` asks for an administrator).
    Snapshot(Label),
}

impl User {
    /// The user with this name, when the layout knows such.
    pub fn parse(name: &str) -> Option<User> {
        let label = |text: &str| text.parse().ok();
        if name == ROOT_USER {
            Some(User::Root)
        } else if let Some(node) = name.strip_prefix(NODE) {
            label(node).map(User::Node)
        } else if let Some(node) = name.strip_prefix(SNAPSHOT) {
            label(node).map(User::Snapshot)
        } else {
            let name = name.strip_prefix(OPERATOR).filter(|name| !name.is_empty());
            name.map(|name| User::Operator(name.to_owned()))
        }
    }

    /// The one role that it has.
    pub fn role(&self) -> String {
        match self {
            User::Node(node) => role_of(node),
            User::Root | User::Operator(_) | User::Snapshot(_) => ROOT_ROLE.to_owned(),
        }
    }
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            User::Root => f.write_str(ROOT_USER),
            User::Node(node) => write!(f, "{NODE}{node}"),
            User::Operator(name) => write!(f, "{OPERATOR}{name}"),
            User::Snapshot(node) => write!(f, "{SNAPSHOT}{node}"),
        }
    }
}

/// Name of a node's role.
pub fn role_of(node: &Label) -> String {
    format!("{NODE}{node}")
}

/// The node whose role this is.
pub fn node_of_role(role: &str) -> Option<Label> {
    role.strip_prefix(NODE).and_then(|node| node.parse().ok())
}

/// What a grant allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// To read and watch.
    Read,
    /// To read, put and delete.
    ReadWrite,
}

/// A right to a key, or to all keys from one up to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// The key, or the first key of the range.
    pub key: String,
    /// The end of the range, which is not part of it; `None`: the one key.
    pub end: Option<String>,
    /// What may be done.
    pub right: Right,
}

impl Grant {
    /// All keys that begin so.
    pub fn prefix(prefix: &str, right: Right) -> Grant {
        Grant { key: prefix.to_owned(), end: Some(end_of(prefix)), right }
    }
    /// One key.
    pub fn exact(key: &Key, right: Right) -> Grant {
        Grant { key: key.to_string(), end: None, right }
    }
}

/// What a node's role opens: all of the mesh for reading, its own announcements and reports, and its claims, each a data
/// set and a site.
pub fn grants_of<'a>(node: &Label, claims: impl IntoIterator<Item = (&'a Label, &'a Label)>) -> Vec<Grant> {
    let mut grants = vec![
        Grant::prefix(ROOT, Right::Read),
        Grant::prefix(&keys::live_of(node), Right::ReadWrite),
        Grant::prefix(&keys::ops_of(node), Right::ReadWrite),
    ];
    let claim = |(set, site): (&Label, &Label)| Key::Claim { set: set.clone(), site: site.clone() };
    grants.extend(claims.into_iter().map(|pair| Grant::exact(&claim(pair), Right::ReadWrite)));
    grants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_told_by_their_names() {
        for (name, role) in [
            ("root", Some("root")),
            ("node:lis1", Some("node:lis1")),
            ("operator:Anna B", Some("root")),
            ("snapshot:lis1", Some("root")),
            ("node:Lis1", None),
            ("node:", None),
            ("operator:", None),
            ("anna", None),
            ("", None),
        ] {
            let user = User::parse(name);
            assert_eq!(user.as_ref().map(User::role).as_deref(), role, "{name}");
            assert!(user.is_none_or(|user| user.to_string() == name), "{name}");
        }
        assert_eq!(node_of_role("node:a1").map(|n| n.to_string()).as_deref(), Some("a1"));
        assert_eq!(node_of_role("root"), None);
    }

    #[test]
    fn a_node_opens_its_own() {
        let label = |text: &str| text.parse::<Label>().unwrap();
        let (node, set, site) = (label("a1"), label("orders"), label("lisbon"));
        let shown: Vec<String> = grants_of(&node, [(&set, &site)])
            .into_iter()
            .map(|g| format!("{:?} {} {}", g.right, g.key, g.end.unwrap_or_default()))
            .collect();
        assert_eq!(
            shown,
            [
                "Read /mesh/ /mesh0",
                "ReadWrite /mesh/live/a1/ /mesh/live/a10",
                "ReadWrite /mesh/ops/a1/ /mesh/ops/a10",
                "ReadWrite /mesh/claim/orders/lisbon ",
            ]
        );
    }
}
