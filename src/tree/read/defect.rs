//! What can be wrong or ambiguous in a tar.

use std::fmt;

use super::streams::StreamError;
use crate::tree::TreePath;

/// Something wrong or ambiguous, with its place in the plain tar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// Byte offset of the header in the plain tar.
    pub offset: u64,
    /// The member's name as it is written, made printable; empty when it is about the archive.
    pub name: String,
    /// What it is.
    pub kind: DefectKind,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(f, "the archive {} (at byte {})", self.kind, self.offset)
        } else {
            write!(f, "`{}` {} (at byte {})", self.name, self.kind, self.offset)
        }
    }
}

/// The kinds of [`Defect`]. The text completes a sentence that begins with the member's name or "the archive".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefectKind {
    /// The same path twice, also when written in two ways.
    #[error("is there twice; readers that unpack take the last, readers that look up a name the first")]
    Duplicate,
    /// A name that begins with `/`.
    #[error("is an absolute name")]
    Absolute,
    /// A name with a `..` element.
    #[error("has a `..` element")]
    Parent,
    /// A NUL byte, an empty name, an element over 255 bytes or a name over 4 095: no file system takes it.
    #[error("is not a usable name: it {0}")]
    Name(&'static str),
    /// An element of its path is a symbolic link of the archive.
    #[error("lies below the symlink {link} -> `{target}`, which leads {}to `{leads}`", out(*leaves))]
    BelowSymlink {
        /// The link.
        link: TreePath,
        /// Its target as written.
        target: String,
        /// Where a reader that follows it would write: absolute when it leaves the root by an absolute target.
        leads: String,
        /// True when that is outside of the root.
        leaves: bool,
    },
    /// An element of its path is neither directory nor link.
    #[error("lies below {0}, which is a {1}")]
    BelowFile(TreePath, &'static str),
    /// It would take the place of a directory that has something in it.
    #[error("is a {0} where other members need a directory")]
    ReplacesDirectory(&'static str),
    /// A regular file whose name ends in `/`: some readers make a directory of it.
    #[error("is a regular file with a `/` at its end; some readers make a directory of it")]
    SlashedFile,
    /// A hard link to what does not come before it.
    #[error("is a hard link to `{0}`, which is not there before it")]
    HardlinkMissing(String),
    /// A hard link to a name outside of the root.
    #[error("is a hard link to `{0}`, which {1}")]
    HardlinkEscapes(String, &'static str),
    /// A hard link to itself, a directory, or what is no usable name.
    #[error("is a hard link to `{0}`, which {1}")]
    HardlinkTarget(String, &'static str),
    /// A link, directory or device with a size: readers disagree whether content follows.
    #[error("is a {0} with a size of {1} bytes; readers disagree whether content follows")]
    SizeOfKind(&'static str, u64),
    /// A symbolic link without a target.
    #[error("is a symlink without a target")]
    NoTarget,
    /// PAX `size` and the header's size disagree.
    #[error("has a PAX size of {pax} bytes and {header} in its header; readers disagree where it ends")]
    PaxSize {
        /// The header's.
        header: u64,
        /// PAX's.
        pax: u64,
    },
    /// A malformed PAX header.
    #[error("has a malformed PAX header: {0}")]
    Pax(String),
    /// GNU sparse formats (old header type `S`, or PAX `GNU.sparse.*`).
    #[error("is stored as a sparse file ({0}), which is not supported")]
    Sparse(&'static str),
    /// PAX records and GNU `L`/`K` headers that give one member's name twice, or a GNU header after a PAX one.
    #[error("has both PAX and GNU long-name headers; readers disagree which counts")]
    MixedNames,
    /// Two extension headers of one kind before one member.
    #[error("has two extension headers of type `{0}`; readers disagree which counts")]
    TwoExtensions(char),
    /// An attribute that would be lost.
    #[error("has the PAX record `{0}`, which is not supported and would be lost")]
    Lost(String),
    /// A global header that gives name or size to all that follow.
    #[error("has a global PAX header with `{0}`")]
    Global(String),
    /// A global header with attributes: clear by POSIX, ignored by many readers.
    #[error("has a global PAX header with `{0}`, which some readers ignore")]
    GlobalAttribute(String),
    /// An entry type that is not known.
    #[error("has the unknown type {0}")]
    UnknownType(String),
    /// A field of the header that is no number, or one too large.
    #[error("has an unreadable {0}")]
    Number(&'static str),
    /// Extension headers that no member follows.
    #[error("ends after an extension header that no member follows")]
    Dangling,
    /// A header whose checksum is wrong.
    #[error("is damaged: a header's checksum is wrong")]
    Header,
    /// An extension header larger than any name or set of attributes.
    #[error("has an extension header of {0} bytes")]
    LargeExtension(u64),
    /// The input ends within a member.
    #[error("is truncated within this member")]
    TruncatedMember,
    /// The input ends within a header.
    #[error("is truncated within a header")]
    Truncated,
    /// The input ends without the two zero blocks that close an archive.
    #[error("has no end marker (two zero blocks); it may be truncated")]
    NotClosed,
    /// One zero block with something after it: some readers stop there, some go on.
    #[error("has a single zero block with something after it; some readers stop there")]
    LoneZeroBlock,
    /// Bytes other than zero after the end marker.
    #[error("has data after its end marker")]
    TrailingData,
    /// The compressed stream ends too early.
    #[error("is truncated: the compressed stream ends too early")]
    TruncatedStream,
    /// The decompressor found the stream damaged.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// The compressed stream is sound so far, and yet cannot be read on.
    #[error("{0}")]
    Stream(StreamError),
}

impl DefectKind {
    /// True where POSIX is clear and this reader follows it, though other readers may not: harmless in a base, which
    /// only this reader reads.
    pub fn is_only_ambiguous_elsewhere(&self) -> bool {
        matches!(self, DefectKind::GlobalAttribute(_))
    }
}

fn out(leaves: bool) -> &'static str {
    if leaves { "out of the root, " } else { "" }
}

/// Bytes as text for messages: what is not UTF-8 or a control character is escaped as `\xNN`.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                text.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|b| format!("\\x{b:02x}")));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().map(|b| format!("\\x{b:02x}")));
    }
    text
}
