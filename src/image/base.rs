//! The common image: made or taken once, kept as a plain tar in the cache, read into a tree whose contents refer
//! into that tar.
//!
//! Whatever it comes from, the tar is read strictly: any defect is fatal and told with the others. The identity of
//! what was read is stored beside the tar, so a cache that rots is noticed on the next reading and made anew.
//! (Reading means hashing every file, at some 600 MB/s: 0.4 s for Debian's minimum with systemd and etcd. That is why
//! no list of hashes is kept and trusted instead.)

mod debian;
mod directory;
mod normal;
mod oci;
pub mod packages;
pub mod rules;
mod tarball;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::cache::{Cache, Slot, Unfinished};
use super::progress::{Progress, Step};
use crate::declaration::{self, BaseSource, Mesh, Target};
use crate::finding::{Failure, Problem, Span};
use crate::tree::read::{self, ReadError, Rest, Scanned};
use crate::tree::{Digest, Kind, Store, Tree, TreePath, digest};
pub use debian::DebianRequest;
pub use rules::RULES;

/// Kind of the cache's slots, and the names in them.
const SLOT: &str = "base";
const TAR: &str = "base.tar";
const RECORD: &str = "base.json";

/// Raised when what is stored, or how it is made, changes its meaning.
const FORMAT: u32 = 1;

/// The base, ready to be built on.
#[derive(Debug, Clone)]
pub struct Base {
    /// Its tree; contents are in the cached tar.
    pub tree: Tree,
    /// Identity: digest of the canonical listing of [`Base::tree`].
    pub digest: Digest,
    /// SHA-256 of the plain tar.
    pub tar_sha256: Digest,
    /// Content of its `/etc/hostname`, which must not be found in an image; empty when it has none.
    pub hostname: String,
    /// Installed Debian packages with their versions.
    pub packages: BTreeMap<String, String>,
    /// Newest modification time in it, in seconds since 1970.
    pub newest: i64,
}

/// What is stored beside the plain tar.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    format: u32,
    tar_sha256: Digest,
    identity: Digest,
    /// A directory that was changed while it was read, or so shortly before that its times could not tell.
    #[serde(default)]
    changing: bool,
}

/// Makes or finds the base of a mesh. `packages` is what the overlays ask for; the declaration's own come on top.
/// `make` makes a Debian root file system as a plain tar at a path.
///
/// # Errors
/// [`Problem::Findings`] when what is declared is not there, has another digest, is no tar, or is not sound;
/// [`Problem::Failure`] when it cannot be made, read or stored.
pub fn prepare(
    mesh: &Mesh,
    packages: &BTreeSet<String>,
    cache: &Cache,
    make: &dyn Fn(&DebianRequest, &Path) -> Result<(), Failure>,
    progress: &dyn Progress,
) -> Result<Base, Problem> {
    let target = mesh.image.target;
    let work = Work { base: &mesh.base, directory: &mesh.directory, target, cache, progress };
    work.prepare(packages, make)
}

/// What every kind of base needs.
struct Work<'a> {
    base: &'a declaration::Base,
    directory: &'a Path,
    target: Target,
    cache: &'a Cache,
    progress: &'a dyn Progress,
}

/// A kind of base, as far as it differs from the others.
struct Source<'a> {
    /// What its tar follows from.
    key: Digest,
    /// Place in the declaration, for findings.
    span: &'a Span,
    /// For messages: `trixie`, a path.
    name: String,
    /// True when the tar comes from mmdebstrap, with what that leaves of the build host.
    made_here: bool,
}

