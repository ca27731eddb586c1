//! Our own TLS handshake over TCP, before etcd's client gets a turn: gRPC hides the reason of a refusal behind
//! `deadline exceeded` (etcd#10087), rustls says it.
//!
//! In TLS 1.3 a server refuses a client certificate only after the client thinks that the handshake is done
//! (RFC 8446, section 4.4.2.4), so the first bytes of the server are waited for too: HTTP/2's SETTINGS.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore};

use super::credentials::{Credentials, date, names};
use super::endpoint::Endpoint;
use super::verifier::Remembering;
use crate::pki::inspect::Certificate;

/// The client's connection preface and an empty SETTINGS frame (RFC 9113, section 3.4): the server answers.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// How long the server may take for its first word before we say ours.
const FIRST_WORD: Duration = Duration::from_millis(700);

/// What kept us from talking to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The kind.
    pub kind: Kind,
    /// The reason as the system, TLS or etcd says it.
    pub reason: String,
}

/// Kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No connection: no route, refused, no such name, or nothing heard until the deadline.
    Unreachable,
    /// Connected, and then nothing heard until the deadline.
    Silent,
    /// The endpoint's URL is `http://`.
    PlainUrl,
    /// What answers does not speak TLS.
    NotTls,
    /// The server's certificate has expired.
    ServerExpired,
    /// The server's certificate is not valid yet.
    ServerNotYetValid,
    /// The server's certificate is for other names.
    ServerName,
    /// The server's certificate is of another authority.
    ServerAuthority,
    /// The server's certificate is not for server authentication.
    ServerUsage,
    /// Another TLS error.
    Tls,
    /// The server refused our certificate, or the lack of one.
    ClientRefused,
    /// TLS was fine; etcd does not let this user do it.
    Denied,
    /// TLS was fine; the request was not answered as wished.
    Request,
}

impl Kind {
    /// True when nothing at all was heard: no statement about the registry can be made.
    pub fn is_silence(self) -> bool {
        matches!(self, Kind::Unreachable | Kind::Silent)
    }
}

impl Trouble {
    /// A trouble with its reason.
    pub fn new(kind: Kind, reason: impl Into<String>) -> Trouble {
        Trouble { kind, reason: reason.into() }
    }
}

/// What a server showed of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// Life of its certificate, seconds since 1970: not before, not after.
    pub validity: (i64, i64),
}

/// Connects, shakes hands (as a stranger when there are no credentials to show) and hears the first bytes.
///
/// # Errors
/// The trouble, always before `deadline` has passed by more than an instant.
pub fn greet(
    endpoint: &Endpoint,
    credentials: &Credentials,
    show: bool,
    deadline: Instant,
) -> Result<Greeting, Trouble> {
    let (mut connection, mut socket, verifier) = open(endpoint, credentials, show, &[b"h2"], deadline)?;
    talk(&mut connection, &mut socket).map_err(|error| explain(&error, &verifier))?;
    let shown = verifier.shown().and_then(|der| Certificate::from_der(&der).ok());
    let shown = shown.ok_or_else(|| Trouble::new(Kind::Tls, "the server's certificate cannot be read"))?;
    Ok(Greeting { validity: (shown.not_before.unix_timestamp(), shown.not_after.unix_timestamp()) })
}

/// Asks for a document over HTTP/1.0 and gives its body, at most `limit` bytes of it.
///
/// # Errors
/// The trouble; [`Kind::Request`] for any answer but 200.
pub fn get(
    endpoint: &Endpoint,
    credentials: &Credentials,
    path: &str,
    limit: u64,
    deadline: Instant,
) -> Result<String, Trouble> {
    let (mut connection, mut socket, verifier) = open(endpoint, credentials, true, &[], deadline)?;
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", endpoint.host);
    let mut answer = Vec::new();
    stream
        .write_all(request.as_bytes())
        .and_then(|()| stream.flush())
        .and_then(|()| stream.take(limit).read_to_end(&mut answer))
        .map_err(|error| explain(&error, &verifier))?;
    let text = String::from_utf8_lossy(&answer);
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
        _ => {
            let first = text.lines().next().unwrap_or("nothing");
            Err(Trouble::new(Kind::Request, format!("{path} was answered by `{first}`")))
        }
    }
}

