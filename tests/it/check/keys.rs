//! What check says of the registry's keys: a bootstrapped registry is clean, and each fault that a hand can put in with
//! etcdctl has its code, beside nothing else.

use crate::common::Said;

use super::registry::{NODES, Registry};

const IMAGE: &str = "5c1f00000000000000000000000000000000000000000000000000000000beef";

/// A command of etcdctl with the operator's certificate.
fn etcdctl(registry: &Registry, arguments: &[&str]) -> Said {
    let pki = registry.mesh.join("pki");
    let file = |path: &str| pki.join(path).to_str().expect("utf-8").to_owned();
    let output = registry
        .within(&["etcdctl", "--endpoints=https://127.77.0.11:2379"])
        .arg(format!("--cacert={}", registry.file("lis1", "etc/mesh/pki/client-ca.crt").display()))
        .arg(format!("--cert={}", file("operators/keys.crt")))
        .arg(format!("--key={}", file("operators/keys.key")))
        .args(arguments)
        .env("ETCDCTL_API", "3")
        .output()
        .expect("etcdctl is there: Debian's package etcd-client");
    Said::from(output)
}

fn fitout(registry: &Registry, arguments: &[&str]) -> Said {
    let mut command = registry.within(&[env!("CARGO_BIN_EXE_fitout")]);
    command.args(arguments).env("FITOUT_CACHE", crate::common::cache()).env("NO_COLOR", "1");
    Said::from(command.output().expect("the program starts"))
}

/// The lease of a node, as its announcer would have one.
fn lease(registry: &Registry) -> String {
    let said = etcdctl(registry, &["lease", "grant", "3600"]).exits(0);
    said.stdout.split_whitespace().nth(1).expect("an id").to_owned()
}

