//! Lines of scripts, `ExecStart=` and cron that start or enable units.
//!
//! A reader of text, no shell. It errs on the side of finding: where a name is in a variable, each word of the text may
//! be it.

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

/// A program that a text runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<'a> {
    /// From 1.
    pub line: usize,
    /// As it is written: an absolute path, or a name that is looked up.
    pub program: &'a str,
}

/// Verbs of systemctl and its like after which the units that they name run, now or from the next boot on.
const VERBS: [&str; 11] = [
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
    "set-default",
];

/// Words of the shell before a command.
const KEYWORDS: [&str; 12] = ["if", "then", "elif", "else", "while", "until", "do", "for", "in", "!", "time", "case"];

/// Commands that only look at what they name, or move it about.
const LOOKING: [&str; 36] = [
    "[",
    "test",
    "command",
    "which",
    "type",
    "echo",
    "printf",
    "ls",
    "cat",
    "stat",
    "file",
    "readlink",
    "realpath",
    "cp",
    "mv",
    "rm",
    "ln",
    "install",
    "chmod",
    "chown",
    "chgrp",
    "touch",
    "mkdir",
    "setcap",
    "getcap",
    "sha256sum",
    "md5sum",
    "grep",
    "sed",
    "awk",
    "pgrep",
    "pidof",
    "pkill",
    "killall",
    "dpkg",
    "logger",
];

/// Commands that run another one, which they are given.
const WRAPPERS: [&str; 22] = [
    "exec",
    "nohup",
    "env",
    "setsid",
    "sudo",
    "nice",
    "ionice",
    "timeout",
    "setpriv",
    "runuser",
    "chroot",
    "systemd-run",
    "start-stop-daemon",
    "chrt",
    "taskset",
    "stdbuf",
    "unshare",
    "nsenter",
    "xargs",
    "sh",
    "bash",
    "dash",
];

/// Options of those after which a user or group stands, which may be called as the program is.
const USERS: [&str; 8] = ["-u", "-g", "--user", "--group", "--reuid", "--regid", "--chuid", "--uid"];

/// Keys by which a unit pulls in another, when a script writes a unit or drop-in.
const PULLING: [&str; 4] = ["Wants=", "Requires=", "BindsTo=", "Upholds="];

/// A command of a text: its line from 1, as it is written, and its words.
struct Command<'a> {
    line: usize,
    text: &'a str,
    words: Vec<&'a str>,
}

/// Commands in the order of the text. Comments of shell, unit files and cron are passed over.
fn commands(text: &str) -> impl Iterator<Item = Command<'_>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with(['#', ';']));
    lines.flat_map(|(index, line)| {
        let line = line.trim_start();
        let line = line.split(" #").next().unwrap_or(line);
        line.split([';', '|', '&']).map(move |text| {
            let text = text.trim();
            Command { line: index + 1, text, words: text.split(is_blank).filter(|w| !w.is_empty()).collect() }
        })
    })
}

/// All commands of a text that start units. Where a name is in a variable, every word of the text may be it.
pub fn starts(text: &str) -> Vec<Start> {
    let mut found = Vec::new();
    for Command { line, text: command, words } in commands(text) {
        let named = units_started(&words);
        let hidden = named.iter().any(|word| word.contains('$'));
        let units = named.into_iter().filter_map(unit_of);
        let units: Vec<UnitName> = match hidden {
            true => units.chain(words_of(text).filter_map(unit_of)).collect(),
            false => units.collect(),
        };
        for unit in units {
            if !found.iter().any(|f: &Start| f.line == line && f.unit == unit) {
                found.push(Start { line, text: command.to_owned(), unit });
            }
        }
    }
    found
}

/// All programs that a text runs, and absolute paths that it may hand to something that does.
pub fn runs(text: &str) -> Vec<Run<'_>> {
    let mut found = Vec::new();
    for Command { line, words, .. } in commands(text) {
        let words: Vec<&str> = words.into_iter().map(bare).collect();
        let begin = words.iter().position(|w| !KEYWORDS.contains(w) && !is_assignment(w));
        let words = begin.map_or(&words[..0], |begin| &words[begin..]);
        let Some(first) = words.first() else { continue };
        // `[ -x /path ]`: brackets are blanks.
        if LOOKING.contains(&base(first)) || (first.starts_with('-') && words.len() == 2) {
            continue;
        }
        let wrapped = WRAPPERS.contains(&base(first));
        for (index, word) in words.iter().enumerate() {
            let is_path = word.len() > 1 && word.starts_with('/');
            let of_option = index > 0 && USERS.contains(&words[index - 1]);
            if is_path || ((index == 0 || wrapped) && !of_option && !word.contains('/')) {
                found.push(Run { line, program: word });
            }
        }
    }
    found
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// Quotes and brackets separate words as blanks do, so that `sh -c "systemctl start x"` and `["systemctl", "start"]` read alike.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || "\"'`()[]{},<>".contains(c)
}

