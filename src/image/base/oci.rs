//! A base given as an OCI image layout on disk: one of its images, its layers applied one upon the other.
//!
//! The result follows from the digest of the image's manifest alone, so that is the cache's key: a base that is there is
//! not read from the layout again, only its documents are.

mod blobs;
mod choose;
mod layers;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::{Base, FORMAT, Reuse, Source, Work, rules};
use crate::declaration::OciChoice;
use crate::finding::{Failure, Finding, Problem, Spanned};
use crate::tree::read::{self, ReadAhead, ReadError, Rest, Scanned, decompress};
use crate::tree::{Digest, Entry, Store, Tree, TreePath, write};
use blobs::Blobs;
use choose::{Descriptor, Image};

pub(super) fn prepare(work: &Work, path: &Spanned<PathBuf>, choice: &OciChoice) -> Result<Base, Problem> {
    let name = path.value.display().to_string();
    let blobs = Blobs { root: work.resolve(&path.value), name: name.clone(), span: &path.span };
    let image = choose::choose(&blobs, choice, &path.span)?;
    let key = Digest::of(format!("oci {FORMAT} {}", image.digest).as_bytes());
    let source = Source { key, span: &path.span, name: name.clone(), made_here: false };
    work.obtain(&source, |unfinished| {
        let total = image.manifest.layers.iter().map(|layer| layer.size).sum::<u64>();
        let step = work.progress.start(&format!("applying the layers of {name}"), Some(2 * total));
        let out_path = unfinished.path().to_path_buf();
        let beside = out_path.parent().unwrap_or(&out_path);
        let failed = |e: io::Error| Failure::io("write a temporary file in", beside, &e);
        // One store for the contents of all layers: a tree refers to one.
        let store = tempfile::tempfile_in(beside).map_err(failed)?;
        let mut tree = stack(&blobs, &image, &store, &mut |n| step.advance(n))?;
        tree.store = Some(Arc::new(Store { file: store, path: beside.to_path_buf() }));
        super::normal::single_names(&mut tree);
        let mut out = io::BufWriter::with_capacity(256 * 1024, unfinished.file());
        write::write_entries(&mut out, &tree.entries, tree.store.as_deref(), &mut write::Links::default())
            .map_err(Failure::from)?;
        write::end_of_archive(&mut out).and_then(|()| out.flush()).map_err(|e| Failure::io("write", &out_path, &e))?;
        Ok(Reuse::Yes)
    })
}

/// Unpacks all layers into the store and applies them. Every blob is proven before the first is unpacked, and what is
/// wrong with any of them is told together.
fn stack(blobs: &Blobs, image: &Image, store: &File, advance: &mut dyn FnMut(u64)) -> Result<Tree, Problem> {
    let mut files = Vec::new();
    let mut found: Vec<Finding> = Vec::new();
    for layer in &image.manifest.layers {
        match supported(blobs, layer).and_then(|()| blobs.open(layer, advance)) {
            Ok(file) => files.push(file),
            Err(Problem::Findings(findings)) => found.extend(findings),
            Err(failure) => return Err(failure),
        }
    }
    if !found.is_empty() {
        return Err(found.into());
    }
    let mut tree = Tree::default();
    tree.insert(TreePath::root(), Entry::directory(0o755));
    let mut start = 0;
    for (i, (layer, file)) in image.manifest.layers.iter().zip(files).enumerate() {
        let title = format!("layer {} of {} ({})", i + 1, image.manifest.layers.len(), layer.digest);
        let (scanned, plain) = unpack(blobs, &title, file, store)?;
        advance(layer.size);
        let len = scanned.len;
        let declared = &image.config.rootfs.diff_ids[i];
        let wrong = layers::apply(&mut tree, scanned, start);
        let defects = wrong.iter().map(|text| format!("{title}: {text}"));
        rules::unsound(defects, &blobs.name, blobs.span, OF_A_LAYER)?;
        if *declared != format!("sha256:{plain}") {
            let text = format!("{title}: it is sha256:{plain} uncompressed, the image's configuration says {declared}");
            return Err(rules::DIGEST.finding(&blobs.name, text).at(blobs.span).help("build the image again").into());
        }
        start += len;
    }
    Ok(tree)
}

const OF_A_LAYER: &str = "build the image again with another tool, or give its unpacked root by `dir`";

/// Media types of layers: what is encrypted or something else altogether cannot be applied. How a layer is compressed is
/// told by its content.
fn supported(blobs: &Blobs, layer: &Descriptor) -> Result<(), Problem> {
    let kind = layer.media_type.as_str();
    let known = ["application/vnd.oci.image.layer.", "application/vnd.docker.image.rootfs."];
    if kind.contains("encrypted") {
        return Err(blobs.wrong(format!("has an encrypted layer, {}: decrypt the image first", layer.digest)));
    }
    if !known.iter().any(|prefix| kind.starts_with(prefix)) {
        let text =
            format!("has a layer {} of the type `{}`, which is none of an image", layer.digest, kind.escape_debug());
        return Err(blobs.wrong(text));
    }
    Ok(())
}

/// Copies the plain tar of a layer to the end of the store while reading it. Gives its digest too.
fn unpack(blobs: &Blobs, title: &str, file: File, store: &File) -> Result<(Scanned, Digest), Problem> {
    let unreadable = |error: ReadError| -> Problem {
        match error {
            ReadError::Io(error) => Failure::new(format!("cannot read {title} of {}: {error}", blobs.name)).into(),
            error => rules::NOT_A_TAR.finding(&blobs.name, format!("{title} is {error}")).at(blobs.span).into(),
        }
    };
    let (_, plain) = decompress(file).map_err(unreadable)?;
    let plain = ReadAhead::new(plain).map_err(|e| unreadable(e.into()))?;
    let (mut sha, mut failed) = (Sha256::new(), None);
    let copied = Copied { inner: plain, sha: &mut sha, store, failed: &mut failed };
    let scanned = read::read_tar(copied, &|_, _| false, Rest::InTar);
    if let Some(error) = failed {
        return Err(Failure::new(format!("cannot write a temporary copy of {title}: {error}")).into());
    }
    Ok((scanned.map_err(unreadable)?, Digest(sha.finalize().into())))
}

/// Hashes and stores what is read.
struct Copied<'a> {
    inner: ReadAhead,
    sha: &'a mut Sha256,
    store: &'a File,
    failed: &'a mut Option<io::Error>,
}

impl Read for Copied<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.sha.update(&buffer[..n]);
        if let Err(error) = self.store.write_all(&buffer[..n]) {
            let again = error.raw_os_error().map_or_else(|| io::Error::other("write"), io::Error::from_raw_os_error);
            *self.failed = Some(error);
            return Err(again);
        }
        Ok(n)
    }
}
