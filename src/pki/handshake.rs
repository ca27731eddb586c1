//! TLS handshakes in memory: does this certificate convince that side, at that time, and if not, who says what.
//!
//! Two rustls connections exchange bytes through buffers, with client certificates required, once with TLS 1.2 and once
//! with TLS 1.3. etcd is Go, so what Go checks and webpki does not is checked too: the authority's own dates, usages and
//! basic constraints (webpki takes an anchor as name and key only), and names that make Go refuse to parse.

use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};
use time::OffsetDateTime;

use super::inspect::{Certificate, Dates, date};
use super::profiles::{Extended, bits};

/// The versions that etcd speaks.
static VERSIONS: [(&SupportedProtocolVersion, &str); 2] =
    [(&rustls::version::TLS12, "TLS 1.2"), (&rustls::version::TLS13, "TLS 1.3")];

/// What one side has: a certificate with its key, and the authorities that it trusts.
#[derive(Debug)]
pub struct Side {
    certificate: Certificate,
    key: PrivateKeyDer<'static>,
    authorities: Vec<Certificate>,
    roots: Arc<RootCertStore>,
}

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that dials.
    Client,
    /// The one that listens.
    Server,
}

/// A handshake that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Who refuses, and so who holds the reason: the other side only logs `remote error: tls: bad certificate`.
    pub by: Role,
    /// The reason, in the words of Go's crypto/x509 where it has some.
    pub reason: String,
}

