//! Claim 1: what is stopped does not start at boot.

use std::collections::BTreeSet;

use super::facts::{Facts, Subject};
use crate::finding::{Finding, Rule, Severity};
use crate::systemd::boot::{Boot, Reach};
use crate::systemd::edges::{self, Edge, EdgeKind, Strength};
use crate::systemd::search::{self, follow};
use crate::systemd::unit_file::{UnitFile, words};
use crate::tree::{Kind, Tree, TreePath};

/// A dependency starts it.
pub static STARTS_AT_BOOT: Rule = Rule {
    code: "unit-starts-at-boot",
    family: "units",
    severity: Severity::Error,
    summary: "a unit that is declared stopped is started at boot",
    explanation: "\
From `default.target` a chain of dependencies leads to the unit, each of which starts what it names: `Wants=`,
`Requires=`, `BindsTo=`, `Upholds=`, links in `.wants/`, `.requires/` and `.upholds/`, dependencies that systemd adds by
itself, and SysV S links that no native unit shadows (systemd.unit(5), bootup(7)). Aliases, drop-ins for the unit, its
type (`service.d`) and its prefix (`foo-.service.d`), templates and instances are followed in the order of precedence of
the unit directories. Every way in is one finding; its notes are the route.

A node that is stopped by default must not join a registry by being plugged in. Remove the last step of the route, or
what leads to it. A `Wants=` in a drop-in cannot be reset by another drop-in: the line itself must go.",
};

/// Something else starts it.
pub static ACTIVATED: Rule = Rule {
    code: "unit-activated",
    family: "units",
    severity: Severity::Error,
    summary: "a unit that is declared stopped is started by a socket, timer, path, failure, device, bus name or log-in",
    explanation: "\
No dependency starts the unit at boot, but something that is started at boot will start it later: a socket when a client
connects, a timer, a path unit, `OnFailure=` or `OnSuccess=` of another unit, a name on the system bus (`SystemdService=`
in `/usr/share/dbus-1/system-services`), a udev rule that sets `SYSTEMD_WANTS`, or a device's `.wants/`.

A timer of one second is as good as a start at boot, and a connection needs only a curious neighbour. Remove the trigger,
or do not enable the unit that carries it.",
};

/// A text starts it.
pub static COMMAND: Rule = Rule {
    code: "unit-start-command",
    family: "units",
    severity: Severity::Error,
    summary: "a command that runs on the booted system starts or enables a unit that is declared stopped",
    explanation: "\
An `Exec…=` line of a unit that starts, a script that it runs, `/etc/rc.local`, a cron table, a udev rule, a hook of another
program (ifupdown, wg-quick, apt, logrotate, modprobe, PAM), a log-in script or a unit of a user's manager holds `systemctl start`, `enable`, `restart` or the like, `service NAME start`, a call of the manager's `StartUnit`, or runs
the unit's own program. Files of cron and hooks count only when what runs them is started in this image.

This is found by reading text. Where the name is in a variable, every word of the text may be it; a branch that never runs
is reported all the same. Copies of the program, told by their content, count as the program.",
};

/// A generator names it.
pub static GENERATOR: Rule = Rule {
    code: "generator-names-unit",
    family: "units",
    severity: Severity::Error,
    summary: "a generator of the image names a unit that is declared stopped",
    explanation: "\
Generators run before any unit and can write units and links (systemd.generator(7)). What they will write cannot be known
before the boot; one that is not systemd's own and names the unit is taken to start it.",
};

/// A first boot enables it.
pub static FIRST_BOOT: Rule = Rule {
    code: "first-boot-enables",
    family: "units",
    severity: Severity::Error,
    summary: "the first boot enables and starts a unit that is declared stopped",
    explanation: "\
`/etc/machine-id` is missing or says `uninitialized`, so PID 1 takes the next boot for a first boot and enables every unit
that presets do not disable (machine-id(5), systemd.preset(5)), with whatever its `[Install]` says, `Also=` included. With
those links put into the tree, the route in the notes leads to the unit. A unit without any matching preset line is
enabled: Debian ships no `disable *`.

Make `/etc/machine-id` an empty file, and put a `disable` line where it is the first to match.",
};

/// tmpfiles.d makes a start.
pub static TMPFILES: Rule = Rule {
    code: "tmpfiles-starts",
    family: "units",
    severity: Severity::Error,
    summary: "a boot applies tmpfiles.d, and the boot after it starts a unit that is declared stopped",
    explanation: "\
`systemd-tmpfiles-setup.service` makes links (`L`), files (`f`, `w`), copies (`C`) and removals (`r`, `R`) at every boot
(tmpfiles.d(5)). By then the units of this boot are chosen, so what it makes in `/etc/systemd/system` starts nothing yet;
the next boot follows it. The route in the notes is that of the tree after all lines were applied. Remove the line.",
};

