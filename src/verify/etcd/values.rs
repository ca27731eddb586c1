//! Values of the configuration agree with the image's own record, and with the security of the mesh.

use std::collections::BTreeMap;

use super::{Facts, rule};
use crate::etcd::birth::{self, Birth, ClusterState};
use crate::etcd::config::Value;
use crate::etcd::keys::{TRANSPORTS, reading};
use crate::etcd::start::{Retention, SUITES, With, retention};
use crate::etcd::urls::{Url, client_url, peer_url};
use crate::etcd::versions::Version;
use crate::finding::{Finding, Rule, Severity};
use crate::image::manifest::Manifest;
use crate::systemd::search::follow;
use crate::tree::{Kind, TreePath};

/// `name`.
pub static NAME: Rule = rule(
    "etcd-name",
    Severity::Error,
    "etcd's `name` is not the node's",
    "\
`name` picks this member's line in `initial-cluster`, and is what people see in the member list. Two members of one name
confuse etcd. Names do not enter the ids.",
);

/// `initial-cluster` and its like.
pub static CLUSTER: Rule = rule(
    "etcd-cluster",
    Severity::Error,
    "`initial-cluster`, its token or its state is not what the image was born with",
    "\
Peer URLs and token make the ids of members and cluster (SHA-1 over both), so one node with another list or token founds a
cluster of its own, and the others answer `request cluster ID mismatch`. They are read only while the data directory is
empty: a mistake that has been started once stays. A node that joins a living cluster has `existing`, and the list of the
living with itself.",
);

/// Computed ids.
pub static IDS: Rule = rule(
    "etcd-ids",
    Severity::Error,
    "the ids that follow from the configuration are not those of the birth record",
    "\
Cluster and member ids are computed from the peer URLs and the token as etcd does it, and compared with the birth record
that the image carries. `fitout check` compares the same ids with the living cluster.",
);

/// URLs and the node's address.
pub static ADDRESS: Rule = rule(
    "etcd-address",
    Severity::Error,
    "a URL of the configuration is not at the node's declared address",
    "\
Others dial `https://<address>:2380` and `:2379`, and certificates name that address. Listeners may be at loopback too.",
);

/// http.
pub static TLS_OFF: Rule = rule(
    "etcd-tls-off",
    Severity::Error,
    "a peer or client URL is plain http",
    "\
With an `http` listener and certificates configured etcd only warns, and serves without TLS to everybody.",
);

/// Client certificates.
pub static CLIENT_AUTH: Rule = rule(
    "etcd-client-auth",
    Severity::Error,
    "a listener does not ask for certificates of the right authority",
    "\
Both `client-transport-security` and `peer-transport-security` need `client-cert-auth: true` and a `trusted-ca-file`, and not
`auto-tls`, whose certificates nobody checks.",
);

/// Certificate files.
pub static FILES: Rule = rule(
    "etcd-file-missing",
    Severity::Error,
    "a certificate or key of the configuration is not in the image",
    "etcd exits when a file of its TLS configuration is missing; 3.4 does so after it has written its first log.",
);

/// Metrics.
pub static METRICS: Rule = rule(
    "etcd-metrics",
    Severity::Error,
    "there is no metrics listener on loopback, or one beyond it",
    "\
The metrics listener serves `/health` and all metrics over plain http without authentication. On loopback it is how the
node's own tools ask for health without a certificate; beyond loopback it tells everybody.",
);

/// Quota.
pub static QUOTA: Rule = rule(
    "etcd-quota",
    Severity::Warning,
    "the backend's quota is missing, off or larger than etcd advises",
    "\
Without a quota of its own etcd uses 2 GiB; a negative one switches the limit off; above 8 GiB etcd warns at the start.
When the quota is used up, the cluster refuses writes until an operator compacts, defragments and disarms the alarm.",
);

/// The gateway.
pub static GATEWAY: Rule = rule(
    "etcd-gateway",
    Severity::Error,
    "the gRPC gateway is on",
    "\
The gateway dials the client listener with the server certificate, which is for servers only: errors from the first
seconds on. It also refuses every certificate with a common name once access control is on, so nothing of a mesh can use
it.",
);

