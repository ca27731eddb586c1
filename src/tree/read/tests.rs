mod codecs;
mod defects;

use proptest::prelude::*;

use super::raw::{Fields, Raw};
use super::*;
use crate::tree::{Digest, Entry, Kind, Place};

fn scan(tar: &[u8]) -> Scanned {
    read_tar(tar, &|_, _| true, Rest::Dropped).unwrap()
}

fn path(path: &str) -> TreePath {
    TreePath::parse(path).unwrap()
}

fn get<'a>(scanned: &'a Scanned, at: &str) -> &'a Entry {
    scanned.tree.get(&path(at)).unwrap_or_else(|| panic!("no {at}"))
}

fn defects(scanned: &Scanned) -> Vec<String> {
    scanned.defects.iter().map(ToString::to_string).collect()
}

#[test]
fn every_attribute_is_read() {
    let big = Fields { name: b"big-ids", ..Fields::default() };
    let tar = Raw::new()
        .directory("./")
        .header(&Fields { name: b"./bin", flag: b'5', mode: 0o41755, ..Fields::default() })
        .header(&Fields { name: b"./bin/su", mode: 0o104755, uid: 3, gid: 4, mtime: 99, size: 2, ..Fields::default() })
        .data(b"su")
        .hard_link("./bin/sudo", "bin/su")
        .hard_link("./bin/doas", "./bin/sudo")
        .symlink("./sbin", "usr/sbin")
        .device("./null", b'3', (1, 3))
        .device("./sda", b'4', (8, 0))
        .header(&Fields { name: b"./pipe", flag: b'6', ..Fields::default() })
        .pax(b'x', &[("SCHILY.xattr.security.capability", b"\x01\0\n=\xff"), ("SCHILY.xattr.user.empty", b"")])
        .file("./ping", b"p")
        .pax(b'x', &[("uid", b"3000000"), ("gid", b"4000000000"), ("mtime", b"-1.5")])
        .file("./ids", b"")
        .patched(&big, |b| b[108..116].copy_from_slice(b"\x80\0\0\0\xee\x6b\x28\0"))
        .end();
    let scanned = scan(&tar);
    assert_eq!(defects(&scanned), Vec::<String>::new());
    assert_eq!((scanned.members, scanned.len), (12, tar.len() as u64));
    assert!(scanned.implied.is_empty());

    let su = get(&scanned, "/bin/su");
    assert_eq!((su.mode, su.uid, su.gid, su.mtime), (0o4755, 3, 4, 99));
    let Kind::File(data) = &su.kind else { panic!("not a file") };
    assert_eq!((data.len, data.sha256), (2, Digest::of(b"su")));
    assert!(su.links.is_some());
    assert_eq!(su, get(&scanned, "/bin/sudo"));
    assert_eq!(su, get(&scanned, "/bin/doas"));
    assert_eq!(get(&scanned, "/bin").mode, 0o1755);
    assert_eq!(get(&scanned, "/sbin").kind, Kind::Symlink(b"usr/sbin".to_vec()));
    assert_eq!(get(&scanned, "/sbin").mode, 0o777);
    assert_eq!(get(&scanned, "/null").kind, Kind::Character { major: 1, minor: 3 });
    assert_eq!(get(&scanned, "/sda").kind, Kind::Block { major: 8, minor: 0 });
    assert_eq!(get(&scanned, "/pipe").kind, Kind::Fifo);
    let xattrs = &get(&scanned, "/ping").xattrs;
    assert_eq!(xattrs[&b"security.capability"[..]], b"\x01\0\n=\xff");
    assert_eq!(xattrs[&b"user.empty"[..]], b"");
    let ids = get(&scanned, "/ids");
    assert_eq!((ids.uid, ids.gid, ids.mtime), (3_000_000, 4_000_000_000, -2));
    assert_eq!(get(&scanned, "/big-ids").uid, 4_000_000_000);
}