impl Work<'_> {
    fn prepare(
        &self,
        packages: &BTreeSet<String>,
        make: &dyn Fn(&DebianRequest, &Path) -> Result<(), Failure>,
    ) -> Result<Base, Problem> {
        match &self.base.source {
            BaseSource::Debian { suite, mirror } => debian::prepare(self, suite, mirror.as_ref(), packages, make),
            BaseSource::Tar { path, sha256 } => tarball::prepare(self, path, sha256),
            BaseSource::Dir { path } => directory::prepare(self, path),
            BaseSource::Oci { path, choice } => oci::prepare(self, path, choice),
        }
    }

    /// Takes the base from the cache, or makes it. `make` writes a plain tar; it says whether it may be used again.
    fn obtain(
        &self,
        source: &Source,
        make: impl Fn(&mut Unfinished) -> Result<Reuse, Problem>,
    ) -> Result<Base, Problem> {
        let slot = self.cache.slot(SLOT, &source.key, self.progress)?;
        if let Some(base) = self.cached(source, &slot)? {
            return Ok(base);
        }
        slot.clear()?;
        let mut unfinished = slot.create()?;
        let reuse = make(&mut unfinished)?;
        let (scanned, tar_sha256) = self.read(source, unfinished.path())?;
        rules::check(&scanned.defects, &source.name, source.span)?;
        let identity = digest::identity(&scanned.tree);
        unfinished.publish(TAR)?;
        slot.write_record(RECORD, &Record { format: FORMAT, tar_sha256, identity, changing: reuse == Reuse::No })?;
        self.base(source, scanned, tar_sha256, &slot.path(TAR))
    }

    /// The base of the slot, when it is there and is still what was stored.
    fn cached(&self, source: &Source, slot: &Slot) -> Result<Option<Base>, Problem> {
        let Some(record) = slot.read_record::<Record>(RECORD) else { return Ok(None) };
        let path = slot.path(TAR);
        if record.format != FORMAT || record.changing || !path.exists() {
            return Ok(None);
        }
        match self.scan(source, &path, |file| file) {
            Ok(scanned) if scanned.defects.is_empty() && digest::identity(&scanned.tree) == record.identity => {
                self.base(source, scanned, record.tar_sha256, &path).map(Some)
            }
            Ok(_) | Err(ReadError::NotATar(_) | ReadError::Unsupported(_)) => {
                self.progress.start("the base in the cache is damaged; making it again", None);
                Ok(None)
            }
            Err(ReadError::Io(error)) => Err(Failure::io("read", &path, &error).into()),
        }
    }

    /// Reads a new plain tar, hashing it as a whole too.
    fn read(&self, source: &Source, path: &Path) -> Result<(Scanned, Digest), Problem> {
        let mut sha = Sha256::new();
        let scanned = self.scan(source, path, |file| Tee { inner: file, sha: &mut sha });
        let scanned = scanned.map_err(|e| rules::unreadable(e, path, &source.name, source.span))?;
        Ok((scanned, Digest(sha.finalize().into())))
    }

    fn scan<R: Read>(
        &self,
        source: &Source,
        path: &Path,
        through: impl FnOnce(Counted<File>) -> R,
    ) -> Result<Scanned, ReadError> {
        let file = File::open(path)?;
        let total = file.metadata()?.len();
        let step = self.progress.start(&format!("reading the base {}", source.name), Some(total));
        let mut scanned = read::read_tar(through(Counted { inner: file, step }), &|_, _| false, Rest::InTar)?;
        scanned.defects.retain(|d| !d.kind.is_only_ambiguous_elsewhere());
        Ok(scanned)
    }

    fn base(&self, source: &Source, scanned: Scanned, tar_sha256: Digest, path: &Path) -> Result<Base, Problem> {
        let file = File::open(path).map_err(|e| Failure::io("open", path, &e))?;
        let Scanned { mut tree, implied, .. } = scanned;
        tree.store = Some(Arc::new(Store { file, path: path.to_path_buf() }));
        let hostname = hostname(&tree)?;
        if source.made_here {
            normal::leave_nothing_of_the_host(&mut tree);
        }
        if self.target == Target::UnprivilegedContainer {
            normal::without_devices(&mut tree);
        }
        normal::single_names(&mut tree);
        let listed = tree.entries.iter().filter(|(path, _)| !implied.contains(*path));
        let newest = listed.map(|(_, entry)| entry.mtime).max().unwrap_or(0);
        for path in &implied {
            if let Some(entry) = tree.entries.get_mut(path) {
                entry.mtime = newest;
            }
        }
        let packages = packages::installed(&tree)?;
        let digest = digest::identity(&tree);
        Ok(Base { tree, digest, tar_sha256, hostname, packages, newest })
    }

    /// A path of the declaration.
    fn resolve(&self, path: &Path) -> PathBuf {
        self.directory.join(path)
    }
}

/// Whether what was made may serve the next build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reuse {
    Yes,
    No,
}

/// First line of `/etc/hostname` that is no comment (hostname(5)).
fn hostname(tree: &Tree) -> Result<String, Failure> {
    let Ok(path) = TreePath::parse("/etc/hostname") else { return Ok(String::new()) };
    if !matches!(tree.get(&path).map(|e| &e.kind), Some(Kind::File(_))) {
        return Ok(String::new());
    }
    let content = tree.content(&path)?;
    let text = String::from_utf8_lossy(&content);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(line.unwrap_or_default().to_owned())
}

/// Reports what is read to a progress step.
struct Counted<R> {
    inner: R,
    step: Box<dyn Step>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.step.advance(n as u64);
        Ok(n)
    }
}

/// Hashes what is read.
struct Tee<'a, R> {
    inner: R,
    sha: &'a mut Sha256,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.sha.update(&buffer[..n]);
        Ok(n)
    }
}