impl Side {
    /// Puts a side together.
    ///
    /// # Errors
    /// In words, when the key cannot be used or an authority cannot be trusted.
    pub fn new(
        certificate: Certificate,
        key: PrivateKeyDer<'static>,
        authorities: Vec<Certificate>,
    ) -> Result<Side, String> {
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            roots.add(authority.to_rustls()).map_err(|e| format!("`{}`: {e}", authority.subject))?;
        }
        rustls::crypto::ring::sign::any_supported_type(&key).map_err(|e| e.to_string())?;
        Ok(Side { certificate, key, authorities, roots: Arc::new(roots) })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// A client that shows this certificate and trusts these authorities, at a given time.
    ///
    /// # Errors
    /// In words, when rustls refuses the parts.
    pub fn client_config(
        &self,
        now: OffsetDateTime,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<ClientConfig, String> {
        let verifier = WebPkiServerVerifier::builder_with_provider(self.roots.clone(), provider())
            .build()
            .map_err(|e| e.to_string())?;
        let mut config = ClientConfig::builder_with_details(provider(), Arc::new(Clock(now)))
            .with_protocol_versions(versions)
            .map_err(|e| e.to_string())?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(vec![self.certificate.to_rustls()], self.key.clone_key())
            .map_err(|e| e.to_string())?;
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// A server that shows this certificate and wants one of these authorities', at a given time.
    ///
    /// # Errors
    /// In words, when rustls refuses the parts.
    pub fn server_config(
        &self,
        now: OffsetDateTime,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<ServerConfig, String> {
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider())
            .build()
            .map_err(|e| e.to_string())?;
        let mut config = ServerConfig::builder_with_details(provider(), Arc::new(Clock(now)))
            .with_protocol_versions(versions)
            .map_err(|e| e.to_string())?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.certificate.to_rustls()], self.key.clone_key())
            .map_err(|e| e.to_string())?;
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

/// Proves that `client`, dialling `host` (a name or an address, as in a URL), and `server` accept each other at `now`,
/// with TLS 1.2 and 1.3, and that Go does too.
///
/// # Errors
/// Who refuses and why.
pub fn prove(client: &Side, server: &Side, host: &str, now: OffsetDateTime) -> Result<(), Refusal> {
    // Go parses and builds the chain before anything else; its reasons are the more telling ones.
    go_refuses(&server.certificate, &client.authorities, Extended::ServerAuth, now)
        .map_or(Ok(()), |reason| Err(Refusal { by: Role::Client, reason }))?;
    go_refuses(&client.certificate, &server.authorities, Extended::ClientAuth, now)
        .map_or(Ok(()), |reason| Err(Refusal { by: Role::Server, reason }))?;
    VERSIONS.iter().try_for_each(|(version, name)| {
        shake(client, server, host, now, version)
            .map_err(|refusal| Refusal { reason: format!("{} ({name})", refusal.reason), ..refusal })
    })
}

/// What Go's crypto/x509 says against a chain that webpki accepts. `None`: nothing.
pub fn go_refuses(
    leaf: &Certificate,
    authorities: &[Certificate],
    purpose: Extended,
    now: OffsetDateTime,
) -> Option<String> {
    if let Some(defect) = leaf.defects.first() {
        return Some(format!("the certificate is malformed: {defect}"));
    }
    // Without a signer webpki says it: unknown issuer. With two of one name, one good one is enough.
    let mut reasons = authorities.iter().filter(|authority| leaf.is_signed_by(authority)).map(|authority| {
        let name = &authority.subject;
        match authority.at(now) {
            Dates::Expired => {
                return Some(format!("the authority `{name}` has expired at {}", date(authority.not_after)));
            }
            Dates::NotYet => {
                return Some(format!("the authority `{name}` is valid only from {} on", date(authority.not_before)));
            }
            Dates::Valid => {}
        }
        if let Some(defect) = authority.defects.first() {
            return Some(format!("the authority `{name}` is malformed: {defect}"));
        }
        if !authority.is_ca {
            return Some(format!("`{name}` is no authority (basic constraints)"));
        }
        if authority.key_usage.is_some_and(|usage| usage & bits::CERT_SIGN == 0) {
            return Some(format!("the authority `{name}` may not sign certificates (key usage)"));
        }
        let any = Extended::Other("2.5.29.37.0".to_owned());
        if authority.extended.as_ref().is_some_and(|all| !all.contains(&purpose) && !all.contains(&any)) {
            return Some(format!("the authority `{name}` may not sign for {purpose} (extended key usage)"));
        }
        None
    });
    let first = reasons.next()?;
    if first.is_none() || reasons.any(|reason| reason.is_none()) { None } else { first }
}

fn shake(
    client: &Side,
    server: &Side,
    host: &str,
    now: OffsetDateTime,
    version: &'static SupportedProtocolVersion,
) -> Result<(), Refusal> {
    let of = |by: Role| move |reason: String| Refusal { by, reason };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| of(Role::Client)(format!("`{host}` is neither a host name nor an address")))?;
    let config = client.client_config(now, &[version]).map_err(of(Role::Client))?;
    let mut dialling = ClientConnection::new(Arc::new(config), name).map_err(|e| of(Role::Client)(words(&e)))?;
    let config = server.server_config(now, &[version]).map_err(of(Role::Server))?;
    let mut listening = ServerConnection::new(Arc::new(config)).map_err(|e| of(Role::Server)(words(&e)))?;
    // A handshake takes two round trips at most; without progress it would never end.
    for _ in 0..16 {
        if !dialling.is_handshaking() && !listening.is_handshaking() {
            return Ok(());
        }
        pass(&mut dialling, &mut listening).map_err(of(Role::Server))?;
        pass(&mut listening, &mut dialling).map_err(of(Role::Client))?;
    }
    Err(of(Role::Client)("the handshake does not come to an end".to_owned()))
}

/// Hands what one side has to say to the other.
fn pass<A, B>(
    from: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<A>>,
    to: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<B>>,
) -> Result<(), String> {
    let mut wire = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut wire).map_err(|e| e.to_string())?;
    }
    let mut rest = wire.as_slice();
    while !rest.is_empty() {
        to.read_tls(&mut rest).map_err(|e| e.to_string())?;
        to.process_new_packets().map_err(|e| words(&e))?;
    }
    Ok(())
}

