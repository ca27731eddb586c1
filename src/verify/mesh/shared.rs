//! What must be one node's alone, and what two nodes have.

use std::collections::BTreeMap;

use super::{Node, rule};
use crate::finding::{Finding, Rule, Severity};
use crate::overlay::ledger::{Record, Scope};
use crate::pki::inspect::Certificate;
use crate::tree::{Digest, TreePath};

/// Something shared.
pub static SHARED: Rule = rule(
    "mesh-shared",
    Severity::Error,
    "two nodes share what must be one node's alone",
    "\
A private key of a tunnel or of a service that two nodes have makes one pass for the other, and WireGuard sends to whichever spoke
last. Two certificates of one authority with one serial number cannot be told apart when one is revoked (RFC 5280, 4.1.2.2).
Certificates of the registry and their keys are compared by TLS's rules, ids of machines by those of units.",
);

/// One thing that must be unique: what it is, and by what it is known. No secret is kept or shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Unique {
    /// WireGuard's private key, by its digest.
    Tunnel(Digest),
    /// A key that an overlay put for this node, by its public key.
    Key(Digest),
    /// Authority and serial number.
    Serial(Vec<u8>, Vec<u8>),
}

impl Unique {
    fn words(&self) -> &'static str {
        match self {
            Unique::Tunnel(_) => "WireGuard's private key",
            Unique::Key(_) => "the private key",
            Unique::Serial(..) => "the serial number",
        }
    }
}

/// Applies the rule.
pub(super) fn check(group: &[Node<'_>], out: &mut Vec<Finding>) {
    let mut seen: BTreeMap<Unique, (&str, TreePath, Option<Digest>)> = BTreeMap::new();
    for node in group {
        for (unique, path, certificate) in uniques(node) {
            let Some((other, place, same)) = seen.get(&unique) else {
                seen.insert(unique, (node.name(), path, certificate));
                continue;
            };
            // Two images of a node, and one certificate in two images, are said elsewhere.
            if *other == node.name() || (certificate.is_some() && *same == certificate) {
                continue;
            }
            let message = format!("it has {} of {place} of node `{other}`", unique.words());
            out.push(
                SHARED
                    .finding(format!("{}: {path}", node.image.name), message)
                    .help("give each node its own, and build both images again"),
            );
        }
    }
}

fn uniques(node: &Node<'_>) -> Vec<(Unique, TreePath, Option<Digest>)> {
    let mut all = Vec::new();
    let own = |record: &&Record| record.scope == Scope::Node;
    for found in &node.image.private_keys {
        // The store's own keys have a rule of TLS.
        let record = node.manifest.ledger.get(&found.path).filter(own).filter(|record| record.public_key.is_none());
        if let (Some(_), Some(public)) = (record, found.key.public) {
            all.push((Unique::Key(public), found.path.clone(), None));
        }
    }
    for (path, record) in &node.manifest.ledger.records {
        let Ok(path) = TreePath::parse(path) else { continue };
        if !path.as_bytes().ends_with(b".crt") || !own(&record) {
            continue;
        }
        let content = node.image.tree.content(&path).ok();
        for certificate in content.and_then(|pem| Certificate::bundle(pem).ok()).unwrap_or_default() {
            let unique = Unique::Serial(certificate.issuer_der.clone(), certificate.serial.clone());
            all.push((unique, path.clone(), Some(Digest::of(&certificate.der))));
        }
    }
    for (directory, end) in [("/etc/wireguard", ".conf"), ("/etc/systemd/network", ".netdev")] {
        let directory = TreePath::parse(directory).unwrap_or_default();
        let files = node.image.tree.below(&directory).filter(|(path, _)| path.as_bytes().ends_with(end.as_bytes()));
        for (path, _) in files {
            let text = node.image.tree.content(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            all.extend(
                tunnel_key(node, &text.unwrap_or_default()).map(|key| (Unique::Tunnel(key), path.clone(), None)),
            );
        }
    }
    all
}

/// `PrivateKey=` of a tunnel, or the file that `PrivateKeyFile=` names (wg(8), systemd.netdev(5)).
fn tunnel_key(node: &Node<'_>, text: &str) -> Option<Digest> {
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned()).filter(|value| !value.is_empty())
        })
    };
    if let Some(key) = value("PrivateKey") {
        return Some(Digest::of(key.as_bytes()));
    }
    let path = TreePath::parse(value("PrivateKeyFile")?).ok()?;
    let content = node.image.tree.content(&path).ok()?;
    Some(Digest::of(content.trim_ascii())).filter(|_| !content.trim_ascii().is_empty())
}
