//! The ledger: per path, what put it there and with what owner, mode and content.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tree::{Digest, Entry, Kind, TreePath};

/// Where the embedded manifest is in every image, relative to the root. No overlay may put it.
pub const MANIFEST_PATH: &str = "usr/lib/fitout/image.json";

/// Which part of the image a path goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The same for all nodes of the profile.
    Profile,
    /// This node only.
    Node,
}

/// What an overlay did to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The base had nothing there.
    Added,
    /// The base had another entry there.
    Replaced,
    /// The base's content was changed by an edit.
    Edited,
    /// The base's entry is gone.
    Removed,
}

/// Where an entry comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Overlay, or `fitout` for what the tool itself puts in.
    pub overlay: String,
    /// File of the overlay, `file` or `file:line`.
    pub file: String,
    /// In words, when the file alone does not say it: `edit os-release`, `unit etcd.service stopped`, `pki peer`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// One path of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// What was done.
    pub action: Action,
    /// `file`, `directory`, `symlink`; of what was removed when it was removed.
    pub kind: String,
    /// Octal, four digits.
    pub mode: String,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Of a file's content. For private keys absent: see `public_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// Of a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// For a private key: SHA-256 of the public key's SubjectPublicKeyInfo (DER). The key's own digest is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<Digest>,
    /// Part of the image.
    pub scope: Scope,
    /// What put it there.
    pub origin: Origin,
    /// What the base had there: `file 0644 0:0 <sha256>`, `symlink -> target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
}

impl Record {
    /// What is to be known of an entry; `before` is what the base had there.
    pub fn of(action: Action, entry: &Entry, scope: Scope, origin: &Origin, before: Option<&Entry>) -> Record {
        let (sha256, target) = match &entry.kind {
            Kind::File(data) => (Some(data.sha256), None),
            Kind::Symlink(target) => (None, Some(String::from_utf8_lossy(target).into_owned())),
            _ => (None, None),
        };
        Record {
            action,
            kind: entry.kind_name().to_owned(),
            mode: format!("{:04o}", entry.mode),
            uid: entry.uid,
            gid: entry.gid,
            sha256,
            target,
            public_key: None,
            scope,
            origin: origin.clone(),
            replaced: before.map(describe),
        }
    }
}

/// `file 0644 0:0 <sha256>`, `symlink -> target`, `directory 0755 0:0`.
pub fn describe(entry: &Entry) -> String {
    let kind = entry.kind_name();
    match &entry.kind {
        Kind::Symlink(target) => format!("{kind} -> {}", String::from_utf8_lossy(target)),
        Kind::File(data) => format!("{kind} {:04o} {}:{} {}", entry.mode, entry.uid, entry.gid, data.sha256),
        _ => format!("{kind} {:04o} {}:{}", entry.mode, entry.uid, entry.gid),
    }
}

/// All records of an image by absolute path ([`TreePath::display`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger {
    /// The records.
    pub records: BTreeMap<String, Record>,
}

impl Ledger {
    /// The record of a path.
    pub fn get(&self, path: &TreePath) -> Option<&Record> {
        self.records.get(&path.display())
    }
}