/// A rustls error in the words of Go's crypto/x509, which stand in etcd's log.
pub fn words(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return match error {
            rustls::Error::NoCertificatesPresented => "the client did not show a certificate".to_owned(),
            other => other.to_string(),
        };
    };
    let at = |time: &UnixTime| {
        i64::try_from(time.as_secs())
            .ok()
            .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
            .map_or_else(|| "an unknown time".to_owned(), date)
    };
    match reason {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate has expired at {}", at(not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("the certificate is not yet valid: it begins at {}", at(not_before))
        }
        CertificateError::UnknownIssuer => "the certificate is signed by an unknown authority".to_owned(),
        CertificateError::BadSignature => {
            "the certificate is signed by an unknown authority, of the same name as a trusted one".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("the certificate is valid for {}, not {}", names(presented), expected.to_str())
        }
        CertificateError::InvalidPurposeContext { required, presented } => {
            let presented: Vec<String> = presented.iter().map(ToString::to_string).collect();
            format!(
                "the certificate specifies an incompatible key usage: wanted is {required}, it is for {}",
                presented.join(" and ")
            )
        }
        other => other.to_string(),
    }
}

/// The names of a certificate as rustls gives them, `DnsName("lis1.mesh")` and `IpAddress(0:0:0:0:0:0:0:1)`, in words.
pub fn names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, rest)| rest.trim_matches(['"', ')']));
        inner.parse::<std::net::IpAddr>().map_or_else(|_| inner.to_owned(), |address| address.to_string())
    };
    let names: Vec<String> = presented.iter().map(plain).collect();
    if names.is_empty() { "no name".to_owned() } else { names.join(", ") }
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: std::sync::OnceLock<Arc<CryptoProvider>> = std::sync::OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())).clone()
}

