//! `fitout.lock` beside `mesh.toml`: what must not drift from build to build.
//!
//! It pins the base's packages and digest, the ids of system users, and the birth record of each generation of the
//! registry. It is TOML, sorted, and meant for version control:
//!
//! ```toml
//! version = 1
//!
//! [base]
//! name = "common"
//! digest = "…"                # canonical listing of the tree
//! tar-sha256 = "…"            # of the uncompressed tar
//! packages = { adduser = "3.152" }
//!
//! [user.app]
//! uid = 990
//! gid = 990
//!
//! [birth.1]                   # by generation
//! token = "harbour-g1"
//! cluster-id = "…"
//! peers = { lis1 = "https://10.77.0.11:2380" }
//! member-ids = { lis1 = "…" }
//! ```

#![expect(clippy::result_large_err, reason = "a refusal is rare, and callers collect findings as values")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::output::{self, Access};
use crate::etcd::birth::Birth;
use crate::finding::words;
use crate::finding::{Failure, Finding, Problem, Rule, Severity, Source, Span};
use crate::tree::Digest;

/// Name of the file.
pub const LOCK_FILE: &str = "fitout.lock";

/// Version of the format.
const VERSION: u32 = 1;

const HEADER: &str =
    "# Written by fitout; keep it under version control. It pins what must not drift from build to build.\n";

/// Most package changes that one finding lists.
const LISTED: usize = 20;

/// The lock file cannot be understood.
pub static LOCK_UNREADABLE: Rule = Rule {
    code: "lock-unreadable",
    family: "lock",
    severity: Severity::Error,
    summary: "the lock file cannot be understood",
    explanation: "fitout.lock pins the base, the ids of system users, and the birth record of the registry. It is written by \
        fitout. A merge may have left conflict marks in it, or a newer fitout has written it. Restore it from version \
        control; without it the next build pins anew, and a registry that runs would no longer be recognised.",
};

/// The base differs from the pinned one.
pub static BASE_DRIFTED: Rule = Rule {
    code: "base-drifted",
    family: "lock",
    severity: Severity::Error,
    summary: "with `--locked`: the base differs from the one that fitout.lock pins",
    explanation: "A base made anew has the packages of the day. `--locked` refuses it, so that what was tested is what is \
        shipped; a build without `--locked` accepts it and pins it.",
};

/// A system user has no pinned ids.
pub static USER_NOT_LOCKED: Rule = Rule {
    code: "user-not-locked",
    family: "lock",
    severity: Severity::Error,
    summary: "with `--locked`: a system user has other ids than fitout.lock pins, or none are pinned",
    explanation: "Files on a node's disk belong to numbers. An overlay's system user keeps its ids through every rebuild, \
        so they are pinned; a build without `--locked` chooses and pins them.",
};

/// The token differs from that with which the registry was born.
pub static BIRTH_CHANGED: Rule = Rule {
    code: "birth-changed",
    family: "lock",
    severity: Severity::Error,
    summary: "the mesh has another name than its registry was born with",
    explanation: "etcd computes its cluster id and the ids of its first members from their peer URLs and the token, once, when \
        the cluster is born; the token is the mesh's name with the generation. fitout.lock keeps that birth record per \
        generation. With another name the images would form another cluster beside the living one. If the registry of this \
        generation was never started, the record may be removed from fitout.lock and a build makes a new one. If it lives, \
        keep the name: only a restore raises the generation.",
};

/// The voters differ from those that the registry was born with.
pub static BORN_OTHERWISE: Rule = Rule {
    code: "born-otherwise",
    family: "lock",
    severity: Severity::Notice,
    summary: "the declared voters are not those that the registry was born with",
    explanation: "The birth record in fitout.lock holds the voters with which the registry was born, for life: its ids follow \
        from them. Voters that were declared, moved or taken out later do not change it. The living member list is what \
        counts: `fitout registry members` compares it with the declaration and says the steps. Images of voters that came \
        later are built with `--join`; without it the build refuses them (`overlay-not-born`), and those of the first \
        members are built from the record as ever. If the registry of this generation was never started, remove the record \
        from fitout.lock: the next build makes a new one of the voters that are declared now.",
};

/// With `--locked`: a birth record is not pinned yet.
pub static BIRTH_NOT_LOCKED: Rule = Rule {
    code: "birth-not-locked",
    family: "lock",
    severity: Severity::Error,
    summary: "with `--locked`: the birth record of this generation is not in fitout.lock",
    explanation: "The first build of a generation pins the birth record of its registry. With `--locked` nothing is pinned; \
        build once without it and keep fitout.lock under version control.",
};

/// Rules of the lock file.
pub static RULES: &[&Rule] =
    &[&LOCK_UNREADABLE, &BASE_DRIFTED, &USER_NOT_LOCKED, &BIRTH_CHANGED, &BORN_OTHERWISE, &BIRTH_NOT_LOCKED];

