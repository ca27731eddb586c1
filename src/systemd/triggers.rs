//! What starts units from outside the graph of units: D-Bus names, udev rules and devices, log-ins,
//! signals, cron tables and hooks.

use super::boot::Source;
use super::edges::{Edge, EdgeKind};
use super::name::UnitName;
use super::search::{existing, follow, merged_files, path};
use super::unit_file::{UnitFile, words};
use super::units::UnitSet;
use crate::tree::{Entry, Kind, Tree, TreePath};

/// Something that starts a unit, and the unit without which it does not work.
#[derive(Debug, Clone)]
pub struct Trigger {
    /// What is started, or what is run.
    pub what: What,
    /// One of these must be started for it to work; empty: always works.
    pub needs: &'static [&'static str],
}

/// What a trigger does.
#[derive(Debug, Clone)]
pub enum What {
    /// Starts a unit.
    Unit(Edge),
    /// Runs the commands of a text.
    Text {
        /// Where it stands.
        place: Source,
        /// It.
        text: String,
    },
}

const BUS: &[&str] = &["dbus.socket", "dbus.service", "dbus-broker.service"];
const UDEV: &[&str] = &["systemd-udevd.service", "systemd-udevd-kernel.socket", "systemd-udevd-control.socket"];
const LOGIN: &[&str] = &["systemd-logind.service"];
const CRON: &[&str] = &["cron.service", "crond.service", "cronie.service", "anacron.service", "cron.target"];
const NETWORK: &[&str] = &["networking.service", "ifup@.service"];
const MANAGER: &[&str] = &["NetworkManager.service", "NetworkManager-dispatcher.service"];
const DISPATCHER: &[&str] = &["networkd-dispatcher.service"];
const WIREGUARD: &[&str] = &["wg-quick@.service", "wg-quick.target"];
const LOGROTATE: &[&str] = &["logrotate.service"];
const APT: &[&str] = &["apt-daily.service", "apt-daily-upgrade.service"];
const MODULES: &[&str] = &["systemd-modules-load.service", "systemd-udevd.service"];
const SSH: &[&str] = &["ssh.service", "ssh.socket", "sshd.service"];

/// Places of texts whose commands something runs: a file or a directory, and what runs it.
pub const HOOKS: [(&str, &[&str]); 34] = [
    ("etc/crontab", CRON),
    ("etc/anacrontab", CRON),
    ("etc/cron.d", CRON),
    ("etc/cron.hourly", CRON),
    ("etc/cron.daily", CRON),
    ("etc/cron.weekly", CRON),
    ("etc/cron.monthly", CRON),
    ("var/spool/cron/crontabs", CRON),
    ("etc/network/if-up.d", NETWORK),
    ("etc/network/if-pre-up.d", NETWORK),
    ("etc/network/interfaces", NETWORK),
    ("etc/network/interfaces.d", NETWORK),
    ("etc/dhcp/dhclient-enter-hooks.d", NETWORK),
    ("etc/dhcp/dhclient-exit-hooks.d", NETWORK),
    ("etc/NetworkManager/dispatcher.d", MANAGER),
    ("etc/networkd-dispatcher/routable.d", DISPATCHER),
    ("etc/networkd-dispatcher/configured.d", DISPATCHER),
    // PostUp= and its like.
    ("etc/wireguard", WIREGUARD),
    ("etc/logrotate.conf", LOGROTATE),
    ("etc/logrotate.d", LOGROTATE),
    ("etc/apt/apt.conf", APT),
    ("etc/apt/apt.conf.d", APT),
    // `install` lines.
    ("etc/modprobe.d", MODULES),
    ("usr/lib/modprobe.d", MODULES),
    // Whoever logs in.
    ("etc/profile", &[]),
    ("etc/profile.d", &[]),
    ("etc/bash.bashrc", &[]),
    ("etc/pam.d", &[]),
    ("root/.profile", &[]),
    ("root/.bash_profile", &[]),
    ("root/.bash_login", &[]),
    ("root/.bashrc", &[]),
    ("etc/ssh/sshrc", SSH),
    ("root/.ssh/rc", SSH),
];

/// Directories of units of users' managers (systemd.unit(5), "Unit load path when running in user mode").
const USER_UNITS: [&str; 6] = [
    "etc/systemd/user",
    "usr/local/lib/systemd/user",
    "usr/local/share/systemd/user",
    "root/.config/systemd/user",
    "root/.local/share/systemd/user",
    "etc/xdg/systemd/user",
];

/// Directories of udev rules, highest precedence first (udev(7)).
pub const UDEV_DIRECTORIES: [&str; 4] =
    ["etc/udev/rules.d", "usr/local/lib/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d"];

/// Directories of system bus services, highest precedence first (dbus-daemon(1), `standard_system_servicedirs`).
pub const BUS_DIRECTORIES: [&str; 4] = [
    "etc/dbus-1/system-services",
    "usr/local/share/dbus-1/system-services",
    "usr/share/dbus-1/system-services",
    "lib/dbus-1/system-services",
];

