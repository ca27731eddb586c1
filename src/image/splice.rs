//! An image out of its parts: one gzip member, made by copying.
//!
//! `header · shared part · profile part · node part · trailer`. The CRC-32 of the whole is combined from those of
//! the parts, and the SHA-256 goes on from the state after the shared part, which all images begin with. So one more
//! node costs the copying of the shared part, which the file system may do by reference, and nothing else.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::gzip::{self, HEADER};
use super::index::PartEntry;
use super::output::Atomic;
use super::parts::{Facts, Part, PartKind, Prefix};
use crate::finding::Failure;
use crate::tree::Digest;

/// A finished image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spliced {
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the file.
    pub sha256: Digest,
    /// Where its parts are.
    pub parts: Vec<PartEntry>,
}

/// Writes an image to an empty file. `node` must have been compressed with [`gzip::End::Final`].
///
/// # Errors
/// When the shared part cannot be read or is not the one that was opened, and when the image cannot be written.
pub fn write_image(prefix: &Prefix, profile: &Part, node: &Part, out: &mut Atomic) -> Result<Spliced, Failure> {
    // A file of its own for each image: the position in it is moved by copying.
    let mut shared = File::open(&prefix.path).map_err(|e| Failure::io("read", &prefix.path, &e))?;
    let target = out.target().to_owned();
    let failed = |e: io::Error| Atomic::failure("write", &target, &e);

    // From file to file, both from the start: the kernel copies, or shares the blocks.
    let copied = io::copy(&mut shared, out.file()).map_err(failed)?;
    if copied != HEADER.len() as u64 + prefix.facts.length {
        return Err(changed(&prefix.path));
    }
    let parts = [&prefix.facts, &profile.facts, &node.facts];
    let all = gzip::combine(parts.iter().map(|f| f.summary()));
    let mut rest = prefix.state.with_output(out.file());
    rest.write_all(&profile.bytes).map_err(failed)?;
    rest.write_all(&node.bytes).map_err(failed)?;
    rest.write_all(&gzip::trailer(all.crc32, all.raw_len)).map_err(failed)?;
    Ok(Spliced { size: rest.len(), sha256: rest.digest(), parts: entries(parts) })
}

fn changed(path: &Path) -> Failure {
    Failure::new(format!("{} was changed while images were made from it", path.display()))
        .help("build again; no other program may write to the cache")
}

