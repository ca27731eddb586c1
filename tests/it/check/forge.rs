//! Certificates that `fitout` would never issue, made by rcgen alone.

use std::path::Path;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use time::{Duration, OffsetDateTime};

/// What a leaf is to be.
pub struct Leaf<'a> {
    pub name: &'a str,
    pub address: Option<&'a str>,
    /// Days from now.
    pub valid: (i64, i64),
    pub server: bool,
}

/// Signs a leaf by an authority of a store (`<stem>.crt`, `<stem>.key`) and writes it as another pair.
pub fn leaf(authority: &Path, wanted: &Leaf<'_>, to: &Path) {
    let read = |ending: &str| std::fs::read_to_string(authority.with_extension(ending)).expect("the authority");
    let key = KeyPair::from_pem(&read("key")).expect("its key");
    let issuer = Issuer::from_ca_cert_pem(&read("crt"), key).expect("an issuer");
    write(&issuer, wanted, to);
}

/// Signs a leaf by an authority of the same name and another key.
pub fn foreign(wanted: &Leaf<'_>, to: &Path) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "harbour client authority");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    write(&Issuer::new(params, key), wanted, to);
}

fn write(issuer: &Issuer<'_, KeyPair>, wanted: &Leaf<'_>, to: &Path) {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, wanted.name);
    if let Some(address) = wanted.address {
        params.subject_alt_names.push(SanType::IpAddress(address.parse().expect("an address")));
    }
    let now = OffsetDateTime::now_utc();
    params.not_before = now + Duration::days(wanted.valid.0);
    params.not_after = now + Duration::days(wanted.valid.1);
    let usage = if wanted.server { ExtendedKeyUsagePurpose::ServerAuth } else { ExtendedKeyUsagePurpose::ClientAuth };
    params.extended_key_usages.push(usage);
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, issuer).expect("signed");
    std::fs::create_dir_all(to.parent().expect("a directory")).expect("directory");
    std::fs::write(to.with_extension("crt"), certificate.pem()).expect("written");
    std::fs::write(to.with_extension("key"), key.serialize_pem()).expect("written");
}
