//! What stands in a certificate, and what the strictest reader says against it.

use std::net::IpAddr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::OffsetDateTime;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::names;
use super::profiles::{Extended, bits};
use crate::tree::Digest;

/// Why bytes are no certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// No PEM section of that kind.
    #[error("holds no PEM certificate")]
    Missing,
    /// More than the one that is wanted here.
    #[error("holds {0} certificates where one is wanted")]
    Many(usize),
    /// PEM or DER is broken.
    #[error("holds a certificate that cannot be read: {0}")]
    Unreadable(String),
}

/// One certificate, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The whole, DER.
    pub der: Vec<u8>,
    /// X.509 version, 1 to 3.
    pub version: u32,
    /// Subject in words.
    pub subject: String,
    /// Issuer in words.
    pub issuer: String,
    /// Subject, DER.
    pub subject_der: Vec<u8>,
    /// Issuer, DER.
    pub issuer_der: Vec<u8>,
    /// The first common name of the subject: etcd's user.
    pub common_name: Option<String>,
    /// DNS names as they stand there.
    pub dns: Vec<String>,
    /// IP names.
    pub addresses: Vec<IpAddr>,
    /// Valid from this second on.
    pub not_before: OffsetDateTime,
    /// Valid up to and including this second.
    pub not_after: OffsetDateTime,
    /// Serial number, the bytes of the DER INTEGER.
    pub serial: Vec<u8>,
    /// Key usage bits (`profiles::bits`); `None` without the extension.
    pub key_usage: Option<u16>,
    /// Extended key usages; `None` without the extension.
    pub extended: Option<Vec<Extended>>,
    /// True when `basicConstraints` says so.
    pub is_ca: bool,
    /// `pathLenConstraint`.
    pub path_length: Option<u32>,
    /// Subject key identifier.
    pub subject_key: Option<Vec<u8>>,
    /// Authority key identifier.
    pub authority_key: Option<Vec<u8>>,
    /// SubjectPublicKeyInfo, DER.
    pub spki: Vec<u8>,
    /// SHA-256 of the SubjectPublicKeyInfo.
    pub public_key: Digest,
    /// The key in words: `ECDSA P-256`.
    pub key_kind: String,
    /// Signature algorithm in words: `ecdsa-with-SHA256`, or dotted numbers.
    pub signature_algorithm: String,
    /// What the strictest reader refuses or what makes the certificate ambiguous, one sentence each.
    pub defects: Vec<String>,
    tbs: Vec<u8>,
    signature: Vec<u8>,
    key_bits: Vec<u8>,
}

impl Certificate {
    /// Reads DER.
    ///
    /// # Errors
    /// When it is no X.509 certificate, or bytes follow it.
    pub fn from_der(der: &[u8]) -> Result<Certificate, InspectError> {
        let (rest, x509) =
            X509Certificate::from_der(der).map_err(|error| InspectError::Unreadable(format!("{error}")))?;
        if !rest.is_empty() {
            return Err(InspectError::Unreadable(format!("{} bytes follow the certificate", rest.len())));
        }
        Ok(take_apart(der, &x509))
    }

    /// Reads a PEM text that holds exactly one certificate.
    ///
    /// # Errors
    /// When there is none, more than one, or it cannot be read.
    pub fn from_pem(pem: impl AsRef<[u8]>) -> Result<Certificate, InspectError> {
        let mut all = Certificate::bundle(pem)?;
        match all.len() {
            1 => Ok(all.remove(0)),
            many => Err(InspectError::Many(many)),
        }
    }

    /// Reads all certificates of a PEM text; at least one.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn bundle(pem: impl AsRef<[u8]>) -> Result<Vec<Certificate>, InspectError> {
        let mut all = Vec::new();
        for der in CertificateDer::pem_slice_iter(pem.as_ref()) {
            let der = der.map_err(|error| InspectError::Unreadable(error.to_string()))?;
            all.push(Certificate::from_der(&der)?);
        }
        if all.is_empty() { Err(InspectError::Missing) } else { Ok(all) }
    }

    /// For rustls and webpki.
    pub fn to_rustls(&self) -> CertificateDer<'static> {
        CertificateDer::from(self.der.clone())
    }

    /// Serial number in hex, without the sign byte.
    pub fn serial_hex(&self) -> String {
        let digits = match self.serial.as_slice() {
            [0, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        digits.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// True when `authority`'s key made the signature, and the names and key identifiers say so too.
    pub fn is_signed_by(&self, authority: &Certificate) -> bool {
        let identifiers = match (&self.authority_key, &authority.subject_key) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => true,
        };
        identifiers
            && self.issuer_der == authority.subject_der
            && webpki::ALL_VERIFICATION_ALGS
                .iter()
                .any(|a| a.verify_signature(&authority.key_bits, &self.tbs, &self.signature).is_ok())
    }

    /// How it stands at a time.
    pub fn at(&self, now: OffsetDateTime) -> Dates {
        if now < self.not_before {
            Dates::NotYet
        } else if now > self.not_after {
            Dates::Expired
        } else {
            Dates::Valid
        }
    }

    /// True when a host, as it stands in a URL, is among the names: addresses only by IP names, others only by DNS
    /// names.
    pub fn covers(&self, host: &str) -> bool {
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => self.addresses.contains(&address),
            Err(_) => self.dns.iter().any(|name| names::covers(name, host)),
        }
    }

    /// All names in words, for messages.
    pub fn names(&self) -> String {
        let all: Vec<String> = self.dns.iter().cloned().chain(self.addresses.iter().map(ToString::to_string)).collect();
        if all.is_empty() { "no name".to_owned() } else { all.join(", ") }
    }
}

