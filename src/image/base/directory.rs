//! A base given as a directory: an unpacked root file system.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::{Base, FORMAT, Reuse, Source, Work, rules};
use crate::finding::{Failure, Finding, Problem, Span, Spanned};
use crate::tree::{Data, Digest, Entry, Kind, LinkGroup, Place, Store, Tree, TreePath, write};

/// A change this many nanoseconds before reading begins may leave a file's times as they are: the kernel's clock for
/// them ticks coarsely.
const TICK: i128 = 1_000_000_000;

pub(super) fn prepare(work: &Work, path: &Spanned<PathBuf>) -> Result<Base, Problem> {
    let name = path.value.display().to_string();
    let root = work.resolve(&path.value);
    let begin = now();
    let metadata = fs::metadata(&root).map_err(|e| rules::unopened(&e, &root, &name, &path.span))?;
    if !metadata.is_dir() {
        let error = io::Error::from(io::ErrorKind::NotADirectory);
        return Err(rules::unopened(&error, &root, &name, &path.span));
    }
    let found = walk(&root, &name, &path.span)?;
    let newest_change = found.iter().map(|f| f.changed()).max().unwrap_or(0);
    let source = Source { key: stamp(&found), span: &path.span, name: name.clone(), made_here: false };
    work.obtain(&source, |unfinished| {
        let total = found.iter().map(|f| f.metadata.len()).sum();
        let step = work.progress.start(&format!("packing {name}"), Some(total));
        let out_path = unfinished.path().to_path_buf();
        let tree = gather(&found, out_path.parent().unwrap_or(&out_path), &mut |n| step.advance(n))?;
        let mut out = io::BufWriter::with_capacity(256 * 1024, unfinished.file());
        write::write_entries(&mut out, &tree.entries, tree.store.as_deref(), &mut write::Links::default())
            .map_err(Failure::from)?;
        write::end_of_archive(&mut out).and_then(|()| out.flush()).map_err(|e| Failure::io("write", &out_path, &e))?;
        Ok(if newest_change + TICK < begin { Reuse::Yes } else { Reuse::No })
    })
}

fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i128)
}

/// One object of the directory.
struct Found {
    path: TreePath,
    full: PathBuf,
    metadata: Metadata,
}

impl Found {
    /// Time of the last change of content or attributes, in nanoseconds.
    fn changed(&self) -> i128 {
        i128::from(self.metadata.ctime()) * 1_000_000_000 + i128::from(self.metadata.ctime_nsec())
    }
}

