//! What `systemd-tmpfiles` makes of an image at boot (tmpfiles.d(5)): links, files, copies and removals that last, so
//! that the boot after the next one sees another tree.

use std::collections::BTreeSet;

use super::glob;
use super::search::{self, existing, follow, merged_files};
use super::unit_file::{lines, words};
use super::version;
use crate::tree::{Entry, Kind, Tree, TreePath};

/// Where `L` and `C` take from when a line names nothing.
const FACTORY: &str = "/usr/share/factory";

/// File systems that a boot mounts afresh: what is made there is gone at the next boot.
const VOLATILE: [&str; 4] = ["run", "dev", "proc", "sys"];

/// A line that changed the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it made or removed.
    pub path: TreePath,
    /// `file:line: text`.
    pub place: String,
}

#[derive(Debug)]
struct Line {
    action: char,
    modifiers: String,
    path: String,
    mode: String,
    argument: String,
    place: String,
}

/// The tree after a boot has applied tmpfiles.d, with the lines that changed it.
pub fn applied(tree: &Tree) -> (Tree, Vec<Change>) {
    let mut after = tree.clone();
    let mut changes = Vec::new();
    let lines = read(tree);
    // Removals go first (`systemd-tmpfiles --create --remove --boot`).
    for line in lines.iter().filter(|line| "rRD".contains(line.action)) {
        remove(&mut after, line, &mut changes);
    }
    let mut seen = BTreeSet::new();
    for line in lines.iter().filter(|line| !"rRD".contains(line.action)) {
        // Of two lines that make one path, the first counts.
        let makes = "LfFC".contains(line.action);
        if !makes || seen.insert(&line.path) {
            create(&mut after, line, &mut changes);
        }
    }
    (after, changes)
}

/// All lines, in the order of the files' names.
fn read(tree: &Tree) -> Vec<Line> {
    let mut all = Vec::new();
    for path in merged_files(tree, &existing(tree, &search::TMPFILES_DIRECTORIES), ".conf") {
        let Some(bytes) = follow(tree, &path).and_then(|end| tree.content(&end).ok()) else { continue };
        for (number, raw) in lines(&bytes) {
            let text = String::from_utf8_lossy(raw).trim().to_owned();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            all.extend(parse(&text, format!("{path}:{number}: {text}")));
        }
    }
    all
}

fn parse(text: &str, place: String) -> Option<Line> {
    // Six fields, and all of the rest is the argument.
    let mut rest = text;
    let mut fields = Vec::new();
    for _ in 0..6 {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let field = words(&rest[..end]).into_iter().next().unwrap_or_default();
        fields.push(if field == "-" { String::new() } else { field });
        rest = &rest[end..];
    }
    let argument = match rest.trim() {
        "-" => String::new(),
        argument => argument.replace("%%", "%"),
    };
    let mut kind = fields[0].chars();
    let action = kind.next()?;
    let path = fields[1].replace("%%", "%");
    path.starts_with('/').then(|| Line {
        action,
        modifiers: kind.collect(),
        path,
        mode: fields[2].clone(),
        argument,
        place,
    })
}

/// The place of a line's path: links on the way followed. `None` where nothing that lasts is made.
fn target(tree: &Tree, path: &str) -> Option<TreePath> {
    let path = tree.resolve(&TreePath::parse(path).ok()?).ok()?;
    let volatile = path.elements().next().is_none_or(|first| VOLATILE.iter().any(|v| v.as_bytes() == first));
    (!volatile).then_some(path)
}

fn remove(tree: &mut Tree, line: &Line, changes: &mut Vec<Change>) {
    let pattern = line.path.trim_start_matches('/').trim_end_matches('/');
    let matched: Vec<TreePath> = match pattern.contains(['*', '?', '[']) {
        // Globs of paths: element by element.
        true => tree.entries.keys().filter(|path| matches(pattern, &path.display())).cloned().collect(),
        false => target(tree, &line.path).into_iter().collect(),
    };
    let lasting: Vec<TreePath> = matched.into_iter().filter(|path| target(tree, &path.display()).is_some()).collect();
    for path in lasting {
        let below: Vec<TreePath> = tree.below(&path).map(|(p, _)| p.clone()).collect();
        let gone = match line.action {
            'R' => tree.remove(&path),
            'D' => below.iter().flat_map(|p| tree.remove(p)).collect(),
            _ if below.is_empty() => tree.remove(&path),
            _ => Vec::new(),
        };
        changes.extend(gone.into_iter().map(|path| Change { path, place: line.place.clone() }));
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<&str>, Vec<&str>) =
        (pattern.split('/').collect(), path.trim_start_matches('/').split('/').collect());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(pattern, name)| glob::matches(pattern, name))
}

fn create(tree: &mut Tree, line: &Line, changes: &mut Vec<Change>) {
    let Some(path) = target(tree, &line.path) else { return };
    // The argument of `^` is the name of a credential, which an image does not have.
    if line.modifiers.contains('^') {
        return;
    }
    let force = line.modifiers.contains('+');
    let there = tree.get(&path).is_some();
    let source = || match line.argument.is_empty() {
        true => format!("{FACTORY}{}", line.path),
        false => line.argument.clone(),
    };
    let entry = match line.action {
        'L' if !there || force => Entry::symlink(source()),
        'f' if !there || force => Entry::file(unescape(&line.argument), 0o644),
        'F' => Entry::file(unescape(&line.argument), 0o644),
        'w' if there => match tree.content(&path) {
            Ok(old) => {
                let new = unescape(&line.argument);
                Entry::file(if force { [old, new].concat() } else { new }, 0o644)
            }
            Err(_) => return,
        },
        'C' => return copy(tree, &source(), &path, force, line, changes),
        'z' | 'Z' => return mode(tree, &path, line, changes),
        _ => return,
    };
    put(tree, path, entry, line, changes);
}

