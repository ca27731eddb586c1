//! What is told of wrong archives.

use super::*;

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
