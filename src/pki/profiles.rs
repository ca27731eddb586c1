//! Certificate profiles: what each kind of leaf may be used for. The usages are those of cfssl's scheme for etcd.
//!
//! | profile | cfssl's usages | key usage | extended |
//! |---|---|---|---|
//! | `server` | `signing`, `key encipherment`, `server auth` | digitalSignature, keyEncipherment | serverAuth |
//! | `client` | `signing`, `key encipherment`, `client auth` | digitalSignature, keyEncipherment | clientAuth |
//! | `peer` | `signing`, `key encipherment`, `server auth`, `client auth` | digitalSignature, keyEncipherment | both |
//!
//! (`signing` and `digital signature` are two words of cfssl's for the one bit digitalSignature: config/config.go of
//! cloudflare/cfssl, `KeyUsage`.) Key usage is critical, extended key usage is not, `basicConstraints` is critical and
//! says "no authority", as cfssl writes them.

use std::fmt;

use super::Use;

/// The two authorities of a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthorityName {
    /// Signs peer certificates.
    Peer,
    /// Signs server and client certificates.
    Client,
}

impl AuthorityName {
    /// Both.
    pub const ALL: [AuthorityName; 2] = [AuthorityName::Peer, AuthorityName::Client];
    /// The word of the design, and the file name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            AuthorityName::Peer => "peer",
            AuthorityName::Client => "client",
        }
    }
}

impl fmt::Display for AuthorityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An extended key usage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extended {
    /// id-kp-serverAuth.
    ServerAuth,
    /// id-kp-clientAuth.
    ClientAuth,
    /// Any other, as dotted numbers.
    Other(String),
}

impl fmt::Display for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Extended::ServerAuth => "server auth",
            Extended::ClientAuth => "client auth",
            Extended::Other(oid) => oid,
        })
    }
}

/// Key usage bits by their number in RFC 5280, section 4.2.1.3.
pub mod bits {
    /// digitalSignature.
    pub const DIGITAL_SIGNATURE: u16 = 1;
    /// keyEncipherment.
    pub const KEY_ENCIPHERMENT: u16 = 1 << 2;
    /// keyCertSign.
    pub const CERT_SIGN: u16 = 1 << 5;
    /// cRLSign.
    pub const CRL_SIGN: u16 = 1 << 6;
}

/// Key usage of every leaf.
pub const LEAF_USAGE: u16 = bits::DIGITAL_SIGNATURE | bits::KEY_ENCIPHERMENT;
/// Key usage of an authority.
pub const AUTHORITY_USAGE: u16 = bits::CERT_SIGN | bits::CRL_SIGN;

/// Key usage bits in words.
pub fn usage_words(usage: u16) -> String {
    const WORDS: [&str; 9] = [
        "digital signature",
        "content commitment",
        "key encipherment",
        "data encipherment",
        "key agreement",
        "cert sign",
        "crl sign",
        "encipher only",
        "decipher only",
    ];
    let words: Vec<&str> =
        WORDS.iter().enumerate().filter(|(bit, _)| usage & (1 << bit) != 0).map(|(_, word)| *word).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

impl Use {
    /// All leaf profiles.
    pub const ALL: [Use; 3] = [Use::Server, Use::Client, Use::Peer];
    /// The word of the design, and the file name in the store and in the image.
    pub fn as_str(self) -> &'static str {
        match self {
            Use::Server => "server",
            Use::Client => "client",
            Use::Peer => "peer",
        }
    }
    /// The authority that signs it.
    pub fn authority(self) -> AuthorityName {
        match self {
            Use::Peer => AuthorityName::Peer,
            Use::Server | Use::Client => AuthorityName::Client,
        }
    }
    /// Its extended key usages, in order.
    pub fn extended(self) -> &'static [Extended] {
        match self {
            Use::Server => &[Extended::ServerAuth],
            Use::Client => &[Extended::ClientAuth],
            Use::Peer => &[Extended::ServerAuth, Extended::ClientAuth],
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_in_words() {
        assert_eq!(usage_words(LEAF_USAGE), "digital signature, key encipherment");
        assert_eq!(usage_words(AUTHORITY_USAGE), "cert sign, crl sign");
        assert_eq!(usage_words(0), "none");
    }

    #[test]
    fn a_client_certificate_is_never_of_the_peer_authority() {
        let table: Vec<(Use, AuthorityName)> = Use::ALL.iter().map(|u| (*u, u.authority())).collect();
        let want = [
            (Use::Server, AuthorityName::Client),
            (Use::Client, AuthorityName::Client),
            (Use::Peer, AuthorityName::Peer),
        ];
        assert_eq!(table, want);
    }
}
