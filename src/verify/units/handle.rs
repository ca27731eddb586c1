//! The one handle, `mesh-registry.target`, has the form that works.

use super::facts::{ANNOUNCER, Facts, HANDLE, PREFLIGHT, REGISTRY};
use crate::finding::{Finding, Rule, Severity};
use crate::systemd::name::UnitName;
use crate::systemd::unit_file::words;
use crate::systemd::units::{Load, Unit};

/// It is not there.
pub static MISSING: Rule = Rule {
    code: "handle-missing",
    family: "units",
    severity: Severity::Error,
    summary: "the image runs a part of the registry and lacks the units to start it",
    explanation: "\
A node with a part in the registry is started by `systemctl enable --now mesh-registry.target`. That needs the target,
`mesh-preflight.service` and `etcd.service`, none of them masked.",
};

/// Its form.
pub static HANDLE_FORM: Rule = Rule {
    code: "handle-form",
    family: "units",
    severity: Severity::Error,
    summary: "`mesh-registry.target` has not the form that returns at once and never holds up a boot",
    explanation: "\
etcd is `Type=notify` and ready at quorum only, so anything that is ordered after it waits for the other voters. A target
with default dependencies is ordered after what it wants: `systemctl enable --now` then hangs on a lone voter, and a boot
never reaches multi-user.target. The form that works has `DefaultDependencies=no`, `Conflicts=` and `Before=shutdown.target`,
`Requires=` and `After=mesh-preflight.service` (so that a missing key gives exit 1), and its units in `Wants=` in its own file
(`etcd.service` where etcd runs, `mesh-agent.service` where the announcer is): a link in `mesh-registry.target.wants/` makes `is-enabled etcd` say `enabled`, and `systemctl preset` deletes it.",
};

/// etcd's drop-in.
pub static REGISTRY_UNIT: Rule = Rule {
    code: "registry-unit",
    family: "units",
    severity: Severity::Error,
    summary: "`etcd.service` as it is loaded would not run the rendered configuration under the handle",
    explanation: "\
Debian's unit sets `ETCD_NAME` and `ETCD_DATA_DIR`, reads `/etc/default/etcd` and passes `$DAEMON_ARGS`. The drop-in must reset
`Environment=`, `EnvironmentFile=` and `ExecStart=`, and start `etcd --config-file /etc/etcd/etcd.yaml`; wait for quorum without
end (`TimeoutStartSec=infinity`); belong to the handle (`PartOf=`) and require the preflight (`Requires=`, `After=`). A
`Condition…=` would let the target be active and etcd silently not.",
};

/// The announcer's unit.
pub static ANNOUNCER_UNIT: Rule = Rule {
    code: "announcer-unit",
    family: "units",
    severity: Severity::Error,
    summary: "`mesh-agent.service` as it is loaded does not belong to the handle, or runs as root",
    explanation: "\
The announcer is started and stopped with the registry's one handle: `PartOf=mesh-registry.target`, and `Requires=` and `After=` \
of the preflight, so that it does not start without its certificates. It runs as a user of its own and needs no privilege; \
the client key is root's, and the service manager hands it over (`LoadCredential=`). It is not ordered after `etcd.service`, \
which is ready at quorum only: how long the registry is away is counted meanwhile. A `Condition…=` would let the target be \
active and the node silently not announced.",
};

/// The configuration that etcd is started with.
const CONFIG: &str = "/etc/etcd/etcd.yaml";

/// Applies the rules. Images without a part in the registry and without the announcer have no use for a handle.
pub fn check(facts: &Facts, out: &mut Vec<Finding>) {
    let runs = facts.image.manifest.as_ref().is_some_and(|m| m.part.runs_registry());
    let announces = facts.subjects.iter().any(|s| s.unit.id.as_str() == ANNOUNCER && s.unit.load != Load::NotFound);
    let mut wanted = Vec::new();
    wanted.extend(runs.then_some(REGISTRY));
    wanted.extend(announces.then_some(ANNOUNCER));
    if wanted.is_empty() {
        return;
    }
    let mut loaded = Vec::new();
    for name in [HANDLE, PREFLIGHT].into_iter().chain(wanted.iter().copied()) {
        let Some(unit) = UnitName::parse(name).map(|n| facts.set.load(&n)) else { continue };
        match &unit.load {
            Load::Loaded => loaded.push(unit),
            Load::Masked(path) => out.push(missing(format!("`{name}` is masked by {path}"))),
            Load::SysV(path) => out.push(missing(format!("`{name}` has no unit file, only the script {path}"))),
            Load::Refused(reason) => out.push(missing(format!("systemd does not load `{name}`: {reason}"))),
            Load::NotFound => out.push(missing(format!("there is no `{name}`"))),
        }
    }
    for unit in &loaded {
        match unit.id.as_str() {
            HANDLE => handle(unit, &wanted, out),
            REGISTRY => registry(unit, out),
            ANNOUNCER => announcer(unit, out),
            _ => {}
        }
    }
}