/// Defaults that differ.
pub static DEFAULTS: Rule = rule(
    "etcd-default-differs",
    Severity::Warning,
    "a key is left to a default that differs between versions of etcd",
    "\
In a configuration file 3.4 has `pre-vote` false, `enable-grpc-gateway` false, `logger` capnslog and no auto-compaction; 3.5 has
`pre-vote` true, `enable-grpc-gateway` true and `logger` zap; 3.6 has `snapshot-count` 10 000 in place of 100 000. What is written
out stays the same across an upgrade.",
);

/// Compaction.
pub static COMPACTION: Rule = rule(
    "etcd-compaction",
    Severity::Warning,
    "old revisions are never compacted, whatever the setting looks like",
    "\
Without compaction the history of every key stays, until the quota is used up and the cluster refuses writes. A retention of 0 is
off. Until 3.5 a number without `auto-compaction-mode` does nothing, without a word. In mode `revision` a duration such as `1h` is
taken as that many nanoseconds, and so as 3 600 000 000 000 revisions (`embed/etcd.go` parseCompactionRetention).",
);

/// Cipher suites.
pub static CIPHERS: Rule = rule(
    "etcd-ciphers",
    Severity::Warning,
    "`cipher-suites` has no suite for the mesh's certificates, or one that is broken",
    "\
`cipher-suites` is for TLS 1.2 only. The mesh's certificates are ECDSA, so a list of suites for RSA alone, such as that of etcd's
sample configuration, leaves clients with TLS 1.2 with `no cipher suite supported by both client and server`, while those with
TLS 1.3 connect. RC4 and 3DES are broken (RFC 7465, CVE-2016-2183). Leave the key out: Go's own list is good.",
);

/// A proxy.
pub static PROXY: Rule = rule(
    "etcd-proxy",
    Severity::Error,
    "etcd would run as a proxy of etcd 2, and be no member",
    "\
3.4 and 3.5 read `proxy` from the file: with `on` or `readonly` they start a proxy for the API of etcd 2, which takes no part in the
registry. `discovery-fallback: proxy` does so where discovery fails.",
);

/// Never in an image.
pub static UNSAFE: Rule = rule(
    "etcd-unsafe",
    Severity::Error,
    "the configuration has a setting that loses data",
    "\
`force-new-cluster` throws away all other members at every start. `unsafe-no-fsync` acknowledges writes that are not on the
disk. `strict-reconfig-check: false` lets a member be added that takes the quorum away.",
);

/// Largest quota that etcd does not warn of, in bytes.
const LARGEST_QUOTA: i64 = 8 << 30;

/// Applies the rules.
pub(super) fn check(facts: &Facts, out: &mut Vec<Finding>) {
    name(facts, out);
    cluster(facts, out);
    ids(facts, out);
    urls(facts, out);
    transports(facts, out);
    metrics(facts, out);
    settings(facts, out);
}

fn name(facts: &Facts, out: &mut Vec<Finding>) {
    let name = facts.config.text("name");
    if name.as_deref() != Some(&facts.manifest.node) {
        let now = name.map_or_else(|| "missing".to_owned(), |n| format!("`{n}`"));
        let message = format!("`name` is {now}, and the node is `{}`", facts.manifest.node);
        out.push(facts.at_key(&NAME, None, "name", message));
    }
}

