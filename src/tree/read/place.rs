//! Where a member goes in the tree: its path, what lies above it, and what was there.

use super::Scanned;
use super::defect::{DefectKind, printable};
use crate::tree::path::PathError;
use crate::tree::{Entry, Kind, Tree, TreePath};

/// Longest name of a file in bytes (NAME_MAX) and longest path that a system call takes (PATH_MAX less its NUL).
const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4095;

/// Turns a member's name into a path.
pub fn path(name: &[u8]) -> Result<TreePath, DefectKind> {
    if name.is_empty() {
        return Err(DefectKind::Name("is empty"));
    }
    let path = TreePath::from_tar_name(name).map_err(|e| match e {
        PathError::Absolute => DefectKind::Absolute,
        PathError::Parent => DefectKind::Parent,
        PathError::Nul => DefectKind::Name("holds a NUL byte"),
    })?;
    if path.as_bytes().len() > PATH_MAX {
        return Err(DefectKind::Name("is longer than 4095 bytes"));
    }
    if path.elements().any(|e| e.len() > NAME_MAX) {
        return Err(DefectKind::Name("has an element longer than 255 bytes"));
    }
    Ok(path)
}

/// Puts an entry. Every ancestor of an entry of the tree is a directory, before and after.
pub fn put(scanned: &mut Scanned, path: &TreePath, entry: Entry) -> Result<(), DefectKind> {
    let tree = &mut scanned.tree;
    let ancestors = path.ancestors();
    // From the innermost: mostly it is there, and then all above it are.
    for (i, above) in ancestors.iter().enumerate().rev() {
        match tree.get(above).map(|e| &e.kind) {
            Some(Kind::Directory) => {
                for missing in &ancestors[i + 1..] {
                    tree.insert(missing.clone(), Entry::directory(0o755));
                    scanned.implied.insert(missing.clone());
                }
                break;
            }
            Some(Kind::Symlink(target)) => return Err(below_symlink(tree, above, target, path)),
            Some(_) => return Err(DefectKind::BelowFile(above.clone(), tree.get(above).map_or("", Entry::kind_name))),
            None => {}
        }
    }
    match tree.get(path) {
        None => {
            tree.insert(path.clone(), entry);
            Ok(())
        }
        Some(old) if old.is_directory() && !entry.is_directory() => {
            Err(DefectKind::ReplacesDirectory(entry.kind_name()))
        }
        Some(_) => {
            let implied = scanned.implied.remove(path);
            tree.insert(path.clone(), entry);
            if implied { Ok(()) } else { Err(DefectKind::Duplicate) }
        }
    }
}

fn below_symlink(tree: &Tree, link: &TreePath, target: &[u8], path: &TreePath) -> DefectKind {
    let (leads, leaves) = follow(tree, path);
    DefectKind::BelowSymlink { link: link.clone(), target: printable(target), leads, leaves }
}

/// Where a reader that follows links on the way would write, seen from outside of the root: an absolute target is one
/// of the machine that unpacks, and `..` goes above the root.
fn follow(tree: &Tree, path: &TreePath) -> (String, bool) {
    let mut todo: Vec<Vec<u8>> = path.elements().map(<[u8]>::to_vec).collect();
    todo.reverse();
    let mut at = TreePath::root();
    let mut above: Option<String> = None;
    let mut links = 0;
    while let Some(element) = todo.pop() {
        if let Some(out) = &mut above {
            out.push('/');
            out.push_str(&printable(&element));
            continue;
        }
        match element.as_slice() {
            b"" | b"." => continue,
            b".." => match at.parent() {
                Some(parent) => at = parent,
                None => above = Some("..".into()),
            },
            _ => match tree.get(&at.join(&element)).map(|e| &e.kind) {
                Some(Kind::Symlink(target)) if !todo.is_empty() && links < 40 => {
                    links += 1;
                    todo.extend(target.split(|b| *b == b'/').rev().map(<[u8]>::to_vec));
                    if target.first() == Some(&b'/') {
                        above = Some(String::new());
                        todo.pop();
                    }
                }
                _ => at = at.join(&element),
            },
        }
    }
    match above {
        Some(out) => (out, true),
        None => (at.display(), false),
    }
}
