//! Making authorities and signing leaves.
//!
//! An authority is ECDSA P-256, self-signed, critical `CA:TRUE, pathlen:0`, usages keyCertSign and cRLSign. It carries no
//! name constraints: they would have to permit the bare node name, the domain, the mesh's network and loopback, which
//! an older Go and webpki read alike but which ties the authority, the part that lives longest, to the mesh's network
//! and domain; a mesh that moves would need new authorities. That an authority signs only what is declared is this
//! tool's doing, and `verify` checks every name.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::inspect::Certificate;
use super::names::San;
use super::profiles::{AuthorityName, Extended};
use super::request::Request;
use crate::finding::Failure;

/// Certificates are back-dated by this much, as cfssl and kubeadm do: clocks differ.
pub const BACK_DATE: Duration = Duration::from_secs(5 * 60);

/// Two neighbours in the order of voters never expire closer together than this, where lifetimes leave the room.
pub const STAGGER: Duration = Duration::from_secs(7 * 24 * 3600);

/// A new certificate and its key.
#[derive(Debug)]
pub struct Pair {
    /// PEM.
    pub certificate_pem: String,
    /// PKCS#8, DER.
    pub key_der: Zeroizing<Vec<u8>>,
}

/// An authority that can sign.
#[derive(Debug)]
pub struct Signer {
    /// Its certificate.
    pub certificate: Certificate,
    key: KeyPair,
}

impl Signer {
    /// Pairs a certificate with its key (PKCS#8, DER).
    ///
    /// # Errors
    /// When the key cannot be used.
    pub fn new(certificate: Certificate, key_der: &[u8]) -> Result<Signer, Failure> {
        let key = KeyPair::try_from(key_der).map_err(|e| failure("use an authority's key", &e))?;
        Ok(Signer { certificate, key })
    }
}

/// Makes a new authority.
///
/// # Errors
/// When no random numbers are to be had, or a date does not exist.
pub fn create(name: AuthorityName, mesh: &str, now: OffsetDateTime, lifetime: Duration) -> Result<Pair, Failure> {
    let key = KeyPair::generate().map_err(|e| failure("make a key", &e))?;
    let mut params = common(&format!("{mesh} {name} authority"))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = (seconds(now - BACK_DATE), seconds(after(now, lifetime)?));
    let certificate = params.self_signed(&key).map_err(|e| failure("sign an authority", &e))?;
    Ok(Pair { certificate_pem: certificate.pem(), key_der: Zeroizing::new(key.serialize_der()) })
}

/// Makes a key and signs the certificate that a request asks for.
///
/// # Errors
/// As [`create`].
pub fn sign(signer: &Signer, request: &Request, now: OffsetDateTime) -> Result<Pair, Failure> {
    let key = KeyPair::generate().map_err(|e| failure("make a key", &e))?;
    let mut params = common(&request.common_name)?;
    for san in &request.sans {
        params.subject_alt_names.push(match san {
            San::Dns(name) => {
                SanType::DnsName(name.as_str().try_into().map_err(|e: rcgen::Error| failure("use a DNS name", &e))?)
            }
            San::Ip(address) => SanType::IpAddress(*address),
        });
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    for usage in request.purpose.extended() {
        match usage {
            Extended::ServerAuth => params.insert_extended_key_usage(ExtendedKeyUsagePurpose::ServerAuth),
            Extended::ClientAuth => params.insert_extended_key_usage(ExtendedKeyUsagePurpose::ClientAuth),
            Extended::Other(_) => {}
        }
    }
    params.use_authority_key_identifier_extension = true;
    // rcgen's ExplicitNoCa writes `cA FALSE` out, which DER forbids for a default value; so the extensions are ours.
    let mut basic = CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 0x00]);
    basic.set_criticality(true);
    params.custom_extensions.push(basic);
    let identifier = params.key_identifier(&key);
    let mut octets = vec![0x04, identifier.len() as u8];
    octets.extend_from_slice(&identifier);
    params.custom_extensions.push(CustomExtension::from_oid_content(&[2, 5, 29, 14], octets));
    let authority = &signer.certificate;
    params.not_before = seconds((now - BACK_DATE).max(authority.not_before));
    params.not_after = end(request, now, authority.not_after)?;
    let issuer =
        Issuer::from_ca_cert_der(&authority.to_rustls(), &signer.key).map_err(|e| failure("use an authority", &e))?;
    let certificate = params.signed_by(&key, &issuer).map_err(|e| failure("sign a certificate", &e))?;
    Ok(Pair { certificate_pem: certificate.pem(), key_der: Zeroizing::new(key.serialize_der()) })
}

/// When a leaf that is signed now would end: after its lifetime, never after its authority, and for voters earlier by
/// its place in the order of voters, so that no two voters expire together: by [`STAGGER`] each, or less where that
/// would take more than a quarter of what lies beyond the renewal window.
///
/// # Errors
/// When the date does not exist.
pub fn end(request: &Request, now: OffsetDateTime, authority_end: OffsetDateTime) -> Result<OffsetDateTime, Failure> {
    let end = after(now, request.lifetime)?.min(authority_end);
    let Some(order) = request.order else {
        return Ok(seconds(end));
    };
    let left = Duration::try_from(end - now).unwrap_or_default();
    let room = left.saturating_sub(request.renew_before) / 4;
    let step = STAGGER.min(room / order.of.max(1));
    Ok(seconds(end - step * order.place))
}

fn common(common_name: &str) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    params.serial_number = Some(serial()?);
    Ok(params)
}

/// A random positive serial number of 19 bytes. (RFC 5280 allows 20; CA/B asks for 64 random bits.)
fn serial() -> Result<SerialNumber, Failure> {
    let mut bytes = [0_u8; 19];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Failure::new("cannot get random numbers from the system"))?;
    // Not zero in front (the length stays), and no sign bit.
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// Certificates carry whole seconds.
fn seconds(at: OffsetDateTime) -> OffsetDateTime {
    at.replace_nanosecond(0).unwrap_or(at)
}

fn after(now: OffsetDateTime, lifetime: Duration) -> Result<OffsetDateTime, Failure> {
    time::Duration::try_from(lifetime)
        .ok()
        .and_then(|lifetime| now.checked_add(lifetime))
        .ok_or_else(|| Failure::new("a certificate would end after the year 9999"))
}

fn failure(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot {what}: {error}"))
}
