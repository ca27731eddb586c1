//! The tree of an image: the base with the overlays over it.

use std::collections::BTreeMap;

use super::Fitted;
use crate::tree::{LinkGroup, Tree};

/// Puts a node's overlay over the base. Names of a hard-linked file that are not touched keep it; a last one of a group
/// is no hard link any more.
pub fn merge(base: &Tree, fitted: &Fitted) -> Tree {
    let mut tree = base.clone();
    let mut loosened = false;
    for path in &fitted.removed {
        loosened |= tree.entries.remove(path).is_some_and(|entry| entry.links.is_some());
    }
    for (path, (_, entry)) in &fitted.put {
        loosened |= tree.insert(path.clone(), entry.clone()).is_some_and(|entry| entry.links.is_some());
    }
    if loosened {
        single_out(&mut tree);
    }
    tree
}

fn single_out(tree: &mut Tree) {
    let mut names: BTreeMap<LinkGroup, usize> = BTreeMap::new();
    for group in tree.entries.values().filter_map(|entry| entry.links) {
        *names.entry(group).or_default() += 1;
    }
    for entry in tree.entries.values_mut() {
        if entry.links.is_some_and(|group| names.get(&group) == Some(&1)) {
            entry.links = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlay::ledger::{Ledger, Scope};
    use crate::tree::{Entry, TreePath};

    #[test]
    fn overriding_one_name_of_a_hard_link_keeps_the_others() {
        let path = |p: &str| TreePath::parse(p).unwrap();
        let linked = |group| Entry { links: Some(LinkGroup(group)), ..Entry::file(*b"shared", 0o644) };
        let mut base = Tree::default();
        for (name, group) in [("a1", 1), ("a2", 1), ("a3", 1), ("b1", 2), ("b2", 2), ("c1", 3), ("c2", 3)] {
            base.insert(path(name), linked(group));
        }
        let fitted = Fitted {
            put: [(path("a1"), (Scope::Profile, Entry::file(*b"own", 0o600)))].into(),
            removed: [path("b1")].into(),
            ..Fitted::empty("n", "p")
        };
        let tree = merge(&base, &fitted);
        let show: Vec<_> = tree
            .entries
            .iter()
            .map(|(p, e)| {
                format!("{p} {} {:?}", String::from_utf8_lossy(&tree.content(p).unwrap()), e.links.map(|g| g.0))
            })
            .collect();
        assert_eq!(
            show,
            [
                "/a1 own None",
                "/a2 shared Some(1)",
                "/a3 shared Some(1)",
                "/b2 shared None",
                "/c1 shared Some(3)",
                "/c2 shared Some(3)"
            ]
        );
        assert_eq!(fitted.ledger, Ledger::default());
    }
}
