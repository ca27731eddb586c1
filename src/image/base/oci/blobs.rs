//! The blobs of an OCI image layout (image-spec, `image-layout.md`): found by digest, and proven by it.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::choose::Descriptor;
use crate::finding::words::plain;
use crate::finding::{Failure, Problem, Span};
use crate::image::base::rules;
use crate::tree::Digest;

/// Largest document in bytes: registries take manifests of at most 4 MiB (distribution-spec).
const DOCUMENT: u64 = 4 << 20;

/// A layout on disk.
pub(super) struct Blobs<'a> {
    pub root: PathBuf,
    /// As declared, for messages.
    pub name: String,
    pub span: &'a Span,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    image_layout_version: String,
}

impl Blobs<'_> {
    /// A finding about the layout: the message goes on after its name.
    pub fn wrong(&self, message: impl std::fmt::Display) -> Problem {
        rules::OCI.finding(&self.name, format!("it {message}")).at(self.span).into()
    }

    /// Checks that it is a layout and reads its index.
    pub fn layout<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let marker = self.root.join("oci-layout");
        let metadata = std::fs::metadata(&self.root);
        let metadata = metadata.map_err(|e| rules::unopened(&e, &self.root, &self.name, self.span))?;
        if !metadata.is_dir() {
            let help = "unpack it: `mkdir layout && tar -xf FILE -C layout`, and declare `oci = \"layout\"`";
            let text = "it is a file, not an OCI image layout on disk";
            return Err(rules::OCI.finding(&self.name, text).at(self.span).help(help).into());
        }
        if let Err(error) = std::fs::metadata(&marker) {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(Failure::io("read", &marker, &error).into());
            }
            let text = "it is no OCI image layout: it has no file `oci-layout`";
            let help = "`skopeo copy docker://NAME oci:DIR:TAG` makes one; an unpacked root is declared by `dir`";
            return Err(rules::OCI.finding(&self.name, text).at(self.span).help(help).into());
        }
        let Layout { image_layout_version: version } = self.parse("oci-layout", &self.document(&marker)?)?;
        if !version.starts_with("1.") {
            return Err(self.wrong(format!("is of the layout version `{version}`; version 1 is read")));
        }
        self.parse("index.json", &self.document(&self.root.join("index.json"))?)
    }

    /// A document that is a blob.
    pub fn json<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, Problem> {
        if descriptor.size > DOCUMENT {
            return Err(self.wrong(format!("has a document {} of {} bytes", descriptor.digest, descriptor.size)));
        }
        let bytes = self.document(&self.path(&descriptor.digest)?)?;
        self.prove(descriptor, bytes.len() as u64, Digest::of(&bytes))?;
        self.parse(&descriptor.digest, &bytes)
    }

    /// A blob of any size, proven and at its beginning. `advance` is told how many bytes were read.
    pub fn open(&self, descriptor: &Descriptor, advance: &mut dyn FnMut(u64)) -> Result<File, Problem> {
        let path = self.path(&descriptor.digest)?;
        let mut file = crate::regular::open(&path).map_err(|e| self.missing(&e, &path))?;
        let failed = |e: io::Error| Failure::io("read", &path, &e);
        let mut sha = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        let mut len = 0;
        loop {
            let n = file.read(&mut buffer).map_err(failed)?;
            if n == 0 {
                break;
            }
            sha.update(&buffer[..n]);
            len += n as u64;
            advance(n as u64);
        }
        self.prove(descriptor, len, Digest(sha.finalize().into()))?;
        file.rewind().map_err(failed)?;
        Ok(file)
    }

    /// Where a blob is.
    fn path(&self, digest: &str) -> Result<PathBuf, Problem> {
        match digest.split_once(':') {
            Some(("sha256", hex)) if Digest::from_hex(hex).is_some_and(|d| d.hex() == hex) => {
                Ok(self.root.join("blobs/sha256").join(hex))
            }
            Some(("sha512", _)) => Err(self.wrong(format!("names a blob by SHA-512 ({digest}); SHA-256 is read"))),
            _ => Err(self.wrong(format!("names a blob by `{}`, which is no digest", digest.escape_debug()))),
        }
    }

    fn missing(&self, error: &io::Error, path: &Path) -> Problem {
        match error.kind() {
            io::ErrorKind::NotFound => {
                let below = path.strip_prefix(&self.root).unwrap_or(path).display();
                let why = if below.to_string().starts_with("blobs") { ", which its index leads to" } else { "" };
                self.wrong(format!("lacks {below}{why}: was it copied as a whole?"))
            }
            _ => Failure::io("open", path, error).into(),
        }
    }

    /// A small file as a whole.
    fn document(&self, path: &Path) -> Result<Vec<u8>, Problem> {
        let file = crate::regular::open(path).map_err(|e| self.missing(&e, path))?;
        let mut bytes = Vec::new();
        file.take(DOCUMENT + 1).read_to_end(&mut bytes).map_err(|e| Failure::io("read", path, &e))?;
        if bytes.len() as u64 > DOCUMENT {
            return Err(self.wrong(format!("has a document larger than 4 MiB: {}", path.display())));
        }
        Ok(bytes)
    }

    fn parse<T: DeserializeOwned>(&self, what: &str, bytes: &[u8]) -> Result<T, Problem> {
        serde_json::from_slice(bytes)
            .map_err(|e| self.wrong(format!("has {what}, which cannot be understood: {}", plain(&e.to_string()))))
    }

    fn prove(&self, descriptor: &Descriptor, len: u64, found: Digest) -> Result<(), Problem> {
        let digest = &descriptor.digest;
        let what = if len != descriptor.size {
            format!("the blob {digest} has {len} bytes, its descriptor says {}", descriptor.size)
        } else if *digest != format!("sha256:{found}") {
            format!("the blob {digest} has the SHA-256 {found}")
        } else {
            return Ok(());
        };
        let text = format!("{}: {what}", self.root.display());
        let help = "copy the layout again; the blob is damaged, or somebody changed it";
        Err(rules::DIGEST.finding(&self.name, text).at(self.span).help(help).into())
    }
}