/// The unit directories are not the known ones.
pub static SEARCH_PATH: Rule = Rule {
    code: "unit-search-path",
    family: "units",
    severity: Severity::Error,
    summary: "the manager is told to look for units or generators elsewhere",
    explanation: "\
`ManagerEnvironment=` in `system.conf` sets the environment of PID 1 itself (systemd-system.conf(5)), and with
`SYSTEMD_UNIT_PATH`, `SYSTEMD_GENERATOR_PATH` or `SYSTEMD_ENVIRONMENT_GENERATOR_PATH` in it units and generators are
looked for elsewhere. The proof reads the directories of systemd.unit(5) and is void then. Remove the assignment.",
};

/// PID 1 is not systemd.
pub static BOOT_PROGRAM: Rule = Rule {
    code: "boot-program",
    family: "units",
    severity: Severity::Error,
    summary: "`/sbin/init` does not lead to systemd",
    explanation: "\
A machine or container runs `/sbin/init`. Where this is not the link to `/usr/lib/systemd/systemd` that the package
`systemd-sysv` brings, another program decides what starts, and the proof says nothing about it.",
};

/// A `Requisite=` fails.
pub static REQUISITE: Rule = Rule {
    code: "requisite-of-stopped",
    family: "units",
    severity: Severity::Warning,
    summary: "a unit that starts at boot will fail, because it has `Requisite=` on a stopped one",
    explanation: "\
`Requisite=` starts nothing: systemd only looks whether the unit is active, and fails the one that asks when it is not
(systemd.unit(5)). So this is no way into a stopped unit, but the unit that carries it fails at every boot until the
handle is enabled. Use `After=` with `PartOf=` or put the unit under the handle.",
};

/// A name depends on the running system.
pub static UNRESOLVED: Rule = Rule {
    code: "unit-name-unresolved",
    family: "units",
    severity: Severity::Notice,
    summary: "a dependency has a name that only the running system knows",
    explanation: "\
The name holds a specifier such as `%H` (host name) or `%m` (machine id), which is not expanded offline. The route that
it may open was not followed.",
};

/// A generator that is nobody's.
pub static UNKNOWN_GENERATOR: Rule = Rule {
    code: "unknown-generator",
    family: "units",
    severity: Severity::Notice,
    summary: "the image has a generator that is not systemd's own",
    explanation: "\
A generator may write any unit and any link at boot (systemd.generator(7)). Those that systemd ships on Debian are known
and accounted for; this one was only searched for the names of stopped units.",
};

/// Generators that systemd and its Debian packages ship.
const KNOWN_GENERATORS: [&str; 19] = [
    "systemd-bless-boot-generator",
    "systemd-cryptsetup-generator",
    "systemd-debug-generator",
    "systemd-factory-reset-generator",
    "systemd-fstab-generator",
    "systemd-getty-generator",
    "systemd-gpt-auto-generator",
    "systemd-hibernate-resume-generator",
    "systemd-import-generator",
    "systemd-integritysetup-generator",
    "systemd-rc-local-generator",
    "systemd-run-generator",
    "systemd-ssh-generator",
    "systemd-system-update-generator",
    "systemd-sysv-generator",
    "systemd-tpm2-generator",
    "systemd-veritysetup-generator",
    "zram-generator",
    // Of the environment.
    "30-systemd-environment-d-generator",
];

/// Applies the rules.
pub fn check(facts: &Facts, out: &mut Vec<Finding>) {
    for subject in facts.startable() {
        for way in ways(facts, subject) {
            out.push(start(facts, subject, way));
        }
    }
    first_boot(facts, out);
    tmpfiles(facts, out);
    requisites(facts, out);
    for place in &facts.boot.unresolved {
        out.push(UNRESOLVED.finding("default.target", format!("{place} was not followed")));
    }
    generators(facts, out);
    boot_program(facts, out);
    search_path(facts, out);
}

/// The ways into a subject, one a place: a drop-in for every service is one way, by the first service that starts.
/// Those that lead through another subject are that one's.
pub fn ways<'f>(facts: &'f Facts, subject: &Subject) -> Vec<&'f Reach> {
    let all = facts.boot.ways.get(&subject.unit.id).into_iter().flatten();
    let own = all.filter(|way| !facts.boot.origins(way).iter().any(|origin| facts.is_subject(origin)));
    let mut kept: Vec<&Reach> = Vec::new();
    for way in own {
        // The rings are walked from the inside, so the first way by a place is the surest.
        if !kept.iter().any(|k| k.edge.place == way.edge.place) {
            kept.push(way);
        }
    }
    kept
}

