//! What starts when an image boots: the closure from `default.target`, and beyond it what may start later.
//!
//! Three rings, each reached from the ones before: what is *started* (dependencies that pull in), what is
//! *activated* when something else happens (a connection, a time, a failure, a device), and what a *command* in a
//! text starts. A unit's ring is the innermost that reaches it, with the shortest route.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::commands::{self, Run};
use super::edges::{Edge, EdgeKind, Strength, can_start, edges};
use super::name::UnitName;
use super::search::{follow, path};
use super::triggers::{Trigger, What, triggers};
use super::units::{Load, Unit, UnitSet};
use crate::tree::{Digest, Kind, Place, Tree, TreePath};

/// Scripts longer than this are not searched for commands, in bytes.
const MAX_SCRIPT: u64 = 256 * 1024;

/// Scripts are followed from scripts this deep.
const MAX_DEPTH: usize = 3;

/// How a unit was reached.
#[derive(Debug, Clone)]
pub struct Reach {
    /// The unit that leads to it; `None` for what starts by itself.
    pub from: Option<UnitName>,
    /// The step.
    pub edge: Edge,
    /// The weakest step of the route.
    pub strength: Strength,
}

/// What starts at boot and after it.
#[derive(Debug)]
pub struct Boot {
    /// In words: where `default.target` was found and what it is.
    pub default: String,
    /// Units that start or may start, by main name.
    pub reached: BTreeMap<UnitName, Reach>,
    /// Every step to a unit from what is reached, by main name.
    pub ways: BTreeMap<UnitName, Vec<Reach>>,
    /// The same units, loaded.
    pub units: BTreeMap<UnitName, Unit>,
    /// Steps looked at, by kind.
    pub looked_at: BTreeMap<EdgeKind, usize>,
    /// Units that a step names and that are masked.
    pub masked: BTreeSet<UnitName>,
    /// `Requisite=` steps of reached units: they start nothing.
    pub requisites: Vec<(UnitName, Edge)>,
    /// Dependencies that only the running system can name.
    pub unresolved: Vec<String>,
}

/// Files whose being run counts as starting a unit.
#[derive(Debug, Default)]
pub struct Programs {
    by_path: BTreeMap<TreePath, UnitName>,
    /// Copies and hard links are the program too.
    by_content: BTreeMap<Digest, UnitName>,
}

/// Where a text stands.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file, whose lines are counted.
    Lines(TreePath),
    /// One place for all of it.
    Whole(String),
}

impl Source {
    /// What stands before a command of this line, from 1.
    fn at(&self, line: usize) -> String {
        match self {
            Source::Lines(path) => format!("{path}:{line}: "),
            Source::Whole(place) => place.clone(),
        }
    }
}

impl Programs {
    /// Adds the file at a path, links followed.
    pub fn add(&mut self, tree: &Tree, path: TreePath, unit: UnitName) {
        if let Some(Kind::File(data)) = tree.get(&path).map(|e| &e.kind) {
            self.by_content.insert(data.sha256, unit.clone());
        }
        self.by_path.insert(path, unit);
    }

    /// The unit of a file.
    fn at(&self, tree: &Tree, path: &TreePath) -> Option<&UnitName> {
        self.by_path.get(path).or_else(|| match tree.get(path).map(|e| &e.kind) {
            Some(Kind::File(data)) => self.by_content.get(&data.sha256),
            _ => None,
        })
    }

    /// The unit of a program that is looked up by its name.
    fn called(&self, name: &str) -> Option<&UnitName> {
        self.by_path.iter().find(|(path, _)| path.file_name() == name.as_bytes()).map(|(_, unit)| unit)
    }
}

/// Follows everything from `default.target` on. `programs` are files whose being run counts as starting a unit.
pub fn boot(set: &UnitSet, programs: &Programs) -> Boot {
    let mut walk = Walk {
        set,
        programs,
        ring: Strength::Starts,
        queue: VecDeque::new(),
        later: Vec::new(),
        boot: Boot {
            default: String::new(),
            reached: BTreeMap::new(),
            ways: BTreeMap::new(),
            units: BTreeMap::new(),
            looked_at: BTreeMap::new(),
            masked: BTreeSet::new(),
            requisites: Vec::new(),
            unresolved: Vec::new(),
        },
    };
    walk.start();
    walk.uphold();
    for Trigger { what, needs } in triggers(set) {
        match what {
            What::Unit(edge) => walk.later.push((None, edge, needs)),
            What::Text { place, text } => {
                let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
                walk.text(None, &text, &place, 0, &mut seen, &mut all);
                walk.later.extend(all.into_iter().map(|edge| (None, edge, needs)));
            }
        }
    }
    walk.run();
    // Later triggers may need what only earlier ones reach, so the rings are walked until nothing is new.
    walk.beyond();
    walk.boot
}

