//! `mesh-agent` as a process against real registries: what it announces, and that nothing that a registry does stops it.
//!
//! One start of a registry serves many steps, each named by what it shows.

mod node;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fitout::layout::values::{Health, Here, Identity, Value};
use fitout::layout::{Key, values};
use serde_json::{Value as Json, json};

use crate::check::registry::{NODES, Registry};
use crate::common::until;
use node::Node;

/// A key as etcdctl prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    value: String,
    lease: u64,
}

/// All keys below a prefix, and the registry's revision.
fn read(registry: &Registry, prefix: &str) -> (BTreeMap<String, Stored>, u64) {
    let text = registry.etcdctl(&["get", prefix, "--prefix", "-w", "json"]);
    let json: Json = serde_json::from_str(&text).expect("JSON");
    let text = |value: &Json| {
        let bytes = base64(value.as_str().unwrap_or_default());
        String::from_utf8(bytes).expect("UTF-8")
    };
    let stored = |kv: &Json| {
        let lease = kv["lease"].as_u64().unwrap_or_default();
        (text(&kv["key"]), Stored { value: text(&kv["value"]), lease })
    };
    let keys = json["kvs"].as_array().into_iter().flatten().map(stored).collect();
    (keys, json["header"]["revision"].as_u64().expect("a revision"))
}

/// RFC 4648, section 4.
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u32;
    let mut bytes = Vec::new();
    for (n, byte) in text.bytes().filter(|byte| *byte != b'=').enumerate() {
        let value = ALPHABET.iter().position(|letter| *letter == byte).expect("base64");
        bits = bits << 6 | u32::try_from(value).expect("6 bits");
        if n % 4 != 0 {
            bytes.push(u8::try_from(bits >> (6 - 2 * (n % 4)) & 0xff).expect("8 bits"));
        }
    }
    bytes
}

/// Identity of a generation, and the schema.
fn bootstrap(registry: &Registry, generation: u32) {
    let identity = json!({"v": 1, "mesh": "harbour", "uuid": "00000000-0000-4000-8000-000000000000",
        "generation": generation, "token": format!("harbour-g{generation}"), "cluster_id": "00000000000004d2",
        "born": "2026-11-30T10:53:00Z"});
    values::decode::<Identity>(identity.to_string().as_bytes()).expect("an identity of schema 1");
    let schema = json!({"v": 1, "schema": 1, "least_reader": 1, "least_writer": 1, "written_by": "test"});
    registry.etcdctl(&["put", "/mesh/schema", &schema.to_string()]);
    registry.etcdctl(&["put", "/mesh/identity", &identity.to_string()]);
}

/// Waits until the registry holds exactly these keys of a node, every one of them as schema 1 wants it, all under one
/// lease.
#[track_caller]
fn holds(registry: &Registry, node: &Node, what: &str, want: &[&str]) -> BTreeMap<String, Stored> {
    let prefix = format!("/mesh/live/{}/", node.name);
    until(&format!("{what}: {want:?}"), || {
        let (keys, _) = read(registry, &prefix);
        let names: Vec<&str> = keys.keys().map(|key| &key[prefix.len()..]).collect();
        if names != want {
            return Err(format!("{names:?}\n{}\n{}", node.said(), registry.logs()));
        }
        for (key, stored) in &keys {
            let key = Key::parse(key.as_bytes()).map_err(|e| e.to_string())?;
            Value::decode(&key, stored.value.as_bytes()).map_err(|e| format!("{key}: {e}"))?;
        }
        let leases: Vec<u64> = keys.values().map(|stored| stored.lease).collect();
        assert!(leases.iter().all(|lease| *lease != 0 && *lease == leases[0]), "{keys:?}");
        Ok(keys)
    })
}

fn here(keys: &BTreeMap<String, Stored>, node: &Node) -> Here {
    let stored = &keys[&format!("/mesh/live/{}/here", node.name)];
    values::decode(stored.value.as_bytes()).expect("a value")
}

