//! In what two entries of one path differ.

use super::{Entry, Kind};

/// One difference between two entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// File, directory, link, …; nothing is said of the content then.
    Kind,
    /// Content of a regular file, by SHA-256.
    Content,
    /// Target of a symbolic link, as it is written.
    Target,
    /// Numbers of a device.
    Device,
    /// The 12 mode bits.
    Mode,
    /// Numeric user or group.
    Owner,
    /// Extended attributes.
    Attributes,
    /// Time of the last change.
    Time,
}

/// All differences of two entries, in the order of [`Change`]. Which names share an inode is not compared.
pub fn changes(a: &Entry, b: &Entry) -> Vec<Change> {
    let content = match (&a.kind, &b.kind) {
        (Kind::File(a), Kind::File(b)) => (a.sha256 != b.sha256).then_some(Change::Content),
        (Kind::Symlink(a), Kind::Symlink(b)) => (a != b).then_some(Change::Target),
        (a, b) if std::mem::discriminant(a) != std::mem::discriminant(b) => Some(Change::Kind),
        (a, b) => (a != b).then_some(Change::Device),
    };
    let others = [
        (a.mode != b.mode, Change::Mode),
        ((a.uid, a.gid) != (b.uid, b.gid), Change::Owner),
        (a.xattrs != b.xattrs, Change::Attributes),
        (a.mtime != b.mtime, Change::Time),
    ];
    content.into_iter().chain(others.into_iter().filter(|(differs, _)| *differs).map(|(_, change)| change)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_seen() {
        let file = || Entry::file(*b"x", 0o644);
        let device = |minor| Entry::new(Kind::Character { major: 1, minor }, 0o644);
        let with_attribute = || {
            let mut entry = file();
            entry.xattrs.insert(b"user.a".to_vec(), b"1".to_vec());
            entry
        };
        let table: &[(Entry, Entry, &[Change])] = &[
            (file(), file(), &[]),
            (file(), Entry::file(*b"y", 0o644), &[Change::Content]),
            (file(), Entry::file(*b"x", 0o600), &[Change::Mode]),
            (file(), Entry::file(*b"x", 0o4644), &[Change::Mode]),
            (file(), file().owned(1, 0), &[Change::Owner]),
            (file(), file().owned(0, 1), &[Change::Owner]),
            (file(), file().dated(1), &[Change::Time]),
            (file(), with_attribute(), &[Change::Attributes]),
            (file(), Entry::directory(0o644), &[Change::Kind]),
            (Entry::symlink("a"), Entry::symlink("b"), &[Change::Target]),
            (device(3), device(5), &[Change::Device]),
            (device(3), Entry::new(Kind::Block { major: 1, minor: 3 }, 0o644), &[Change::Kind]),
            (file(), Entry::symlink("a").owned(1, 1), &[Change::Kind, Change::Mode, Change::Owner]),
        ];
        for (a, b, want) in table {
            assert_eq!(changes(a, b), *want, "{a:?} {b:?}");
        }
    }
}
