//! The grammar of the keys. Every key has one spelling, so a key that parses renders to the same bytes.
//!
//! ```text
//! /mesh/identity                        /mesh/live/<node>/here
//! /mesh/schema                          /mesh/live/<node>/health
//! /mesh/want/site/<site>                /mesh/live/<node>/service/<service>
//! /mesh/want/node/<node>                /mesh/ops/<node>/cert/<use>
//! /mesh/want/quorum                     /mesh/ops/<node>/backup/<time>-<revision>
//! /mesh/want/service/<service>
//! /mesh/want/data/<set>                 /mesh/claim/<set>/<site>
//! ```

use std::fmt;

use super::text::{HexId, Label, Text, TextError, Time};

/// Everything of the mesh lies below this; the control plane has no other keys.
pub const ROOT: &str = "/mesh/";
/// What the operator wants, from the declaration.
pub const WANT: &str = "/mesh/want/";
/// The sites of [`WANT`].
pub const WANT_SITES: &str = "/mesh/want/site/";
/// The nodes of [`WANT`].
pub const WANT_NODES: &str = "/mesh/want/node/";
/// The services of [`WANT`].
pub const WANT_SERVICES: &str = "/mesh/want/service/";
/// The data sets of [`WANT`].
pub const WANT_DATA: &str = "/mesh/want/data/";
/// Which node holds the one replica of a data set in a site.
pub const CLAIM: &str = "/mesh/claim/";
/// What the nodes announce, under their leases.
pub const LIVE: &str = "/mesh/live/";
/// What the nodes report, without lease.
pub const OPS: &str = "/mesh/ops/";

/// A key of schema 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `/mesh/identity`
    Identity,
    /// `/mesh/schema`
    Schema,
    /// `/mesh/want/site/<site>`
    WantSite(Label),
    /// `/mesh/want/node/<node>`
    WantNode(Label),
    /// `/mesh/want/quorum`
    WantQuorum,
    /// `/mesh/want/service/<service>`
    WantService(Label),
    /// `/mesh/want/data/<set>`
    WantData(Label),
    /// `/mesh/claim/<set>/<site>`
    Claim {
        /// The data set.
        set: Label,
        /// The site.
        site: Label,
    },
    /// `/mesh/live/<node>/here`
    Here(Label),
    /// `/mesh/live/<node>/health`
    Health(Label),
    /// `/mesh/live/<node>/service/<service>`
    Service {
        /// The node.
        node: Label,
        /// The service.
        service: Label,
    },
    /// `/mesh/ops/<node>/cert/<use>`
    Certificate {
        /// The node.
        node: Label,
        /// Which certificate.
        purpose: CertificateUse,
    },
    /// `/mesh/ops/<node>/backup/<time>-<revision>`: the time in RFC 3339, the revision as 16 hex digits, so that the
    /// order of the keys is the order in time.
    Backup {
        /// The node that made it.
        node: Label,
        /// When it was made.
        time: Time,
        /// Revision of the registry that it holds.
        revision: HexId,
    },
}

/// Which of a node's certificates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateUse {
    /// `peer`: between the members of the registry.
    Peer,
    /// `server`: the registry's client listener.
    Server,
    /// `client`: the node as a client of the registry.
    Client,
    /// `public-<name>`: one of the node's services.
    Public(Label),
}

/// Who writes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer<'a> {
    /// An operator (`fitout registry`, and a restore).
    Operator,
    /// This node alone.
    Node(&'a Label),
    /// The nodes to which the declaration gives the data set in the site; an operator releases and transfers.
    Claimant,
}

/// Why bytes are no key of schema 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not below [`ROOT`].
    #[error("it is outside of `/mesh/`")]
    Outside,
    /// Its bytes are no UTF-8.
    #[error("its bytes are not UTF-8")]
    NotUtf8,
    /// No key of the schema has this form.
    #[error("schema 1 has no key of this form")]
    Unknown,
    /// The form is known, and one of its parts is wrong.
    #[error("{0}")]
    Part(#[from] TextError),
}

