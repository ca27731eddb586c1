//! Conditions that can never hold in an image: the unit is skipped at each boot, whatever else it says.

use crate::systemd::glob;
use crate::systemd::search::follow;
use crate::systemd::units::Unit;
use crate::tree::{Kind, Tree, TreePath};

/// Where only the image's own programs and data are: nothing is there at boot that is not in the image (file-hierarchy(7),
/// "Vendor-supplied operating system resources"). `/lib/modules` is one of them: a container has its host's kernel and no
/// modules of it.
const VENDOR: [&str; 5] = ["/usr/", "/lib/", "/bin/", "/sbin/", "/lib64/"];

/// Conditions on paths, each with what it wants there (systemd.unit(5)).
const KEYS: [(&str, Wants); 6] = [
    ("ConditionPathExists", |_, _, _| true),
    ("ConditionPathExistsGlob", |_, _, _| true),
    ("ConditionPathIsDirectory", |_, _, kind| matches!(kind, Kind::Directory)),
    ("ConditionDirectoryNotEmpty", |tree, path, _| tree.below(path).next().is_some()),
    ("ConditionFileNotEmpty", |_, _, kind| matches!(kind, Kind::File(data) if data.len > 0)),
    ("ConditionFileIsExecutable", |tree, path, kind| {
        matches!(kind, Kind::File(_)) && tree.get(path).is_some_and(|entry| entry.mode & 0o111 != 0)
    }),
];

type Wants = fn(&Tree, &TreePath, &Kind) -> bool;

/// True when a condition of the unit wants something of the image that the image does not have. Conditions that trigger
/// (`|`) or are negated do not count: others may make up for them.
pub(super) fn never_holds(tree: &Tree, unit: &Unit) -> bool {
    KEYS.iter().any(|(key, wants)| {
        unit.values("Unit", key).iter().any(|(_, assignment)| {
            let value = assignment.value.as_str();
            // The kernel's release (`%v`) is not known before the boot: any will do.
            let Ok(path) = unit.id.expand(&value.replace("%v", "*")) else { return false };
            VENDOR.iter().any(|directory| path.starts_with(directory))
                && !found(tree, &path).iter().any(|at| tree.get(at).is_some_and(|entry| wants(tree, at, &entry.kind)))
        })
    })
}

/// All that a path, or a pattern over its elements, leads to; links are followed.
fn found(tree: &Tree, pattern: &str) -> Vec<TreePath> {
    let mut at = vec![TreePath::root()];
    for element in pattern.split('/').filter(|element| !element.is_empty()) {
        let below = |directory: &TreePath| -> Vec<TreePath> {
            if !element.contains(['*', '?', '[']) {
                return vec![directory.join(element)];
            }
            let named = |path: &TreePath| glob::matches(element, &String::from_utf8_lossy(path.file_name()));
            tree.children(directory).map(|(path, _)| path.clone()).filter(named).collect()
        };
        at = at.iter().flat_map(below).filter_map(|path| follow(tree, &path)).collect();
    }
    at
}