struct Walk<'a> {
    set: &'a UnitSet<'a>,
    programs: &'a Programs,
    ring: Strength,
    queue: VecDeque<(Option<UnitName>, Edge)>,
    /// Steps of a later ring: with what they need.
    later: Vec<(Option<UnitName>, Edge, &'static [&'static str])>,
    boot: Boot,
}

impl Walk<'_> {
    /// PID 1's choice (`main.c`, `do_queue_default_job`): `default.target`, or `rescue.target` when it cannot be loaded;
    /// an offline update goes first (systemd.offline-updates(7)).
    fn start(&mut self) {
        let name = |text: &str| UnitName::parse(text);
        let update = ["system-update", "etc/system-update"].iter().find(|p| self.set.tree.get(&path(p)).is_some());
        if let (Some(update), Some(target)) = (update, name("system-update.target")) {
            let place = format!("/{update} is there");
            self.queue.push_back((None, Edge { kind: EdgeKind::Default, to: target, place }));
        }
        let Some(default) = name("default.target") else { return };
        let unit = self.set.load(&default);
        let fallback = name("rescue.target").filter(|_| !can_start(&unit));
        let place = match (&unit.load, &unit.fragment) {
            (Load::Masked(path), _) => format!("default.target is masked by {path}, so PID 1 starts rescue.target"),
            (Load::Loaded, Some(fragment)) => {
                let link = self.set.directories.iter().map(|d| d.join("default.target"));
                let found = link.into_iter().find(|p| self.set.tree.get(p).is_some());
                let found = found.map(|p| p.display()).unwrap_or_default();
                let end = follow(self.set.tree, fragment).unwrap_or_else(|| fragment.clone());
                match found == end.display() {
                    true => found,
                    false => format!("{found} -> {} ({end})", unit.id),
                }
            }
            _ => "there is no default.target, so PID 1 starts rescue.target".to_owned(),
        };
        self.boot.default = place.clone();
        let to = fallback.unwrap_or(default);
        self.queue.push_back((None, Edge { kind: EdgeKind::Default, to, place }));
    }

    /// What is active from the start pulls nothing in, since nothing starts it, but holds up what it upholds.
    fn uphold(&mut self) {
        for unit in self.set.active_from_the_start() {
            let all = edges(self.set, &unit, &mut self.boot.unresolved);
            for edge in all.into_iter().filter(|edge| edge.kind == EdgeKind::Upholds) {
                *self.boot.looked_at.entry(edge.kind).or_default() += 1;
                self.queue.push_back((Some(unit.id.clone()), edge));
            }
        }
    }

    /// Walks the outer rings: first what is activated, then what commands start.
    fn beyond(&mut self) {
        for ring in [Strength::Activates, Strength::Commands] {
            self.ring = ring;
            loop {
                let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.later)
                    .into_iter()
                    .partition(|(_, edge, needs)| edge.kind.strength() <= ring && self.works(needs));
                self.later = later;
                if now.is_empty() {
                    break;
                }
                self.queue.extend(now.into_iter().map(|(from, edge, _)| (from, edge)));
                self.run();
            }
        }
    }

    fn works(&self, needs: &[&str]) -> bool {
        let reached = |name: &&str| {
            let Some(name) = UnitName::parse(name) else { return false };
            match name.is_template() {
                true => self.boot.reached.keys().any(|unit| unit.template().as_ref() == Some(&name)),
                false => self.boot.reached.contains_key(&self.set.canonical(&name)),
            }
        };
        needs.is_empty() || needs.iter().any(reached)
    }

    fn run(&mut self) {
        while let Some((from, edge)) = self.queue.pop_front() {
            let id = self.set.canonical(&edge.to);
            let reach = Reach { from, edge, strength: self.ring };
            self.boot.ways.entry(id.clone()).or_default().push(reach.clone());
            if self.boot.reached.contains_key(&id) {
                continue;
            }
            let unit = self.set.load(&reach.edge.to);
            if !can_start(&unit) {
                if matches!(unit.load, Load::Masked(_)) {
                    self.boot.masked.insert(id);
                }
                continue;
            }
            self.boot.reached.insert(id.clone(), reach);
            let mut next = edges(self.set, &unit, &mut self.boot.unresolved);
            next.extend(self.commands(&unit));
            for edge in next {
                *self.boot.looked_at.entry(edge.kind).or_default() += 1;
                match edge.kind.strength() {
                    Strength::Never => self.boot.requisites.push((id.clone(), edge)),
                    strength if strength <= self.ring => self.queue.push_back((Some(id.clone()), edge)),
                    _ => self.later.push((Some(id.clone()), edge, &[])),
                }
            }
            self.boot.units.insert(id, unit);
        }
    }

    /// Commands of a unit's `Exec…=` lines and of the scripts that these run.
    fn commands(&self, unit: &Unit) -> Vec<Edge> {
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        for key in ["ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost", "ExecStop", "ExecStopPost"] {
            for section in ["Service", "Socket"] {
                for (file, assignment) in unit.values(section, key) {
                    let place = Source::Whole(format!("{file}:{}: {key}=", assignment.line));
                    self.text(Some(unit), &assignment.value, &place, 0, &mut seen, &mut all);
                }
            }
        }
        if let Load::SysV(script) = &unit.load {
            self.script(Some(unit), script, 0, &mut seen, &mut all);
        }
        all
    }

    /// Commands of a text, and of the scripts that it runs. Of a unit's own text, its own program is no way in.
    fn text(
        &self,
        unit: Option<&Unit>,
        text: &str,
        place: &Source,
        depth: usize,
        seen: &mut BTreeSet<TreePath>,
        all: &mut Vec<Edge>,
    ) {
        let mut add = |to: &UnitName, line: usize, text: &str| {
            all.push(Edge { kind: EdgeKind::Command, to: to.clone(), place: format!("{}{text}", place.at(line)) });
        };
        for start in commands::starts(text) {
            add(&start.unit, start.line, &start.text);
        }
        let mut scripts = Vec::new();
        for Run { line, program } in commands::runs(text) {
            let end = TreePath::parse(program).ok().filter(|_| program.starts_with('/'));
            let end = end.and_then(|path| follow(self.set.tree, &path));
            let to = match &end {
                Some(end) => self.programs.at(self.set.tree, end),
                None => self.programs.called(program),
            };
            match (to, end) {
                (Some(to), _) if unit.is_none_or(|unit| unit.id != *to) => add(to, line, program),
                (None, Some(end)) => scripts.push(end),
                _ => {}
            }
        }
        for script in scripts {
            self.script(unit, &script, depth, seen, all);
        }
    }

    fn script(
        &self,
        unit: Option<&Unit>,
        script: &TreePath,
        depth: usize,
        seen: &mut BTreeSet<TreePath>,
        all: &mut Vec<Edge>,
    ) {
        let Some(end) = follow(self.set.tree, script) else { return };
        let Some(Kind::File(data)) = self.set.tree.get(&end).map(|e| &e.kind) else { return };
        // A reader of a stream keeps what lies in places of scripts; the rest is programs and data.
        let readable = data.len <= MAX_SCRIPT && data.place != Place::Dropped && is_script_place(&end);
        if depth >= MAX_DEPTH || !readable || !seen.insert(end.clone()) {
            return;
        }
        let Some(text) = self.set.tree.read(data).ok().and_then(|b| String::from_utf8(b).ok()) else { return };
        self.text(unit, &text, &Source::Lines(end), depth + 1, seen, all);
    }
}

