//! Units by what they do: whether they are enabled, and whether they start.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::systemd::boot::{Boot, Programs, boot};
use crate::systemd::edges::Strength;
use crate::systemd::enabled::{UnitFileState, states};
use crate::systemd::name::UnitName;
use crate::systemd::units::UnitSet;
use crate::tree::Tree;

/// One unit that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitDifference {
    /// Its name.
    pub unit: String,
    /// In the first; `None` when only the second has it.
    pub from: Option<UnitState>,
    /// In the second; `None` when only the first has it.
    pub to: Option<UnitState>,
}

/// What a unit does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitState {
    /// What `systemctl is-enabled` says; `None` for units that only something generated or named brings.
    pub file: Option<UnitFileState>,
    /// `at boot`, `when activated`, `by a command`; `None` when nothing starts it.
    pub starts: Option<&'static str>,
    /// The way in which it starts, one step a line.
    pub route: Vec<String>,
}

impl UnitState {
    /// `disabled, does not start`.
    pub fn words(&self) -> String {
        let file = self.file.map_or("without a unit file".to_owned(), |state| state.to_string());
        match self.starts {
            Some(when) => format!("{file}, starts {when}"),
            None => format!("{file}, does not start"),
        }
    }
}

/// Units whose state differs, by name. The route is told, but does not count as a difference.
pub fn compare(a: &Tree, b: &Tree) -> Vec<UnitDifference> {
    let (a, b) = (all(a), all(b));
    let names: BTreeSet<&UnitName> = a.keys().chain(b.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let (from, to) = (a.get(name), b.get(name));
        let key = |state: Option<&UnitState>| state.map(|s| (s.file, s.starts));
        if key(from) != key(to) {
            found.push(UnitDifference { unit: name.as_str().to_owned(), from: from.cloned(), to: to.cloned() });
        }
    }
    found
}

fn all(tree: &Tree) -> BTreeMap<UnitName, UnitState> {
    let set = UnitSet::new(tree);
    let boot = boot(&set, &Programs::default());
    let mut units: BTreeMap<UnitName, UnitState> = BTreeMap::new();
    for (name, file) in states(&set) {
        let (starts, route) = starts(&boot, &set.canonical(&name));
        units.insert(name, UnitState { file: Some(file), starts, route });
    }
    for name in boot.reached.keys() {
        // Slices come with what runs in them.
        if !units.contains_key(name) && name.kind() != "slice" {
            let (starts, route) = starts(&boot, name);
            units.insert(name.clone(), UnitState { file: None, starts, route });
        }
    }
    units
}

fn starts(boot: &Boot, name: &UnitName) -> (Option<&'static str>, Vec<String>) {
    let Some(reach) = boot.reached.get(name) else { return (None, Vec::new()) };
    let when = match reach.strength {
        Strength::Starts => "at boot",
        Strength::Activates => "when activated",
        Strength::Commands => "by a command",
        Strength::Never => return (None, Vec::new()),
    };
    (Some(when), boot.route(reach))
}
