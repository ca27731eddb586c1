//! The image's own client certificate: what the node will show to the registry.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::finding::Failure;
use crate::tree::TreePath;
use crate::verify::image::Image;

/// Where every node's image has them.
const CERTIFICATE: &str = "etc/mesh/pki/client.crt";
const KEY: &str = "etc/mesh/pki/client.key";
const AUTHORITY: &str = "etc/mesh/pki/client-ca.crt";

/// A client certificate with its key, and the authority that the servers must be of.
#[derive(Debug)]
pub struct Credentials {
    /// PEM bundle of the `client` authority.
    pub authority_pem: Vec<u8>,
    /// PEM chain of the client certificate.
    pub certificate_pem: Vec<u8>,
    /// PEM of its key.
    pub key_pem: Zeroizing<Vec<u8>>,
    /// The authority, parsed.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The chain, parsed.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key, parsed.
    pub key: PrivateKeyDer<'static>,
    /// Life of the leaf, seconds since 1970: not before, not after.
    pub validity: (i64, i64),
}

impl Credentials {
    /// Takes them from an image.
    ///
    /// # Errors
    /// When one is missing, unreadable or no PEM: without them nothing can be asked.
    pub fn of_image(image: &Image) -> Result<Credentials, Failure> {
        let read = |path: &str| {
            let path = TreePath::parse(path).map_err(|e| Failure::new(format!("{path} {e}")))?;
            if image.tree.get(&path).is_none() {
                return Err(Failure::new(format!("{}: the image has no {path}", image.name))
                    .help("build the image again; `fitout verify` says what else is missing"));
            }
            image.tree.content(&path).map_err(|f| Failure::new(format!("{}: {f}", image.name)))
        };
        Credentials::from_pem(&image.name, read(AUTHORITY)?, read(CERTIFICATE)?, Zeroizing::new(read(KEY)?))
    }

    /// Parses PEM texts; `whose` is for messages.
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
        let authorities = certificates(&authority_pem).map_err(|e| wrong(AUTHORITY, e))?;
        let chain = certificates(&certificate_pem).map_err(|e| wrong(CERTIFICATE, e))?;
        let key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|e| wrong(KEY, e.to_string()))?;
        let validity = validity(&chain[0]).map_err(|e| wrong(CERTIFICATE, e))?;
        Ok(Credentials { authority_pem, certificate_pem, key_pem, authorities, chain, key, validity })
    }
}

/// All certificates of a PEM bundle; at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    if all.is_empty() { Err("no certificate in it".to_owned()) } else { Ok(all) }
}

fn validity(der: &CertificateDer<'_>) -> Result<(i64, i64), String> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).map_err(|e| e.to_string())?;
    let validity = certificate.validity();
    Ok((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// Subject and issuer of a certificate as text, when it parses.
pub(super) fn names(der: &CertificateDer<'_>) -> Option<(String, String)> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    Some((certificate.subject().to_string(), certificate.issuer().to_string()))
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
            let image = Image { name: "lis1.tar.gz".into(), tree: tree.clone(), manifest: None, private_keys: vec![] };
            Credentials::of_image(&image).unwrap_err().message
        };
        assert_eq!(says(&tree), "lis1.tar.gz: the image has no /etc/mesh/pki/client-ca.crt");
        for path in [AUTHORITY, CERTIFICATE, KEY] {
            tree.insert(TreePath::parse(path).unwrap(), Entry::file(*b"no pem", 0o600));
        }
        assert_eq!(says(&tree), "lis1.tar.gz: /etc/mesh/pki/client-ca.crt cannot be used: no certificate in it");
    }

    #[test]
    fn dates_are_utc() {
        assert_eq!(date(1_796_035_980), "2026-11-30 10:53:00 UTC");
    }
}
