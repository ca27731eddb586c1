//! The identity family: an image is its node's own and nobody else's. Nothing of the machine that built it is left, nothing
//! is the same on every machine of it, and no private key lies in it but those that the store issued to the node.

mod keys;
mod leftovers;
mod names;
mod passwords;
mod proxy;
mod ssh;

#[cfg(test)]
mod tests;

pub use keys::Known;

use super::Image;
use super::units::Facts;
use crate::finding::{Finding, Rule, Severity};
use crate::overlay::ledger::{Action, Record};
use crate::systemd::search::follow;
use crate::tree::{Kind, TreePath};

/// All rules of the family.
pub static RULES: &[&Rule] = &[
    &names::HOSTNAME,
    &names::BASE_HOSTNAME,
    &leftovers::DBUS_ID,
    &leftovers::RANDOM_SEED,
    &leftovers::CREDENTIAL_SECRET,
    &leftovers::LEFTOVER,
    &ssh::HOST_KEY,
    &ssh::NO_HOST_KEYS,
    &proxy::PROXY,
    &passwords::PASSWORD,
    &passwords::NONE,
    &passwords::ROOT_TWICE,
    &passwords::KEYS,
    &keys::FOREIGN,
    &keys::OTHER_NODE,
    &keys::COPY,
    &keys::CONTAINER,
];

/// Applies every rule of the family to an image; `known` are the keys of all images that are verified together.
pub fn check(image: &Image, facts: &Facts, known: &Known, out: &mut Vec<Finding>) {
    names::check(image, out);
    leftovers::check(image, out);
    ssh::check(image, facts, out);
    proxy::check(image, out);
    passwords::check(image, out);
    keys::check(image, known, out);
}

const fn rule(code: &'static str, severity: Severity, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "identity", severity, summary, explanation }
}

/// What an overlay put at a path; `None` for what is the base's, edited or not.
fn put_by_overlay<'a>(image: &'a Image, path: &TreePath) -> Option<&'a Record> {
    let record = image.manifest.as_ref()?.ledger.get(path)?;
    matches!(record.action, Action::Added | Action::Replaced).then_some(record)
}

/// The text of a file, links followed; `None` when there is none or it is no text.
fn text(image: &Image, path: &str) -> Option<String> {
    let end = follow(&image.tree, &TreePath::parse(path).ok()?)?;
    String::from_utf8(image.tree.content(&end).ok()?).ok()
}

/// Files below a directory that hold something, with their length in bytes.
fn files_below<'a>(image: &'a Image, directory: &str) -> impl Iterator<Item = (&'a TreePath, u64)> + use<'a> {
    let directory = TreePath::parse(directory).unwrap_or_default();
    image.tree.below(&directory).filter_map(|(path, entry)| match &entry.kind {
        Kind::File(data) if data.len > 0 => Some((path, data.len)),
        _ => None,
    })
}

/// The length of a file that is there itself, not by a link, and holds something.
fn file_len(image: &Image, path: &str) -> Option<u64> {
    match &image.tree.get(&TreePath::parse(path).ok()?)?.kind {
        Kind::File(data) if data.len > 0 => Some(data.len),
        _ => None,
    }
}