/// A certificate's validity at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dates {
    /// Before `not_before`.
    NotYet,
    /// Within.
    Valid,
    /// After `not_after`.
    Expired,
}

/// `2031-11-02T10:00:00Z`.
pub fn date(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    format!("{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", u8::from(month))
}

fn take_apart(der: &[u8], x509: &X509Certificate<'_>) -> Certificate {
    let tbs = &x509.tbs_certificate;
    let mut certificate = Certificate {
        der: der.to_vec(),
        version: tbs.version.0 + 1,
        subject: tbs.subject.to_string(),
        issuer: tbs.issuer.to_string(),
        subject_der: tbs.subject.as_raw().to_vec(),
        issuer_der: tbs.issuer.as_raw().to_vec(),
        common_name: tbs.subject.iter_common_name().next().and_then(|cn| cn.as_str().ok()).map(str::to_owned),
        dns: Vec::new(),
        addresses: Vec::new(),
        not_before: tbs.validity.not_before.to_datetime(),
        not_after: tbs.validity.not_after.to_datetime(),
        serial: tbs.raw_serial().to_vec(),
        key_usage: None,
        extended: None,
        is_ca: false,
        path_length: None,
        subject_key: None,
        authority_key: None,
        spki: tbs.subject_pki.raw.to_vec(),
        public_key: Digest::of(tbs.subject_pki.raw),
        key_kind: key_kind(tbs),
        signature_algorithm: algorithm(&x509.signature_algorithm.algorithm.to_id_string()),
        defects: Vec::new(),
        tbs: tbs.as_ref().to_vec(),
        signature: x509.signature_value.data.to_vec(),
        key_bits: tbs.subject_pki.subject_public_key.data.to_vec(),
    };
    basics(&mut certificate, x509);
    let mut seen = Vec::new();
    for extension in tbs.extensions() {
        let oid = extension.oid.to_id_string();
        if seen.contains(&oid) {
            certificate.defects.push(format!("extension {oid} stands there twice"));
        }
        seen.push(oid);
        read_extension(&mut certificate, extension);
    }
    if certificate.is_ca {
        if certificate.key_usage.is_some_and(|usage| usage & bits::CERT_SIGN == 0) {
            certificate.defects.push("an authority without the usage cert sign".into());
        }
    } else if certificate.key_usage.is_some_and(|usage| usage & bits::CERT_SIGN != 0) {
        certificate.defects.push("not an authority, but with the usage cert sign".into());
    }
    certificate
}

/// Version, serial, key and signature.
fn basics(certificate: &mut Certificate, x509: &X509Certificate<'_>) {
    let defects = &mut certificate.defects;
    if certificate.version != 3 {
        defects.push(format!("X.509 version {}; only version 3 is accepted", certificate.version));
    }
    match certificate.serial.as_slice() {
        [] | [0] => defects.push("serial number zero".into()),
        [first, ..] if first & 0x80 != 0 => defects.push("negative serial number; Go refuses it since 1.23".into()),
        all if all.len() > 20 => defects.push("serial number of more than 20 bytes (RFC 5280, 4.1.2.2)".into()),
        _ => {}
    }
    if certificate.not_after < certificate.not_before {
        defects.push("it ends before it begins".into());
    }
    if x509.signature_algorithm != x509.tbs_certificate.signature {
        defects.push("signed with another algorithm than the signed part says".into());
    }
    let weak = ["sha1", "md5", "md2"];
    if weak.iter().any(|word| certificate.signature_algorithm.to_ascii_lowercase().contains(word)) {
        defects.push(format!("signed with {}; Go refuses it since 1.18", certificate.signature_algorithm));
    }
    let rsa_bits = certificate.key_kind.strip_prefix("RSA ").and_then(|bits| bits.parse::<usize>().ok());
    if let Some(bits) = rsa_bits.filter(|bits| *bits < 2048) {
        defects.push(format!("RSA key of {bits} bits; at least 2048 are wanted"));
    }
}

