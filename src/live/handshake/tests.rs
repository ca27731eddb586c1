//! Handshakes over TCP with servers of every kind of wrong, on the loopback interface.

use std::net::TcpListener;

use rustls::{ServerConfig, ServerConnection};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::*;
use crate::pki::authority::{self, Signer};
use crate::pki::handshake::Side;
use crate::pki::inspect::Certificate;
use crate::pki::names::San;
use crate::pki::profiles::AuthorityName;
use crate::pki::request::Request;
use crate::pki::{Use, key};

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// An authority that has been there for three years, with its PEM.
struct Authority {
    signer: Signer,
    pem: String,
}

fn authority() -> Authority {
    let long_ago = OffsetDateTime::now_utc() - 3 * YEAR;
    let pair = authority::create(AuthorityName::Client, "harbour", long_ago, 20 * YEAR).unwrap();
    let certificate = Certificate::from_pem(&pair.certificate_pem).unwrap();
    Authority { signer: Signer::new(certificate, &pair.key_der).unwrap(), pem: pair.certificate_pem }
}

/// When a certificate's one year begins.
#[derive(Clone, Copy)]
enum Begins {
    Now,
    TwoYearsAgo,
    Tomorrow,
}

/// A leaf: certificate and key as PEM.
fn leaf(by: &Authority, purpose: Use, host: &str, begins: Begins) -> (String, String) {
    let now = OffsetDateTime::now_utc();
    let from = match begins {
        Begins::Now => now,
        Begins::TwoYearsAgo => now - 2 * YEAR,
        Begins::Tomorrow => now + Duration::from_secs(86_400),
    };
    let request = Request {
        who: "node lis1".into(),
        purpose,
        common_name: "node:lis1".into(),
        sans: vec![host.parse().map_or_else(|_| San::Dns(host.to_owned()), San::Ip)],
        lifetime: YEAR,
        renew_before: YEAR / 12,
        order: None,
    };
    let pair = authority::sign(&by.signer, &request, from).unwrap();
    (pair.certificate_pem, key::to_pem(&pair.key_der, None).unwrap().as_str().to_owned())
}

fn credentials(trusted: &Authority, (certificate, key): (String, String)) -> Credentials {
    let key = Zeroizing::new(key.into_bytes());
    Credentials::from_pem("a test", trusted.pem.clone().into_bytes(), certificate.into_bytes(), key).unwrap()
}

/// What listens.
enum Server {
    /// Mutual TLS; speaks first like etcd, or only when it was spoken to.
    Tls { config: ServerConfig, speaks_first: bool },
    /// TLS that asks for no certificate.
    Open(ServerConfig),
    /// Answers any bytes with an HTTP error, as Go's server does to a TLS greeting.
    Http,
    /// Takes the connection and says nothing.
    Hole,
    /// Closes at once.
    Closes,
}

/// Serves one connection after the other on a port of its own.
fn serve(server: Server) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // What goes wrong here is what the client is tested for.
            match &server {
                Server::Tls { config, speaks_first } => drop(tls(config, *speaks_first, stream)),
                Server::Open(config) => drop(tls(config, true, stream)),
                Server::Http => {
                    let _ = stream.read(&mut [0; 1024]);
                    let _ = stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n");
                }
                Server::Hole => held.push(stream),
                Server::Closes => drop(stream),
            }
        }
    });
    Endpoint { tls: true, host: "127.0.0.1".into(), port }
}

fn tls(config: &ServerConfig, speaks_first: bool, mut stream: TcpStream) -> Result<(), Error> {
    let mut connection = ServerConnection::new(Arc::new(config.clone())).unwrap();
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream)? == (0, 0) {
            return Ok(());
        }
    }
    let mut both = rustls::Stream::new(&mut connection, &mut stream);
    if !speaks_first {
        let mut preface = vec![0; PREFACE.len()];
        both.read_exact(&mut preface)?;
        assert_eq!(preface, PREFACE);
    }
    both.write_all(b"\0\0\0\x04\0\0\0\0\0")?;
    both.flush()?;
    let _ = both.read(&mut [0; 64]);
    Ok(())
}

fn mutual(trusted: &Authority, (certificate, key): (String, String)) -> ServerConfig {
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(key.as_bytes()).unwrap();
    let side =
        Side::new(Certificate::from_pem(certificate).unwrap(), key, vec![trusted.signer.certificate.clone()]).unwrap();
    side.server_config(OffsetDateTime::now_utc(), &[&rustls::version::TLS13, &rustls::version::TLS12]).unwrap()
}

