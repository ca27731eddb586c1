//! Compression told by magic bytes, never by name.

use std::io::{Cursor, Read};

use super::ReadError;
use super::header::{self, BLOCK, Block};

/// How the archive is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Not compressed.
    Plain,
    /// One or more gzip members (RFC 1952).
    Gzip,
    /// One or more zstd frames (RFC 8878).
    Zstd,
}

/// Compressions that are told apart only to say so.
const UNSUPPORTED: &[(&[u8], &str)] = &[
    (b"\xfd7zXZ\0", "xz"),
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
pub fn decompress<'a>(mut input: impl Read + Send + 'a) -> Result<(Codec, Box<dyn Read + Send + 'a>), ReadError> {
    let mut head = Vec::with_capacity(BLOCK as usize);
    (&mut input).take(BLOCK).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(input);
    if head.starts_with(b"\x1f\x8b") {
        return Ok((Codec::Gzip, Box::new(flate2::read::MultiGzDecoder::new(whole))));
    }
    if head.starts_with(b"\x28\xb5\x2f\xfd") {
        return Ok((Codec::Zstd, Box::new(zstd::stream::read::Decoder::new(whole)?)));
    }
    check_first_block(&head)?;
    Ok((Codec::Plain, Box::new(whole)))
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
        None if head.starts_with(b"\x1f\x8b") || head.starts_with(b"\x28\xb5\x2f\xfd") => {
            "it is compressed twice".into()
        }
        None if head.len() < BLOCK as usize => format!("it has only {} bytes", head.len()),
        None => "its first block is no tar header".into(),
    };
    Err(ReadError::NotATar(what))
}
