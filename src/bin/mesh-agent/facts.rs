//! `/etc/mesh/node.toml`: what this node is, as `fitout build` rendered it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fitout::layout::{CertificateUse, Label};
use fitout::link::Credentials;
use serde::Deserialize;

/// What this node is.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Name of the mesh.
    pub mesh: Label,
    /// Name of the node.
    pub node: Label,
    /// Its site.
    pub site: Label,
    /// Its address in the mesh.
    pub address: IpAddr,
    /// Clients of etcd ask these, this node's own member first.
    pub endpoints: Vec<String>,
    /// `host:port` of the metrics listener of this node's etcd, where it has one.
    pub etcd: Option<String>,
    /// TTL of the lease.
    pub lease: Duration,
    /// How often the lease is renewed, and everything looked at.
    pub renew: Duration,
    /// The longest time between two reports of health.
    pub health: Duration,
    /// A certificate with less left than this is a warning.
    pub renew_before: Duration,
    /// The node keeps its own time.
    pub own_clock: bool,
    /// What the node offers.
    pub services: BTreeMap<Label, Service>,
    /// The node's certificates.
    pub certificates: Vec<(CertificateUse, PathBuf)>,
    /// Authority, certificate and key with which it asks the registry.
    pub credentials: [PathBuf; 3],
}

/// A service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// TCP port.
    pub port: NonZeroU16,
    /// The data set that it is a replica of.
    pub data_set: Option<Label>,
    /// The unit that must be active.
    pub unit: Option<String>,
}

/// The file. Keys that this program does not use are the business of others.
#[derive(Deserialize)]
struct File {
    schema: u32,
    mesh: Mesh,
    node: Node,
    registry: Registry,
    announce: Announce,
    pki: Pki,
    #[serde(default)]
    service: BTreeMap<String, FileService>,
}

#[derive(Deserialize)]
struct Mesh {
    name: String,
}

#[derive(Deserialize)]
struct Node {
    name: String,
    site: String,
    address: IpAddr,
}

#[derive(Deserialize)]
struct Registry {
    endpoints: Vec<String>,
    metrics: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Announce {
    lease: u64,
    renew: u64,
    health: u64,
    own_clock: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Pki {
    client_authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    renew_before: u64,
    server: Option<PathBuf>,
    peer: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct FileService {
    port: NonZeroU16,
    data_set: Option<String>,
    unit: Option<String>,
}

/// Reads the facts and tries the certificates.
///
/// # Errors
/// In words, with the file.
pub fn load(path: &Path) -> Result<(Facts, Credentials), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let facts = parse(&text).map_err(|why| format!("{} cannot be used: {why}", path.display()))?;
    let given = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let read = |path: &Path| {
        let path = handed_over(path, given.as_deref());
        let bytes = std::fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        if bytes.is_empty() { Err(format!("{} is empty", path.display())) } else { Ok(bytes) }
    };
    let [authority, certificate, key] = &facts.credentials;
    let credentials = Credentials { authority: read(authority)?, certificate: read(certificate)?, key: read(key)? };
    Ok((facts, credentials))
}

/// The file that the service manager handed over under the same name, else the file itself (systemd.exec(5),
/// `LoadCredential=`): the key in /etc is root's.
pub fn handed_over(path: &Path, directory: Option<&Path>) -> PathBuf {
    let given = directory.zip(path.file_name()).map(|(directory, name)| directory.join(name));
    given.filter(|given| given.exists()).unwrap_or_else(|| path.to_owned())
}

/// Reads the text.
///
/// # Errors
/// In words.
pub fn parse(text: &str) -> Result<Facts, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string().trim().replace('\n', "; "))?;
    if file.schema != 1 {
        return Err(format!("it has schema {}, and this program reads schema 1", file.schema));
    }
    let label = |what: &str, text: &str| text.parse::<Label>().map_err(|e| format!("{what}: {e}"));
    let node = label("node.name", &file.node.name)?;
    let Announce { lease, renew, health, own_clock } = file.announce;
    if renew == 0 || lease < renew.saturating_mul(3) {
        return Err(format!("announce.lease is {lease} s: less than three renewals of {renew} s"));
    }
    if file.registry.endpoints.is_empty() {
        return Err("registry.endpoints is empty".to_owned());
    }
    let etcd = match file.registry.metrics.as_deref().map(|url| (url, url.strip_prefix("http://"))) {
        None => None,
        Some((_, Some(address))) => Some(address.trim_end_matches('/').to_owned()),
        Some((url, None)) => return Err(format!("registry.metrics is `{url}`, not `http://ADDRESS:PORT`")),
    };
    let mut services = BTreeMap::new();
    for (name, service) in file.service {
        let data_set = service.data_set.map(|set| label(&format!("service.{name}.data-set"), &set)).transpose()?;
        let name = label("service", &name)?;
        services.insert(name, Service { port: service.port, data_set, unit: service.unit });
    }
    let pki = file.pki;
    let certificates = [
        (CertificateUse::Client, Some(pki.certificate.clone())),
        (CertificateUse::Server, pki.server),
        (CertificateUse::Peer, pki.peer),
    ];
    Ok(Facts {
        mesh: label("mesh.name", &file.mesh.name)?,
        endpoints: in_order(file.registry.endpoints, file.node.address, &node),
        node,
        site: label("node.site", &file.node.site)?,
        address: file.node.address,
        etcd,
        lease: Duration::from_secs(lease),
        renew: Duration::from_secs(renew),
        health: Duration::from_secs(health),
        renew_before: Duration::from_secs(pki.renew_before),
        own_clock,
        services,
        certificates: certificates.into_iter().filter_map(|(purpose, path)| Some((purpose, path?))).collect(),
        credentials: [pki.client_authority, pki.certificate, pki.key],
    })
}

