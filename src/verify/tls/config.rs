//! What TLS needs to know of etcd's configuration file: its URLs, and where its certificates are.

use std::net::IpAddr;

use saphyr::{LoadableYamlNode, Yaml};

/// Where the configuration is.
pub(super) const PATH: &str = "/etc/etcd/etcd.yaml";

/// One listener's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Transport {
    pub certificate: Option<String>,
    pub key: Option<String>,
    pub authority: Option<String>,
}

/// The part of the file that matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// `listen-client-urls`, `advertise-client-urls`.
    pub client_urls: Vec<String>,
    /// `listen-peer-urls`, `initial-advertise-peer-urls`.
    pub peer_urls: Vec<String>,
    /// `initial-advertise-peer-urls` alone: what others dial.
    pub peer_dial: Vec<String>,
    /// `advertise-client-urls` alone.
    pub client_dial: Vec<String>,
    pub client: Transport,
    pub peer: Transport,
}

/// Reads the file.
///
/// # Errors
/// In words, when it is no YAML mapping.
pub(super) fn parse(text: &str) -> Result<Config, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| format!("it is no YAML: {error}"))?;
    let root = documents.first().filter(|root| root.is_mapping()).ok_or("it is no YAML mapping")?;
    let urls = |key: &str| -> Vec<String> {
        // etcd wants one text with commas; a list is the etcd family's finding.
        let text = root.as_mapping_get(key).and_then(|value| value.as_str()).unwrap_or_default();
        text.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect()
    };
    let transport = |key: &str| {
        let text = |name: &str| {
            root.as_mapping_get(key).and_then(|t| t.as_mapping_get(name)).and_then(|v| v.as_str()).map(str::to_owned)
        };
        Transport { certificate: text("cert-file"), key: text("key-file"), authority: text("trusted-ca-file") }
    };
    let (client_dial, peer_dial) = (urls("advertise-client-urls"), urls("initial-advertise-peer-urls"));
    let join = |listen: &str, dial: &[String]| urls(listen).into_iter().chain(dial.iter().cloned()).collect();
    Ok(Config {
        client_urls: join("listen-client-urls", &client_dial),
        peer_urls: join("listen-peer-urls", &peer_dial),
        peer_dial,
        client_dial,
        client: transport("client-transport-security"),
        peer: transport("peer-transport-security"),
    })
}

/// The host of an `https` URL, without brackets; `None` for other schemes and for what is no URL.
pub(super) fn https_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split('/').next()?;
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    (!host.is_empty()).then_some(host)
}

/// True for the addresses that stand for all of a machine's: nobody dials them.
pub(super) fn is_unspecified(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_files() {
        let config = parse(
            "listen-client-urls: \"https://10.77.0.11:2379, https://127.0.0.1:2379\"\n\
             advertise-client-urls: https://lis1:2379\n\
             peer-transport-security: {cert-file: /a.crt, key-file: /a.key, trusted-ca-file: /ca.crt}\n",
        )
        .unwrap();
        assert_eq!(config.client_urls, ["https://10.77.0.11:2379", "https://127.0.0.1:2379", "https://lis1:2379"]);
        assert_eq!(config.peer.key.as_deref(), Some("/a.key"));
        assert_eq!(config.client, Transport::default());
        assert!(parse("[1]").is_err() && parse("a: b: c").is_err() && parse("").is_err());
    }

    #[test]
    fn hosts() {
        let cases = [
            ("https://10.77.0.11:2380", Some("10.77.0.11")),
            ("https://[fd00::1]:2380/", Some("fd00::1")),
            ("https://lis1.mesh", Some("lis1.mesh")),
            ("http://lis1.mesh:2380", None),
            ("https://:2380", None),
        ];
        for (url, want) in cases {
            assert_eq!(https_host(url), want, "{url}");
        }
        assert!(is_unspecified("0.0.0.0") && is_unspecified("::") && !is_unspecified("lis1"));
    }
}