fn cluster(facts: &Facts, out: &mut Vec<Finding>) {
    let (config, born) = (facts.config, &facts.manifest.birth);
    let mut say = |key: &str, message: String| out.push(facts.at_key(&CLUSTER, None, key, message));
    let state = match facts.manifest.cluster_state {
        ClusterState::New => "new",
        ClusterState::Existing => "existing",
    };
    let written = config.text("initial-cluster-state");
    if written.as_deref() != Some(state) {
        let now = written.map_or_else(|| "missing".to_owned(), |s| format!("`{s}`"));
        say("initial-cluster-state", format!("`initial-cluster-state` is {now}, and the image is built as `{state}`"));
    }
    let token = config.text("initial-cluster-token");
    if token.as_deref() != Some(&born.token) {
        let now = token.map_or_else(|| "missing, so `etcd-cluster`".to_owned(), |t| format!("`{t}`"));
        say(
            "initial-cluster-token",
            format!("`initial-cluster-token` is {now}, and the birth record has `{}`", born.token),
        );
    }
    let members: BTreeMap<String, String> = config.initial_cluster().into_iter().collect();
    let own = members.get(&facts.manifest.node);
    if own.is_none() {
        say("initial-cluster", format!("`initial-cluster` lacks this node, `{}`", facts.manifest.node));
    }
    // A node that joins has the living list, which only the living cluster knows: here it is the one that was asked for.
    if facts.manifest.cluster_state == ClusterState::Existing {
        let (written, wanted) = (config.initial_cluster(), facts.manifest.initial_cluster.clone().unwrap_or_default());
        if written != wanted {
            let list = |members: &[(String, String)]| birth::initial_cluster(members.iter().map(|(n, u)| (n, u)));
            say(
                "initial-cluster",
                format!(
                    "`initial-cluster` is `{}`, and the image was built to join `{}`",
                    list(&written),
                    list(&wanted)
                ),
            );
        }
    }
    if facts.manifest.cluster_state == ClusterState::New && members != born.peers {
        for (name, url) in &born.peers {
            match members.get(name) {
                Some(written) if written == url => {}
                Some(written) => say(
                    "initial-cluster",
                    format!("`initial-cluster` has `{name}={written}`, and the birth record `{name}={url}`"),
                ),
                None if *name == facts.manifest.node => {}
                None => say("initial-cluster", format!("`initial-cluster` lacks `{name}={url}` of the birth record")),
            }
        }
        for (name, url) in members.iter().filter(|(name, _)| !born.peers.contains_key(*name)) {
            say("initial-cluster", format!("`initial-cluster` has `{name}={url}`, which is not in the birth record"));
        }
    }
    let advertised = config.urls("initial-advertise-peer-urls");
    if let Some(own) = own.filter(|own| advertised != [own.as_str()]) {
        let message =
            format!("`initial-advertise-peer-urls` is `{}`, and `initial-cluster` has `{own}`", advertised.join(","));
        say("initial-advertise-peer-urls", message);
    }
}

/// The birth record that the image carries is consistent in itself.
pub(super) fn ids_of_birth(manifest: &Manifest, out: &mut Vec<Finding>) {
    let written = &manifest.birth;
    let computed = Birth::of(written.generation, written.token.clone(), written.peers.clone());
    if computed != *written {
        let message = format!(
            "the birth record in the image has cluster id {}, and {} follows from its peers and token",
            written.cluster_id, computed.cluster_id
        );
        out.push(IDS.finding("birth record", message).help("build the image again"));
    }
    let token = format!("{}-g{}", manifest.mesh, written.generation);
    if written.token != token {
        let message =
            format!("the birth record's token is `{}`, and mesh and generation make `{token}`", written.token);
        out.push(IDS.finding("birth record", message).help("build the image again"));
    }
}

fn ids(facts: &Facts, out: &mut Vec<Finding>) {
    if facts.manifest.cluster_state == ClusterState::Existing {
        return;
    }
    let birth = &facts.manifest.birth;
    let token = facts.config.text("initial-cluster-token").unwrap_or_else(|| "etcd-cluster".to_owned());
    let computed = Birth::of(birth.generation, token, facts.config.initial_cluster().into_iter().collect());
    let own = |birth: &Birth| birth.member_ids.get(&facts.manifest.node).cloned().unwrap_or_else(|| "none".to_owned());
    let pairs =
        [("cluster", computed.cluster_id.clone(), birth.cluster_id.clone()), ("member", own(&computed), own(birth))];
    for (what, computed, wanted) in pairs {
        if computed != wanted {
            let message =
                format!("this configuration makes the {what} id {computed}, and the birth record has {wanted}");
            out.push(facts.at_key(&IDS, None, "initial-cluster", message));
        }
    }
}

