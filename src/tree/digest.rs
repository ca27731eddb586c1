//! SHA-256, and the canonical listing of a tree whose digest is an image's identity.
//!
//! # The canonical listing, version 1
//!
//! The first line is `fitout-tree 1`. Then follows one line per entry in bytewise order of the paths, the root
//! (`/`) first. Each line ends with a line feed; its fields are separated by exactly one space:
//!
//! ```text
//! PATH KIND MODE UID GID MTIME CONTENT [link=PATH] [xattr.NAME=HEX]...
//! /etc/hosts file 0644 0 0 1796000000 12:9f86d081…
//! /lib symlink 0777 0 0 1796000000 usr/lib
//! ```
//!
//! - `PATH`: absolute. Bytes outside `!`..`~`, and the backslash, are written `\xNN` (lower-case hex), so a field
//!   holds no space and every byte string has exactly one spelling.
//! - `KIND`: `file`, `directory`, `symlink`, `character`, `block`, `fifo`.
//! - `MODE`: 12 bits, four octal digits. `UID`, `GID`, `MTIME`: decimal; `MTIME` in seconds, may be negative.
//! - `CONTENT`: of a file `LENGTH:SHA256`, of a symbolic link its target (escaped as a path is), of a device
//!   `MAJOR:MINOR`, else `-`.
//! - `link=`: for names of one inode the first path of the group, in path order; every name carries the content
//!   too. A group with one name left in the tree is no group.
//! - `xattr.`: sorted by name; the name is escaped as a path is, the value is hex. The last `=` divides them.
//!
//! Where the content lies, how the tree was packed and in which order it was read do not show in it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use sha2::{Digest as _, Sha256};

use super::{Entry, Kind, LinkGroup, Tree, TreePath};

/// First line of the listing; raised when its form changes.
const HEADING: &str = "fitout-tree 1";

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }
    /// Lower-case hex.
    pub fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }
    /// Reads 64 hex digits.
    pub fn from_hex(hex: &str) -> Option<Digest> {
        let mut bytes = [0; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Digest::from_hex(&hex).ok_or_else(|| serde::de::Error::custom("not a SHA-256 in hex"))
    }
}

/// Identity of a tree: the digest of its canonical listing. Equal for every archive format.
pub fn identity(tree: &Tree) -> Digest {
    digest_of(tree.entries.iter())
}

/// The digest of the canonical listing of entries in path order, which may be a part of a tree.
pub fn digest_of<'a>(entries: impl Iterator<Item = (&'a TreePath, &'a Entry)> + Clone) -> Digest {
    let mut hasher = Hashing::new(io::sink());
    // Neither the hasher nor the sink can fail.
    let _ = listing(entries, &mut hasher);
    hasher.digest()
}

/// Writes the canonical listing of entries in path order.
///
/// # Errors
/// Those of `out`.
pub fn listing<'a>(
    entries: impl Iterator<Item = (&'a TreePath, &'a Entry)> + Clone,
    out: &mut impl Write,
) -> io::Result<()> {
    let groups = groups(entries.clone());
    writeln!(out, "{HEADING}")?;
    let mut line = Vec::new();
    for (path, entry) in entries {
        line.clear();
        push_line(&mut line, path, entry, &groups);
        out.write_all(&line)?;
    }
    Ok(())
}

/// The first name of each group of hard links that has more than one name.
fn groups<'a>(entries: impl Iterator<Item = (&'a TreePath, &'a Entry)>) -> BTreeMap<LinkGroup, &'a TreePath> {
    let mut names: BTreeMap<LinkGroup, (&TreePath, usize)> = BTreeMap::new();
    for (path, entry) in entries {
        if let Some(group) = entry.links {
            names.entry(group).or_insert((path, 0)).1 += 1;
        }
    }
    names.into_iter().filter(|(_, (_, count))| *count > 1).map(|(group, (first, _))| (group, first)).collect()
}