/// Everything in the directory, in path order, on its file system only (no `/proc` that is mounted in it).
fn walk(root: &Path, name: &str, span: &Span) -> Result<Vec<Found>, Problem> {
    let mut found = Vec::new();
    let mut wrong: Vec<Finding> = Vec::new();
    for entry in walkdir::WalkDir::new(root).same_file_system(true).follow_root_links(true) {
        let entry = entry.map_err(|e| Failure::new(format!("cannot read the base directory: {e}")).help(PERMISSION))?;
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path()).as_os_str().as_bytes();
        let metadata = if below.is_empty() { fs::metadata(root) } else { fs::symlink_metadata(entry.path()) };
        let metadata = metadata.map_err(|e| Failure::io("read", entry.path(), &e))?;
        let path = TreePath::parse(below).map_err(|e| Failure::new(format!("{} {e}", entry.path().display())))?;
        if metadata.file_type().is_socket() {
            wrong.push(
                rules::KIND.finding(name, format!("{path} is a socket")).at(span).help("remove it from the directory"),
            );
            continue;
        }
        found.push(Found { path, full: entry.path().to_path_buf(), metadata });
    }
    if !wrong.is_empty() {
        return Err(wrong.into());
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

const PERMISSION: &str = "a root file system holds files that only root can read: run as root, or give a tar instead";

/// Digest of all that changes when something in the directory does.
fn stamp(found: &[Found]) -> Digest {
    let mut sha = Sha256::new();
    sha.update(format!("dir {FORMAT}\0"));
    for Found { path, metadata: m, .. } in found {
        sha.update(path.as_bytes());
        let numbers =
            [m.dev(), m.ino(), m.mode().into(), m.nlink(), m.uid().into(), m.gid().into(), m.rdev(), m.size()];
        sha.update(format!("\0{numbers:?} {} {}", m.mtime(), m.mtime_nsec()));
        sha.update(format!(" {} {}\0", m.ctime(), m.ctime_nsec()));
    }
    Digest(sha.finalize().into())
}

/// Reads everything into a tree. Contents are collected in one unnamed file on the cache's file system:
/// a tree refers to one store.
fn gather(found: &[Found], beside: &Path, advance: &mut dyn FnMut(u64)) -> Result<Tree, Failure> {
    let failed = |e: io::Error| Failure::io("write a temporary file in", beside, &e);
    let mut blob = tempfile::tempfile_in(beside).map_err(failed)?;
    let mut tree = Tree::default();
    let mut end = 0;
    let mut inodes: BTreeMap<(u64, u64), (LinkGroup, Kind)> = BTreeMap::new();
    for Found { path, full, metadata } in found {
        let inode = (metadata.dev(), metadata.ino());
        let linked = metadata.nlink() > 1 && !metadata.is_dir();
        let (kind, links) = match inodes.get(&inode).filter(|_| linked) {
            Some((group, kind)) => (kind.clone(), Some(*group)),
            None => {
                let kind = kind(full, metadata, &mut blob, &mut end, advance)?;
                let group = linked.then_some(LinkGroup(inodes.len() as u32));
                if let Some(group) = group {
                    inodes.insert(inode, (group, kind.clone()));
                }
                (kind, group)
            }
        };
        let mode = if matches!(kind, Kind::Symlink(_)) { 0o777 } else { (metadata.mode() & 0o7777) as u16 };
        let mut entry = Entry::new(kind, mode).owned(metadata.uid(), metadata.gid()).dated(metadata.mtime());
        entry.xattrs = xattrs(full).map_err(|e| Failure::io("read the attributes of", full, &e.into()))?;
        entry.links = links;
        tree.insert(path.clone(), entry);
    }
    super::normal::single_names(&mut tree);
    tree.store = Some(Arc::new(Store { file: blob, path: beside.to_path_buf() }));
    Ok(tree)
}

fn kind(
    full: &Path,
    metadata: &Metadata,
    blob: &mut File,
    end: &mut u64,
    advance: &mut dyn FnMut(u64),
) -> Result<Kind, Failure> {
    let kind = metadata.file_type();
    let device = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    Ok(if kind.is_dir() {
        Kind::Directory
    } else if kind.is_symlink() {
        let target = fs::read_link(full).map_err(|e| Failure::io("read", full, &e))?;
        Kind::Symlink(target.as_os_str().as_bytes().to_vec())
    } else if kind.is_char_device() {
        Kind::Character { major: device.0, minor: device.1 }
    } else if kind.is_block_device() {
        Kind::Block { major: device.0, minor: device.1 }
    } else if kind.is_fifo() {
        Kind::Fifo
    } else {
        let place = Place::Base { offset: *end };
        let (len, sha256) = append(full, blob, advance)?;
        *end += len;
        Kind::File(Data { len, sha256, place })
    })
}

fn append(full: &Path, blob: &mut File, advance: &mut dyn FnMut(u64)) -> Result<(u64, Digest), Failure> {
    let mut file = File::open(full).map_err(|e| Failure::io("open", full, &e).help(PERMISSION))?;
    let mut sha = Sha256::new();
    let mut len = 0;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let n = file.read(&mut buffer).map_err(|e| Failure::io("read", full, &e))?;
        if n == 0 {
            return Ok((len, Digest(sha.finalize().into())));
        }
        sha.update(&buffer[..n]);
        blob.write_all(&buffer[..n]).map_err(|e| Failure::io("write a temporary copy of", full, &e))?;
        len += n as u64;
        advance(n as u64);
    }
}

/// Extended attributes. SELinux labels are left out: they are the build host's policy's, not the base's.
fn xattrs(path: &Path) -> rustix::io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    use rustix::fs::{lgetxattr, llistxattr};
    use rustix::io::Errno;
    // XATTR_LIST_MAX and XATTR_SIZE_MAX of Linux.
    let mut names = vec![0u8; 64 * 1024];
    let len = match llistxattr(path, &mut names[..]) {
        Ok(len) => len,
        Err(Errno::OPNOTSUPP) => 0,
        Err(error) => return Err(error),
    };
    let mut all = BTreeMap::new();
    for name in names[..len].split(|b| *b == 0).filter(|n| !n.is_empty() && *n != b"security.selinux") {
        let mut value = vec![0u8; 64 * 1024];
        let len = lgetxattr(path, name, &mut value[..])?;
        value.truncate(len);
        all.insert(name.to_vec(), value);
    }
    Ok(all)
}