fn urls(facts: &Facts, out: &mut Vec<Finding>) {
    let address = facts.manifest.address;
    let keys = [
        ("listen-peer-urls", peer_url(address), true),
        ("initial-advertise-peer-urls", peer_url(address), false),
        ("listen-client-urls", client_url(address), true),
        ("advertise-client-urls", client_url(address), false),
    ];
    for (key, wanted, listens) in keys {
        let list = facts.config.urls(key);
        for (text, url) in list.iter().filter_map(|text| Url::parse(text).ok().map(|url| (text, url))) {
            if !url.tls {
                out.push(
                    facts.at_key(&TLS_OFF, None, key, format!("`{key}` has `{text}`: plain http")).help("use `https`"),
                );
            }
            let local = listens && url.is_loopback();
            if !local && url.address() != Some(address) {
                let message = format!("`{key}` has `{text}`, and the node's address is {address}");
                out.push(facts.at_key(&ADDRESS, None, key, message));
            }
        }
        for text in list.iter().filter(|text| text.starts_with("unix")) {
            let message = format!("`{key}` has `{text}`, which only this machine reaches, without TLS");
            out.push(facts.at_key(&ADDRESS, None, key, message));
        }
        if !list.contains(&wanted) {
            out.push(facts.at_key(&ADDRESS, None, key, format!("`{key}` lacks `{wanted}`")));
        }
    }
}

fn transports(facts: &Facts, out: &mut Vec<Finding>) {
    for section in TRANSPORTS {
        let config = facts.config;
        let line = if config.entry(None, section).is_some() { config.line(None, section) } else { 1 };
        let mut say = |rule: &Rule, message: String| out.push(facts.finding(rule, line, message));
        if config.flag(Some(section), "client-cert-auth") != Some(true) {
            say(&CLIENT_AUTH, format!("`{section}` has not `client-cert-auth: true`"));
        }
        if config.flag(Some(section), "auto-tls") == Some(true) {
            say(&CLIENT_AUTH, format!("`{section}` has `auto-tls: true`"));
        }
        if config.text_in(section, "trusted-ca-file").is_none() {
            say(&CLIENT_AUTH, format!("`{section}` has no `trusted-ca-file`"));
        }
        for key in ["cert-file", "key-file", "trusted-ca-file", "client-cert-file", "client-key-file"] {
            let Some(path) = config.text_in(section, key) else { continue };
            let at = config.line(Some(section), key);
            if !path.starts_with('/') {
                out.push(facts.finding(&FILES, at, format!("`{key}` is `{path}`, which is not absolute")));
                continue;
            }
            let end = TreePath::parse(&path).ok().and_then(|p| follow(&facts.image.tree, &p));
            match end.and_then(|end| facts.image.tree.get(&end)).map(|e| (&e.kind, e.kind_name())) {
                Some((Kind::File(data), _)) if data.len > 0 => {}
                Some((Kind::File(_), _)) => out.push(facts.finding(&FILES, at, format!("{path} is empty"))),
                Some((_, kind)) => out.push(facts.finding(&FILES, at, format!("{path} is a {kind}"))),
                None => out.push(facts.finding(&FILES, at, format!("{path} is not in the image"))),
            }
        }
    }
}

fn metrics(facts: &Facts, out: &mut Vec<Finding>) {
    let key = "listen-metrics-urls";
    let list = facts.config.urls(key);
    if list.is_empty() {
        let message = "`listen-metrics-urls` is missing: health could be asked for only with a certificate";
        out.push(facts.at_key(&METRICS, None, key, message).help("set it to `http://127.0.0.1:2381`"));
    }
    for text in list.iter().filter(|text| Url::parse(text).is_ok_and(|url| !url.is_loopback())) {
        let message = format!("`{key}` has `{text}`, which others reach without a certificate");
        out.push(facts.at_key(&METRICS, None, key, message).help("set it to `http://127.0.0.1:2381`"));
    }
}