/// Places of scripts of the image's own and of the administrator's. What Debian ships elsewhere starts units by units.
pub fn is_script_place(path: &TreePath) -> bool {
    const PLACES: [&str; 9] =
        ["etc/", "usr/local/", "opt/", "srv/", "root/", "home/", "usr/lib/fitout/", "usr/libexec/", "var/lib/misc/"];
    PLACES.iter().any(|place| path.as_bytes().starts_with(place.as_bytes()))
}

impl Boot {
    /// The route that ends in a step, one line each, from PID 1 on.
    pub fn route(&self, way: &Reach) -> Vec<String> {
        let mut lines = Vec::new();
        let mut at = Some(way);
        while let Some(reach) = at {
            let from = reach.from.as_ref().map_or_else(|| origin(reach.edge.kind).to_owned(), UnitName::to_string);
            lines.push(format!("{from} {} {} ({})", reach.edge.kind.verb(), reach.edge.to, reach.edge.place));
            at = reach.from.as_ref().and_then(|id| self.reached.get(id));
        }
        lines.reverse();
        lines
    }

    /// The units on a route, the last one first; not the unit that the step itself leads to.
    pub fn origins(&self, way: &Reach) -> Vec<UnitName> {
        let mut found = Vec::new();
        let mut at = way.from.as_ref();
        while let Some(id) = at {
            found.push(id.clone());
            at = self.reached.get(id).and_then(|r| r.from.as_ref());
        }
        found
    }