/// The last step in words: `wants it by PLACE`, `binds to it by PLACE`, `activates it by a device (PLACE)`.
pub(super) fn said(edge: &Edge) -> String {
    let (verb, place) = (edge.kind.verb(), &edge.place);
    match verb.split_once(' ') {
        None | Some((_, "to" | "at")) => format!("{verb} it by {place}"),
        Some(("runs", _)) => format!("{verb} it ({place})"),
        Some((verb, how)) => format!("{verb} it {how} ({place})"),
    }
}

fn start(facts: &Facts, subject: &Subject, way: &Reach) -> Finding {
    let unit = &subject.name;
    let last = &way.edge;
    let by = way.from.as_ref().map_or_else(|| "the system".to_owned(), |from| format!("`{from}`"));
    let (rule, message, help) = match way.strength {
        Strength::Starts => (
            &STARTS_AT_BOOT,
            format!("`{unit}` is started at boot: {by} {}", said(last)),
            "remove the last step of the route, or what leads to it",
        ),
        Strength::Activates => (
            &ACTIVATED,
            format!("`{unit}` would be started after boot: {by} {}", said(last)),
            "remove the trigger, or do not enable what carries it",
        ),
        Strength::Commands | Strength::Never => (
            &COMMAND,
            format!("`{unit}` would be started by a command: {}", last.place),
            "remove the command; `systemctl enable --now mesh-registry.target` is the one way to start the registry",
        ),
    };
    let mut finding = rule.finding(unit.as_str(), message).help(help);
    finding.notes = facts.boot.route(way);
    finding
}

fn first_boot(facts: &Facts, out: &mut Vec<Finding>) {
    for subject in facts.startable() {
        let Some(route) = first_boot_route(facts, subject) else { continue };
        let preset = facts.presets.of(&subject.unit.id).describe();
        let message = format!("the first boot enables units by preset, and then `{}` is started", subject.name);
        let mut finding =
            FIRST_BOOT.finding(subject.name.as_str(), message).note(format!("`{}` is {preset}", subject.name));
        finding.notes.extend(route);
        out.push(
            finding.help("make /etc/machine-id an empty file, and let a `disable` line be the first that matches"),
        );
    }
}

/// The route by which a first boot's presets start a subject; not one that is there without them.
pub fn first_boot_route(facts: &Facts, subject: &Subject) -> Option<Vec<String>> {
    new_route(facts, subject, facts.after_presets.as_ref()?)
}

/// The route by which what tmpfiles.d makes starts a subject at the next boot, a masked one too.
pub fn tmpfiles_route(facts: &Facts, subject: &Subject) -> Option<Vec<String>> {
    new_route(
        facts,
        subject,
        facts.after_tmpfiles.as_ref().filter(|after| after.reached.contains_key(&subject.unit.id))?,
    )
}

/// A route to a subject in a changed tree that is not there in the image.
fn new_route(facts: &Facts, subject: &Subject, after: &Boot) -> Option<Vec<String>> {
    let known = match edges::can_start(&subject.unit) {
        true => ways(facts, subject),
        false => Vec::new(),
    };
    let is_new = |way: &&Reach| !known.iter().any(|w| w.edge.place == way.edge.place);
    let is_own = |way: &&Reach| !after.origins(way).iter().any(|origin| facts.is_subject(origin));
    let mut all = after.ways.get(&subject.unit.id).into_iter().flatten();
    all.find(|way| is_new(way) && is_own(way)).map(|way| after.route(way))
}

fn tmpfiles(facts: &Facts, out: &mut Vec<Finding>) {
    for subject in &facts.subjects {
        let Some(route) = tmpfiles_route(facts, subject) else { continue };
        let message = format!("`{}` is started by the boot after the next one, as tmpfiles.d makes it", subject.name);
        let mut finding = TMPFILES.finding(subject.name.as_str(), message).help("remove the line of tmpfiles.d");
        finding.notes = route;
        out.push(finding);
    }
}

/// A tree without any init is no system that boots: that is for others to say.
fn boot_program(facts: &Facts, out: &mut Vec<Finding>) {
    let tree = &facts.image.tree;
    let init = search::path("sbin/init");
    let Some(end) = follow(tree, &init) else { return };
    let known = ["usr/lib/systemd/systemd", "lib/systemd/systemd"].map(search::path);
    if !known.contains(&end) {
        let message = format!("/sbin/init leads to {end}, not to /usr/lib/systemd/systemd, so the proof does not hold");
        out.push(BOOT_PROGRAM.finding("/sbin/init", message).help("let it be the link of the package `systemd-sysv`"));
    }
}

