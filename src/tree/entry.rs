//! One entry of a tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Digest;

/// A file system object with all its attributes, without its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Permission bits with setuid, setgid and sticky: 12 bits. Symbolic links have `0o777`.
    pub mode: u16,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Seconds since 1970, already clamped.
    pub mtime: i64,
    /// Extended attributes by full name (`security.capability`), values as they are.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Names of one inode share a group; `None` for a file with one name.
    pub links: Option<LinkGroup>,
}

/// Number of a set of hard links; unique within a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkGroup(pub u32);

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Regular file.
    File(Data),
    /// Directory.
    Directory,
    /// Symbolic link with its target, as it is written.
    Symlink(Vec<u8>),
    /// Character device.
    Character {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// Block device.
    Block {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// Named pipe.
    Fifo,
}

/// The content of a regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Length in bytes.
    pub len: u64,
    /// SHA-256 of the content.
    pub sha256: Digest,
    /// Where the bytes are.
    pub place: Place,
}

/// Where content is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the base's plain tar, from this byte on.
    Base {
        /// Byte offset in the tar.
        offset: u64,
    },
    /// In memory.
    Memory(Arc<[u8]>),
    /// Read and hashed, not kept (verification of a stream).
    Dropped,
}

impl Data {
    /// Content in memory.
    pub fn memory(bytes: impl Into<Arc<[u8]>>) -> Data {
        let bytes = bytes.into();
        Data { len: bytes.len() as u64, sha256: Digest::of(&bytes), place: Place::Memory(bytes) }
    }
}

impl Entry {
    /// A regular file of root's.
    pub fn file(bytes: impl Into<Arc<[u8]>>, mode: u16) -> Entry {
        Entry::new(Kind::File(Data::memory(bytes)), mode)
    }
    /// A directory of root's.
    pub fn directory(mode: u16) -> Entry {
        Entry::new(Kind::Directory, mode)
    }
    /// A symbolic link of root's.
    pub fn symlink(target: impl Into<Vec<u8>>) -> Entry {
        Entry::new(Kind::Symlink(target.into()), 0o777)
    }
    /// An entry of root's without attributes, at time 0.
    pub fn new(kind: Kind, mode: u16) -> Entry {
        Entry { kind, mode, uid: 0, gid: 0, mtime: 0, xattrs: BTreeMap::new(), links: None }
    }
    /// Sets the owner.
    pub fn owned(mut self, uid: u32, gid: u32) -> Entry {
        self.uid = uid;
        self.gid = gid;
        self
    }
    /// Sets the time.
    pub fn dated(mut self, mtime: i64) -> Entry {
        self.mtime = mtime;
        self
    }
    /// The word for its kind.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::File(_) => "file",
            Kind::Directory => "directory",
            Kind::Symlink(_) => "symlink",
            Kind::Character { .. } => "character device",
            Kind::Block { .. } => "block device",
            Kind::Fifo => "fifo",
        }
    }
    /// True for directories.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory)
    }
    /// Same kind, content, mode, owner and attributes; time and link group do not count.
    pub fn same_as(&self, other: &Entry) -> bool {
        let content = match (&self.kind, &other.kind) {
            (Kind::File(a), Kind::File(b)) => a.sha256 == b.sha256,
            (a, b) => a == b,
        };
        content && (self.mode, self.uid, self.gid) == (other.mode, other.uid, other.gid) && self.xattrs == other.xattrs
    }
}
