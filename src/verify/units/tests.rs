//! Mutations of a stopped image, each with the codes that it must give: the table is the specification.
//!
//! The corpus (`tests/it/corpus`) boots a part of the same mutations on real Debian bases and compares.

mod fixture;
mod table;

use fixture::{LIB, image};
use table::{ETCD, TABLE};

use super::*;
use crate::tree::{Entry, TreePath};

/// The codes that an image gives, sorted, each once.
fn codes(image: &Image) -> Vec<&'static str> {
    let mut out = Vec::new();
    check(image, &mut out);
    let mut codes: Vec<&str> = out.iter().map(|f| f.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn each_mutation_gives_its_codes() {
    let mut wrong = Vec::new();
    for (case, mutation, want) in TABLE {
        let image = image(mutation);
        let got = codes(&image);
        if got != *want {
            let mut out = Vec::new();
            check(&image, &mut out);
            wrong.push(format!("{case}: {got:?}, wanted {want:?}\n{out:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_proof_agrees_with_the_findings() {
    let claims =
        ["unit-starts-at-boot", "unit-activated", "unit-start-command", "first-boot-enables", "tmpfiles-starts"];
    let triggers = ["alias-left", "enablement-link-left", "sysv-start-link", "preset-enables", "also-enables"];
    for (case, mutation, codes) in TABLE {
        let proof = proof(&image(mutation));
        let any = |list: &[&str]| codes.iter().any(|code| list.contains(code));
        assert_eq!(proof.subjects.iter().all(|s| s.stopped), !any(&claims), "{case}: {:#?}", proof.subjects);
        assert_eq!(proof.subjects.iter().all(|s| s.stays_disabled), !any(&triggers), "{case}: {:#?}", proof.subjects);
        assert!(serde_json::to_string(&proof).is_ok());
    }
}

#[test]
fn a_finding_carries_its_route() {
    let image =
        image(&[("E/x.target", "[Unit]\nWants=etcd.service\n"), ("E/basic.target.wants/x.target", "-> ../x.target")]);
    let mut out = Vec::new();
    check(&image, &mut out);
    assert_eq!(
        out[0].notes,
        [
            "PID 1 starts default.target (/usr/lib/systemd/system/default.target -> graphical.target (/usr/lib/systemd/system/graphical.target))",
            "graphical.target requires multi-user.target (/usr/lib/systemd/system/graphical.target:2: Requires=multi-user.target)",
            "multi-user.target requires basic.target (/usr/lib/systemd/system/multi-user.target:2: Requires=basic.target)",
            "basic.target wants x.target (/etc/systemd/system/basic.target.wants/x.target -> ../x.target)",
            "x.target wants etcd.service (/etc/systemd/system/x.target:2: Wants=etcd.service)",
        ]
    );
}

#[test]
fn every_way_in_is_one_finding() {
    let image = image(&[
        ("E/multi-user.target.wants/etcd.service", ETCD),
        ("E/a-b.service.d/x.conf", "[Unit]\nWants=etcd.service\n"),
        ("E/etcd.timer", "[Timer]\nOnBootSec=1\n"),
        ("E/timers.target.wants/etcd.timer", "-> ../etcd.timer"),
    ]);
    let mut out = Vec::new();
    check(&image, &mut out);
    let mut codes: Vec<&str> = out.iter().map(|f| f.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["unit-activated", "unit-starts-at-boot", "unit-starts-at-boot"]);
}

#[test]
fn the_ledger_says_which_units_are_stopped() {
    use crate::overlay::ledger::{Action, Origin, Record, Scope};
    let record = |by: &str| Record {
        action: Action::Removed,
        kind: "symlink".into(),
        mode: "0777".into(),
        uid: 0,
        gid: 0,
        sha256: None,
        target: None,
        public_key: None,
        scope: Scope::Profile,
        origin: Origin { overlay: "mesh".into(), file: "overlay.toml:1".into(), by: by.into() },
        replaced: None,
    };
    let mut image = image(&[("E/multi-user.target.wants/etcd.service", ETCD)]);
    let ledger = &mut image.manifest.as_mut().unwrap().ledger.records;
    ledger.insert("/etc/systemd/system/x".into(), record("unit a-b.service stopped"));
    ledger.insert("/etc/systemd/system/y".into(), record("unit etcd.service enabled"));
    let mut out = Vec::new();
    check(&image, &mut out);
    let starting: Vec<&str> =
        out.iter().filter(|f| f.code == "unit-starts-at-boot").map(|f| f.message.as_str()).collect();
    assert_eq!(starting.len(), 1, "{starting:?}");
    assert!(starting[0].starts_with("`a-b.service` is started at boot"), "{starting:?}");
}

#[test]
fn the_last_step_is_said_in_words() {
    use crate::systemd::edges::{Edge, EdgeKind};
    use crate::systemd::name::UnitName;
    let words = [
        (EdgeKind::Wants, "wants it by /x"),
        (EdgeKind::BindsTo, "binds to it by /x"),
        (EdgeKind::SysV, "wants it by a SysV link (/x)"),
        (EdgeKind::Device, "activates it by a device (/x)"),
        (EdgeKind::OnFailure, "starts it on failure (/x)"),
        (EdgeKind::Command, "runs a command that starts it (/x)"),
    ];
    for (kind, want) in words {
        let edge = Edge { kind, to: UnitName::parse("etcd.service").unwrap(), place: "/x".into() };
        assert_eq!(start::said(&edge), want);
    }
}

#[test]
fn contents_that_are_not_there_are_a_hole() {
    use crate::tree::{Data, Kind, Place};
    let mut image = image(&[]);
    let path = TreePath::parse(format!("{LIB}/a-b.service")).unwrap();
    let data = Data { place: Place::Dropped, ..Data::memory(*b"x") };
    image.tree.insert(path, Entry::new(Kind::File(data), 0o644));
    assert_eq!(codes(&image), ["unit-unreadable"]);
}

#[test]
fn every_rule_is_fired_by_a_fixture() {
    let mut fired: Vec<&str> = TABLE.iter().flat_map(|(_, _, codes)| codes.iter().copied()).collect();
    // Its fixture is a test of its own: it needs an entry without content.
    fired.push("unit-unreadable");
    for rule in RULES {
        assert!(fired.contains(&rule.code), "no fixture fires {}", rule.code);
        assert_eq!(rule.family, "units");
    }
    for code in fired {
        assert!(RULES.iter().any(|rule| rule.code == code), "{code} is in no rule");
    }
}