/// A clock that stands.
#[derive(Debug)]
struct Clock(OffsetDateTime);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.unix_timestamp()).ok()?;
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::Use;
    use crate::pki::authority::{self, Pair, Signer};
    use crate::pki::names::San;
    use crate::pki::profiles::AuthorityName;
    use crate::pki::request::Request;
    use std::time::Duration;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2026-11-30 12:00:00 UTC);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn authority(name: AuthorityName, days: u32) -> Signer {
        let pair = authority::create(name, "harbour", NOW, DAY * days).unwrap();
        Signer::new(Certificate::from_pem(&pair.certificate_pem).unwrap(), &pair.key_der).unwrap()
    }

    fn request(purpose: Use, names: &[&str], days: u32) -> Request {
        Request {
            who: "node lis1".into(),
            purpose,
            common_name: "lis1".into(),
            sans: names.iter().map(|n| n.parse().map_or_else(|_| San::Dns((*n).to_owned()), San::Ip)).collect(),
            lifetime: DAY * days,
            renew_before: DAY,
            order: None,
        }
    }

    fn side(pair: Pair, trusted: &[&Signer]) -> Side {
        let key = PrivateKeyDer::try_from(pair.key_der.to_vec()).unwrap();
        let authorities = trusted.iter().map(|s| s.certificate.clone()).collect();
        Side::new(Certificate::from_pem(&pair.certificate_pem).unwrap(), key, authorities).unwrap()
    }

    #[test]
    fn names_are_said_as_people_write_them() {
        let all = ["DnsName(\"lis1.mesh\")", "IpAddress(10.77.0.11)", "IpAddress(0::1)", "other"].map(str::to_owned);
        assert_eq!(names(&all), "lis1.mesh, 10.77.0.11, ::1, other");
        assert_eq!(names(&[]), "no name");
    }

    #[test]
    fn handshakes_and_who_refuses_what() {
        let (own, other) = (authority(AuthorityName::Peer, 3650), authority(AuthorityName::Peer, 3650));
        let short = authority(AuthorityName::Peer, 10);
        let leaf = |signer: &Signer, purpose, names: &[&str], days, trusted: &[&Signer]| {
            side(authority::sign(signer, &request(purpose, names, days), NOW).unwrap(), trusted)
        };
        let good = || leaf(&own, Use::Peer, &["lis1.mesh", "10.77.0.11"], 100, &[&own]);
        type Case<'a> = (&'a str, Side, Side, &'a str, Duration, Result<(), (Role, &'a str)>);
        let cases: Vec<Case<'_>> = vec![
            ("good, by address", good(), good(), "10.77.0.11", DAY, Ok(())),
            ("good, by name", good(), good(), "lis1.mesh", DAY, Ok(())),
            (
                "wrong address",
                good(),
                good(),
                "10.77.0.12",
                DAY,
                Err((Role::Client, "the certificate is valid for lis1.mesh, 10.77.0.11, not 10.77.0.12 (TLS 1.2)")),
            ),
            (
                "server of another authority",
                good(),
                leaf(&other, Use::Peer, &["10.77.0.11"], 100, &[&own]),
                "10.77.0.11",
                DAY,
                Err((
                    Role::Client,
                    "the certificate is signed by an unknown authority, of the same name as a trusted one (TLS 1.2)",
                )),
            ),
            (
                "client of another authority",
                leaf(&other, Use::Peer, &["10.77.0.12"], 100, &[&own]),
                good(),
                "10.77.0.11",
                DAY,
                Err((
                    Role::Server,
                    "the certificate is signed by an unknown authority, of the same name as a trusted one (TLS 1.2)",
                )),
            ),
            (
                "client of another authority, in a bundle of both",
                leaf(&other, Use::Peer, &["10.77.0.12"], 100, &[&own]),
                leaf(&own, Use::Peer, &["10.77.0.11"], 100, &[&own, &other]),
                "10.77.0.11",
                DAY,
                Ok(()),
            ),
            (
                "server certificate as client",
                leaf(&own, Use::Server, &["10.77.0.12"], 100, &[&own]),
                good(),
                "10.77.0.11",
                DAY,
                Err((
                    Role::Server,
                    "the certificate specifies an incompatible key usage: wanted is client authentication, \
                     it is for server authentication (TLS 1.2)",
                )),
            ),
            (
                "client certificate as server",
                good(),
                leaf(&own, Use::Client, &["10.77.0.11"], 100, &[&own]),
                "10.77.0.11",
                DAY,
                Err((
                    Role::Client,
                    "the certificate specifies an incompatible key usage: wanted is server authentication, \
                     it is for client authentication (TLS 1.2)",
                )),
            ),
            (
                "expired",
                good(),
                leaf(&own, Use::Peer, &["10.77.0.11"], 2, &[&own]),
                "10.77.0.11",
                DAY * 3,
                Err((Role::Client, "the certificate has expired at 2026-12-02T12:00:00Z (TLS 1.2)")),
            ),
            (
                "expired authority, which webpki does not see",
                leaf(&own, Use::Peer, &["10.77.0.12"], 100, &[&short]),
                leaf(&short, Use::Peer, &["10.77.0.11"], 100, &[&own]),
                "10.77.0.11",
                DAY * 11,
                Err((Role::Client, "the authority `CN=harbour peer authority` has expired at 2026-12-10T12:00:00Z")),
            ),
        ];
        for (what, client, server, host, later, want) in cases {
            let got = prove(&client, &server, host, NOW + later);
            let got = got.as_ref().copied().map_err(|r| (r.by, r.reason.as_str()));
            assert_eq!(got, want, "{what}");
        }
    }

    #[test]
    fn not_yet_valid() {
        let own = authority(AuthorityName::Peer, 3650);
        let leaf = || side(authority::sign(&own, &request(Use::Peer, &["lis1"], 9), NOW + DAY).unwrap(), &[&own]);
        let refusal = prove(&leaf(), &leaf(), "lis1", NOW).unwrap_err();
        assert_eq!(refusal.reason, "the certificate is not yet valid: it begins at 2026-12-01T11:55:00Z (TLS 1.2)");
        let early = go_refuses(&leaf().certificate, &leaf().authorities, Extended::ServerAuth, NOW - DAY);
        let want = "the authority `CN=harbour peer authority` is valid only from 2026-11-30T11:55:00Z on";
        assert_eq!(early.as_deref(), Some(want));
    }
}
