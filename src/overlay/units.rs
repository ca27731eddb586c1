//! Unit states as links, as `systemctl enable`, `disable` and `mask` would make them, and the preset that keeps them.

use std::collections::{BTreeMap, BTreeSet};

use crate::declaration::UnitState;
use crate::finding::Failure;
use crate::systemd::search::{UNIT_DIRECTORIES, existing, follow, is_null_or_empty};
use crate::systemd::unit_file::{UnitFile, words};
use crate::tree::{Kind, Tree, TreePath};

/// Where `systemctl` makes its links.
const LOCAL: &str = "etc/systemd/system";
/// The preset file. Files are read in order of their names and the first matching line counts (systemd.preset(5)).
pub const PRESET: &str = "/etc/systemd/system-preset/00-fitout.preset";

/// What the states ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Links and entries to remove.
    pub remove: BTreeMap<TreePath, String>,
    /// Links to make: target, and the unit that asks.
    pub links: BTreeMap<TreePath, (Vec<u8>, String)>,
    /// Lines of the preset, sorted.
    pub preset: BTreeSet<String>,
    /// Units that are to be enabled and are not there.
    pub missing: BTreeSet<String>,
    /// Units that are to be enabled and say not how, with the reason.
    pub no_install: BTreeMap<String, String>,
}

/// Works out the changes over a tree that has the overlays' own files in it.
///
/// # Errors
/// When the base cannot be read.
pub fn changes(tree: &Tree, states: &BTreeMap<String, UnitState>) -> Result<Changes, Failure> {
    let view = View::new(tree);
    let mut changes = Changes::default();
    for (unit, state) in states {
        let names = view.names(unit)?;
        match state {
            UnitState::Enabled => view.enable(unit, &mut changes, &mut BTreeSet::new())?,
            UnitState::Stopped => view.stop(&names, unit, &mut changes),
            UnitState::Masked => {
                view.stop(&names, unit, &mut changes);
                changes.remove.remove(&view.local(unit));
                changes.links.insert(view.local(unit), (b"/dev/null".to_vec(), unit.clone()));
            }
        }
        if *state != UnitState::Enabled {
            changes.preset.extend(names.iter().map(|name| preset_line("disable", name)));
        }
    }
    Ok(changes)
}

/// A preset line; an instance is enabled by its template and its name.
fn preset_line(verb: &str, unit: &str) -> String {
    match unit.split_once('@').and_then(|(prefix, rest)| Some((prefix, rest.rsplit_once('.')?))) {
        Some((prefix, (instance, kind))) if !instance.is_empty() => format!("{verb} {prefix}@.{kind} {instance}"),
        _ => format!("{verb} {unit}"),
    }
}

struct View<'a> {
    tree: &'a Tree,
    /// Existing unit directories as they resolve, without doubles (`/lib` may lead to `/usr/lib`).
    directories: Vec<TreePath>,
}

