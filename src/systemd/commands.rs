//! Lines of scripts, `ExecStart=` and cron that start or enable units.
//!
//! A reader of text, no shell: what hides a name in a variable is not found. It errs on the side of finding.

use super::name::UnitName;

/// A command that starts a unit, or makes the next boot start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// From 1.
    pub line: usize,
    /// The command as it is written.
    pub text: String,
    /// The unit.
    pub unit: UnitName,
}

/// Verbs of systemctl and its like after which the units that they name run, now or from the next boot on.
const VERBS: [&str; 10] = [
    "start",
    "restart",
    "reload-or-restart",
    "force-reload",
    "isolate",
    "enable",
    "reenable",
    "preset",
    "add-wants",
    "add-requires",
];

/// All such commands of a text. Lines that are comments of shell, unit files or cron are passed over.
pub fn starts(text: &str) -> Vec<Start> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with(['#', ';']) {
            continue;
        }
        let line = line.split(" #").next().unwrap_or(line);
        for command in line.split([';', '|', '&']) {
            let words: Vec<&str> = command.split(is_blank).filter(|w| !w.is_empty()).collect();
            for unit in units_started(&words) {
                found.push(Start { line: index + 1, text: command.trim().to_owned(), unit });
            }
        }
    }
    found
}

/// Absolute paths that a text names, with their lines; for programs and scripts that it runs.
pub fn paths(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        for word in line.split(|c: char| is_blank(c) || ";|&".contains(c)) {
            let word = word.trim_start_matches(['-', '@', '+', '!', ':']);
            if word.len() > 1 && word.starts_with('/') {
                found.push((index + 1, word));
            }
        }
    }
    found
}

/// Quotes and brackets separate words as blanks do, so that `sh -c "systemctl start x"` and `["systemctl", "start"]` read alike.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || "\"'`()[]{},<>".contains(c)
}

fn units_started(words: &[&str]) -> Vec<UnitName> {
    let base =
        |word: &str| word.trim_start_matches(['-', '@', '+', '!', ':']).rsplit('/').next().unwrap_or("").to_owned();
    let named = |words: &[&str]| words.iter().filter(|w| !w.starts_with('-')).filter_map(|w| unit_of(w)).collect();
    for (index, word) in words.iter().enumerate() {
        let rest = &words[index + 1..];
        match base(word).as_str() {
            "systemctl" | "deb-systemd-invoke" | "deb-systemd-helper" | "initctl" => {
                // Another manager or another root is not this system.
                if rest.iter().any(|w| *w == "--user" || w.starts_with("--root") || w.starts_with("--image")) {
                    return Vec::new();
                }
                let verb = rest.iter().position(|w| VERBS.contains(w));
                return verb.map(|at| named(&rest[at + 1..])).unwrap_or_default();
            }
            "service" | "invoke-rc.d" | "update-rc.d" | "rc-service" => {
                let starts = rest.iter().any(|w| VERBS.contains(w) || *w == "defaults");
                let name = rest.iter().find(|w| !w.starts_with('-'));
                return name.filter(|_| starts).and_then(|n| unit_of(n)).into_iter().collect();
            }
            _ if word.contains("/etc/init.d/") => {
                let starts = rest.iter().any(|w| VERBS.contains(w));
                return unit_of(&base(word)).filter(|_| starts).into_iter().collect();
            }
            // The manager's D-Bus interface by busctl, gdbus or dbus-send.
            _ if ["StartUnit", "RestartUnit", "EnableUnitFiles"].iter().any(|method| word.contains(method)) => {
                let bare = rest.iter().map(|w| w.rsplit_once(':').map_or(*w, |(_, name)| name));
                return bare.filter(|w| w.contains('.')).filter_map(UnitName::parse).collect();
            }
            _ => {}
        }
    }
    Vec::new()
}

/// A unit by the name that people type: without a suffix it is a service.
fn unit_of(word: &str) -> Option<UnitName> {
    let name = word.rsplit('/').next().unwrap_or(word);
    UnitName::parse(name).or_else(|| UnitName::parse(&format!("{name}.service")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_start_units() {
        let table: &[(&str, &[&str])] = &[
            ("systemctl start etcd", &["etcd.service"]),
            ("/usr/bin/systemctl --no-block restart etcd.service foo.target", &["etcd.service", "foo.target"]),
            ("-/bin/sh -c \"sleep 1; systemctl enable --now etcd\"", &["etcd.service"]),
            ("subprocess.run([\"systemctl\", \"start\", \"etcd\"])", &["etcd.service"]),
            ("if true; then systemctl isolate a.target; fi", &["a.target"]),
            ("test -x /x && service etcd start", &["etcd.service"]),
            ("invoke-rc.d etcd restart", &["etcd.service"]),
            ("/etc/init.d/etcd start", &["etcd.service"]),
            ("update-rc.d etcd defaults", &["etcd.service"]),
            ("initctl start etcd", &["etcd.service"]),
            (
                "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StartUnit ss etcd.service replace",
                &["etcd.service"],
            ),
            ("dbus-send --system m.StartUnit string:\"etcd.service\" string:\"replace\"", &["etcd.service"]),
            ("systemctl stop etcd", &[]),
            ("systemctl is-active etcd", &[]),
            ("systemctl try-restart etcd", &[]),
            ("systemctl --user start etcd", &[]),
            ("systemctl --root=/mnt enable etcd", &[]),
            ("# systemctl start etcd", &[]),
            ("true # systemctl start etcd", &[]),
            ("service etcd status", &[]),
            ("echo start etcd", &[]),
        ];
        for (line, want) in table {
            let got: Vec<String> = starts(line).iter().map(|s| s.unit.to_string()).collect();
            assert_eq!(got, *want, "{line}");
        }
        assert_eq!(starts("a\nsystemctl start x\n")[0].line, 2);
    }

    #[test]
    fn paths_that_a_text_names() {
        let text = "#!/bin/sh\n. /etc/default/x\nexec -/usr/bin/etcd --a=/b | '/opt/y z'";
        assert_eq!(paths(text), [(2, "/etc/default/x"), (3, "/usr/bin/etcd"), (3, "/opt/y")]);
    }
}
