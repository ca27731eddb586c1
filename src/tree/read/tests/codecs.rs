//! Compression, and damage of compressed streams.

use std::io::{Cursor, Read, Write};

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Bytes that no compression makes smaller.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| random()).collect()
}

#[test]
fn compression_is_told_by_content() {
    let tar = Raw::new().file("a", b"abc").end();
    let zstd = zstd::encode_all(&*tar, 1).unwrap();
    // A skippable frame of three bytes (RFC 8878, 3.1.2), as pzstd writes one in front of each frame.
    let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
    let cases = [
        (Codec::Plain, tar.clone()),
        (Codec::Plain, vec![0; 1024]),
        (Codec::Gzip, gzip(&tar)),
        (Codec::Gzip, [gzip(&tar[..512]), gzip(&tar[512..])].concat()),
        (Codec::Zstd, zstd),
        (Codec::Zstd, [zstd::encode_all(&tar[..512], 1).unwrap(), zstd::encode_all(&tar[512..], 1).unwrap()].concat()),
        (Codec::Zstd, [&skippable[..], &zst(&tar[..512]), &skippable, &zst(&tar[512..]), &skippable].concat()),
        (Codec::Xz, xz(&tar)),
        (Codec::Xz, [&xz(&tar[..512])[..], &[0; 8], &xz(&tar[512..]), &[0; 4]].concat()),
    ];
    for (want, stored) in cases {
        let (codec, mut reader) = decompress(Cursor::new(stored)).unwrap();
        let mut plain = Vec::new();
        reader.read_to_end(&mut plain).unwrap();
        assert_eq!(codec, want);
        assert!(plain == tar || plain == [0; 1024]);
    }
}

#[test]
fn what_is_no_tar_is_named() {
    let block = |start: &[u8]| [start, &[b'x'; 1000]].concat();
    let mut bad = Raw::new().file("a", b"").end();
    bad[0] = b'b';
    let cases: &[(Vec<u8>, &str)] = &[
        (vec![], "not a tar: it is empty"),
        (b"hello\n".to_vec(), "not a tar: it has only 6 bytes"),
        (block(b"\n<!DOCTYPE html><html>404"), "not a tar: it looks like a page of HTML"),
        (block(b"PK\x03\x04"), "not a tar: it looks like a zip archive"),
        (block(b"!<arch>\ndebian-binary"), "not a tar: it looks like an ar archive"),
        (block(b"LZIP\x01"), "compressed with lzip, which is not supported"),
        (block(b"BZh9"), "compressed with bzip2, which is not supported"),
        (block(b"\x04\x22\x4d\x18"), "compressed with lz4, which is not supported"),
        (block(b""), "not a tar: its first block is no tar header"),
        (bad, "not a tar: its first header is damaged"),
    ];
    for (bytes, want) in cases {
        let got = decompress(&**bytes).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(got.contains(want), "{got} / {want}");
        let got = read_tar(&**bytes, &|_, _| false, Rest::Dropped).err().map(|e| e.to_string()).unwrap_or_default();
        let short = bytes.len() == 6;
        assert!(got.contains(want) || short, "{got} / {want}");
    }
    let twice = gzip(&gzip(&Raw::new().file("a", &(0..4096).map(|i| (i * i / 7) as u8).collect::<Vec<_>>()).end()));
    let (_, reader) = decompress(&*twice).unwrap();
    let got = read_tar(reader, &|_, _| false, Rest::Dropped).unwrap_err().to_string();
    assert!(got.contains("compressed twice"), "{got}");
}

