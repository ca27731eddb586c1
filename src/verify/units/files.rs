//! Unit files are whole: they parse, they were read, and what they run is there.

use std::collections::BTreeSet;

use super::conditions;
use super::facts::Facts;
use crate::finding::{Finding, Rule, Severity};
use crate::systemd::edges::Strength;
use crate::systemd::name::UnitName;
use crate::systemd::search::follow;
use crate::systemd::unit_file::{UnitFile, words};
use crate::systemd::units::{Load, Unit, unit_at};
use crate::tree::{Kind, TreePath};

/// Lines that systemd ignores.
pub static SYNTAX: Rule = Rule {
    code: "unit-syntax",
    family: "units",
    severity: Severity::Warning,
    summary: "systemd would ignore a line of a unit, drop-in or preset file",
    explanation: "\
systemd skips what it does not understand with a line in the journal and goes on, so a slip of the pen switches a setting
off without an error (systemd.syntax(7)): a header without `]`, a line without `=`, a setting before the first section, a
section that its type of unit does not have, a preset line with another verb than `enable`, `disable` or `ignore`.",
};

/// Contents that were not kept.
pub static UNREADABLE: Rule = Rule {
    code: "unit-unreadable",
    family: "units",
    severity: Severity::Error,
    summary: "a unit file could not be read, so the proof has a hole",
    explanation: "\
The proof reads every unit file and drop-in. One that is larger than 1 MiB, or whose content the archive does not give,
could name anything.",
};

