//! `fitout registry` on real registries: bootstrap, who may do what, claims.
//!
//! One start of etcd serves all that is asked of a version.

mod claims;
mod rights;
mod solo;
mod watch;

use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::common::{Debian, Said, until};
use solo::Solo;

#[test]
fn a_registry_of_trixie() {
    story(Debian::Trixie);
}

#[test]
fn a_registry_of_bookworm() {
    story(Debian::Bookworm);
}

fn story(debian: Debian) {
    let solo = Solo::start(debian);
    a_plan_writes_nothing(&solo);
    an_interrupted_run_is_finished(&solo);
    the_environment_is_etcdctls(&solo);
    rights::of_a_node(&solo);
    claims_are_granted_and_refused(&solo);
    claims::released_and_transferred(&solo);
    watch::every_change_is_told(&solo);
    a_changed_declaration(&solo);
    junk_is_shown_and_the_rest_too(&solo);
    a_registry_that_falls_silent(&solo);
    other_registries_are_refused(&solo);
    // `eve` was issued after the last bootstrap.
    solo.fitout(&["pki", "issue", "--operator", "eve"]).exits(0);
    rights::not_protected(&solo, debian);
    after_a_restart(&solo);
}

/// The actions of a plan.
fn plan(solo: &Solo) -> Vec<Value> {
    let objects = solo.objects(&["registry", "bootstrap"]);
    assert_eq!(objects.last().expect("an end")["exit"], 0, "{objects:#?}");
    objects.into_iter().filter(|object| object["type"] == "change").collect()
}

fn count(said: &Said) -> usize {
    said.stdout.lines().count()
}

fn a_plan_writes_nothing(solo: &Solo) {
    let said = solo.fitout(&["registry", "bootstrap"]).exits(0);
    said.says("+ /mesh/identity and /mesh/schema: mesh solo, generation 1, cluster ")
        .says("+ user node:a1 with the role node:a1")
        .says("+ … ")
        .says("nothing was written: carry it out with `--yes`");
    let actions: Vec<String> = plan(solo).iter().map(|change| change["action"].as_str().unwrap().to_owned()).collect();
    assert_eq!((actions[0].as_str(), actions.last().unwrap().as_str()), ("create", "enable-authentication"));
    assert_eq!(actions.iter().filter(|action| *action == "add-role").count(), 85);
    assert_eq!(solo.etcdctl("anna", &["get", "--prefix", "/"]).exits(0).stdout, "");
    assert_eq!(solo.etcdctl("anna", &["user", "list"]).exits(0).stdout, "");
}

