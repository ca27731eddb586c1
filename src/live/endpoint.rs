//! An endpoint: the URL of one member's client listener.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::etcd::urls::CLIENT_PORT;

/// `https://<host>:<port>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// False for `http://`.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Why a text is no endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no endpoint: write `https://<address>:<port>`")]
pub struct EndpointError(String);

impl Endpoint {
    /// The endpoint of the member with this peer URL: the same host, port 2379.
    ///
    /// # Errors
    /// When the peer URL is none.
    pub fn of_peer_url(url: &str) -> Result<Endpoint, EndpointError> {
        let peer: Endpoint = url.parse()?;
        Ok(Endpoint { port: CLIENT_PORT, ..peer })
    }

    /// The endpoint of the member at this address, as the overlay `etcd` renders it.
    pub fn of_address(address: IpAddr) -> Endpoint {
        Endpoint { tls: true, host: address.to_string(), port: CLIENT_PORT }
    }

    /// The host as an address, when it is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || EndpointError(text.to_owned());
        let (tls, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            Some(_) => return Err(error()),
            None => (true, text),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']').ok_or_else(error)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| error())?;
                match after {
                    "" => (host, None),
                    _ => (host, Some(after.strip_prefix(':').ok_or_else(error)?)),
                }
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let legal = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
        if host.is_empty() || !host.chars().all(legal) {
            return Err(error());
        }
        let port = match port {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| error())?,
            Some(_) => return Err(error()),
            None => CLIENT_PORT,
        };
        Ok(Endpoint { tls, host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_or_refused() {
        let cases = [
            ("https://10.77.0.11:2379", Some("https://10.77.0.11:2379")),
            ("https://10.77.0.11", Some("https://10.77.0.11:2379")),
            ("10.77.0.11", Some("https://10.77.0.11:2379")),
            ("lis1.harbour.mesh:3379/", Some("https://lis1.harbour.mesh:3379")),
            ("https://[fd00::b]:1", Some("https://[fd00::b]:1")),
            ("https://[fd00::b]", Some("https://[fd00::b]:2379")),
            ("http://10.77.0.11:2379", Some("http://10.77.0.11:2379")),
            ("unix:///run/etcd", None),
            ("https://", None),
            ("https://fd00::b", None),
            ("https://[lis1]:1", None),
            ("https://a:b", None),
            ("https://a:99999", None),
            ("https://user@a", None),
            ("https://a/path", None),
        ];
        for (text, want) in cases {
            let got = text.parse::<Endpoint>().ok().map(|e| e.to_string());
            assert_eq!(got.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn a_peer_url_tells_the_endpoint() {
        let endpoint = Endpoint::of_peer_url("https://[fd00::b]:2380").unwrap();
        assert_eq!(endpoint.to_string(), "https://[fd00::b]:2379");
    }
}
