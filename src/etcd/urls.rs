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
}
