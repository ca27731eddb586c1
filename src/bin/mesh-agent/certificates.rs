//! The node's certificates: what the registry is told of them, and how much life they have left.

use std::path::Path;

use fitout::layout::values::Certificate;
use fitout::layout::{CertificateUse, Time};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

/// A certificate that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What it is for.
    pub purpose: CertificateUse,
    /// When it begins.
    pub not_before: Time,
    /// What the registry is told.
    pub certificate: Certificate,
}

/// Reads the first certificate of a PEM file.
///
/// # Errors
/// In words, with the file.
pub fn read(purpose: CertificateUse, path: &Path) -> Result<Seen, String> {
    let pem = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    parse(purpose, &pem).map_err(|why| format!("{}: {why}", path.display()))
}

fn parse(purpose: CertificateUse, pem: &[u8]) -> Result<Seen, String> {
    let der = CertificateDer::from_pem_slice(pem).map_err(|e| format!("it holds no certificate: {e}"))?;
    let (_, x509) =
        x509_parser::parse_x509_certificate(&der).map_err(|e| format!("its certificate cannot be read: {e}"))?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    // A zero in front is DER's sign, not a part of the number (X.690, section 8.3.3).
    let serial = match x509.tbs_certificate.raw_serial() {
        [0, rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    let time = |at: &x509_parser::time::ASN1Time| Time::of(at.to_datetime());
    let certificate = Certificate {
        serial: hex(serial).parse().map_err(|e| format!("its {e}"))?,
        not_after: time(&x509.validity().not_after),
        fingerprint_sha256: hex(&Sha256::digest(&der)).parse().map_err(|e| format!("its {e}"))?,
        subject: Some(x509.subject().to_string()).filter(|subject| !subject.is_empty()),
        extra: Default::default(),
    };
    Ok(Seen { purpose, not_before: time(&x509.validity().not_before), certificate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_read_and_what_is_none_is_said() {
        let der = include_bytes!("../../overlay/testdata/leaf.der");
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["lis1.harbour.mesh".to_owned()]).unwrap();
        params.serial_number = Some(rcgen::SerialNumber::from_slice(&[0x9f, 1, 2]));
        params.not_after = rcgen::date_time_ymd(2031, 5, 6);
        let pem = params.self_signed(&key).unwrap().pem();
        let seen = parse(CertificateUse::Client, pem.as_bytes()).unwrap();
        assert_eq!(seen.certificate.serial.as_str(), "9f0102");
        assert_eq!(seen.certificate.not_after.to_string(), "2031-05-06T00:00:00Z");
        for (bytes, says) in [(&b"words"[..], "it holds no certificate"), (der, "it holds no certificate")] {
            let why = parse(CertificateUse::Client, bytes).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
        let none = read(CertificateUse::Peer, Path::new("/nonexistent/peer.crt")).unwrap_err();
        assert!(none.starts_with("cannot read /nonexistent/peer.crt"), "{none}");
    }
}
