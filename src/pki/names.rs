//! Names in certificates, checked by the strictest rule of all that will read them.
//!
//! rcgen takes any text that is no address as a DNS name (`10.0.0.1/24`, `node_1 `, the empty text). Old Go accepts
//! such certificates; Go since 1.24.8 and 1.25.2 refuses to parse them (`x509: SAN dNSName is malformed`). So names are
//! checked before they are signed, and again when a certificate is read.

use std::fmt;
use std::net::IpAddr;

/// A subject alternative name of ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum San {
    /// A host name.
    Dns(String),
    /// An address.
    Ip(IpAddr),
}

impl fmt::Display for San {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            San::Dns(name) => f.write_str(name),
            San::Ip(address) => write!(f, "{address}"),
        }
    }
}

/// Why a text is no DNS name for a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing.
    #[error("is empty")]
    Empty,
    /// RFC 1034: 253 characters in text form.
    #[error("is longer than 253 characters")]
    Long,
    /// RFC 1034: 63 characters a label.
    #[error("has a label longer than 63 characters")]
    LongLabel,
    /// Leading, trailing or doubled dot.
    #[error("has an empty label (a leading, trailing or doubled dot)")]
    EmptyLabel,
    /// Anything else than letters, digits and inner hyphens.
    #[error("has a character that host names may not have")]
    Character,
    /// It reads as an address, which is only ever matched against IP names.
    #[error("is an IP address, which is never matched against DNS names")]
    Address,
}

/// Checks a host name that is about to be signed (RFC 1123: letters, digits, hyphens inside; no wildcard, no
/// underscore, no final dot).
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check_host(name: &str) -> Result<(), NameError> {
    check_labels(name)?;
    if name.parse::<IpAddr>().is_ok() || name.rsplit('.').next().is_some_and(|l| l.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(NameError::Address);
    }
    for label in name.split('.') {
        let plain = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !plain || label.starts_with('-') || label.ends_with('-') {
            return Err(NameError::Character);
        }
    }
    Ok(())
}

/// Checks a DNS name that stands in a certificate, by Go's rule (crypto/x509 `domainNameValid`) with the length limits
/// that are noted there as intended: printable ASCII without space, no empty label, no final dot.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check_presented(name: &[u8]) -> Result<(), NameError> {
    let Ok(text) = std::str::from_utf8(name) else {
        return Err(NameError::Character);
    };
    check_labels(text)?;
    if text.bytes().any(|b| !(33..=126).contains(&b)) {
        return Err(NameError::Character);
    }
    if text.parse::<IpAddr>().is_ok() {
        return Err(NameError::Address);
    }
    Ok(())
}

fn check_labels(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > 253 {
        return Err(NameError::Long);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(NameError::EmptyLabel);
        }
        if label.len() > 63 {
            return Err(NameError::LongLabel);
        }
    }
    Ok(())
}

/// True when a DNS name of a certificate covers a host: equal without regard to case, or a wildcard for exactly the
/// first label (RFC 6125; both Go and webpki).
pub fn covers(presented: &str, host: &str) -> bool {
    if presented.eq_ignore_ascii_case(host) {
        return true;
    }
    match (presented.strip_prefix("*."), host.split_once('.')) {
        (Some(rest), Some((first, parent))) => !first.is_empty() && rest.eq_ignore_ascii_case(parent),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_signed() {
        let long_label = format!("{}.mesh", "a".repeat(64));
        let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(62)].join(".");
        let cases = [
            ("lis1", Ok(())),
            ("lis1.harbour.mesh", Ok(())),
            ("3com.mesh", Ok(())),
            ("", Err(NameError::Empty)),
            ("lis1.harbour.mesh.", Err(NameError::EmptyLabel)),
            (".mesh", Err(NameError::EmptyLabel)),
            ("a..mesh", Err(NameError::EmptyLabel)),
            ("node_1", Err(NameError::Character)),
            ("node 1", Err(NameError::Character)),
            ("-a.mesh", Err(NameError::Character)),
            ("a-.mesh", Err(NameError::Character)),
            ("*.mesh", Err(NameError::Character)),
            ("10.0.0.1/24", Err(NameError::Character)),
            ("10.77.0.11", Err(NameError::Address)),
            ("010.0.0.1", Err(NameError::Address)),
            ("münchen.mesh", Err(NameError::Character)),
            (&long_label, Err(NameError::LongLabel)),
            (&long, Err(NameError::Long)),
        ];
        for (name, want) in cases {
            assert_eq!(check_host(name), want, "{name:?}");
        }
    }

    #[test]
    fn names_that_are_read() {
        let cases: &[(&[u8], Result<(), NameError>)] = &[
            (b"*.harbour.mesh", Ok(())),
            (b"_etcd-server._tcp.mesh", Ok(())),
            (b"", Err(NameError::Empty)),
            (b"lis1.mesh.", Err(NameError::EmptyLabel)),
            (b"node_1 ", Err(NameError::Character)),
            (b"10.77.0.11", Err(NameError::Address)),
            (b"a\xff", Err(NameError::Character)),
        ];
        for (name, want) in cases {
            assert_eq!(check_presented(name), *want, "{:?}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn coverage() {
        let cases = [
            ("lis1.mesh", "LIS1.mesh", true),
            ("*.mesh", "lis1.mesh", true),
            ("*.mesh", "a.lis1.mesh", false),
            ("*.mesh", "mesh", false),
            ("lis1", "lis1.mesh", false),
        ];
        for (presented, host, want) in cases {
            assert_eq!(covers(presented, host), want, "{presented} {host}");
        }
    }
}
