//! Rules of TLS: each node's certificates are good for what its configuration says, its keys are its user's alone, and,
//! over the images given, everybody who must talk accepts each other: the [`Matrix`].
//!
//! Nothing is asked of a running etcd: it checks neither dates nor names nor usages when it starts, and then logs
//! `bad certificate` twenty times a second on the side that does not know the reason.

mod access;
mod config;
mod facts;
mod matrix;
mod own;
pub mod rules;

use std::collections::BTreeMap;
use std::time::Duration;

use time::OffsetDateTime;

use super::Image;
use crate::finding::Finding;
use crate::pki::key::public_key_digest;
use crate::tree::{Digest, TreePath};

pub use matrix::{Cell, Matrix, Outcome, Port};
pub use rules::RULES;

/// A certificate that ends within this time is worth a warning. The declared window is the store's business (`fitout
/// pki status`); an image does not carry it.
pub const SOON: Duration = Duration::from_secs(30 * 24 * 3600);

/// Applies every rule to every image, and proves the matrix over them. Returns the matrix, as proof for the report.
pub fn check(images: &[&Image], now: OffsetDateTime, out: &mut Vec<Finding>) -> Matrix {
    let nodes: Vec<facts::Node<'_>> = images.iter().filter_map(|image| facts::gather(image, out)).collect();
    for node in &nodes {
        own::check(node, now, out);
    }
    shared_keys(&nodes, out);
    authority_keys(&nodes, out);
    let matrix = matrix::prove(&nodes, now);
    matrix.findings(out);
    matrix
}

/// The matrix alone.
pub fn matrix(images: &[&Image], now: OffsetDateTime) -> Matrix {
    let nodes: Vec<facts::Node<'_>> = images.iter().filter_map(|image| facts::gather(image, &mut Vec::new())).collect();
    matrix::prove(&nodes, now)
}

/// Every certificate has a key of its own, over all images.
fn shared_keys(nodes: &[facts::Node<'_>], out: &mut Vec<Finding>) {
    let mut seen: BTreeMap<Digest, (&str, &TreePath)> = BTreeMap::new();
    for node in nodes {
        for pair in &node.pairs {
            let Some(key) = pair.key.as_ref().map(|key| key.public) else { continue };
            match seen.get(&key) {
                // Two images of one node carry the same keys: that is what the store is for.
                Some((other, path)) if *other == node.name() && **path == pair.key_path => {}
                Some((other, path)) => out.push(
                    rules::SHARED_KEY
                        .finding(node.at(&pair.key_path), format!("it is the same key as {path} of node {other}"))
                        .help("remove the pair from the store, run `fitout pki issue` and build again"),
                ),
                None => {
                    seen.insert(key, (node.name(), &pair.key_path));
                }
            }
        }
    }
}

/// No private key of an authority is in any image, whatever its name: the scan finds keys anywhere.
fn authority_keys(nodes: &[facts::Node<'_>], out: &mut Vec<Finding>) {
    let mut authorities: BTreeMap<Digest, String> = BTreeMap::new();
    for pair in nodes.iter().flat_map(|node| &node.pairs) {
        for authority in &pair.authorities {
            authorities.entry(authority.public_key).or_insert_with(|| authority.subject.clone());
        }
    }
    for node in nodes {
        for found in &node.image.private_keys {
            let Some(subject) = found.key.public.and_then(|key| authorities.get(&key)) else { continue };
            out.push(
                rules::AUTHORITY_KEY
                    .finding(node.at(&found.path), format!("it is the private key of the authority `{subject}`"))
                    .help(
                        "remove it from the overlay or the base that brings it, and make new authorities if the image has \
                         left this machine",
                    ),
            );
        }
    }
}

/// The public key of a PEM private key, if there is one that can be read.
fn public_of(pem: &[u8]) -> Result<Digest, String> {
    public_key_digest(pem).map_err(|error| format!("the file {error}"))
}

#[cfg(test)]
mod tests;