fn an_interrupted_run_is_finished(solo: &Solo) {
    let mut half =
        solo.command(&["registry", "bootstrap", "--yes"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    until("some roles are there", || {
        let roles = count(&solo.etcdctl("anna", &["role", "list"]));
        if roles > 5 { Ok(()) } else { Err(format!("{roles}")) }
    });
    half.kill().unwrap();
    half.wait().unwrap();
    // What it had sent may still be carried out: the plan is of what is there then.
    let left = until("etcd is at rest", || {
        let plans = [plan(solo), plan(solo)];
        let [first, second] = plans;
        if first == second { Ok(first) } else { Err(format!("{} {}", first.len(), second.len())) }
    });
    assert!(left.iter().any(|change| change["action"] == "add-user"), "it was interrupted: {left:#?}");
    assert!(left.iter().all(|change| change["action"] != "create"), "what is done is not done again");
    let identity = solo.etcdctl("anna", &["get", "/mesh/identity"]).exits(0).stdout;
    solo.fitout(&["registry", "bootstrap", "--yes"]).exits(0).says("done: the registry is as declared");
    assert_eq!(solo.etcdctl("anna", &["get", "/mesh/identity"]).exits(0).stdout, identity, "written once");
    solo.fitout(&["registry", "bootstrap"]).exits(0).says("nothing to do");
    // 84 nodes, the snapshot user of the control plane, anna and root.
    assert_eq!(count(&solo.etcdctl("anna", &["user", "list"])), 87);
    assert_eq!(plan(solo), [Value::Null; 0]);
}

fn the_environment_is_etcdctls(solo: &Solo) {
    let fitout = env!("CARGO_BIN_EXE_fitout");
    let script = format!("eval \"$({fitout} registry env)\"; etcdctl get /mesh/identity --print-value-only");
    let said: Said = solo.within("bash").args(["-euc", &script]).output().unwrap().into();
    said.exits(0).says("\"mesh\":\"solo\"");
    let objects = solo.objects(&["registry", "env"]);
    assert_eq!(objects[0]["variables"]["ETCDCTL_ENDPOINTS"], "https://127.78.0.1:2379");
    solo.fitout(&["registry", "env", "--credentials", "nowhere"]).exits(3).says("there is no directory nowhere");
}

/// `a1` has the claim of its site. `b1` has it not; when it is granted too, the transaction is what refuses it.
fn claims_are_granted_and_refused(solo: &Solo) {
    let claim = |who: &str| {
        solo.txn(who, "create(\"/mesh/claim/orders/home\") = \"0\"", &format!("put /mesh/claim/orders/home {who}"), "")
    };
    claim("b1").exits(1).says("permission denied");
    claim("a1").exits(0).says("SUCCESS");
    solo.etcdctl("anna", &["role", "grant-permission", "node:b1", "readwrite", "/mesh/claim/orders/home"]).exits(0);
    claim("b1").exits(0).says("FAILURE");
    let holder = solo.etcdctl("anna", &["get", "/mesh/claim/orders/home", "--print-value-only"]).exits(0).stdout;
    assert_eq!(holder, "a1\n");
    // The next bootstrap takes back what the declaration does not give.
    let changes = plan(solo);
    assert_eq!(changes.len(), 1, "{changes:#?}");
    assert_eq!((&changes[0]["action"], &changes[0]["role"]), (&"revoke".into(), &"node:b1".into()));
    solo.fitout(&["registry", "bootstrap", "--yes"]).exits(0);
    claim("b1").exits(1).says("permission denied");
    solo.etcdctl("a1", &["del", "/mesh/claim/orders/home"]).exits(0);
}

fn a_changed_declaration(solo: &Solo) {
    solo.declare(&[
        ("count = 80", "count = 78"),
        ("[node.b1]\nsite = \"home\"", "[node.b1]\nsite = \"away\""),
        ("service.postgres = { port = 5432, data-set = \"orders\" }\n[node.b1]", "[node.b1]"),
    ]);
    let said = solo.fitout(&["registry", "bootstrap"]).exits(0);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "~ /mesh/want/node/a10: services none instead of (postgres (port 5432, data_set orders))",
            "~ /mesh/want/node/b1: site away instead of home",
            "~ /mesh/want/service/postgres: spread none instead of site",
            "~ /mesh/want/data/orders: replicas 1 instead of 2, nodes a1 instead of a1+a10",
            "- /mesh/want/node/edge-079",
            "- /mesh/want/node/edge-080",
            "- user node:edge-079",
            "- user node:edge-080",
            "- role node:edge-079",
            "- role node:edge-080",
            "~ role node:a10: may no more read and write /mesh/claim/orders/away",
            "nothing was written: carry it out with `--yes`",
        ]
    );
    solo.etcdctl("a10", &["put", "/mesh/claim/orders/away", "x"]).exits(0);
    solo.fitout(&["registry", "bootstrap", "--yes"]).exits(0);
    solo.fitout(&["registry", "bootstrap"]).exits(0).says("nothing to do");
    solo.etcdctl("a10", &["put", "/mesh/claim/orders/away", "x"]).exits(1).says("permission denied");
    assert_eq!(solo.etcdctl("anna", &["get", "/mesh/want/node/edge-080"]).exits(0).stdout, "");
    solo.etcdctl("anna", &["del", "/mesh/claim/orders/away"]).exits(0);
}

