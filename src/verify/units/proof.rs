//! What was looked at and what follows: the proof that `verify` prints, instead of a boolean.

use std::collections::BTreeMap;

use serde::Serialize;

use super::facts::{Facts, MachineId, Subject};
use super::{enable, start};
use crate::systemd::edges::{EdgeKind, Strength};
use crate::systemd::install;
use crate::systemd::units::Load;
use crate::tree::TreePath;

/// The proof for one image.
#[derive(Debug, Clone, Serialize)]
pub struct Proof {
    /// Where `default.target` was found and what it is.
    pub default_target: String,
    /// Unit directories of the image, highest precedence first.
    pub unit_directories: Vec<String>,
    /// Names of units in them.
    pub unit_names: usize,
    /// Units that start at boot.
    pub started: usize,
    /// Units that something else may start after it.
    pub activated: usize,
    /// Units that a command in a text starts.
    pub commanded: usize,
    /// Steps between units that were looked at, by kind.
    pub looked_at: BTreeMap<EdgeKind, usize>,
    /// Masked units that a step leads to: routes end there.
    pub masked: Vec<String>,
    /// State of `/etc/machine-id`.
    pub machine_id: String,
    /// Generators that are not systemd's own.
    pub unknown_generators: Vec<String>,
    /// Dependencies that were not followed.
    pub unresolved: Vec<String>,
    /// Each unit that must stay stopped.
    pub subjects: Vec<SubjectProof>,
}

/// The proof for one unit.
#[derive(Debug, Clone, Serialize)]
pub struct SubjectProof {
    /// Its name.
    pub unit: String,
    /// Who says that it is stopped.
    pub declared: String,
    /// Where it was found: a unit file with drop-ins, a mask, nothing.
    pub state: String,
    /// Whether nothing starts it, at boot or later.
    pub stopped: bool,
    /// Every way in that was found, each a route.
    pub ways: Vec<Vec<String>>,
    /// Whether nothing would enable it.
    pub stays_disabled: bool,
    /// The preset line that decides; empty for what cannot be started at all.
    pub preset: String,
    /// Alias links, links in directories of units that do not start, SysV S links, `Also=` of others.
    pub triggers: Vec<String>,
    /// What deb-systemd-helper remembers.
    pub helper_state: Vec<String>,
}

impl Proof {
    pub(super) fn new(facts: &Facts) -> Proof {
        let text = |paths: Vec<TreePath>| paths.iter().map(TreePath::display).collect::<Vec<_>>();
        Proof {
            default_target: facts.boot.default.clone(),
            unit_directories: text(facts.set.directories.clone()),
            unit_names: facts.set.all_names().count(),
            started: facts.boot.count(Strength::Starts),
            activated: facts.boot.count(Strength::Activates),
            commanded: facts.boot.count(Strength::Commands),
            looked_at: start::looked_at(facts).collect(),
            masked: facts.boot.masked.iter().map(ToString::to_string).collect(),
            machine_id: match &facts.machine_id {
                MachineId::Empty => "present and empty: gets an id at boot, enables nothing".to_owned(),
                MachineId::Missing => "missing: the next boot is a first boot".to_owned(),
                MachineId::Uninitialized => "`uninitialized`: the next boot is a first boot".to_owned(),
                MachineId::Set => "holds an id".to_owned(),
                MachineId::Other(reason) => reason.clone(),
            },
            unknown_generators: text(start::unknown_generators(facts)),
            unresolved: facts.boot.unresolved.clone(),
            subjects: facts.subjects.iter().map(|subject| SubjectProof::new(facts, subject)).collect(),
        }
    }

