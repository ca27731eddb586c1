//! The store: what was issued, kept so that an image is the same bytes each time it is built.
//!
//! ```text
//! pki/store.toml                     schema, mesh, whether keys are encrypted
//! pki/lock                           held (flock) while a command uses the private side
//! pki/authority/{peer,client}.crt    the authority that signs, first; further ones are trusted too
//! pki/authority/{peer,client}.key    its key; may be kept elsewhere while nothing is issued
//! pki/nodes/<node>/{server,client,peer}.{crt,key}
//! pki/operators/<name>.{crt,key}     client certificates of people and CI
//! ```
//!
//! Directories are `0700`, keys `0600`, certificates `0644`. A pair appears whole: both files are written beside as
//! `.next` and synced, the certificate's last; then they are renamed. Whoever opens the store next finishes or drops
//! what a crash left behind, so there is never a certificate without its key.

mod files;
mod lock;
mod public;
mod status;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::authority::{self, Pair, Signer};
use super::inspect::{Certificate, Dates, date};
use super::passphrase::{Passphrase, Source};
use super::profiles::AuthorityName;
use super::request::{self, Reason, Request};
use super::{Leaf, NodePki, Use, key, rules};
use crate::declaration::{Mesh, Node};
use crate::finding::{Failure, Finding, Problem};
use files::{Files, Meta};
use lock::Lock;

pub use public::Public;
pub use status::{Row, State, status};

/// Whether certificates may be issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issue {
    /// Missing, changed and due ones are made.
    Allowed,
    /// `--locked`: what would be made is a finding.
    Refused,
}

/// What opening the private side needs from its surroundings.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// Where a passphrase comes from.
    pub passphrase: &'a Source<'a>,
    /// Told, in one line, when another process holds the store.
    pub say: &'a dyn Fn(&str),
}

impl std::fmt::Debug for Access<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("passphrase", self.passphrase).finish_non_exhaustive()
    }
}

/// A certificate that was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// `server certificate of node lis1`.
    pub title: String,
    /// Why.
    pub reason: Reason,
    /// Serial number, hex.
    pub serial: String,
    /// Its end.
    pub not_after: OffsetDateTime,
}

/// The store with its private side, locked against other processes until it is dropped.
#[derive(Debug)]
pub struct Store {
    files: Files,
    meta: Meta,
    passphrase: Option<Passphrase>,
    peer: Authority,
    client: Authority,
    issued: Mutex<Vec<Issued>>,
    _lock: Lock,
}

#[derive(Debug)]
struct Authority {
    name: AuthorityName,
    bundle_pem: String,
    /// The one that signs.
    certificate: Certificate,
    signer: Option<Signer>,
}

impl Store {
    /// Makes a store with two new authorities for a mesh; with a passphrase every key in it is encrypted.
    ///
    /// # Errors
    /// When there is one already, the directory holds something else, or it cannot be written. Nothing is left behind.
    pub fn init(
        directory: &Path,
        mesh: &Mesh,
        now: OffsetDateTime,
        passphrase: Option<&Passphrase>,
    ) -> Result<Store, Problem> {
        Store::may_init(directory)?;
        let target = Files::new(directory);
        let scratch = target.scratch_beside()?;
        let files = Files::new(scratch.path());
        let meta = Meta { schema: files::SCHEMA, mesh: mesh.name.value.clone(), encrypted: passphrase.is_some() };
        for name in AuthorityName::ALL {
            let pair = authority::create(name, &meta.mesh, now, mesh.pki.authority_lifetime.value)?;
            let key = key::to_pem(&pair.key_der, passphrase).map_err(|e| unusable(&files.authority_key(name), &e))?;
            files.write_pair(&files.authority(name), &pair.certificate_pem, &key)?;
        }
        files.write_meta(&meta)?;
        files.move_to(scratch, directory)?;
        let source = Source::none();
        Store::open_with(directory, passphrase.cloned(), &Access { passphrase: &source, say: &|_| {} })
    }

    /// Whether a store can be made there.
    ///
    /// # Errors
    /// When there is one already.
    pub fn may_init(directory: &Path) -> Result<(), Problem> {
        if !Files::new(directory).meta_path().exists() {
            return Ok(());
        }
        Err(rules::EXISTS
            .finding(directory.display().to_string(), "there is a certificate store already")
            .help("to start over on purpose, move it away first; images made from it will not talk to new ones")
            .into())
    }

    /// Opens the store and locks it; waits, and says so, while another process uses it.
    ///
    /// # Errors
    /// When there is none, it is damaged, a key does not match its certificate or is open to others, or the passphrase
    /// is missing or wrong.
    pub fn open(directory: &Path, access: &Access<'_>) -> Result<Store, Problem> {
        Store::open_with(directory, None, access)
    }

