//! Test: GNU tar, bsdtar, busybox, Python's `tarfile` and this project's own reader read what the writer writes, and
//! agree.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::digest::listing;
use super::read::{Rest, read_tar};
use super::write::{Links, end_of_archive, write_entries};
use super::{Data, Entry, Kind, LinkGroup, Tree, TreePath};

/// A tree with all that is hard for a tar: long names, big numbers, odd bytes, devices, links, attributes.
pub(crate) fn hard_tree() -> Tree {
    let mut tree = Tree::default();
    let mut put = |path: &[u8], entry: Entry| {
        let path = TreePath::parse(path).unwrap();
        for directory in path.ancestors() {
            tree.entries.entry(directory).or_insert_with(|| Entry::directory(0o755).dated(1_700_000_000));
        }
        tree.insert(path, entry);
    };
    let x = |n: usize| "x".repeat(n);
    let linked = Entry { links: Some(LinkGroup(1)), ..Entry::file(*b"linked", 0o640) };
    let mut attributes = Entry::file(*b"caps", 0o755);
    attributes.xattrs = [
        (b"security.capability".to_vec(), vec![1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0]),
        (b"user.binary".to_vec(), vec![0, 255, b'\n', b'=', 128]),
        (b"user.empty".to_vec(), vec![]),
    ]
    .into();
    put(b"/bin", Entry::symlink(*b"usr/bin"));
    put(b"/dev/console", Entry::new(Kind::Character { major: 5, minor: 1 }, 0o620).owned(0, 5));
    put(b"/dev/disk", Entry::new(Kind::Block { major: 259, minor: 1_048_575 }, 0o660).owned(0, 6));
    put(b"/run/fifo", Entry::new(Kind::Fifo, 0o600));
    put(b"/tmp", Entry::directory(0o1777));
    put(b"/usr/bin/su", Entry::file(*b"su", 0o4755));
    put(b"/usr/bin/write", Entry::file(vec![7; 512], 0o2755).owned(0, 5));
    put(b"/usr/bin/ping", attributes);
    put(b"/usr/empty", Entry::file(*b"", 0o444));
    put(b"/links/second", linked.clone());
    put(b"/links/first", linked.clone());
    put(format!("/links/{}", x(200)).as_bytes(), linked);
    // With "./" in front these are 99, 100, 101, 255, 256 and 257 bytes, with and without a place to divide.
    for n in [97, 98, 99, 253] {
        put(x(n).as_bytes(), Entry::file(*b"long", 0o644));
    }
    put(format!("/{}/{}", x(153), x(100)).as_bytes(), Entry::file(*b"divided", 0o644));
    put(format!("/{}/{}", x(154), x(100)).as_bytes(), Entry::file(*b"longer", 0o644));
    put(format!("/{}/{}/{}/{}", x(120), x(130), x(140), x(250)).as_bytes(), Entry::file(*b"longest", 0o644));
    put(format!("/dirs/{}", x(99)).as_bytes(), Entry::directory(0o755));
    put(format!("/dirs/{}", x(100)).as_bytes(), Entry::directory(0o755));
    put(b"/sym/100", Entry::symlink("y".repeat(100)));
    put(b"/sym/101", Entry::symlink("y".repeat(101)));
    put(b"/sym/absolute", Entry::symlink(format!("/{}", "z".repeat(4000))));
    put(b"/names/with space", Entry::file(*b"1", 0o644));
    put("/names/\u{e4}\u{f6}".as_bytes(), Entry::file(*b"2", 0o644));
    put(b"/names/latin\xe4", Entry::file(*b"3", 0o644));
    put(&[b"/names/latin\xe4", x(150).as_bytes()].concat(), Entry::file(*b"4", 0o644));
    put(b"/numbers/ids", Entry::file(*b"5", 0o644).owned(2_097_151, 2_097_152));
    put(b"/numbers/largest", Entry::file(*b"6", 0o644).owned(u32::MAX - 1, 4_000_000_000));
    put(b"/numbers/before-1970", Entry::file(*b"7", 0o644).dated(-1));
    put(b"/numbers/long-ago", Entry::file(*b"8", 0o644).dated(-2_208_988_800));
    // Long names beside PAX records.
    put(format!("/both/{}", x(250)).as_bytes(), Entry::file(*b"a", 0o644).owned(3_000_000, 0));
    put(b"/both/link", Entry::symlink("z".repeat(300)).dated(-7));
    put(format!("/both/{}", "y".repeat(240)).as_bytes(), Entry::symlink("z".repeat(300)).dated(-7));
    put(b"/numbers/late", Entry::file(*b"9", 0o644).dated(8_589_934_592));
    tree
}

