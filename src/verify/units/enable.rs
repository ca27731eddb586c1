//! Claim 2: nothing would enable what is stopped; and the machine id, on which the first boot depends.

use std::collections::BTreeSet;

use super::facts::{Facts, MachineId, Subject};
use crate::finding::{Finding, Rule, Severity};
use crate::systemd::install;
use crate::systemd::name::UnitName;
use crate::systemd::preset::Preset;
use crate::systemd::search::{self, path};
use crate::systemd::sysv::{scripts, start_links};
use crate::systemd::units::{Load, unit_at};
use crate::tree::{Kind, TreePath};

/// `/etc/machine-id`.
pub static MACHINE_ID: Rule = Rule {
    code: "machine-id",
    family: "units",
    severity: Severity::Error,
    summary: "`/etc/machine-id` is not present and empty",
    explanation: "\
An empty file gets an id at boot, and enables nothing. One that holds only a line end is no empty file: systemd-nspawn
and machinectl refuse to boot it. A missing file or `uninitialized` makes the boot a first boot: PID 1
runs preset-all, which on Debian enabled 22 units and left the system degraded (machine-id(5), First Boot Semantics). A
file with an id gives every machine of that image the same identity, DHCP lease and journal.",
};

/// An alias link.
pub static ALIAS_LEFT: Rule = Rule {
    code: "alias-left",
    family: "units",
    severity: Severity::Warning,
    summary: "an alias link of a stopped unit is left in `/etc/systemd/system`",
    explanation: "\
The package's `[Install] Alias=` made it. It starts nothing, but `systemctl is-enabled` says `enabled` because of it, tools
that enable what was enabled will take it so, and a dependency on the alias leads to the unit.",
};

/// A link in a directory of a unit that does not start.
pub static LINK_LEFT: Rule = Rule {
    code: "enablement-link-left",
    family: "units",
    severity: Severity::Warning,
    summary: "a stopped unit has a link in `.wants/`, `.requires/` or `.upholds/` of a unit that does not start",
    explanation: "\
Nothing follows the link at boot, but `systemctl is-enabled` says `enabled`, and whoever starts the other unit starts this
one too. The handle names its units by `Wants=` in its own file for this reason: a link in `mesh-registry.target.wants/`
makes `is-enabled` say `enabled`, and `systemctl preset` deletes it.",
};

/// S links.
pub static SYSV_LINK: Rule = Rule {
    code: "sysv-start-link",
    family: "units",
    severity: Severity::Warning,
    summary: "a SysV S link of a stopped unit is left; it starts the script when the native unit goes",
    explanation: "\
While a native unit of that name or alias is there, systemd-sysv-generator ignores the script. When the unit file is
removed or renamed by an upgrade, the script becomes a unit and the S link starts it at boot. K links in place of S links
also keep a package's postinst (`update-rc.d defaults`) from making S links again.",
};

/// Presets enable it.
pub static PRESET: Rule = Rule {
    code: "preset-enables",
    family: "units",
    severity: Severity::Warning,
    summary: "`systemctl preset`, an upgrade's postinst or a first boot would enable a stopped unit",
    explanation: "\
Over all preset files in order of their names, the first line that matches a unit decides; where none matches, the unit is
enabled (systemd.preset(5)). Debian's postinst (deb-systemd-helper) and a first boot follow presets. A `disable` line for
the unit must be the first to match: `/etc/systemd/system-preset/00-fitout.preset` sorts before what packages ship.",
};

/// Another unit's `Also=`.
pub static ALSO: Rule = Rule {
    code: "also-enables",
    family: "units",
    severity: Severity::Warning,
    summary: "enabling another unit enables a stopped one by `Also=`",
    explanation: "\
`Also=` enables its units whenever the unit that has it is enabled, whatever presets say of them (systemd.unit(5)).
Remove the line, or mask what it names.",
};

/// Applies the rules.
pub fn check(facts: &Facts, out: &mut Vec<Finding>) {
    machine_id(facts, out);
    for subject in facts.startable() {
        for alias in aliases_left(facts, subject) {
            let message = format!("{alias} is an alias of `{}` and makes it count as enabled", subject.name);
            out.push(ALIAS_LEFT.finding(subject.name.as_str(), message).help("remove the link"));
        }
        for link in links_left(facts, subject) {
            let message =
                format!("{link} makes `{}` count as enabled, though nothing follows it at boot", subject.name);
            out.push(LINK_LEFT.finding(subject.name.as_str(), message).help("remove the link"));
        }
        let links = sysv_links(facts, subject);
        if let Some(first) = links.first() {
            let message = format!("{first} starts `{}` at boot as soon as its unit file is gone", subject.name);
            let mut finding = SYSV_LINK.finding(subject.name.as_str(), message).help("put K links in place of S links");
            finding.notes = links.iter().map(|link| format!("S link {link}")).collect();
            out.push(finding);
        }
        let preset = facts.presets.of(&subject.unit.id);
        if preset.enables() && install::is_installable(&subject.unit) {
            let trigger = match preset {
                Preset::Enable(Some(line)) => format!("{} is the first line that matches", line.place()),
                _ => "no preset line matches, and then systemd enables".to_owned(),
            };
            let message =
                format!("`systemctl preset`, an upgrade or a first boot would enable `{}`: {trigger}", subject.name);
            let help = format!(
                "let `disable {}` stand in a file that sorts first in /etc/systemd/system-preset",
                subject.name
            );
            out.push(PRESET.finding(subject.name.as_str(), message).help(help));
        }
        for (place, other) in also(facts, subject) {
            let message = format!("enabling `{other}` would enable `{}` by {place}", subject.name);
            out.push(ALSO.finding(subject.name.as_str(), message).help("remove the `Also=`"));
        }
    }
}