fn health(registry: &Registry, node: &Node) -> Option<Health> {
    let key = format!("/mesh/live/{}/health", node.name);
    let (keys, _) = read(registry, &key);
    keys.get(&key).map(|stored| values::decode(stored.value.as_bytes()).expect("a value"))
}

/// Waits until a check of a node's health says this.
#[track_caller]
fn health_says(registry: &Registry, node: &Node, check: &str, text: &str) {
    until(&format!("`{check}` of {} says `{text}`", node.name), || {
        let health = health(registry, node).ok_or("no health")?;
        let said = health.checks.get(check).and_then(|check| check.text.clone()).unwrap_or_default();
        if said.contains(text) { Ok(()) } else { Err(format!("{health:?}\n{}", node.said())) }
    });
}

const ALL: &[&str] = &["health", "here", "service/postgres"];

#[test]
fn on_trixie_whatever_the_registry_does() {
    let mut registry = Registry::new("trixie");
    let mut lis1 = Node::new(&registry, "lis1", &[]);
    away_at_start(&mut registry, &mut lis1);
    announced(&registry, &mut lis1);
    services(&mut registry);
    quiet(&registry, &lis1);
    lease_lost(&registry, &mut lis1);
    keys_changed_by_others(&registry, &lis1);
    generation_raised(&registry, &lis1);
    leader_changed(&mut registry, &lis1);
    registry_away(&mut registry, &lis1);
    reload(&registry, &lis1);
    left(&registry, &mut lis1);
    claims(&registry, &mut lis1);
    refused(&registry, &mut lis1);
}

#[test]
fn on_bookworm_the_main_path() {
    let mut registry = Registry::new("bookworm");
    let mut lis1 = Node::new(&registry, "lis1", &[]);
    away_at_start(&mut registry, &mut lis1);
    announced(&registry, &mut lis1);
    lease_lost(&registry, &mut lis1);
    generation_raised(&registry, &lis1);
    registry_away(&mut registry, &lis1);
    left(&registry, &mut lis1);
}

/// Nothing is there, then members without an identity, then all of it.
fn away_at_start(registry: &mut Registry, lis1: &mut Node) {
    lis1.start(registry);
    lis1.says("the registry is away: https://127.77.0.");
    until("the time without registry is counted", || {
        let seconds = lis1.metric("mesh_registry_unreachable_seconds");
        if seconds.is_some_and(|seconds| seconds >= 1) { Ok(()) } else { Err(format!("{seconds:?}")) }
    });
    assert_eq!(lis1.metric("mesh_generation"), None, "nobody has told it");
    registry.start_all();
    lis1.says("the registry has no identity yet: `fitout registry bootstrap` gives it one");
    bootstrap(registry, 1);
}

fn announced(registry: &Registry, lis1: &mut Node) {
    let keys = holds(registry, lis1, "announced", ALL);
    let here = here(&keys, lis1);
    assert_eq!(here.generation.get(), 1);
    assert_eq!(here.agent, format!("mesh-agent {}", env!("CARGO_PKG_VERSION")));
    let member = registry.etcdctl(&["endpoint", "status", "-w", "json"]);
    let member: Json = serde_json::from_str(&member).expect("JSON");
    let member = member[0]["Status"]["header"]["member_id"].as_u64().expect("an id");
    assert_eq!(here.member_id.map(|id| id.0), Some(member), "the member of this very node");
    let (claims, _) = read(registry, "/mesh/claim/");
    assert_eq!(claims.keys().collect::<Vec<_>>(), ["/mesh/claim/orders/lisbon"]);
    assert!(claims.values().all(|claim| claim.lease == 0 && claim.value.contains("\"lis1\"")), "{claims:?}");
    let (reports, _) = read(registry, "/mesh/ops/lis1/");
    let uses: Vec<&str> = reports.keys().map(|key| key.rsplit('/').next().expect("a use")).collect();
    assert_eq!(uses, ["client", "peer", "server"]);
    assert!(reports.values().all(|report| report.lease == 0), "{reports:?}");
    assert_eq!(lis1.metric("mesh_registry_unreachable_seconds"), Some(0));
    assert_eq!(lis1.metric("mesh_generation"), Some(1));
    assert!(lis1.metric("mesh_certificate_not_after_seconds").is_some_and(|end| end > 1_800_000_000));
    health_says(registry, lis1, "service-postgres", "nothing listens on port 5432");
    let etcd = health(registry, lis1).expect("health").checks["etcd"].clone();
    assert_eq!((etcd.state, etcd.text), (values::State::Ok, None));
}

