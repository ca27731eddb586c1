//! The 512-byte header of a tar member (POSIX ustar), and what does not fit into it.
//!
//! Four readers must agree on every image: GNU tar, bsdtar, busybox and Python's `tarfile`. So
//! - a name of more than 100 bytes is divided into `prefix` and `name` where that goes; a longer one, and a link
//!   target of more than 100 bytes, stands in a GNU record (type `L` or `K`) in front: busybox 1.35 does not read
//!   names from PAX records, all four read these, and they hold any byte but NUL;
//! - a number that octal digits cannot hold stands in a PAX record, and in the header in base 256 (as libarchive
//!   writes it), so that readers of either see the same number;
//! - extended attributes are PAX records `SCHILY.xattr.NAME`, whose value is any bytes and may be empty.

use super::write::WriteError;
use super::{Entry, Kind, TreePath};

/// Size of a block of a tar.
pub(super) const BLOCK: usize = 512;
/// Longest `name` and `linkname` of the header; they need no NUL at the end.
const NAME: usize = 100;
/// Longest `prefix` of the header.
const PREFIX: usize = 155;
/// GNU's name of the member that holds a long name, known to all readers.
const LONG_NAME: &[u8] = b"././@LongLink";
/// Largest device number of seven octal digits; Linux has 12 bits for the major and 20 for the minor one.
const MAX_DEVICE: u32 = 0o7777777;

/// All blocks in front of an entry's content. `hard_link` is the earlier name of the same inode.
pub(super) fn blocks(path: &TreePath, entry: &Entry, hard_link: Option<&TreePath>) -> Result<Vec<u8>, WriteError> {
    let mut name = member_name(path);
    if entry.is_directory() && !path.is_root() {
        name.push(b'/');
    }
    let (kind, link, size) = match (hard_link, &entry.kind) {
        (Some(first), _) => (b'1', member_name(first), 0),
        (None, Kind::File(data)) => (b'0', Vec::new(), data.len),
        (None, Kind::Symlink(target)) => (b'2', target.clone(), 0),
        (None, Kind::Character { .. }) => (b'3', Vec::new(), 0),
        (None, Kind::Block { .. }) => (b'4', Vec::new(), 0),
        (None, Kind::Directory) => (b'5', Vec::new(), 0),
        (None, Kind::Fifo) => (b'6', Vec::new(), 0),
    };
    if link.contains(&0) {
        return Err(WriteError::unrepresentable(path, "the target of the link holds a NUL byte"));
    }

    let mut out = Vec::with_capacity(BLOCK);
    let mut header = Header::new(kind);
    match split(&name) {
        Some((prefix, name)) => {
            header.put(PREFIX_AT, prefix);
            header.put(NAME_AT, name);
        }
        None => {
            push_long(&mut out, b'L', &name);
            header.put(NAME_AT, &name[..NAME]);
        }
    }
    if link.len() > NAME {
        push_long(&mut out, b'K', &link);
    }
    header.put(LINK_AT, &link[..link.len().min(NAME)]);

    let mut records = Vec::new();
    header.number(SIZE_AT, i128::from(size), "size", &mut records);
    header.number(UID_AT, i128::from(entry.uid), "uid", &mut records);
    header.number(GID_AT, i128::from(entry.gid), "gid", &mut records);
    header.number(MTIME_AT, i128::from(entry.mtime), "mtime", &mut records);
    header.octal(MODE_AT, u64::from(entry.mode & 0o7777));
    if let (None, Kind::Character { major, minor } | Kind::Block { major, minor }) = (hard_link, &entry.kind) {
        if *major > MAX_DEVICE || *minor > MAX_DEVICE {
            return Err(WriteError::unrepresentable(path, "the device number is not one of Linux's"));
        }
        header.octal(MAJOR_AT, u64::from(*major));
        header.octal(MINOR_AT, u64::from(*minor));
    }
    // The attributes belong to the inode: they stand at its first name only.
    if hard_link.is_none() {
        for (name, value) in &entry.xattrs {
            if name.is_empty() || name.contains(&0) {
                return Err(WriteError::unrepresentable(
                    path,
                    "the name of an extended attribute is empty or has a NUL",
                ));
            }
            push_record(&mut records, &[b"SCHILY.xattr.", encoded(name).as_slice()].concat(), value);
        }
    }
    if !records.is_empty() {
        push_extended(&mut out, path, &records);
    }
    out.extend_from_slice(&header.finish());
    Ok(out)
}

/// `./etc/x`; `./` for the root.
fn member_name(path: &TreePath) -> Vec<u8> {
    [b"./", path.as_bytes()].concat()
}

/// Divides a name at a `/` so that both pieces fit: `prefix/name`. `None` when it is too long.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    if name.len() <= NAME {
        return Some((&[], name));
    }
    // The leftmost slash that leaves a name short enough; a name may not be empty, which a directory's last slash
    // would make it.
    let from = name.len().checked_sub(NAME + 1)?;
    let at = from + name[from..].iter().position(|b| *b == b'/')?;
    (at <= PREFIX && at + 1 < name.len()).then(|| (&name[..at], &name[at + 1..]))
}

/// A GNU record: a member whose content is a name that ends with a NUL, for the member that follows.
fn push_long(out: &mut Vec<u8>, kind: u8, name: &[u8]) {
    let mut header = Header::new(kind);
    header.put(NAME_AT, LONG_NAME);
    header.octal(MODE_AT, 0o644);
    header.octal(SIZE_AT, name.len() as u64 + 1);
    out.extend_from_slice(&header.finish());
    out.extend_from_slice(name);
    out.push(0);
    pad(out);
}