fn read_extension(certificate: &mut Certificate, extension: &x509_parser::extensions::X509Extension<'_>) {
    match extension.parsed_extension() {
        ParsedExtension::BasicConstraints(basic) => {
            certificate.is_ca = basic.ca;
            certificate.path_length = basic.path_len_constraint;
        }
        ParsedExtension::KeyUsage(usage) => certificate.key_usage = Some(usage.flags),
        ParsedExtension::ExtendedKeyUsage(usage) => {
            let mut all = Vec::new();
            if usage.server_auth {
                all.push(Extended::ServerAuth);
            }
            if usage.client_auth {
                all.push(Extended::ClientAuth);
            }
            let named = [
                (usage.any, "2.5.29.37.0"),
                (usage.code_signing, "1.3.6.1.5.5.7.3.3"),
                (usage.email_protection, "1.3.6.1.5.5.7.3.4"),
                (usage.time_stamping, "1.3.6.1.5.5.7.3.8"),
                (usage.ocsp_signing, "1.3.6.1.5.5.7.3.9"),
            ];
            all.extend(named.iter().filter(|(set, _)| *set).map(|(_, oid)| Extended::Other((*oid).to_owned())));
            all.extend(usage.other.iter().map(|oid| Extended::Other(oid.to_id_string())));
            certificate.extended = Some(all);
        }
        ParsedExtension::SubjectKeyIdentifier(id) => certificate.subject_key = Some(id.0.to_vec()),
        ParsedExtension::AuthorityKeyIdentifier(id) => {
            certificate.authority_key = id.key_identifier.as_ref().map(|id| id.0.to_vec());
        }
        ParsedExtension::SubjectAlternativeName(names) => {
            if names.general_names.is_empty() {
                certificate.defects.push("an empty list of alternative names".into());
            }
            names.general_names.iter().for_each(|name| read_name(certificate, name));
        }
        ParsedExtension::NameConstraints(_) => {}
        ParsedExtension::UnsupportedExtension { .. } if extension.critical => {
            certificate.defects.push(format!("unknown critical extension {}", extension.oid.to_id_string()));
        }
        ParsedExtension::ParseError { .. } => {
            certificate.defects.push(format!("extension {} cannot be read", extension.oid.to_id_string()));
        }
        _ => {}
    }
}

fn read_name(certificate: &mut Certificate, name: &GeneralName<'_>) {
    match name {
        GeneralName::DNSName(name) => {
            certificate.dns.push((*name).to_owned());
            if let Err(error) = names::check_presented(name.as_bytes()) {
                certificate.defects.push(format!("DNS name {name:?} {error}"));
            }
        }
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            match v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)) {
                Ok(address) => certificate.addresses.push(address),
                Err(_) => certificate.defects.push(format!("IP name of {} bytes; 4 or 16 are wanted", bytes.len())),
            }
        }
        GeneralName::Invalid(_, bytes) => {
            certificate.defects.push(format!("malformed alternative name {:?}", String::from_utf8_lossy(bytes)));
        }
        _ => {}
    }
}

fn key_kind(tbs: &x509_parser::certificate::TbsCertificate<'_>) -> String {
    use x509_parser::public_key::PublicKey;
    let spki = &tbs.subject_pki;
    let curve = spki.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok()).map(|oid| oid.to_id_string());
    match (spki.algorithm.algorithm.to_id_string().as_str(), curve.as_deref(), spki.parsed()) {
        ("1.2.840.10045.2.1", Some("1.2.840.10045.3.1.7"), _) => "ECDSA P-256".to_owned(),
        ("1.2.840.10045.2.1", Some("1.3.132.0.34"), _) => "ECDSA P-384".to_owned(),
        ("1.2.840.10045.2.1", curve, _) => format!("ECDSA {}", curve.unwrap_or("without a curve")),
        ("1.3.101.112", ..) => "Ed25519".to_owned(),
        (_, _, Ok(PublicKey::RSA(rsa))) => format!("RSA {}", rsa.key_size()),
        (oid, ..) => oid.to_owned(),
    }
}