/// Words that may be the value of a variable.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| line.split(|c: char| is_blank(c) || "=;|&".contains(c))).filter(|word| !word.is_empty())
}

/// A path without the prefixes that `ExecStart=` knows.
fn bare(word: &str) -> &str {
    let path = word.trim_start_matches(['-', '@', '+', '!', ':']);
    if path.starts_with('/') { path } else { word }
}

/// The last element of a program's path.
fn base(word: &str) -> &str {
    word.trim_start_matches(['-', '@', '+', '!', ':']).rsplit('/').next().unwrap_or("")
}

/// The words by which a command names the units that it starts.
fn units_started<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let named = |words: &[&'a str]| words.iter().filter(|w| !w.starts_with('-')).copied().collect();
    for (index, word) in words.iter().enumerate() {
        let rest = &words[index + 1..];
        match base(word) {
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
                return name.filter(|_| starts).copied().into_iter().collect();
            }
            // A link or copy among what a unit pulls in.
            "ln" | "cp" | "mv" | "install" | "touch" | "tee"
                if rest.iter().any(|w| [".wants", ".requires", ".upholds"].iter().any(|s| w.contains(s))) =>
            {
                return rest.iter().filter(|w| UnitName::parse(base(w)).is_some()).copied().collect();
            }
            _ if word.contains("/etc/init.d/") => {
                let starts = rest.iter().any(|w| VERBS.contains(w));
                return Some(base(word)).filter(|_| starts).into_iter().collect();
            }
            _ if PULLING.iter().any(|key| word.contains(key)) => {
                let value = word.split_once('=').map_or("", |(_, value)| value);
                let all = std::iter::once(value).chain(rest.iter().copied());
                // `printf 'Wants=x.service\n'`
                let names = all.map(|w| w.split('\\').next().unwrap_or(w));
                return names.filter(|w| UnitName::parse(w).is_some()).collect();
            }
            // The manager's D-Bus interface by busctl, gdbus or dbus-send.
            _ if ["StartUnit", "RestartUnit", "EnableUnitFiles"].iter().any(|method| word.contains(method)) => {
                let bare = rest.iter().map(|w| w.rsplit_once(':').map_or(*w, |(_, name)| name));
                return bare.filter(|w| w.contains('.') && UnitName::parse(w).is_some()).collect();
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
            ("systemctl set-default a.target", &["a.target"]),
            ("ln -s /lib/systemd/system/a.service /etc/systemd/system/b.target.wants/", &["a.service"]),
            ("printf '[Unit]\\nWants=a.service\\n' > /etc/systemd/system/b.target.d/x.conf", &["a.service"]),
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
    fn a_name_in_a_variable_may_be_any_word() {
        let text =
            "#!/bin/sh\n# systemctl start no\nunit=etcd\nfor u in a b.timer; do systemctl start ${u} $unit; done\n";
        let got: Vec<String> = starts(text).iter().map(|s| s.unit.to_string()).collect();
        for want in ["etcd.service", "a.service", "b.timer"] {
            assert!(got.iter().any(|unit| unit == want), "{want}: {got:?}");
        }
        assert!(!got.iter().any(|unit| unit == "no.service"), "{got:?}");
    }

    #[test]
    fn programs_that_a_text_runs() {
        let table: &[(&str, &[&str])] = &[
            (". /etc/default/x", &[".", "/etc/default/x"]),
            ("exec -/usr/bin/etcd --a=/b | '/opt/y z'", &["exec", "/usr/bin/etcd", "/opt/y"]),
            ("X=1 etcd --x &", &["etcd"]),
            ("if true; then nohup etcd; fi", &["true", "nohup", "etcd", "fi"]),
            ("setpriv --reuid etcd /opt/x", &["setpriv", "--reuid", "/opt/x"]),
            ("sudo -u etcd x", &["sudo", "-u", "x"]),
            ("[ -x /usr/bin/etcd ] && echo etcd", &[]),
            ("if test -x /usr/bin/etcd; then chown etcd /x; fi", &["fi"]),
            ("cat etcd", &[]),
            ("journalctl -u etcd", &["journalctl"]),
        ];
        for (text, want) in table {
            let got: Vec<&str> = runs(text).iter().map(|run| run.program).collect();
            assert_eq!(got, *want, "{text}");
        }
    }
}