/// What nobody of ours would write: large values, no JSON, keys that are no text.
fn junk_is_shown_and_the_rest_too(solo: &Solo) {
    // Together more than gRPC takes in one answer.
    let bad = || {
        let objects = solo.objects(&["registry", "show"]);
        objects.iter().filter(|object| object["type"] == "registry-bad-key").count()
    };
    let before = bad();
    let large = format!("{{\"v\":1,\"x\":\"{}\"}}", "x".repeat(1 << 20));
    let keys: Vec<String> = (0..6).map(|n| format!("/mesh/want/service/junk{n}")).collect();
    for key in &keys {
        solo.put_by_stdin("anna", key, large.as_bytes());
    }
    solo.put_by_stdin("anna", "/mesh/want/quorum", b"\xff\xfe");
    let odd = std::ffi::OsStr::from_bytes(b"/mesh/\xff");
    solo.put_by_stdin("anna", odd, b"[]");
    let said = solo.fitout(&["registry", "show"]).exits(0);
    said.says("junk5  the value has 1048590 bytes, more than 8192")
        .says("/mesh/want/quorum         the value is not UTF-8 from byte 0 on")
        .says("its bytes are not UTF-8")
        .says("a1        home  client");
    assert_eq!(bad(), before + 8);
    // What is wanted is the operator's: it is put right.
    solo.fitout(&["registry", "bootstrap", "--yes"])
        .exits(0)
        .says("- /mesh/want/service/junk0")
        .says("~ /mesh/want/quorum: topology single, voters hub, arbiters none (it was `");
    solo.etcdctl_os("anna", &["del".as_ref(), odd]);
    assert_eq!(bad(), before);
}

/// It takes connections and answers nothing: the reason is there after the timeout, and the plan is what it was.
fn a_registry_that_falls_silent(solo: &Solo) {
    solo.declare(&[("count = 78", "count = 80")]);
    let before = plan(solo);
    solo.freeze();
    let start = std::time::Instant::now();
    let said = solo.fitout(&["registry", "bootstrap", "--yes", "--timeout", "1"]).exits(3);
    said.says("no member of the registry can be used within 1 s");
    assert!(start.elapsed() < std::time::Duration::from_secs(4), "{:?}", start.elapsed());
    solo.thaw();
    assert_eq!(plan(solo), before);
    solo.fitout(&["registry", "bootstrap", "--yes"]).exits(0);
}

fn other_registries_are_refused(solo: &Solo) {
    let bootstrap = ["registry", "bootstrap", "--yes"];
    solo.declare(&[("name = \"solo\"", "name = \"duet\"")]);
    solo.fitout(&bootstrap).exits(1).says("[registry-other-mesh]").says("the birth record says");
    solo.declare(&[("name = \"duet\"", "name = \"solo\"")]);
    let newer = r#"{"v":1,"schema":2,"least_reader":1,"least_writer":2,"written_by":"fitout 9.0"}"#;
    let schema = solo.etcdctl("anna", &["get", "/mesh/schema", "--print-value-only"]).exits(0).stdout;
    solo.etcdctl("anna", &["put", "/mesh/schema", newer]).exits(0);
    solo.fitout(&bootstrap).exits(1).says("[registry-newer-schema]").says("`fitout 9.0`");
    solo.etcdctl("anna", &["put", "/mesh/schema", schema.trim()]).exits(0);
    // A node is no operator, and etcd says no first.
    let node = ["--credentials", "pki/nodes/a1"];
    solo.fitout(&[&bootstrap[..], &node].concat()).exits(3).says("permission denied").says("role `root`");
    solo.fitout(&bootstrap).exits(0).says("nothing to do");
}

/// Authentication outlives a restart, and a registry that is away is told so in time.
fn after_a_restart(solo: &Solo) {
    solo.restart();
    solo.etcdctl("eve", &["get", "/mesh/identity"]).exits(1).says("permission denied");
    solo.fitout(&["registry", "bootstrap"]).exits(0).says("+ user operator:eve with the role root");
    solo.stop();
    let said = solo.fitout(&["registry", "bootstrap", "--timeout", "2"]).exits(3);
    said.says("no member of the registry can be used within 2 s").says("mesh-registry.target");
}
