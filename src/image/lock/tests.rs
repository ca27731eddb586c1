//! The lock file's form, its refusals, and what `--locked` says.

use super::*;
use snapbox::{assert_data_eq, str};

/// The one finding of a refused file.
fn unreadable(text: &[u8]) -> Finding {
    match Lock::parse("fitout.lock", text) {
        Err(Problem::Findings(findings)) if findings.len() == 1 => findings.into_iter().next().unwrap(),
        other => panic!("not one finding: {other:?}"),
    }
}

fn birth(voters: &[&str]) -> Birth {
    let peers = voters.iter().zip(11..).map(|(n, i)| ((*n).to_owned(), format!("https://10.77.0.{i}:2380"))).collect();
    Birth::of(1, "harbour-g1".into(), peers)
}

fn base(version: &str) -> LockedBase {
    LockedBase {
        name: "common".into(),
        digest: Digest::of(version.as_bytes()),
        tar_sha256: Digest::of(b"tar"),
        packages: BTreeMap::from([("etcd-server".into(), version.into()), ("adduser".into(), "3.152".into())]),
    }
}

fn lock() -> Lock {
    let mut lock = Lock::default();
    lock.pin_base(base("3.5.16-4"), LockedUse::Update).unwrap();
    lock.pin_user("app", Ids { uid: 990, gid: 991 }, LockedUse::Update).unwrap();
    lock.pin_birth(&birth(&["lis1"]), LockedUse::Update).unwrap();
    lock
}

#[test]
fn the_file_is_sorted_and_reads_back_the_same() {
    let text = lock().render().unwrap();
    assert_eq!(Lock::parse("fitout.lock", text.as_bytes()), Ok(lock()));
    assert_data_eq!(
        text,
        str![[r##"
# Written by fitout; keep it under version control. It pins what must not drift from build to build.
version = 1

[base]
name = "common"
digest = "40456cc40fe2c6d85820b07608facfbf9cf7e1cf30c64160d1c2e407e799ece5"
tar-sha256 = "90aebae315675cbf04612de4f7d5874850f48e0b8dd82becbeaa47ca93f5ebfb"

[base.packages]
adduser = "3.152"
etcd-server = "3.5.16-4"

[user.app]
uid = 990
gid = 991

[birth.1]
token = "harbour-g1"
cluster-id = "b490d2ffbd3db21b"

[birth.1.peers]
lis1 = "https://10.77.0.11:2380"

[birth.1.member-ids]
lis1 = "b20160f3dbcbb18e"

"##]]
    );
}

#[test]
fn it_is_written_only_when_it_differs() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(Lock::load(directory.path()), Ok(Lock::default()));
    assert_eq!(lock().save(directory.path()), Ok(true));
    assert_eq!(lock().save(directory.path()), Ok(false));
    assert_eq!(Lock::load(directory.path()), Ok(lock()));
}

#[test]
fn locked_refuses_what_is_not_pinned_and_says_what_differs() {
    let locked = LockedUse::Locked;
    let mut pinned = lock();
    assert_eq!(pinned.pin_base(base("3.5.16-4"), locked), Ok(()));
    assert_eq!(pinned.pin_user("app", Ids { uid: 990, gid: 991 }, locked), Ok(()));
    assert_eq!(pinned.pin_birth(&birth(&["lis1"]), locked), Ok(()));

    let finding = pinned.pin_base(base("3.5.21-1"), locked).unwrap_err();
    assert_eq!((finding.code, finding.notes), ("base-drifted", vec!["etcd-server: 3.5.16-4 -> 3.5.21-1".to_owned()]));
    let mut renamed = base("3.5.16-4");
    renamed.name = "other".into();
    assert_eq!(pinned.pin_base(renamed, locked).unwrap_err().code, "base-drifted");
    assert_eq!(pinned.pin_user("app", Ids { uid: 1, gid: 991 }, locked).unwrap_err().code, "user-not-locked");
    assert_eq!(pinned.pin_user("web", Ids { uid: 1, gid: 1 }, locked).unwrap_err().code, "user-not-locked");
    assert_eq!(pinned, lock(), "a refusal changes nothing");

    let mut empty = Lock::default();
    assert_eq!(empty.pin_base(base("1"), locked).unwrap_err().code, "base-drifted");
    assert_eq!(empty.pin_birth(&birth(&["lis1"]), locked).unwrap_err().code, "birth-not-locked");
    assert_eq!(empty, Lock::default());
}

#[test]
fn a_registry_is_born_once_per_generation() {
    let mut pinned = lock();
    let grown = birth(&["lis1", "por1", "mad1"]);
    for how in [LockedUse::Update, LockedUse::Locked] {
        assert_eq!(pinned.pin_birth(&grown, how), Ok(()), "voters come and go");
        assert_eq!(pinned, lock(), "and the record stands");
    }
    let finding = pinned.since_birth(&grown).unwrap();
    assert_eq!((finding.code, finding.severity), ("born-otherwise", Severity::Notice));
    assert_eq!(finding.notes, ["mad1: new, https://10.77.0.13:2380", "por1: new, https://10.77.0.12:2380"]);
    assert_eq!(pinned.since_birth(&birth(&["lis1"])), None);
    let renamed = Birth::of(1, "port-g1".into(), birth(&["lis1"]).peers);
    for how in [LockedUse::Update, LockedUse::Locked] {
        assert_eq!(pinned.pin_birth(&renamed, how).unwrap_err().code, "birth-changed");
    }
    let next = Birth::of(2, "harbour-g2".into(), birth(&["lis1"]).peers);
    assert_eq!(pinned.pin_birth(&next, LockedUse::Update), Ok(()));
    assert_eq!(pinned.births.keys().copied().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_cannot_be_understood_is_refused_with_its_line() {
    let good = lock().render().unwrap();
    let cases: &[(&str, &str, Option<usize>)] = &[
        ("version = 1", "version = 2", None),
        ("version = 1", "", None),
        ("version = 1", "version = 1\ncolour = 1", Some(3)),
        ("version = 1", "<<<<<<< ours\nversion = 1", Some(2)),
        ("uid = 990", "uid = \"990\"", Some(14)),
        ("birth.1", "birth.x", None),
        ("harbour-g1", "harbour-g2", None),
        ("10.77.0.11", "10.77.0.12", None),
    ];
    for (from, to, line) in cases {
        let text = good.replace(from, to);
        let finding = unreadable(text.as_bytes());
        assert_eq!(finding.code, "lock-unreadable", "{to}");
        let found = finding.span.map(|s| s.source.line_column(s.range.start).0);
        assert_eq!(found, *line, "{to}: {}", finding.message);
    }
    assert_eq!(unreadable(b"version = 1\nx = \"\xff\"").code, "lock-unreadable");
}
