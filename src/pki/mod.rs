//! Authorities, certificate profiles, the store, inspection, and handshakes in memory.

pub mod authority;
pub mod found;
pub mod handshake;
pub mod inspect;
pub mod key;
pub mod names;
pub mod passphrase;
pub mod profiles;
pub mod request;
pub mod rules;
pub mod source_address;
pub mod store;
#[cfg(test)]
pub(crate) mod testing;

pub use inspect::Certificate;
pub use passphrase::Passphrase;
pub use profiles::AuthorityName;
pub use rules::RULES;
pub use store::{Access, Issue, Public, Store};

use zeroize::Zeroizing;

/// What a leaf certificate is for; the names are cfssl's profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Server authentication; signed by the `client` authority.
    Server,
    /// Client authentication; signed by the `client` authority.
    Client,
    /// Both; signed by the `peer` authority.
    Peer,
}

/// A leaf certificate, with its key where the key may be read.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// What it is for.
    pub purpose: Use,
    /// PEM.
    pub certificate_pem: String,
    /// DER.
    pub certificate_der: Vec<u8>,
    /// SHA-256 of the SubjectPublicKeyInfo (DER).
    pub public_key: crate::tree::Digest,
    /// PKCS#8 PEM; `None` when read from the public side of a store.
    pub key_pem: Option<Zeroizing<String>>,
}

/// All that goes into one node's image.
#[derive(Debug, Clone)]
pub struct NodePki {
    /// PEM bundle of the `peer` authority.
    pub peer_authority_pem: String,
    /// PEM bundle of the `client` authority.
    pub client_authority_pem: String,
    /// Every node has one: CN `node:<name>`.
    pub client: Leaf,
    /// Nodes that run etcd.
    pub server: Option<Leaf>,
    /// Nodes that run etcd.
    pub peer: Option<Leaf>,
}
