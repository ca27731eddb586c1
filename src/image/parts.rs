//! The parts of an image: tar entries, compressed on their own so that they can be joined ([`super::splice`]).
//!
//! | part    | same for                  | holds                                                | kept      |
//! |---------|---------------------------|------------------------------------------------------|-----------|
//! | shared  | all nodes of the mesh     | base entries that no profile overrides or removes    | cache     |
//! | profile | all nodes of the profile  | the profile's overlay, base entries others override  | in memory |
//! | node    | this node                 | the node's own files, and the end of the archive     | in memory |
//!
//! The shared part is made once and kept in the cache under a key of its content, together with the gzip header in
//! front of it: as a file that is the beginning of every image, byte for byte from offset 0, it can be shared by the
//! file system when it is copied.

use std::io::{self, BufWriter, Read, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cache::{Cache, Slot};
use super::gzip::{CODEC, Encoder, End, HEADER, Summary};
use super::output::Atomic;
use super::progress::{Progress, Step};
use crate::finding::Failure;
use crate::tree::digest::{Hashing, listing};
use crate::tree::write::{FORMAT, Links, WriteError, end_of_archive, write_entries};
use crate::tree::{Digest, Entry, Kind, Store, TreePath};

/// Which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    /// The same for all nodes.
    Shared,
    /// The same for all nodes of a profile.
    Profile,
    /// This node only, with the end of the archive.
    Node,
}

/// What is known of a compressed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Facts {
    /// Bytes of deflate data.
    pub length: u64,
    /// Bytes of tar.
    pub raw_length: u64,
    /// CRC-32 of the tar bytes.
    #[serde(with = "hex32")]
    pub crc32: u32,
    /// SHA-256 of the deflate data.
    pub sha256: Digest,
}

impl Facts {
    /// What the CRC of an image is combined from.
    pub fn summary(&self) -> Summary {
        Summary { raw_len: self.raw_length, crc32: self.crc32 }
    }
}

/// A compressed part in memory.
#[derive(Debug, Clone)]
pub struct Part {
    /// What is known of it.
    pub facts: Facts,
    /// Raw deflate data.
    pub bytes: Arc<[u8]>,
}

/// The beginning of every image of a mesh, in a file: the gzip header and the shared part.
#[derive(Debug, Clone)]
pub struct Prefix {
    /// The file.
    pub path: PathBuf,
    /// What is known of the shared part, without the header.
    pub facts: Facts,
    /// The digest of the whole file, open for what follows in each image.
    pub(super) state: Hashing<io::Sink>,
}

/// What goes into a part: entries in path order, and where their contents are.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    /// In strictly ascending path order.
    pub entries: &'a [(&'a TreePath, &'a Entry)],
    /// The base.
    pub store: Option<&'a Store>,
}

impl Content<'_> {
    /// Bytes of tar, but for long names and attributes.
    fn size(&self) -> u64 {
        let size = |entry: &Entry| match &entry.kind {
            Kind::File(data) => data.len.next_multiple_of(512),
            _ => 0,
        };
        self.entries.iter().map(|(_, entry)| size(entry) + 512).sum()
    }

    fn write(&self, out: &mut impl Write, links: &mut Links) -> Result<(), WriteError> {
        write_entries(out, self.entries.iter().copied(), self.store, links)
    }
}

/// Compresses a profile's or a node's part in memory. `links` are the hard link groups of the parts before it.
///
/// # Errors
/// As [`write_entries`].
pub fn compress(content: Content<'_>, end: End, links: &mut Links, threads: NonZeroUsize) -> Result<Part, Failure> {
    let failed = |e: io::Error| Failure::new(format!("cannot compress a part: {e}"));
    let mut encoder = Encoder::new(Hashing::new(Vec::new()), threads);
    content.write(&mut encoder, links)?;
    if end == End::Final {
        end_of_archive(&mut encoder).map_err(failed)?;
    }
    let (out, summary) = encoder.finish(end).map_err(failed)?;
    let facts = facts(&out, summary);
    Ok(Part { facts, bytes: out.into_inner().into() })
}

fn facts<W>(out: &Hashing<W>, summary: Summary) -> Facts {
    Facts { length: out.len(), raw_length: summary.raw_len, crc32: summary.crc32, sha256: out.digest() }
}

/// The shared part: from the cache when it is there and whole, else compressed into it.
///
/// Returns the hard link groups of the part as well, for the parts that follow.
///
/// # Errors
/// When the base cannot be read or the cache cannot be written.
pub fn shared(
    content: Content<'_>,
    cache: &Cache,
    threads: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<(Prefix, Links), Failure> {
    let slot = cache.slot("part", &key(content), progress)?;
    let path = slot.path(PART);
    if let Some(prefix) = open(&slot)? {
        let mut links = Links::default();
        links.take_up(content.entries.iter().copied());
        return Ok((prefix, links));
    }

    let step = progress.start("compressing the shared part", Some(content.size()));
    let failed = |e: io::Error| Atomic::failure("write", &path, &e);
    let mut links = Links::default();
    let mut file = slot.create()?;
    let mut whole = Hashing::new(BufWriter::new(file.file()));
    whole.write_all(&HEADER).map_err(failed)?;
    let mut encoder = Encoder::new(Hashing::new(&mut whole), threads);
    content.write(&mut Counted { out: &mut encoder, step: step.as_ref() }, &mut links).map_err(|e| match e {
        WriteError::Output(e) => failed(e),
        other => other.into(),
    })?;
    let (out, summary) = encoder.finish(End::Open).map_err(failed)?;
    let facts = facts(&out, summary);
    whole.flush().map_err(failed)?;
    let state = whole.with_output(io::sink());
    drop(whole);
    file.publish(PART)?;
    slot.write_record(RECORD, &Record { file: state.digest(), facts })?;
    Ok((Prefix { path, facts, state }, links))
}

/// Names in the cache's slot.
const PART: &str = "part.gz";
const RECORD: &str = "part.json";

/// What lies beside the shared part in the cache. It is written last: a part without it does not count.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Record {
    /// SHA-256 of the file, header and part.
    file: Digest,
    #[serde(flatten)]
    facts: Facts,
}

