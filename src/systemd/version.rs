//! Which systemd an image has, and what only later ones know.

use crate::tree::Tree;

/// First version that reads `.upholds/` directories, with `UpheldBy=` (NEWS, CHANGES WITH 254).
pub const UPHOLDS_LINKS: u32 = 254;

/// First version whose `C+` of tmpfiles.d copies into a directory that is there (NEWS, CHANGES WITH 254).
pub const COPY_MERGES: u32 = 254;

/// The version, by the name of the library that all of systemd's programs are linked with:
/// `libsystemd-shared-257.so`. `None` where there is none; what systemd knows is then taken for known.
pub fn version(tree: &Tree) -> Option<u32> {
    const LIBRARY: &[u8] = b"libsystemd-shared-";
    tree.entries
        .keys()
        .filter(|path| path.as_bytes().starts_with(b"usr/lib") || path.as_bytes().starts_with(b"lib"))
        .find_map(|path| {
            let rest = path.file_name().strip_prefix(LIBRARY)?.strip_suffix(b".so")?;
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn the_library_has_the_version_in_its_name() {
        let cases = [
            ("/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so", Some(252)),
            ("/usr/lib64/systemd/libsystemd-shared-257.13-1.so", Some(257)),
            ("/usr/share/doc/libsystemd-shared", None),
            ("/opt/libsystemd-shared-1.so", None),
        ];
        for (path, want) in cases {
            assert_eq!(version(&tree(&[(path, "")])), want, "{path}");
        }
    }
}
