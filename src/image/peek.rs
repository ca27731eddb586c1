//! Reads a few files of a finished image, and no more of it than needed.
//!
//! The node's own files lie in the last parts ([`super::parts`]). `dist/index.json` says where those begin; it is only a
//! hint, so what is found there must have the length and the CRC that it names. Without an index, or when anything
//! does not fit, the image is read from its beginning.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::DeflateDecoder;

use super::gzip::{Summary, combine};
use super::index::{Index, IndexEntry};
use super::parts::PartKind;
use crate::finding::Failure;
use crate::regular;
use crate::tree::read::{self, ReadAhead, ReadError, Rest};
use crate::tree::{Tree, TreePath};

/// Largest file that is kept, in bytes: manifests grow with the image.
const LARGEST: u64 = 16 << 20;

/// A tree with the wanted files' contents (paths relative to the root); of others it may have the entry, or not.
///
/// # Errors
/// When the file cannot be read or is no tar.
pub fn peek(path: &Path, wanted: &[&str]) -> Result<Tree, Failure> {
    let keep = |path: &TreePath, len: u64| len <= LARGEST && wanted.iter().any(|w| w.as_bytes() == path.as_bytes());
    let hint = hint(path);
    if let Some(tree) = hint.and_then(|entry| tail(path, &entry, &keep).ok().flatten())
        && wanted.iter().all(|path| tree.get(&TreePath::from_normal((*path).into())).is_some())
    {
        return Ok(tree);
    }
    let file = regular::open(path).map_err(|e| Failure::io("open", path, &e))?;
    let whole = read::decompress(file)
        .and_then(|(_, plain)| Ok(ReadAhead::new(plain)?))
        .and_then(|plain| read::read_tar(plain, &keep, Rest::Dropped));
    match whole {
        Ok(scanned) => Ok(scanned.tree),
        Err(ReadError::Io(error)) => Err(Failure::io("read", path, &error)),
        Err(error) => Err(Failure::new(format!("{} is {error}", path.display()))
            .help("give images as `fitout build` makes them: `.tar`, `.tar.gz` or `.tar.zst`, told by content")),
    }
}

/// What the index beside an image says of it, when there is one and it can be of this file.
fn hint(path: &Path) -> Option<IndexEntry> {
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name()?;
    let index = Index::load(directory).ok().flatten()?;
    let entry = index.images.into_values().find(|e| name == e.file.as_str())?;
    (path.metadata().ok()?.len() == entry.size).then_some(entry)
}

/// The tree of all parts but the shared one; `None` when they are not what the index says.
fn tail(path: &Path, entry: &IndexEntry, keep: &dyn Fn(&TreePath, u64) -> bool) -> Result<Option<Tree>, ReadError> {
    let parts: Vec<_> = entry.parts.iter().skip_while(|part| part.kind == PartKind::Shared).collect();
    let Some(first) = parts.first() else { return Ok(None) };
    let mut file = regular::open(path)?;
    file.seek(SeekFrom::Start(first.offset))?;
    let mut reader =
        Summing { inner: DeflateDecoder::new(io::BufReader::new(file)), hash: crc32fast::Hasher::new(), len: 0 };
    let scanned = read::read_tar(&mut reader, keep, Rest::Dropped)?;
    io::copy(&mut reader, &mut io::sink())?;
    let found = Summary { raw_len: reader.len, crc32: reader.hash.finalize() };
    Ok((found == combine(parts.iter().map(|part| part.facts.summary()))).then_some(scanned.tree))
}

/// Counts and sums what is read.
struct Summing<R> {
    inner: R,
    hash: crc32fast::Hasher,
    len: u64,
}

impl<R: Read> Read for Summing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.len += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::image::gzip::{Encoder, End, HEADER, trailer};
    use crate::image::index::PartEntry;
    use crate::image::parts::Facts;
    use crate::tree::Digest;

    fn tar(name: &str, content: &[u8], end: bool) -> Vec<u8> {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_data(&mut header, name, content).unwrap();
        let mut bytes = builder.into_inner().unwrap();
        if !end {
            bytes.truncate(bytes.len() - 1024);
        }
        bytes
    }

    /// An image of two parts, and its index entry.
    fn image(directory: &Path) -> (std::path::PathBuf, IndexEntry) {
        let mut file = HEADER.to_vec();
        let (mut parts, mut summaries) = (Vec::new(), Vec::new());
        for (kind, bytes, end) in [
            (PartKind::Shared, tar("./usr/bin/x", b"shared", false), End::Open),
            (PartKind::Node, tar("./etc/mesh/own", b"node", true), End::Final),
        ] {
            let offset = file.len() as u64;
            let mut encoder = Encoder::new(Vec::new(), std::num::NonZeroUsize::MIN);
            encoder.write_all(&bytes).unwrap();
            let (deflated, summary) = encoder.finish(end).unwrap();
            let facts = Facts {
                length: deflated.len() as u64,
                raw_length: summary.raw_len,
                crc32: summary.crc32,
                sha256: Digest([0; 32]),
            };
            parts.push(PartEntry { kind, offset, facts });
            summaries.push(summary);
            file.extend(deflated);
        }
        let all = combine(summaries);
        file.extend(trailer(all.crc32, all.raw_len));
        let path = directory.join("lis1.tar.gz");
        std::fs::write(&path, &file).unwrap();
        let digest = Digest([0; 32]);
        let entry = IndexEntry {
            file: "lis1.tar.gz".into(),
            size: file.len() as u64,
            sha256: digest,
            identity: digest,
            base: digest,
            parts,
        };
        (path, entry)
    }

    fn own(tree: &Tree) -> Vec<u8> {
        tree.content(&TreePath::from_normal("etc/mesh/own".into())).unwrap()
    }

    #[test]
    fn the_index_saves_the_shared_part_and_is_never_believed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, entry) = image(directory.path());
        let shared = TreePath::from_normal("usr/bin/x".into());
        let with = |entry: Option<&IndexEntry>| {
            match entry {
                None => drop(std::fs::remove_file(directory.path().join("index.json"))),
                Some(entry) => {
                    let mut index = Index::new("m");
                    index.images.insert("lis1".into(), entry.clone());
                    index.save(directory.path()).unwrap();
                }
            }
            let tree = peek(&path, &["etc/mesh/own"]).unwrap();
            assert_eq!(own(&tree), b"node");
            tree.get(&shared).is_none()
        };
        assert!(with(Some(&entry)), "the shared part is passed over");
        assert!(!with(None), "without an index all is read");
        let wrong = |change: fn(&mut IndexEntry)| {
            let mut entry = entry.clone();
            change(&mut entry);
            entry
        };
        for (name, change) in [
            ("size", (|e| e.size += 1) as fn(&mut IndexEntry)),
            ("offset", |e| e.parts[1].offset += 3),
            ("crc", |e| e.parts[1].facts.crc32 ^= 1),
            ("length", |e| e.parts[1].facts.raw_length += 1),
            ("no parts", |e| e.parts.clear()),
        ] {
            assert!(!with(Some(&wrong(change))), "{name}");
        }
        std::fs::write(directory.path().join("index.json"), "{").unwrap();
        assert_eq!(own(&peek(&path, &["etc/mesh/own"]).unwrap()), b"node");
        let failure = peek(&directory.path().join("index.json"), &[]).unwrap_err();
        assert!(failure.message.contains("index.json is "), "{failure}");
    }
}