fn open((certificate, key): (String, String)) -> ServerConfig {
    let chain = vec![Certificate::from_pem(certificate).unwrap().to_rustls()];
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(key.as_bytes()).unwrap();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[test]
fn servers_that_are_in_order() {
    let mesh = authority();
    let server = || mutual(&mesh, leaf(&mesh, Use::Server, "127.0.0.1", Begins::Now));
    let credentials = credentials(&mesh, leaf(&mesh, Use::Client, "lis1", Begins::Now));
    for speaks_first in [true, false] {
        let endpoint = serve(Server::Tls { config: server(), speaks_first });
        let greeting = greet(&endpoint, &credentials, true, soon()).unwrap();
        let (begin, end) = greeting.validity;
        assert!((359..=366).contains(&((end - begin) / 86_400)), "speaks first: {speaks_first}: {greeting:?}");
        let stranger = greet(&endpoint, &credentials, false, soon()).unwrap_err();
        assert_eq!(stranger.kind, Kind::ClientRefused, "{stranger:?}");
    }
    let endpoint = serve(Server::Open(open(leaf(&mesh, Use::Server, "127.0.0.1", Begins::Now))));
    assert!(greet(&endpoint, &credentials, false, soon()).is_ok(), "a stranger is let in");
}

#[test]
fn what_is_wrong_with_a_server_is_told_apart() {
    let (mesh, foreign) = (authority(), authority());
    let good = credentials(&mesh, leaf(&mesh, Use::Client, "lis1", Begins::Now));
    let server = |by: &Authority, purpose, host: &str, begins| {
        let config = mutual(&mesh, leaf(by, purpose, host, begins));
        serve(Server::Tls { config, speaks_first: true })
    };
    let cases = [
        (server(&mesh, Use::Server, "127.0.0.1", Begins::TwoYearsAgo), Kind::ServerExpired, "it was valid until 20"),
        (server(&mesh, Use::Server, "127.0.0.1", Begins::Tomorrow), Kind::ServerNotYetValid, "it is valid from 20"),
        (server(&mesh, Use::Server, "10.77.0.99", Begins::Now), Kind::ServerName, "`127.0.0.1` is not among its names"),
        (server(&mesh, Use::Server, "10.77.0.99", Begins::Now), Kind::ServerName, "10.77.0.99"),
        // Both authorities have one name, so this is a signature that does not verify.
        (server(&foreign, Use::Server, "127.0.0.1", Begins::Now), Kind::ServerAuthority, "issued by"),
        (server(&mesh, Use::Client, "127.0.0.1", Begins::Now), Kind::ServerUsage, "lacks server authentication"),
        (serve(Server::Http), Kind::NotTls, "not TLS"),
        (serve(Server::Closes), Kind::NotTls, "closed the connection"),
    ];
    for (endpoint, kind, text) in cases {
        let trouble = greet(&endpoint, &good, true, soon()).unwrap_err();
        assert_eq!(trouble.kind, kind, "{trouble:?}");
        assert!(trouble.reason.contains(text), "`{text}`: {trouble:?}");
    }
}

#[test]
fn what_the_server_holds_against_us_is_heard() {
    let (mesh, foreign) = (authority(), authority());
    let endpoint = serve(Server::Tls {
        config: mutual(&mesh, leaf(&mesh, Use::Server, "127.0.0.1", Begins::Now)),
        speaks_first: true,
    });
    let cases = [
        (leaf(&mesh, Use::Client, "lis1", Begins::TwoYearsAgo), "`certificate expired`"),
        (leaf(&foreign, Use::Client, "lis1", Begins::Now), "another authority of the same name"),
        (leaf(&mesh, Use::Server, "lis1", Begins::Now), "certificate"),
    ];
    for (shown, text) in cases {
        let trouble = greet(&endpoint, &credentials(&mesh, shown), true, soon()).unwrap_err();
        assert_eq!(trouble.kind, Kind::ClientRefused, "{trouble:?}");
        assert!(trouble.reason.contains(text), "`{text}`: {trouble:?}");
    }
}

#[test]
fn silence_is_bounded() {
    let mesh = authority();
    let credentials = credentials(&mesh, leaf(&mesh, Use::Client, "lis1", Begins::Now));
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Endpoint { tls: true, host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() }
    };
    let named = Endpoint { host: "no-such-host.invalid".into(), ..closed.clone() };
    let plain = Endpoint { tls: false, ..closed.clone() };
    let cases = [
        (serve(Server::Hole), Kind::Silent, "nothing was heard"),
        (closed, Kind::Unreachable, "connection refused"),
        (named, Kind::Unreachable, "no-such-host.invalid"),
        (plain, Kind::PlainUrl, "http://"),
    ];
    for (endpoint, kind, text) in cases {
        let start = Instant::now();
        let trouble = greet(&endpoint, &credentials, true, start + Duration::from_millis(400)).unwrap_err();
        assert_eq!(trouble.kind, kind, "{endpoint}: {trouble:?}");
        assert!(trouble.reason.contains(text), "`{text}`: {trouble:?}");
        assert!(start.elapsed() < Duration::from_secs(3), "{endpoint}: {:?}", start.elapsed());
    }
}
