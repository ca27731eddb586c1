//! PAX records: `LENGTH KEY=VALUE\n`, values are bytes and may hold anything.

use std::collections::BTreeMap;

/// Prefix of extended attributes (star's, used by GNU tar, bsdtar and Python).
const XATTR: &[u8] = b"SCHILY.xattr.";

/// Records by key; a later one replaces an earlier one.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Splits the body of a PAX header.
///
/// # Errors
/// With what is malformed.
pub fn parse(mut body: &[u8]) -> Result<Records, String> {
    let mut records = Records::new();
    while !body.is_empty() {
        let space = body.iter().take(20).position(|b| *b == b' ').ok_or("a record does not begin with its length")?;
        let digits = &body[..space];
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err("a record does not begin with its length".into());
        }
        let len: usize = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()).ok_or("a length too large")?;
        if len <= space + 1 || len > body.len() {
            return Err(format!("a record claims {len} bytes of {}", body.len()));
        }
        let record = &body[space + 1..len];
        let Some((b'\n', record)) = record.split_last() else {
            return Err("a record does not end where its length says".into());
        };
        let equals = record.iter().position(|b| *b == b'=').ok_or("a record has no `=`")?;
        if equals == 0 {
            return Err("a record has no key".into());
        }
        records.insert(record[..equals].to_vec(), record[equals + 1..].to_vec());
        body = &body[len..];
    }
    Ok(records)
}

/// Local records over global ones. An empty value takes the global one away (POSIX), except for extended attributes,
/// whose value may be empty.
pub fn merge(global: &Records, local: Records) -> Records {
    let mut all = global.clone();
    for (key, value) in local {
        if value.is_empty() && !key.starts_with(XATTR) {
            all.remove(&key);
        } else {
            all.insert(key, value);
        }
    }
    all
}

/// The extended attributes among the records.
pub fn xattrs(records: &Records) -> BTreeMap<Vec<u8>, Vec<u8>> {
    records.iter().filter_map(|(key, value)| Some((decode_name(key.strip_prefix(XATTR)?), value.clone()))).collect()
}

/// GNU tar writes `=` and `%` of an attribute's name as `%3D` and `%25`, since the first `=` ends the key.
fn decode_name(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, tail)) = rest.split_first() {
        (out, rest) = match rest {
            [b'%', b'3', b'D', tail @ ..] => ([out, vec![b'=']].concat(), tail),
            [b'%', b'2', b'5', tail @ ..] => ([out, vec![b'%']].concat(), tail),
            _ => ([out, vec![*first]].concat(), tail),
        };
    }
    out
}

/// A whole number.
pub fn whole(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A time, `[-]SECONDS[.FRACTION]`, rounded down to whole seconds.
pub fn time(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) || seconds.starts_with('+') {
        return None;
    }
    let whole: i64 = seconds.parse().ok()?;
    let below = seconds.starts_with('-') && fraction.bytes().any(|b| b != b'0');
    Some(if below { whole - 1 } else { whole })
}

/// The GNU sparse format that the records name, when they do.
pub fn sparse(records: &Records) -> Option<&'static str> {
    if !records.keys().any(|key| key.starts_with(b"GNU.sparse.")) {
        return None;
    }
    Some(match records.get(&b"GNU.sparse.major"[..]).map(Vec::as_slice) {
        Some(b"1") => "PAX sparse format 1.0",
        _ => "PAX sparse format 0",
    })
}

/// Records that carry an attribute which the tree cannot hold.
pub fn lost(records: &Records) -> impl Iterator<Item = String> {
    records.keys().filter_map(|key| {
        let libarchive = key.strip_prefix(b"LIBARCHIVE.xattr.");
        let lost = match libarchive {
            // bsdtar writes each attribute twice by default; alone, its own form is not read.
            Some(name) => !records.contains_key(&[XATTR, name].concat()),
            None => key.starts_with(b"SCHILY.acl.") || key.as_slice() == b"RHT.security.selinux",
        };
        lost.then(|| String::from_utf8_lossy(key).into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_split_by_length_not_by_line() {
        let body = b"12 path=a=b\n27 SCHILY.xattr.user.x=a\n\0\n";
        let records = parse(body).unwrap();
        assert_eq!(records[&b"path"[..]], b"a=b");
        assert_eq!(xattrs(&records)[&b"user.x"[..]], b"a\n\0");
    }

    #[test]
    fn malformed_records_are_refused() {
        let cases: &[(&[u8], &str)] = &[
            (b"path=a\n", "does not begin with its length"),
            (b"x path=a\n", "does not begin with its length"),
            (b"99 path=a\n", "claims 99 bytes"),
            (b"8 path=a\n", "does not end where"),
            (b"9 pathab\n", "has no `=`"),
            (b"6 =ab\n", "has no key"),
            (b"0 =ab\n", "claims 0 bytes"),
            (b"2 ", "claims 2 bytes"),
            (b"99999999999999999999999 a=b\n", "does not begin with its length"),
        ];
        for (body, want) in cases {
            let got = parse(body).unwrap_err();
            assert!(got.contains(want), "{:?}: {got}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn times_round_down() {
        let cases: &[(&[u8], Option<i64>)] = &[
            (b"1700000000.999", Some(1_700_000_000)),
            (b"5", Some(5)),
            (b"-1.5", Some(-2)),
            (b"-1.0", Some(-1)),
            (b"-0.5", Some(-1)),
            (b"1e3", None),
            (b"", None),
        ];
        for (value, want) in cases {
            assert_eq!(time(value), *want, "{:?}", String::from_utf8_lossy(value));
        }
    }

    #[test]
    fn attribute_names_are_decoded_as_gnu_tar_writes_them() {
        assert_eq!(decode_name(b"user.a%3Db%25c%20"), b"user.a=b%c%20");
    }
}
