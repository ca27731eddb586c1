//! What templates see.
//!
//! | variable | fields |
//! |---|---|
//! | `mesh` | `name domain topology network version target sites` (sorted names) |
//! | `image` | `id version base` |
//! | `profile` | `name part runs_registry overlays` |
//! | `nodes`, `voters` | lists of `name fqdn site address part profile runs_registry loopback peer_url client_url` |
//! | `parameters` | of the profile's overlays, `-` written as `_` |
//! | `node` | as in `nodes`, and `services` (`name port data_set unit`), `listen_client_urls`, `metrics_url` |
//! | `registry` | `token generation cluster_id initial_cluster state endpoints heartbeat_ms election_ms quota_bytes lease_s renew_s health_s renew_before_s` |
//! | `pki` | `client_authority peer_authority not_before not_after`, and `client`, `server`, `peer` with `certificate key` |
//!
//! `node`, `registry` and `pki` are one node's own: a template that uses one of them goes into the node's part of the
//! image. `pki.server` and `pki.peer` exist only where etcd runs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tera::Context;

use crate::declaration::{Mesh, Node, Part, Profile, Value};
use crate::etcd::birth::{Birth, Entrance};
use crate::etcd::urls::{METRICS_URL, client_url, peer_url};
use crate::finding::Failure;
use crate::layout::lease;
use crate::pki::{Leaf, NodePki, Use};

/// Variables that make a template one node's own.
pub const NODE_VARIABLES: [&str; 3] = ["node", "registry", "pki"];

/// The loopback address on which a node's own programs reach its registry.
const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// How often a node keeps its lease alive.
const RENEW: Duration = Duration::from_secs(10);

/// The longest time between two reports of a node's health.
const HEALTH: Duration = Duration::from_secs(300);

fn metrics_url(address: IpAddr) -> String {
    format!("http://{}", std::net::SocketAddr::new(address, 2381))
}

/// Stands where a key would, when only the public side of the store is read.
pub const NO_KEY: &str = "(the private key was not read)\n";

/// `IMAGE_ID` (os-release(5)): what all nodes of a profile have in common.
pub fn image_id(mesh: &Mesh, profile: &str) -> String {
    format!("{}-{profile}", mesh.name.value)
}

fn insert(context: &mut Context, name: &'static str, value: &Json) -> Result<(), Failure> {
    let value = tera::Value::try_from_serializable(value).map_err(|e| Failure::new(format!("`{name}`: {e}")))?;
    context.insert_value(name, value);
    Ok(())
}

/// What is the same for all nodes of a profile.
///
/// # Errors
/// When a value has no form for templates.
pub fn profile(mesh: &Mesh, profile: &Profile) -> Result<Context, Failure> {
    let mut context = Context::new();
    let sites: Vec<&String> = mesh.sites.keys().collect();
    let mesh_values = json!({
        "name": *mesh.name, "domain": *mesh.domain, "topology": *mesh.topology, "network": mesh.network.to_string(),
        "version": *mesh.image.version, "target": mesh.image.target, "sites": sites,
    });
    insert(&mut context, "mesh", &mesh_values)?;
    let image = json!({
        "id": image_id(mesh, &profile.name), "version": *mesh.image.version, "base": *mesh.base.name,
    });
    insert(&mut context, "image", &image)?;
    let overlays: Vec<&str> = profile.overlays.iter().map(|overlay| overlay.value.as_str()).collect();
    let part = profile.part.value;
    let own = json!({
        "name": *profile.name, "part": part, "runs_registry": part.runs_registry(), "overlays": overlays,
    });
    insert(&mut context, "profile", &own)?;
    let nodes: Vec<Json> = mesh.nodes.values().map(|node| node_fields(mesh, node)).collect();
    insert(&mut context, "nodes", &Json::Array(nodes))?;
    let voters: Vec<Json> = mesh.registry_nodes().map(|node| node_fields(mesh, node)).collect();
    insert(&mut context, "voters", &Json::Array(voters))?;
    insert(&mut context, "parameters", &parameters(mesh, profile, None))?;
    Ok(context)
}

/// Adds what is one node's own.
///
/// `pki` is [`pki_values`] or [`sample_pki`].
///
/// # Errors
/// When a value has no form for templates.
pub fn node(
    context: &mut Context,
    mesh: &Mesh,
    node: &Node,
    birth: &Birth,
    entrance: &Entrance,
    pki: &Json,
) -> Result<(), Failure> {
    insert(context, "node", &node_values(mesh, node))?;
    insert(context, "parameters", &parameters(mesh, mesh.profile_of(node), Some(node)))?;
    let endpoints: Vec<String> = mesh.registry_nodes().map(|n| client_url(*n.address)).collect();
    let timing = mesh.timing();
    let registry = json!({
        "token": birth.token, "generation": birth.generation, "cluster_id": birth.cluster_id,
        "initial_cluster": entrance.initial_cluster(birth), "state": entrance.state(), "endpoints": endpoints,
        "heartbeat_ms": timing.heartbeat.as_millis() as u64, "election_ms": timing.election.as_millis() as u64,
        "quota_bytes": *mesh.registry.quota,
        "lease_s": lease::ttl(RENEW, timing.election).as_secs(), "renew_s": RENEW.as_secs(), "health_s": HEALTH.as_secs(), "renew_before_s": mesh.pki.renew_before.value.as_secs(),
    });
    insert(context, "registry", &registry)?;
    insert(context, "pki", pki)
}

