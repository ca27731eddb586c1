//! The public side: certificates without keys, no lock, no passphrase, nothing issued.

use std::path::Path;

use super::files::{self, Files, Meta};
use super::{leaf, refused};
use crate::declaration::{Mesh, Node};
use crate::finding::Problem;
use crate::pki::inspect::Certificate;
use crate::pki::profiles::AuthorityName;
use crate::pki::request::{self, Reason};
use crate::pki::{NodePki, Use};

/// The certificates of a store.
#[derive(Debug)]
pub struct Public {
    pub(super) files: Files,
    pub(super) meta: Meta,
    pub(super) peer: (String, Certificate),
    pub(super) client: (String, Certificate),
}

impl Public {
    /// Opens the public side.
    ///
    /// # Errors
    /// When there is no store, or an authority's certificate is missing or cannot be read.
    pub fn open(directory: &Path) -> Result<Public, Problem> {
        let files = Files::new(directory);
        let meta = files.meta()?;
        let (peer, client) = (files.bundle(AuthorityName::Peer)?, files.bundle(AuthorityName::Client)?);
        Ok(Public { files, meta, peer, client })
    }

    /// What a node's image carries, without keys. Dates do not count: they are the image's own business.
    ///
    /// # Errors
    /// A finding for each certificate that is missing or not as declared.
    pub fn node(&self, mesh: &Mesh, node: &Node) -> Result<NodePki, Problem> {
        self.meta.check_mesh(&self.files, &mesh.name.value)?;
        let requests = request::of_node(mesh, node)?;
        let (mut leaves, mut findings) = (Vec::new(), Vec::new());
        for request in &requests {
            let stem = self.files.node(&node.name.value).join(request.purpose.as_str());
            match self.files.certificate(&stem) {
                Ok(None) => findings.push(refused(request, &Reason::Missing)),
                Ok(Some((pem, certificate))) => {
                    match request::differs(request, &certificate, self.authority(request.purpose)) {
                        Some(reason) => findings.push(refused(request, &reason)),
                        None => leaves.push(leaf(request.purpose, pem, certificate, None)),
                    }
                }
                Err(Problem::Findings(more)) => findings.extend(more),
                Err(failure) => return Err(failure),
            }
        }
        if !findings.is_empty() {
            return Err(findings.into());
        }
        files::node_pki(&self.peer.0, &self.client.0, leaves, &node.name.value)
    }

    pub(super) fn authority(&self, purpose: Use) -> &Certificate {
        match purpose.authority() {
            AuthorityName::Peer => &self.peer.1,
            AuthorityName::Client => &self.client.1,
        }
    }
}
