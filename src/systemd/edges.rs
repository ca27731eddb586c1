//! What a unit pulls in when it starts, and what may start another later.
//!
//! Sources: systemd.unit(5) for the keys, "Implicit Dependencies" and "Default Dependencies" of systemd.service(5),
//! .socket(5), .timer(5), .path(5), .exec(5), .slice(5), bootup(7) and special(7) for the rest.

use super::name::{UnitName, escape_path};
use super::unit_file::{boolean, words};
use super::units::{Load, Unit, UnitSet};
use crate::tree::{Kind as EntryKind, TreePath};

/// How one unit leads to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    /// What PID 1 starts: `default.target`.
    Default,
    /// `Wants=` or a `.wants/` link.
    Wants,
    /// `Requires=` or a `.requires/` link.
    Requires,
    /// `BindsTo=`.
    BindsTo,
    /// `Upholds=` or an `.upholds/` link.
    Upholds,
    /// What systemd adds by itself: `sysinit.target`, slices, mounts, the D-Bus socket.
    Implied,
    /// What a generator of systemd's own adds at boot.
    Generator,
    /// An S link in a runlevel directory that no native unit shadows.
    SysV,
    /// `Requisite=`: only looked at. It never starts the unit, it fails where the unit is not active.
    Requisite,
    /// `OnFailure=`.
    OnFailure,
    /// `OnSuccess=`.
    OnSuccess,
    /// A socket's service.
    Socket,
    /// A timer's unit.
    Timer,
    /// A path unit's unit.
    Path,
    /// An automount's mount.
    Automount,
    /// A name on the system bus.
    Bus,
    /// A device's wants: `.device.wants/`, `SYSTEMD_WANTS` of a udev rule.
    Device,
    /// A log-in, or a switch of the console.
    Login,
    /// A signal to PID 1.
    Signal,
    /// A command in a script, `Exec…=` line, cron table or hook.
    Command,
}

/// How sure it is that following an edge starts something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// It is started with its origin.
    Starts,
    /// It is started when something else happens.
    Activates,
    /// A text says so.
    Commands,
    /// It is not started.
    Never,
}

impl EdgeKind {
    /// How sure it is.
    pub fn strength(self) -> Strength {
        use EdgeKind::*;
        match self {
            Default | Wants | Requires | BindsTo | Upholds | Implied | Generator | SysV => Strength::Starts,
            OnFailure | OnSuccess | Socket | Timer | Path | Automount | Bus | Device | Login | Signal => {
                Strength::Activates
            }
            Command => Strength::Commands,
            Requisite => Strength::Never,
        }
    }

    /// The verb of a route: `a.target wants b.service`.
    pub fn verb(self) -> &'static str {
        use EdgeKind::*;
        match self {
            Default => "starts",
            Wants => "wants",
            Requires => "requires",
            BindsTo => "binds to",
            Upholds => "upholds",
            Implied => "implies",
            Generator => "gets by a generator",
            SysV => "wants by a SysV link",
            Requisite => "looks at",
            OnFailure => "starts on failure",
            OnSuccess => "starts on success",
            Socket => "activates by a connection",
            Timer => "activates by time",
            Path => "activates by a path",
            Automount => "activates by access",
            Bus => "activates by D-Bus",
            Device => "activates by a device",
            Login => "activates by a log-in",
            Signal => "activates by a signal",
            Command => "runs a command that starts",
        }
    }
}

/// One step from a unit to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// How.
    pub kind: EdgeKind,
    /// To what, by the name used there.
    pub to: UnitName,
    /// Where it says so: `file:line: Key=value`, or the link.
    pub place: String,
}

/// A dependency whose name cannot be known without the running system (`Wants=x@%H.service`).
pub type Unresolved = String;