fn push_line(line: &mut Vec<u8>, path: &TreePath, entry: &Entry, groups: &BTreeMap<LinkGroup, &TreePath>) {
    push_path(line, path);
    let kind = match entry.kind {
        Kind::File(_) => "file",
        Kind::Directory => "directory",
        Kind::Symlink(_) => "symlink",
        Kind::Character { .. } => "character",
        Kind::Block { .. } => "block",
        Kind::Fifo => "fifo",
    };
    let Entry { mode, uid, gid, mtime, .. } = entry;
    line.extend_from_slice(format!(" {kind} {mode:04o} {uid} {gid} {mtime} ").as_bytes());
    match &entry.kind {
        Kind::File(data) => line.extend_from_slice(format!("{}:{}", data.len, data.sha256).as_bytes()),
        Kind::Symlink(target) => push_escaped(line, target),
        Kind::Character { major, minor } | Kind::Block { major, minor } => {
            line.extend_from_slice(format!("{major}:{minor}").as_bytes());
        }
        Kind::Directory | Kind::Fifo => line.push(b'-'),
    }
    if let Some(first) = entry.links.and_then(|group| groups.get(&group)) {
        line.extend_from_slice(b" link=");
        push_path(line, first);
    }
    for (name, value) in &entry.xattrs {
        line.extend_from_slice(b" xattr.");
        push_escaped(line, name);
        line.push(b'=');
        value.iter().for_each(|b| push_hex(line, *b));
    }
    line.push(b'\n');
}

fn push_path(line: &mut Vec<u8>, path: &TreePath) {
    line.push(b'/');
    push_escaped(line, path.as_bytes());
}

fn push_escaped(line: &mut Vec<u8>, bytes: &[u8]) {
    for b in bytes {
        match b {
            b'!'..=b'~' if *b != b'\\' => line.push(*b),
            _ => {
                line.extend_from_slice(b"\\x");
                push_hex(line, *b);
            }
        }
    }
}