    fn open_with(directory: &Path, passphrase: Option<Passphrase>, access: &Access<'_>) -> Result<Store, Problem> {
        let files = Files::new(directory);
        files.meta()?;
        let lock = Lock::take(&files.lock_path(), access.say)?;
        files.recover()?;
        let meta = files.meta()?;
        let passphrase = match passphrase {
            None if meta.encrypted => Some(access.passphrase.existing()?),
            given => given,
        };
        let load = |name| load_authority(&files, name, passphrase.as_ref());
        let (peer, client) = match (load(AuthorityName::Peer), load(AuthorityName::Client)) {
            (Ok(peer), Ok(client)) => (peer, client),
            (Err(Problem::Findings(mut all)), Err(Problem::Findings(more))) => {
                // One passphrase opens both or none.
                all.extend(more.into_iter().filter(|finding| finding.code != rules::PASSPHRASE.code));
                return Err(all.into());
            }
            (Err(problem), _) | (_, Err(problem)) => return Err(problem),
        };
        Ok(Store { files, meta, passphrase, peer, client, issued: Mutex::new(Vec::new()), _lock: lock })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        self.files.directory()
    }

    /// True when its private keys are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.meta.encrypted
    }

    /// What was issued since it was opened, in the order of issue.
    pub fn issued(&self) -> Vec<Issued> {
        self.issued.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// All that goes into one node's image. Missing, changed and due certificates are made, if that is allowed.
    /// May be called for several nodes at once.
    ///
    /// # Errors
    /// All findings of the node: what would have to be issued and may not, pairs that do not match, foreign store.
    pub fn node(&self, mesh: &Mesh, node: &Node, now: OffsetDateTime, issue: Issue) -> Result<NodePki, Problem> {
        self.meta.check_mesh(&self.files, &mesh.name.value)?;
        let requests = request::of_node(mesh, node)?;
        let directory = self.files.node(&node.name.value);
        let leaves = self.leaves(&requests, now, issue, |purpose| directory.join(purpose.as_str()))?;
        files::node_pki(&self.peer.bundle_pem, &self.client.bundle_pem, leaves, &node.name.value)
    }

    /// The client certificate of an operator.
    ///
    /// # Errors
    /// As [`Store::node`].
    pub fn operator(&self, mesh: &Mesh, name: &str, now: OffsetDateTime, issue: Issue) -> Result<Leaf, Problem> {
        self.meta.check_mesh(&self.files, &mesh.name.value)?;
        let request = request::of_operator(mesh, name)?;
        let mut leaves = self.leaves(std::slice::from_ref(&request), now, issue, |_| self.files.operator(name))?;
        leaves.pop().ok_or_else(|| Failure::new(format!("no certificate was made for operator {name}")).into())
    }

    /// Where an operator's pair lies: certificate and key.
    pub fn operator_paths(&self, name: &str) -> (PathBuf, PathBuf) {
        let stem = self.files.operator(name);
        (files::certificate_path(&stem), files::key_path(&stem))
    }

    /// PEM bundle of an authority.
    pub fn bundle(&self, name: AuthorityName) -> &str {
        &self.authority(name).bundle_pem
    }

    /// The authority's certificate that signs.
    pub fn authority_certificate(&self, name: AuthorityName) -> &Certificate {
        &self.authority(name).certificate
    }

    fn authority(&self, name: AuthorityName) -> &Authority {
        match name {
            AuthorityName::Peer => &self.peer,
            AuthorityName::Client => &self.client,
        }
    }

    fn leaves(
        &self,
        requests: &[Request],
        now: OffsetDateTime,
        issue: Issue,
        stem: impl Fn(Use) -> PathBuf,
    ) -> Result<Vec<Leaf>, Problem> {
        let mut findings: Vec<Finding> = Vec::new();
        let mut leaves = Vec::new();
        let mut todo: Vec<(&Request, Reason)> = Vec::new();
        for request in requests {
            match self.existing(request, &stem(request.purpose), now) {
                Ok(Existing::Good(leaf)) => leaves.push(leaf),
                Ok(Existing::Wanting(reason)) => todo.push((request, reason)),
                Err(Problem::Findings(more)) => findings.extend(more),
                Err(failure) => return Err(failure),
            }
        }
        for (request, reason) in &todo {
            match (issue, self.signer(request, now)) {
                (Issue::Refused, _) => findings.push(refused(request, reason)),
                (Issue::Allowed, Err(Problem::Findings(more))) => findings.extend(more),
                (Issue::Allowed, Err(failure)) => return Err(failure),
                (Issue::Allowed, Ok(_)) => {}
            }
        }
        // Nothing is written unless all of it can be.
        if !findings.is_empty() {
            return Err(findings.into());
        }
        for (request, reason) in todo {
            let signer = self.signer(request, now)?;
            let pair = authority::sign(signer, request, now)?;
            leaves.push(self.keep(request, reason, &stem(request.purpose), pair)?);
        }
        Ok(leaves)
    }

    /// Looks at what is there.
    fn existing(&self, request: &Request, stem: &Path, now: OffsetDateTime) -> Result<Existing, Problem> {
        let Some((certificate_pem, certificate)) = self.files.certificate(stem)? else {
            return Ok(Existing::Wanting(Reason::Missing));
        };
        let authority = &self.authority(request.purpose.authority()).certificate;
        if let Some(reason) = request::differs(request, &certificate, authority) {
            return Ok(Existing::Wanting(reason));
        }
        if certificate.at(now) == Dates::NotYet {
            return Err(rules::NOT_YET_VALID
                .finding(
                    request.title(),
                    format!("it is valid from {} on, and it is {}", date(certificate.not_before), date(now)),
                )
                .help("set the clock; if the certificate was made with a wrong clock, remove it and its key and issue again")
                .into());
        }
        if let Some(reason) = request::outlived(request, &certificate, authority, now)? {
            return Ok(Existing::Wanting(reason));
        }
        let der = self.files.key(stem, self.passphrase.as_ref(), &certificate)?;
        let key_pem = key::to_pem(&der, None).map_err(|e| unusable(&files::key_path(stem), &e))?;
        Ok(Existing::Good(leaf(request.purpose, certificate_pem, certificate, Some(key_pem))))
    }

    fn signer(&self, request: &Request, now: OffsetDateTime) -> Result<&Signer, Problem> {
        let authority = self.authority(request.purpose.authority());
        let path = self.files.authority_key(authority.name).display().to_string();
        let dates = match authority.certificate.at(now) {
            Dates::Valid => None,
            Dates::Expired => Some(format!("it ended at {}", date(authority.certificate.not_after))),
            Dates::NotYet => Some(format!("it begins at {}", date(authority.certificate.not_before))),
        };
        if let Some(dates) = dates {
            let message = format!("the {} must be issued and its authority cannot sign: {dates}", request.title());
            return Err(rules::AUTHORITY_DATES.finding(format!("{} authority", authority.name), message).into());
        }
        authority.signer.as_ref().ok_or_else(|| {
            rules::AUTHORITY_KEY
                .finding(&path, format!("the {} must be issued and the authority's key is not there", request.title()))
                .help(format!("put the key of the {} authority back as {path}", authority.name))
                .into()
        })
    }

    fn keep(&self, request: &Request, reason: Reason, stem: &Path, pair: Pair) -> Result<Leaf, Problem> {
        let certificate = Certificate::from_pem(&pair.certificate_pem)
            .map_err(|e| Failure::new(format!("the new {} {e}", request.title())))?;
        let at_rest =
            key::to_pem(&pair.key_der, self.passphrase.as_ref()).map_err(|e| unusable(&files::key_path(stem), &e))?;
        let plain = key::to_pem(&pair.key_der, None).map_err(|e| unusable(&files::key_path(stem), &e))?;
        self.files.write_pair(stem, &pair.certificate_pem, &at_rest)?;
        let issued = Issued {
            title: request.title(),
            reason,
            serial: certificate.serial_hex(),
            not_after: certificate.not_after,
        };
        self.issued.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(issued);
        Ok(leaf(request.purpose, pair.certificate_pem, certificate, Some(plain)))
    }
}

enum Existing {
    Good(Leaf),
    Wanting(Reason),
}

fn load_authority(files: &Files, name: AuthorityName, passphrase: Option<&Passphrase>) -> Result<Authority, Problem> {
    let (bundle_pem, certificate) = files.bundle(name)?;
    let signer = if files.authority_key(name).exists() {
        let der = files.key(&files.authority(name), passphrase, &certificate)?;
        Some(Signer::new(certificate.clone(), &der)?)
    } else {
        None
    };
    Ok(Authority { name, bundle_pem, certificate, signer })
}

fn leaf(purpose: Use, certificate_pem: String, certificate: Certificate, key_pem: Option<Zeroizing<String>>) -> Leaf {
    Leaf { purpose, certificate_pem, public_key: certificate.public_key, certificate_der: certificate.der, key_pem }
}

fn refused(request: &Request, reason: &Reason) -> Finding {
    rules::ISSUE_REFUSED
        .finding(request.title(), format!("it would be issued: {reason}"))
        .help("`--locked` issues nothing: run `fitout pki issue` first")
}

fn unusable(path: &Path, error: &key::KeyError) -> Failure {
    Failure::new(format!("{} {error}", path.display()))
}

#[cfg(test)]
mod tests;