    /// The proof for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("default.target: {}", self.default_target),
            format!("{} unit names in {}", self.unit_names, self.unit_directories.join(", ")),
            format!(
                "{} units start at boot, {} more may be activated, {} by commands in texts",
                self.started, self.activated, self.commanded
            ),
        ];
        let kinds: Vec<String> = self.looked_at.iter().map(|(kind, n)| format!("{n} {}", word(*kind))).collect();
        lines.push(format!("steps looked at: {}", kinds.join(", ")));
        if !self.masked.is_empty() {
            lines.push(format!("routes end at masked units: {}", self.masked.join(", ")));
        }
        lines.push(format!("/etc/machine-id: {}", self.machine_id));
        for generator in &self.unknown_generators {
            lines.push(format!("not accounted for: generator {generator}"));
        }
        for place in &self.unresolved {
            lines.push(format!("not followed: {place}"));
        }
        self.subjects.iter().for_each(|subject| subject.lines(&mut lines));
        lines
    }
}

fn word(kind: EdgeKind) -> String {
    // The serialised form is the word: `binds-to`.
    serde_json::to_value(kind).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

impl SubjectProof {
    fn new(facts: &Facts, subject: &Subject) -> SubjectProof {
        let unit = &subject.unit;
        let state = match &unit.load {
            Load::Loaded => {
                let files: Vec<String> = unit.files.iter().map(|f| f.path.display()).collect();
                files.join(" + ")
            }
            Load::Masked(path) => format!("masked by {path}"),
            Load::SysV(path) => format!("made of the script {path}"),
            Load::Refused(reason) => format!("not loaded by systemd: {reason}"),
            Load::NotFound => "not in the image".to_owned(),
        };
        let startable = crate::systemd::edges::can_start(unit);
        let preset = facts.presets.of(&unit.id);
        let preset_enables = preset.enables() && install::is_installable(unit);
        let mut proof = SubjectProof {
            unit: subject.name.to_string(),
            declared: subject.declared.clone(),
            state,
            stopped: true,
            ways: Vec::new(),
            stays_disabled: true,
            preset: match (startable, install::is_installable(unit)) {
                (true, true) => preset.describe(),
                (true, false) => "it has no [Install], so presets do not matter".to_owned(),
                (false, _) => String::new(),
            },
            triggers: Vec::new(),
            helper_state: enable::helper_state(facts, subject).iter().map(TreePath::display).collect(),
        };
        if startable {
            proof.ways = start::ways(facts, subject).iter().map(|way| facts.boot.route(way)).collect();
            let links = [
                enable::aliases_left(facts, subject),
                enable::links_left(facts, subject),
                enable::sysv_links(facts, subject),
            ];
            proof.triggers = links.concat().iter().map(TreePath::display).collect();
            proof.triggers.extend(enable::also(facts, subject).into_iter().map(|(place, _)| place));
            // Reached through another subject is that one's way in, and a start all the same.
            proof.ways.extend(start::first_boot_route(facts, subject));
            proof.ways.extend(start::tmpfiles_route(facts, subject));
            let after = facts.after_presets.as_ref().unwrap_or(&facts.boot);
            proof.stopped = proof.ways.is_empty() && !after.reached.contains_key(&unit.id);
            proof.stays_disabled = proof.triggers.is_empty() && !preset_enables;
        }
        proof
    }

    fn lines(&self, lines: &mut Vec<String>) {
        lines.push(format!("{}: {}", self.unit, self.state));
        lines.push(match self.stopped {
            true => "  does not start at boot: no way in".to_owned(),
            false if self.ways.is_empty() => "  STARTS with another unit that is declared stopped".to_owned(),
            false => format!("  STARTS: ways in: {}", self.ways.len()),
        });
        for (index, way) in self.ways.iter().enumerate() {
            lines.extend(way.iter().map(|step| format!("    {}. {step}", index + 1)));
        }
        if self.preset.is_empty() {
            return;
        }
        let verdict = if self.stays_disabled { "stays disabled" } else { "WOULD BECOME ENABLED" };
        lines.push(format!("  {verdict}: {}", self.preset));
        lines.extend(self.triggers.iter().map(|trigger| format!("    by {trigger}")));
    }
}