fn machine_id(facts: &Facts, out: &mut Vec<Finding>) {
    let message = match &facts.machine_id {
        MachineId::Empty => return,
        MachineId::Missing => {
            "/etc/machine-id is missing, so the next boot is a first boot and enables units by preset".to_owned()
        }
        MachineId::Uninitialized => {
            "/etc/machine-id says `uninitialized`, so the next boot is a first boot and enables units by preset"
                .to_owned()
        }
        MachineId::Set => "/etc/machine-id holds an id, which every machine of this image would share".to_owned(),
        MachineId::Other(reason) => format!("/etc/machine-id is not an empty file: {reason}"),
    };
    out.push(MACHINE_ID.finding("/etc/machine-id", message).help("make it an empty file with mode 0444"));
}

/// Alias links of the administrator's directory.
pub fn aliases_left(facts: &Facts, subject: &Subject) -> Vec<TreePath> {
    let tree = &facts.image.tree;
    let directories = search::existing(tree, &["etc/systemd/system"]);
    let links = directories.iter().flat_map(|d| tree.children(d)).filter(|(_, e)| matches!(e.kind, Kind::Symlink(_)));
    let aliases = links.filter(|(path, _)| {
        unit_at(path).is_some_and(|name| name != subject.unit.id && facts.set.canonical(&name) == subject.unit.id)
    });
    aliases.map(|(path, _)| path.clone()).collect()
}

/// Links in directories of units that are not reached.
pub fn links_left(facts: &Facts, subject: &Subject) -> Vec<TreePath> {
    let tree = &facts.image.tree;
    let mut found = Vec::new();
    // Links that something starting follows are the other claim's.
    let starting = facts.boot.units.values().filter(|unit| !facts.is_subject(&unit.id));
    let mut followed: BTreeSet<&TreePath> =
        starting.flat_map(|unit| unit.links.iter().map(|link| &link.path)).collect();
    let active = facts.set.active_from_the_start();
    followed.extend(active.iter().flat_map(|unit| &unit.links).filter(|l| l.key == "Upholds").map(|link| &link.path));
    for directory in &facts.set.directories {
        for (pulling, _) in tree.children(directory) {
            let name = String::from_utf8_lossy(pulling.file_name()).into_owned();
            let owner = facts.set.link_kinds.iter().find_map(|(suffix, _)| name.strip_suffix(suffix));
            // A handle's link counts too: that it starts is not this claim.
            let of_subject = owner.and_then(UnitName::parse).is_some_and(|owner| facts.is_subject(&owner));
            if owner.is_none() {
                continue;
            }
            let end = search::follow(tree, pulling);
            for (link, entry) in end.iter().flat_map(|end| tree.children(end)) {
                // A link to /dev/null too: nothing follows it, and `is-enabled` goes by its name.
                let is_link = matches!(entry.kind, Kind::Symlink(_));
                let unit = unit_at(link).map(|name| facts.set.canonical(&name));
                let left = of_subject || !followed.contains(link);
                if is_link && left && unit.as_ref() == Some(&subject.unit.id) {
                    found.push(link.clone());
                }
            }
        }
    }
    found
}

/// S links of a unit that shadows a script.
pub fn sysv_links(facts: &Facts, subject: &Subject) -> Vec<TreePath> {
    if subject.unit.load != Load::Loaded {
        return Vec::new();
    }
    let scripts = scripts(&facts.image.tree);
    let links = start_links(&facts.image.tree).into_iter();
    let own = links.filter(|l| scripts.contains_key(&l.unit) && facts.set.canonical(&l.unit) == subject.unit.id);
    own.map(|l| l.path).collect()
}

/// Other units that enable this one, each with the place.
pub fn also(facts: &Facts, subject: &Subject) -> Vec<(String, UnitName)> {
    let mut found = Vec::new();
    for unit in install::installable(&facts.set) {
        if facts.is_subject(&unit.id) {
            continue;
        }
        for (place, name) in install::also(&unit) {
            if facts.set.canonical(&name) == subject.unit.id {
                found.push((place, unit.id.clone()));
            }
        }
    }
    found
}

/// What deb-systemd-helper remembers of a unit; it starts nothing, and a postinst that reads it follows presets.
pub fn helper_state(facts: &Facts, subject: &Subject) -> Vec<TreePath> {
    let root = path("var/lib/systemd/deb-systemd-helper-enabled");
    let below = facts.image.tree.below(&root).filter(|(_, e)| !e.is_directory());
    let own = below.filter(|(path, _)| {
        let name = String::from_utf8_lossy(path.file_name()).into_owned();
        let name = name.strip_suffix(".dsh-also").unwrap_or(&name).to_owned();
        subject.unit.names.iter().any(|n| n.as_str() == name) || subject.name.as_str() == name
    });
    own.map(|(path, _)| path.clone()).collect()
}