impl<'a> View<'a> {
    fn new(tree: &'a Tree) -> View<'a> {
        View { tree, directories: existing(tree, &UNIT_DIRECTORIES) }
    }

    fn local(&self, name: &str) -> TreePath {
        let local = TreePath::parse(LOCAL).unwrap_or_default();
        self.tree.resolve_fully(&local).unwrap_or(local).join(name)
    }

    /// The file behind a unit's name and its content; `None` when there is none or it is masked.
    fn file(&self, unit: &str) -> Result<Option<(TreePath, UnitFile)>, Failure> {
        let template =
            unit.split_once('@').and_then(|(prefix, rest)| Some(format!("{prefix}@.{}", rest.rsplit_once('.')?.1)));
        for name in std::iter::once(unit.to_owned()).chain(template) {
            for directory in &self.directories {
                let path = directory.join(&name);
                // A mask hides the unit, but what is to be enabled is unmasked first.
                if is_null_or_empty(self.tree, &path) {
                    continue;
                }
                let Some(file) = follow(self.tree, &path) else { continue };
                if matches!(self.tree.get(&file).map(|e| &e.kind), Some(Kind::File(_))) {
                    return Ok(Some((file.clone(), UnitFile::parse(&self.tree.content(&file)?))));
                }
            }
        }
        Ok(None)
    }

    /// All names under which a unit can be started: its own, `Alias=`, and links that lead to it.
    fn names(&self, unit: &str) -> Result<BTreeSet<String>, Failure> {
        let mut names = BTreeSet::from([unit.to_owned()]);
        if let Some((path, file)) = self.file(unit)? {
            names.extend(list(&file, "Alias"));
            for (link, entry) in self.directories.iter().flat_map(|d| self.tree.children(d)) {
                let is_alias =
                    matches!(entry.kind, Kind::Symlink(_)) && follow(self.tree, link).as_ref() == Some(&path);
                if is_alias {
                    names.extend(std::str::from_utf8(link.file_name()).map(str::to_owned));
                }
            }
        }
        Ok(names)
    }

    /// Removes every start of a unit: links in `.wants/` and its like, alias links, SysV S links.
    fn stop(&self, names: &BTreeSet<String>, unit: &str, changes: &mut Changes) {
        let is_named = |path: &TreePath| {
            std::str::from_utf8(path.file_name())
                .is_ok_and(|file| names.iter().any(|name| name == file || is_instance(file, name)))
        };
        for directory in &self.directories {
            for (pulling, _) in self.tree.children(directory).filter(|(p, e)| e.is_directory() && pulls(p)) {
                let links = self.tree.children(pulling).filter(|(path, _)| is_named(path));
                changes.remove.extend(links.map(|(path, _)| (path.clone(), unit.to_owned())));
            }
        }
        for alias in names.iter().filter(|name| *name != unit) {
            let path = self.local(alias);
            if self.tree.get(&path).is_some_and(|e| matches!(e.kind, Kind::Symlink(_))) {
                changes.remove.insert(path, unit.to_owned());
            }
        }
        self.stop_sysv(names, unit, changes);
    }

    /// K links in place of S links: update-rc.d makes S links again on an upgrade, but not where K links are.
    fn stop_sysv(&self, names: &BTreeSet<String>, unit: &str, changes: &mut Changes) {
        let scripts: BTreeSet<&str> = names.iter().filter_map(|name| name.strip_suffix(".service")).collect();
        for level in ["0", "1", "2", "3", "4", "5", "6", "S"] {
            let Ok(directory) = TreePath::parse(format!("etc/rc{level}.d")) else { continue };
            let split = |path: &TreePath| {
                let name = String::from_utf8_lossy(path.file_name()).into_owned();
                let (kind, rest) = name.split_at_checked(1)?;
                let (number, script) = rest.split_at_checked(2)?;
                let known = scripts.contains(script) && number.bytes().all(|b| b.is_ascii_digit());
                known.then(|| (kind.to_owned(), number.to_owned(), script.to_owned()))
            };
            let entries: Vec<_> = self.tree.children(&directory).filter_map(|(p, e)| Some((p, e, split(p)?))).collect();
            let killed: BTreeSet<&str> = entries
                .iter()
                .filter(|(_, _, (kind, ..))| kind == "K")
                .map(|(_, _, (.., script))| script.as_str())
                .collect();
            for (path, entry, (kind, number, script)) in &entries {
                if kind != "S" {
                    continue;
                }
                changes.remove.insert((*path).clone(), unit.to_owned());
                if let (Kind::Symlink(target), false) = (&entry.kind, killed.contains(script.as_str())) {
                    changes
                        .links
                        .insert(directory.join(format!("K{number}{script}")), (target.clone(), unit.to_owned()));
                }
            }
        }
    }

    fn enable(&self, unit: &str, changes: &mut Changes, seen: &mut BTreeSet<String>) -> Result<(), Failure> {
        if !seen.insert(unit.to_owned()) {
            return Ok(());
        }
        let Some((path, file)) = self.file(unit)? else {
            changes.missing.insert(unit.to_owned());
            return Ok(());
        };
        changes.preset.insert(preset_line("enable", unit));
        let mask = self.local(unit);
        if is_null_or_empty(self.tree, &mask) {
            changes.remove.insert(mask, unit.to_owned());
        }
        let mut links = Vec::new();
        for (key, suffix) in [("WantedBy", "wants"), ("RequiredBy", "requires"), ("UpheldBy", "upholds")] {
            links.extend(list(&file, key).into_iter().map(|by| format!("{by}.{suffix}/{unit}")));
        }
        links.extend(list(&file, "Alias"));
        let also = list(&file, "Also");
        let reason = if links.iter().chain(&also).any(|value| value.contains('%')) {
            Some("its `[Install]` section has a specifier")
        } else if unit.contains("@.") {
            Some("it is a template without an instance")
        } else if links.is_empty() && also.is_empty() {
            Some("it has no `WantedBy=`, `RequiredBy=`, `UpheldBy=`, `Alias=` or `Also=` in `[Install]`")
        } else {
            None
        };
        if let Some(reason) = reason {
            changes.no_install.insert(unit.to_owned(), reason.to_owned());
            return Ok(());
        }
        for link in links {
            let link = self.local(&link);
            if follow(self.tree, &link).as_ref() != Some(&path) {
                changes.links.insert(link, (path.display().into_bytes(), unit.to_owned()));
            }
        }
        for other in also {
            self.enable(&other, changes, seen)?;
        }
        Ok(())
    }
}

fn list(file: &UnitFile, key: &str) -> Vec<String> {
    file.values("Install", key).iter().flat_map(|a| words(&a.value)).collect()
}

fn pulls(directory: &TreePath) -> bool {
    let name = directory.file_name();
    [&b".wants"[..], b".requires", b".upholds"].iter().any(|suffix| name.ends_with(suffix))
}

/// True for `foo@x.service` of `foo@.service`.
fn is_instance(file: &str, template: &str) -> bool {
    match template.split_once("@.") {
        Some((prefix, kind)) => {
            file.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('@') && rest.ends_with(&format!(".{kind}")))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systemd::testing::tree;

    fn show(files: &[(&str, &str)], states: &[(&str, UnitState)]) -> Vec<String> {
        let states = states.iter().map(|(unit, state)| ((*unit).to_owned(), *state)).collect();
        let changes = changes(&tree(files), &states).unwrap();
        let remove = changes.remove.keys().map(|path| format!("- {path}"));
        let links = changes.links.iter().map(|(path, (to, _))| format!("+ {path} -> {}", String::from_utf8_lossy(to)));
        let missing = changes.missing.iter().map(|unit| format!("missing {unit}"));
        let no_install = changes.no_install.iter().map(|(unit, reason)| format!("{unit}: {reason}"));
        remove.chain(links).chain(changes.preset.iter().cloned()).chain(missing).chain(no_install).collect()
    }

    const X: (&str, &str) =
        ("usr/lib/systemd/system/x.service", "[Install]\nWantedBy=a.target b.target\nAlias=y.service\n");

    #[test]
    fn stopped_takes_every_start() {
        let files = [
            X,
            ("lib", "-> usr/lib"),
            ("etc/systemd/system/y.service", "-> /lib/systemd/system/x.service"),
            ("etc/systemd/system/z.service", "-> /usr/lib/systemd/system/x.service"),
            ("etc/systemd/system/a.target.wants/x.service", "-> /usr/lib/systemd/system/x.service"),
            ("etc/systemd/system/a.target.upholds/z.service", "-> ../z.service"),
            ("etc/systemd/system/a.target.wants/other.service", "-> /usr/lib/systemd/system/other.service"),
            ("usr/lib/systemd/system/b.service.requires/x.service", "-> ../x.service"),
            ("etc/rc0.d/K01x", "-> ../init.d/x"),
            ("etc/rc2.d/S01x", "-> ../init.d/x"),
            ("etc/rc3.d/K05x", "-> ../init.d/x"),
            ("etc/rc3.d/S20x", "-> ../init.d/x"),
            ("etc/rc3.d/S20xy", "-> ../init.d/xy"),
            ("etc/rcS.d/S03y", "-> ../init.d/y"),
        ];
        let want = [
            "- /etc/rc2.d/S01x",
            "- /etc/rc3.d/S20x",
            "- /etc/rcS.d/S03y",
            "- /etc/systemd/system/a.target.upholds/z.service",
            "- /etc/systemd/system/a.target.wants/x.service",
            "- /etc/systemd/system/y.service",
            "- /etc/systemd/system/z.service",
            "- /usr/lib/systemd/system/b.service.requires/x.service",
            "+ /etc/rc2.d/K01x -> ../init.d/x",
            "+ /etc/rcS.d/K03y -> ../init.d/y",
            "disable x.service",
            "disable y.service",
            "disable z.service",
        ];
        assert_eq!(show(&files, &[("x.service", UnitState::Stopped)]), want);
    }

    #[test]
    fn a_stopped_template_stops_its_instances() {
        let files = [
            ("usr/lib/systemd/system/x@.service", "[Install]\nWantedBy=a.target\n"),
            ("etc/systemd/system/a.target.wants/x@one.service", "-> /usr/lib/systemd/system/x@.service"),
            ("etc/systemd/system/a.target.wants/xy@one.service", "-> /usr/lib/systemd/system/xy@.service"),
        ];
        let want = ["- /etc/systemd/system/a.target.wants/x@one.service", "disable x@.service"];
        assert_eq!(show(&files, &[("x@.service", UnitState::Stopped)]), want);
    }

    #[test]
    fn masked_hides_the_unit_even_where_there_is_none() {
        let mask = ["+ /etc/systemd/system/x.service -> /dev/null", "disable x.service"];
        assert_eq!(show(&[("etc/systemd/system", "/")], &[("x.service", UnitState::Masked)]), mask);
    }

    #[test]
    fn enabled_makes_the_links_of_install() {
        let state = [("x.service", UnitState::Enabled)];
        let links = [
            "+ /etc/systemd/system/a.target.wants/x.service -> /usr/lib/systemd/system/x.service",
            "+ /etc/systemd/system/b.target.wants/x.service -> /usr/lib/systemd/system/x.service",
            "+ /etc/systemd/system/y.service -> /usr/lib/systemd/system/x.service",
            "enable x.service",
        ];
        assert_eq!(show(&[X], &state), links);
        // What is there already, written in another way, is left.
        let there = ("etc/systemd/system/a.target.wants/x.service", "-> ../../../../usr/lib/systemd/system/x.service");
        assert_eq!(show(&[X, there], &state), links[1..]);
        // A mask goes.
        let masked = show(&[X, ("etc/systemd/system/x.service", "-> /dev/null")], &state);
        assert_eq!(masked[0], "- /etc/systemd/system/x.service");
        assert_eq!(masked[1..], links);
    }

    #[test]
    fn what_cannot_be_enabled_is_said() {
        let cases: &[(&str, &str, &[&str])] = &[
            ("x.service", "", &["missing x.service"]),
            (
                "x.service",
                "[Install]\nWantedBy=%i.target\n",
                &["enable x.service", "x.service: its `[Install]` section has a specifier"],
            ),
            (
                "x@.service",
                "[Install]\nWantedBy=a.target\n",
                &["enable x@.service", "x@.service: it is a template without an instance"],
            ),
            (
                "x@one.service",
                "[Install]\nWantedBy=a.target\nAlso=y.service\n",
                &[
                    "+ /etc/systemd/system/a.target.wants/x@one.service -> /usr/lib/systemd/system/x@.service",
                    "enable x@.service one",
                    "missing y.service",
                ],
            ),
        ];
        for (unit, text, want) in cases {
            let file = format!("usr/lib/systemd/system/{}", unit.replace("@one", "@"));
            let files = if text.is_empty() { vec![("etc/systemd/system", "/")] } else { vec![(file.as_str(), *text)] };
            assert_eq!(show(&files, &[(unit, UnitState::Enabled)]), *want, "{unit} {text}");
        }
    }
}