impl Key {
    /// Reads a key.
    ///
    /// # Errors
    /// When it is none of schema 1.
    pub fn parse(bytes: &[u8]) -> Result<Key, KeyError> {
        let rest = bytes.strip_prefix(ROOT.as_bytes()).ok_or(KeyError::Outside)?;
        let rest = std::str::from_utf8(rest).map_err(|_| KeyError::NotUtf8)?;
        let parts: Vec<&str> = rest.split('/').collect();
        let label = |text: &str| Label::of_text(text);
        Ok(match parts.as_slice() {
            ["identity"] => Key::Identity,
            ["schema"] => Key::Schema,
            ["want", "quorum"] => Key::WantQuorum,
            ["want", "site", site] => Key::WantSite(label(site)?),
            ["want", "node", node] => Key::WantNode(label(node)?),
            ["want", "service", service] => Key::WantService(label(service)?),
            ["want", "data", set] => Key::WantData(label(set)?),
            ["claim", set, site] => Key::Claim { set: label(set)?, site: label(site)? },
            ["live", node, "here"] => Key::Here(label(node)?),
            ["live", node, "health"] => Key::Health(label(node)?),
            ["live", node, "service", service] => Key::Service { node: label(node)?, service: label(service)? },
            ["ops", node, "cert", purpose] => {
                Key::Certificate { node: label(node)?, purpose: CertificateUse::read(purpose)? }
            }
            ["ops", node, "backup", stamp] => {
                let (time, revision) = stamp_of(stamp)?;
                Key::Backup { node: label(node)?, time, revision }
            }
            _ => return Err(KeyError::Unknown),
        })
    }

    /// The node whose part of the registry it is in; `None` for `want`, `claim` and what there is once.
    pub fn node(&self) -> Option<&Label> {
        match self {
            Key::Here(node)
            | Key::Health(node)
            | Key::Service { node, .. }
            | Key::Certificate { node, .. }
            | Key::Backup { node, .. } => Some(node),
            _ => None,
        }
    }

    /// Who writes it.
    pub fn writer(&self) -> Writer<'_> {
        match (self.node(), self) {
            (Some(node), _) => Writer::Node(node),
            (None, Key::Claim { .. }) => Writer::Claimant,
            (None, _) => Writer::Operator,
        }
    }

    /// True for the keys that must be under their node's lease: they go when the node does. All others must have none: a
    /// lease that ends would take them away.
    pub fn needs_lease(&self) -> bool {
        matches!(self, Key::Here(_) | Key::Health(_) | Key::Service { .. })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Identity => write!(f, "{ROOT}identity"),
            Key::Schema => write!(f, "{ROOT}schema"),
            Key::WantQuorum => write!(f, "{WANT}quorum"),
            Key::WantSite(site) => write!(f, "{WANT_SITES}{site}"),
            Key::WantNode(node) => write!(f, "{WANT_NODES}{node}"),
            Key::WantService(service) => write!(f, "{WANT_SERVICES}{service}"),
            Key::WantData(set) => write!(f, "{WANT_DATA}{set}"),
            Key::Claim { set, site } => write!(f, "{CLAIM}{set}/{site}"),
            Key::Here(node) => write!(f, "{LIVE}{node}/here"),
            Key::Health(node) => write!(f, "{LIVE}{node}/health"),
            Key::Service { node, service } => write!(f, "{LIVE}{node}/service/{service}"),
            Key::Certificate { node, purpose } => write!(f, "{OPS}{node}/cert/{purpose}"),
            Key::Backup { node, time, revision } => write!(f, "{OPS}{node}/backup/{time}-{revision}"),
        }
    }
}

/// Everything that a node announces: `/mesh/live/<node>/`. The slash keeps `a1` out of `a10`.
pub fn live_of(node: &Label) -> String {
    format!("{LIVE}{node}/")
}

/// Everything that a node reports: `/mesh/ops/<node>/`.
pub fn ops_of(node: &Label) -> String {
    format!("{OPS}{node}/")
}

/// The first key after all that begin with this prefix: its last byte, one higher (etcd's `clientv3.GetPrefixRangeEnd`).
/// `prefix` is ASCII and not empty.
pub fn end_of(prefix: &str) -> String {
    let mut bytes = prefix.as_bytes().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last = last.saturating_add(1);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl CertificateUse {
    fn read(text: &str) -> Result<CertificateUse, TextError> {
        Ok(match text {
            "peer" => CertificateUse::Peer,
            "server" => CertificateUse::Server,
            "client" => CertificateUse::Client,
            _ => {
                let name = text.strip_prefix("public-").and_then(|name| Label::of_text(name).ok());
                let form = "`peer`, `server`, `client`, or `public-` and a name";
                CertificateUse::Public(name.ok_or_else(|| TextError::new(text, "use of a certificate", form))?)
            }
        })
    }
}

impl fmt::Display for CertificateUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CertificateUse::Peer => f.write_str("peer"),
            CertificateUse::Server => f.write_str("server"),
            CertificateUse::Client => f.write_str("client"),
            CertificateUse::Public(name) => write!(f, "public-{name}"),
        }
    }
}

/// `<time>-<revision>`.
fn stamp_of(text: &str) -> Result<(Time, HexId), TextError> {
    let wrong =
        || TextError::new(text, "backup's name", "a time and a revision, as `2026-11-30T10:53:00Z-00000000000004d2`");
    let (time, revision) = text.rsplit_once('-').ok_or_else(wrong)?;
    Ok((Time::of_text(time).map_err(|_| wrong())?, HexId::of_text(revision).map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests;
