//! The client certificate that is shown to the registry: the image's own, or an operator's.

pub mod given;

use std::path::PathBuf;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::finding::Failure;
use crate::pki::NodePki;
use crate::pki::inspect::Certificate;
use crate::tree::TreePath;
use crate::verify::image::Image;

/// Where every node's image has them.
pub const CERTIFICATE: &str = "etc/mesh/pki/client.crt";
/// The key of [`CERTIFICATE`].
pub const KEY: &str = "etc/mesh/pki/client.key";
/// The authority that servers must be of.
pub const AUTHORITY: &str = "etc/mesh/pki/client-ca.crt";

/// A client certificate with its key, and the authority that the servers must be of.
#[derive(Debug)]
pub struct Credentials {
    /// PEM bundle of the `client` authority.
    pub authority_pem: Vec<u8>,
    /// PEM chain of the client certificate.
    pub certificate_pem: Vec<u8>,
    /// PEM of its key, not encrypted.
    pub key_pem: Zeroizing<Vec<u8>>,
    /// The authority, parsed.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The chain, parsed.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key, parsed.
    pub key: PrivateKeyDer<'static>,
    /// What stands in the leaf, and whose it is: for the rules.
    pub shown: Shown,
}

/// The certificate that is shown, in words and dates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// `the image's client certificate`, `the operator's certificate pki/operators/anna.crt`.
    pub whose: String,
    /// True for an operator's.
    pub given: bool,
    /// Its common name: etcd's user.
    pub user: Option<String>,
    /// Issuer in words.
    pub issuer: String,
    /// Life of the leaf, seconds since 1970: not before, not after.
    pub validity: (i64, i64),
    /// Signed by the image's `client` authority.
    pub of_the_mesh: bool,
    /// It is for client authentication.
    pub for_clients: bool,
}

/// Files of an operator's credentials on this host, for the commands that the findings print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Certificate.
    pub certificate: PathBuf,
    /// Key.
    pub key: PathBuf,
    /// Whether the key is encrypted: etcdctl cannot read it then.
    pub encrypted: bool,
    /// PEM of the mesh's `client` authority beside them.
    pub authority: Option<PathBuf>,
}

impl Credentials {
    /// Takes them from an image.
    ///
    /// # Errors
    /// When one is missing, unreadable or no PEM: without them nothing can be asked.
    pub fn of_image(image: &Image) -> Result<Credentials, Failure> {
        let (authority, certificate) = (of_image(image, AUTHORITY)?, of_image(image, CERTIFICATE)?);
        let key = Zeroizing::new(of_image(image, KEY)?);
        Credentials::from_pem(&image.name, authority, certificate, key)
    }

    /// A node's own, from the certificate store.
    ///
    /// # Errors
    /// When its key was not read, or something does not parse.
    pub fn of_node(pki: &NodePki) -> Result<Credentials, Failure> {
        let Some(key) = &pki.client.key_pem else {
            return Err(Failure::new("the node's client key was not read"));
        };
        let pem = |text: &str| text.as_bytes().to_vec();
        let (authority, certificate) = (pem(&pki.client_authority_pem), pem(&pki.client.certificate_pem));
        Credentials::from_pem("the certificate store", authority, certificate, Zeroizing::new(pem(key)))
    }

    /// Parses the PEM texts of an image; `whose` is its name, for messages.
    ///
    /// # Errors
    /// When one of them does not parse.
    pub fn from_pem(
        whose: &str,
        authority_pem: Vec<u8>,
        certificate_pem: Vec<u8>,
        key_pem: Zeroizing<Vec<u8>>,
    ) -> Result<Credentials, Failure> {
        let wrong = |path: &str, reason: String| {
            Failure::new(format!("{whose}: /{path} cannot be used: {reason}")).help("`fitout verify` looks closer")
        };
        let authorities = Certificate::bundle(&authority_pem).map_err(|e| wrong(AUTHORITY, format!("it {e}")))?;
        let chain = Certificate::bundle(&certificate_pem).map_err(|e| wrong(CERTIFICATE, format!("it {e}")))?;
        let key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|e| wrong(KEY, e.to_string()))?;
        let shown = Shown::of(&chain, &authorities, "the image's client certificate".to_owned(), false);
        Ok(Credentials {
            authority_pem,
            certificate_pem,
            key_pem,
            authorities: authorities.iter().map(Certificate::to_rustls).collect(),
            chain: chain.iter().map(Certificate::to_rustls).collect(),
            key,
            shown,
        })
    }
}

impl Shown {
    fn of(chain: &[Certificate], authorities: &[Certificate], whose: String, given: bool) -> Shown {
        let leaf = &chain[0];
        let client = |uses: &Vec<_>| uses.contains(&crate::pki::profiles::Extended::ClientAuth);
        Shown {
            whose,
            given,
            user: leaf.common_name.clone(),
            issuer: leaf.issuer.clone(),
            validity: (leaf.not_before.unix_timestamp(), leaf.not_after.unix_timestamp()),
            of_the_mesh: chain.iter().any(|one| authorities.iter().any(|a| one.is_signed_by(a))),
            for_clients: leaf.extended.as_ref().is_none_or(client),
        }
    }
}

/// One of an image's files.
fn of_image(image: &Image, path: &str) -> Result<Vec<u8>, Failure> {
    let path = TreePath::parse(path).map_err(|e| Failure::new(format!("{path} {e}")))?;
    if image.tree.get(&path).is_none() {
        return Err(Failure::new(format!("{}: the image has no {path}", image.name))
            .help("build the image again; `fitout verify` says what else is missing"));
    }
    image.tree.content(&path).map_err(|f| Failure::new(format!("{}: {f}", image.name)))
}

/// Subject and issuer of a certificate as text, when it parses.
pub(super) fn names(der: &CertificateDer<'_>) -> Option<(String, String)> {
    let certificate = Certificate::from_der(der).ok()?;
    Some((certificate.subject, certificate.issuer))
}

/// A point in time as `2026-11-30 10:53:00 UTC`.
pub(super) fn date(seconds: i64) -> String {
    match time::OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(t) => format!("{} {:02}:{:02}:{:02} UTC", t.date(), t.hour(), t.minute(), t.second()),
        Err(_) => format!("{seconds} s after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Entry, Tree};

    #[test]
    fn what_cannot_be_used_is_named() {
        let mut tree = Tree::default();
        let says = |tree: &Tree| {
            let image = Image {
                name: "lis1.tar.gz".into(),
                tree: tree.clone(),
                manifest: None,
                private_keys: vec![],
                etcd_builds: vec![],
            };
            Credentials::of_image(&image).unwrap_err().message
        };
        assert_eq!(says(&tree), "lis1.tar.gz: the image has no /etc/mesh/pki/client-ca.crt");
        for path in [AUTHORITY, CERTIFICATE, KEY] {
            tree.insert(TreePath::parse(path).unwrap(), Entry::file(*b"no pem", 0o600));
        }
        assert_eq!(says(&tree), "lis1.tar.gz: /etc/mesh/pki/client-ca.crt cannot be used: it holds no PEM certificate");
    }

    #[test]
    fn dates_are_readable() {
        assert_eq!(date(1_796_035_980), "2026-11-30 10:53:00 UTC");
    }
}