/// What the announcers of healthy nodes write, under one lease each.
fn announce(registry: &Registry) {
    let now = time::OffsetDateTime::now_utc().replace_nanosecond(0).expect("whole seconds");
    let now = now.format(&time::format_description::well_known::Rfc3339).expect("a time");
    for (node, address) in NODES {
        let lease = format!("--lease={}", lease(registry));
        let put = |key: &str, value: &str| {
            etcdctl(registry, &["put", &lease, &format!("/mesh/live/{node}/{key}"), value]).exits(0);
        };
        put(
            "here",
            &format!(
                r#"{{"v":1,"boot_id":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","image":"{IMAGE}","generation":1,"since":"{now}","agent":"test"}}"#
            ),
        );
        put("health", &format!(r#"{{"v":1,"state":"ok","checks":{{}},"at":"{now}"}}"#));
        let site = match node {
            "lis1" => "lisbon",
            "por1" => "porto",
            _ => continue,
        };
        let claim = format!(r#"{{"v":1,"node":"{node}","since":"{now}","generation":1}}"#);
        etcdctl(registry, &["put", &format!("/mesh/claim/orders/{site}"), &claim]).exits(0);
        put(
            "service/postgres",
            &format!(r#"{{"v":1,"host":"{address}","port":5432,"priority":10,"weight":100,"ready":true}}"#),
        );
    }
}

/// Faults by hand: etcdctl's words, and what check of `lis1` must say.
type Fault<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

const HERE: &str = "/mesh/live/por1/here";
const CLAIM: &str = "/mesh/claim/orders/lisbon";

#[rustfmt::skip]
const FAULTS: &[Fault<'_>] = &[
    (&["put", "/mesh/want/nodes/lis1", "{}"], &[("live-key-unknown", "/mesh/want/nodes/lis1")]),
    (&["put", "/mesh/live/lis1/healht", "{}"], &[("live-key-unknown", "/mesh/live/lis1/healht")]),
    (&["put", "/mesh/want/service/postgres", "\u{feff}{}"], &[("live-value-bad", "not JSON"), ("live-want-reference", "postgres")]),
    (&["put", "/mesh/want/site/madrid", "[]"], &[("live-value-bad", "a list"), ("live-want-reference", "/mesh/want/site/madrid")]),
    (&["put", "/app/cart/7", "apples"], &[("live-foreign-keys", "/app/cart/7")]),
    (&["put", "/mesh/live/por1/health", r#"{"v":1,"state":"ok","checks":{},"at":"2026-01-01T00:00:00Z"}"#], &[("live-key-lease", "/mesh/live/por1/health"), ("live-health-old", "min old")]),
    (&["put", "/mesh/ops/old1/cert/peer", r#"{"v":1,"serial":"4f","not_after":"2099-01-01T00:00:00Z","fingerprint_sha256":"5c1f00000000000000000000000000000000000000000000000000000000beef"}"#], &[("live-orphan", "old1")]),
    (&["del", HERE], &[("live-node-away", "por1")]),
    (&["del", CLAIM], &[("live-service-unclaimed", "nobody")]),
    (&["put", CLAIM, r#"{"v":1,"node":"mad1","since":"2026-01-01T00:00:00Z","generation":1}"#], &[("live-claim-foreign", "`mad1` is in site `madrid`"), ("live-service-unclaimed", "`mad1`"), ("live-placement", "claim transfer orders lisbon lis1")]),
    (&["del", "/mesh/schema"], &[("live-schema", "not there")]),
    (&["put", "/mesh/schema", r#"{"v":1,"schema":7,"least_reader":7,"least_writer":7,"written_by":"fitout 9"}"#], &[("live-schema", "update fitout")]),
    (&["del", "/mesh/identity"], &[("live-identity-missing", "/mesh/identity")]),
    (&["del", "/mesh/want/node/lis1"], &[("live-want-missing", "lis1"), ("live-want-reference", "/mesh/want/node/lis1"), ("live-orphan", "lis1"), ("live-claim-foreign", "no node `lis1`")]),
];

/// One key with its lease, so that it can be put back as it was.
fn saved(registry: &Registry, key: &str) -> Option<(String, String)> {
    let said = etcdctl(registry, &["get", key, "-w", "json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    let lease = json["kvs"][0]["lease"].as_u64().unwrap_or_default();
    let value = etcdctl(registry, &["get", key, "--print-value-only"]).exits(0).stdout;
    (!json["kvs"].is_null()).then(|| (value.trim_end_matches('\n').to_owned(), format!("--lease={lease:x}")))
}

#[test]
fn a_bootstrapped_registry_is_clean_and_every_fault_by_hand_is_told() {
    let mut registry = Registry::new("trixie");
    registry.start_all();
    registry.mended("start");
    if !registry.mesh.join("pki/operators/keys.crt").exists() {
        fitout(&registry, &["pki", "issue", "--operator", "keys"]).exits(0);
    }
    registry.finds("nobody has written anything", "lis1", &[], &[("live-not-bootstrapped", "registry bootstrap")]);
    etcdctl(&registry, &["put", "/app", "x"]).exits(0);
    registry.finds(
        "keys of somebody else",
        "lis1",
        &[],
        &[("live-not-bootstrapped", ""), ("live-foreign-keys", "1 key")],
    );
    etcdctl(&registry, &["del", "/app"]).exits(0);

    fitout(&registry, &["registry", "bootstrap", "--credentials", "pki/operators/keys", "--yes"]).exits(0);
    let waiting = [("live-node-away", "mad1, por1"), ("live-service-few", "postgres"), ("live-replicas-few", "1 of 2")];
    registry.finds("nobody has announced anything", "lis1", &[], &waiting);
    announce(&registry);
    let credentials = ["--credentials", "pki/operators/keys"];
    for (node, _) in NODES {
        for more in [&[][..], &credentials] {
            let found = registry.finds("all is well", node, more, &[]);
            assert!(found.iter().all(|f| f.code != "live-not-bootstrapped"), "{found:#?}");
        }
    }
    registry.finds("few writes", "lis1", &["--write-rate", "10"], &[]);

    for (words, want) in FAULTS {
        let key = words[1];
        let before = saved(&registry, key);
        etcdctl(&registry, words).exits(0);
        let what = words.join(" ");
        registry.finds(&what, "lis1", &credentials, want);
        match before {
            Some((value, lease)) if lease != "--lease=0" => etcdctl(&registry, &["put", &lease, key, &value]),
            Some((value, _)) => etcdctl(&registry, &["put", key, &value]),
            None => etcdctl(&registry, &["del", key]),
        }
        .exits(0);
        registry.finds(&format!("after `{what}` all is well"), "lis1", &credentials, &[]);
    }

    // Who may do what: a node that etcd does not know, and nobody who is asked.
    etcdctl(&registry, &["user", "revoke-role", "node:lis1", "node:lis1"]).exits(0);
    registry.finds("no role", "lis1", &[], &[("live-keys-denied", "permission denied")]);
    fitout(&registry, &["registry", "bootstrap", "--credentials", "pki/operators/keys", "--yes"]).exits(0);
    registry.finds("the role is back", "lis1", &[], &[]);
    etcdctl(&registry, &["auth", "disable"]).exits(0);
    registry.finds("access control off", "lis1", &[], &[("live-access-open", "turns access control on")]);
    registry.finds("and seen with an operator's certificate", "lis1", &credentials, &[("live-access-open", "")]);
}
