//! Paths inside a tree: bytes, relative to the root, in one normal form.

use std::fmt;

/// A path relative to the root: no leading or trailing `/`, no empty, `.` or `..` element. The root is empty.
///
/// Bytes, not UTF-8: tar names are bytes. [`fmt::Display`] prints it as an absolute path, other bytes escaped.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TreePath(Box<[u8]>);

/// Why a name is not a path inside a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It has a `..` element.
    #[error("has a `..` element")]
    Parent,
    /// It is absolute where a relative name is wanted.
    #[error("is absolute")]
    Absolute,
    /// It holds a NUL byte.
    #[error("holds a NUL byte")]
    Nul,
}

impl TreePath {
    /// The root.
    pub fn root() -> TreePath {
        TreePath::default()
    }

    /// Normalises an absolute path of a declaration, `/etc//x/` or `etc/x`.
    ///
    /// # Errors
    /// On `..` and NUL.
    pub fn parse(path: impl AsRef<[u8]>) -> Result<TreePath, PathError> {
        let mut normal = Vec::with_capacity(path.as_ref().len());
        for element in path.as_ref().split(|b| *b == b'/') {
            match element {
                b"" | b"." => continue,
                b".." => return Err(PathError::Parent),
                _ if element.contains(&0) => return Err(PathError::Nul),
                _ => {}
            }
            if !normal.is_empty() {
                normal.push(b'/');
            }
            normal.extend_from_slice(element);
        }
        Ok(TreePath(normal.into()))
    }

    /// Normalises a name of a tar member: `./etc/x`, `etc/x/`.
    ///
    /// # Errors
    /// On absolute names, `..` and NUL.
    pub fn from_tar_name(name: &[u8]) -> Result<TreePath, PathError> {
        if name.first() == Some(&b'/') {
            return Err(PathError::Absolute);
        }
        TreePath::parse(name)
    }

    /// Wraps bytes that are in normal form already.
    pub(crate) fn from_normal(bytes: Vec<u8>) -> TreePath {
        TreePath(bytes.into())
    }

    /// The bytes, without a leading `/`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// True for the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
    /// The elements, outermost first.
    pub fn elements(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/').filter(|e| !e.is_empty())
    }
    /// The directory that holds it; `None` for the root.
    pub fn parent(&self) -> Option<TreePath> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|b| *b == b'/').unwrap_or(0);
        Some(TreePath(self.0[..end].into()))
    }
    /// The last element; empty for the root.
    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or(&[])
    }
    /// Appends one or more elements in normal form.
    pub fn join(&self, below: impl AsRef<[u8]>) -> TreePath {
        let below = below.as_ref();
        if self.is_root() || below.is_empty() {
            return TreePath([&self.0, below].concat().into());
        }
        TreePath([&self.0, &b"/"[..], below].concat().into())
    }
    /// True when it lies below `directory` (not equal).
    pub fn is_below(&self, directory: &TreePath) -> bool {
        !self.is_root() && self != directory && self.0.starts_with(&directory.prefix())
    }
    /// All directories above it, the root first.
    pub fn ancestors(&self) -> Vec<TreePath> {
        let mut all = Vec::new();
        let mut at = self.parent();
        while let Some(path) = at {
            at = path.parent();
            all.push(path);
        }
        all.reverse();
        all
    }
    /// The bytes that every path below starts with.
    pub(crate) fn prefix(&self) -> Vec<u8> {
        let mut prefix = self.0.to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        prefix
    }
    /// As text with a leading `/`, bytes that are not UTF-8 or are control characters escaped as `\xNN`.
    pub fn display(&self) -> String {
        let mut text = String::from("/");
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() {
                    let mut buffer = [0; 4];
                    for b in c.encode_utf8(&mut buffer).bytes() {
                        text.push_str(&format!("\\x{b:02x}"));
                    }
                } else {
                    text.push(c);
                }
            }
            for b in chunk.invalid() {
                text.push_str(&format!("\\x{b:02x}"));
            }
        }
        text
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display())
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_normalised_or_refused() {
        let cases: &[(&[u8], Result<&str, PathError>)] = &[
            (b"./etc/x", Ok("/etc/x")),
            (b"etc//x/", Ok("/etc/x")),
            (b".", Ok("/")),
            (b"./", Ok("/")),
            (b"/etc/x", Err(PathError::Absolute)),
            (b"etc/../x", Err(PathError::Parent)),
            (b"a\0b", Err(PathError::Nul)),
            (b"a\xffb", Ok("/a\\xffb")),
            (b"a\nb", Ok("/a\\x0ab")),
        ];
        for (name, want) in cases {
            let got = TreePath::from_tar_name(name);
            assert_eq!(got.map(|p| p.display()), want.map(str::to_owned), "{:?}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn relations() {
        let p = TreePath::parse("/a/b/c").unwrap_or_default();
        assert_eq!(p.parent().map(|p| p.display()), Some("/a/b".into()));
        assert_eq!(p.ancestors().iter().map(TreePath::display).collect::<Vec<_>>(), ["/", "/a", "/a/b"]);
        assert_eq!(p.file_name(), b"c");
        assert!(p.is_below(&TreePath::root()));
        assert!(!TreePath::parse("/a/bc").unwrap_or_default().is_below(&TreePath::parse("/a/b").unwrap_or_default()));
        assert_eq!(TreePath::root().join("etc").display(), "/etc");
    }
}