#[test]
fn long_names_of_all_forms() {
    let long = format!("./{}/{}", "d".repeat(120), "f".repeat(140));
    let (prefix, name) = ("d".repeat(120), "f".repeat(90));
    let split = Fields { name: name.as_bytes(), ..Fields::default() };
    let cases = [
        (Raw::new().pax(b'x', &[("path", long.as_bytes())]).file("./short", b"x"), long.clone()),
        (Raw::new().extension(b'L', format!("{long}\0").as_bytes()).file("./short", b"x"), long.clone()),
        (Raw::new().extension(b'L', long.as_bytes()).file("./short", b"x"), long),
        (
            Raw::new().patched(&split, |b| b[345..345 + prefix.len()].copy_from_slice(prefix.as_bytes())),
            format!("{prefix}/{name}"),
        ),
    ];
    for (tar, want) in cases {
        let scanned = scan(&tar.end());
        assert_eq!(defects(&scanned), Vec::<String>::new());
        assert!(scanned.tree.get(&path(&want)).is_some(), "{want}");
    }
    let target = "t".repeat(200);
    for tar in [
        Raw::new().pax(b'x', &[("linkpath", target.as_bytes())]).symlink("l", "short"),
        Raw::new().extension(b'K', format!("{target}\0").as_bytes()).symlink("l", "short"),
    ] {
        let scanned = scan(&tar.end());
        assert_eq!(get(&scanned, "/l").kind, Kind::Symlink(target.clone().into_bytes()));
    }
}

#[test]
fn pax_records_belong_to_the_next_member_only() {
    let tar = Raw::new()
        .pax(b'g', &[("comment", b"made by a tool"), ("mtime", b"50")])
        .pax(b'x', &[("path", b"renamed"), ("size", b"3")])
        .file("a", b"abc")
        .file("b", b"b")
        .pax(b'x', &[("mtime", b"")])
        .file("c", b"")
        .end();
    let scanned = scan(&tar);
    assert_eq!(scanned.tree.content(&path("/renamed")), Ok(b"abc".to_vec()));
    assert_eq!((get(&scanned, "/renamed").mtime, get(&scanned, "/b").mtime), (50, 50));
    assert_eq!(get(&scanned, "/c").mtime, 7, "an empty value takes the global one away");
    assert!(scanned.defects.iter().all(|d| d.kind.is_only_ambiguous_elsewhere()), "{:?}", scanned.defects);
    assert_eq!(scanned.defects.len(), 1);
}

#[test]
fn directories_that_are_not_listed_are_implied() {
    let scanned = scan(&Raw::new().file("a/b/c", b"").directory("a/b").end());
    assert_eq!(defects(&scanned), Vec::<String>::new());
    assert_eq!(scanned.implied.iter().map(TreePath::display).collect::<Vec<_>>(), ["/", "/a"]);
    assert_eq!(get(&scanned, "/a/b").mtime, 7);
    assert!(get(&scanned, "/a").is_directory());
    assert!(get(&scanned, "/").is_directory());
}

#[test]
fn what_does_not_fit_the_root_is_not_in_the_tree() {
    let tar = Raw::new().symlink("a", "/etc").file("a/x", b"").file("/y", b"").file("../z", b"").file("ok", b"").end();
    let scanned = scan(&tar);
    let all: Vec<String> = scanned.tree.entries.keys().map(TreePath::display).collect();
    assert_eq!(all, ["/", "/a", "/ok"]);
}

#[test]
fn content_goes_where_it_is_asked_to() {
    let tar = Raw::new().file("keep", b"kept").file("large", &[b'x'; 5000]).end();
    let keep = |p: &TreePath, len: u64| p.as_bytes() == b"keep" && len < 100;
    let place = |scanned: &Scanned, at: &str| match &get(scanned, at).kind {
        Kind::File(data) => data.place.clone(),
        _ => panic!("not a file"),
    };
    let scanned = read_tar(&*tar, &keep, Rest::InTar).unwrap();
    assert_eq!(place(&scanned, "/keep"), Place::Memory(b"kept"[..].into()));
    assert_eq!(place(&scanned, "/large"), Place::Base { offset: 1536 });
    assert_eq!(tar[1536..6536], [b'x'; 5000]);
    let scanned = read_tar(&*tar, &keep, Rest::Dropped).unwrap();
    assert_eq!(place(&scanned, "/large"), Place::Dropped);
}

proptest! {
    /// Any bytes at all: no panic, no endless loop.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let _ = read_tar(&*bytes, &|_, _| true, Rest::Dropped);
    }

    /// A right archive with some bytes changed: no panic; and a header that changed is never taken in silence.
    #[test]
    fn changed_headers_are_told(at in 0usize..512, to in any::<u8>()) {
        let mut tar = Raw::new().file("./a", b"abc").directory("./d").end();
        prop_assume!(tar[1024 + at] != to);
        tar[1024 + at] = to;
        // Spaces and NULs around the checksum's digits mean the same.
        prop_assume!(!(148..156).contains(&at));
        prop_assert!(!scan(&tar).defects.is_empty());
    }
}