/// Opens a shared part of the cache. One read through the file serves two ends: a damaged part is found and made
/// again, and the digest of each image continues from here.
fn open(slot: &Slot) -> Result<Option<Prefix>, Failure> {
    let Some(record) = slot.read_record::<Record>(RECORD) else { return Ok(None) };
    let path = slot.path(PART);
    let failed = |e: io::Error| Failure::io("read", &path, &e);
    let mut file = match std::fs::File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    let mut state = Hashing::new(io::sink());
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk).map_err(failed)? {
            0 => break,
            n => state.write_all(&chunk[..n]).map_err(failed)?,
        }
    }
    let whole = state.digest() == record.file && state.len() == HEADER.len() as u64 + record.facts.length;
    Ok(whole.then(|| Prefix { path: path.clone(), facts: record.facts, state }))
}

/// What the shared part's bytes follow from: the entries with their contents, the writer and the codec.
fn key(content: Content<'_>) -> Digest {
    let mut hasher = Hashing::new(io::sink());
    // Neither the hasher nor the sink can fail.
    let _ = writeln!(hasher, "{FORMAT}\n{CODEC}");
    let _ = listing(content.entries.iter().copied(), &mut hasher);
    hasher.digest()
}

/// Tells a step how much went through.
struct Counted<'a, W> {
    out: W,
    step: &'a dyn Step,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.step.advance(written as u64);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A 32-bit number as eight hex digits, as checksums are printed.
mod hex32 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(number: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{number:08x}"))
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let text = String::deserialize(deserializer)?;
        u32::from_str_radix(&text, 16).map_err(|_| D::Error::custom("not a CRC-32 in hex"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::gzip::tests::{sample, threads};
    use crate::image::progress::Silent;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts what is compressed: a part that comes from the cache counts nothing.
    #[derive(Default)]
    struct Count(Arc<AtomicU64>);
    struct CountStep(Arc<AtomicU64>);
    impl Progress for Count {
        fn start(&self, _: &str, total: Option<u64>) -> Box<dyn Step> {
            assert_eq!(total, Some(3_001_856));
            Box::new(CountStep(self.0.clone()))
        }
    }
    impl Step for CountStep {
        fn advance(&self, by: u64) {
            self.0.fetch_add(by, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_shared_part_is_made_once_and_again_when_it_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(directory.path())).unwrap();
        let paths: Vec<TreePath> = ["/a", "/b"].map(|p| TreePath::parse(p).unwrap()).into();
        let files = [Entry::file(sample(3_000_000), 0o644), Entry::file(*b"hi", 0o644)];
        let entries: Vec<_> = paths.iter().zip(&files).collect();
        let content = Content { entries: &entries, store: None };
        let make = |count: &Count| shared(content, &cache, threads(2), count).unwrap().0;

        let count = Count::default();
        let first = make(&count);
        assert_eq!(count.0.load(Ordering::Relaxed), first.facts.raw_length);
        let bytes = std::fs::read(&first.path).unwrap();
        assert_eq!(Digest::of(&bytes[HEADER.len()..]), first.facts.sha256);
        assert_eq!(Digest::of(&bytes), first.state.digest());

        let again = make(&count);
        assert_eq!(count.0.load(Ordering::Relaxed), first.facts.raw_length, "the second comes from the cache");
        assert_eq!((again.facts, again.state.digest()), (first.facts, first.state.digest()));

        type Damage = fn(&Path);
        let damages: [(&str, Damage); 4] = [
            ("a flipped bit", |path| {
                let mut bytes = std::fs::read(path).unwrap();
                bytes[1000] ^= 1;
                std::fs::write(path, bytes).unwrap();
            }),
            ("a lost tail", |path| std::fs::File::options().write(true).open(path).unwrap().set_len(1000).unwrap()),
            ("a missing part", |path| std::fs::remove_file(path).unwrap()),
            ("an unreadable record", |path| std::fs::write(path.with_extension("json"), b"{").unwrap()),
        ];
        for (i, (what, damage)) in damages.iter().enumerate() {
            damage(&first.path);
            make(&count);
            assert_eq!(count.0.load(Ordering::Relaxed), first.facts.raw_length * (i as u64 + 2), "{what}");
            assert!(std::fs::read(&first.path).unwrap() == bytes, "{what}");
        }
    }

    #[test]
    fn another_content_has_another_key() {
        let path = TreePath::parse("/a").unwrap();
        let keys: Vec<Digest> = [Entry::file(*b"a", 0o644), Entry::file(*b"b", 0o644), Entry::file(*b"a", 0o600)]
            .iter()
            .map(|entry| key(Content { entries: &[(&path, entry)], store: None }))
            .collect();
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    }

    #[test]
    fn hard_links_are_known_whether_or_not_the_part_was_cached() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(directory.path())).unwrap();
        let linked = Entry { links: Some(crate::tree::LinkGroup(4)), ..Entry::file(*b"x", 0o644) };
        let path = TreePath::parse("/a").unwrap();
        let content = Content { entries: &[(&path, &linked)], store: None };
        for _ in 0..2 {
            let (_, links) = shared(content, &cache, threads(1), &Silent).unwrap();
            assert_eq!(links.earlier(&linked), Some(&path));
        }
    }
}
