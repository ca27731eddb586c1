//! etcd's rule on the source address of peers (`checkCertSAN` in client/pkg/transport/listener_tls.go).
//!
//! After the handshake, the peer listener compares the dialler's certificate with the address that the connection comes
//! from: any IP name that is this address accepts. Else DNS names are looked up (by the listener's resolver, so its
//! `/etc/hosts` counts) and one of them must have this address. A certificate without any name skips the check. Client
//! listeners have no such rule.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::inspect::Certificate;

/// Why a dialler is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// An IP name is its address.
    Address,
    /// This DNS name has its address, in the listener's hosts file.
    Name(String),
    /// The certificate has no name, so etcd does not look.
    Unchecked,
}

/// The address from which a node's connections come. On loopback the kernel takes 127.0.0.1 (or ::1) as the source
/// whatever address the dialler listens on, unless it binds; etcd does not bind [measured on 3.4.23 and 3.5.16].
pub fn source(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_loopback() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Applies the rule. `hosts` gives the addresses of a name in the listener's `/etc/hosts`.
///
/// # Errors
/// What etcd would log, in words.
pub fn accepts(
    certificate: &Certificate,
    source: IpAddr,
    hosts: &dyn Fn(&str) -> Vec<IpAddr>,
) -> Result<Accepted, String> {
    if certificate.addresses.is_empty() && certificate.dns.is_empty() {
        return Ok(Accepted::Unchecked);
    }
    if certificate.addresses.contains(&source) {
        return Ok(Accepted::Address);
    }
    if certificate.dns.is_empty() {
        return Err(format!("the certificate is valid for {}, not {source}", certificate.names()));
    }
    match certificate.dns.iter().find(|name| hosts(name).contains(&source)) {
        Some(name) => Ok(Accepted::Name(name.clone())),
        None => Err(format!(
            "\"{source}\" does not match any of DNSNames [{}], nor an IP name ({})",
            certificate.dns.join(" "),
            certificate.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// The addresses of a name in a hosts file (hosts(5)).
pub fn hosts_file(text: &str, name: &str) -> Vec<IpAddr> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split('#').next()?.split_whitespace();
            let address = words.next()?.parse().ok()?;
            words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::Use;
    use crate::pki::authority::{self, Signer};
    use crate::pki::names::San;
    use crate::pki::profiles::AuthorityName;
    use crate::pki::request::Request;
    use std::time::Duration;
    use time::OffsetDateTime;

    fn certificate(names: &[&str]) -> Certificate {
        let now = OffsetDateTime::now_utc();
        let pair = authority::create(AuthorityName::Peer, "harbour", now, Duration::from_secs(9999)).unwrap();
        let signer = Signer::new(Certificate::from_pem(&pair.certificate_pem).unwrap(), &pair.key_der).unwrap();
        let request = Request {
            who: "node lis1".into(),
            purpose: Use::Peer,
            common_name: "lis1".into(),
            sans: names.iter().map(|n| n.parse().map_or_else(|_| San::Dns((*n).to_owned()), San::Ip)).collect(),
            lifetime: Duration::from_secs(999),
            renew_before: Duration::ZERO,
            order: None,
        };
        Certificate::from_pem(&authority::sign(&signer, &request, now).unwrap().certificate_pem).unwrap()
    }

    #[test]
    fn the_rule() {
        const HOSTS: &str = "127.0.0.1 localhost # loopback\n10.77.0.11 lis1.harbour.mesh lis1\n# 10.77.0.12 por1\n";
        let cases: &[(&[&str], &str, Result<Accepted, &str>)] = &[
            (&["lis1", "10.77.0.11"], "10.77.0.11", Ok(Accepted::Address)),
            (&["lis1"], "10.77.0.11", Ok(Accepted::Name("lis1".into()))),
            (&["por1", "LIS1"], "10.77.0.11", Ok(Accepted::Name("LIS1".into()))),
            (&[], "192.0.2.1", Ok(Accepted::Unchecked)),
            (&["10.77.0.11"], "10.77.0.12", Err("the certificate is valid for 10.77.0.11, not 10.77.0.12")),
            (
                &["lis1", "por1", "10.77.0.11"],
                "10.77.0.12",
                Err("\"10.77.0.12\" does not match any of DNSNames [lis1 por1], nor an IP name (10.77.0.11)"),
            ),
        ];
        for (names, source, want) in cases {
            let got = accepts(&certificate(names), source.parse().unwrap(), &|name| hosts_file(HOSTS, name));
            assert_eq!(got.as_ref().map_err(String::as_str), want.as_ref().map_err(|e| *e), "{names:?} from {source}");
        }
    }

    #[test]
    fn sources() {
        let cases = [("10.77.0.11", "10.77.0.11"), ("127.77.0.1", "127.0.0.1"), ("::1", "::1"), ("fd00::1", "fd00::1")];
        for (address, want) in cases {
            assert_eq!(source(address.parse().unwrap()).to_string(), want);
        }
    }
}
