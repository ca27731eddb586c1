//! SysV scripts and the links that start them, as `systemd-sysv-generator` reads them.
//!
//! A script becomes a unit only where no native unit of that name or alias is in the unit directories, masked or
//! not. An S link counts by its own name; what it points to does not matter (`sysv-generator.c`,
//! `set_dependencies_from_rcnd`).

use std::collections::BTreeMap;

use super::name::UnitName;
use super::search::{follow, path};
use crate::tree::{Kind, Tree, TreePath};

/// Link directories and the target that wants what has an S link there.
pub const RUNLEVELS: [(&str, &str); 6] = [
    ("etc/rcS.d", "sysinit.target"),
    ("etc/rc1.d", "rescue.target"),
    ("etc/rc2.d", "multi-user.target"),
    ("etc/rc3.d", "multi-user.target"),
    ("etc/rc4.d", "multi-user.target"),
    ("etc/rc5.d", "graphical.target"),
];

/// An executable script of `/etc/init.d`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Where it is.
    pub path: TreePath,
}

/// An S link of a runlevel directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartLink {
    /// The link.
    pub path: TreePath,
    /// The unit that it is about.
    pub unit: UnitName,
    /// The target that would want it.
    pub target: &'static str,
}

/// The unit that the generator makes of a script's name; `.sh` is dropped.
fn unit_of(script: &str) -> Option<UnitName> {
    UnitName::parse(&format!("{}.service", script.strip_suffix(".sh").unwrap_or(script)))
}

/// The executable scripts by the unit that they would become.
pub fn scripts(tree: &Tree) -> BTreeMap<UnitName, Script> {
    let mut found = BTreeMap::new();
    let Some(directory) = follow(tree, &path("etc/init.d")) else { return found };
    for (at, _) in tree.children(&directory) {
        let entry = follow(tree, at).and_then(|end| tree.get(&end));
        let executable = entry.is_some_and(|e| matches!(e.kind, Kind::File(_)) && e.mode & 0o100 != 0);
        let unit = std::str::from_utf8(at.file_name()).ok().and_then(unit_of);
        if let (true, Some(unit)) = (executable, unit) {
            found.entry(unit).or_insert(Script { path: at.clone() });
        }
    }
    found
}

/// All S links, in path order of their directories.
pub fn start_links(tree: &Tree) -> Vec<StartLink> {
    let mut found = Vec::new();
    for (directory, target) in RUNLEVELS {
        let Some(directory) = follow(tree, &path(directory)) else { continue };
        for (at, _) in tree.children(&directory) {
            let Ok(name) = std::str::from_utf8(at.file_name()) else { continue };
            let mut characters = name.chars();
            let is_start = characters.next() == Some('S')
                && characters.next().is_some_and(|c| c.is_ascii_digit())
                && characters.next().is_some_and(|c| c.is_ascii_digit());
            if let (true, Some(unit)) = (is_start, unit_of(characters.as_str())) {
                found.push(StartLink { path: at.clone(), unit, target });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn scripts_and_links() {
        let tree = tree(&[
            ("/etc/init.d/etcd", "#!/bin/sh"),
            ("/etc/init.d/boot.sh", "#!/bin/sh"),
            ("/etc/init.d/README", "not executable"),
            ("/etc/rc2.d/S01etcd", "-> ../init.d/etcd"),
            ("/etc/rc2.d/K01dbus", "-> ../init.d/dbus"),
            ("/etc/rc5.d/S99boot.sh", "-> ../init.d/other"),
            ("/etc/rc5.d/Sxxetcd", "-> ../init.d/etcd"),
            ("/etc/rc6.d/S01etcd", "-> ../init.d/etcd"),
        ]);
        let names: Vec<String> = scripts(&tree).keys().map(UnitName::to_string).collect();
        assert_eq!(names, ["boot.service", "etcd.service"]);
        let links: Vec<String> =
            start_links(&tree).iter().map(|l| format!("{} {} {}", l.path, l.unit, l.target)).collect();
        assert_eq!(
            links,
            [
                "/etc/rc2.d/S01etcd etcd.service multi-user.target",
                "/etc/rc5.d/S99boot.sh boot.service graphical.target"
            ]
        );
    }
}
