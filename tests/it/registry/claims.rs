//! `fitout registry show` and `claim` on what nodes have written.

use serde_json::Value;

use super::solo::Solo;

pub const HERE: &str = r#"{"v":1,"boot_id":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","generation":1,"since":"2026-11-30T10:53:00Z","agent":"mesh-agent 0.1.0"}"#;

/// An object of a type, where a field is so.
#[track_caller]
pub fn the<'a>(objects: &'a [Value], kind: &str, field: &str, value: &str) -> &'a Value {
    let found = objects.iter().find(|o| o["type"] == kind && o[field] == value);
    found.unwrap_or_else(|| panic!("no {kind} with {field} {value} in {objects:#?}"))
}

/// `a1` claims and is there; an operator takes the claim only when it is gone, and gives it only to who may have it.
pub fn released_and_transferred(solo: &Solo) {
    let claim = r#"{"v":1,"node":"a1","since":"2026-11-30T10:54:00Z","generation":1}"#;
    let lease = solo.lease("a1");
    solo.etcdctl("a1", &["put", "/mesh/claim/orders/home", claim]).exits(0);
    solo.etcdctl("a1", &["put", "/mesh/live/a1/here", HERE, &format!("--lease={lease}")]).exits(0);

    let said = solo.fitout(&["registry", "show"]).exits(0);
    said.says("mesh solo, generation 1 since ").says("orders    home  a1       held   2026-11-30T10:54:00Z  a1");
    let objects = solo.objects(&["registry", "show"]);
    assert_eq!(the(&objects, "registry-node", "node", "a1")["state"], "warn", "it has not said how it is");
    assert_eq!(the(&objects, "registry-node", "node", "a10")["state"], "away");
    let listed = solo.objects(&["registry", "claim", "list"]);
    assert_eq!(the(&listed, "claim", "site", "home")["node"], "a1");
    assert_eq!(the(&listed, "claim", "site", "away")["state"], "free");

    let release = ["registry", "claim", "release", "orders", "home"];
    solo.fitout(&release).exits(1).says("[registry-claim-living]").says("`--force`");
    let transfer = ["registry", "claim", "transfer", "orders", "home"];
    solo.fitout(&[&transfer[..], &["b1"]].concat()).exits(1).says("[registry-claim-not-granted]").says("only a1 may");
    solo.fitout(&["registry", "claim", "release", "orders", "nowhere"]).exits(1).says("[registry-claim-absent]");
    solo.fitout(&["registry", "claim", "release", "Orders", "home"]).exits(2).says("`Orders` is no name");

    // Two nodes of one site may have it: a declaration that was changed so is what the registry says then.
    let key = "/mesh/want/data/orders";
    let wanted = solo.etcdctl("anna", &["get", key, "--print-value-only"]).exits(0).stdout;
    let both = wanted.trim().replace(r#"["a1","a10"]"#, r#"["a1","a10","b1"]"#);
    assert_ne!(both, wanted.trim());
    solo.etcdctl("anna", &["put", key, &both]).exits(0);
    let to_b1 = [&transfer[..], &["b1"]].concat();
    solo.fitout(&to_b1).exits(1).says("[registry-claim-living]");
    solo.etcdctl("a1", &["lease", "revoke", &lease]).exits(0);
    solo.fitout(&to_b1).exits(0).says("/mesh/claim/orders/home: b1 holds it, no more a1");
    let listed = solo.objects(&["registry", "claim", "list"]);
    let home = the(&listed, "claim", "site", "home");
    assert_eq!((&home["node"], &home["state"]), (&"b1".into(), &"held, its node is away".into()));
    solo.fitout(&release).exits(0).says("/mesh/claim/orders/home: released by b1");
    assert_eq!(solo.etcdctl("anna", &["get", "/mesh/claim/orders/home"]).exits(0).stdout, "");
    solo.fitout(&["registry", "bootstrap", "--yes"]).exits(0).says("nodes a1+a10 instead of a1+a10+b1");

    // A living one loses it only by force.
    let lease = solo.lease("a1");
    solo.etcdctl("a1", &["put", "/mesh/claim/orders/home", claim]).exits(0);
    solo.etcdctl("a1", &["put", "/mesh/live/a1/here", HERE, &format!("--lease={lease}")]).exits(0);
    solo.fitout(&[&release[..], &["--force"]].concat()).exits(0);
    solo.etcdctl("a1", &["lease", "revoke", &lease]).exits(0);
}