/// All triggers of an image.
pub fn triggers(set: &UnitSet) -> Vec<Trigger> {
    let mut all = Vec::new();
    bus(set.tree, &mut all);
    udev(set.tree, &mut all);
    devices(set, &mut all);
    for name in ["user@1000.service", "user-runtime-dir@1000.service", "user-1000.slice", "autovt@tty2.service"] {
        add(&mut all, LOGIN, EdgeKind::Login, name, "systemd-logind".to_owned());
    }
    for name in ["kbrequest.target", "sigpwr.target"] {
        add(&mut all, &[], EdgeKind::Signal, name, "systemd.special(7)".to_owned());
    }
    hooks(set.tree, &mut all);
    user_units(set.tree, &mut all);
    all
}

fn add(all: &mut Vec<Trigger>, needs: &'static [&'static str], kind: EdgeKind, name: &str, place: String) {
    if let Some(to) = UnitName::parse(name) {
        all.push(Trigger { what: What::Unit(Edge { kind, to, place }), needs });
    }
}

fn text(tree: &Tree, path: &TreePath) -> Option<String> {
    let end = follow(tree, path)?;
    tree.content(&end).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn run(all: &mut Vec<Trigger>, needs: &'static [&'static str], place: Source, text: String) {
    all.push(Trigger { what: What::Text { place, text }, needs });
}

fn bus(tree: &Tree, all: &mut Vec<Trigger>) {
    for path in merged_files(tree, &existing(tree, &BUS_DIRECTORIES), ".service") {
        let Some(text) = text(tree, &path) else { continue };
        let file = UnitFile::parse(text.as_bytes());
        let section = "D-BUS Service";
        let name = file.last(section, "Name").map_or("", |a| a.value.as_str());
        match (file.last(section, "SystemdService"), file.last(section, "Exec")) {
            (Some(unit), _) => {
                let place = format!("{path}:{}: SystemdService={} of the name {name}", unit.line, unit.value);
                add(all, BUS, EdgeKind::Bus, &unit.value, place);
            }
            (None, Some(exec)) => {
                run(all, BUS, Source::Whole(format!("{path}:{}: Exec=", exec.line)), exec.value.clone());
            }
            (None, None) => {}
        }
    }
}

fn udev(tree: &Tree, all: &mut Vec<Trigger>) {
    for path in merged_files(tree, &existing(tree, &UDEV_DIRECTORIES), ".rules") {
        let Some(text) = text(tree, &path) else { continue };
        for (line, rule) in logical_lines(&text) {
            for value in wants_of_rule(&rule) {
                for word in words(&value) {
                    let place = format!("{path}:{line}: SYSTEMD_WANTS {word}");
                    let name = substituted(&word);
                    add(all, UDEV, EdgeKind::Device, &name, place);
                }
            }
            for program in programs_of_rule(&rule) {
                run(all, UDEV, Source::Whole(format!("{path}:{line}: ")), program);
            }
        }
    }
}

/// Rules with continued lines joined, each with its first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let (first, before) = open.take().unwrap_or((index + 1, String::new()));
        match line.strip_suffix('\\') {
            Some(start) => open = Some((first, before + start)),
            None => all.push((first, before + line)),
        }
    }
    all.extend(open);
    all
}

/// Values that a udev rule assigns to `ENV{SYSTEMD_WANTS}`.
fn wants_of_rule(rule: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, key) in rule.match_indices("ENV{SYSTEMD_WANTS}") {
        let rest = rule[at + key.len()..].trim_start();
        let assigned = ["+=", ":=", "="].iter().find_map(|op| rest.strip_prefix(op));
        let value = assigned.filter(|_| !rest.starts_with("==")).map(|r| r.trim_start().trim_start_matches('e'));
        if let Some(value) = value.and_then(|v| v.strip_prefix('"')).and_then(|v| v.split('"').next()) {
            found.push(value.to_owned());
        }
    }
    found
}

/// Command lines that a udev rule runs: `RUN`, `PROGRAM`, `IMPORT{program}`.
fn programs_of_rule(rule: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in rule.split(',') {
        let Some((key, value)) = part.split_once('=') else { continue };
        let key = key.trim().trim_end_matches(['+', ':', '=', '!']);
        if ["RUN", "RUN{program}", "PROGRAM", "IMPORT{program}"].contains(&key) {
            let value = value.trim_start_matches(['=', ' ', 'e']).trim_matches('"');
            // A program without a path lies in udev's own directory.
            found.push(value.to_owned());
        }
    }
    found
}

/// A name of a udev rule with what only the device knows replaced: `x@%k.service` is `x@device.service`, and a bare
/// template gets the device as its instance.
fn substituted(word: &str) -> String {
    match word.split_once('@') {
        Some((prefix, rest)) if rest.starts_with('.') || rest.contains(['%', '$']) => {
            let kind = rest.rsplit('.').next().unwrap_or("service");
            format!("{prefix}@device.{kind}")
        }
        _ => word.to_owned(),
    }
}

