//! What differs between two images, or between an image and what the declaration makes.
//!
//! Paths are compared by all their attributes; of contents that differ, texts are shown as a unified diff, certificates
//! taken apart, the rest by digest, and secrets not at all. Units are compared by what they do: whether they are
//! enabled, and whether they start.

mod content;
pub mod read;
mod units;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::image::manifest::{MANIFEST_PATH, Manifest};
use crate::overlay::ledger::Ledger;
use crate::tree::compare::{Change, changes};
use crate::tree::{Entry, Kind, Tree, TreePath};

pub use content::{Content, escaped};
pub use units::{UnitDifference, UnitState};

/// One of the two.
#[derive(Debug)]
pub struct Side<'a> {
    /// All paths; contents of those that differ are kept as far as [`is_shown`].
    pub tree: &'a Tree,
    /// What it says of itself.
    pub manifest: Option<&'a Manifest>,
}

impl Side<'_> {
    fn ledger(&self) -> Option<&Ledger> {
        self.manifest.map(|manifest| &manifest.ledger)
    }
}

/// All that differs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Fields of the manifest, the ledger aside: name (`birth.token`), first, second; `null` where one has none.
    pub manifest: Vec<(String, Value, Value)>,
    /// Paths, by name.
    pub paths: BTreeMap<TreePath, PathDifference>,
    /// Paths that differ in nothing but their time.
    pub times: Vec<TreePath>,
    /// Units whose state differs, by name.
    pub units: Vec<UnitDifference>,
    /// Paths that are the same in all.
    pub same: usize,
}

impl Difference {
    /// True when nothing differs, times included.
    pub fn is_empty(&self) -> bool {
        self.manifest.is_empty() && self.paths.is_empty() && self.times.is_empty() && self.units.is_empty()
    }
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathDifference {
    /// In the first; `None` when only the second has it.
    pub from: Option<Attributes>,
    /// In the second; `None` when only the first has it.
    pub to: Option<Attributes>,
    /// In what they differ; empty when one has none.
    pub changes: Vec<Change>,
    /// How the contents differ, when they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// Attributes of one entry, as they are printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attributes {
    /// `file`, `directory`, `symlink`, …
    pub kind: &'static str,
    /// Octal, four digits.
    pub mode: String,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Seconds since 1970.
    pub mtime: i64,
    /// Length of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<u64>,
    /// SHA-256 of a file's content, hex; of a private key none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// SHA-256 of the public key that belongs to a private key, hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Target of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Numbers of a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<(u32, u32)>,
    /// Extended attributes: name, and value in hex.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub xattrs: BTreeMap<String, String>,
}

impl Attributes {
    fn new(path: &TreePath, entry: &Entry, side: &Side<'_>) -> Attributes {
        let public_key = public_key(path, side);
        let secret = public_key.is_some() || content::is_secret(path, entry, side.tree);
        let (len, sha256) = match &entry.kind {
            Kind::File(data) => (Some(data.len), (!secret).then(|| data.sha256.hex())),
            _ => (None, None),
        };
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect();
        Attributes {
            kind: entry.kind_name(),
            mode: format!("{:04o}", entry.mode),
            uid: entry.uid,
            gid: entry.gid,
            mtime: entry.mtime,
            len: len.filter(|_| !secret),
            sha256,
            public_key,
            target: match &entry.kind {
                Kind::Symlink(target) => Some(content::escaped(&String::from_utf8_lossy(target))),
                _ => None,
            },
            device: match entry.kind {
                Kind::Character { major, minor } | Kind::Block { major, minor } => Some((major, minor)),
                _ => None,
            },
            xattrs: entry.xattrs.iter().map(|(k, v)| (String::from_utf8_lossy(k).into_owned(), hex(v))).collect(),
        }
    }
}

/// The public key that the ledger has for a private one.
fn public_key(path: &TreePath, side: &Side<'_>) -> Option<String> {
    side.ledger()?.get(path)?.public_key.as_ref().map(|digest| digest.hex())
}

/// Paths whose contents differ and can be shown: what a reader must keep before [`compare`].
pub fn wanted(a: &Tree, b: &Tree) -> Vec<TreePath> {
    let differs = |(path, entry): &(&TreePath, &Entry)| match b.get(path) {
        Some(other) => changes(entry, other).iter().any(|c| matches!(c, Change::Content | Change::Kind)),
        None => false,
    };
    a.entries.iter().filter(differs).map(|(path, _)| path.clone()).collect()
}

/// Compares two sides.
pub fn compare(a: &Side<'_>, b: &Side<'_>) -> Difference {
    let mut difference = Difference { manifest: manifests(a.manifest, b.manifest), ..Difference::default() };
    for path in a.tree.entries.keys().chain(b.tree.entries.keys().filter(|path| a.tree.get(path).is_none())) {
        let (from, to) = (a.tree.get(path), b.tree.get(path));
        let mut changed = match (from, to) {
            (Some(from), Some(to)) => changes(from, to),
            _ => Vec::new(),
        };
        // A private key that was not opened is known by its public key only; the manifest is compared by field.
        let keys = (public_key(path, a), public_key(path, b));
        if (keys.0.is_some() && keys.0 == keys.1) || is_manifest(path) {
            changed.retain(|change| *change != Change::Content);
        }
        if from.is_some() && to.is_some() {
            match changed.as_slice() {
                [] => {
                    difference.same += 1;
                    continue;
                }
                [Change::Time] => {
                    difference.times.push(path.clone());
                    continue;
                }
                _ => {}
            }
        }
        let content = changed.contains(&Change::Content).then(|| content::compare(path, a, b));
        let entry = PathDifference {
            from: from.map(|entry| Attributes::new(path, entry, a)),
            to: to.map(|entry| Attributes::new(path, entry, b)),
            changes: changed,
            content,
        };
        difference.paths.insert(path.clone(), entry);
    }
    difference.units = units::compare(a.tree, b.tree);
    difference
}

fn is_manifest(path: &TreePath) -> bool {
    path.as_bytes() == MANIFEST_PATH.as_bytes()
}

fn manifests(a: Option<&Manifest>, b: Option<&Manifest>) -> Vec<(String, Value, Value)> {
    let fields = |manifest: Option<&Manifest>| {
        let without = manifest.map(|m| Manifest { ledger: Ledger::default(), ..m.clone() });
        let value = without.and_then(|m| serde_json::to_value(m).ok()).unwrap_or_default();
        let mut fields = Vec::new();
        flatten("", value, &mut fields);
        fields
    };
    let (a, b) = (fields(a), fields(b));
    let of = |side: &[(String, Value)], name: &String| {
        side.iter().find(|(field, _)| field == name).map_or(Value::Null, |(_, value)| value.clone())
    };
    let names = a.iter().chain(b.iter().filter(|(name, _)| a.iter().all(|(field, _)| field != name)));
    names.map(|(name, _)| (name.clone(), of(&a, name), of(&b, name))).filter(|(_, a, b)| a != b).collect()
}

/// The members of objects in objects by their path: `birth.token`.
fn flatten(prefix: &str, value: Value, fields: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
                flatten(&name, value, fields);
            }
        }
        Value::Null if prefix.is_empty() => {}
        value => fields.push((prefix.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests;
