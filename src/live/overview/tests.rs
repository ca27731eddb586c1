//! An overview of a small mesh, as people and programs see it.

use super::*;
use crate::layout::values::tests::{GOOD, good};

const NOW: &str = "2026-11-30T10:55:00Z";

/// Keys with the values that they get; an empty one removes the key.
type Changes<'a> = &'a [(&'a str, &'a str)];

fn items(changes: &[(&str, &str)]) -> Vec<Item> {
    let mut keys: BTreeMap<String, String> = GOOD.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    // The examples are of two generations.
    let identity = good("/mesh/identity").replace("\"generation\":2", "\"generation\":1").replace("-g2", "-g1");
    let identity = identity.split(",\"restored_from\"").next().unwrap().to_owned() + "}";
    keys.insert("/mesh/identity".into(), identity);
    let node = |site: &str, part: &str, services: &str| {
        format!(r#"{{"v":1,"site":"{site}","part":"{part}","address":"10.0.0.1","services":{services}}}"#)
    };
    let service = r#"{"postgres":{"port":5432,"data_set":"orders"}}"#;
    keys.insert("/mesh/want/node/por1".into(), node("porto", "voter", service));
    keys.insert("/mesh/want/node/mad1".into(), node("madrid", "arbiter", "{}"));
    keys.insert("/mesh/want/site/madrid".into(), r#"{"v":1,"kind":"arbiter","round_trip_ms":{}}"#.into());
    keys.insert("/mesh/want/site/porto".into(), r#"{"v":1,"kind":"data","round_trip_ms":{}}"#.into());
    for (key, value) in changes {
        if value.is_empty() {
            keys.remove(*key);
        } else {
            keys.insert((*key).into(), (*value).into());
        }
    }
    let item = |(key, value): (String, String)| Item { key: key.into(), value: value.into(), revision: 9, lease: 0 };
    keys.into_iter().map(item).collect()
}

fn shown(changes: &[(&str, &str)]) -> String {
    render(&Overview::of(&items(changes)), NOW.parse().unwrap())
}

#[test]
fn people_read_tables() {
    assert_eq!(
        shown(&[]),
        "\
mesh harbour, generation 1 since 2026-11-30T10:53:00Z, cluster 00ab2993bab74d3e

SITE    KIND     NODES  HERE
lisbon  data     1      1
madrid  arbiter  1      0
porto   data     1      0

NODE  SITE    PART     STATE  SINCE                 WHY
lis1  lisbon  voter    warn   2026-11-30T10:53:00Z  backup: the last is 26 h old
mad1  madrid  arbiter  away   -
por1  porto   voter    away   -

SERVICE   STATE  READY   LEAST  ON    NOT READY ON
postgres  fewer  1 of 2  1      lis1  -

DATA SET  SITE    HELD BY  STATE  SINCE                 MAY CLAIM
orders    lisbon  lis1     held   2026-11-30T10:53:00Z  lis1
orders    porto   -        free   -                     por1

certificates that end in more than 60 days: 1

BACKUP OF  NEWEST                AGE    REVISION  REHEARSED             ALL
lis1       2026-11-30T10:53:00Z  2 min  1234      2026-11-30T11:00:00Z  1
"
    );
}

#[test]
fn each_state_of_a_node() {
    let health =
        |at: &str, state: &str| format!(r#"{{"v":1,"state":"{state}","checks":{{}},"at":"2026-11-30T{at}Z"}}"#);
    let here = good("/mesh/live/lis1/here");
    let old = here.replace("\"generation\":1", "\"generation\":3");
    let (ok, bad, late) = (health("10:53:00", "ok"), health("10:53:00", "bad"), health("10:30:00", "ok"));
    let cases: &[(Changes<'_>, &str, &str)] = &[
        (&[("/mesh/live/lis1/health", &ok)], "ok", ""),
        (&[("/mesh/live/lis1/health", &bad)], "bad", ""),
        (&[("/mesh/live/lis1/health", "")], "warn", "it does not say how it is"),
        (&[("/mesh/live/lis1/health", &late)], "stuck", "its lease lives, and its last health is 25 min old"),
        (&[("/mesh/live/lis1/here", &old)], "old-generation", "it announces itself in generation 3"),
        (&[("/mesh/live/lis1/here", "")], "away", ""),
    ];
    for (changes, state, why) in cases {
        let all = Overview::of(&items(changes));
        let (standing, said) = all.standing(&all.nodes["lis1"], NOW.parse().unwrap());
        assert_eq!((standing.as_str(), said.as_str()), (*state, *why));
    }
}

#[test]
fn what_is_not_right_is_shown() {
    let claim = good("/mesh/claim/orders/lisbon");
    let soon = good("/mesh/ops/lis1/cert/server").replace("2031-11-30", "2026-12-10");
    let text = shown(&[
        ("/mesh/live/lis1/here", ""),
        ("/mesh/claim/orders/porto", &claim.replace("lis1", "old1")),
        ("/mesh/live/ghost/here", good("/mesh/live/lis1/here")),
        ("/mesh/ops/lis1/cert/server", &soon),
        ("/mesh/want/service/web", r#"{"v":1,"protocol":"tcp","least_count":1,"spread":"none"}"#),
        ("/mesh/Junk\u{1b}", "x"),
        ("/mesh/want/site/oporto", "{}"),
    ]);
    for line in [
        "orders    lisbon  lis1     held, its node is away  2026-11-30T10:53:00Z  lis1",
        "orders    porto   old1     not declared            2026-11-30T10:53:00Z  por1",
        "ghost  -       not declared  warn   2026-11-30T10:53:00Z  it does not say how it is",
        "lis1            server  2026-12-10T10:53:00Z  9",
        "postgres  down   0 of 2  1      -   -",
        "web       down   0 of 1  1      -   -",
        "/mesh/Junk\\u{1b}        schema 1 has no key of this form",
        "/mesh/want/site/oporto  `v` is missing",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    assert!(shown(&[("/mesh/identity", "")]).starts_with("the registry has no identity: it was not bootstrapped"));
}

#[test]
fn programs_read_objects() {
    let all = Overview::of(&items(&[]));
    let objects = objects(&all, NOW.parse().unwrap(), 77);
    let of = |kind: &str| objects.iter().filter(|o| o["type"] == kind).map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        of("registry"),
        [
            r#"{"type":"registry","mesh":"harbour","uuid":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","generation":1,"cluster-id":"00ab2993bab74d3e","schema":1,"topology":"quorum","revision":77}"#
        ]
    );
    assert_eq!(of("registry-node").len(), 3);
    assert_eq!(
        of("claim")[1],
        r#"{"type":"claim","data-set":"orders","site":"porto","node":null,"state":"free","since":null,"may":["por1"]}"#
    );
    for kind in ["registry-site", "registry-service", "registry-certificate", "registry-backup"] {
        assert!(!of(kind).is_empty(), "{kind}");
    }
}
