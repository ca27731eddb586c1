//! Compression, and damage of compressed streams.

use std::io::{Cursor, Read, Write};

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compression_is_told_by_content() {
    let tar = Raw::new().file("a", b"abc").end();
    let zstd = zstd::encode_all(&*tar, 1).unwrap();
    let cases = [
        (Codec::Plain, tar.clone()),
        (Codec::Plain, vec![0; 1024]),
        (Codec::Gzip, gzip(&tar)),
        (Codec::Gzip, [gzip(&tar[..512]), gzip(&tar[512..])].concat()),
        (Codec::Zstd, zstd),
        (Codec::Zstd, [zstd::encode_all(&tar[..512], 1).unwrap(), zstd::encode_all(&tar[512..], 1).unwrap()].concat()),
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
        (block(b"\xfd7zXZ\0"), "compressed with xz, which is not supported"),
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
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let content: Vec<u8> = (0..20_000).map(|_| random()).collect();
    let tar = Raw::new().file("a", &content).file("b", b"b").end();
    let gz = gzip(&tar);
    let zst = {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(&tar).unwrap();
        encoder.finish().unwrap()
    };
    let bad = |stored: &[u8]| match decompress(stored) {
        Err(_) => true,
        Ok((_, reader)) => match read_tar(reader, &|_, _| false, Rest::Dropped) {
            Err(_) => true,
            Ok(scanned) => !scanned.defects.is_empty(),
        },
    };
    assert!(!bad(&gz) && !bad(&zst));
    // The gzip header's time and system mean nothing, nor do some bits of zstd's frame header.
    for (stored, first) in [(&gz, 10), (&zst, 12)] {
        for at in (first..stored.len()).step_by(997).chain(stored.len() - 8..stored.len()) {
            let mut flipped = stored.clone();
            flipped[at] ^= 0x10;
            assert!(bad(&flipped), "flipped byte {at} of {}", stored.len());
            assert!(bad(&stored[..at]), "cut at {at} of {}", stored.len());
        }
    }
    let garbage = [&gz[..], b"garbage"].concat();
    assert!(bad(&garbage), "bytes after the gzip member");
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