fn put(tree: &mut Tree, path: TreePath, entry: Entry, line: &Line, changes: &mut Vec<Change>) {
    for directory in path.ancestors() {
        if tree.get(&directory).is_none() {
            tree.insert(directory, Entry::directory(0o755));
        }
    }
    tree.insert(path.clone(), entry);
    changes.push(Change { path, place: line.place.clone() });
}

fn copy(tree: &mut Tree, source: &str, path: &TreePath, force: bool, line: &Line, changes: &mut Vec<Change>) {
    let force = force && version::version(tree).is_none_or(|version| version >= version::COPY_MERGES);
    let filled = tree.get(path).is_some_and(|e| !e.is_directory()) || tree.children(path).next().is_some();
    let Some(from) = TreePath::parse(source).ok().and_then(|p| follow(tree, &p)) else { return };
    if filled && !force {
        return;
    }
    let length = from.prefix().len();
    let mut all: Vec<(TreePath, Entry)> = tree
        .below(&from)
        .filter_map(|(p, e)| Some((TreePath::parse(&p.as_bytes()[length..]).ok()?, e.clone())))
        .map(|(below, entry)| (TreePath::parse(format!("{path}/{below}")).unwrap_or_default(), entry))
        .collect();
    if let Some(entry) = tree.get(&from).filter(|e| !e.is_directory()) {
        all.push((path.clone(), entry.clone()));
    }
    for (at, entry) in all {
        if tree.get(&at).is_none() {
            put(tree, at, entry, line, changes);
        }
    }
}

/// A mode may make a script or generator executable.
fn mode(tree: &mut Tree, path: &TreePath, line: &Line, changes: &mut Vec<Change>) {
    let Ok(mode) = u16::from_str_radix(line.mode.trim_start_matches(['~', ':']), 8) else { return };
    let below = tree.below(path).map(|(p, _)| p.clone()).filter(|_| line.action == 'Z');
    for path in std::iter::once(path.clone()).chain(below).collect::<Vec<_>>() {
        if let Some(entry) = tree.entries.get_mut(&path).filter(|e| matches!(e.kind, Kind::File(_)) && e.mode != mode) {
            entry.mode = mode;
            changes.push(Change { path, place: line.place.clone() });
        }
    }
}

/// `\n`, `\t`, `\\`, `\xNN` and their like.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let Some((escaped, tail)) = rest.split_first() else { break };
        rest = tail;
        match escaped {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b's' => out.push(b' '),
            b'x' => {
                let hex = tail.get(..2).and_then(|t| std::str::from_utf8(t).ok());
                out.extend(hex.and_then(|h| u8::from_str_radix(h, 16).ok()));
                rest = tail.get(2..).unwrap_or_default();
            }
            other => out.push(*other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn what_lines_make() {
        let base: &[(&str, &str)] = &[
            ("/etc/there", "old"),
            ("/etc/d/a", "x"),
            ("/etc/d/b", "y"),
            ("/usr/share/src/one", "1"),
            ("/usr/share/src/sub/two", "2"),
            ("/usr/share/factory/etc/made", "factory"),
            ("/etc/link", "-> /opt"),
            ("/opt", "/"),
        ];
        let table: &[(&str, &[&str])] = &[
            ("L /etc/l - - - - /x", &["/etc/l -> /x"]),
            ("L /etc/made", &["/etc/made -> /usr/share/factory/etc/made"]),
            ("L /etc/there - - - - /x", &[]),
            ("L+ /etc/there - - - - /x", &["/etc/there -> /x"]),
            ("L /etc/link/l - - - - /x", &["/opt/l -> /x"]),
            (r"f /etc/f 0644 - - - [Unit]\nWants=x", &["/etc/f [Unit]\nWants=x"]),
            ("f /etc/there - - - - new", &[]),
            ("w /etc/there - - - - new", &["/etc/there new"]),
            ("w+ /etc/there - - - - new", &["/etc/there oldnew"]),
            ("w /etc/nothing - - - - new", &[]),
            ("C /etc/c - - - - /usr/share/src", &["/etc/c/one 1", "/etc/c/sub/two 2"]),
            ("C /etc/d - - - - /usr/share/src", &[]),
            ("C+ /etc/d - - - - /usr/share/src", &["/etc/d/one 1", "/etc/d/sub/two 2"]),
            ("r! /etc/there", &["- /etc/there"]),
            ("r /etc/d", &[]),
            ("r /etc/d/*", &["- /etc/d/a", "- /etc/d/b"]),
            ("R /etc/d", &["- /etc/d", "- /etc/d/a", "- /etc/d/b"]),
            ("z /etc/there 0755", &["/etc/there old"]),
            ("L /run/l - - - - /x", &[]),
            ("d /etc/new 0755", &[]),
            ("f^ /etc/f - - - - some.credential", &[]),
            ("# L /etc/l - - - - /x", &[]),
            ("L etc/l - - - - /x", &[]),
        ];
        for (line, want) in table {
            let mut files = base.to_vec();
            files.push(("/etc/tmpfiles.d/x.conf", line));
            let (after, changes) = applied(&tree(&files));
            let got: Vec<String> = changes
                .iter()
                .filter(|change| !after.get(&change.path).is_some_and(Entry::is_directory))
                .map(|Change { path, .. }| match after.get(path).map(|e| &e.kind) {
                    None => format!("- {path}"),
                    Some(Kind::Symlink(to)) => format!("{path} -> {}", String::from_utf8_lossy(to)),
                    Some(_) => format!("{path} {}", String::from_utf8_lossy(&after.content(path).unwrap())),
                })
                .collect();
            assert_eq!(got, *want, "{line}");
        }
    }
}