/// A service is ready while something listens on its port at this node's address.
fn services(registry: &mut Registry) {
    let ready = |registry: &Registry, want: bool| {
        until(&format!("ready is {want}"), || {
            let key = "/mesh/live/lis1/service/postgres";
            let (keys, _) = read(registry, key);
            let value = &keys.get(key).ok_or("no service")?.value;
            if value.contains(&format!("\"ready\":{want}")) { Ok(()) } else { Err(value.clone()) }
        });
    };
    ready(registry, false);
    let listen = "import socket, time\ns = socket.create_server(('127.77.0.11', 5432))\ntime.sleep(3600)";
    registry.beside(&["python3", "-c", listen]);
    ready(registry, true);
    registry.end_others();
    ready(registry, false);
    registry.beside(&["python3", "-c", listen]);
    ready(registry, true);
}

/// Five renewals without one write, in little memory and little time.
fn quiet(registry: &Registry, lis1: &Node) {
    let (_, before) = read(registry, "/mesh/live/");
    let (_, ticks) = lis1.cost();
    std::thread::sleep(Duration::from_secs(5));
    let (_, after) = read(registry, "/mesh/live/");
    assert_eq!(after, before, "a quiet node writes nothing: {}", lis1.said());
    let (resident, later) = lis1.cost();
    // An unoptimized program; the released one is measured by `make bench`.
    assert!(resident < 40 * 1024, "{resident} KiB");
    assert!(later - ticks < 100, "{} hundredths of a second in 5 s", later - ticks);
}

/// Revoked by somebody, and lost with a process that was killed.
fn lease_lost(registry: &Registry, lis1: &mut Node) {
    let keys = holds(registry, lis1, "before", ALL);
    let lease = keys["/mesh/live/lis1/here"].lease;
    registry.etcdctl(&["lease", "revoke", &format!("{lease:x}")]);
    until("it comes back under another lease", || {
        let keys = holds(registry, lis1, "back", ALL);
        let now = keys["/mesh/live/lis1/here"].lease;
        if now == lease { Err(format!("{lease:x}")) } else { Ok(()) }
    });
    let (claims, _) = read(registry, "/mesh/claim/");
    assert_eq!(claims.len(), 1, "a claim has no lease");

    lis1.signal("-KILL");
    lis1.ended();
    let start = Instant::now();
    holds(registry, lis1, "its lease ends", &[]);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    lis1.start(registry);
    holds(registry, lis1, "started again", ALL);
}

/// What others delete or put below this node's keys.
fn keys_changed_by_others(registry: &Registry, lis1: &Node) {
    registry.etcdctl(&["del", "/mesh/live/lis1/", "--prefix"]);
    holds(registry, lis1, "deleted by somebody", ALL);
    registry.etcdctl(&["put", "/mesh/live/lis1/service/old", "{}"]);
    holds(registry, lis1, "a service that is none", ALL);
    // The history is compacted away under the watch.
    let (_, revision) = read(registry, "/mesh/");
    registry.etcdctl(&["compact", &revision.to_string()]);
    registry.etcdctl(&["del", "/mesh/live/lis1/here"]);
    holds(registry, lis1, "after a compaction", ALL);
}

