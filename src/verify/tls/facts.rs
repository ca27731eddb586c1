//! What an image says about TLS: its configuration, and its pairs of certificate and key with their authorities.

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use super::config::{self, Config, Transport};
use super::{public_of, rules};
use crate::finding::Finding;
use crate::image::manifest::Manifest;
use crate::pki::Use;
use crate::pki::handshake::Side;
use crate::pki::inspect::{Certificate, InspectError};
use crate::tree::{Digest, Tree, TreePath};
use crate::verify::Image;

/// Every node's client pair.
const CLIENT: [&str; 3] = ["/etc/mesh/pki/client.crt", "/etc/mesh/pki/client.key", "/etc/mesh/pki/client-ca.crt"];

/// One image's facts.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub image: &'a Image,
    pub manifest: &'a Manifest,
    /// Of nodes that run etcd.
    pub config: Option<Config>,
    pub pairs: Vec<Pair>,
}

/// A certificate with its key and the authorities that are trusted beside it. What could not be read is `None` or empty
/// and has a finding already.
#[derive(Debug)]
pub(super) struct Pair {
    pub purpose: Use,
    pub certificate_path: TreePath,
    pub key_path: TreePath,
    pub authority_path: TreePath,
    pub certificate: Option<Certificate>,
    pub key: Option<Key>,
    pub authorities: Vec<Certificate>,
}

/// A private key with its public key's digest.
#[derive(Debug)]
pub(super) struct Key {
    pub der: PrivateKeyDer<'static>,
    pub public: Digest,
}

impl Node<'_> {
    pub(super) fn name(&self) -> &str {
        &self.manifest.node
    }
    /// `dist/lis1.tar.gz: /etc/x`, the subject of findings.
    pub(super) fn at(&self, path: &TreePath) -> String {
        format!("{}: {path}", self.image.name)
    }
    pub(super) fn pair(&self, purpose: Use) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.purpose == purpose)
    }
    /// One side of a handshake.
    ///
    /// # Errors
    /// In words, when a part is missing or cannot be used.
    pub(super) fn side(&self, purpose: Use) -> Result<Side, String> {
        let missing = || format!("{} has no usable {purpose} pair", self.name());
        let pair = self.pair(purpose).ok_or_else(missing)?;
        let (Some(certificate), Some(key)) = (&pair.certificate, &pair.key) else { return Err(missing()) };
        if pair.authorities.is_empty() {
            return Err(missing());
        }
        Side::new(certificate.clone(), key.der.clone_key(), pair.authorities.clone())
    }
}

/// Reads an image; `None` when it does not say what it is (the container family says so).
pub(super) fn gather<'a>(image: &'a Image, out: &mut Vec<Finding>) -> Option<Node<'a>> {
    let manifest = image.manifest.as_ref()?;
    let mut node = Node { image, manifest, config: None, pairs: Vec::new() };
    let client = CLIENT.map(|path| TreePath::parse(path).unwrap_or_default());
    node.pairs.push(pair(&node, Use::Client, client, out));
    if manifest.part.runs_registry() {
        let path = TreePath::parse(config::PATH).unwrap_or_default();
        let parsed = content(&image.tree, &path)
            .and_then(|bytes| config::parse(&String::from_utf8_lossy(&bytes)).map_err(|why| why.to_owned()));
        match parsed {
            Ok(config) => {
                let listeners = [
                    (Use::Server, &config.client, "client-transport-security"),
                    (Use::Peer, &config.peer, "peer-transport-security"),
                ];
                for (purpose, transport, section) in listeners {
                    if let Some(paths) = paths(&node, transport, section, &path, out) {
                        let pair = pair(&node, purpose, paths, out);
                        node.pairs.push(pair);
                    }
                }
                node.config = Some(config);
            }
            Err(why) => out.push(rules::FILE.finding(node.at(&path), why)),
        }
    }
    Some(node)
}

/// Certificate, key and authority of a listener; a finding for each that the configuration does not name.
fn paths(
    node: &Node<'_>,
    transport: &Transport,
    section: &str,
    config: &TreePath,
    out: &mut Vec<Finding>,
) -> Option<[TreePath; 3]> {
    let named = [
        ("cert-file", &transport.certificate),
        ("key-file", &transport.key),
        ("trusted-ca-file", &transport.authority),
    ];
    let mut paths = Vec::new();
    for (key, value) in named {
        match value.as_deref().map(TreePath::parse) {
            Some(Ok(path)) => paths.push(path),
            Some(Err(error)) => {
                out.push(rules::FILE.finding(node.at(config), format!("`{section}.{key}` {error}")));
            }
            None => out.push(rules::FILE.finding(node.at(config), format!("it has no `{section}.{key}`"))),
        }
    }
    <[TreePath; 3]>::try_from(paths).ok()
}

fn pair(
    node: &Node<'_>,
    purpose: Use,
    [certificate_path, key_path, authority_path]: [TreePath; 3],
    out: &mut Vec<Finding>,
) -> Pair {
    let tree = &node.image.tree;
    let mut report = |path: &TreePath, why: String| out.push(rules::FILE.finding(node.at(path), why));
    let unreadable = |error: InspectError| format!("the file {error}");
    let certificate = content(tree, &certificate_path)
        .and_then(|pem| Certificate::from_pem(pem).map_err(unreadable))
        .map_err(|why| report(&certificate_path, why))
        .ok();
    let key = content(tree, &key_path).and_then(|pem| read_key(&pem)).map_err(|why| report(&key_path, why)).ok();
    let authorities = content(tree, &authority_path)
        .and_then(|pem| Certificate::bundle(pem).map_err(unreadable))
        .map_err(|why| report(&authority_path, why))
        .unwrap_or_default();
    Pair { purpose, certificate_path, key_path, authority_path, certificate, key, authorities }
}

fn read_key(pem: &[u8]) -> Result<Key, String> {
    let public = public_of(pem)?;
    let der = PrivateKeyDer::from_pem_slice(pem).map_err(|e| format!("the file holds no usable key: {e}"))?;
    Ok(Key { der, public })
}

/// The content of a file, links followed, in words when there is none.
pub(super) fn content(tree: &Tree, path: &TreePath) -> Result<Vec<u8>, String> {
    let resolved = tree.resolve_fully(path).map_err(|e| e.to_string())?;
    if tree.get(&resolved).is_none() {
        return Err("there is no such file".to_owned());
    }
    tree.content(&resolved).map_err(|e| e.message)
}
