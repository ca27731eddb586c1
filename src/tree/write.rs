//! The one tar writer: entries in bytewise path order become bytes, and the same entries always the same bytes.
//!
//! Names are `./etc/x`, directories end with `/`, the root is `./`; owners are numeric only. An archive may be
//! written as several parts that are joined afterwards ([`crate::image::splice`]). Within a part no name comes
//! twice and a directory comes before what it holds. The names of a hard link group may lie in several parts: the
//! first one that is written holds the content, the later ones link to it, in whichever part they are; that is what
//! [`Links`] carries from part to part.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use sha2::{Digest as _, Sha256};

use super::header::{self, BLOCK};
use super::{Data, Digest, Entry, Kind, LinkGroup, Place, Store, TreePath};
use crate::finding::Failure;

/// How entries become bytes. Part of every cache key: raise it when the writer gives other bytes for the same entries,
/// which the test `the_bytes_of_the_writer_are_known` tells.
pub const FORMAT: &str = "tar ustar-2";

/// How much of the base is held in memory at once.
const CHUNK: usize = 256 << 10;

/// The hard link groups of which a name was written, each with that name and its entry.
#[derive(Debug, Clone, Default)]
pub struct Links(BTreeMap<LinkGroup, (TreePath, Entry)>);

impl Links {
    /// The name under which the content of an entry was written earlier in the same archive.
    pub fn earlier(&self, entry: &Entry) -> Option<&TreePath> {
        self.0.get(&entry.links?).map(|(path, _)| path)
    }

    /// Takes up the groups of entries that are known to be written already.
    pub fn take_up<'a>(&mut self, entries: impl IntoIterator<Item = (&'a TreePath, &'a Entry)>) {
        for (path, entry) in entries {
            if let Some(group) = entry.links {
                self.0.entry(group).or_insert_with(|| (path.clone(), entry.clone()));
            }
        }
    }
}

/// Why entries cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The output failed.
    #[error("cannot write the archive: {0}")]
    Output(#[from] io::Error),
    /// The content of a file is not to be had, or is not what the tree says.
    #[error("{path}: {reason}")]
    Content {
        /// The file.
        path: TreePath,
        /// What is wrong.
        reason: String,
    },
    /// An attribute that a tar cannot hold.
    #[error("{path}: {reason}")]
    Unrepresentable {
        /// The entry.
        path: TreePath,
        /// What is wrong.
        reason: &'static str,
    },
    /// Names of one inode with different attributes.
    #[error("{0} and {1} are names of one file but differ")]
    Torn(TreePath, TreePath),
    /// The caller's entries are not in strictly ascending path order.
    #[error("{0} is out of order or comes twice")]
    Order(TreePath),
}

impl WriteError {
    pub(super) fn unrepresentable(path: &TreePath, reason: &'static str) -> WriteError {
        WriteError::Unrepresentable { path: path.clone(), reason }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        Failure::new(error.to_string())
    }
}

/// Writes entries, which must be in strictly ascending path order, without the end of the archive.
///
/// `store` is where [`Place::Base`] contents are read from; each content is checked against its digest. `links` are
/// the hard link groups of earlier parts of the same archive, and takes up those of this one.
///
/// # Errors
/// When `out` fails, when a content is missing or is not what the tree says, when an attribute does not go into a
/// tar, and when the order is wrong.
pub fn write_entries<'a>(
    out: &mut impl Write,
    entries: impl IntoIterator<Item = (&'a TreePath, &'a Entry)>,
    store: Option<&Store>,
    links: &mut Links,
) -> Result<(), WriteError> {
    let mut last: Option<&TreePath> = None;
    let mut chunk = vec![0; CHUNK];
    for (path, entry) in entries {
        if last.is_some_and(|last| last >= path) {
            return Err(WriteError::Order(path.clone()));
        }
        last = Some(path);
        let first = entry.links.and_then(|group| links.0.get(&group));
        if let Some((name, first)) = first {
            if !first.same_as(entry) || first.mtime != entry.mtime {
                return Err(WriteError::Torn(name.clone(), path.clone()));
            }
            out.write_all(&header::blocks(path, entry, Some(name))?)?;
            continue;
        }
        out.write_all(&header::blocks(path, entry, None)?)?;
        if let Kind::File(data) = &entry.kind {
            write_content(out, path, data, store, &mut chunk)?;
        }
        if let Some(group) = entry.links {
            links.0.insert(group, (path.clone(), entry.clone()));
        }
    }
    Ok(())
}

/// Writes the two blocks of zeros that end an archive (POSIX pax, ustar interchange format).
///
/// # Errors
/// When `out` fails.
pub fn end_of_archive(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0; 2 * BLOCK])
}

