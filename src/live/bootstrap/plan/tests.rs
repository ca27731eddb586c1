//! Plans against registries in memory: the first run, the second, changed declarations, interrupted runs, refusals.

use std::collections::BTreeMap;

use super::*;
use crate::declaration::testing::{QUORUM, files};
use crate::declaration::{Mesh, parse};
use crate::etcd::birth;
use crate::layout::Uuid;
use crate::live::bootstrap::wanted::{self, Given};

/// Texts of the declaration and what they are replaced by.
type Changes = &'static [(&'static str, &'static str)];

fn mesh(changes: &[(&str, &str)]) -> Mesh {
    let text = changes.iter().fold(QUORUM.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    parse(&files(&text)).unwrap_or_else(|all| panic!("{all:#?}")).mesh
}

fn given(mesh: &Mesh) -> Given {
    Given {
        birth: birth::compute(mesh),
        uuid: Uuid::of_random([7; 16]),
        now: "2026-11-30T10:53:00Z".parse().unwrap(),
        operators: Some(vec!["anna".into()]),
        own: Some("operator:anna".into()),
    }
}

fn wanted_of(mesh: &Mesh) -> Wanted {
    wanted::of(mesh, &given(mesh)).unwrap()
}

fn empty(wanted: &Wanted) -> Current {
    Current { cluster: Some(Id(wanted.identity.cluster_id.0)), ..Current::default() }
}

/// What the registry is after the first `count` changes were carried out, as etcd does it.
fn after(current: &Current, changes: &[Change], count: usize) -> Current {
    let mut now = current.clone();
    for (revision, change) in (101..).zip(&changes[..count]) {
        let stored = |value: &str| Stored { value: value.as_bytes().to_vec(), revision };
        match change.clone() {
            Change::Create { identity, schema, .. } => {
                now.identity = Some(stored(&identity));
                now.schema = Some(stored(&schema));
            }
            Change::Put { key: Key::Schema, value, .. } => now.schema = Some(stored(&value)),
            Change::Put { key, value, .. } => drop(now.want.insert(key.to_string().into_bytes(), stored(&value))),
            Change::Delete { key, .. } => drop(now.want.remove(&key)),
            Change::RemoveUser(user) => drop(now.users.remove(&user).unwrap()),
            Change::RemoveRole(role) => {
                now.roles.remove(&role).unwrap();
                for roles in now.users.values_mut() {
                    roles.remove(&role);
                }
            }
            Change::TakeRole { user, role } => assert!(now.users.get_mut(&user).unwrap().remove(&role)),
            Change::Revoke { role, permission } => assert!(now.roles.get_mut(&role).unwrap().remove(&permission)),
            Change::AddRole { role, permissions } => {
                assert!(now.roles.insert(role, permissions.into_iter().collect()).is_none());
            }
            Change::Grant { role, permission } => {
                let all = now.roles.get_mut(&role).unwrap();
                all.retain(|p| (&p.key, &p.end) != (&permission.key, &permission.end));
                all.insert(permission);
            }
            Change::AddUser { user, role } => assert!(now.users.insert(user, [role].into()).is_none()),
            Change::GiveRole { user, role } => assert!(now.users.get_mut(&user).unwrap().insert(role)),
            Change::EnableAuthentication => now.authentication = true,
        }
    }
    now
}

fn bootstrapped(wanted: &Wanted) -> Current {
    let current = empty(wanted);
    let changes = plan(wanted, &current).unwrap().changes;
    after(&current, &changes, changes.len())
}

fn lines(wanted: &Wanted, current: &Current) -> Vec<String> {
    plan(wanted, current).unwrap().changes.iter().map(ToString::to_string).collect()
}

fn codes(wanted: &Wanted, current: &Current) -> Vec<&'static str> {
    let findings = match plan(wanted, current) {
        Ok(plan) => plan.warnings,
        Err(findings) => findings,
    };
    findings.iter().map(|finding| finding.code).collect()
}