fn algorithm(oid: &str) -> String {
    match oid {
        "1.2.840.10045.4.3.2" => "ecdsa-with-SHA256",
        "1.2.840.10045.4.3.3" => "ecdsa-with-SHA384",
        "1.2.840.10045.4.1" => "ecdsa-with-SHA1",
        "1.3.101.112" => "Ed25519",
        "1.2.840.113549.1.1.4" => "md5WithRSAEncryption",
        "1.2.840.113549.1.1.5" => "sha1WithRSAEncryption",
        "1.2.840.113549.1.1.11" => "sha256WithRSAEncryption",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    const ECDSA: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

    /// A self-signed certificate by the real openssl, with one extension block.
    fn openssl(arguments: &[&str], extensions: &str) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let text = format!("[req]\ndistinguished_name = dn\nx509_extensions = ext\n[dn]\n[ext]\n{extensions}\n");
        std::fs::write(path("config"), text).unwrap();
        let output = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-subj", "/CN=node:lis1", "-days", "10"])
            .arg("-config")
            .arg(path("config"))
            .arg("-keyout")
            .arg(path("key"))
            .args(if arguments.contains(&"-newkey") { &[][..] } else { &ECDSA[..] })
            .args(arguments)
            .output()
            .expect("openssl (Debian package openssl) runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    #[test]
    fn what_the_strictest_reader_refuses() {
        let good = "subjectAltName = DNS:lis1,IP:10.77.0.11,IP:fd00::1";
        let rsa = ["-newkey", "rsa:1024", "-sha1"];
        let cases: &[(&[&str], &str, &[&str])] = &[
            (&[], good, &[]),
            (
                &rsa,
                good,
                &[
                    "signed with sha1WithRSAEncryption; Go refuses it since 1.18",
                    "RSA key of 1024 bits; at least 2048 are wanted",
                ],
            ),
            (&["-set_serial", "-5"], good, &["negative serial number; Go refuses it since 1.23"]),
            (&["-set_serial", "0"], good, &["serial number zero"]),
            (
                &["-set_serial", "0x7fffffffffffffffffffffffffffffffffffffffff"],
                good,
                &["serial number of more than 20 bytes (RFC 5280, 4.1.2.2)"],
            ),
            (
                &[],
                "subjectAltName = DNS:a..b,DNS:10.77.0.11",
                &[
                    "DNS name \"a..b\" has an empty label (a leading, trailing or doubled dot)",
                    "DNS name \"10.77.0.11\" is an IP address, which is never matched against DNS names",
                ],
            ),
            (&[], "1.2.3.4 = critical,ASN1:NULL", &["unknown critical extension 1.2.3.4"]),
            (
                &[],
                "basicConstraints = CA:FALSE\nkeyUsage = keyCertSign",
                &["not an authority, but with the usage cert sign"],
            ),
            (
                &[],
                "basicConstraints = CA:TRUE\nkeyUsage = digitalSignature",
                &["an authority without the usage cert sign"],
            ),
        ];
        for (arguments, extensions, want) in cases {
            let certificate = Certificate::from_pem(openssl(arguments, extensions)).unwrap();
            assert_eq!(certificate.defects, *want, "{arguments:?} {extensions}");
        }
    }

    #[test]
    fn fields_of_a_foreign_certificate() {
        let extensions = "subjectAltName = DNS:lis1,DNS:*.mesh,IP:10.77.0.11,IP:fd00::1\nkeyUsage = digitalSignature\n\
                          extendedKeyUsage = clientAuth,serverAuth,1.2.3";
        let c = Certificate::from_pem(openssl(&["-set_serial", "0x80ff"], extensions)).unwrap();
        assert_eq!((c.common_name.as_deref(), c.serial_hex().as_str()), (Some("node:lis1"), "80ff"));
        let other = Extended::Other("1.2.3".into());
        assert_eq!(c.extended, Some(vec![Extended::ServerAuth, Extended::ClientAuth, other]));
        assert_eq!((c.key_usage, c.is_ca), (Some(bits::DIGITAL_SIGNATURE), false));
        assert_eq!(c.key_kind, "ECDSA P-256");
        assert!(c.is_signed_by(&c));
        let hosts =
            [("lis1", true), ("por1.mesh", true), ("10.77.0.11", true), ("[fd00::1]", true), ("10.77.0.12", false)];
        for (host, want) in hosts {
            assert_eq!(c.covers(host), want, "{host}");
        }
    }

    #[test]
    fn what_is_no_certificate() {
        let pem = openssl(&[], "subjectAltName = DNS:lis1");
        let mut trailing = Certificate::from_pem(&pem).unwrap().der;
        trailing.push(0);
        assert_eq!(
            Certificate::from_der(&trailing),
            Err(InspectError::Unreadable("1 bytes follow the certificate".into()))
        );
        assert_eq!(Certificate::from_pem("nothing"), Err(InspectError::Missing));
        assert_eq!(Certificate::from_pem([pem.as_slice(), &pem].concat()), Err(InspectError::Many(2)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        /// No damage makes reading panic.
        #[test]
        fn damaged_bytes_are_read_or_refused(at in 0usize..400, byte: u8, cut in 0usize..400) {
            static GOOD: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            let mut der = GOOD
                .get_or_init(|| Certificate::from_pem(openssl(&[], "subjectAltName = DNS:lis1,IP:10.77.0.11")).unwrap().der)
                .clone();
            let at = at % der.len();
            der[at] = byte;
            let _ = Certificate::from_der(&der);
            der.truncate(cut);
            let _ = Certificate::from_der(&der);
        }
    }
}
