//! One 512-byte header block: checksum, numbers, names.

use tar::Header;

/// Size of a tar block in bytes.
pub const BLOCK: u64 = 512;

/// One block.
pub type Block = [u8; BLOCK as usize];

/// True when the stored checksum (POSIX: sum of unsigned bytes, the field itself as spaces) is right.
pub fn checksum_is_right(block: &Block) -> bool {
    let sum: u64 =
        block.iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { 32 } else { u64::from(*b) }).sum();
    number(&block[148..156]) == Some(i128::from(sum))
}

/// Reads a numeric field: octal digits with leading spaces, ended by space, NUL or the field's end; or GNU's base-256.
/// An empty field is 0.
pub fn number(field: &[u8]) -> Option<i128> {
    match field.first()? {
        // Base-256, big-endian; the first byte is 0x80 (positive) or 0xff (two's complement), or it holds digits.
        first if first & 0x80 != 0 => {
            let negative = first & 0x40 != 0;
            let mut value: i128 = if negative { -1 } else { 0 };
            for (i, byte) in field.iter().enumerate() {
                let byte = if i == 0 && !negative { byte & 0x7f } else { *byte };
                value = (value << 8) | i128::from(byte);
            }
            Some(value)
        }
        _ => {
            let start = field.iter().position(|b| *b != b' ').unwrap_or(field.len());
            let digits = &field[start..];
            let end = digits.iter().position(|b| *b == b' ' || *b == 0).unwrap_or(digits.len());
            if digits[end..].iter().any(|b| *b != b' ' && *b != 0) {
                return None;
            }
            digits[..end].iter().try_fold(0i128, |value, digit| match digit {
                b'0'..=b'7' => Some(value * 8 + i128::from(digit - b'0')),
                _ => None,
            })
        }
    }
}

/// Views a block as the `tar` crate's header, which knows where `ustar` and GNU keep names.
pub fn view(block: &Block) -> &Header {
    Header::from_byte_slice(block)
}

/// The type flag.
pub fn type_flag(block: &Block) -> u8 {
    block[156]
}

/// Mode, 12 bits.
pub fn mode(block: &Block) -> Option<u16> {
    u16::try_from(number(&block[100..108])? & 0o7777).ok()
}

/// Size as it is written.
pub fn size(block: &Block) -> Option<u64> {
    u64::try_from(number(&block[124..136])?).ok().filter(|size| *size < 1 << 62)
}

/// Owner.
pub fn uid(block: &Block) -> Option<u32> {
    u32::try_from(number(&block[108..116])?).ok()
}

/// Group.
pub fn gid(block: &Block) -> Option<u32> {
    u32::try_from(number(&block[116..124])?).ok()
}

/// Time in seconds since 1970.
pub fn mtime(block: &Block) -> Option<i64> {
    i64::try_from(number(&block[136..148])?).ok()
}

/// Device numbers, major and minor.
pub fn device(block: &Block) -> Option<(u32, u32)> {
    let major = u32::try_from(number(&block[329..337])?).ok()?;
    let minor = u32::try_from(number(&block[337..345])?).ok()?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_forms() {
        let cases: &[(&[u8], Option<i128>)] = &[
            (b"0000644\0", Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"00000000017", Some(0o17)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"0000648\0", None),
            (b"-000001\0", None),
            (b"+000001\0", None),
            (b"1 1\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\x01\x00", Some(256)),
            (b"\x80\0\0\0\x02\0\0\0\0\0\0\0", Some(1 << 57)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
        ];
        for (field, want) in cases {
            assert_eq!(number(field), *want, "{field:?}");
        }
    }
}
