//! URLs of the registry: how they are made from addresses, and what etcd asks of them.

use std::net::{IpAddr, SocketAddr};

/// Port of the peer listener.
pub const PEER_PORT: u16 = 2380;
/// Port of the client listener.
pub const CLIENT_PORT: u16 = 2379;
/// Metrics listener: plain HTTP, loopback only, needs no certificate.
pub const METRICS_URL: &str = "http://127.0.0.1:2381";

/// `https://<address>:2380`, IPv6 in brackets.
pub fn peer_url(address: IpAddr) -> String {
    format!("https://{}", SocketAddr::new(address, PEER_PORT))
}

/// `https://<address>:2379`, IPv6 in brackets.
pub fn client_url(address: IpAddr) -> String {
    format!("https://{}", SocketAddr::new(address, CLIENT_PORT))
}

/// What is wrong with a URL of the configuration (`client/pkg/types/urls.go`, `embed/config.go` checkBindURLs and
/// checkHostURLs).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No scheme, or one that etcd does not know.
    #[error("the scheme must be `http` or `https`")]
    Scheme,
    /// No host, no port, or something that is no port.
    #[error("it has not the form `scheme://host:port`")]
    HostPort,
    /// Something after the port.
    #[error("it must not have a path")]
    Path,
    /// A listener's host must be an address.
    #[error("a listener needs an IP address, `{0}` is a name")]
    NotAnAddress(String),
}

/// A URL of the configuration, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// True for `https`.
    pub tls: bool,
    /// Host without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Url {
    /// Takes a URL apart as etcd does. Unix sockets are not accepted: nothing of a mesh uses them.
    ///
    /// # Errors
    /// Where etcd would refuse it.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError::Scheme),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = authority.rsplit_once(':').ok_or(UrlError::HostPort)?;
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse::<u16>().map_err(|_| UrlError::HostPort)?;
        if host.is_empty() || (host.contains(':') && !is_bracketed) {
            return Err(UrlError::HostPort);
        }
        if !path.is_empty() {
            return Err(UrlError::Path);
        }
        Ok(Url { tls, host: host.to_owned(), port })
    }

    /// The host as an address.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether a listener can be bound to it: an address, or `localhost`.
    ///
    /// # Errors
    /// For other names.
    pub fn binds(&self) -> Result<(), UrlError> {
        match self.address().is_some() || self.host == "localhost" {
            true => Ok(()),
            false => Err(UrlError::NotAnAddress(self.host.clone())),
        }
    }

    /// True when only this machine reaches it.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.address().is_some_and(|a| a.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_addresses() {
        let v4 = IpAddr::from([10, 77, 0, 11]);
        let v6: IpAddr = "fd00::b".parse().unwrap();
        assert_eq!(peer_url(v4), "https://10.77.0.11:2380");
        assert_eq!(client_url(v6), "https://[fd00::b]:2379");
    }

    #[test]
    fn urls_are_read_as_etcd_reads_them() {
        let cases = [
            ("https://10.77.0.11:2380", Ok("10.77.0.11 2380 true")),
            ("http://[::1]:2381", Ok("::1 2381 false")),
            ("HTTPS://10.77.0.11:2380", Ok("10.77.0.11 2380 true")),
            ("https://n1.mesh:2379", Ok("n1.mesh 2379 true")),
            ("10.77.0.11:2380", Err(UrlError::Scheme)),
            ("unix://x:1", Err(UrlError::Scheme)),
            ("https://10.77.0.11", Err(UrlError::HostPort)),
            ("https://:2380", Err(UrlError::HostPort)),
            ("https://fd00::1:2380", Err(UrlError::HostPort)),
            ("https://10.77.0.11:x", Err(UrlError::HostPort)),
            ("https://10.77.0.11:2380/x", Err(UrlError::Path)),
        ];
        for (text, want) in cases {
            let got = Url::parse(text).map(|u| format!("{} {} {}", u.host, u.port, u.tls));
            assert_eq!(got, want.map(str::to_owned), "{text}");
        }
        let binds = |text: &str| Url::parse(text).and_then(|u| u.binds());
        assert_eq!(binds("https://n1.mesh:2379"), Err(UrlError::NotAnAddress("n1.mesh".into())));
        assert_eq!(binds("http://localhost:2381"), Ok(()));
    }
}