/// What to do with what is not pinned as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedUse {
    /// Pin it.
    Update,
    /// Refuse it (`--locked`).
    Locked,
}

/// The pinned base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedBase {
    /// Name of the base in the declaration.
    pub name: String,
    /// Digest of the tree's canonical listing.
    pub digest: Digest,
    /// SHA-256 of the uncompressed tar.
    pub tar_sha256: Digest,
    /// Version of every installed package.
    #[serde(default)]
    pub packages: BTreeMap<String, String>,
}

/// The pinned ids of a system user and the group of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ids {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// The lock file's content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// The base; nothing before the first build.
    pub base: Option<LockedBase>,
    /// Ids of system users, by name.
    pub users: BTreeMap<String, Ids>,
    /// Birth records, by generation.
    pub births: BTreeMap<u32, Birth>,
}

/// The file's form.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<LockedBase>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    user: BTreeMap<String, Ids>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    birth: BTreeMap<String, FileBirth>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct FileBirth {
    token: String,
    cluster_id: String,
    peers: BTreeMap<String, String>,
    member_ids: BTreeMap<String, String>,
}

impl Lock {
    /// Where the lock file of a mesh is.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(LOCK_FILE)
    }

    /// Reads the lock file of a mesh's directory; empty when there is none.
    ///
    /// # Errors
    /// A finding when it cannot be understood, a failure when it cannot be read.
    pub fn load(directory: &Path) -> Result<Lock, Problem> {
        let path = Lock::path(directory);
        match crate::regular::read(&path) {
            Ok(bytes) => Lock::parse(&path.display().to_string(), &bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Lock::default()),
            Err(error) => Err(Failure::io("read", &path, &error).into()),
        }
    }

    /// Reads the lock file's text; `name` is for messages.
    ///
    /// # Errors
    /// When it is not TOML, not of this version, or contradicts itself.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Lock, Problem> {
        let source = Source::new(name, String::from_utf8_lossy(bytes).into_owned());
        let unreadable = |message: String, at: Option<std::ops::Range<usize>>| {
            let help = "restore it from version control; see `fitout explain lock-unreadable`";
            let finding = LOCK_UNREADABLE.finding(name, message).help(help);
            Problem::from(match at {
                Some(range) => finding.at(&Span::new(&source, range)),
                None => finding,
            })
        };
        // The version first: a newer file may have keys that this version does not know.
        let version = toml::from_str::<toml::Table>(&source.text)
            .map_err(|e| unreadable(words::plain(&e.message().replace('\n', ", ")), e.span()))?
            .get("version")
            .and_then(toml::Value::as_integer);
        if version != Some(i64::from(VERSION)) {
            let found = version.map_or_else(|| "none".to_owned(), |v| v.to_string());
            return Err(unreadable(
                format!("this fitout reads version {VERSION} of the file, and found {found}"),
                None,
            ));
        }
        let file: File = toml::from_str(&source.text)
            .map_err(|e| unreadable(words::plain(&e.message().replace('\n', ", ")), e.span()))?;
        let mut births = BTreeMap::new();
        for (key, born) in file.birth {
            let generation = key.parse().ok().filter(|g| *g > 0);
            let Some(generation) = generation else {
                return Err(unreadable(format!("`{}` is not a generation", key.escape_debug()), None));
            };
            let birth = Birth::of(generation, born.token, born.peers);
            if birth.cluster_id != born.cluster_id || birth.member_ids != born.member_ids {
                let message = format!("the ids of generation {generation} do not follow from its token and peer URLs");
                return Err(unreadable(message, None));
            }
            births.insert(generation, birth);
        }
        Ok(Lock { base: file.base, users: file.user, births })
    }

    /// The file's text: sorted, the same for the same content.
    ///
    /// # Errors
    /// Never for what TOML can hold, which is all that a lock can.
    pub fn render(&self) -> Result<String, Failure> {
        let birth = |b: &Birth| FileBirth {
            token: b.token.clone(),
            cluster_id: b.cluster_id.clone(),
            peers: b.peers.clone(),
            member_ids: b.member_ids.clone(),
        };
        let file = File {
            version: VERSION,
            base: self.base.clone(),
            user: self.users.clone(),
            birth: self.births.iter().map(|(generation, b)| (generation.to_string(), birth(b))).collect(),
        };
        let text = toml::to_string(&file).map_err(|e| Failure::new(format!("cannot render {LOCK_FILE}: {e}")))?;
        Ok(format!("{HEADER}{text}"))
    }

    /// Writes the lock file whole or not at all, and only when it differs. True when it was written.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn save(&self, directory: &Path) -> Result<bool, Failure> {
        let (path, text) = (Lock::path(directory), self.render()?);
        if std::fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(false);
        }
        output::write(&path, Access::Everyone, text.as_bytes())?;
        Ok(true)
    }

    /// Pins the base. With [`LockedUse::Locked`] it must be the pinned one.
    ///
    /// # Errors
    /// With `--locked`, a finding that lists the packages that differ.
    pub fn pin_base(&mut self, base: LockedBase, how: LockedUse) -> Result<(), Finding> {
        if self.base.as_ref() == Some(&base) {
            return Ok(());
        }
        if how == LockedUse::Update {
            self.base = Some(base);
            return Ok(());
        }
        let subject = format!("base {}", base.name);
        let help = "build without `--locked` to accept and pin it";
        let Some(pinned) = &self.base else {
            return Err(BASE_DRIFTED.finding(subject, format!("{LOCK_FILE} pins no base yet")).help(help));
        };
        let message = if pinned.name != base.name {
            format!("the base is `{}`, and {LOCK_FILE} pins `{}`", base.name, pinned.name)
        } else if pinned.packages != base.packages {
            format!("the base has other packages than {LOCK_FILE} pins")
        } else {
            format!("the base is {}, and {LOCK_FILE} pins {}", base.digest, pinned.digest)
        };
        let mut finding = BASE_DRIFTED.finding(subject, message).help(help);
        finding.notes = changes(&pinned.packages, &base.packages);
        Err(finding)
    }

    /// Pins the ids of a system user. With [`LockedUse::Locked`] they must be the pinned ones.
    ///
    /// # Errors
    /// With `--locked`, when others or none are pinned.
    pub fn pin_user(&mut self, name: &str, ids: Ids, how: LockedUse) -> Result<(), Finding> {
        if self.users.get(name) == Some(&ids) {
            return Ok(());
        }
        if how == LockedUse::Update {
            self.users.insert(name.to_owned(), ids);
            return Ok(());
        }
        let message = match self.users.get(name) {
            Some(pinned) => {
                format!("has the ids {}:{}, and {LOCK_FILE} pins {}:{}", ids.uid, ids.gid, pinned.uid, pinned.gid)
            }
            None => format!("{LOCK_FILE} pins no ids for it"),
        };
        Err(USER_NOT_LOCKED.finding(format!("user {name}"), message).help("build without `--locked` to pin them"))
    }

    /// The birth record of a generation: pinned when there is none; the pinned one stands for life, whatever voters are
    /// declared now.
    ///
    /// # Errors
    /// When the token differs from that of the pinned record, whatever `how`; with `--locked`, when nothing is pinned.
    pub fn pin_birth(&mut self, declared: &Birth, how: LockedUse) -> Result<(), Finding> {
        let generation = declared.generation;
        let subject = format!("generation {generation}");
        match self.births.get(&generation) {
            Some(pinned) if pinned.token == declared.token => Ok(()),
            Some(pinned) => Err(BIRTH_CHANGED
                .finding(subject, "the mesh has another name than its registry was born with")
                .note(format!("token: `{}` -> `{}`", pinned.token, declared.token))
                .help(format!(
                    "was it never started? then remove `[birth.{generation}]` from {LOCK_FILE}; else put the name back"
                ))),
            None if how == LockedUse::Locked => Err(BIRTH_NOT_LOCKED
                .finding(subject, format!("{LOCK_FILE} has no birth record for it"))
                .help("build once without `--locked`")),
            None => {
                self.births.insert(generation, declared.clone());
                Ok(())
            }
        }
    }
}

