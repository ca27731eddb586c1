//! The rules of this family.

use crate::finding::{Rule, Severity};

/// All rules of this family.
pub static RULES: &[&Rule] = &[
    &FILE,
    &KEY,
    &CHAIN,
    &AUTHORITY,
    &ONE_AUTHORITY,
    &MALFORMED,
    &USAGE,
    &NAMES,
    &USER,
    &FOREIGN,
    &EXPIRED,
    &NOT_YET,
    &SOON,
    &UNREADABLE,
    &FILE_UNREADABLE,
    &OPEN,
    &SHARED_KEY,
    &AUTHORITY_KEY,
    &PEERS,
    &SOURCE,
    &CLIENTS,
];

const fn rule(code: &'static str, severity: Severity, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "tls", severity, summary, explanation }
}

/// A file that must be there is missing or cannot be read.
pub static FILE: Rule = rule(
    "tls-file",
    Severity::Error,
    "a certificate, key or authority that the node needs is missing or cannot be understood",
    "etcd exits 1 with `listener failed: open …: no such file`, on 3.4 after it has written its first log: the membership \
     of that first start stays. The paths of etcd's files are those of its configuration; every node's client pair lies \
     in `/etc/mesh/pki`. Build the image again.",
);
/// Key and certificate do not belong together.
pub static KEY: Rule = rule(
    "tls-key",
    Severity::Error,
    "a private key does not belong to its certificate",
    "The public key in the certificate is not the one of the private key. etcd exits 1 with `tls: private key does not \
     match public key`. The pair was mixed up: build the image again from the store.",
);
/// The leaf is not of the authority beside it.
pub static CHAIN: Rule = rule(
    "tls-chain",
    Severity::Error,
    "a certificate is not signed by the authority that the same image trusts",
    "Peer certificates are signed by the `peer` authority, server and client certificates by the `client` authority. A \
     node whose own certificate is not of its own authority is refused by all others: `x509: certificate signed by \
     unknown authority`.",
);
/// An authority that may not sign.
pub static AUTHORITY: Rule = rule(
    "tls-authority",
    Severity::Error,
    "a trusted certificate is no proper authority",
    "Go builds no chain through a certificate whose basic constraints do not say that it is an authority, or whose key \
     usage does not allow signing; rustls takes it. What etcd accepts counts.",
);
/// One authority for both ports.
pub static ONE_AUTHORITY: Rule = rule(
    "tls-one-authority",
    Severity::Error,
    "one authority is trusted on the peer port and on the client port",
    "There are two authorities so that no client certificate ever passes as a peer: a peer may write the log of the \
     registry without any access control. Here an authority of the client side is trusted on the peer port too.",
);
/// The strictest reader refuses it.
pub static MALFORMED: Rule = rule(
    "tls-malformed",
    Severity::Error,
    "a certificate is refused by the strictest reader",
    "Certificates are checked by the strictest rule of all readers: version 3, a positive serial of at most 20 bytes (Go \
     since 1.23), well-formed DNS names (Go since 1.24.8 and 1.25.2), no SHA-1, no unknown critical extension. The etcd in \
     today's base may be older and accept it; the next upgrade will not.",
);
/// Other usages than the profile's.
pub static USAGE: Rule = rule(
    "tls-usage",
    Severity::Error,
    "a certificate has other usages than its profile",
    "`server` has server auth, `client` client auth, `peer` both; all have digital signature and key encipherment, as in \
     cfssl's scheme. Without the right one the other side says `certificate specifies an incompatible key usage`; with \
     one too many a server's key can act as a client.",
);
/// A host of the configuration is not in the certificate.
pub static NAMES: Rule = rule(
    "tls-names",
    Severity::Error,
    "a URL of the configuration is not covered by the certificate",
    "Whoever dials a URL checks that its host is among the certificate's alternative names; the common name does not \
     count (Go since 1.15), and an address counts only as an IP name. The server certificate must cover every client URL, \
     the peer certificate every peer URL.",
);
/// etcd's user.
pub static USER: Rule = rule(
    "tls-user",
    Severity::Error,
    "the client certificate's common name is not the node's user",
    "With access control on, etcd takes the common name of the client certificate as the user: `node:<name>`. Under \
     another name the node may not announce itself, or acts as somebody else.",
);
/// Another node's certificate.
pub static FOREIGN: Rule = rule(
    "tls-foreign",
    Severity::Error,
    "a certificate belongs to another node",
    "The image carries a certificate that was issued for another node. Both would be one to the registry, and the other \
     node's key has left it. Build the image again; if the key was copied by hand, issue new pairs for both.",
);
/// Ended.
pub static EXPIRED: Rule = rule(
    "tls-expired",
    Severity::Error,
    "a certificate or its authority has expired",
    "etcd starts with it and says nothing; the other side logs `x509: certificate has expired or is not yet valid`. Go \
     checks the dates of the authority too. Run `fitout pki issue` and build again.",
);
/// Not begun.
pub static NOT_YET: Rule = rule(
    "tls-not-yet-valid",
    Severity::Error,
    "a certificate or its authority is not yet valid",
    "Certificates are back-dated by 5 minutes for clocks that differ. One that begins later than now was made with a \
     wrong clock, or the clock of this machine is wrong.",
);
/// Ends soon.
pub static SOON: Rule = rule(
    "tls-ends-soon",
    Severity::Warning,
    "a certificate or its authority ends within 30 days",
    "An image that ships with little time left must be replaced soon. Run `fitout pki issue` and build again; the end of \
     an authority asks for a new one, for all nodes.",
);
/// The user cannot get at the key.
pub static UNREADABLE: Rule = rule(
    "tls-key-unreadable",
    Severity::Error,
    "a private key cannot be read by the user that needs it",
    "etcd runs as user `etcd` and exits 1 with `permission denied`. The key's own mode is not all: every directory above \
     it must let the user through. Ids are those of the image's own `/etc/passwd` and `/etc/group`.",
);
/// etcd cannot read another of its files.
pub static FILE_UNREADABLE: Rule = rule(
    "tls-file-unreadable",
    Severity::Error,
    "a certificate, an authority or the configuration cannot be read by etcd",
    "etcd reads its configuration, certificates and authorities as user `etcd`, after systemd has changed to it, and exits 1 \
     with `permission denied`. None of them is secret: `0644` is right. Directories that are closed are said of the key.",
);
/// Others can get at the key.
pub static OPEN: Rule = rule(
    "tls-key-open",
    Severity::Error,
    "a private key can be read or changed by others",
    "etcd does not look at the mode of its keys. A key must belong to its user or root, be closed to others, and to a \
     group other than the user's own; an access control list on it is refused as well.",
);
/// One key twice.
pub static SHARED_KEY: Rule = rule(
    "tls-shared-key",
    Severity::Error,
    "two certificates share a private key",
    "Every certificate has a key of its own, so that the loss of one node costs one node. Among the images given, a key \
     stands for two.",
);
/// An authority's key in an image.
pub static AUTHORITY_KEY: Rule = rule(
    "tls-authority-key",
    Severity::Error,
    "an authority's private key is in an image",
    "Whoever gets the image could sign any node and any operator. All files that may hold a key are read, whatever their \
     name; keys are matched by their public key.",
);
/// Voter to voter.
pub static PEERS: Rule = rule(
    "tls-matrix-peer",
    Severity::Error,
    "a voter is refused by another voter",
    "For each ordered pair of voters the handshake of the peer port was carried out in memory with both images' \
     certificates, keys and authorities, at the present time, with TLS 1.2 and 1.3. Only the side named holds the reason; \
     the other logs `remote error: tls: bad certificate`.",
);
/// The source address.
pub static SOURCE: Rule = rule(
    "tls-matrix-source",
    Severity::Error,
    "a voter is refused for the address that it comes from",
    "After the handshake etcd's peer port compares the dialler's certificate with the source address of the connection: \
     an IP name must be it, or a DNS name must lead to it in the listener's `/etc/hosts`. On loopback the source is \
     127.0.0.1 whatever address the voter has.",
);
/// Node to voter.
pub static CLIENTS: Rule = rule(
    "tls-matrix-client",
    Severity::Error,
    "a node and a voter's client port do not accept each other",
    "For each node and each voter the handshake of the client port was carried out in memory with both images' \
     certificates, keys and authorities, at the present time, with TLS 1.2 and 1.3.",
);