/// What starts with a unit, and what it may start later. Commands are not among it.
pub fn edges(set: &UnitSet, unit: &Unit, unresolved: &mut Vec<Unresolved>) -> Vec<Edge> {
    let mut all = Vec::new();
    for link in &unit.links {
        let kind = match link.key {
            "Requires" => EdgeKind::Requires,
            "Upholds" => EdgeKind::Upholds,
            _ => EdgeKind::Wants,
        };
        let target = match set.tree.get(&link.path).map(|e| &e.kind) {
            Some(EntryKind::Symlink(target)) => format!(" -> {}", String::from_utf8_lossy(target)),
            _ => String::new(),
        };
        push(unit, &mut all, unresolved, kind, link.to.as_str(), &format!("{}{target}", link.path));
    }
    named(unit, &mut all, unresolved);
    activated(unit, &mut all, unresolved);
    implied(unit, &mut all);
    generated(set, unit, &mut all);
    all
}

/// Adds an edge to a name as it is written: specifiers are expanded, a bare template takes this unit's instance or
/// prefix (`resolve_template`).
fn push(unit: &Unit, all: &mut Vec<Edge>, unresolved: &mut Vec<Unresolved>, kind: EdgeKind, name: &str, place: &str) {
    let Ok(expanded) = unit.id.expand(name) else {
        unresolved.push(format!("{place} ({name})"));
        return;
    };
    let Some(to) = UnitName::parse(&expanded) else { return };
    let instance = unit.id.instance().unwrap_or_else(|| unit.id.prefix());
    let to = if to.is_template() { to.instantiate(instance).unwrap_or(to) } else { to };
    all.push(Edge { kind, to, place: place.to_owned() });
}

/// `Wants=` and its like.
fn named(unit: &Unit, all: &mut Vec<Edge>, unresolved: &mut Vec<Unresolved>) {
    const KEYS: [(&str, EdgeKind); 9] = [
        ("Wants", EdgeKind::Wants),
        ("Requires", EdgeKind::Requires),
        ("RequiresOverridable", EdgeKind::Requires),
        ("BindsTo", EdgeKind::BindsTo),
        ("BindTo", EdgeKind::BindsTo),
        ("Upholds", EdgeKind::Upholds),
        ("Requisite", EdgeKind::Requisite),
        ("OnFailure", EdgeKind::OnFailure),
        ("OnSuccess", EdgeKind::OnSuccess),
    ];
    let services = [("Service", "Sockets", EdgeKind::Wants)];
    let keys = KEYS.iter().map(|(key, kind)| ("Unit", *key, *kind)).chain(services);
    for (section, key, kind) in keys {
        // Dependencies cannot be reset, so empty assignments say nothing.
        for (path, assignment) in unit.all(section, key) {
            let place = format!("{path}:{}: {key}={}", assignment.line, assignment.value);
            // Quotes are no quotes here: a name in them is no name (`config_parse_unit_deps`; a boot shows it).
            for name in assignment.value.split_ascii_whitespace() {
                push(unit, all, unresolved, kind, name, &place);
            }
        }
    }
}

/// What sockets, timers, path units and automounts start.
fn activated(unit: &Unit, all: &mut Vec<Edge>, unresolved: &mut Vec<Unresolved>) {
    let (kind, section, key) = match unit.id.kind() {
        "socket" => (EdgeKind::Socket, "Socket", "Service"),
        "timer" => (EdgeKind::Timer, "Timer", "Unit"),
        "path" => (EdgeKind::Path, "Path", "Unit"),
        "automount" => (EdgeKind::Automount, "Automount", ""),
        _ => return,
    };
    let assignments: Vec<_> = unit.all(section, key).filter(|(_, a)| !a.value.is_empty()).collect();
    // The first `Unit=` counts (`config_parse_trigger_unit`), the last `Service=` does.
    let chosen = if key == "Unit" { assignments.first() } else { assignments.last() };
    if let Some((path, assignment)) = chosen {
        let place = format!("{path}:{}: {key}={}", assignment.line, assignment.value);
        push(unit, all, unresolved, kind, &assignment.value, &place);
        return;
    }
    let accept = kind == EdgeKind::Socket && unit.flag("Socket", "Accept", false);
    let name = match kind {
        EdgeKind::Socket if accept => format!("{}@connection.service", unit.id.prefix()),
        EdgeKind::Automount => format!("{}.mount", unit.id.stem()),
        _ => format!("{}.service", unit.id.stem()),
    };
    let place = unit.fragment.as_ref().map(TreePath::display).unwrap_or_default();
    push(unit, all, unresolved, kind, &name, &place);
}