fn search_path(facts: &Facts, out: &mut Vec<Finding>) {
    let tree = &facts.image.tree;
    let directories = search::existing(tree, &search::MANAGER_DIRECTORIES);
    let main = directories.iter().map(|d| d.join("system.conf")).find(|path| tree.get(path).is_some());
    let beside: Vec<TreePath> = directories.iter().filter_map(|d| follow(tree, &d.join("system.conf.d"))).collect();
    for path in main.into_iter().chain(search::merged_files(tree, &beside, ".conf")) {
        let Some(bytes) = follow(tree, &path).and_then(|end| tree.content(&end).ok()) else { continue };
        for assignment in UnitFile::parse(&bytes).all("Manager", "ManagerEnvironment") {
            for variable in words(&assignment.value) {
                let name = variable.split('=').next().unwrap_or_default();
                if name.starts_with("SYSTEMD_") && name.ends_with("_PATH") {
                    let message =
                        format!("{path}:{} sets {variable} for PID 1, so the proof does not hold", assignment.line);
                    out.push(SEARCH_PATH.finding(path.display(), message).help("remove the assignment"));
                }
            }
        }
    }
}

fn requisites(facts: &Facts, out: &mut Vec<Finding>) {
    for (from, edge) in &facts.boot.requisites {
        let starts = facts.boot.reached.get(from).is_some_and(|r| r.strength == Strength::Starts);
        if starts && facts.is_subject(&edge.to) && !facts.is_subject(from) {
            let message = format!("`{from}` fails at boot: it asks by {} that `{}` is active", edge.place, edge.to);
            out.push(
                REQUISITE.finding(from.as_str(), message).help("order it by `After=` and start it with the handle"),
            );
        }
    }
}

/// Generators of units and of the environment that are not known; masked ones are left out, and those that systemd does
/// not run because they are not executable. Systemd's own are programs in the vendor's directory: a script of that name,
/// or one that takes its place from another directory, is not known.
pub fn unknown_generators(facts: &Facts) -> Vec<TreePath> {
    let tree = &facts.image.tree;
    let mut found = Vec::new();
    for kind in [search::GENERATOR_DIRECTORIES, search::ENVIRONMENT_GENERATOR_DIRECTORIES] {
        let mut taken = BTreeSet::new();
        for path in search::existing(tree, &kind)
            .iter()
            .flat_map(|directory| search::merged_files(tree, std::slice::from_ref(directory), ""))
        {
            // One that is not executable gives way to a lower one of its name; a mask does not.
            let counts = is_run(tree, &path) || search::is_null_or_empty(tree, &path);
            if counts && taken.insert(path.file_name().to_vec()) && !search::is_null_or_empty(tree, &path) {
                found.push(path);
            }
        }
    }
    found.retain(|path| {
        let name = String::from_utf8_lossy(path.file_name()).into_owned();
        let vendor = path.as_bytes().starts_with(b"usr/lib/") || path.as_bytes().starts_with(b"lib/");
        !(vendor && KNOWN_GENERATORS.contains(&name.as_str()) && !is_text(tree, path))
    });
    found
}

/// An executable file, links followed.
fn is_run(tree: &Tree, path: &TreePath) -> bool {
    let entry = follow(tree, path).and_then(|end| tree.get(&end));
    entry.is_some_and(|e| matches!(&e.kind, Kind::File(data) if data.len > 0) && e.mode & 0o111 != 0)
}

/// True for what the scan keeps as a text.
fn is_text(tree: &Tree, path: &TreePath) -> bool {
    follow(tree, path).is_some_and(|end| tree.content(&end).is_ok_and(|bytes| !bytes.starts_with(b"\x7fELF")))
}

fn generators(facts: &Facts, out: &mut Vec<Finding>) {
    for path in unknown_generators(facts) {
        let name = path.display();
        let end = follow(&facts.image.tree, &path);
        let content = match end.and_then(|end| facts.image.tree.get(&end)).map(|e| &e.kind) {
            Some(Kind::File(data)) => facts.image.tree.read(data),
            _ => Ok(Vec::new()),
        };
        let named = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            facts.startable().find(|s| s.unit.names.iter().any(|n| text.contains(n.as_str()))).map(|s| s.name.clone())
        };
        out.push(match content.as_deref().map(named) {
            Ok(Some(unit)) => GENERATOR
                .finding(name, format!("the generator {path} names `{unit}`, which must stay stopped"))
                .help("remove it, or mask it by a link of its name to /dev/null in /etc/systemd/system-generators"),
            Ok(None) => {
                UNKNOWN_GENERATOR.finding(name, format!("{path} may write any unit at boot; it names no stopped unit"))
            }
            Err(failure) => UNKNOWN_GENERATOR
                .finding(name, format!("{path} may write any unit at boot, and was not read: {failure}")),
        });
    }
}

/// How many steps of a kind lead on; for the proof.
pub fn looked_at(facts: &Facts) -> impl Iterator<Item = (EdgeKind, usize)> {
    facts.boot.looked_at.iter().map(|(kind, count)| (*kind, *count))
}
