//! An image is the base with a node fitted into it, in three parts: what all images of the mesh share, what all nodes
//! of a profile share, and what only this node has.

use std::collections::BTreeSet;

use super::manifest::{MANIFEST_PATH, Manifest};
use crate::finding::Failure;
use crate::overlay::Fitted;
use crate::overlay::ledger::Scope;
use crate::tree::{Entry, Tree, TreePath};

/// Entries of a part in path order.
pub type Entries<'a> = Vec<(&'a TreePath, &'a Entry)>;

/// The base's entries that no profile of the mesh overrides or removes.
pub fn shared<'a>(base: &'a Tree, touched: &BTreeSet<TreePath>) -> Entries<'a> {
    base.entries.iter().filter(|(path, _)| !touched.contains(*path)).collect()
}

/// A node's image, part by part.
#[derive(Debug)]
pub struct Composition {
    /// The whole tree.
    pub tree: Tree,
    /// Paths of the profile part, in order.
    pub profile: Vec<TreePath>,
    /// Paths of the node part, in order.
    pub node: Vec<TreePath>,
}

impl Composition {
    /// The entries of one of the lists of paths.
    pub fn entries<'a>(&'a self, paths: &'a [TreePath]) -> Entries<'a> {
        paths.iter().filter_map(|path| self.tree.entries.get_key_value(path)).collect()
    }
}

/// Fits a node into the base. `touched` is the union over all profiles, so that the shared part is the same for all.
///
/// # Errors
/// When the manifest cannot be written as JSON.
pub fn compose(
    base: &Tree,
    touched: &BTreeSet<TreePath>,
    fitted: &Fitted,
    manifest: &Manifest,
    epoch: i64,
) -> Result<Composition, Failure> {
    let mut tree = crate::overlay::merge(base, fitted);
    let mut profile: BTreeSet<TreePath> = touched.iter().filter(|path| tree.get(path).is_some()).cloned().collect();
    let mut node = BTreeSet::new();
    for (path, (scope, _)) in &fitted.put {
        match scope {
            Scope::Profile => profile.insert(path.clone()),
            Scope::Node => {
                profile.remove(path);
                node.insert(path.clone())
            }
        };
    }
    let path = TreePath::from_normal(MANIFEST_PATH.into());
    for ancestor in path.ancestors() {
        // Profiles whose overlays put nothing beside the manifest have no directory for it yet.
        if tree.get(&ancestor).is_none() {
            tree.insert(ancestor.clone(), Entry::directory(0o755).dated(epoch));
            profile.insert(ancestor);
        }
    }
    let mut json = serde_json::to_vec_pretty(manifest)
        .map_err(|e| Failure::new(format!("cannot write the manifest of {}: {e}", manifest.node)))?;
    json.push(b'\n');
    tree.insert(path.clone(), Entry::file(json, 0o644).dated(epoch));
    node.insert(path);
    Ok(Composition { tree, profile: profile.into_iter().collect(), node: node.into_iter().collect() })
}

/// No time of the image is later than the epoch (`SOURCE_DATE_EPOCH`, reproducible-builds.org).
pub fn clamp(tree: &mut Tree, epoch: i64) {
    for entry in tree.entries.values_mut() {
        entry.mtime = entry.mtime.min(epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::ledger::Ledger;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    #[test]
    fn every_path_is_in_exactly_one_part() {
        let mut base = Tree::default();
        for dir in ["/", "/etc", "/usr", "/usr/lib"] {
            base.insert(path(dir), Entry::directory(0o755).dated(9));
        }
        for file in ["/etc/hostname", "/etc/only-other-profile", "/etc/gone", "/usr/lib/kept"] {
            base.insert(path(file), Entry::file(*b"base", 0o644).dated(9));
        }
        clamp(&mut base, 5);
        let touched: BTreeSet<_> =
            ["/etc/hostname", "/etc/only-other-profile", "/etc/gone"].iter().map(|p| path(p)).collect();
        let fitted = Fitted {
            node: "a".into(),
            profile: "p".into(),
            put: [
                (path("/etc/hostname"), (Scope::Node, Entry::file(*b"a", 0o644))),
                (path("/etc/new"), (Scope::Profile, Entry::file(*b"p", 0o644))),
            ]
            .into(),
            removed: [path("/etc/gone")].into(),
            ledger: Ledger::default(),
            without_keys: false,
        };
        let manifest = crate::image::manifest::tests::sample();
        let composed = compose(&base, &touched, &fitted, &manifest, 5).unwrap();
        let names = |paths: &[TreePath]| paths.iter().map(TreePath::display).collect::<Vec<_>>();
        let shared: Vec<_> = shared(&base, &touched).iter().map(|(p, _)| p.display()).collect();
        assert_eq!(shared, ["/", "/etc", "/usr", "/usr/lib", "/usr/lib/kept"]);
        assert_eq!(names(&composed.profile), ["/etc/new", "/etc/only-other-profile", "/usr/lib/fitout"]);
        assert_eq!(names(&composed.node), ["/etc/hostname", "/usr/lib/fitout/image.json"]);
        assert_eq!(composed.tree.entries.len(), shared.len() + composed.profile.len() + composed.node.len());
        assert!(composed.tree.entries.values().all(|e| e.mtime <= 5));
    }
}
