//! What etcd lets whom do, as tables: each row is tried on each version.

use super::solo::{Solo, held};
use crate::common::{Debian, project};

/// How etcd refuses: each of its calls in its own words.
const REFUSALS: &[&str] = &["permission denied", "user name not found", "user not found"];

fn refused(said: &crate::common::Said) -> bool {
    REFUSALS.iter().any(|words| said.stderr.contains(words) || said.stdout.contains(words))
}

/// What `a1` may do with keys, as words of etcdctl; `LEASE` is its own, `OTHERS` that of a10's announcement.
#[rustfmt::skip]
const KEYS: &[(&str, bool)] = &[
    ("put /mesh/live/a1/here x", true),
    ("put /mesh/live/a1/service/postgres x", true),
    ("put /mesh/live/a1/health x --lease=LEASE", true),
    ("put /mesh/ops/a1/cert/server x", true),
    ("put /mesh/claim/orders/home x", true),
    ("get --prefix /mesh/", true),
    ("get /mesh/live/a10/here", true),
    ("del /mesh/live/a1/here", true),
    ("del --prefix /mesh/live/a1/", true),
    ("del --prefix /mesh/ops/a1/", true),
    ("del /mesh/claim/orders/home", true),
    ("put /mesh/live/a10/here x", false),
    ("put /mesh/live/a1 x", false),
    ("put /mesh/live/a1x x", false),
    ("put /mesh/ops/a10/cert/server x", false),
    ("put /mesh/claim/orders/away x", false),
    ("put /mesh/claim/orders/home2 x", false),
    ("put /mesh/claim/others/home x", false),
    ("put /mesh/want/node/a1 x", false),
    ("put /mesh/identity x", false),
    ("put /mesh/schema x", false),
    ("put /elsewhere x", false),
    ("get /elsewhere", false),
    ("get --prefix /", false),
    ("get --from-key /mesh/", false),
    ("del /mesh/live/a10/here", false),
    ("del --prefix /mesh/live/a1", false),
    ("del --prefix /mesh/live/", false),
    ("del --prefix /mesh/", false),
    ("del --from-key /mesh/live/a1/", false),
    ("del /mesh/identity", false),
    ("put /mesh/live/a1/here x --lease=OTHERS", false),
    ("lease revoke OTHERS", false),
    ("member add x --peer-urls=https://127.78.0.9:2380", false),
    ("user list", false),
    ("role list", false),
    ("role grant-permission node:a1 readwrite /mesh/", false),
    ("user grant-role node:a1 root", false),
    ("auth disable", false),
];

/// The same for transactions: comparisons, what follows, what follows otherwise.
#[rustfmt::skip]
const TRANSACTIONS: &[(&str, &str, &str, bool)] = &[
    ("mod(\"/mesh/identity\") > \"0\"", "put /mesh/live/a1/here x", "", true),
    ("mod(\"/mesh/identity\") > \"0\"", "put /mesh/live/a1/here x\nput /mesh/live/a10/here x", "", false),
    ("mod(\"/mesh/identity\") > \"0\"", "put /mesh/live/a1/here x\ndel /mesh/live/a10/here", "", false),
    // What would not be done counts too.
    ("mod(\"/mesh/identity\") = \"0\"", "put /mesh/live/a10/here x", "put /mesh/live/a1/here x", false),
    // A comparison reads.
    ("mod(\"/elsewhere\") = \"0\"", "put /mesh/live/a1/here x", "", false),
    ("mod(\"/elsewhere\") = \"0\"", "", "", false),
];

/// Tries every row as `a1`.
pub fn of_a_node(solo: &Solo) {
    let (own, others) = (solo.lease("a1"), solo.lease("a10"));
    solo.etcdctl("a10", &["put", "/mesh/live/a10/here", "x", &format!("--lease={others}")]).exits(0);
    for (row, may) in KEYS {
        let row = row.replace("LEASE", &own).replace("OTHERS", &others);
        let said = solo.etcdctl("a1", &row.split(' ').collect::<Vec<_>>());
        assert_eq!((said.code == Some(0), refused(&said)), (*may, !may), "{row}: {}", said.all());
    }
    for (compare, then, otherwise, may) in TRANSACTIONS {
        let said = solo.txn("a1", compare, then, otherwise);
        assert_eq!((said.code == Some(0), refused(&said)), (*may, !may), "{compare}; {then}: {}", said.all());
    }
    let there = solo.etcdctl("anna", &["get", "/mesh/live/a10/here", "--print-value-only"]).exits(0).stdout;
    assert_eq!(there, "x\n", "nothing of a10's was touched");
}