/// Dependencies that systemd adds by itself.
fn implied(unit: &Unit, all: &mut Vec<Edge>) {
    let mut add = |name: &str, why: &str| {
        if let Some(to) = UnitName::parse(name) {
            all.push(Edge { kind: EdgeKind::Implied, to, place: why.to_owned() });
        }
    };
    let kind = unit.id.kind();
    let section = match kind {
        "service" => "Service",
        "socket" => "Socket",
        "mount" => "Mount",
        _ => "",
    };
    if matches!(kind, "service" | "socket" | "timer" | "path") && unit.flag("Unit", "DefaultDependencies", true) {
        add("sysinit.target", "DefaultDependencies=yes");
    }
    if matches!(kind, "service" | "socket" | "mount" | "swap") {
        match unit.last(section, "Slice") {
            Some(slice) => add(slice, "Slice="),
            None => add("system.slice", "every service, socket and mount lies in a slice"),
        }
    }
    if kind == "slice" && unit.id.as_str() != "-.slice" {
        let parent = unit.id.stem().rsplit_once('-').map_or("-", |(parent, _)| parent);
        add(&format!("{parent}.slice"), "the slice above");
    }
    if kind == "service" && (unit.last("Service", "Type") == Some("dbus") || unit.last("Service", "BusName").is_some())
    {
        add("dbus.socket", "Type=dbus");
    }
    for path in mounts_for(unit, section) {
        let elements: Vec<&str> = path.split('/').filter(|e| !e.is_empty()).collect();
        for end in 1..=elements.len() {
            add(&format!("{}.mount", escape_path(&elements[..end].join("/"))), "a mount that its files lie on");
        }
    }
}

/// Paths whose mounts a unit requires (systemd.unit(5) `RequiresMountsFor=`, systemd.exec(5) implicit dependencies).
fn mounts_for(unit: &Unit, section: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for key in ["RequiresMountsFor", "WantsMountsFor"] {
        for (_, assignment) in unit.all("Unit", key) {
            paths.extend(words(&assignment.value).iter().filter_map(|w| unit.id.expand(w).ok()));
        }
    }
    let below = [("StateDirectory", "/var/lib"), ("CacheDirectory", "/var/cache"), ("LogsDirectory", "/var/log")];
    for (key, parent) in below {
        for (_, assignment) in unit.values(section, key) {
            paths.extend(
                words(&assignment.value).iter().map(|w| format!("{parent}/{}", w.split(':').next().unwrap_or(w))),
            );
        }
    }
    for key in ["WorkingDirectory", "RootDirectory"] {
        let path = unit.last(section, key).map(|v| v.trim_start_matches('-'));
        paths.extend(path.filter(|p| p.starts_with('/')).map(str::to_owned));
    }
    if unit.last(section, "PrivateTmp").and_then(boolean) == Some(true) {
        paths.extend(["/tmp".to_owned(), "/var/tmp".to_owned()]);
    }
    paths
}

/// What systemd's own generators add to a unit (systemd.generator(7) and each one's page), and SysV links.
fn generated(set: &UnitSet, unit: &Unit, all: &mut Vec<Edge>) {
    let mut add = |kind: EdgeKind, name: &str, place: String| {
        if let Some(to) = UnitName::parse(name) {
            all.push(Edge { kind, to, place });
        }
    };
    let is = |name: &str| unit.names.iter().any(|n| n.as_str() == name);
    if is("getty.target") {
        for name in ["console-getty.service", "container-getty@1.service", "serial-getty@ttyS0.service"] {
            add(EdgeKind::Generator, name, "systemd-getty-generator".into());
        }
    }
    if is("local-fs.target") {
        add(EdgeKind::Generator, "systemd-remount-fs.service", "systemd-fstab-generator".into());
    }
    if is("multi-user.target") {
        let executable = set.tree.get(&super::search::path("etc/rc.local")).is_some_and(|e| e.mode & 0o111 != 0);
        if executable {
            add(
                EdgeKind::Generator,
                "rc-local.service",
                "systemd-rc-local-generator, /etc/rc.local is executable".into(),
            );
        }
    }
    for made in &set.fstab {
        if made.pulled_by.iter().any(|by| is(by)) {
            add(EdgeKind::Generator, made.unit.as_str(), made.place.clone());
        }
        if made.unit == unit.id {
            made.pulls
                .iter()
                .for_each(|(to, option)| add(EdgeKind::Generator, to, format!("{}: {option}", made.place)));
        }
    }
    for link in super::sysv::start_links(set.tree) {
        if is(link.target) && set.sysv.contains_key(&link.unit) {
            add(EdgeKind::SysV, link.unit.as_str(), link.path.display());
        }
    }
}