/// The whole tree as one plain tar.
pub(crate) fn tar_of(tree: &Tree) -> Vec<u8> {
    let mut out = Vec::new();
    write_entries(&mut out, &tree.entries, tree.store.as_deref(), &mut Links::default()).unwrap();
    end_of_archive(&mut out).unwrap();
    out
}

/// When this fails, the writer gives other bytes than before: raise [`super::write::FORMAT`] with this digest.
#[test]
fn the_bytes_of_the_writer_are_known() {
    assert_eq!(
        super::Digest::of(&tar_of(&hard_tree())).hex(),
        "39206123d4a7a7031b93a1c6ad4ebcaf5e23b44ccc9c0a10ab743b8dcfabfe84"
    );
}

fn read_by(program: &str, arguments: &[&str], archive: &[u8]) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{program}: {e}: install tar, libarchive-tools, busybox and python3"));
    let mut input = child.stdin.take().unwrap();
    let archive = archive.to_vec();
    let feeder = std::thread::spawn(move || input.write_all(&archive));
    let output = child.wait_with_output().unwrap();
    let (errors, text) = (latin(&output.stderr), latin(&output.stdout));
    assert!(output.status.success() && errors.is_empty(), "{program}: {}\n{errors}", output.status);
    // A reader may stop at the end of the archive.
    drop(feeder.join().unwrap());
    text
}

/// Bytes as characters of the same number, so that odd bytes can be compared as text.
fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

/// What a listing says of one entry.
struct Seen {
    mode: String,
    owner: String,
    size: String,
    time: String,
    name: String,
}

/// What `ls` and every tar call the mode.
fn mode_text(kind: char, mode: u16) -> String {
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (false, true) => 'x',
            (false, false) => '-',
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
        });
    }
    text
}

fn expected(tree: &Tree) -> Vec<Seen> {
    let mut first: Option<&TreePath> = None;
    let mut all = Vec::new();
    for (path, entry) in &tree.entries {
        let mut name = format!("./{}", latin(path.as_bytes()));
        let mut size = String::from("0");
        let mut kind = match &entry.kind {
            Kind::File(data) => {
                size = data.len.to_string();
                '-'
            }
            Kind::Directory => {
                name = if path.is_root() { name } else { format!("{name}/") };
                'd'
            }
            Kind::Symlink(target) => {
                name = format!("{name} -> {}", latin(target));
                'l'
            }
            Kind::Character { major, minor } => {
                size = format!("{major},{minor}");
                'c'
            }
            Kind::Block { major, minor } => {
                size = format!("{major},{minor}");
                'b'
            }
            Kind::Fifo => 'p',
        };
        if entry.links.is_some() {
            if let Some(first) = first {
                name = format!("{name} link to ./{}", latin(first.as_bytes()));
                (kind, size) = ('h', "0".into());
            }
            first = first.or(Some(path));
        }
        let time = time::OffsetDateTime::from_unix_timestamp(entry.mtime).unwrap();
        let time = format!("{} {:02}:{:02}:{:02}", time.date(), time.hour(), time.minute(), time.second());
        all.push(Seen {
            mode: mode_text(kind, entry.mode),
            owner: format!("{}/{}", entry.uid, entry.gid),
            size,
            time,
            name,
        });
    }
    all
}

fn compare(reader: &str, got: &str, want: impl Iterator<Item = String>) {
    // Columns are padded; what stands between them is one space.
    let got: Vec<String> = got.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let want: Vec<String> = want.collect();
    for (got, want) in got.iter().zip(&want) {
        assert_eq!(got, want, "{reader}");
    }
    assert_eq!(got.len(), want.len(), "{reader}");
}

#[test]
fn gnu_tar_reads_it() {
    let tree = hard_tree();
    let got =
        read_by("tar", &["--numeric-owner", "--full-time", "--quoting-style=literal", "-tvf", "-"], &tar_of(&tree));
    let want = expected(&tree).into_iter().map(|s| format!("{} {} {} {} {}", s.mode, s.owner, s.size, s.time, s.name));
    compare("GNU tar", &got, want);
}