/// A connection on which nothing was said yet.
fn open(
    endpoint: &Endpoint,
    credentials: &Credentials,
    show: bool,
    protocols: &[&[u8]],
    deadline: Instant,
) -> Result<(ClientConnection, Timed, Arc<Remembering>), Trouble> {
    if !endpoint.tls {
        return Err(Trouble::new(Kind::PlainUrl, "the URL begins with `http://`"));
    }
    let tls = |error: rustls::Error| Trouble::new(Kind::Tls, error.to_string());
    let verifier = verifier(credentials)?;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone());
    let mut config = if show {
        let whose = &credentials.shown.whose;
        let refused =
            |e: rustls::Error| Trouble::new(Kind::ClientRefused, format!("the key does not fit {whose}: {e}"));
        config.with_client_auth_cert(credentials.chain.clone(), credentials.key.clone_key()).map_err(refused)?
    } else {
        config.with_no_client_auth()
    };
    config.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
    let name = ServerName::try_from(endpoint.host.clone())
        .map_err(|e| Trouble::new(Kind::Unreachable, format!("`{}` is no host name: {e}", endpoint.host)))?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(tls)?;
    let socket = Timed { stream: connect(endpoint, deadline)?, deadline };
    Ok((connection, socket, verifier))
}

fn verifier(credentials: &Credentials) -> Result<Arc<Remembering>, Trouble> {
    let mut roots = RootCertStore::empty();
    for authority in &credentials.authorities {
        roots.add(authority.clone()).map_err(|e| Trouble::new(Kind::Tls, format!("the image's client-ca.crt: {e}")))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|e| Trouble::new(Kind::Tls, e.to_string()))?;
    Ok(Remembering::new(inner))
}

