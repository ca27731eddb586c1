//! Small trees for tests.

use crate::tree::{Entry, Tree, TreePath};

/// Paths with their contents.
pub type Files<'a> = &'a [(&'a str, &'a str)];

/// A tree of text files (`0644`; `0755` when the text starts with `#!`), links (`-> target`) and empty
/// directories (`/`). Directories on the way are made.
pub fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        put(&mut tree, path, text);
    }
    tree
}

/// Puts one such entry.
pub fn put(tree: &mut Tree, path: &str, text: &str) {
    let path = TreePath::parse(path).unwrap();
    for directory in path.ancestors() {
        if tree.get(&directory).is_none() {
            tree.insert(directory, Entry::directory(0o755));
        }
    }
    let entry = match text.strip_prefix("-> ") {
        Some(target) => Entry::symlink(target),
        None if text == "/" => Entry::directory(0o755),
        None => Entry::file(text.as_bytes(), if text.starts_with("#!") { 0o755 } else { 0o644 }),
    };
    tree.insert(path, entry);
}