#[test]
fn gnu_tar_reads_the_attributes() {
    let got = read_by("tar", &["--xattrs", "--xattrs-include=*", "-tvv", "-f", "-"], &tar_of(&hard_tree()));
    let seen: Vec<&str> = got.lines().filter_map(|l| l.strip_prefix("  x: ")).map(str::trim).collect();
    assert_eq!(seen, ["20 security.capability", "5 user.binary", "0 user.empty"]);
}

#[test]
fn bsdtar_reads_it() {
    let tree = hard_tree();
    let got = read_by("bsdtar", &["--numeric-owner", "-tvf", "-"], &tar_of(&tree));
    // Columns: mode, links, uid, gid, size, three for a time without seconds, name. Odd bytes are shown in octal.
    let got: Vec<String> = got
        .lines()
        .map(|line| {
            let f: Vec<&str> = line.split_whitespace().collect();
            format!("{} {}/{} {} {}", f[0], f[2], f[3], f[4], f[8..].join(" "))
        })
        .collect();
    let want = expected(&tree)
        .into_iter()
        .map(|s| format!("{} {} {} {}", s.mode, s.owner, s.size, s.name.replace('\u{e4}', "\\344")));
    compare("bsdtar", &got.join("\n"), want);
}

#[test]
fn busybox_reads_it() {
    let tree = hard_tree();
    let got = read_by("busybox", &["tar", "-tvf", "-"], &tar_of(&tree));
    let want = expected(&tree).into_iter().map(|s| {
        // It shows hard links as files, devices without numbers.
        let mode = s.mode.replace('h', "-");
        let size = if s.size.contains(',') { "0".into() } else { s.size };
        format!("{mode} {} {size} {} {}", s.owner, s.time, s.name.replace(" link to ", " -> "))
    });
    compare("busybox", &got, want);
}

/// Prints every member as the other readers do, and its attributes; opened as a stream or with seeking.
const PYTHON: &str = r#"
import sys, tarfile, time
mode, path = sys.argv[1:]
archive = tarfile.open(path, mode, errors="surrogateescape", encoding="utf-8")
out = sys.stdout.buffer
for m in archive:
    kind = "h" if m.islnk() else "l" if m.issym() else "d" if m.isdir() else "c" if m.ischr() else "b" if m.isblk() else "p" if m.isfifo() else "-"
    size = f"{m.devmajor},{m.devminor}" if kind in "cb" else str(m.size)
    name = m.name + ("/" if kind == "d" else "")
    link = {"h": " link to ", "l": " -> "}.get(kind, "") + (m.linkname if kind in "hl" else "")
    line = f"{kind} {m.mode:04o} {m.uid}/{m.gid} {size} {int(m.mtime)} {name}{link}"
    out.write(line.encode("utf-8", "surrogateescape") + b"\n")
    if m.isreg() and len(archive.extractfile(m).read()) != m.size:
        sys.exit("short content")
    for key, value in sorted(m.pax_headers.items()):
        if key.startswith("SCHILY."):
            out.write(f"{key} {value.encode('utf-8', 'surrogateescape').hex()}\n".encode())
"#;

#[test]
fn python_reads_it_as_a_stream_and_with_seeking() {
    let tree = hard_tree();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&tar_of(&tree)).unwrap();
    let path = file.path().to_str().unwrap();
    for mode in ["r|", "r:"] {
        let got = read_by("python3", &["-c", PYTHON, mode, path], b"");
        let mut want = Vec::new();
        for (seen, entry) in expected(&tree).into_iter().zip(tree.entries.values()) {
            let kind = seen.mode.chars().next().unwrap();
            let Seen { owner, size, name, .. } = seen;
            want.push(format!("{kind} {:04o} {owner} {size} {} {name}", entry.mode, entry.mtime));
            for (name, value) in &entry.xattrs {
                let hex: String = value.iter().map(|b| format!("{b:02x}")).collect();
                want.push(format!("SCHILY.xattr.{} {hex}", latin(name)).trim_end().to_owned());
            }
        }
        compare("Python", &got, want.into_iter());
    }
}

/// The tree that the project's own reader finds; it must find no defect.
fn own(archive: &[u8]) -> Tree {
    let scanned = read_tar(archive, &|_, _| true, Rest::Dropped).unwrap();
    assert_eq!(scanned.defects, []);
    assert!(scanned.implied.is_empty());
    scanned.tree
}