fn talk(connection: &mut ClientConnection, socket: &mut Timed) -> Result<(), Error> {
    while connection.is_handshaking() {
        if connection.complete_io(socket)? == (0, 0) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    // etcd speaks first. Writing before its alert is read would risk a reset that swallows the reason.
    let deadline = socket.deadline;
    socket.deadline = deadline.min(Instant::now() + FIRST_WORD);
    let heard = hear(connection, socket);
    socket.deadline = deadline;
    match heard {
        Err(error) if is_timeout(&error) => {}
        other => return other,
    }
    let mut stream = rustls::Stream::new(connection, socket);
    stream.write_all(PREFACE)?;
    stream.flush()?;
    hear(connection, socket)
}

/// Waits for the first bytes of the server.
fn hear(connection: &mut ClientConnection, socket: &mut Timed) -> Result<(), Error> {
    let mut first = [0; 9];
    match rustls::Stream::new(connection, socket).read(&mut first)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Opens the connection. Looking a name up cannot be interrupted, so it has a thread of its own that is left
/// behind when the deadline passes first.
fn connect(endpoint: &Endpoint, deadline: Instant) -> Result<TcpStream, Trouble> {
    let unreachable = |reason: String| Trouble::new(Kind::Unreachable, reason);
    let addresses: Vec<SocketAddr> = match endpoint.address() {
        Some(address) => vec![SocketAddr::new(address, endpoint.port)],
        None => {
            let (send, receive) = mpsc::channel();
            let (host, port) = (endpoint.host.clone(), endpoint.port);
            std::thread::spawn(move || {
                // Nobody listens any more when the deadline has passed.
                let _ = send.send((host.as_str(), port).to_socket_addrs().map(Iterator::collect));
            });
            match receive.recv_timeout(left(deadline)) {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(error)) => return Err(unreachable(format!("`{}`: {error}", endpoint.host))),
                Err(_) => return Err(unreachable(format!("looking up `{}` took too long", endpoint.host))),
            }
        }
    };
    let mut last = unreachable(format!("`{}` has no address", endpoint.host));
    for address in addresses {
        match TcpStream::connect_timeout(&address, left(deadline)) {
            Ok(stream) => return Ok(stream),
            Err(error) if is_timeout(&error) => last = unreachable("no answer to the connection request".to_owned()),
            Err(error) => last = unreachable(plain(&error)),
        }
    }
    Err(last)
}

/// An I/O error without the number that Rust appends.
fn plain(error: &Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// Time until the deadline; never zero, which the socket calls take for "forever" or refuse.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

fn is_timeout(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}

/// A socket whose every call ends before one common deadline.
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn check(&self) -> Result<Duration, Error> {
        if Instant::now() >= self.deadline { Err(ErrorKind::TimedOut.into()) } else { Ok(left(self.deadline)) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        self.stream.set_read_timeout(Some(self.check()?))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> Result<usize, Error> {
        self.stream.set_write_timeout(Some(self.check()?))?;
        self.stream.write(buffer)
    }
    fn flush(&mut self) -> Result<(), Error> {
        self.stream.flush()
    }
}

/// From an I/O error of the TLS stream to the kind of trouble.
fn explain(error: &Error, verifier: &Remembering) -> Trouble {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        if is_timeout(error) {
            return Trouble::new(Kind::Silent, "connected, and then nothing was heard");
        }
        // A server that refuses a certificate may close before its alert is read (seen with Go's TLS 1.3).
        if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof) {
            return match verifier.shown() {
                Some(_) => Trouble::new(Kind::ClientRefused, "the server closed the connection after the certificates"),
                None => Trouble::new(Kind::NotTls, "the server closed the connection instead of answering in TLS"),
            };
        }
        return Trouble::new(Kind::Unreachable, plain(error));
    };
    let shown = verifier.shown().and_then(|der| names(&der));
    let by = shown.map(|(subject, issuer)| format!(" (shown: `{subject}`, issued by `{issuer}`)")).unwrap_or_default();
    match tls {
        rustls::Error::InvalidCertificate(reason) => certificate(reason, &by),
        rustls::Error::AlertReceived(alert) => match refusal(*alert) {
            Some(text) => Trouble::new(Kind::ClientRefused, text),
            None => Trouble::new(Kind::Tls, format!("the server answered with the alert `{alert:?}`")),
        },
        rustls::Error::InvalidMessage(_) if verifier.shown().is_none() => {
            Trouble::new(Kind::NotTls, "the answer is not TLS (plain HTTP?)")
        }
        other => Trouble::new(Kind::Tls, format!("{other}{by}")),
    }
}

fn certificate(reason: &CertificateError, by: &str) -> Trouble {
    let at = |time: &rustls::pki_types::UnixTime| date(i64::try_from(time.as_secs()).unwrap_or(i64::MAX));
    match reason {
        CertificateError::ExpiredContext { not_after, .. } => {
            Trouble::new(Kind::ServerExpired, format!("it was valid until {}{by}", at(not_after)))
        }
        CertificateError::Expired => Trouble::new(Kind::ServerExpired, format!("it has expired{by}")),
        CertificateError::NotValidYetContext { not_before, .. } => {
            Trouble::new(Kind::ServerNotYetValid, format!("it is valid from {} on{by}", at(not_before)))
        }
        CertificateError::NotValidYet => Trouble::new(Kind::ServerNotYetValid, format!("it is not valid yet{by}")),
        CertificateError::NotValidForNameContext { expected, presented } => Trouble::new(
            Kind::ServerName,
            format!("`{}` is not among its names: {}", expected.to_str(), crate::pki::handshake::names(presented)),
        ),
        CertificateError::NotValidForName => Trouble::new(Kind::ServerName, format!("its names do not match{by}")),
        // An authority of the same name with another key shows as a bad signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Trouble::new(Kind::ServerAuthority, format!("not signed by the mesh's `client` authority{by}"))
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            Trouble::new(Kind::ServerUsage, format!("its extended key usage lacks server authentication{by}"))
        }
        other => Trouble::new(Kind::Tls, format!("{other}{by}")),
    }
}

/// What an alert says about our certificate; `None` when it is about something else.
fn refusal(alert: AlertDescription) -> Option<&'static str> {
    Some(match alert {
        AlertDescription::CertificateRequired => "a client certificate is required",
        AlertDescription::BadCertificate => "`bad certificate`",
        AlertDescription::UnsupportedCertificate => "`unsupported certificate`: its usages lack client authentication",
        AlertDescription::CertificateExpired => "`certificate expired` (or not valid yet)",
        AlertDescription::CertificateRevoked => "`certificate revoked`",
        AlertDescription::CertificateUnknown => "`certificate unknown`",
        AlertDescription::UnknownCA => "`unknown certificate authority`",
        AlertDescription::AccessDenied => "`access denied`",
        // RFC 8446, section 6.2: a signature could not be verified. Ours was made with a key that fits.
        AlertDescription::DecryptError => "`decrypt error`: it is signed by another authority of the same name",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