/// The parts one after the other, behind the header.
fn entries(parts: [&Facts; 3]) -> Vec<PartEntry> {
    let mut offset = HEADER.len() as u64;
    [PartKind::Shared, PartKind::Profile, PartKind::Node]
        .into_iter()
        .zip(parts)
        .map(|(kind, facts)| {
            let entry = PartEntry { kind, offset, facts: *facts };
            offset += facts.length;
            entry
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::cache::Cache;
    use crate::image::gzip::End;
    use crate::image::gzip::tests::{sample, threads};
    use crate::image::output::Access;
    use crate::image::parts::{Content, compress, shared};
    use crate::image::progress::Silent;
    use crate::tree::digest::identity;
    use crate::tree::read::{Rest, read_tar};
    use crate::tree::readers::hard_tree;
    use crate::tree::{Entry, Tree, TreePath};
    use std::io::Read;
    use std::process::Command;

    /// The tree divided as a build divides it, and joined to an image in `directory`.
    fn image(tree: &Tree, directory: &Path, threads_: usize) -> (Vec<u8>, Spliced) {
        let part = |n: usize| -> Vec<(&TreePath, &Entry)> {
            tree.entries.iter().enumerate().filter(|(i, _)| (i * i) % 3 == n).map(|(_, e)| e).collect()
        };
        let (first, second) = (part(0), part(1));
        let (second, third) = second.split_at(second.len() / 2);
        let content = |entries| Content { entries, store: None };
        let cache = Cache::open(Some(&directory.join("cache"))).unwrap();
        let (prefix, mut links) = shared(content(&first), &cache, threads(threads_), &Silent).unwrap();
        let profile = compress(content(second), End::Open, &mut links, threads(threads_)).unwrap();
        let node = compress(content(third), End::Final, &mut links, threads(1)).unwrap();
        let path = directory.join("image.tar.gz");
        let mut out = Atomic::create(&path, Access::Owner).unwrap();
        let spliced = write_image(&prefix, &profile, &node, &mut out).unwrap();
        out.commit().unwrap();
        (std::fs::read(&path).unwrap(), spliced)
    }

    fn big_tree() -> Tree {
        let mut tree = hard_tree();
        tree.insert(TreePath::parse("/big").unwrap(), Entry::directory(0o755));
        for (name, len) in [("/big/a", 2_500_000), ("/big/b", 1 << 20), ("/big/c", 300_000)] {
            tree.insert(TreePath::parse(name).unwrap(), Entry::file(sample(len), 0o644));
        }
        tree
    }

    #[test]
    fn an_image_is_one_member_with_the_digest_and_the_parts_that_are_said() {
        let directory = tempfile::tempdir().unwrap();
        let (bytes, spliced) = image(&big_tree(), directory.path(), 2);
        assert_eq!((spliced.size, spliced.sha256), (bytes.len() as u64, Digest::of(&bytes)));

        let mut tar = Vec::new();
        let mut decoder = flate2::bufread::GzDecoder::new(bytes.as_slice());
        decoder.read_to_end(&mut tar).unwrap();
        assert!(decoder.into_inner().is_empty(), "one member");

        let mut raw_at = 0;
        for part in &spliced.parts {
            let at = part.offset as usize..(part.offset + part.facts.length) as usize;
            assert_eq!(Digest::of(&bytes[at.clone()]), part.facts.sha256, "{:?}", part.kind);
            let raw = &tar[raw_at..raw_at + part.facts.raw_length as usize];
            assert_eq!(crc32fast::hash(raw), part.facts.crc32, "{:?}", part.kind);
            raw_at += raw.len();
        }
        assert_eq!(raw_at, tar.len());
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes_with_any_threads_and_an_empty_cache() {
        let bytes: Vec<_> =
            [1, 2, 4].map(|n| image(&big_tree(), tempfile::tempdir().unwrap().path(), n)).into_iter().collect();
        assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
    }

    #[test]
    fn real_readers_find_every_entry_in_every_mode() {
        let tree = big_tree();
        let directory = tempfile::tempdir().unwrap();
        image(&tree, directory.path(), 2);
        let path = directory.path().join("image.tar.gz");
        let path = path.to_str().unwrap();
        let python = |mode: &str| format!("import tarfile; [print(m.name) for m in tarfile.open('{path}', '{mode}')]");
        let (seek, stream) = (python("r:gz"), python("r|gz"));
        let readers: [(&str, &[&str]); 6] = [
            ("gzip", &["-t", path]),
            ("tar", &["--quoting-style=literal", "-tzf", path]),
            ("bsdtar", &["-tf", path]),
            ("busybox", &["tar", "-tzf", path]),
            ("python3", &["-c", &seek]),
            ("python3", &["-c", &stream]),
        ];
        for (program, arguments) in readers {
            let output = Command::new(program)
                .args(arguments)
                .env("LC_ALL", "C")
                .env("PYTHONIOENCODING", "utf-8:surrogateescape")
                .output()
                .unwrap_or_else(|e| panic!("{program}: {e}"));
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            let lines = output.stdout.iter().filter(|b| **b == b'\n').count();
            let want = if program == "gzip" { 0 } else { tree.entries.len() };
            assert_eq!(lines, want, "{program} {arguments:?}");
        }
    }

    #[test]
    fn a_tree_written_in_parts_has_the_identity_of_the_tree() {
        let tree = big_tree();
        let directory = tempfile::tempdir().unwrap();
        let (bytes, _) = image(&tree, directory.path(), 1);
        let tar = flate2::bufread::GzDecoder::new(bytes.as_slice());
        let scanned = read_tar(tar, &|_, _| false, Rest::Dropped).unwrap();
        assert_eq!(scanned.defects, []);
        assert_eq!(identity(&scanned.tree), identity(&tree));
    }

    #[test]
    fn a_shared_part_that_was_cut_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(directory.path())).unwrap();
        let path = TreePath::parse("/a").unwrap();
        let file = Entry::file(sample(100_000), 0o644);
        let content = Content { entries: &[(&path, &file)], store: None };
        let (prefix, mut links) = shared(content, &cache, threads(1), &Silent).unwrap();
        let empty = Content { entries: &[], store: None };
        let profile = compress(empty, End::Open, &mut links, threads(1)).unwrap();
        let node = compress(empty, End::Final, &mut links, threads(1)).unwrap();
        File::options().write(true).open(&prefix.path).unwrap().set_len(50).unwrap();
        let mut out = Atomic::create(&directory.path().join("image"), Access::Owner).unwrap();
        let failure = write_image(&prefix, &profile, &node, &mut out).unwrap_err();
        assert!(failure.message.ends_with("was changed while images were made from it"), "{failure}");
    }
}