/// What etcd does not protect: what it is, the words of etcdctl, and who may: on 3.4.23 a node, then a certificate whose
/// common name is no user; on 3.5.16 the same.
#[rustfmt::skip]
const NOT_PROTECTED: &[(&str, &str, [bool; 4])] = &[
    ("grant leases", "lease grant 60", [true, true, true, true]),
    ("list all leases", "lease list", [true, true, true, true]),
    ("ask how long another's lease lives", "lease timetolive OTHERS", [true, true, true, true]),
    ("ask which keys are under another's lease", "lease timetolive OTHERS --keys", [true, true, true, false]),
    ("keep another's lease alive", "lease keep-alive --once OTHERS", [true, true, true, true]),
    ("attach an own key to another's lease that has no keys", "put /mesh/live/a1/x x --lease=EMPTY", [true, false, true, false]),
    ("revoke another's lease that has no keys", "lease revoke EMPTY", [true, true, true, true]),
    ("attach an own key to another's lease that has keys", "put /mesh/live/a1/x x --lease=OTHERS", [false, false, false, false]),
    ("revoke another's lease that has keys", "lease revoke OTHERS", [false, false, false, false]),
    ("list the members", "member list", [true, true, true, true]),
    ("add a member", "member add x --peer-urls=https://127.78.0.9:2380", [false, false, false, false]),
    ("move the leader", "move-leader 1", [true, true, true, true]),
    ("compact the history", "compact REVISION", [true, true, true, true]),
    ("disarm alarms", "alarm disarm", [true, true, true, true]),
    ("ask for a member's status", "endpoint status", [true, true, true, true]),
    ("read keys of the mesh", "get /mesh/identity", [true, false, true, false]),
    ("look at its own role", "role get node:a1", [true, false, true, false]),
    ("look at another's role", "role get node:a10", [false, false, false, false]),
    ("take a snapshot", "snapshot save taken", [false, false, false, false]),
    ("defragment", "defrag", [false, false, false, false]),
    ("ask for the hash of all keys", "endpoint hashkv", [false, false, false, false]),
];

/// Tries every cell of a version. `eve` has a certificate of the mesh, and is no user.
pub fn not_protected(solo: &Solo, debian: Debian) {
    let others = solo.lease("a10");
    solo.etcdctl("a10", &["put", "/mesh/live/a10/here", "x", &format!("--lease={others}")]).exits(0);
    for (what, row, may) in NOT_PROTECTED {
        let may = if debian == Debian::Bookworm { &may[..2] } else { &may[2..] };
        for (who, may) in ["a1", "eve"].iter().zip(may) {
            let row = row.replace("OTHERS", &others);
            let row = if row.contains("REVISION") { row.replace("REVISION", &solo.new_revision()) } else { row };
            let row = if row.contains("EMPTY") { row.replace("EMPTY", &solo.lease("anna")) } else { row };
            let said = solo.etcdctl(who, &row.split(' ').collect::<Vec<_>>());
            assert_eq!(!refused(&said), *may, "{what}, {who}: `{row}`: {}", said.all());
            // Who may move the leader may name one: of a member that does not exist etcd says so only then.
            let named = row.starts_with("move-leader") && said.stderr.contains("bad leader transferee");
            assert_eq!(said.code == Some(0) || named, *may, "{what}, {who}: `{row}`: {}", said.all());
        }
    }
}

/// The table in the document is this one.
#[test]
fn the_document_has_the_table() {
    let mut text = String::from(
        "\n| who has a certificate of the mesh may | 3.4.23: a node | 3.4.23: no user | 3.5.16: a node | 3.5.16: no user |\n\
         |---|---|---|---|---|\n",
    );
    for (what, _, may) in NOT_PROTECTED {
        let cells: Vec<&str> = may.iter().map(|may| if *may { "**yes**" } else { "no" }).collect();
        text.push_str(&format!("| {what} | {} |\n", cells.join(" | ")));
    }
    let file = project().join("docs/registry.md");
    held(&file, "<!-- from tests/it/registry/rights.rs -->\n", "\n<!-- end of the table -->", &text);
}
