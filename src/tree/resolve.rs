//! Paths resolve inside the tree: links are followed on all but the last element, as if running in that
//! root, and never leave it (Ignition's rule: docs/operator-notes.md of coreos/ignition).

use std::collections::VecDeque;

use super::{Kind, Tree, TreePath};

/// Linux follows at most 40 links in one look-up (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Why a path does not resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// An element on the way is neither a directory nor a link.
    #[error("{0} is a {1}, not a directory")]
    NotADirectory(TreePath, &'static str),
    /// More than 40 links.
    #[error("too many levels of symbolic links at {0}")]
    Loop(TreePath),
}

impl Tree {
    /// Follows links on all but the last element. Missing directories resolve to themselves; `..` in link
    /// targets stops at the root, as chroot(2) does.
    ///
    /// # Errors
    /// When an element on the way is a file, or links loop.
    pub fn resolve(&self, path: &TreePath) -> Result<TreePath, ResolveError> {
        self.walk(path, false)
    }

    /// Follows links on all elements, the last too.
    ///
    /// # Errors
    /// As [`Tree::resolve`].
    pub fn resolve_fully(&self, path: &TreePath) -> Result<TreePath, ResolveError> {
        self.walk(path, true)
    }

    fn walk(&self, path: &TreePath, follow_last: bool) -> Result<TreePath, ResolveError> {
        let mut todo: VecDeque<Vec<u8>> = path.elements().map(<[u8]>::to_vec).collect();
        let mut at = TreePath::root();
        let mut links = 0;
        while let Some(element) = todo.pop_front() {
            match element.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    at = at.parent().unwrap_or_default();
                    continue;
                }
                _ => {}
            }
            let next = at.join(&element);
            let last = todo.is_empty();
            match self.get(&next).map(|e| (&e.kind, e.kind_name())) {
                Some((Kind::Symlink(target), _)) if !last || follow_last => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(ResolveError::Loop(next));
                    }
                    if target.first() == Some(&b'/') {
                        at = TreePath::root();
                    }
                    for element in target.split(|b| *b == b'/').rev() {
                        todo.push_front(element.to_vec());
                    }
                }
                Some((Kind::Directory, _)) | None => at = next,
                Some((_, name)) if !last => return Err(ResolveError::NotADirectory(next, name)),
                Some(_) => at = next,
            }
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Entry;

    fn tree(entries: &[(&str, Option<&str>)]) -> Tree {
        let mut tree = Tree::default();
        for (path, link) in entries {
            let entry = match link {
                None => Entry::directory(0o755),
                Some("FILE") => Entry::file(*b"", 0o644),
                Some(target) => Entry::symlink(*target),
            };
            tree.insert(TreePath::parse(path).unwrap_or_default(), entry);
        }
        tree
    }

    #[test]
    fn links_resolve_inside_the_root() {
        let tree = tree(&[
            ("/usr/lib", None),
            ("/lib", Some("usr/lib")),
            ("/abs", Some("/usr/lib")),
            ("/out", Some("../../../usr")),
            ("/a", Some("b")),
            ("/b", Some("a")),
            ("/file", Some("FILE")),
            ("/usr/lib/last", Some("/etc")),
        ]);
        let cases = [
            ("/lib/systemd/system/x", "/usr/lib/systemd/system/x"),
            ("/abs/x", "/usr/lib/x"),
            ("/out/lib/x", "/usr/lib/x"),
            ("/lib/last", "/usr/lib/last"),
            ("/lib", "/lib"),
            ("/new/dir/x", "/new/dir/x"),
            ("/a/x", "too many levels of symbolic links at /a"),
            ("/file/x", "/file is a file, not a directory"),
        ];
        for (path, want) in cases {
            let got = tree.resolve(&TreePath::parse(path).unwrap_or_default());
            assert_eq!(got.map_or_else(|e| e.to_string(), |p| p.display()), want, "{path}");
        }
        let fully = tree.resolve_fully(&TreePath::parse("/lib/last").unwrap_or_default());
        assert_eq!(fully.map(|p| p.display()), Ok("/etc".into()));
    }
}
