use std::io::{Cursor, Read, Write};

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

/// Each archive, and all that is told of it.
#[test]
fn every_defect_is_told() {
    let new = Raw::new;
    let size_of =
        |flag, name: &'static str| Fields { name: name.as_bytes(), flag, size: 5, link: b"t", ..Fields::default() };
    let long = "n".repeat(256);
    let very_long = "n/".repeat(2100);
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("the same name", new().file("a", b"1").file("a", b"2").end(), &["`a` is there twice"]),
        ("written otherwise", new().file("./a", b"1").file("a", b"2").end(), &["`a` is there twice"]),
        ("a directory again", new().directory("./d").directory("d/").end(), &["`d/` is there twice"]),
        ("the root again", new().directory("./").directory(".").end(), &["`.` is there twice"]),
        ("absolute", new().file("/etc/passwd", b"").end(), &["`/etc/passwd` is an absolute name"]),
        ("parent", new().file("../etc/passwd", b"").end(), &["`../etc/passwd` has a `..` element"]),
        ("parent within", new().file("a/../b", b"").end(), &["`a/../b` has a `..` element"]),
        ("no name", new().file("", b"").end(), &["it is empty"]),
        (
            "a NUL",
            new().pax(b'x', &[("path", b"a\0b")]).file("a", b"").end(),
            &["`a\\x00b` is not a usable name: it holds a NUL"],
        ),
        (
            "long element",
            new().pax(b'x', &[("path", long.as_bytes())]).file("a", b"").end(),
            &["longer than 255 bytes"],
        ),
        (
            "long path",
            new().pax(b'x', &[("path", very_long.as_bytes())]).directory("a").end(),
            &["longer than 4095 bytes"],
        ),
        (
            "below a link inside",
            new().directory("usr").symlink("lib", "usr/lib").file("lib/x", b"").end(),
            &["`lib/x` lies below the symlink /lib -> `usr/lib`, which leads to `/usr/lib/x`"],
        ),
        (
            "below a link to an absolute name",
            new().symlink("a", "/etc").file("a/cron.d/x", b"").end(),
            &["`a/cron.d/x` lies below the symlink /a -> `/etc`, which leads out of the root, to `/etc/cron.d/x`"],
        ),
        (
            "below a link upwards",
            new().directory("d").symlink("d/a", "../../up").file("d/a/x", b"").end(),
            &["`d/a/x` lies below the symlink /d/a -> `../../up`, which leads out of the root, to `../up/x`"],
        ),
        (
            "below two links",
            new().symlink("a", "b").symlink("b", "..").file("a/x", b"").end(),
            &["`a/x` lies below the symlink /a -> `b`, which leads out of the root, to `../x`"],
        ),
        ("below a looping link", new().symlink("a", "a").file("a/x", b"").end(), &["lies below the symlink /a -> `a`"]),
        ("below a file", new().file("a", b"").file("a/x", b"").end(), &["`a/x` lies below /a, which is a file"]),
        (
            "link over a directory",
            new().file("a/x", b"").symlink("a", "/").end(),
            &["`a` is a symlink where other members"],
        ),
        ("file over a directory", new().directory("a").file("a", b"").end(), &["`a` is a file where other members"]),
        ("the root as a file", new().symlink("./", "/x").end(), &["`./` is a symlink where other members"]),
        ("file with a slash", new().file("a/", b"").end(), &["`a/` is a regular file with a `/` at its end"]),
        (
            "hard link to nothing",
            new().hard_link("b", "a").file("a", b"").end(),
            &["hard link to `a`, which is not there before"],
        ),
        (
            "hard link to itself",
            new().file("a", b"").hard_link("./a", "a").end(),
            &["hard link to `a`, which is itself"],
        ),
        (
            "hard link to a directory",
            new().directory("a").hard_link("b", "a").end(),
            &["hard link to `a`, which is a directory"],
        ),
        (
            "hard link out, absolute",
            new().hard_link("b", "/etc/shadow").end(),
            &["`/etc/shadow`, which is an absolute name"],
        ),
        ("hard link out, parent", new().hard_link("b", "../x").end(), &["`../x`, which has a `..` element"]),
        (
            "hard link with content",
            new().file("t", b"").header(&size_of(b'1', "h")).end(),
            &["`h` is a hard link with a size of 5 bytes"],
        ),
        (
            "symlink with content",
            new().header(&size_of(b'2', "s")).data(b"12345").end(),
            &["`s` is a symlink with a size of 5"],
        ),
        (
            "directory with content",
            new().header(&size_of(b'5', "d")).data(b"12345").end(),
            &["`d` is a directory with a size of 5"],
        ),
        ("symlink to nothing", new().symlink("s", "").end(), &["`s` is a symlink without a target"]),
        (
            "PAX size",
            new().pax(b'x', &[("size", b"2")]).file("a", b"abc").end(),
            &["`a` has a PAX size of 2 bytes and 3 in its header"],
        ),
        (
            "PAX size alone",
            new().pax(b'x', &[("size", b"2")]).file("a", b"").data(b"ab").end(),
            &["`a` has a PAX size of 2 bytes and 0"],
        ),
        (
            "PAX size unreadable",
            new().pax(b'x', &[("size", b"-2")]).file("a", b"").end(),
            &["`a` has an unreadable PAX size"],
        ),
        ("malformed PAX", new().extension(b'x', b"9 path\n").file("a", b"").end(), &["`a` has a malformed PAX header"]),
        (
            "PAX sparse",
            new()
                .pax(b'x', &[("GNU.sparse.major", b"1"), ("GNU.sparse.name", b"disk")])
                .file("GNUSparseFile.0/disk", b"x")
                .end(),
            &["is stored as a sparse file (PAX sparse format 1.0), which is not supported"],
        ),
        (
            "PAX sparse, old",
            new().pax(b'x', &[("GNU.sparse.map", b"0,1")]).file("a", b"x").end(),
            &["(PAX sparse format 0)"],
        ),
        ("GNU sparse", old_sparse(), &["`disk` is stored as a sparse file (old GNU format)"]),
        (
            "PAX and GNU names",
            new().pax(b'x', &[("path", b"a")]).extension(b'L', b"b\0").file("c", b"").end(),
            &["`a` has both PAX and GNU long-name headers"],
        ),
        (
            "a GNU name and then the same in PAX",
            new().extension(b'L', b"b\0").pax(b'x', &[("path", b"a")]).file("c", b"").end(),
            &["`a` has both PAX and GNU long-name headers"],
        ),
        (
            "PAX about something else, and then a GNU name",
            new().pax(b'x', &[("uid", b"7")]).extension(b'L', b"b\0").file("c", b"").end(),
            &["`b` has both PAX and GNU long-name headers"],
        ),
        (
            "two PAX headers",
            new().pax(b'x', &[("path", b"a")]).pax(b'x', &[("path", b"b")]).file("c", b"").end(),
            &["`b` has two extension headers of type `x`"],
        ),
        (
            "an ACL",
            new().pax(b'x', &[("SCHILY.acl.access", b"user::rw-")]).file("a", b"").end(),
            &["`SCHILY.acl.access`, which is not supported"],
        ),
        (
            "bsdtar's attribute alone",
            new().pax(b'x', &[("LIBARCHIVE.xattr.user.a", b"eA==")]).file("a", b"").end(),
            &["`LIBARCHIVE.xattr.user.a`"],
        ),
        (
            "global name",
            new().pax(b'g', &[("path", b"a")]).file("x", b"").end(),
            &["has a global PAX header with `path`"],
        ),
        ("global owner", new().pax(b'g', &[("uid", b"5")]).file("x", b"").end(), &["`uid`, which some readers ignore"]),
        (
            "unknown type",
            new().header(&size_of(b'M', "m")).data(b"12345").file("a", b"").end(),
            &["`m` has the unknown type `M`"],
        ),
        (
            "owner too large",
            new().pax(b'x', &[("uid", b"4294967296")]).file("a", b"").end(),
            &["`a` has an unreadable owner"],
        ),
        (
            "mode unreadable",
            new().patched(&size_of(b'6', "p"), |b| b[100] = b'x').data(b"12345").end(),
            &["`p` has an unreadable mode", "`p` is a fifo with a size"],
        ),
        ("PAX header without member", new().pax(b'x', &[("path", b"a")]).end(), &["ends after an extension header"]),
        ("no end marker", new().file("a", b"").0, &["the archive has no end marker"]),
        (
            "half an end marker",
            {
                let mut t = new().file("a", b"").end();
                t.truncate(1024);
                t
            },
            &["the archive has no end marker"],
        ),
        (
            "lone zero block",
            {
                let mut r = new().file("a", b"");
                r.0.extend([0; 512]);
                r.file("b", b"").end()
            },
            &["a single zero block"],
        ),
        (
            "data after the end",
            {
                let mut t = new().file("a", b"").end();
                t.extend(b"more");
                t
            },
            &["has data after its end marker"],
        ),
        (
            "truncated content",
            {
                let mut t = new().file("a", &[1; 600]).0;
                t.truncate(700);
                t
            },
            &["`a` is truncated within this member"],
        ),
        (
            "truncated header",
            {
                let mut t = new().file("a", b"").file("b", b"").0;
                t.truncate(700);
                t
            },
            &["the archive is truncated within a header"],
        ),
        (
            "damaged header",
            {
                let mut t = new().file("a", b"").file("b", b"").end();
                t[512] = b'c';
                t
            },
            &["a header's checksum is wrong"],
        ),
        (
            "huge extension",
            new().header(&Fields { name: b"x", flag: b'x', size: 1 << 21, ..Fields::default() }).end(),
            &["an extension header of 2097152 bytes"],
        ),
    ];
    for (what, tar, want) in cases {
        let got = defects(&scan(&tar));
        assert_eq!(got.len(), want.len(), "{what}: {got:?}");
        for (got, want) in got.iter().zip(want) {
            assert!(got.contains(want), "{what}: {got}");
        }
    }
}