/// Writes a content and fills its last block.
fn write_content(
    out: &mut impl Write,
    path: &TreePath,
    data: &Data,
    store: Option<&Store>,
    chunk: &mut [u8],
) -> Result<(), WriteError> {
    let wrong = |reason: String| WriteError::Content { path: path.clone(), reason };
    let mut hasher = Sha256::new();
    match &data.place {
        Place::Memory(bytes) => {
            if bytes.len() as u64 != data.len {
                return Err(wrong(format!("is {} bytes where {} are declared", bytes.len(), data.len)));
            }
            hasher.update(bytes);
            out.write_all(bytes)?;
        }
        Place::Base { offset } => {
            let store = store.ok_or_else(|| wrong("the base is not open".into()))?;
            let mut done = 0;
            while done < data.len {
                let len = (data.len - done).min(chunk.len() as u64) as usize;
                let some = &mut chunk[..len];
                store
                    .file
                    .read_exact_at(some, offset + done)
                    .map_err(|e| wrong(format!("cannot read its content from {}: {e}", store.path.display())))?;
                hasher.update(&*some);
                out.write_all(some)?;
                done += some.len() as u64;
            }
        }
        Place::Dropped => return Err(wrong("its content was not kept".into())),
    }
    if Digest(hasher.finalize().into()) != data.sha256 {
        return Err(wrong(match (&data.place, store) {
            (Place::Base { .. }, Some(store)) => {
                format!("its content in {} has changed since the base was read", store.path.display())
            }
            _ => "its content is not what its digest says".into(),
        }));
    }
    let over = (data.len % BLOCK as u64) as usize;
    if over > 0 {
        out.write_all(&[0; BLOCK][over..])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    fn write(entries: &[(&TreePath, &Entry)], store: Option<&Store>) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        write_entries(&mut out, entries.iter().copied(), store, &mut Links::default()).map_err(|e| e.to_string())?;
        Ok(out)
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let (a, b) = (path("/a"), path("/b"));
        let file = Entry::file(*b"hi", 0o644);
        let linked = |mode: u16| Entry { links: Some(LinkGroup(1)), ..Entry::file(*b"hi", mode) };
        let data = |len: u64, text: &[u8], place: Place| {
            Entry::new(Kind::File(Data { len, sha256: Digest::of(text), place }), 0o644)
        };
        let memory = |bytes: &[u8]| Place::Memory(Arc::from(bytes));
        let xattr = |name: &[u8]| Entry { xattrs: [(name.to_vec(), vec![])].into(), ..file.clone() };
        let base = Place::Base { offset: 3 };
        let cases: Vec<(Vec<(&TreePath, Entry)>, &str)> = vec![
            (vec![(&b, file.clone()), (&a, file.clone())], "/a is out of order or comes twice"),
            (vec![(&a, file.clone()), (&a, file.clone())], "/a is out of order or comes twice"),
            (vec![(&a, linked(0o644)), (&b, linked(0o600))], "/a and /b are names of one file but differ"),
            (vec![(&a, data(3, b"hi", memory(b"hi")))], "/a: is 2 bytes where 3 are declared"),
            (vec![(&a, data(2, b"ho", memory(b"hi")))], "/a: its content is not what its digest says"),
            (vec![(&a, data(2, b"hi", Place::Dropped))], "/a: its content was not kept"),
            (
                vec![(&a, data(2, b"hi", base.clone()))],
                "/a: its content in base.tar has changed since the base was read",
            ),
            (vec![(&a, data(9, b"", base))], "/a: cannot read its content from base.tar: failed to fill whole buffer"),
            (vec![(&a, xattr(b""))], "/a: the name of an extended attribute is empty or has a NUL"),
            (vec![(&a, Entry::symlink(*b"x\0y"))], "/a: the target of the link holds a NUL byte"),
            (
                vec![(&a, Entry::new(Kind::Block { major: 1 << 21, minor: 0 }, 0o600))],
                "/a: the device number is not one of Linux's",
            ),
        ];
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"...so", 0).unwrap();
        let store = Store { file, path: "base.tar".into() };
        for (entries, want) in cases {
            let entries: Vec<_> = entries.iter().map(|(p, e)| (*p, e)).collect();
            assert_eq!(write(&entries, Some(&store)), Err(want.to_owned()));
        }
    }

    #[test]
    fn any_name_of_an_attribute_comes_back() {
        let names: [&[u8]; 4] = [b"user.a=b", b"user.%3D", b"user.100%", b"user.a\nb"];
        let xattrs: std::collections::BTreeMap<_, _> = names.map(|name| (name.to_vec(), b"v=%".to_vec())).into();
        let entry = Entry { xattrs, ..Entry::file(*b"", 0o644) };
        let mut tar = write(&[(&path("/a"), &entry)], None).unwrap();
        assert!(tar.windows(13).any(|w| w == b"user.a%3Db=v="));
        end_of_archive(&mut tar).unwrap();
        let scanned = crate::tree::read::read_tar(&*tar, &|_, _| true, crate::tree::read::Rest::Dropped).unwrap();
        assert_eq!(scanned.tree.get(&path("/a")).unwrap().xattrs, entry.xattrs);
    }

    #[test]
    fn content_of_the_base_is_copied_in_chunks() {
        let bytes: Vec<u8> = (0..CHUNK + 700).map(|i| (i % 251) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 512).unwrap();
        let store = Store { file, path: "base.tar".into() };
        let data = Data { len: bytes.len() as u64, sha256: Digest::of(&bytes), place: Place::Base { offset: 512 } };
        let a = path("/a");
        let from_base = write(&[(&a, &Entry::new(Kind::File(data), 0o644))], Some(&store)).unwrap();
        assert_eq!(from_base, write(&[(&a, &Entry::file(bytes, 0o644))], None).unwrap());
        assert_eq!(from_base.len() % BLOCK, 0);
    }

    #[test]
    fn a_later_part_links_to_the_earlier_one() {
        let linked = Entry { links: Some(LinkGroup(1)), ..Entry::file(*b"hi", 0o644) };
        let mut links = Links::default();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        write_entries(&mut first, [(&path("/m"), &linked)], None, &mut links).unwrap();
        write_entries(&mut second, [(&path("/a"), &linked)], None, &mut links).unwrap();
        assert_eq!((first.len(), second.len()), (2 * BLOCK, BLOCK));
        assert_eq!((second[156], &second[157..160]), (b'1', &b"./m"[..]));
    }
}