fn push_hex(line: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    line.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// Hashes and counts what is written through it. The state can be cloned: many files share one beginning.
#[derive(Debug, Clone)]
pub struct Hashing<W> {
    out: W,
    hasher: Sha256,
    len: u64,
}

impl<W> Hashing<W> {
    /// Nothing hashed yet.
    pub fn new(out: W) -> Hashing<W> {
        Hashing { out, hasher: Sha256::new(), len: 0 }
    }
    /// The same state in front of another output.
    pub fn with_output<O>(&self, out: O) -> Hashing<O> {
        Hashing { out, hasher: self.hasher.clone(), len: self.len }
    }
    /// Digest of all that was written so far.
    pub fn digest(&self) -> Digest {
        Digest(self.hasher.clone().finalize().into())
    }
    /// Bytes written so far.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// True when nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Gives the output back.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.len += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Data, Place};
    use proptest::prelude::*;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    fn text(tree: &Tree) -> String {
        let mut out = Vec::new();
        listing(tree.entries.iter(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_of_entry_has_its_line() {
        let mut tree = Tree::default();
        let mut linked = Entry::file(*b"hi", 0o644);
        linked.links = Some(LinkGroup(7));
        let mut alone = Entry::file(*b"", 0o4755).owned(1, 2).dated(-3);
        alone.links = Some(LinkGroup(9));
        alone.xattrs.insert(b"user.b".to_vec(), vec![0, 255]);
        alone.xattrs.insert(b"user.a b".to_vec(), Vec::new());
        for (name, entry) in [
            ("/", Entry::directory(0o755)),
            ("/a b", Entry::symlink(*b"x\\y\n")),
            ("/c", Entry::new(Kind::Character { major: 1, minor: 3 }, 0o666)),
            ("/d", Entry::new(Kind::Block { major: 8, minor: 0 }, 0o660)),
            ("/e", Entry::new(Kind::Fifo, 0o600)),
            ("/f", linked.clone()),
            ("/g", linked),
            ("/h", alone),
        ] {
            tree.insert(path(name), entry);
        }
        let hi = "2:8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
        let empty = "0:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let want = format!(
            "fitout-tree 1\n\
             / directory 0755 0 0 0 -\n\
             /a\\x20b symlink 0777 0 0 0 x\\x5cy\\x0a\n\
             /c character 0666 0 0 0 1:3\n\
             /d block 0660 0 0 0 8:0\n\
             /e fifo 0600 0 0 0 -\n\
             /f file 0644 0 0 0 {hi} link=/f\n\
             /g file 0644 0 0 0 {hi} link=/f\n\
             /h file 4755 1 2 -3 {empty} xattr.user.a\\x20b= xattr.user.b=00ff\n"
        );
        assert_eq!(text(&tree), want);
        assert_eq!(identity(&tree), Digest::of(want.as_bytes()));
    }

    #[test]
    fn where_content_lies_and_how_groups_are_numbered_do_not_show() {
        let build = |group: u32, dropped: bool| {
            let mut tree = Tree::default();
            for name in ["/b", "/a"] {
                let mut data = Data::memory(*b"x");
                if dropped {
                    data.place = Place::Dropped;
                }
                let mut entry = Entry::new(Kind::File(data), 0o644);
                entry.links = Some(LinkGroup(group));
                tree.insert(path(name), entry);
            }
            identity(&tree)
        };
        assert_eq!(build(1, false), build(99, true));
    }

    #[test]
    fn order_is_bytewise_and_a_directory_comes_before_what_it_holds() {
        let mut tree = Tree::default();
        for name in ["/a/b", "/a-b", "/a", "/a.b", "/"] {
            tree.insert(path(name), Entry::directory(0o755));
        }
        let listed = text(&tree);
        let paths: Vec<&str> = listed.lines().skip(1).filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(paths, ["/", "/a", "/a-b", "/a.b", "/a/b"]);
    }

    /// A small world in which accidents are likely: few names, hostile bytes.
    fn entries() -> impl Strategy<Value = Tree> {
        let word = || prop::collection::vec(prop::sample::select(b"a \\=\n-\xff".to_vec()), 0..3);
        let kind = prop_oneof![
            word().prop_map(|bytes| Kind::File(Data::memory(bytes))),
            Just(Kind::Directory),
            word().prop_map(Kind::Symlink),
            (0..2u32, 0..2u32).prop_map(|(major, minor)| Kind::Character { major, minor }),
            (0..2u32, 0..2u32).prop_map(|(major, minor)| Kind::Block { major, minor }),
            Just(Kind::Fifo),
        ];
        let entry =
            (kind, 0..3u16, 0..2u32, 0..2u32, -1..2i64, prop::collection::btree_map(word(), word(), 0..2)).prop_map(
                |(kind, mode, uid, gid, mtime, xattrs)| Entry { kind, mode, uid, gid, mtime, xattrs, links: None },
            );
        prop::collection::btree_map(word().prop_map(|w| TreePath::parse(&w).unwrap()), entry, 0..3)
            .prop_map(|entries| Tree { entries, store: None })
    }

    proptest! {
        #[test]
        fn different_trees_have_different_listings(a in entries(), b in entries()) {
            prop_assert_eq!(a.entries == b.entries, text(&a) == text(&b));
        }

        #[test]
        fn one_change_anywhere_changes_the_identity(tree in entries(), pick in any::<prop::sample::Index>()) {
            prop_assume!(!tree.entries.is_empty());
            let name = pick.get(&tree.entries.keys().cloned().collect::<Vec<_>>()).clone();
            let changes: [fn(&mut Entry); 6] = [
                |e| e.mode ^= 0o4000,
                |e| e.uid += 1,
                |e| e.gid += 1,
                |e| e.mtime -= 1,
                |e| { e.xattrs.insert(b"security.capability".to_vec(), vec![1]); },
                |e| e.kind = match &e.kind {
                    Kind::File(data) => Kind::Symlink(data.sha256.hex().into_bytes()),
                    _ => Kind::File(Data::memory(*b"other")),
                },
            ];
            for change in changes {
                let mut other = tree.clone();
                other.entries.entry(name.clone()).and_modify(change);
                prop_assert_ne!(identity(&tree), identity(&other));
            }
        }
    }
}