    /// How many units are reached in this ring.
    pub fn count(&self, strength: Strength) -> usize {
        self.reached.values().filter(|r| r.strength == strength).count()
    }
}

/// What stands at the start of a route without a unit.
fn origin(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Bus => "the system bus",
        EdgeKind::Device => "udev",
        EdgeKind::Generator => "systemd-fstab-generator",
        EdgeKind::Login => "systemd-logind",
        EdgeKind::Command => "a hook",
        _ => "PID 1",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    fn reach(files: &[(&str, &str)], unit: &str) -> Option<(Strength, usize)> {
        let tree = tree(files);
        let set = UnitSet::new(&tree);
        let mut programs = Programs::default();
        programs.add(&tree, path("usr/bin/x"), UnitName::parse("x.service").unwrap());
        let boot = boot(&set, &programs);
        let unit = UnitName::parse(unit).unwrap();
        boot.reached.get(&unit).map(|r| (r.strength, boot.route(r).len()))
    }

    #[test]
    fn rings() {
        let base: &[(&str, &str)] = &[
            ("/usr/lib/systemd/system/default.target", "-> graphical.target"),
            ("/usr/lib/systemd/system/graphical.target", "[Unit]\nRequires=multi-user.target"),
            ("/usr/lib/systemd/system/multi-user.target", "[Unit]\nWants=timers.target t.timer f.service c.service"),
            ("/usr/lib/systemd/system/rescue.target", "[Unit]\nWants=r.service"),
            ("/usr/lib/systemd/system/r.service", "[Service]\nExecStart=/r"),
            ("/usr/lib/systemd/system/x.service", "[Service]\nExecStart=/usr/bin/x"),
            ("/usr/bin/x", "ELF"),
            ("/usr/lib/systemd/system/t.timer", "[Timer]\nOnBootSec=1\nUnit=y.service"),
            ("/usr/lib/systemd/system/y.service", "[Service]\nExecStart=/y"),
            ("/usr/lib/systemd/system/f.service", "[Unit]\nOnFailure=z.service\n[Service]\nExecStart=/opt/run.sh"),
            ("/usr/lib/systemd/system/z.service", "[Unit]\nWants=w.service\n[Service]\nExecStart=/z"),
            ("/usr/lib/systemd/system/w.service", "[Service]\nExecStart=/w"),
            ("/opt/run.sh", "#!/bin/sh\n/opt/more.sh"),
            ("/opt/more.sh", "#!/bin/sh\nsystemctl start s"),
            ("/usr/lib/systemd/system/s.service", "[Service]\nExecStart=/s"),
            ("/usr/lib/systemd/system/c.service", "[Service]\nExecStart=/bin/sh -c 'exec /usr/bin/x --flag'"),
        ];
        let table = [
            ("multi-user.target", Some((Strength::Starts, 2))),
            ("y.service", Some((Strength::Activates, 4))),
            ("w.service", Some((Strength::Activates, 5))),
            ("s.service", Some((Strength::Commands, 4))),
            ("x.service", Some((Strength::Commands, 4))),
            ("r.service", None),
        ];
        for (unit, want) in table {
            assert_eq!(reach(base, unit), want, "{unit}");
        }
        let missing: Vec<(&str, &str)> = base.iter().skip(1).copied().collect();
        assert_eq!(reach(&missing, "r.service"), Some((Strength::Starts, 2)));
        let mut masked = base.to_vec();
        masked.push(("/etc/systemd/system/default.target", "-> /dev/null"));
        assert_eq!(reach(&masked, "r.service"), Some((Strength::Starts, 2)));
    }
}
