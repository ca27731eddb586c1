//! What the rules of the family share, worked out once an image.

use std::collections::{BTreeMap, BTreeSet};

use crate::overlay::ledger::Action;
use crate::systemd::boot::{Boot, Programs, boot};
use crate::systemd::commands;
use crate::systemd::install::preset_all;
use crate::systemd::name::UnitName;
use crate::systemd::preset::Presets;
use crate::systemd::search::{self, follow};
use crate::systemd::tmpfiles;
use crate::systemd::units::{Unit, UnitSet};
use crate::tree::{Kind, Tree, TreePath};
use crate::verify::Image;

/// Units that are stopped in every image, whatever its ledger says: the registry and its one handle.
pub const ALWAYS: [&str; 4] = [REGISTRY, HANDLE, PREFLIGHT, ANNOUNCER];
/// The registry's unit, Debian's.
pub const REGISTRY: &str = "etcd.service";
/// The one handle.
pub const HANDLE: &str = "mesh-registry.target";
/// The oneshot before it.
pub const PREFLIGHT: &str = "mesh-preflight.service";

/// The announcer.
pub const ANNOUNCER: &str = "mesh-agent.service";

/// A unit that must stay stopped.
#[derive(Debug)]
pub struct Subject {
    /// The name by which it is declared.
    pub name: UnitName,
    /// As it is loaded.
    pub unit: Unit,
    /// Who says that it is stopped.
    pub declared: String,
}

/// What `/etc/machine-id` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineId {
    /// Present and empty.
    Empty,
    /// Not there: the next boot is a first boot.
    Missing,
    /// `uninitialized`: the next boot is a first boot.
    Uninitialized,
    /// It holds something else.
    Set,
    /// It is no file, or could not be read; with the reason.
    Other(String),
}

/// The facts of an image.
pub struct Facts<'a> {
    /// The image.
    pub image: &'a Image,
    /// Its units.
    pub set: UnitSet<'a>,
    /// Its presets.
    pub presets: Presets,
    /// What starts.
    pub boot: Boot,
    /// What must not.
    pub subjects: Vec<Subject>,
    /// `/etc/machine-id`.
    pub machine_id: MachineId,
    /// What starts after a first boot's preset-all, when the next boot is a first boot.
    pub after_presets: Option<Boot>,
    /// What starts at the boot after one that applied tmpfiles.d, when that changes the tree.
    pub after_tmpfiles: Option<Boot>,
}

