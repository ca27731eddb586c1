//! Compression told by magic bytes, never by name.

use std::io::Read;

use super::ReadError;
use super::header::{self, BLOCK, Block};
use super::streams::{Buffered, Streams};

/// How the archive is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Not compressed.
    Plain,
    /// One or more gzip members (RFC 1952).
    Gzip,
    /// One or more zstd frames, skippable ones among them (RFC 8878).
    Zstd,
    /// One or more xz streams with their padding (the .xz file format, 1.2).
    Xz,
}

impl Codec {
    /// Most bytes that [`Codec::of`] needs.
    pub(super) const MAGIC: usize = 6;

    /// What begins with these bytes; [`Codec::Plain`] when it is no compression that is read.
    pub(super) fn of(head: &[u8]) -> Codec {
        match head {
            [0x1f, 0x8b, ..] => Codec::Gzip,
            // A frame, or a skippable one, as pzstd puts in front of each of its frames.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Codec::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Codec::Xz,
            _ => Codec::Plain,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Plain => "plain",
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
            Codec::Xz => "xz",
        }
    }
}

/// Compressions that are told apart only to say so.
const UNSUPPORTED: &[(&[u8], &str)] = &[
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"LZIP", "lzip"),
    (b"\x1f\x9d", "compress"),
    (b"\x89LZO", "lzop"),
];

/// What people hand over by mistake.
const OTHER: &[(&[u8], &str)] = &[
    (b"PK\x03\x04", "a zip archive"),
    (b"hsqs", "a squashfs image"),
    (b"!<arch>\n", "an ar archive (a Debian package?)"),
    (b"QFI\xfb", "a qcow2 disk image"),
    (b"070701", "a cpio archive"),
    (b"\x7fELF", "a program"),
    (b"<", "a page of HTML or XML (a failed download?)"),
    (b"{", "JSON"),
];

/// Looks at the first block and gives a reader of the plain tar.
///
/// # Errors
/// On an unreadable or empty input, a compression that is not supported, and what is no tar.
pub fn decompress<'a>(input: impl Read + Send + 'a) -> Result<(Codec, Box<dyn Read + Send + 'a>), ReadError> {
    let mut input = Buffered::new(input);
    let head = input.peek(BLOCK as usize)?;
    let head = &head[..head.len().min(BLOCK as usize)];
    let codec = Codec::of(head);
    if codec == Codec::Plain {
        check_first_block(head)?;
        return Ok((codec, Box::new(input)));
    }
    Ok((codec, Box::new(Streams::new(codec, input))))
}

/// Refuses what cannot be the first block of a plain tar.
pub(super) fn check_first_block(head: &[u8]) -> Result<(), ReadError> {
    if let Some((_, name)) = UNSUPPORTED.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(ReadError::Unsupported(name));
    }
    if let Ok(block) = Block::try_from(head) {
        if header::checksum_is_right(&block) || head.iter().all(|b| *b == 0) {
            return Ok(());
        }
        if head[257..].starts_with(b"ustar") {
            return Err(ReadError::NotATar("its first header is damaged (wrong checksum)".into()));
        }
    }
    let text = head.trim_ascii_start();
    let what = match OTHER.iter().find(|(magic, _)| text.starts_with(magic)) {
        Some((_, what)) => format!("it looks like {what}"),
        None if head.is_empty() => "it is empty".into(),
        None if Codec::of(head) != Codec::Plain => "it is compressed twice".into(),
        None if head.len() < BLOCK as usize => format!("it has only {} bytes", head.len()),
        None => "its first block is no tar header".into(),
    };
    Err(ReadError::NotATar(what))
}