/// Programs.
pub static EXECUTABLE: Rule = Rule {
    code: "exec-missing",
    family: "units",
    severity: Severity::Error,
    summary: "a unit runs a program that is not in the image or not executable",
    explanation: "\
Looked at are the `Exec…=` lines of units that the overlays bring or change, and of units that start at boot. Links are
followed inside the image. A line with the prefix `-`, and a unit with a condition on the program, may lack it; so may a
unit with a condition that this image never meets (`/lib/modules` where the kernel is the host's).",
};

/// Directories in which a program without a path is looked up (systemd.exec(5), "Binary search path").
const SEARCH_PATH: [&str; 6] = ["usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"];

/// Applies the rules.
pub fn check(facts: &Facts, out: &mut Vec<Finding>) {
    syntax(facts, out);
    let own = own_units(facts);
    for unit in &own {
        unreadable(unit, out);
    }
    for (id, unit) in &facts.boot.units {
        if !own.iter().any(|o| o.id == *id) {
            unreadable(unit, out);
        }
    }
    let starting = facts.boot.units.iter().filter(|(id, _)| {
        facts.boot.reached.get(*id).is_some_and(|r| r.strength == Strength::Starts) && !own.iter().any(|o| o.id == **id)
    });
    for unit in own.iter().chain(starting.map(|(_, unit)| unit)) {
        programs(facts, unit, out);
    }
}

/// Units that the ledger names: their files, and those with a drop-in from an overlay.
fn own_units(facts: &Facts) -> Vec<Unit> {
    let mut names: BTreeSet<UnitName> = facts.startable().map(|s| s.unit.id.clone()).collect();
    for path in facts.image.manifest.iter().flat_map(|m| m.ledger.records.keys()) {
        let Ok(path) = TreePath::parse(path) else { continue };
        let Some(directory) = facts.set.directories.iter().find(|d| path.is_below(d)) else { continue };
        let below = &path.as_bytes()[directory.as_bytes().len() + 1..];
        let first = below.split(|b| *b == b'/').next().unwrap_or_default();
        let name = std::str::from_utf8(first).unwrap_or_default();
        names.extend(UnitName::parse(name.strip_suffix(".d").unwrap_or(name)));
    }
    names.iter().map(|name| facts.set.load(name)).filter(|unit| unit.load == Load::Loaded).collect()
}

fn unreadable(unit: &Unit, out: &mut Vec<Finding>) {
    for (path, reason) in &unit.unreadable {
        let message = format!("{path} of `{}` was not read: {reason}", unit.id);
        out.push(UNREADABLE.finding(path.display(), message).help("make it a text file of less than 1 MiB"));
    }
}

/// Every unit file and drop-in of the unit directories, and presets.
fn syntax(facts: &Facts, out: &mut Vec<Finding>) {
    let tree = &facts.image.tree;
    for directory in &facts.set.directories {
        for (path, entry) in tree.below(directory) {
            let Kind::File(data) = &entry.kind else { continue };
            let Some(kind) = kind_of(directory, path) else { continue };
            let Ok(bytes) = tree.read(data) else { continue };
            let file = UnitFile::parse(&bytes);
            for defect in &file.defects {
                out.push(ignored(path.display(), format!("line {}: {}", defect.line, defect.kind)));
            }
            for section in file.sections.iter().filter(|s| !has_section(&kind, &s.name)) {
                let message = format!("line {}: a {kind} unit has no section [{}]", section.line, section.name);
                out.push(ignored(path.display(), message));
            }
        }
    }
    for defect in &facts.presets.defects {
        out.push(ignored("presets".to_owned(), defect.clone()));
    }
}

fn ignored(subject: String, message: String) -> Finding {
    SYNTAX.finding(subject, message).help("systemd ignores it; mend or remove it")
}

/// The type of unit that a file of a unit directory is about.
fn kind_of(directory: &TreePath, path: &TreePath) -> Option<String> {
    let parent = path.parent()?;
    if parent == *directory {
        return unit_at(path).map(|unit| unit.kind().to_owned());
    }
    let name = String::from_utf8_lossy(parent.file_name()).into_owned();
    let owner = name.strip_suffix(".d").filter(|_| path.file_name().ends_with(b".conf"))?;
    let kind = owner.rsplit('.').next().unwrap_or(owner);
    UnitName::parse(&format!("x.{kind}")).map(|_| kind.to_owned())
}

fn has_section(kind: &str, section: &str) -> bool {
    let own = match kind {
        "service" => "Service",
        "socket" => "Socket",
        "mount" => "Mount",
        "automount" => "Automount",
        "swap" => "Swap",
        "timer" => "Timer",
        "path" => "Path",
        "slice" => "Slice",
        "scope" => "Scope",
        _ => "Unit",
    };
    ["Unit", "Install", own].contains(&section) || section.starts_with("X-")
}

fn programs(facts: &Facts, unit: &Unit, out: &mut Vec<Finding>) {
    if conditions::never_holds(&facts.image.tree, unit) {
        return;
    }
    for key in ["ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost"]
    {
        for (file, assignment) in unit.values("Service", key) {
            let Some(word) = words(&assignment.value).into_iter().next() else { continue };
            let program = word.trim_start_matches(['-', '@', '+', '!', ':', '|']);
            let optional = word[..word.len() - program.len()].contains('-');
            let Ok(program) = unit.id.expand(program) else { continue };
            if optional || program.contains('$') || conditional(facts, unit, &program) {
                continue;
            }
            let problem = match found(facts, &program) {
                Found::Executable => continue,
                Found::NotExecutable => "is not executable",
                Found::No => "is not in the image",
            };
            let message = format!("`{}` cannot run: {program} {problem} ({file}:{}: {key}=)", unit.id, assignment.line);
            out.push(
                EXECUTABLE
                    .finding(unit.id.as_str(), message)
                    .help("put the program into the image, or mend the path and mode"),
            );
        }
    }
}

/// True when a condition of the unit skips it where the program is missing, or skips it in this image whatever happens:
/// a path that is not there and that nothing makes at boot, such as `/lib/modules` where the kernel is the host's.
fn conditional(facts: &Facts, unit: &Unit, program: &str) -> bool {
    let keys = [
        "ConditionPathExists",
        "ConditionPathExistsGlob",
        "ConditionPathIsDirectory",
        "ConditionFileIsExecutable",
        "ConditionFileNotEmpty",
        "ConditionDirectoryNotEmpty",
    ];
    let values = keys.iter().flat_map(|key| unit.values("Unit", key));
    values.into_iter().any(|(_, a)| {
        a.value.trim_start_matches(['|', '!']) == program
            || (!a.value.starts_with(['|', '!']) && absent(facts, &a.value))
    })
}

/// True when the directory up to the first specifier or wildcard of a path is not in the image, nor made at boot.
fn absent(facts: &Facts, path: &str) -> bool {
    const MADE: [&str; 6] = ["/run", "/dev", "/proc", "/sys", "/var", "/tmp"];
    let literal = path.split(['%', '*', '?', '[']).next().unwrap_or_default();
    let directory = literal.rsplit_once('/').map_or("", |(directory, _)| directory);
    let made = MADE.iter().any(|made| directory == *made || directory.starts_with(&format!("{made}/")));
    !directory.is_empty() && !made && TreePath::parse(directory).is_ok_and(|d| follow(&facts.image.tree, &d).is_none())
}

enum Found {
    Executable,
    NotExecutable,
    No,
}

fn found(facts: &Facts, program: &str) -> Found {
    let tree = &facts.image.tree;
    let candidates: Vec<TreePath> = match program.starts_with('/') {
        true => TreePath::parse(program).into_iter().collect(),
        false => SEARCH_PATH.iter().filter_map(|d| TreePath::parse(format!("{d}/{program}")).ok()).collect(),
    };
    let entry = candidates.iter().filter_map(|path| follow(tree, path)).find_map(|end| tree.get(&end));
    match entry {
        Some(entry) if matches!(entry.kind, Kind::File(_)) && entry.mode & 0o111 != 0 => Found::Executable,
        Some(_) => Found::NotExecutable,
        None => Found::No,
    }
}