impl<'a> Facts<'a> {
    /// Works out the facts.
    pub fn new(image: &'a Image) -> Facts<'a> {
        let set = UnitSet::new(&image.tree);
        let subjects = subjects(image, &set);
        let programs = programs(image, &subjects);
        let boot = boot(&set, &programs);
        let presets = Presets::new(&image.tree);
        let machine_id = machine_id(image);
        let first_boot = matches!(machine_id, MachineId::Missing | MachineId::Uninitialized);
        let after_presets = first_boot.then(|| {
            let tree = preset_all(&set, &presets);
            self::boot(&UnitSet::new(&tree), &programs)
        });
        let (tree, changes) = tmpfiles::applied(&image.tree);
        let matters = changes.iter().any(|change| may_start(&tree, &change.path, &subjects));
        let after_tmpfiles = matters.then(|| self::boot(&UnitSet::new(&tree), &programs));
        Facts { image, presets, boot, subjects, machine_id, after_presets, after_tmpfiles, set }
    }

    /// Subjects that could be started: neither masked nor absent.
    pub fn startable(&self) -> impl Iterator<Item = &Subject> {
        self.subjects.iter().filter(|s| crate::systemd::edges::can_start(&s.unit))
    }

    /// True when a unit, by any name, must stay stopped.
    pub fn is_subject(&self, name: &UnitName) -> bool {
        let id = self.set.canonical(name);
        self.subjects.iter().any(|s| s.unit.id == id)
    }
}

/// Whether what tmpfiles.d made or removed may change what starts: where units and their like are read, and elsewhere
/// what names a unit that must stay stopped or a command that starts any. It saves looking at the boot after.
fn may_start(tree: &Tree, path: &TreePath, subjects: &[Subject]) -> bool {
    const PLACES: [&str; 12] = [
        "etc/systemd/",
        "etc/init.d",
        "etc/rc",
        "etc/fstab",
        "etc/udev/",
        "etc/dbus-1/",
        "usr/lib/systemd/",
        "usr/lib/udev/",
        "usr/local/",
        "usr/share/dbus-1/",
        "lib/systemd/",
        "sbin/",
    ];
    if PLACES.iter().any(|place| path.as_bytes().starts_with(place.as_bytes())) {
        return true;
    }
    let text = follow(tree, path).and_then(|end| tree.content(&end).ok()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.contains("systemctl") || subjects.iter().any(|subject| text.contains(subject.unit.id.stem()))
}

/// The units that the image's ledger calls stopped, and those that always are, less those that it calls enabled.
fn subjects(image: &Image, set: &UnitSet) -> Vec<Subject> {
    let mut declared: BTreeMap<UnitName, String> = BTreeMap::new();
    let mut enabled: BTreeSet<UnitName> = BTreeSet::new();
    for (path, record) in image.manifest.iter().flat_map(|m| &m.ledger.records) {
        let Some((unit, state)) = record.origin.by.strip_prefix("unit ").and_then(|by| by.split_once(' ')) else {
            continue;
        };
        let Some(name) = UnitName::parse(unit) else { continue };
        if state.starts_with("stopped") {
            let verb = if record.action == Action::Removed { "removed" } else { "put" };
            declared.entry(name).or_insert_with(|| format!("overlay {}, which {verb} {path}", record.origin.overlay));
        } else if state.starts_with("enabled") {
            enabled.insert(name);
        }
    }
    // Where a profile enables one of them, the others start with it.
    let starts = ALWAYS.iter().any(|name| enabled.iter().any(|e| e.as_str() == *name));
    for name in ALWAYS.iter().filter(|_| !starts) {
        if let Some(name) = UnitName::parse(name) {
            declared.entry(name).or_insert_with(|| "fitout: the registry is started by its handle only".to_owned());
        }
    }
    let stopped = declared.into_iter().filter(|(name, _)| !enabled.contains(name));
    stopped.map(|(name, declared)| Subject { unit: set.load(&name), name, declared }).collect()
}

/// The programs that subjects run and that bear a subject's name: `/usr/bin/etcd` of `etcd.service`.
fn programs(image: &Image, subjects: &[Subject]) -> Programs {
    let mut all = Programs::default();
    for subject in subjects.iter().filter(|s| s.unit.id.kind() == "service") {
        for (_, assignment) in subject.unit.values("Service", "ExecStart") {
            let runs = commands::runs(&assignment.value);
            let Some(run) = runs.into_iter().find(|run| run.program.starts_with('/')) else { continue };
            let end = TreePath::parse(run.program).ok().and_then(|p| follow(&image.tree, &p));
            if let Some(end) = end.filter(|end| end.file_name() == subject.unit.id.stem().as_bytes()) {
                all.add(&image.tree, end, subject.unit.id.clone());
            }
        }
    }
    all
}

fn machine_id(image: &Image) -> MachineId {
    let path = search::path("etc/machine-id");
    let Some(end) = follow(&image.tree, &path) else { return MachineId::Missing };
    match image.tree.get(&end).map(|e| (&e.kind, e.kind_name())) {
        Some((Kind::File(data), _)) if data.len == 0 => MachineId::Empty,
        Some((Kind::File(data), _)) => match image.tree.read(data) {
            Ok(bytes) if bytes.trim_ascii() == b"uninitialized" => MachineId::Uninitialized,
            Ok(bytes) if bytes.trim_ascii().is_empty() => {
                MachineId::Other("it holds a line end, and systemd-nspawn refuses the image for that".to_owned())
            }
            Ok(_) => MachineId::Set,
            Err(failure) => MachineId::Other(failure.message),
        },
        Some((_, kind)) => MachineId::Other(format!("it is a {kind}")),
        None => MachineId::Other("it leads to /dev/null".to_owned()),
    }
}