/// This node's own member first; the others from a place that differs from node to node, so that not all ask the same one.
fn in_order(mut endpoints: Vec<String>, own: IpAddr, node: &Label) -> Vec<String> {
    let sum = node.as_str().bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let start = sum % endpoints.len().max(1);
    endpoints.rotate_left(start);
    let host = if own.is_ipv6() { format!("//[{own}]:") } else { format!("//{own}:") };
    endpoints.sort_by_key(|endpoint| !endpoint.contains(&host));
    endpoints
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Facts of a voter with two services.
    pub const TEXT: &str = r#"
schema = 1
[mesh]
name = "harbour"
domain = "harbour.mesh"
[node]
name = "lis1"
site = "lisbon"
address = "10.77.0.11"
[registry]
generation = 1
endpoints = ["https://10.77.0.13:2379", "https://10.77.0.12:2379", "https://10.77.0.11:2379"]
metrics = "http://127.0.0.1:2381"
[announce]
lease = 30
renew = 10
health = 300
own-clock = true
[pki]
client-authority = "/etc/mesh/pki/client-ca.crt"
certificate = "/etc/mesh/pki/client.crt"
key = "/etc/mesh/pki/client.key"
renew-before = 2592000
server = "/etc/etcd/pki/server.crt"
peer = "/etc/etcd/pki/peer.crt"
[service."postgres"]
port = 5432
data-set = "orders"
unit = "postgresql@17-main.service"
[service."web"]
port = 443
"#;

    #[test]
    fn the_rendered_file_is_read() {
        let facts = parse(TEXT).unwrap();
        assert_eq!(facts.endpoints[0], "https://10.77.0.11:2379");
        assert_eq!(facts.etcd.as_deref(), Some("127.0.0.1:2381"));
        assert_eq!(facts.services.len(), 2);
        assert_eq!(facts.services["postgres"].data_set.as_ref().map(Label::as_str), Some("orders"));
        assert_eq!(facts.certificates.len(), 3);
    }

    /// What `make golden` keeps for the shipped overlays is what this program reads.
    #[test]
    fn what_fitout_renders_is_read() {
        for (name, text, services, certificates) in [
            ("lis1", include_str!("../../../tests/golden/overlay/lis1/etc/mesh/node.toml"), 1, 3),
            ("mad1", include_str!("../../../tests/golden/overlay/mad1/etc/mesh/node.toml"), 0, 3),
            ("edge1", include_str!("../../../tests/golden/overlay/edge1/etc/mesh/node.toml"), 0, 1),
        ] {
            let facts = parse(text).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!((facts.services.len(), facts.certificates.len()), (services, certificates), "{name}");
            assert_eq!((facts.lease.as_secs(), facts.renew.as_secs(), facts.health.as_secs()), (30, 10, 300), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        for (from, to, says) in [
            ("schema = 1", "schema = 2", "it has schema 2, and this program reads schema 1"),
            ("name = \"lis1\"", "name = \"Lis 1\"", "node.name: `Lis 1` is no name"),
            ("renew = 10", "renew = 11", "announce.lease is 30 s: less than three renewals of 11 s"),
            ("renew = 10", "renew = 0", "three renewals of 0 s"),
            ("port = 443", "port = 0", "invalid value"),
            ("metrics = \"http:", "metrics = \"https:", "registry.metrics is `https://127.0.0.1:2381`"),
            ("lease = 30", "", "missing field `lease`"),
            ("data-set = \"orders\"", "data-set = \"Orders\"", "service.postgres.data-set: `Orders` is no name"),
        ] {
            let why = parse(&TEXT.replace(from, to)).err().unwrap_or_default();
            assert!(why.contains(says), "{from} -> {to}: {why}");
        }
    }

    #[test]
    fn what_the_manager_hands_over_is_taken_before_the_file() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("client.key"), "key").unwrap();
        let of = |path: &str| handed_over(Path::new(path), Some(directory.path()));
        assert_eq!(of("/etc/mesh/pki/client.key"), directory.path().join("client.key"));
        assert_eq!(of("/etc/etcd/pki/peer.crt"), Path::new("/etc/etcd/pki/peer.crt"));
    }
}
