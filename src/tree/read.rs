//! The strict tar reader: one streaming pass, every regular file hashed, nothing guessed.
//!
//! It reads ustar, PAX (POSIX.1-2024 pax, "pax Interchange Format"), GNU long names and base-256 numbers. Where tar
//! readers are known to disagree about an archive, it says so by name ([`Defect`]) instead of choosing in silence:
//! a base with a defect is refused, and a finished image with one does not verify.
//!
//! Memory is bounded: a file's content is held only when [`Contents`] keeps it.

mod ahead;
mod codec;
mod contents;
mod defect;
mod header;
mod input;
mod member;
mod pax;
mod place;
#[cfg(test)]
pub(crate) mod raw;
mod streams;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

pub use ahead::ReadAhead;
pub use codec::{Codec, decompress};
pub use contents::{Contents, Keep, Rest};
pub use defect::{Defect, DefectKind};
pub use streams::{StreamError, stream_defect};

use super::{Tree, TreePath};

/// What one pass over a tar found.
#[derive(Debug, Default)]
pub struct Scanned {
    /// The tree as a reader that follows POSIX gets it. The root is always there.
    pub tree: Tree,
    /// All that is wrong or ambiguous, in archive order.
    pub defects: Vec<Defect>,
    /// Directories that the archive does not list though something lies in them: in the tree they are `0755` of
    /// root's. The root is among them when there is no `./` entry.
    pub implied: BTreeSet<TreePath>,
    /// Hard links to names that do not come before them in the archive, each with its target and its defect among
    /// [`Scanned::defects`]. In a layer of an OCI image the name may be one of a lower layer.
    pub outward: BTreeMap<TreePath, (TreePath, Defect)>,
    /// Members (extension headers not counted).
    pub members: u64,
    /// Bytes of the plain tar that were read, with what follows its end.
    pub len: u64,
}

/// Why nothing could be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused to read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is something else.
    #[error("not a tar: {0}")]
    NotATar(String),
    /// A compression that is known by its magic bytes and not read.
    #[error("compressed with {0}, which is not supported; use `.tar`, `.tar.gz`, `.tar.xz` or `.tar.zst`")]
    Unsupported(&'static str),
}

/// Reads a plain tar (see [`decompress`]). Contents for which `keep` is true (path, length in bytes) are held in
/// memory; the `rest` says what becomes of others.
///
/// # Errors
/// When the input cannot be read or is no tar. Damage inside is a [`Defect`] and ends the reading.
pub fn read_tar(input: impl Read, keep: &dyn Fn(&TreePath, u64) -> bool, rest: Rest) -> Result<Scanned, ReadError> {
    read(input, &mut Keep::new(keep, rest))
}

/// Reads a plain tar, giving every content to `contents` as it comes.
///
/// # Errors
/// As [`read_tar`].
pub fn read<R: Read, C: Contents>(input: R, contents: &mut C) -> Result<Scanned, ReadError> {
    member::Reader::new(input, contents).run()
}