/// An old GNU sparse file with one more block of maps.
fn old_sparse() -> Vec<u8> {
    let fields = Fields { name: b"disk", flag: b'S', size: 3, ..Fields::default() };
    let mut raw = Raw::new().patched(&fields, |b| {
        b[257..265].copy_from_slice(b"ustar  \0");
        b[482] = 1;
    });
    raw.0.extend([0; 512]);
    raw.data(b"abc").file("after", b"").end()
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

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compression_is_told_by_content() {
    let tar = Raw::new().file("a", b"abc").end();
    let zstd = zstd::encode_all(&*tar, 1).unwrap();
    let cases = [
        (Codec::Plain, tar.clone()),
        (Codec::Plain, vec![0; 1024]),
        (Codec::Gzip, gzip(&tar)),
        (Codec::Gzip, [gzip(&tar[..512]), gzip(&tar[512..])].concat()),
        (Codec::Zstd, zstd),
        (Codec::Zstd, [zstd::encode_all(&tar[..512], 1).unwrap(), zstd::encode_all(&tar[512..], 1).unwrap()].concat()),
    ];
    for (want, stored) in cases {
        let (codec, mut reader) = decompress(Cursor::new(stored)).unwrap();
        let mut plain = Vec::new();
        reader.read_to_end(&mut plain).unwrap();
        assert_eq!(codec, want);
        assert!(plain == tar || plain == [0; 1024]);
    }
}

#[test]
fn what_is_no_tar_is_named() {
    let block = |start: &[u8]| [start, &[b'x'; 1000]].concat();
    let mut bad = Raw::new().file("a", b"").end();
    bad[0] = b'b';
    let cases: &[(Vec<u8>, &str)] = &[
        (vec![], "not a tar: it is empty"),
        (b"hello\n".to_vec(), "not a tar: it has only 6 bytes"),
        (block(b"\n<!DOCTYPE html><html>404"), "not a tar: it looks like a page of HTML"),
        (block(b"PK\x03\x04"), "not a tar: it looks like a zip archive"),
        (block(b"!<arch>\ndebian-binary"), "not a tar: it looks like an ar archive"),
        (block(b"\xfd7zXZ\0"), "compressed with xz, which is not supported"),
        (block(b"BZh9"), "compressed with bzip2, which is not supported"),
        (block(b"\x04\x22\x4d\x18"), "compressed with lz4, which is not supported"),
        (block(b""), "not a tar: its first block is no tar header"),
        (bad, "not a tar: its first header is damaged"),
    ];
    for (bytes, want) in cases {
        let got = decompress(&**bytes).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(got.contains(want), "{got} / {want}");
        let got = read_tar(&**bytes, &|_, _| false, Rest::Dropped).err().map(|e| e.to_string()).unwrap_or_default();
        let short = bytes.len() == 6;
        assert!(got.contains(want) || short, "{got} / {want}");
    }
    let twice = gzip(&gzip(&Raw::new().file("a", &(0..4096).map(|i| (i * i / 7) as u8).collect::<Vec<_>>()).end()));
    let (_, reader) = decompress(&*twice).unwrap();
    let got = read_tar(reader, &|_, _| false, Rest::Dropped).unwrap_err().to_string();
    assert!(got.contains("compressed twice"), "{got}");
}

/// Whatever byte of a compressed archive is wrong, and wherever it ends, reading says so.
#[test]
fn damage_of_a_compressed_stream_is_told() {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let content: Vec<u8> = (0..20_000).map(|_| random()).collect();
    let tar = Raw::new().file("a", &content).file("b", b"b").end();
    let gz = gzip(&tar);
    let zst = {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&tar).unwrap();
        encoder.finish().unwrap()
    };
    let bad = |stored: &[u8]| match decompress(stored) {
        Err(_) => true,
        Ok((_, reader)) => match read_tar(reader, &|_, _| false, Rest::Dropped) {
            Err(_) => true,
            Ok(scanned) => !scanned.defects.is_empty(),
        },
    };
    assert!(!bad(&gz) && !bad(&zst));
    // The gzip header's time and system mean nothing, nor do some bits of zstd's frame header.
    for (stored, first) in [(&gz, 10), (&zst, 12)] {
        for at in (first..stored.len()).step_by(997).chain(stored.len() - 8..stored.len()) {
            let mut flipped = stored.clone();
            flipped[at] ^= 0x10;
            assert!(bad(&flipped), "flipped byte {at} of {}", stored.len());
            assert!(bad(&stored[..at]), "cut at {at} of {}", stored.len());
        }
    }
    let garbage = [&gz[..], b"garbage"].concat();
    assert!(bad(&garbage), "bytes after the gzip member");
}

#[test]
fn reading_ahead_changes_nothing() {
    let bytes: Vec<u8> = (0u32..3_000_000).map(|i| (i / 3) as u8).collect();
    let mut got = Vec::new();
    ReadAhead::new(Cursor::new(bytes.clone())).unwrap().read_to_end(&mut got).unwrap();
    assert!(got == bytes);
    // Errors come after what was read before them, and a reader that is dropped early ends the thread.
    let mut got = Vec::new();
    let gz = gzip(&bytes);
    let broken = flate2::read::MultiGzDecoder::new(Cursor::new(gz[..gz.len() / 2].to_vec()));
    let error = ReadAhead::new(broken).unwrap().read_to_end(&mut got).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(!got.is_empty() && bytes.starts_with(&got));
    drop(ReadAhead::new(std::io::repeat(7)).unwrap());
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
