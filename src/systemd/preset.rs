//! Preset policy (systemd.preset(5)): over all preset files sorted by name, the first line that matches a unit wins;
//! where none matches, the unit is enabled.

use super::glob;
use super::name::UnitName;
use super::search;
use super::unit_file::lines;
use crate::tree::{Tree, TreePath};

/// One line of a preset file.
#[derive(Debug, Clone)]
pub struct Line {
    /// The file.
    pub path: TreePath,
    /// From 1.
    pub number: usize,
    /// The line, blanks made one.
    pub text: String,
    action: Action,
    pattern: String,
    /// `enable foo@.service a b`: instances of a template.
    instances: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Enable,
    Disable,
    Ignore,
}

/// What presets say of a unit.
#[derive(Debug, Clone, Copy)]
pub enum Preset<'a> {
    /// Enable: by this line, or because no line matches.
    Enable(Option<&'a Line>),
    /// Disable.
    Disable(&'a Line),
    /// Leave as it is (systemd 252 on).
    Ignore(&'a Line),
}

/// All preset lines of an image, in the order in which they are tried.
#[derive(Debug, Default)]
pub struct Presets {
    /// The lines.
    pub lines: Vec<Line>,
    /// Files and lines that systemd ignores, with the reason.
    pub defects: Vec<String>,
}

impl Presets {
    /// Reads the preset directories. A file of the same name in an earlier directory replaces a later one.
    pub fn new(tree: &Tree) -> Presets {
        let mut presets = Presets::default();
        let directories = search::existing(tree, &search::PRESET_DIRECTORIES);
        for path in search::merged_files(tree, &directories, ".preset") {
            let content =
                search::follow(tree, &path).filter(|end| tree.get(end).is_some()).map(|end| tree.content(&end));
            match content {
                // A link to /dev/null hides the file of that name below.
                _ if search::is_null_or_empty(tree, &path) => {}
                None => {}
                Some(Ok(bytes)) => presets.read(&path, &bytes),
                Some(Err(failure)) => presets.defects.push(failure.message),
            }
        }
        presets
    }

    fn read(&mut self, path: &TreePath, bytes: &[u8]) {
        for (number, line) in lines(bytes) {
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let action = match words[0] {
                "enable" => Action::Enable,
                "disable" => Action::Disable,
                "ignore" => Action::Ignore,
                _ => {
                    self.defects.push(format!("{path}:{number}: `{line}` is no preset line"));
                    continue;
                }
            };
            let Some((first, instances)) = words.get(1..).and_then(<[&str]>::split_first) else {
                self.defects.push(format!("{path}:{number}: `{line}` names no pattern"));
                continue;
            };
            // Only `enable` takes more than a pattern, and only of a template; for the others all of the rest is one
            // (`presets_find_config`), which then matches nothing.
            let pattern = match action {
                Action::Enable => (*first).to_owned(),
                Action::Disable | Action::Ignore => line[words[0].len()..].trim().to_owned(),
            };
            let is_template = UnitName::parse(first).is_some_and(|name| name.is_template());
            if !instances.is_empty() && (action != Action::Enable || !is_template) {
                self.defects.push(format!("{path}:{number}: `{line}` has more than a pattern, so it matches nothing"));
                continue;
            }
            self.lines.push(Line {
                path: path.clone(),
                number,
                text: words.join(" "),
                action,
                pattern,
                instances: instances.iter().map(|w| (*w).to_owned()).collect(),
            });
        }
    }

    /// What the presets say of a unit.
    pub fn of(&self, unit: &UnitName) -> Preset<'_> {
        let line = self.lines.iter().find(|line| line.matches(unit));
        match line {
            None => Preset::Enable(None),
            Some(line) => match line.action {
                Action::Enable => Preset::Enable(Some(line)),
                Action::Disable => Preset::Disable(line),
                Action::Ignore => Preset::Ignore(line),
            },
        }
    }
}

impl Line {
    fn matches(&self, unit: &UnitName) -> bool {
        if self.action == Action::Enable && !self.instances.is_empty() {
            // `enable foo@.service a b` is about foo@a.service, foo@b.service, and the template itself.
            let template = unit.template();
            let listed = unit.instance().is_some_and(|i| self.instances.iter().any(|listed| listed == i));
            return match template {
                Some(template) => listed && glob::matches(&self.pattern, template.as_str()),
                None => glob::matches(&self.pattern, unit.as_str()),
            };
        }
        glob::matches(&self.pattern, unit.as_str())
    }

    /// `file:line: text`.
    pub fn place(&self) -> String {
        format!("{}:{}: {}", self.path, self.number, self.text)
    }
}

impl Preset<'_> {
    /// True when the unit is enabled by presets.
    pub fn enables(&self) -> bool {
        matches!(self, Preset::Enable(_))
    }

    /// In words: `disable by FILE:LINE: …`.
    pub fn describe(&self) -> String {
        match self {
            Preset::Enable(None) => "no preset line matches, so it is enabled".to_owned(),
            Preset::Enable(Some(line)) => format!("enabled by {}", line.place()),
            Preset::Disable(line) => format!("disabled by {}", line.place()),
            Preset::Ignore(line) => format!("left as it is by {}", line.place()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Files, tree};
    use super::*;

    #[test]
    fn the_first_matching_line_wins() {
        let etc = "/etc/systemd/system-preset";
        let lib = "/usr/lib/systemd/system-preset";
        let table: &[(Files, &str, &str)] = &[
            (&[], "etcd.service", "no preset line matches, so it is enabled"),
            (
                &[("E/00-a.preset", "disable etcd.service")],
                "etcd.service",
                "disabled by E/00-a.preset:1: disable etcd.service",
            ),
            (
                &[("E/10-a.preset", "disable etcd.service"), ("L/05-b.preset", "enable  etcd.*")],
                "etcd.service",
                "enabled by L/05-b.preset:1: enable etcd.*",
            ),
            (
                &[
                    ("E/10-a.preset", "# nothing\n"),
                    ("L/10-a.preset", "enable etcd.service"),
                    ("L/99.preset", "disable *"),
                ],
                "etcd.service",
                "disabled by L/99.preset:1: disable *",
            ),
            (
                &[("E/10-a.preset", "-> /dev/null"), ("L/10-a.preset", "disable etcd.service")],
                "etcd.service",
                "no preset line matches, so it is enabled",
            ),
            (
                &[("E/a.preset", "enable x@.service one two\ndisable *")],
                "x@one.service",
                "enabled by E/a.preset:1: enable x@.service one two",
            ),
            (
                &[("E/a.preset", "enable x@.service one\ndisable *")],
                "x@two.service",
                "disabled by E/a.preset:2: disable *",
            ),
            (
                &[("E/a.preset", "ignore etcd.service")],
                "etcd.service",
                "left as it is by E/a.preset:1: ignore etcd.service",
            ),
            (&[("E/a.conf", "disable *")], "etcd.service", "no preset line matches, so it is enabled"),
            (&[("E/a.preset", "Disable *")], "etcd.service", "no preset line matches, so it is enabled"),
        ];
        for (files, unit, want) in table {
            let files: Vec<(String, &str)> = files
                .iter()
                .map(|(p, t)| (p.replace("E/", &format!("{etc}/")).replace("L/", &format!("{lib}/")), *t))
                .collect();
            let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
            let presets = Presets::new(&tree(&files));
            let got = presets.of(&UnitName::parse(unit).unwrap()).describe().replace(etc, "E").replace(lib, "L");
            assert_eq!(got, *want);
        }
    }

    #[test]
    fn lines_that_are_none_are_named() {
        let presets = Presets::new(&tree(&[("/etc/systemd/system-preset/a.preset", "Disable *\nenable\n")]));
        assert_eq!(
            presets.defects,
            [
                "/etc/systemd/system-preset/a.preset:1: `Disable *` is no preset line",
                "/etc/systemd/system-preset/a.preset:2: `enable` names no pattern"
            ]
        );
    }
}