/// Whether following an edge to this unit starts anything.
pub fn can_start(unit: &Unit) -> bool {
    matches!(unit.load, Load::Loaded | Load::SysV(_))
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    /// Edges of `unit` as `kind name`, sorted, for a unit with this text.
    fn edges_of(unit: &str, text: &str) -> Vec<String> {
        let name = UnitName::parse(unit).unwrap();
        let file = name.template().unwrap_or(name.clone());
        let tree = tree(&[(&format!("/usr/lib/systemd/system/{file}"), text)]);
        let set = UnitSet::new(&tree);
        let mut unresolved = Vec::new();
        let mut all: Vec<String> = edges(&set, &set.load(&name), &mut unresolved)
            .iter()
            .map(|e| format!("{:?} {}", e.kind, e.to))
            .chain(unresolved.iter().map(|u| format!("? {u}")))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn what_a_unit_leads_to() {
        let table: &[(&str, &str, &[&str])] = &[
            ("a.target", "[Unit]\nWants=b.service c.service\nWants=\n", &["Wants b.service", "Wants c.service"]),
            ("a.target", "[Unit]\nWants=\"b.service\" 'c.service'\n", &[]),
            ("a.target", "[Unit]\nRequisite=b.service\n[Install]\nAlso=c.service", &["Requisite b.service"]),
            (
                "a.target",
                "[Unit]\nBindsTo=b.service\nUpholds=u.service\nOnFailure=f.service\nOnSuccess=s.service",
                &["BindsTo b.service", "OnFailure f.service", "OnSuccess s.service", "Upholds u.service"],
            ),
            ("a@x.target", "[Unit]\nWants=b@%i.service c@.service", &["Wants b@x.service", "Wants c@x.service"]),
            ("a.target", "[Unit]\nWants=c@.service", &["Wants c@a.service"]),
            (
                "a.target",
                "[Unit]\nWants=b@%H.service",
                &["? /usr/lib/systemd/system/a.target:2: Wants=b@%H.service (b@%H.service)"],
            ),
            ("a.timer", "[Unit]\nDefaultDependencies=no\n[Timer]\nOnBootSec=1", &["Timer a.service"]),
            (
                "a.timer",
                "[Unit]\nDefaultDependencies=no\n[Timer]\nUnit=b.service\nUnit=c.service",
                &["Timer b.service"],
            ),
            ("a.path", "[Path]\nUnit=b.target", &["Implied sysinit.target", "Path b.target"]),
            (
                "a.socket",
                "[Socket]\nListenStream=1\nService=b.service",
                &["Implied sysinit.target", "Implied system.slice", "Socket b.service"],
            ),
            (
                "a.socket",
                "[Unit]\nDefaultDependencies=no\n[Socket]\nAccept=yes",
                &["Implied system.slice", "Socket a@connection.service"],
            ),
            (
                "a.service",
                "[Service]\nSlice=x-y.slice\nType=dbus\nSockets=s.socket",
                &["Implied dbus.socket", "Implied sysinit.target", "Implied x-y.slice", "Wants s.socket"],
            ),
            ("x-y.slice", "[Unit]\n", &["Implied x.slice"]),
            ("x.slice", "[Unit]\n", &["Implied -.slice"]),
            ("a.target", "[Unit]\nRequiresMountsFor=/var/lib", &["Implied var-lib.mount", "Implied var.mount"]),
        ];
        for (unit, text, want) in table {
            assert_eq!(edges_of(unit, text), *want, "{unit}: {text}");
        }
    }
}
