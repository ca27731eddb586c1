//! A healthy registry's keys, and what each change of them makes the rules say.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::layout::contents::Item;
use crate::live::client::Items;
use crate::live::handshake::Kind;
use crate::live::keys::Outside;

/// 2026-11-30T12:00:00Z.
const NOW: i64 = 1_796_040_000;
const CLUSTER: Id = Id(0x00ab_2993_bab7_4d3e);

/// Two data sites and the arbiter's; `orders` is held in both, by `lis1` and `por1`.
#[rustfmt::skip]
const HEALTHY: &[(&str, &str)] = &[
    ("/mesh/identity", r#"{"v":1,"mesh":"harbour","uuid":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","generation":1,"token":"harbour-g1","cluster_id":"00ab2993bab74d3e","born":"2026-11-30T10:53:00Z"}"#),
    ("/mesh/schema", r#"{"v":1,"schema":1,"least_reader":1,"least_writer":1,"written_by":"fitout 0.1.0"}"#),
    ("/mesh/want/site/arbiter", r#"{"v":1,"kind":"arbiter","round_trip_ms":{}}"#),
    ("/mesh/want/site/lisbon", r#"{"v":1,"kind":"data","round_trip_ms":{"porto":30}}"#),
    ("/mesh/want/site/porto", r#"{"v":1,"kind":"data","round_trip_ms":{"lisbon":30}}"#),
    ("/mesh/want/node/arb1", r#"{"v":1,"site":"arbiter","part":"arbiter","address":"10.77.0.31","services":{}}"#),
    ("/mesh/want/node/lis1", r#"{"v":1,"site":"lisbon","part":"voter","address":"10.77.0.11","services":{"postgres":{"port":5432,"data_set":"orders"}}}"#),
    ("/mesh/want/node/lis2", r#"{"v":1,"site":"lisbon","part":"client","address":"10.77.0.12","services":{}}"#),
    ("/mesh/want/node/por1", r#"{"v":1,"site":"porto","part":"voter","address":"10.77.0.21","services":{"postgres":{"port":5432,"data_set":"orders"}}}"#),
    ("/mesh/want/quorum", r#"{"v":1,"topology":"quorum","voters":["arb1","lis1","por1"],"arbiters":["arb1"]}"#),
    ("/mesh/want/service/postgres", r#"{"v":1,"port":5432,"protocol":"tcp","least_count":1,"spread":"site"}"#),
    ("/mesh/want/data/orders", r#"{"v":1,"replicas":2,"spread":"site","nodes":["lis1","por1"],"never_on":["arbiter"]}"#),
    ("/mesh/claim/orders/lisbon", r#"{"v":1,"node":"lis1","since":"2026-11-30T10:53:00Z","generation":1}"#),
    ("/mesh/claim/orders/porto", r#"{"v":1,"node":"por1","since":"2026-11-30T10:53:00Z","generation":1}"#),
    ("/mesh/live/arb1/here", HERE),
    ("/mesh/live/lis1/here", HERE),
    ("/mesh/live/lis1/health", r#"{"v":1,"state":"ok","checks":{"etcd":{"state":"ok"}},"at":"2026-11-30T11:58:00Z"}"#),
    ("/mesh/live/lis1/service/postgres", r#"{"v":1,"host":"10.77.0.11","port":5432,"priority":10,"weight":100,"ready":true}"#),
    ("/mesh/live/lis2/here", HERE),
    ("/mesh/live/por1/here", HERE),
    ("/mesh/ops/lis1/cert/server", r#"{"v":1,"serial":"4f0011","not_after":"2031-11-30T10:53:00Z","fingerprint_sha256":"5c1f00000000000000000000000000000000000000000000000000000000beef"}"#),
];
const HERE: &str = r#"{"v":1,"boot_id":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","generation":1,"since":"2026-11-30T10:53:00Z","agent":"mesh-agent 0.1.0"}"#;

/// All that the rules look at, to be changed.
struct World {
    keys: Result<Keys, Trouble>,
    mine: Mine,
    node_sees_outside: Option<bool>,
    rate: Option<Rate>,
}

impl World {
    fn healthy() -> World {
        let entry = |(key, value): &(&str, &str)| Item {
            key: key.as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
            lease: if key.starts_with("/mesh/live/") { 7 } else { 0 },
            revision: 2,
        };
        let postgres = Service { port: 5432, data_set: Some("orders".into()) };
        World {
            keys: Ok(Keys { mesh: Items { items: HEALTHY.iter().map(entry).collect(), revision: 40 }, outside: None }),
            mine: Mine {
                mesh: "harbour".into(),
                node: "lis1".into(),
                site: "lisbon".into(),
                address: "10.77.0.11".parse().unwrap(),
                part: Part::Voter,
                generation: 1,
                services: Some(BTreeMap::from([("postgres".into(), postgres)])),
                topology: Topology::Quorum,
                members: ["arb1", "lis1", "por1"].map(String::from).to_vec(),
            },
            node_sees_outside: Some(false),
            rate: None,
        }
    }

    fn entries(&mut self) -> &mut Vec<Item> {
        &mut self.keys.as_mut().unwrap().mesh.items
    }

    fn put(&mut self, key: &str, value: &str) {
        self.del(key);
        let lease = if key.starts_with("/mesh/live/") { 7 } else { 0 };
        let entry = Item { key: key.into(), value: value.into(), lease, revision: 9 };
        self.entries().push(entry);
    }

    fn del(&mut self, key: &str) {
        self.entries().retain(|entry| entry.key != key.as_bytes());
    }

    fn edit(&mut self, key: &str, from: &str, to: &str) {
        let entry = self.entries().iter_mut().find(|entry| entry.key == key.as_bytes()).expect(key);
        let text = String::from_utf8(entry.value.clone()).unwrap();
        assert!(text.contains(from), "{key}: {text}");
        entry.value = text.replace(from, to).into_bytes();
    }

    fn lease(&mut self, key: &str, lease: i64) {
        self.entries().iter_mut().find(|entry| entry.key == key.as_bytes()).expect(key).lease = lease;
    }

    fn judged(&self) -> Vec<Finding> {
        let seen = Seen {
            keys: self.keys.as_ref(),
            whose: "the image's client certificate",
            node_sees_outside: self.node_sees_outside,
            cluster: CLUSTER,
            rate: self.rate,
            at: NOW,
        };
        judge(&self.mine, &seen)
    }
}

/// What is changed, and all that must be said: code, and a text in subject, message, notes or help.
type Case = (fn(&mut World), &'static [(&'static str, &'static str)]);

const POSTGRES: &str = "/mesh/want/service/postgres";
const LIS1: &str = "/mesh/want/node/lis1";

#[rustfmt::skip]
const CASES: &[(&str, Case)] = &[
    ("healthy", (|_| {}, &[])),
    // Access.
    ("no permission", (|w| w.keys = Err(Trouble::new(Kind::Denied, "etcdserver: permission denied")), &[("live-keys-denied", "permission denied")])),
    ("stops half-way", (|w| w.keys = Err(Trouble::new(Kind::Silent, "no answer in time")), &[("live-keys-unread", "no answer in time")])),
    ("access control off", (|w| w.node_sees_outside = Some(true), &[("live-access-open", "bootstrap")])),
    ("not tried", (|w| w.node_sees_outside = None, &[])),
    ("a foreign key", (|w| w.keys.as_mut().unwrap().outside = Some(Outside { count: 7, first: vec![b"/app\xff".to_vec()] }), &[("live-foreign-keys", "7 keys outside of `/mesh/`: /app\\xff")])),
    ("none elsewhere", (|w| w.keys.as_mut().unwrap().outside = Some(Outside::default()), &[])),
    // Identity and schema.
    ("nothing at all", (|w| { w.entries().clear(); w.node_sees_outside = Some(true) }, &[("live-not-bootstrapped", "registry bootstrap")])),
    ("no identity", (|w| w.del("/mesh/identity"), &[("live-identity-missing", "/mesh/identity")])),
    ("another mesh", (|w| w.edit("/mesh/identity", "\"harbour\"", "\"haven\""), &[("live-other-mesh", "`haven`")])),
    ("a copy", (|w| w.edit("/mesh/identity", "00ab2993bab74d3e", "cdf818194e3a8c32"), &[("live-identity-cluster", "cdf818194e3a8c32")])),
    ("an image of an older generation", (|w| {
        w.edit("/mesh/identity", "\"generation\":1", "\"generation\":2");
        for node in ["arb1", "lis1", "lis2", "por1"] { w.edit(&format!("/mesh/live/{node}/here"), "\"generation\":1", "\"generation\":2") }
    }, &[("live-generation", "generation = 2")])),
    ("no schema", (|w| w.del("/mesh/schema"), &[("live-schema", "not there")])),
    ("a newer schema that we may read", (|w| w.edit("/mesh/schema", "\"schema\":1", "\"schema\":2"), &[])),
    ("a newer schema", (|w| { w.edit("/mesh/schema", "\"least_reader\":1", "\"least_reader\":2"); w.put("/mesh/x", "") }, &[("live-schema", "update fitout")])),
    // Grammar.
    ("a mistyped key", (|w| w.put("/mesh/want/nodes/lis1", "{}"), &[("live-key-unknown", "/mesh/want/nodes/lis1")])),
    ("a name that is none", (|w| w.put("/mesh/live/Lis1/here", HERE), &[("live-key-unknown", "`Lis1` is no name")])),
    ("a key that is no text", (|w| w.entries().push(Item { key: b"/mesh/\xff\xfe".to_vec(), value: vec![], lease: 0, revision: 1 }), &[("live-key-unknown", "/mesh/\\xff\\xfe")])),
    ("a long key", (|w| { let key = format!("/mesh/{}", "x".repeat(5000)); w.put(&key, "") }, &[("live-key-unknown", "… (5006 bytes)")])),
    ("many of them", (|w| for n in 0..25 { w.put(&format!("/mesh/x{n}"), "") }, &[("live-key-unknown", "and 15 more of the same"); 10])),
    ("no JSON", (|w| w.put(POSTGRES, "up"), &[("live-value-bad", "not JSON"), ("live-want-reference", POSTGRES)])),
    ("JSON of another type", (|w| w.put(POSTGRES, "[1]"), &[("live-value-bad", "a list, not an object"), ("live-want-reference", POSTGRES)])),
    ("a mebibyte", (|w| { let value = format!("{{\"v\":1,\"x\":\"{}\"}}", "x".repeat(1 << 20)); w.put("/mesh/ops/lis1/cert/server", &value) }, &[("live-value-bad", "more than 8192")])),
    ("announced without a lease", (|w| w.lease("/mesh/live/lis1/health", 0), &[("live-key-lease", "restart mesh-agent")])),
    ("wanted with a lease", (|w| w.lease(LIS1, 0x1234), &[("live-key-lease", "0000000000001234")])),
    // What is wanted.
    ("the node is new", (|w| w.mine.node = "lis9".into(), &[("live-want-missing", "lis9"), ("live-placement", "`lis1`"), ])),
    ("another address", (|w| w.mine.address = "10.77.0.99".parse().unwrap(), &[("live-want-differs", "the address is 10.77.0.11 in the registry and 10.77.0.99")])),
    ("another site", (|w| w.edit(LIS1, "lisbon", "porto"), &[("live-want-differs", "the site is porto"), ("live-claim-foreign", "`lis1` is in site `porto`"), ("live-service-unclaimed", "`por1`")])),
    ("another part", (|w| w.edit(LIS1, "voter", "client"), &[("live-want-differs", "the part is client in the registry and voter in the image")])),
    ("another port", (|w| w.edit(LIS1, "5432", "5433"), &[("live-want-differs", "postgres on 5433 with orders in the registry and postgres on 5432 with orders in the image")])),
    ("an image that does not say its services", (|w| w.mine.services = None, &[])),
    ("another topology", (|w| w.edit("/mesh/want/quorum", "\"topology\":\"quorum\"", "\"topology\":\"single\""), &[("live-want-quorum", "single in the registry and quorum in the image")])),
    ("other voters", (|w| w.edit("/mesh/want/quorum", ",\"por1\"]", "]"), &[("live-want-quorum", "arb1, lis1 in the registry and arb1, lis1, por1 in the image")])),
    ("no voters", (|w| w.del("/mesh/want/quorum"), &[("live-want-reference", "/mesh/want/quorum")])),
    ("a voter that is no node", (|w| w.edit("/mesh/want/quorum", "\"por1\"]", "\"por1\",\"zzz\"]"), &[("live-want-quorum", "zzz"), ("live-want-reference", "/mesh/want/node/zzz this voter")])),
    ("a site gone", (|w| w.del("/mesh/want/site/arbiter"), &[("live-want-reference", "named by /mesh/want/node/arb1")])),
    ("a data set gone", (|w| w.del("/mesh/want/data/orders"), &[("live-want-reference", "named by /mesh/want/node/lis1, /mesh/want/node/por1"), ("live-claim-foreign", "no data set `orders`"), ("live-claim-foreign", "no data set `orders`")])),
    ("a node of a set gone", (|w| { w.del("/mesh/want/node/por1"); w.edit("/mesh/want/quorum", ",\"por1\"]", "]"); w.mine.members.pop(); }, &[("live-want-reference", "named by /mesh/want/data/orders"), ("live-orphan", "por1"), ("live-claim-foreign", "no node `por1`"), ("live-replicas-few", "1 of 2")])),
    // What is announced.
    ("nobody's node", (|w| w.put("/mesh/live/old1/here", HERE), &[("live-orphan", "node `old1`")])),
    ("reports of nobody's node", (|w| w.put("/mesh/ops/old1/cert/peer", r#"{"v":1,"serial":"4f","not_after":"2020-11-30T10:53:00Z","fingerprint_sha256":"5c1f00000000000000000000000000000000000000000000000000000000beef"}"#), &[("live-orphan", "del --prefix /mesh/ops/old1/")])),
    ("nobody's service", (|w| w.put("/mesh/live/lis2/service/web", r#"{"v":1,"host":"10.77.0.12","port":80,"priority":10,"weight":100,"ready":true}"#), &[("live-orphan", "gives `lis2` no service `web`")])),
    ("a node away", (|w| w.del("/mesh/live/por1/here"), &[("live-node-away", "1 node does not announce itself: por1")])),
    ("this node away", (|w| w.del("/mesh/live/lis1/here"), &[("live-service-few", "0 nodes have it ready")])),
    ("many away", (|w| { for n in 0..20 { w.put(&format!("/mesh/want/node/x{n}"), r#"{"v":1,"site":"porto","part":"client","address":"10.77.0.9","services":{}}"#) } }, &[("live-node-away", "20 nodes do not announce themselves: x0, x1, x10, x11, x12, x13, x14, x15, x16, x17 and 10 more")])),
    ("an announcement of before the restore", (|w| w.edit("/mesh/live/por1/here", "\"generation\":1", "\"generation\":3"), &[("live-stale-generation", "of generation 3, and the registry of 1")])),
    ("not ready", (|w| w.edit("/mesh/live/lis1/service/postgres", "true", "false"), &[("live-service-few", "at least 1 must")])),
    ("ill", (|w| w.put("/mesh/live/lis1/health", r#"{"v":1,"state":"bad","checks":{"backup":{"state":"bad","text":"the last is 26 h old"},"etcd":{"state":"ok"}},"at":"2026-11-30T11:58:00Z"}"#), &[("live-health", "backup: the last is 26 h old")])),
    ("an old report", (|w| w.edit("/mesh/live/lis1/health", "11:58", "11:40"), &[("live-health-old", "20 min old")])),
    ("a report of the future", (|w| w.edit("/mesh/live/lis1/health", "11:58", "12:10"), &[("live-health-old", "600 s in the future")])),
    ("a certificate near its end", (|w| w.edit("/mesh/ops/lis1/cert/server", "2031-11-30", "2026-12-10"), &[("live-certificate-clock", "in 9 days")])),
    ("a certificate that has ended", (|w| w.edit("/mesh/ops/lis1/cert/server", "2031-11-30", "2026-11-29"), &[("live-certificate-clock", "has ended on 2026-11-29")])),
    // Claims.
    ("a claim of the wrong site", (|w| w.edit("/mesh/claim/orders/porto", "por1", "lis1"), &[("live-claim-foreign", "`lis1` is in site `lisbon`"), ("live-replicas-few", "1 of 2")])),
    ("a claim of a node without the set", (|w| w.edit("/mesh/claim/orders/lisbon", "lis1", "lis2"), &[("live-claim-foreign", "not to `lis2`"), ("live-service-unclaimed", "`lis2`"), ("live-placement", "claim transfer orders lisbon lis1")])),
    ("a claim of no site", (|w| w.put("/mesh/claim/orders/moon", r#"{"v":1,"node":"lis1","since":"2026-11-30T10:53:00Z","generation":1}"#), &[("live-claim-foreign", "no site `moon`")])),
    ("ready without a claim", (|w| w.del("/mesh/claim/orders/lisbon"), &[("live-service-unclaimed", "held by nobody")])),
    ("a replica that is not claimed", (|w| w.del("/mesh/claim/orders/porto"), &[("live-replicas-few", "start the set's service on por1")])),
    ("another node of the site is declared", (|w| { w.edit("/mesh/want/data/orders", "lis1", "lis2"); w.del("/mesh/claim/orders/lisbon"); w.del("/mesh/live/lis1/service/postgres") }, &[("live-placement", "`lis2` of site `lisbon`"), ("live-service-few", POSTGRES)])),
    ("a set on the arbiter", (|w| w.edit("/mesh/want/data/orders", "[\"lis1\"", "[\"arb1\",\"lis1\""), &[("live-data-on-arbiter", "`arb1`")])),
    ("a claim of the arbiter", (|w| w.put("/mesh/claim/orders/arbiter", r#"{"v":1,"node":"arb1","since":"2026-11-30T10:53:00Z","generation":1}"#), &[("live-claim-foreign", "not to `arb1`"), ("live-data-on-arbiter", "held by the arbiter `arb1`")])),
    // Writes.
    ("a quiet minute", (|w| w.rate = Some(Rate { revisions: 11, time: Duration::from_secs(60) }), &[])),
    ("application data", (|w| w.rate = Some(Rate { revisions: 100, time: Duration::from_secs(30) }), &[("live-write-rate", "200 a minute; a quiet mesh of 4 nodes writes at most 12")])),
    ("one write in a moment", (|w| w.rate = Some(Rate { revisions: 2, time: Duration::from_secs(1) }), &[])),
];

fn text(finding: &Finding) -> String {
    let help = finding.help.clone().unwrap_or_default();
    format!("{} {} {} {}", finding.subject, finding.message, finding.notes.join(" "), help)
}

#[test]
fn each_change_is_told_and_nothing_else() {
    let mut wrong = Vec::new();
    for (name, (change, want)) in CASES {
        let mut world = World::healthy();
        change(&mut world);
        let found = world.judged();
        let mut codes: Vec<&str> = found.iter().map(|finding| finding.code).collect();
        let mut wanted: Vec<&str> = want.iter().map(|(code, _)| *code).collect();
        codes.sort_unstable();
        wanted.sort_unstable();
        let said = |(code, says): &(&str, &str)| found.iter().any(|f| f.code == *code && text(f).contains(says));
        if codes != wanted || !want.iter().all(said) {
            let all: Vec<String> = found.iter().map(|f| format!("\n    {}: {}", f.code, text(f))).collect();
            wrong.push(format!("{name}: wanted {want:?}, found{}", all.concat()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_fires() {
    let fired: BTreeSet<&str> = CASES.iter().flat_map(|(_, (_, want))| want.iter().map(|(code, _)| *code)).collect();
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(fired, rules);
}

proptest::proptest! {
    /// Whatever stands in the registry, it is judged.
    #[test]
    fn junk_is_judged(n in 0..HEALTHY.len(), bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
        let mut world = World::healthy();
        world.entries()[n].value = bytes.clone();
        world.entries().push(Item { key: [b"/mesh/", bytes.as_slice()].concat(), value: bytes, lease: 0, revision: 1 });
        proptest::prop_assert!(!world.judged().is_empty());
    }
}