/// Device units with dependencies: a device that appears starts what its unit wants.
fn devices(set: &UnitSet, all: &mut Vec<Trigger>) {
    let mut names: Vec<UnitName> = set.all_names().filter(|n| n.kind() == "device").cloned().collect();
    for directory in &set.directories {
        for (at, entry) in set.tree.children(directory) {
            let Ok(name) = std::str::from_utf8(at.file_name()) else { continue };
            let stem = [".wants", ".requires", ".upholds", ".d"].iter().find_map(|s| name.strip_suffix(s));
            let is_directory = entry.is_directory() || matches!(entry.kind, Kind::Symlink(_));
            if let (true, Some(stem)) = (is_directory, stem) {
                // `device.wants` is about every device.
                names.extend(UnitName::parse(if stem == "device" { "any.device" } else { stem }));
            }
        }
    }
    for name in names.iter().filter(|n| n.kind() == "device") {
        add(all, UDEV, EdgeKind::Device, name.as_str(), "a device appears".to_owned());
    }
}

/// Commands of units of users' managers, which run when a user logs in, or at boot for one that lingers.
fn user_units(tree: &Tree, all: &mut Vec<Trigger>) {
    // Without libpam-systemd no manager of a user starts.
    if !tree.entries.keys().any(|path| path.as_bytes().ends_with(b"/security/pam_systemd.so")) {
        return;
    }
    for directory in existing(tree, &USER_UNITS) {
        for (path, _) in tree.below(&directory) {
            let name = path.file_name();
            if !(name.ends_with(b".service") || name.ends_with(b".conf")) {
                continue;
            }
            let Some(text) = text(tree, path) else { continue };
            let file = UnitFile::parse(text.as_bytes());
            for exec in file.assignments.iter().filter(|a| a.section == "Service" && a.key.starts_with("Exec")) {
                let place = Source::Whole(format!("{path}:{}: {}=", exec.line, exec.key));
                run(all, LOGIN, place, exec.value.clone());
            }
        }
    }
}

fn hooks(tree: &Tree, all: &mut Vec<Trigger>) {
    for (place, needs) in HOOKS {
        let place = path(place);
        let Some(end) = follow(tree, &place) else { continue };
        let files: Vec<TreePath> = match tree.get(&end) {
            Some(entry) if entry.is_directory() => tree.children(&end).map(|(p, _)| p.clone()).collect(),
            Some(Entry { kind: Kind::File(_), .. }) => vec![end],
            _ => continue,
        };
        for file in files {
            if let Some(text) = text(tree, &file) {
                run(all, needs, Source::Lines(file), text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn triggers_of_every_kind() {
        let tree = tree(&[
            (
                "/usr/share/dbus-1/system-services/x.service",
                "[D-BUS Service]\nName=org.x\nExec=/bin/false\nSystemdService=x.service",
            ),
            ("/usr/share/dbus-1/system-services/y.service", "[D-BUS Service]\nName=org.y\nExec=/bin/systemctl start y"),
            (
                "/etc/udev/rules.d/1.rules",
                "# no\nACTION==\"add\", \\\n  ENV{SYSTEMD_WANTS}+=\"a.service b@%k.service c@.service\"\n\
                 ENV{SYSTEMD_WANTS}==\"no.service\", RUN+=\"/bin/systemctl start r\"\n",
            ),
            ("/etc/systemd/system/dev-sda.device.wants/d.service", "-> ../d.service"),
            ("/etc/cron.d/c", "* * * * * root systemctl restart c\n"),
        ]);
        let set = UnitSet::new(&tree);
        let got: Vec<String> = triggers(&set)
            .iter()
            .filter_map(|t| match &t.what {
                What::Unit(edge) if matches!(edge.kind, EdgeKind::Login | EdgeKind::Signal) => None,
                What::Unit(edge) => Some(format!("{:?} {} {}", edge.kind, edge.to, edge.place)),
                What::Text { place: Source::Whole(place), text } => Some(format!("Run {place}{text}")),
                What::Text { place: Source::Lines(path), text } => Some(format!("Run {path} {}", text.trim())),
            })
            .collect();
        assert_eq!(
            got,
            [
                "Bus x.service /usr/share/dbus-1/system-services/x.service:4: SystemdService=x.service of the name org.x",
                "Run /usr/share/dbus-1/system-services/y.service:3: Exec=/bin/systemctl start y",
                "Device a.service /etc/udev/rules.d/1.rules:2: SYSTEMD_WANTS a.service",
                "Device b@device.service /etc/udev/rules.d/1.rules:2: SYSTEMD_WANTS b@%k.service",
                "Device c@device.service /etc/udev/rules.d/1.rules:2: SYSTEMD_WANTS c@.service",
                "Run /etc/udev/rules.d/1.rules:4: /bin/systemctl start r",
                "Device dev-sda.device a device appears",
                "Run /etc/cron.d/c * * * * * root systemctl restart c",
            ]
        );
    }
}