fn missing(message: String) -> Finding {
    MISSING.finding(HANDLE, message).help("build the image with the overlay `etcd`, over a base with `etcd-server`")
}

/// True when a list key of `[Unit]` names a unit, whatever file says so.
fn names(unit: &Unit, key: &str, other: &str) -> bool {
    unit.all("Unit", key).any(|(_, a)| words(&a.value).iter().any(|w| w == other))
}

fn handle(unit: &Unit, units: &[&str], out: &mut Vec<Finding>) {
    let mut say = |message: String| out.push(HANDLE_FORM.finding(HANDLE, format!("`{HANDLE}` {message}")));
    if unit.flag("Unit", "DefaultDependencies", true) {
        say("lacks `DefaultDependencies=no`: enabling it would hang until there is a quorum".into());
    }
    let wants = units.iter().map(|unit| ("Wants", *unit));
    let wanted = [
        ("Requires", PREFLIGHT),
        ("After", PREFLIGHT),
        ("Conflicts", "shutdown.target"),
        ("Before", "shutdown.target"),
    ];
    for (key, other) in wants.chain(wanted) {
        if !names(unit, key, other) {
            say(format!("lacks `{key}={other}` in its file"));
        }
    }
    if names(unit, "After", REGISTRY) {
        say(format!("is ordered after `{REGISTRY}`: enabling it would hang until there is a quorum"));
    }
    for link in &unit.links {
        say(format!("has the link {}, which makes `{}` count as enabled", link.path, link.to));
    }
}

/// What belongs to the handle, and has no condition.
fn belongs(unit: &Unit, say: &mut impl FnMut(String)) {
    for (key, other) in [("PartOf", HANDLE), ("Requires", PREFLIGHT), ("After", PREFLIGHT)] {
        if !names(unit, key, other) {
            say(format!("lacks `{key}={other}`"));
        }
    }
    for text in &unit.files {
        let is_condition = |key: &str| key.starts_with("Condition") || key.starts_with("Assert");
        for a in
            text.file.assignments.iter().filter(|a| a.section == "Unit" && is_condition(&a.key) && !a.value.is_empty())
        {
            say(format!(
                "has {}={} ({}:{}): where it fails the target is active and it is not",
                a.key, a.value, text.path, a.line
            ));
        }
    }
}

fn announcer(unit: &Unit, out: &mut Vec<Finding>) {
    let mut say = |message: String| out.push(ANNOUNCER_UNIT.finding(ANNOUNCER, format!("`{ANNOUNCER}` {message}")));
    belongs(unit, &mut say);
    for (key, other) in [("After", REGISTRY), ("Requires", REGISTRY)] {
        if names(unit, key, other) {
            say(format!("has `{key}={other}`: it would wait for a quorum, and end with etcd"));
        }
    }
    match unit.last("Service", "User") {
        None | Some("" | "root" | "0") => say("runs as root: give it a user of its own".to_owned()),
        Some(_) => {}
    }
}

fn registry(unit: &Unit, out: &mut Vec<Finding>) {
    let mut say = |message: String| out.push(REGISTRY_UNIT.finding(REGISTRY, format!("`{REGISTRY}` {message}")));
    belongs(unit, &mut say);
    if names(unit, "Before", HANDLE) {
        say(format!("is ordered before `{HANDLE}`: enabling that would hang until there is a quorum"));
    }
    for key in ["Environment", "EnvironmentFile"] {
        for (path, a) in unit.values("Service", key) {
            if key == "EnvironmentFile" || a.value.contains("ETCD_") || a.value.contains("DAEMON_ARGS") {
                say(format!("still has {key}={} ({path}:{})", a.value, a.line));
            }
        }
    }
    let starts = unit.values("Service", "ExecStart");
    let reads = |value: &str| {
        let words = words(value);
        let pair = words.windows(2).any(|w| w[0].trim_start_matches('-') == "config-file" && w[1] == CONFIG);
        pair || words.iter().any(|w| w.trim_start_matches('-') == format!("config-file={CONFIG}"))
    };
    match starts.as_slice() {
        [(_, a)] if reads(&a.value) => {}
        [(path, a)] => {
            say(format!("is started by `{}` ({path}:{}), not with `--config-file {CONFIG}`", a.value, a.line))
        }
        all => say(format!("has {} `ExecStart=` lines; the drop-in must reset Debian's", all.len())),
    }
    let timeout = unit.last("Service", "TimeoutStartSec").or_else(|| unit.last("Service", "TimeoutSec"));
    if !matches!(timeout, Some("infinity" | "0")) {
        let now = timeout.map_or_else(|| "systemd's default of 90 s".to_owned(), |t| format!("`TimeoutStartSec={t}`"));
        say(format!("is given up after {now}, while a lone voter waits for quorum"));
    }
}