fn node_fields(mesh: &Mesh, node: &Node) -> Json {
    let part = mesh.part_of(node);
    let mut fields = json!({
        "name": *node.name, "fqdn": mesh.fqdn(node), "site": *node.site, "address": *node.address,
        "loopback": node.address.is_loopback(), "part": part, "profile": *node.profile,
        "runs_registry": part.runs_registry(),
    });
    if part.runs_registry() {
        fields["peer_url"] = json!(peer_url(*node.address));
        fields["client_url"] = json!(client_url(*node.address));
    }
    fields
}

fn node_values(mesh: &Mesh, node: &Node) -> Json {
    let mut values = node_fields(mesh, node);
    let services: Vec<Json> = node
        .services
        .values()
        .map(|s| json!({"name": *s.name, "port": *s.port, "data_set": s.data_set.as_ref().map(|d| &d.value), "unit": s.unit.as_ref().map(|u| &u.value)}))
        .collect();
    values["services"] = Json::Array(services);
    if mesh.part_of(node).runs_registry() {
        // Nodes on loopback addresses may share one network namespace: nothing of theirs on 127.0.0.1 then.
        let (listen, metrics) = match *node.address {
            own if own.is_loopback() => (vec![client_url(own)], metrics_url(own)),
            own => (vec![client_url(own), client_url(LOCAL)], METRICS_URL.to_owned()),
        };
        values["listen_client_urls"] = json!(listen);
        values["metrics_url"] = json!(metrics);
    }
    values
}

/// Defaults of the overlays, then the profile's values, then the node's.
fn parameters(mesh: &Mesh, profile: &Profile, node: Option<&Node>) -> Json {
    let mut values: BTreeMap<String, &Value> = BTreeMap::new();
    let key = |name: &str| name.replace('-', "_");
    let overlays = profile.overlays.iter().filter_map(|name| mesh.overlays.get(&name.value));
    for parameter in overlays.flat_map(|o| o.manifest.parameters.values()) {
        if let Some(default) = &parameter.default {
            values.insert(key(&parameter.name), default);
        }
    }
    for (name, value) in profile.parameters.iter().chain(node.into_iter().flat_map(|n| &n.parameters)) {
        values.insert(key(name), value);
    }
    json!(values)
}

/// The node's certificates and keys.
///
/// # Errors
/// When a certificate cannot be read.
pub fn pki_values(pki: &NodePki) -> Result<Json, Failure> {
    let leaves: Vec<&Leaf> =
        [Some(&pki.client), pki.server.as_ref(), pki.peer.as_ref()].into_iter().flatten().collect();
    let mut values = json!({"client_authority": pki.client_authority_pem, "peer_authority": pki.peer_authority_pem});
    let (mut not_before, mut not_after) = (i64::MIN, i64::MAX);
    for leaf in leaves {
        let (begin, end) = validity(leaf)?;
        not_before = not_before.max(begin);
        not_after = not_after.min(end);
        let key = leaf.key_pem.as_ref().map_or(NO_KEY, |key| key.as_str());
        values[name_of(leaf.purpose)] = json!({"certificate": leaf.certificate_pem, "key": key});
    }
    values["not_before"] = json!(not_before);
    values["not_after"] = json!(not_after);
    Ok(values)
}

/// Begin and end, seconds since 1970.
fn validity(leaf: &Leaf) -> Result<(i64, i64), Failure> {
    let name = name_of(leaf.purpose);
    let (_, certificate) = x509_parser::parse_x509_certificate(&leaf.certificate_der)
        .map_err(|e| Failure::new(format!("cannot read the {name} certificate: {e}")))?;
    let validity = certificate.validity();
    Ok((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// The word for a use, as templates write it.
pub fn name_of(purpose: Use) -> &'static str {
    match purpose {
        Use::Client => "client",
        Use::Server => "server",
        Use::Peer => "peer",
    }
}

/// A key that exists only to see into which file it is rendered.
pub fn sample_key(purpose: Use) -> String {
    format!("(sample of the {} key)\n", name_of(purpose))
}

/// Values of the same shape as [`pki_values`]: a template can be tried without a store.
pub fn sample_pki(part: Part) -> Json {
    let leaf = |purpose| json!({"certificate": "(sample)\n", "key": sample_key(purpose)});
    let mut values = json!({
        "client_authority": "(sample)\n", "peer_authority": "(sample)\n", "not_before": 0, "not_after": 1,
        "client": leaf(Use::Client),
    });
    if part.runs_registry() {
        values["server"] = leaf(Use::Server);
        values["peer"] = leaf(Use::Peer);
    }
    values
}
