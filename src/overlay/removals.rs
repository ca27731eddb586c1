//! Removals: exact paths and globs over the base. `*` does not match `/`; a leading `?` marks what a base may lack.

use globset::GlobBuilder;

use crate::tree::{Tree, TreePath};

/// A removal of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal<'a> {
    /// The glob without the mark.
    pub glob: &'a str,
    /// The base may lack it.
    pub optional: bool,
}

impl<'a> Removal<'a> {
    /// Reads an entry of `remove`.
    pub fn parse(entry: &'a str) -> Removal<'a> {
        match entry.strip_prefix('?') {
            Some(glob) => Removal { glob, optional: true },
            None => Removal { glob: entry, optional: false },
        }
    }

    /// The entries of the base that it names, without what lies below them. Links are followed in the part before the
    /// first glob character, never at the end: a link is removed, not what it leads to.
    ///
    /// # Errors
    /// With the reason, when the glob or its path is none.
    pub fn matches(&self, tree: &Tree) -> Result<Vec<TreePath>, String> {
        if !self.glob.starts_with('/') {
            return Err("is not absolute".into());
        }
        let is_glob = |element: &str| element.contains(['*', '?', '[', '{', '\\']);
        let elements: Vec<&str> = self.glob.split('/').filter(|e| !e.is_empty() && *e != ".").collect();
        let plain = elements.iter().take_while(|e| !is_glob(e)).count();
        let prefix = TreePath::parse(elements[..plain].join("/")).map_err(|e| e.to_string())?;
        if prefix.is_root() && plain == elements.len() {
            return Err("is the root".into());
        }
        if plain == elements.len() {
            let path = tree.resolve(&prefix).map_err(|e| e.to_string())?;
            return Ok(tree.get(&path).map(|_| path).into_iter().collect());
        }
        let directory = tree.resolve_fully(&prefix).map_err(|e| e.to_string())?;
        let rest = elements[plain..].join("/");
        let glob = GlobBuilder::new(&rest).literal_separator(true).build().map_err(|e| e.kind().to_string())?;
        let matcher = glob.compile_matcher();
        let skip = directory.prefix().len();
        let below = tree.below(&directory).filter(|(path, _)| {
            use std::os::unix::ffi::OsStrExt;
            matcher.is_match(std::ffi::OsStr::from_bytes(&path.as_bytes()[skip..]))
        });
        Ok(below.map(|(path, _)| path.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Entry;

    #[test]
    fn what_is_removed() {
        let mut tree = Tree::default();
        for path in
            ["etc/ssh/ssh_host_a", "etc/ssh/ssh_host_b", "etc/ssh/sub/ssh_host_c", "usr/lib/x/one", "usr/lib/x/two"]
        {
            let path = TreePath::parse(path).unwrap();
            for directory in path.ancestors() {
                tree.insert(directory, Entry::directory(0o755));
            }
            tree.insert(path, Entry::file(*b"", 0o644));
        }
        tree.insert(TreePath::parse("lib").unwrap(), Entry::symlink("usr/lib"));
        let cases = [
            ("/etc/ssh/ssh_host_*", "/etc/ssh/ssh_host_a /etc/ssh/ssh_host_b"),
            ("/etc/ssh/**/ssh_host_c", "/etc/ssh/sub/ssh_host_c"),
            ("/lib/x/{one,two}", "/usr/lib/x/one /usr/lib/x/two"),
            ("/lib/x", "/usr/lib/x"),
            ("/lib", "/lib"),
            ("/etc/none", ""),
            ("/etc/none*", ""),
            ("etc/ssh", "is not absolute"),
            ("/etc/../x", "has a `..` element"),
            ("/etc/ssh/ssh_host_a/x", "/etc/ssh/ssh_host_a is a file, not a directory"),
            ("/", "is the root"),
        ];
        for (glob, want) in cases {
            let got = Removal::parse(glob).matches(&tree);
            let got = got.map_or_else(|e| e, |all| all.iter().map(TreePath::display).collect::<Vec<_>>().join(" "));
            assert_eq!(got, want, "{glob}");
        }
        assert_eq!(Removal::parse("?/a"), Removal { glob: "/a", optional: true });
    }
}