/// The first `=` ends a record's key, so GNU tar writes it in an attribute's name as `%3D`, and `%` as `%25`.
fn encoded(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'=' => out.extend_from_slice(b"%3D"),
            b'%' => out.extend_from_slice(b"%25"),
            other => out.push(*other),
        }
    }
    out
}

/// A PAX extended header. Its own name has to be a good one: busybox refuses a member without a name.
fn push_extended(out: &mut Vec<u8>, path: &TreePath, records: &[u8]) {
    let mut name = [b"./PaxHeaders/", path.file_name()].concat();
    name.truncate(NAME);
    let mut header = Header::new(b'x');
    header.put(NAME_AT, &name);
    header.octal(MODE_AT, 0o644);
    header.octal(SIZE_AT, records.len() as u64);
    out.extend_from_slice(&header.finish());
    out.extend_from_slice(records);
    pad(out);
}

/// `LENGTH KEY=VALUE\n`, where the length counts itself (pax(1), extended header).
fn push_record(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + decimal_digits(rest);
    if rest + decimal_digits(len) > len {
        len = rest + decimal_digits(len);
    }
    out.extend_from_slice(format!("{len} ").as_bytes());
    out.extend_from_slice(key);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn decimal_digits(number: usize) -> usize {
    number.to_string().len()
}

/// Fills the last block with zeros.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}

/// Offset and length of a field of the header.
type Field = (usize, usize);
const NAME_AT: Field = (0, NAME);
const MODE_AT: Field = (100, 8);
const UID_AT: Field = (108, 8);
const GID_AT: Field = (116, 8);
const SIZE_AT: Field = (124, 12);
const MTIME_AT: Field = (136, 12);
const SUM_AT: Field = (148, 8);
const KIND_AT: usize = 156;
const LINK_AT: Field = (157, NAME);
const MAGIC_AT: Field = (257, 8);
const MAJOR_AT: Field = (329, 8);
const MINOR_AT: Field = (337, 8);
const PREFIX_AT: Field = (345, PREFIX);

struct Header([u8; BLOCK]);

impl Header {
    /// Numbers 0; user and group names empty: only the numeric owner counts.
    fn new(kind: u8) -> Header {
        let mut header = Header([0; BLOCK]);
        header.put(MAGIC_AT, b"ustar\x0000");
        header.0[KIND_AT] = kind;
        for field in [MODE_AT, UID_AT, GID_AT, SIZE_AT, MTIME_AT, MAJOR_AT, MINOR_AT] {
            header.octal(field, 0);
        }
        header
    }

    /// Puts bytes that fit.
    fn put(&mut self, (at, len): Field, bytes: &[u8]) {
        debug_assert!(bytes.len() <= len);
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Octal digits that fill the field but for one NUL.
    fn octal(&mut self, (at, len): Field, number: u64) {
        self.0[at..at + len - 1].copy_from_slice(format!("{number:0width$o}", width = len - 1).as_bytes());
    }

    /// A number in octal when it fits, else in base 256 and as a PAX record.
    fn number(&mut self, (at, len): Field, number: i128, key: &str, records: &mut Vec<u8>) {
        match u64::try_from(number) {
            Ok(small) if small < 1 << (3 * (len - 1)) => self.octal((at, len), small),
            _ => {
                // Two's complement, most significant byte first; the first byte marks the form.
                let bytes = number.to_be_bytes();
                self.0[at..at + len].copy_from_slice(&bytes[bytes.len() - len..]);
                self.0[at] = if number < 0 { 0xff } else { 0x80 };
                push_record(records, key.as_bytes(), number.to_string().as_bytes());
            }
        }
    }

    /// Puts the checksum: the sum of all bytes, its own field taken as spaces.
    fn finish(mut self) -> [u8; BLOCK] {
        let (at, len) = SUM_AT;
        self.0[at..at + len].fill(b' ');
        let sum: u64 = self.0.iter().map(|b| u64::from(*b)).sum();
        self.0[at..at + 7].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_record_counts_itself() {
        for len in (1..220).chain([975, 976, 977, 978, 9970, 9980, 9990]) {
            let mut record = Vec::new();
            push_record(&mut record, b"k", &vec![b'v'; len]);
            let text = String::from_utf8(record).unwrap();
            assert_eq!(text.split(' ').next().unwrap().parse(), Ok(text.len()), "value of {len} bytes");
        }
    }

    #[test]
    fn names_are_divided_only_where_both_pieces_fit() {
        let long = |n: usize| "x".repeat(n);
        let cases = [
            (long(100), Some((String::new(), long(100)))),
            (long(101), None),
            (format!("{}/{}", long(155), long(100)), Some((long(155), long(100)))),
            (format!("{}/{}", long(156), long(100)), None),
            (format!("{}/{}", long(155), long(101)), None),
            (format!("./a/{}", long(98)), Some((".".into(), format!("a/{}", long(98))))),
            // A directory's own slash is no place to divide.
            (format!("{}/", long(100)), None),
            (format!("./{}/", long(99)), Some((".".into(), format!("{}/", long(99))))),
        ];
        for (name, want) in cases {
            let got = split(name.as_bytes())
                .map(|(a, b)| (String::from_utf8_lossy(a).into_owned(), String::from_utf8_lossy(b).into_owned()));
            assert_eq!(got, want, "{name}");
        }
    }
}
