//! What becomes of the contents of regular files while a tar streams by.

use crate::tree::{Place, TreePath};

/// Receives every regular file's content once, in archive order.
pub trait Contents {
    /// A file of `len` bytes begins.
    fn begin(&mut self, path: &TreePath, len: u64);
    /// The next bytes of it.
    fn chunk(&mut self, bytes: &[u8]);
    /// It is complete; its content began at `offset` of the plain tar. Says where the content is kept.
    fn end(&mut self, offset: u64) -> Place;
}

/// What becomes of contents that are not kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// They stay in the plain tar: [`Place::Base`].
    InTar,
    /// They are gone: [`Place::Dropped`].
    Dropped,
}

/// Keeps in memory what a predicate of path and length selects.
pub struct Keep<'a> {
    keep: &'a dyn Fn(&TreePath, u64) -> bool,
    rest: Rest,
    kept: Option<Vec<u8>>,
}

impl<'a> Keep<'a> {
    /// With the predicate, and what becomes of the rest.
    pub fn new(keep: &'a dyn Fn(&TreePath, u64) -> bool, rest: Rest) -> Keep<'a> {
        Keep { keep, rest, kept: None }
    }
}

impl Contents for Keep<'_> {
    fn begin(&mut self, path: &TreePath, len: u64) {
        // Not reserved in advance: the length is a claim until the bytes are there.
        self.kept = (self.keep)(path, len).then(Vec::new);
    }
    fn chunk(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
    }
    fn end(&mut self, offset: u64) -> Place {
        match (self.kept.take(), self.rest) {
            (Some(bytes), _) => Place::Memory(bytes.into()),
            (None, Rest::InTar) => Place::Base { offset },
            (None, Rest::Dropped) => Place::Dropped,
        }
    }
}