#[test]
fn the_first_run_writes_everything_and_authentication_last() {
    let wanted = wanted_of(&mesh(&[]));
    let lines = lines(&wanted, &empty(&wanted));
    assert!(
        lines[0].starts_with("+ /mesh/identity and /mesh/schema: mesh harbour, generation 1, cluster "),
        "{}",
        lines[0]
    );
    for line in [
        "+ /mesh/want/site/lisbon: kind data, round_trip_ms (madrid 30, porto 30)",
        "+ /mesh/want/site/madrid: kind arbiter, round_trip_ms (lisbon 30, porto 30)",
        "+ /mesh/want/node/lis1: site lisbon, part voter, address 10.77.0.11, services (postgres (port 5432, data_set orders))",
        "+ /mesh/want/quorum: topology quorum, voters lis1+mad1+por1, arbiters mad1",
        "+ /mesh/want/service/postgres: port 5432, protocol tcp, least_count 1, spread site",
        "+ /mesh/want/data/orders: replicas 2, spread site, nodes lis1+por1, never_on arbiter",
        "+ role root",
        "+ role node:lis1: may read /mesh/*, read and write /mesh/claim/orders/lisbon, read and write /mesh/live/lis1/*, \
         read and write /mesh/ops/lis1/*",
        "+ role node:edge-001: may read /mesh/*, read and write /mesh/live/edge-001/*, read and write /mesh/ops/edge-001/*",
        "+ user root with the role root",
        "+ user node:mad1 with the role node:mad1",
        "+ user snapshot:mad1 with the role root",
        "+ user operator:anna with the role root",
    ] {
        assert!(lines.iter().any(|one| one == line), "{line} is not in {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.contains("snapshot:edge")), "only where etcd runs");
    assert_eq!(lines.last().unwrap(), "+ authentication: from now on only these users get in");
    let first_user = lines.iter().position(|line| line.starts_with("+ user")).unwrap();
    assert!(lines[first_user..].iter().all(|line| !line.starts_with("+ role")), "roles before users");
}

#[test]
fn a_second_run_has_nothing_to_do() {
    let wanted = wanted_of(&mesh(&[]));
    assert_eq!(lines(&wanted, &bootstrapped(&wanted)), [""; 0]);
}

#[test]
fn an_interrupted_run_is_finished_by_the_next() {
    let wanted = wanted_of(&mesh(&[]));
    let (start, whole) = (empty(&wanted), bootstrapped(&wanted));
    let changes = plan(&wanted, &start).unwrap().changes;
    let bare = |current: &Current| {
        let values = |stored: &Stored| stored.value.clone();
        let want: BTreeMap<_, _> = current.want.iter().map(|(key, stored)| (key.clone(), values(stored))).collect();
        (
            current.identity.as_ref().map(values),
            want,
            current.roles.clone(),
            current.users.clone(),
            current.authentication,
        )
    };
    for count in 0..changes.len() {
        let mut half = after(&start, &changes, count);
        // A role without its permissions, a user without its role: etcd takes them one by one.
        if let Some(permissions) = half.roles.values_mut().last() {
            permissions.pop_last();
        }
        if let Some(roles) = half.users.values_mut().last() {
            roles.clear();
        }
        let rest = plan(&wanted, &half).unwrap().changes;
        assert_eq!(bare(&after(&half, &rest, rest.len())), bare(&whole), "after {count}");
    }
}

#[test]
fn a_changed_declaration_changes_only_what_differs() {
    let before = bootstrapped(&wanted_of(&mesh(&[])));
    let cases: &[(Changes, &[&str])] = &[
        (
            &[("10.77.0.13", "10.77.0.14")],
            // Another peer URL of a first member: a voter does not move so.
            &[],
        ),
        (
            &[("port = 5432", "port = 5433")],
            &[
                "~ /mesh/want/node/lis1: services (postgres (port 5433, data_set orders)) instead of (postgres (port 5432, data_set orders))",
                "~ /mesh/want/node/por1: services (postgres (port 5433, data_set orders)) instead of (postgres (port 5432, data_set orders))",
                "~ /mesh/want/service/postgres: port 5433 instead of 5432",
            ],
        ),
        (
            &[("count = 3", "count = 2")],
            &["- /mesh/want/node/edge-003", "- user node:edge-003", "- role node:edge-003"],
        ),
        (
            &[("count = 3", "count = 4")],
            &[
                "+ /mesh/want/node/edge-004: site porto, part client, address 10.77.1.4, services none",
                "+ role node:edge-004: may read /mesh/*, read and write /mesh/live/edge-004/*, read and write /mesh/ops/edge-004/*",
                "+ user node:edge-004 with the role node:edge-004",
            ],
        ),
        (
            &[(
                "address = \"10.77.0.12\"\nprofile = \"voter\"\nservice.postgres = { port = 5432, data-set = \"orders\" }",
                "address = \"10.77.0.12\"\nprofile = \"voter\"",
            )],
            &[
                "~ /mesh/want/node/por1: services none instead of (postgres (port 5432, data_set orders))",
                "~ /mesh/want/service/postgres: spread none instead of site",
                "~ /mesh/want/data/orders: replicas 1 instead of 2, nodes lis1 instead of lis1+por1",
                "~ role node:por1: may no more read and write /mesh/claim/orders/porto",
            ],
        ),
    ];
    for (changes, said) in cases {
        let mesh = mesh(changes);
        // The birth record stays what the lock file has.
        let wanted = wanted::of(&mesh, &Given { birth: birth::compute(&self::mesh(&[])), ..given(&mesh) }).unwrap();
        if said.is_empty() {
            assert_eq!(lines(&wanted, &before), ["~ /mesh/want/node/mad1: address 10.77.0.14 instead of 10.77.0.13"]);
        } else {
            assert_eq!(lines(&wanted, &before), *said, "{changes:?}");
        }
    }
}

#[test]
fn operators_come_and_go_with_the_store() {
    let mesh = mesh(&[]);
    let before = bootstrapped(&wanted_of(&mesh));
    let with = |operators: Option<&[&str]>, own: &str| {
        let operators = operators.map(|all| all.iter().map(|&name| name.to_owned()).collect());
        wanted::of(&mesh, &Given { operators, own: Some(own.into()), ..given(&mesh) }).unwrap()
    };
    assert_eq!(
        lines(&with(Some(&["anna", "ci"]), "operator:anna"), &before),
        ["+ user operator:ci with the role root"]
    );
    assert_eq!(
        lines(&with(Some(&["ci"]), "operator:ci"), &before),
        ["- user operator:anna", "+ user operator:ci with the role root"]
    );
    // Without a store nothing is known of the others.
    assert_eq!(lines(&with(None, "operator:ci"), &before), ["+ user operator:ci with the role root"]);
}

#[test]
fn what_only_the_registry_knows_is_kept() {
    let wanted = wanted_of(&mesh(&[]));
    let mut current = bootstrapped(&wanted);
    let image = "5c1f".repeat(16);
    let rewrite = |current: &mut Current, key: &str, old: &str, new: &str| {
        let stored = current.want.get_mut(key.as_bytes()).unwrap();
        let text = String::from_utf8(stored.value.clone()).unwrap();
        assert!(text.contains(old), "{old} is not in {text}");
        stored.value = text.replace(old, new).into_bytes();
    };
    let known = format!(r#""image":"{image}","rack":"r1","services""#);
    rewrite(&mut current, "/mesh/want/node/lis1", r#""services""#, &known);
    rewrite(&mut current, "/mesh/want/node/lis1", "5432,", r#"5432,"later":[1],"#);
    assert_eq!(lines(&wanted, &current), [""; 0], "unknown fields are no difference");
    rewrite(&mut current, "/mesh/want/node/lis1", "10.77.0.11", "10.77.0.99");
    let changes = plan(&wanted, &current).unwrap().changes;
    let [Change::Put { value, .. }] = changes.as_slice() else { panic!("{changes:?}") };
    for kept in [r#""rack":"r1""#, r#""later":[1]"#, &image] {
        assert!(value.contains(kept), "{kept} is not in {value}");
    }
}

#[test]
fn a_broken_wish_is_written_anew() {
    let wanted = wanted_of(&mesh(&[]));
    let mut current = bootstrapped(&wanted);
    current.want.get_mut(b"/mesh/want/quorum".as_slice()).unwrap().value = b"\xff\x1b[31m".to_vec();
    current.want.insert(b"/mesh/want/Node/\x1b".to_vec(), Stored { value: vec![], revision: 3 });
    assert_eq!(
        lines(&wanted, &current),
        [
            "~ /mesh/want/quorum: topology quorum, voters lis1+mad1+por1, arbiters mad1 (it was `\u{fffd}\\u{1b}[31m`)",
            "- /mesh/want/Node/\\u{1b}",
        ]
    );
}

#[test]
fn rights_that_somebody_changed_come_back() {
    let wanted = wanted_of(&mesh(&[]));
    let mut current = bootstrapped(&wanted);
    let all = Permission { key: b"/".to_vec(), end: b"0".to_vec(), read: true, write: true };
    let role = current.roles.get_mut("node:lis1").unwrap();
    role.insert(all);
    role.retain(|p| p.key != b"/mesh/");
    role.insert(Permission { key: b"/mesh/".to_vec(), end: b"/mesh0".to_vec(), read: true, write: true });
    current.users.get_mut("node:mad1").unwrap().insert("root".into());
    assert_eq!(
        lines(&wanted, &current),
        [
            "~ user node:mad1: no more the role root",
            "~ role node:lis1: may no more read and write /*",
            "~ role node:lis1: may read /mesh/*",
        ]
    );
}

#[test]
fn each_refusal_and_each_warning() {
    let wanted = wanted_of(&mesh(&[]));
    let good = bootstrapped(&wanted);
    let identity = |old: &str, new: &str| {
        let mut current = good.clone();
        let text = String::from_utf8(current.identity.as_ref().unwrap().value.clone()).unwrap();
        assert!(text.contains(old), "{text}");
        current.identity.as_mut().unwrap().value = text.replace(old, new).into_bytes();
        current
    };
    let schema = |value: &str| Current { schema: Some(Stored { value: value.into(), revision: 1 }), ..good.clone() };
    let own = |own: Option<&str>| {
        let mesh = mesh(&[]);
        wanted::of(&mesh, &Given { own: own.map(str::to_owned), ..given(&mesh) }).unwrap()
    };
    let cluster = |id: u64| Current { cluster: Some(Id(id)), ..good.clone() };
    let mut foreign = good.clone();
    foreign.users.insert("bob".into(), ["root".into()].into());
    foreign.roles.insert("all".into(), [].into());
    let newer = r#"{"v":1,"schema":2,"least_reader":1,"least_writer":2,"written_by":"fitout 9"}"#;
    let cases: Vec<(Wanted, Current, &[&str])> = vec![
        (wanted.clone(), good.clone(), &[]),
        (wanted.clone(), cluster(1), &["registry-other-mesh"]),
        (wanted.clone(), cluster(LONE_DEFAULT_CLUSTER.0), &["registry-other-mesh"]),
        (wanted.clone(), identity("\"harbour\"", "\"haven\""), &["registry-other-mesh"]),
        (wanted.clone(), identity("\"generation\":1", "\"generation\":2"), &["registry-other-generation"]),
        (wanted.clone(), identity("\"cluster_id\":\"", "\"cluster_id\":\"0"), &["registry-identity-unreadable"]),
        (wanted.clone(), identity("\"v\":1", "\"v\":2"), &["registry-identity-unreadable"]),
        (wanted.clone(), schema("{}"), &["registry-identity-unreadable"]),
        (wanted.clone(), schema(newer), &["registry-newer-schema"]),
        (own(None), good.clone(), &["registry-no-operator"]),
        (own(Some("node:lis1")), good.clone(), &["registry-no-operator"]),
        (own(Some("root")), good.clone(), &["registry-no-operator"]),
        (wanted.clone(), foreign.clone(), &["registry-foreign-access", "registry-foreign-access"]),
    ];
    let mut fired = BTreeSet::new();
    for (wanted, current, expected) in &cases {
        assert_eq!(codes(wanted, current), *expected);
        fired.extend(expected.iter().copied());
    }
    assert_eq!(lines(&wanted, &foreign), [""; 0], "what is not of the layout is left alone");
    assert_eq!(
        lines(&wanted, &schema(newer.replace('2', "1").as_str())),
        [""; 0],
        "another program's name is no difference"
    );
    for rule in crate::live::bootstrap::RULES {
        assert!(fired.contains(rule.code), "no fixture fires {}", rule.code);
    }
}

#[test]
fn a_lost_schema_is_written_again() {
    let wanted = wanted_of(&mesh(&[]));
    let current = Current { schema: None, ..bootstrapped(&wanted) };
    let said = lines(&wanted, &current);
    assert_eq!(said.len(), 1);
    assert!(
        said[0].starts_with("+ /mesh/schema: schema 1, least_reader 1, least_writer 1, written_by fitout "),
        "{said:?}"
    );
}
