//! Paths: nodes of one profile differ only where something is a node's own, and nodes of different profiles only where a
//! profile put something.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{Node, names, rule};
use crate::finding::{Finding, Rule, Severity};
use crate::image::manifest::MANIFEST_PATH;
use crate::overlay::ledger::Scope;
use crate::tree::{Entry, TreePath};

/// Paths that differ.
pub static PROFILE: Rule = rule(
    "mesh-paths",
    Severity::Error,
    "images differ in paths that should be the same",
    "\
An image consists of the base, which all nodes share, what its profile put there, and what is the node's own: its name, its
configuration, its certificates. The ledger says which path is which. Another path that differs was changed in one image after the
build, or the images are of different builds; what is proven and tried of one node then does not hold for the other. Build all
images again; `fitout diff A B` shows what differs.",
);

/// Paths that are named.
const SHOWN: usize = 10;

/// Whether two images differ in any path.
pub(super) fn differ(a: &Node<'_>, b: &Node<'_>) -> bool {
    merged(a, b).any(|(_, a, b)| !same(a, b))
}

/// Compares the first image of each profile with the others of it, and the first images with each other.
pub(super) fn check(group: &[Node<'_>], out: &mut Vec<Finding>) {
    let mut profiles: Vec<Vec<&Node<'_>>> = Vec::new();
    for node in group {
        let is_of = |nodes: &&mut Vec<&Node<'_>>| nodes[0].manifest.profile == node.manifest.profile;
        match profiles.iter_mut().find(is_of) {
            // Of two images of a node another rule speaks.
            Some(nodes) if nodes.iter().any(|other| other.name() == node.name()) => {}
            Some(nodes) => nodes.push(node),
            None => profiles.push(vec![node]),
        }
    }
    let firsts: Vec<&Node<'_>> = profiles.iter().filter_map(|nodes| nodes.first().copied()).collect();
    for nodes in &profiles {
        compare(nodes, out);
    }
    compare(&firsts, out);
}

/// Compares the first with each of the others.
fn compare(nodes: &[&Node<'_>], out: &mut Vec<Finding>) {
    let Some((first, others)) = nodes.split_first() else { return };
    let differences: Vec<(&str, Vec<TreePath>)> = others
        .par_iter()
        .filter(|other| other.manifest.base == first.manifest.base)
        .map(|other| (other.name(), unexpected(first, other)))
        .collect();
    // By who differs, so that one changed image is named once, also when it is the first.
    let mut by_path: BTreeMap<&TreePath, Vec<&str>> = BTreeMap::new();
    for (name, paths) in &differences {
        for path in paths {
            by_path.entry(path).or_default().push(name);
        }
    }
    let mut by_nodes: BTreeMap<Vec<&str>, Vec<&TreePath>> = BTreeMap::new();
    for (path, nodes) in by_path {
        by_nodes.entry(nodes).or_default().push(path);
    }
    let given = |name: &str| nodes.iter().find(|node| node.name() == name).map(|node| node.image.name.clone());
    for (nodes, paths) in by_nodes {
        let is_first = nodes.len() > 1 && nodes.len() == differences.len();
        let (who, than) = match is_first {
            true => (vec![first.name()], nodes),
            false => (nodes, vec![first.name()]),
        };
        let count = if paths.len() == 1 { "one path".to_owned() } else { format!("{} paths", paths.len()) };
        let message = format!("{} differs from {} in {count} that should be the same", names(&who), names(&than));
        let mut finding = PROFILE.finding(who.join(", "), message).help("build both images again");
        // Of its node another image may be given, which is not compared.
        if let [one] = who.as_slice() {
            finding.image = given(one);
        }
        finding.notes = paths.iter().take(SHOWN).map(|path| path.display()).collect();
        if paths.len() > SHOWN {
            finding.notes.push(format!("… and {} more", paths.len() - SHOWN));
        }
        out.push(finding);
    }
}

/// The paths in which two images differ and should not.
fn unexpected(a: &Node<'_>, b: &Node<'_>) -> Vec<TreePath> {
    let one_profile = a.manifest.profile == b.manifest.profile;
    let is_own = |node: &Node<'_>, path: &TreePath| {
        node.manifest.ledger.get(path).is_some_and(|record| !one_profile || record.scope == Scope::Node)
    };
    let differs = merged(a, b).filter(|(_, a, b)| !same(*a, *b)).map(|(path, ..)| path);
    differs
        .filter(|path| path.as_bytes() != MANIFEST_PATH.as_bytes() && !is_own(a, path) && !is_own(b, path))
        .cloned()
        .collect()
}

fn same(a: Option<&Entry>, b: Option<&Entry>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a.same_as(b))
}

/// The entries of both trees by path.
fn merged<'a>(
    a: &Node<'a>,
    b: &Node<'a>,
) -> impl Iterator<Item = (&'a TreePath, Option<&'a Entry>, Option<&'a Entry>)> + use<'a> {
    let mut left = a.image.tree.entries.iter().peekable();
    let mut right = b.image.tree.entries.iter().peekable();
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return None,
        };
        let from_left = if order.is_le() { left.next() } else { None };
        let from_right = if order.is_ge() { right.next() } else { None };
        let path = from_left.or(from_right).map(|(path, _)| path)?;
        Some((path, from_left.map(|(_, entry)| entry), from_right.map(|(_, entry)| entry)))
    })
}