fn settings(facts: &Facts, out: &mut Vec<Finding>) {
    let config = facts.config;
    let quota = match config.whole("quota-backend-bytes") {
        None | Some(0) => Some("`quota-backend-bytes` is missing, so it is etcd's 2 GiB".to_owned()),
        Some(bytes) if bytes < 0 => Some("`quota-backend-bytes` is negative, which switches the limit off".to_owned()),
        Some(bytes) if bytes > LARGEST_QUOTA => {
            Some(format!("`quota-backend-bytes` is {bytes}, more than the 8 GiB that etcd advises"))
        }
        Some(_) => None,
    };
    out.extend(quota.map(|message| facts.at_key(&QUOTA, None, "quota-backend-bytes", message)));
    if config.flag(None, "enable-grpc-gateway") == Some(true) {
        let message = "`enable-grpc-gateway` is true";
        out.push(facts.at_key(&GATEWAY, None, "enable-grpc-gateway", message).help("set it to `false`"));
    }
    compaction(facts, out);
    ciphers(facts, out);
    for (key, words) in [("proxy", ["on", "readonly"]), ("discovery-fallback", ["proxy"; 2])] {
        let value = config.text(key).filter(|_| reading(facts.version, None, key).kind().is_some());
        if let Some(value) = value.filter(|value| words.contains(&value.as_str())) {
            out.push(facts.at_key(&PROXY, None, key, format!("`{key}` is `{value}`")).help("remove the key"));
        }
    }
    let differ = [
        "snapshot-count",
        "pre-vote",
        "enable-grpc-gateway",
        "logger",
        "auto-compaction-mode",
        "auto-compaction-retention",
        "strict-reconfig-check",
    ];
    for key in differ.into_iter().filter(|key| config.entry(None, key).is_none()) {
        out.push(facts.at_key(&DEFAULTS, None, key, format!("`{key}` is not written out")));
    }
    for (key, harmful) in [("force-new-cluster", true), ("unsafe-no-fsync", true), ("strict-reconfig-check", false)] {
        if config.flag(None, key) == Some(harmful) {
            out.push(facts.at_key(&UNSAFE, None, key, format!("`{key}` is {harmful}")));
        }
    }
    let data = config.text("data-dir");
    if data.as_deref() != Some(super::DATA) {
        let now = data.map_or_else(|| "missing".to_owned(), |d| format!("`{d}`"));
        out.push(facts.at_key(
            &super::data::DIRECTORY,
            None,
            "data-dir",
            format!("`data-dir` is {now}, not `{}`", super::DATA),
        ));
    }
}

fn compaction(facts: &Facts, out: &mut Vec<Finding>) {
    let key = "auto-compaction-retention";
    let Some(text) = facts.config.text(key) else { return };
    let always = if facts.version >= Version::new(3, 6, 0) { "periodic" } else { "" };
    let mode = facts.config.text("auto-compaction-mode").unwrap_or_else(|| always.to_owned());
    let message = match (retention(&text), mode.as_str()) {
        (Some(Retention::Number(0) | Retention::Seconds(0.0)), _) => {
            format!("`{key}` is `{text}`, which switches compaction off")
        }
        (Some(Retention::Number(_)), "") => format!("`{key}` is `{text}` without a mode, which does nothing"),
        (Some(Retention::Seconds(seconds)), "revision") => {
            format!("`{key}` is `{text}`: in mode `revision` that is {:.0} revisions", seconds * 1e9)
        }
        _ => return,
    };
    out.push(
        facts.at_key(&COMPACTION, None, key, message).help("set the mode to `periodic` and the retention to `1h`"),
    );
}

fn ciphers(facts: &Facts, out: &mut Vec<Finding>) {
    let key = "cipher-suites";
    let Some(Value::List(items)) = facts.config.entry(None, key).map(|entry| &entry.value) else { return };
    let names: Vec<&str> =
        items.iter().filter_map(|item| if let Value::Text(text) = item { Some(text.as_str()) } else { None }).collect();
    if names.is_empty() {
        return;
    }
    let mut say =
        |message: String| out.push(facts.at_key(&CIPHERS, None, key, message).help(format!("remove `{key}`")));
    if !SUITES.iter().any(|suite| suite.with == With::Ecdsa && names.contains(&suite.name)) {
        say(format!("`{key}` has no suite for ECDSA certificates, which the mesh's are"));
    }
    if let Some(broken) = names.iter().find(|name| name.contains("_RC4_") || name.contains("_3DES_")) {
        say(format!("`{key}` has `{broken}`, which is broken"));
    }
}