fn text(tree: &Tree) -> String {
    let mut out = Vec::new();
    listing(tree.entries.iter(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_own_reader_gets_the_same_tree() {
    let tree = hard_tree();
    let back = own(&tar_of(&tree));
    assert_eq!(text(&back), text(&tree));
    assert_eq!(tar_of(&back), tar_of(&tree));
}

/// Trees of files, links, devices and groups of hard links in directories of all lengths.
fn trees() -> impl Strategy<Value = Tree> {
    let element = prop_oneof![
        4 => prop::collection::vec(prop::sample::select(b"ab.- \\=\xe4\n".to_vec()), 1..6),
        1 => (prop::sample::select(b"xy".to_vec()), 90..255_usize).prop_map(|(b, n)| vec![b; n]),
    ];
    let path = prop::collection::vec(element.prop_filter("names", |e| e != b"." && e != b".."), 1..5);
    let bytes = prop::collection::vec(any::<u8>(), 0..1200);
    let target = prop::collection::vec(1..=255_u8, 1..300);
    let kind = prop_oneof![
        4 => bytes.clone().prop_map(|b| Kind::File(Data::memory(b))),
        1 => Just(Kind::Directory),
        1 => target.prop_map(Kind::Symlink),
        1 => (0..4096_u32, 0..1_048_576_u32).prop_map(|(major, minor)| Kind::Character { major, minor }),
        1 => (0..4096_u32, 0..1_048_576_u32).prop_map(|(major, minor)| Kind::Block { major, minor }),
        1 => Just(Kind::Fifo),
    ];
    let name = prop::sample::select(vec!["security.capability", "user.a", "user.\u{e4}"]);
    let xattrs = prop::collection::btree_map(name.prop_map(|n| n.as_bytes().to_vec()), bytes, 0..3);
    let id = prop_oneof![0..1000_u32, any::<u32>()];
    let mtime = prop_oneof![0..2_000_000_000_i64, -5_000_000_000..90_000_000_000_i64];
    let entry =
        (kind, 0..=0o7777_u16, id.clone(), id, mtime, xattrs).prop_map(|(kind, mode, uid, gid, mtime, xattrs)| {
            let mode = if matches!(kind, Kind::Symlink(_)) { 0o777 } else { mode };
            Entry { kind, mode, uid, gid, mtime, xattrs, links: None }
        });
    prop::collection::vec((path, entry, 0..6_u32), 0..12).prop_map(|all| {
        let mut tree = Tree::default();
        let mut groups: BTreeMap<u32, Entry> = BTreeMap::new();
        tree.insert(TreePath::root(), Entry::directory(0o755));
        for (elements, mut entry, group) in all {
            let path = TreePath::parse(elements.join(&b'/')).unwrap();
            let usable = path.ancestors().iter().all(|d| tree.get(d).is_none_or(Entry::is_directory));
            if tree.get(&path).is_some() || !usable {
                continue;
            }
            // Half of the numbers are groups of hard links, whose names share one entry.
            if group < 3 && matches!(entry.kind, Kind::File(_)) {
                entry.links = Some(LinkGroup(group));
                entry = groups.entry(group).or_insert(entry).clone();
            }
            for directory in path.ancestors() {
                tree.entries.entry(directory).or_insert_with(|| Entry::directory(0o700));
            }
            tree.insert(path, entry);
        }
        tree
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_tree_comes_back_as_it_was(tree in trees(), cut in any::<prop::sample::Index>()) {
        let whole = tar_of(&tree);
        let back = own(&whole);
        prop_assert_eq!(text(&back), text(&tree));
        prop_assert_eq!(tar_of(&back), whole);

        // Written in two parts, of which the second is not the later one in path order.
        let at = cut.index(tree.entries.len() + 1);
        let (mut parts, mut links) = (Vec::new(), Links::default());
        let first = tree.entries.iter().take(1).chain(tree.entries.iter().skip(at.max(1)));
        let second = tree.entries.iter().take(at).skip(1);
        write_entries(&mut parts, first, None, &mut links).unwrap();
        write_entries(&mut parts, second, None, &mut links).unwrap();
        end_of_archive(&mut parts).unwrap();
        let scanned = read_tar(parts.as_slice(), &|_, _| true, Rest::Dropped).unwrap();
        prop_assert_eq!(scanned.defects, []);
        prop_assert_eq!(text(&scanned.tree), text(&tree));
    }
}
