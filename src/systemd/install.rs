//! `[Install]`: the links that enabling a unit makes, and what `systemctl preset-all` does on a first boot.

use std::collections::BTreeSet;

use super::name::UnitName;
use super::preset::Presets;
use super::search::path;
use super::unit_file::words;
use super::units::{Load, Unit, UnitSet};
use crate::tree::{Entry, Tree, TreePath};

/// Where enabling makes its links.
const LINKS: &str = "etc/systemd/system";

/// True when enabling the unit does something: it names a unit that wants it, an alias, or others to enable.
pub fn is_installable(unit: &Unit) -> bool {
    let keys = ["WantedBy", "RequiredBy", "UpheldBy", "Alias", "Also"];
    keys.iter().any(|key| !unit.values("Install", key).is_empty())
}

/// Units that enabling this one enables too, whatever presets say of them (systemd.unit(5) `Also=`).
pub fn also(unit: &Unit) -> Vec<(String, UnitName)> {
    let mut found = Vec::new();
    for (path, assignment) in unit.values("Install", "Also") {
        for word in words(&assignment.value) {
            let name = unit.id.expand(&word).ok().and_then(|n| UnitName::parse(&n));
            found.extend(name.map(|n| (format!("{path}:{}: Also={}", assignment.line, assignment.value), n)));
        }
    }
    found
}

/// The unit files of an image that can be enabled: no aliases, no masks.
pub fn installable(set: &UnitSet) -> Vec<Unit> {
    let own = set.all_names().filter(|name| set.canonical(name) == **name);
    let files = own.map(|name| set.load(name)).filter(|unit| matches!(unit.load, Load::Loaded | Load::Refused(_)));
    files.filter(is_installable).collect()
}

/// The tree after a first boot's preset-all: every unit is enabled that presets do not disable, with its `Also=`.
/// PID 1 only enables there, it removes no link (systemd 257 without `-Dfirst-boot-full-preset`).
pub fn preset_all(set: &UnitSet, presets: &Presets) -> Tree {
    let mut tree = set.tree.clone();
    let mut done = BTreeSet::new();
    for unit in installable(set) {
        if presets.of(&unit.id).enables() {
            enable(set, &unit, &mut tree, &mut done);
        }
    }
    tree
}

fn enable(set: &UnitSet, unit: &Unit, tree: &mut Tree, done: &mut BTreeSet<UnitName>) {
    if !done.insert(unit.id.clone()) {
        return;
    }
    let target = unit.fragment.as_ref().map(TreePath::display).unwrap_or_default();
    // A template is enabled by its default instance, and without one not at all.
    let instance = || unit.last("Install", "DefaultInstance").and_then(|i| unit.id.instantiate(i));
    let name = if unit.id.is_template() { instance() } else { Some(unit.id.clone()) };
    if let Some(name) = name {
        for (key, suffix) in [("WantedBy", "wants"), ("RequiredBy", "requires"), ("UpheldBy", "upholds")] {
            for (_, assignment) in unit.values("Install", key) {
                for word in words(&assignment.value).iter().filter_map(|w| name.expand(w).ok()) {
                    link(tree, &path(LINKS).join(format!("{word}.{suffix}")).join(name.as_str()), &target);
                }
            }
        }
    }
    for (_, assignment) in unit.values("Install", "Alias") {
        for word in words(&assignment.value).iter().filter_map(|w| unit.id.expand(w).ok()) {
            link(tree, &path(LINKS).join(&word), &target);
        }
    }
    for (_, other) in also(unit) {
        let other = set.load(&other);
        if matches!(other.load, Load::Loaded | Load::Refused(_)) {
            enable(set, &other, tree, done);
        }
    }
}

fn link(tree: &mut Tree, at: &TreePath, target: &str) {
    if tree.get(at).is_some() {
        return;
    }
    for directory in at.ancestors() {
        if tree.get(&directory).is_none() {
            tree.insert(directory, Entry::directory(0o755));
        }
    }
    tree.insert(at.clone(), Entry::symlink(target));
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn what_a_first_boot_enables() {
        let lib = "/usr/lib/systemd/system";
        let unit = |name: &str| format!("{lib}/{name}");
        let tree = tree(&[
            (&unit("a.service"), "[Install]\nWantedBy=m.target\nAlias=a2.service"),
            (&unit("b.service"), "[Install]\nRequiredBy=m.target"),
            (&unit("c.service"), "[Install]\nWantedBy=m.target\nAlso=d.service"),
            (&unit("d.service"), "[Install]\nWantedBy=m.target"),
            (&unit("e.service"), "[Service]\nExecStart=/e"),
            (&unit("f@.service"), "[Install]\nWantedBy=m.target\nDefaultInstance=x"),
            (&unit("g@.service"), "[Install]\nWantedBy=m.target"),
            ("/etc/systemd/system/h.service", "-> /dev/null"),
            (&unit("h.service"), "[Install]\nWantedBy=m.target"),
            ("/etc/systemd/system-preset/1.preset", "disable b.service\ndisable d.service"),
        ]);
        let set = UnitSet::new(&tree);
        let after = preset_all(&set, &Presets::new(&tree));
        let links: Vec<String> =
            after.below(&path(LINKS)).filter(|(_, e)| !e.is_directory()).map(|(p, _)| p.display()).collect();
        let etc = "/etc/systemd/system";
        let want = [
            "a2.service",
            "h.service",
            "m.target.wants/a.service",
            "m.target.wants/c.service",
            "m.target.wants/d.service",
            "m.target.wants/f@x.service",
        ];
        assert_eq!(links, want.map(|name| format!("{etc}/{name}")));
    }
}