impl Lock {
    /// Says when other voters are declared than the registry of this generation was born with.
    pub fn since_birth(&self, declared: &Birth) -> Option<Finding> {
        let generation = declared.generation;
        let pinned = self.births.get(&generation).filter(|pinned| pinned.peers != declared.peers)?;
        let message = "the declared voters are not those that the registry was born with";
        let mut finding = BORN_OTHERWISE.finding(format!("generation {generation}"), message).help(format!(
            "`fitout registry members` says the steps of a registry that lives; was it never started? then remove \
             `[birth.{generation}]` from {LOCK_FILE}"
        ));
        finding.notes = changes(&pinned.peers, &declared.peers);
        Some(finding)
    }
}

/// What differs between two maps, one line each, at most [`LISTED`].
fn changes(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let mut all = Vec::new();
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(a), Some(b)) if a != b => all.push(format!("{name}: {a} -> {b}")),
            (Some(a), None) => all.push(format!("{name}: {a} -> gone")),
            (None, Some(b)) => all.push(format!("{name}: new, {b}")),
            _ => {}
        }
    }
    if all.len() > LISTED {
        let more = all.len() - LISTED;
        all.truncate(LISTED);
        all.push(format!("and {more} more"));
    }
    all
}

#[cfg(test)]
mod tests;