/// A restore rewrites the identity.
fn generation_raised(registry: &Registry, lis1: &Node) {
    bootstrap(registry, 2);
    until("announced under the new generation", || {
        let keys = holds(registry, lis1, "there", ALL);
        let generation = here(&keys, lis1).generation.get();
        if generation == 2 { Ok(()) } else { Err(generation.to_string()) }
    });
    until("measured", || match lis1.metric("mesh_generation") {
        Some(2) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

/// Each member once is away; the others elect.
fn leader_changed(registry: &mut Registry, lis1: &Node) {
    let before = holds(registry, lis1, "before", ALL)["/mesh/live/lis1/here"].lease;
    for node in ["por1", "mad1"] {
        registry.stop(node);
        holds(registry, lis1, node, ALL);
        registry.start(node);
        until("it is back", || {
            let said = registry.etcdctl_at("127.77.0.11", &["endpoint", "health", "--cluster"]);
            if said.code == Some(0) { Ok(()) } else { Err(said.all()) }
        });
    }
    let after = holds(registry, lis1, "after", ALL)["/mesh/live/lis1/here"].lease;
    assert_eq!(before, after, "an election is no reason for a new lease");
}

/// All members away and back, with their data.
fn registry_away(registry: &mut Registry, lis1: &Node) {
    for (node, _) in NODES {
        registry.end(node);
    }
    lis1.says("the registry is away");
    until("counted", || match lis1.metric("mesh_registry_unreachable_seconds") {
        Some(seconds) if seconds >= 1 => Ok(()),
        other => Err(format!("{other:?}")),
    });
    registry.start_all();
    until("members answer", || {
        let said = registry.etcdctl_at("127.77.0.11", &["endpoint", "health", "--cluster"]);
        if said.code == Some(0) { Ok(()) } else { Err(said.all()) }
    });
    holds(registry, lis1, "back", ALL);
    until("counted from nothing", || match lis1.metric("mesh_registry_unreachable_seconds") {
        Some(0) => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

/// SIGHUP: a service more, bad facts that change nothing, and back.
fn reload(registry: &Registry, lis1: &Node) {
    let lease = holds(registry, lis1, "before", ALL)["/mesh/live/lis1/here"].lease;
    lis1.change(&[("[service.\"postgres\"]", "[service.\"web\"]\nport = 443\n\n[service.\"postgres\"]")]);
    lis1.signal("-HUP");
    let keys = holds(registry, lis1, "reloaded", &["health", "here", "service/postgres", "service/web"]);
    assert_eq!(keys["/mesh/live/lis1/here"].lease, lease, "the lease stays");
    lis1.change(&[("port = 443", "port = 0")]);
    lis1.signal("-HUP");
    lis1.says("the facts stay what they were");
    lis1.change(&[("[service.\"web\"]\nport = 0\n\n", "")]);
    lis1.signal("-HUP");
    holds(registry, lis1, "as before", ALL);
}

/// SIGTERM: gone at once, not at the end of the lease.
fn left(registry: &Registry, lis1: &mut Node) {
    holds(registry, lis1, "before", ALL);
    lis1.signal("-TERM");
    let status = lis1.ended();
    assert!(status.success(), "{status}: {}", lis1.said());
    let (keys, _) = read(registry, "/mesh/live/lis1/");
    assert_eq!(keys, BTreeMap::new(), "{}", lis1.said());
    let (claims, _) = read(registry, "/mesh/claim/");
    assert_eq!(claims.len(), 1, "a claim is not given back");
}

/// Two nodes that may both claim the set in one site: the transaction lets one have it.
fn claims(registry: &Registry, lis1: &mut Node) {
    lis1.start(registry);
    holds(registry, lis1, "first", ALL);
    let mut por1 = Node::new(registry, "por1", &[("site = \"porto\"", "site = \"lisbon\"")]);
    por1.start(registry);
    holds(registry, &por1, "without the service", &["health", "here"]);
    health_says(
        registry,
        &por1,
        "service-postgres",
        "is not announced: data set `orders` in site `lisbon` is claimed by node `lis1`",
    );
    assert_eq!(health(registry, &por1).expect("health").state, values::State::Bad);
    por1.says("service `postgres` is not announced: data set `orders`");

    // An operator transfers it: the one stops to announce the service, the other begins.
    let key = "/mesh/claim/orders/lisbon";
    let (claims, _) = read(registry, key);
    registry.etcdctl(&["put", key, &claims[key].value.replace("lis1", "por1")]);
    holds(registry, &por1, "transferred", ALL);
    holds(registry, lis1, "taken away", &["health", "here"]);
    // Released: whoever comes first, and nobody else.
    por1.signal("-TERM");
    por1.ended();
    registry.etcdctl(&["del", key]);
    holds(registry, lis1, "released", ALL);
    // What cannot be read is nobody's.
    registry.etcdctl(&["put", key, "\"words\""]);
    holds(registry, lis1, "unreadable", &["health", "here"]);
    health_says(registry, lis1, "service-postgres", "cannot be read: the value is a text, not an object");
    registry.etcdctl(&["del", key]);
    holds(registry, lis1, "as before", ALL);
}

/// With authentication on: what the roles do not give is refused, said, and tried again without haste.
fn refused(registry: &Registry, lis1: &mut Node) {
    registry.etcdctl(&["user", "add", "root", "--no-password"]);
    registry.etcdctl(&["user", "grant-role", "root", "root"]);
    for node in ["lis1", "por1"] {
        let (user, role) = (format!("node:{node}"), format!("node-{node}"));
        registry.etcdctl(&["role", "add", &role]);
        let grant = |right: &str, key: &str, prefix: bool| {
            let mut arguments = vec!["role", "grant-permission", &role, right, key];
            arguments.extend(prefix.then_some("--prefix"));
            registry.etcdctl(&arguments);
        };
        grant("read", "/mesh/", true);
        grant("readwrite", &format!("/mesh/live/{node}/"), true);
        grant("readwrite", &format!("/mesh/ops/{node}/"), true);
        registry.etcdctl(&["user", "add", &user, "--no-password"]);
        registry.etcdctl(&["user", "grant-role", &user, &role]);
    }
    // The certificate with which these tests look is the operator's from here on: it may do everything.
    registry.etcdctl(&["user", "grant-role", "node:lis1", "root"]);
    registry.etcdctl(&["auth", "enable"]);
    holds(registry, lis1, "authentication came on meanwhile", ALL);

    // Not granted the claim, which is free.
    let mut por1 = Node::new(registry, "por1", &[]);
    por1.start(registry);
    holds(registry, &por1, "without the service", &["health", "here"]);
    health_says(
        registry,
        &por1,
        "service-postgres",
        "the registry does not let this node claim data set `orders` in site `porto`",
    );
    por1.signal("-TERM");
    por1.ended();

    // With the certificate of another node.
    let of = |node: &str| registry.file(node, "etc/mesh/pki").display().to_string();
    let mut stranger = Node::new(registry, "mad1", &[(of("mad1").as_str(), of("por1").as_str())]);
    stranger.start(registry);
    stranger.says("not announced: etcdserver: permission denied");
    let (keys, _) = read(registry, "/mesh/live/mad1/");
    assert_eq!(keys, BTreeMap::new());
    let (_, ticks) = stranger.cost();
    std::thread::sleep(Duration::from_secs(3));
    let (_, later) = stranger.cost();
    assert!(later - ticks < 60, "it does not spin: {} hundredths of a second in 3 s", later - ticks);
    stranger.signal("-TERM");
    assert!(stranger.ended().success());
}

#[test]
fn what_it_cannot_use_is_said_and_nothing_is_asked() {
    let agent = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mesh-agent"));
        crate::common::Said::from(command.args(arguments).output().expect("it starts"))
    };
    agent(&["--version"]).exits(0).says(&format!("mesh-agent {}", env!("CARGO_PKG_VERSION")));
    agent(&["--help"]).exits(0).says("usage: mesh-agent");
    agent(&["--nonsense"]).exits(2).says("`--nonsense` is not known").says("help: ");
    agent(&["--check", "--facts", "/nonexistent"]).exits(3).says("cannot read /nonexistent");
    let facts = tempfile::NamedTempFile::new().expect("a file");
    let path = facts.path().to_str().expect("utf-8");
    std::fs::write(path, "schema = 2\n").expect("written");
    agent(&["--facts", path]).exits(3).says("cannot be used");
}