/// Whatever byte of a compressed archive is wrong, and wherever it ends, reading says so.
#[test]
fn damage_of_a_compressed_stream_is_told() {
    let tar = Raw::new().file("a", &noise(20_000)).file("b", b"b").end();
    let (gz, zst, xz) = (gzip(&tar), zst(&tar), xz(&tar));
    let bad = |stored: &[u8]| match decompress(stored) {
        Err(_) => true,
        Ok((_, reader)) => match read_tar(reader, &|_, _| false, Rest::Dropped) {
            Err(_) => true,
            Ok(scanned) => !scanned.defects.is_empty(),
        },
    };
    assert!(!bad(&gz) && !bad(&zst) && !bad(&xz));
    // The gzip header's time and system mean nothing, nor do some bits of zstd's frame header.
    for (stored, first) in [(&gz, 10), (&zst, 12), (&xz, 6)] {
        for at in (first..stored.len()).step_by(997).chain(stored.len() - 8..stored.len()) {
            let mut flipped = stored.clone();
            flipped[at] ^= 0x10;
            assert!(bad(&flipped), "flipped byte {at} of {}", stored.len());
            assert!(bad(&stored[..at]), "cut at {at} of {}", stored.len());
        }
    }
}

/// What stands behind the last stream is told as what it is, however short or long, and not as damage of the archive.
#[test]
fn what_follows_a_compressed_stream_is_told() {
    let tar = Raw::new().file("a", &noise(300_000)).end();
    let told = |stored: &[u8]| {
        let (_, reader) = decompress(stored).unwrap();
        let scanned = read_tar(reader, &|_, _| false, Rest::Dropped).unwrap();
        assert_eq!(scanned.tree.entries.len(), 2, "the archive itself is read");
        scanned.defects.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    for (name, stored) in [("gzip", gzip(&tar)), ("zstd", zst(&tar)), ("xz", xz(&tar))] {
        assert_eq!(told(&stored), "", "{name}");
        for garbage in [&b"x"[..], b"garbage", &[0; 3], &[b'x'; 5000]] {
            let want = format!(
                "the archive has something after its {name} stream, from byte {} of the file on, that is no further {name} stream",
                stored.len()
            );
            let got = told(&[&stored[..], garbage].concat());
            assert!(got.starts_with(&want), "{name}: {got}");
        }
        let cut = told(&[&stored[..], &stored[..stored.len() / 2]].concat());
        assert!(cut.starts_with("the archive is truncated: the compressed stream ends too early"), "{name}: {cut}");
    }
}

/// A header may claim any window; the memory is bounded all the same.
#[test]
fn memory_of_a_decompressor_is_bounded() {
    let tar = Raw::new().file("a", b"a").end();
    // LZMA2's dictionary size is one byte of the block header: 36 stands for 1 GiB (.xz file format, 5.3.1). Written into
    // a small stream, with the header's CRC set anew, it costs this test no memory.
    let mut stored = xz(&tar);
    let at = stored[12..24].windows(2).position(|w| w == [0x21, 0x01]).unwrap() + 12 + 2;
    stored[at] = 36;
    let end = 12 + (usize::from(stored[12]) + 1) * 4 - 4;
    let crc = crc32fast::hash(&stored[12..end]).to_le_bytes();
    stored[end..end + 4].copy_from_slice(&crc);
    let (_, reader) = decompress(&*stored).unwrap();
    let scanned = read_tar(reader, &|_, _| false, Rest::Dropped).unwrap();
    assert_eq!(
        scanned.defects[0].to_string(),
        "the archive needs more than 256 MiB of memory to decompress; compress it again, for instance with `xz -6` (at byte 0)"
    );
}

#[test]
fn reading_ahead_changes_nothing() {
    let bytes: Vec<u8> = (0u32..3_000_000).map(|i| (i / 3) as u8).collect();
    let mut got = Vec::new();
    ReadAhead::new(Cursor::new(bytes.clone())).unwrap().read_to_end(&mut got).unwrap();
    assert!(got == bytes);
    // Errors come after what was read before them, and a reader that is dropped early ends the thread.
    let mut got = Vec::new();
    let gz = gzip(&bytes);
    let broken = flate2::read::MultiGzDecoder::new(Cursor::new(gz[..gz.len() / 2].to_vec()));
    let error = ReadAhead::new(broken).unwrap().read_to_end(&mut got).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(!got.is_empty() && bytes.starts_with(&got));
    drop(ReadAhead::new(std::io::repeat(7)).unwrap());
}
