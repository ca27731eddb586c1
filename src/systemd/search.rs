//! Where the system manager looks for things, and how links in those places are read.

use crate::tree::{Entry, Kind, Tree, TreePath};

/// Directories of unit files in an image, highest precedence first (systemd.unit(5), UNIT FILE LOAD PATH).
///
/// What lies below `/run` is hidden by the tmpfs of a booted system, so those directories are not among them.
/// `/lib` is a link to `usr/lib` on merged systems and is then looked at once.
pub const UNIT_DIRECTORIES: [&str; 6] = [
    "etc/systemd/system.control",
    "etc/systemd/system",
    "etc/systemd/system.attached",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// Directories of preset files, highest precedence first (systemd.preset(5)).
pub const PRESET_DIRECTORIES: [&str; 4] = [
    "etc/systemd/system-preset",
    "usr/local/lib/systemd/system-preset",
    "usr/lib/systemd/system-preset",
    "lib/systemd/system-preset",
];

/// Directories of generators of the environment, highest precedence first (systemd.environment-generator(7)).
pub const ENVIRONMENT_GENERATOR_DIRECTORIES: [&str; 4] = [
    "etc/systemd/system-environment-generators",
    "usr/local/lib/systemd/system-environment-generators",
    "usr/lib/systemd/system-environment-generators",
    "lib/systemd/system-environment-generators",
];

/// Directories of the manager's configuration: each has a `system.conf` and a `system.conf.d` (systemd-system.conf(5)).
pub const MANAGER_DIRECTORIES: [&str; 4] = ["etc/systemd", "usr/local/lib/systemd", "usr/lib/systemd", "lib/systemd"];

/// Directories of tmpfiles.d, highest precedence first (tmpfiles.d(5)).
pub const TMPFILES_DIRECTORIES: [&str; 4] =
    ["etc/tmpfiles.d", "usr/local/lib/tmpfiles.d", "usr/lib/tmpfiles.d", "lib/tmpfiles.d"];

/// Directories of generators, highest precedence first (systemd.generator(7)).
pub const GENERATOR_DIRECTORIES: [&str; 4] = [
    "etc/systemd/system-generators",
    "usr/local/lib/systemd/system-generators",
    "usr/lib/systemd/system-generators",
    "lib/systemd/system-generators",
];

/// The directories of a list that exist, links followed, each once.
pub fn existing(tree: &Tree, names: &[&str]) -> Vec<TreePath> {
    let mut found: Vec<TreePath> = Vec::new();
    for name in names {
        let Some(path) = follow(tree, &path(name)) else { continue };
        if tree.get(&path).is_some_and(Entry::is_directory) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// A literal path of this program.
pub(crate) fn path(literal: &str) -> TreePath {
    TreePath::parse(literal).unwrap_or_default()
}

/// Where a path leads with all links followed, when something is there. `/dev/null` is always there.
pub fn follow(tree: &Tree, path: &TreePath) -> Option<TreePath> {
    let end = tree.resolve_fully(path).ok()?;
    (tree.get(&end).is_some() || end.as_bytes() == b"dev/null").then_some(end)
}

/// True when a path is a mask: it leads to `/dev/null`, another device, or an empty file (`null_or_empty_path`).
pub fn is_null_or_empty(tree: &Tree, path: &TreePath) -> bool {
    let Some(end) = follow(tree, path) else { return false };
    match tree.get(&end).map(|e| &e.kind) {
        None => true,
        Some(Kind::File(data)) => data.len == 0,
        Some(Kind::Character { .. } | Kind::Block { .. }) => true,
        Some(_) => false,
    }
}

/// The path that a symbolic link names: links on the way are followed, the last element is not.
/// `directory` is the link's own, already resolved.
pub fn link_target(tree: &Tree, directory: &TreePath, target: &[u8]) -> Option<TreePath> {
    let mut at = if target.first() == Some(&b'/') { TreePath::root() } else { directory.clone() };
    let elements: Vec<&[u8]> = target.split(|b| *b == b'/').filter(|e| !e.is_empty() && *e != b".").collect();
    for (index, element) in elements.iter().enumerate() {
        if *element == b".." {
            at = at.parent().unwrap_or_default();
            continue;
        }
        at = at.join(element);
        if index + 1 < elements.len() {
            at = tree.resolve_fully(&at).ok()?;
        }
    }
    Some(at)
}

/// True for names that systemd passes over when it lists a directory (`hidden_or_backup_file`).
fn is_passed_over(name: &[u8]) -> bool {
    const SUFFIXES: [&str; 17] = [
        "rpmnew",
        "rpmsave",
        "rpmorig",
        "dpkg-old",
        "dpkg-new",
        "dpkg-tmp",
        "dpkg-dist",
        "dpkg-bak",
        "dpkg-backup",
        "dpkg-remove",
        "ucf-new",
        "ucf-old",
        "ucf-dist",
        "swp",
        "bak",
        "old",
        "new",
    ];
    let suffix = name.iter().rposition(|b| *b == b'.').map_or(&b""[..], |dot| &name[dot + 1..]);
    name.starts_with(b".") || name.ends_with(b"~") || SUFFIXES.iter().any(|s| s.as_bytes() == suffix)
}

/// Files of several directories merged as `conf_files_list` does: of one name the first directory's counts, and the
/// result is sorted by name. Directories among them are left out, and hidden and backup files.
pub fn merged_files(tree: &Tree, directories: &[TreePath], suffix: &str) -> Vec<TreePath> {
    let mut by_name = std::collections::BTreeMap::new();
    for directory in directories {
        for (path, entry) in tree.children(directory) {
            let name = path.file_name();
            if !entry.is_directory() && name.ends_with(suffix.as_bytes()) && !is_passed_over(name) {
                by_name.entry(path.file_name().to_vec()).or_insert_with(|| path.clone());
            }
        }
    }
    by_name.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn masks_and_links() {
        let tree = tree(&[
            ("/lib", "-> usr/lib"),
            ("/usr/lib/systemd/system/a.service", "[Unit]"),
            ("/etc/systemd/system/null.service", "-> /dev/null"),
            ("/etc/systemd/system/relative.service", "-> ../../../dev/null"),
            ("/etc/systemd/system/empty.service", ""),
            ("/etc/systemd/system/a.service", "-> /lib/systemd/system/a.service"),
            ("/etc/systemd/system/gone.service", "-> /nowhere"),
        ]);
        let cases = [("null", true), ("relative", true), ("empty", true), ("a", false), ("gone", false)];
        for (name, want) in cases {
            assert_eq!(is_null_or_empty(&tree, &path(&format!("etc/systemd/system/{name}.service"))), want, "{name}");
        }
        let units: Vec<String> = existing(&tree, &UNIT_DIRECTORIES).iter().map(TreePath::display).collect();
        assert_eq!(units, ["/etc/systemd/system", "/usr/lib/systemd/system"]);
        let directory = path("etc/systemd/system");
        let target = |text: &str| link_target(&tree, &directory, text.as_bytes()).map(|p| p.display());
        assert_eq!(target("/lib/systemd/system/a.service").as_deref(), Some("/usr/lib/systemd/system/a.service"));
        assert_eq!(target("../system/./b.service").as_deref(), Some("/etc/systemd/system/b.service"));
    }
}
