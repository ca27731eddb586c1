//! All units of an image: which file is a name's, its aliases and masks, and the drop-ins and links beside it.
//!
//! The maps are built as systemd builds them (`basic/unit-file.c`: `unit_file_build_name_map`,
//! `unit_file_find_fragment`), so that precedence and aliases come out the same.

use std::collections::{BTreeMap, BTreeSet};

use super::fstab::{self, FstabUnit};
use super::name::UnitName;
use super::search::{self, follow, is_null_or_empty, link_target};
use super::sysv::{self, Script};
use super::unit_file::UnitFile;
use super::version;
use crate::tree::{Kind, Tree, TreePath};

/// systemd follows at most this many aliases (`FOLLOW_MAX`).
const MAX_ALIASES: usize = 8;

/// What a name in the map leads to.
#[derive(Debug, Clone)]
enum Target {
    /// A file, or a link out of the unit directories, at this path.
    Path(TreePath),
    /// Another name.
    Alias(UnitName),
}

/// The units of a tree.
#[derive(Debug)]
pub struct UnitSet<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// Unit directories that exist, highest precedence first.
    pub directories: Vec<TreePath>,
    ids: BTreeMap<UnitName, Target>,
    /// Names by the name that they end at (itself included).
    names: BTreeMap<UnitName, Vec<UnitName>>,
    /// SysV scripts without a native unit, by the unit that the generator makes of them.
    pub sysv: BTreeMap<UnitName, Script>,
    /// Units that `/etc/fstab` makes.
    pub fstab: Vec<FstabUnit>,
    /// Suffixes of directories whose links are dependencies, with the key that each stands for.
    pub link_kinds: &'static [(&'static str, &'static str)],
}

/// Every kind of dependency link; `.upholds/` is not known to systemd before 254.
const LINK_KINDS: &[(&str, &str)] = &[(".wants", "Wants"), (".requires", "Requires"), (".upholds", "Upholds")];

/// Whether a unit can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// It has a unit file, or needs none (slices, devices).
    Loaded,
    /// A link to `/dev/null` or an empty file at this path.
    Masked(TreePath),
    /// `systemd-sysv-generator` makes it of this script.
    SysV(TreePath),
    /// It has a unit file that systemd refuses to load, with the reason.
    Refused(&'static str),
    /// There is no such unit.
    NotFound,
}

/// A link in a `.wants/`, `.requires/` or `.upholds/` directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyLink {
    /// `Wants`, `Requires` or `Upholds`.
    pub key: &'static str,
    /// The link.
    pub path: TreePath,
    /// The unit: the link's own name counts, not its target.
    pub to: UnitName,
}

/// A unit file or drop-in of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitText {
    /// Where it was found.
    pub path: TreePath,
    /// What it says.
    pub file: UnitFile,
}

/// A loaded unit.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Its main name.
    pub id: UnitName,
    /// All names, the main one too.
    pub names: BTreeSet<UnitName>,
    /// Whether it can be started.
    pub load: Load,
    /// The unit file's path, for units that have one.
    pub fragment: Option<TreePath>,
    /// Unit file first, then drop-ins by name. Empty when masked or not found.
    pub files: Vec<UnitText>,
    /// Links of `.wants/`, `.requires/`, `.upholds/`.
    pub links: Vec<DependencyLink>,
    /// Files that could not be read, with the reason.
    pub unreadable: Vec<(TreePath, String)>,
}

impl<'a> UnitSet<'a> {
    /// Reads the unit directories of a tree.
    pub fn new(tree: &'a Tree) -> UnitSet<'a> {
        let directories = search::existing(tree, &search::UNIT_DIRECTORIES);
        let mut set = UnitSet {
            tree,
            directories,
            ids: BTreeMap::new(),
            names: BTreeMap::new(),
            sysv: BTreeMap::new(),
            fstab: fstab::units(tree),
            link_kinds: match version::version(tree) {
                Some(version) if version < version::UPHOLDS_LINKS => &LINK_KINDS[..2],
                _ => LINK_KINDS,
            },
        };
        for directory in set.directories.clone() {
            for (path, entry) in tree.children(&directory) {
                let Some(name) = std::str::from_utf8(path.file_name()).ok().and_then(UnitName::parse) else { continue };
                if set.ids.contains_key(&name) || entry.is_directory() {
                    continue;
                }
                let target = match &entry.kind {
                    Kind::Symlink(target) => set.read_link(&directory, path, &name, target),
                    _ => Some(Target::Path(path.clone())),
                };
                if let Some(target) = target {
                    set.ids.insert(name, target);
                }
            }
        }
        set.name_aliases();
        set.sysv = sysv::scripts(tree).into_iter().filter(|(name, _)| !set.ids.contains_key(name)).collect();
        set
    }

    /// What a link in a unit directory is: a unit from elsewhere, a mask, an alias, or nothing.
    fn read_link(&self, directory: &TreePath, path: &TreePath, name: &UnitName, target: &[u8]) -> Option<Target> {
        let simplified = link_target(self.tree, directory, target)?;
        if !self.directories.iter().any(|d| simplified.is_below(d)) {
            return Some(Target::Path(path.clone()));
        }
        let alias = std::str::from_utf8(simplified.file_name()).ok().and_then(UnitName::parse)?;
        // A link to the same name in a lower directory has no effect.
        (alias != *name && may_alias(name, &alias)).then_some(Target::Alias(alias))
    }

    /// Follows aliases to a path.
    fn path_of(&self, name: &UnitName) -> Option<&TreePath> {
        let mut at = self.ids.get(name)?;
        for _ in 0..MAX_ALIASES {
            match at {
                Target::Path(path) => return Some(path),
                Target::Alias(next) => {
                    at = self.ids.get(next).or_else(|| next.template().and_then(|t| self.ids.get(&t)))?
                }
            }
        }
        None
    }

    fn name_aliases(&mut self) {
        let mut names: BTreeMap<UnitName, Vec<UnitName>> = BTreeMap::new();
        for source in self.ids.keys() {
            let Some(path) = self.path_of(source) else { continue };
            if is_null_or_empty(self.tree, path) {
                continue;
            }
            let Some(mut end) = unit_at(path) else { continue };
            if let (true, Some(instance)) = (end.is_template(), source.instance()) {
                let Some(instantiated) = end.instantiate(instance) else { continue };
                end = instantiated;
            }
            names.entry(end).or_default().push(source.clone());
        }
        self.names = names;
    }

    /// Every name in the unit directories, aliases and masked ones too.
    pub fn all_names(&self) -> impl Iterator<Item = &UnitName> {
        self.ids.keys()
    }

    /// The path of a name's unit file (a link when it is one), aliases followed.
    pub fn fragment(&self, name: &UnitName) -> Option<&TreePath> {
        self.path_of(name).or_else(|| name.template().and_then(|t| self.path_of(&t)))
    }

    /// The main name of a unit: where its aliases end.
    pub fn canonical(&self, name: &UnitName) -> UnitName {
        let end = self.fragment(name).and_then(unit_at);
        match (end, name.instance()) {
            (Some(end), Some(instance)) if end.is_template() => end.instantiate(instance).unwrap_or(end),
            (Some(end), _) => end,
            (None, _) => name.clone(),
        }
    }

    fn names_of(&self, name: &UnitName, id: &UnitName) -> BTreeSet<UnitName> {
        let mut all = BTreeSet::from([name.clone(), id.clone()]);
        for source in [Some(id.clone()), id.template()].into_iter().flatten() {
            for alias in self.names.get(&source).into_iter().flatten() {
                match id.instance() {
                    Some(instance) if alias.is_template() => {
                        // An instance with a file of its own points in another direction.
                        let instance = alias.instantiate(instance).filter(|i| self.canonical(i) == *id);
                        all.extend(instance);
                    }
                    _ => all.extend([alias.clone()]),
                }
            }
        }
        all
    }

    /// Loads a unit with its drop-ins and links, under whatever name.
    pub fn load(&self, name: &UnitName) -> Unit {
        let id = self.canonical(name);
        let fragment = self.fragment(name).cloned();
        let mut unit = Unit {
            names: self.names_of(name, &id),
            id,
            load: Load::NotFound,
            fragment: fragment.clone(),
            files: Vec::new(),
            links: Vec::new(),
            unreadable: Vec::new(),
        };
        unit.load = match (&fragment, self.sysv.get(&unit.id)) {
            (Some(path), _) if is_null_or_empty(self.tree, path) => Load::Masked(path.clone()),
            (Some(path), _) if follow(self.tree, path).is_some() => {
                self.read(path, &mut unit);
                Load::Loaded
            }
            (None, Some(script)) => Load::SysV(script.path.clone()),
            // Slices and devices need no file; scopes and swaps are not ours to find.
            (None, None) if matches!(unit.id.kind(), "slice" | "device") => Load::Loaded,
            (None, None) if self.fstab.iter().any(|f| f.unit == unit.id) => Load::Loaded,
            _ => Load::NotFound,
        };
        if matches!(unit.load, Load::Loaded | Load::SysV(_)) {
            self.read_beside(&mut unit);
        }
        if let (Load::Loaded, Some(reason)) = (&unit.load, refusal(&unit)) {
            unit.load = Load::Refused(reason);
        }
        unit
    }

    /// Units that are active before anything is started, though they have no file and nothing pulls them in: PID 1's own
    /// scope and the mounts that it finds (`perpetual` units, `/proc/self/mountinfo`). Of mounts, those that something
    /// in the unit directories is about. Their drop-ins and links are read.
    pub fn active_from_the_start(&self) -> Vec<Unit> {
        let mut names: BTreeSet<UnitName> = ["init.scope", "-.mount"].into_iter().filter_map(UnitName::parse).collect();
        for (path, _) in self.directories.iter().flat_map(|directory| self.tree.children(directory)) {
            let name = std::str::from_utf8(path.file_name()).unwrap_or_default();
            let stem = [".d", ".upholds"].iter().find_map(|suffix| name.strip_suffix(suffix));
            names.extend(stem.and_then(UnitName::parse).filter(|name| matches!(name.kind(), "mount" | "scope")));
        }
        let mut units: Vec<Unit> = names.iter().map(|name| self.load(name)).collect();
        units.retain(|unit| unit.load == Load::NotFound);
        units.iter_mut().for_each(|unit| self.read_beside(unit));
        units
    }

    /// Reads the drop-ins and links of a unit.
    fn read_beside(&self, unit: &mut Unit) {
        for path in self.beside(unit, ".d", ".conf") {
            if !is_null_or_empty(self.tree, &path) {
                self.read(&path, unit);
            }
        }
        for &(suffix, key) in self.link_kinds {
            for path in self.beside(unit, suffix, "") {
                let is_link = self.tree.get(&path).is_some_and(|e| matches!(e.kind, Kind::Symlink(_)));
                if let (true, false, Some(to)) = (is_link, is_null_or_empty(self.tree, &path), unit_at(&path)) {
                    unit.links.push(DependencyLink { key, path, to });
                }
            }
        }
    }

    /// Files of the directories `NAME<suffix>` that apply to a unit.
    fn beside(&self, unit: &Unit, suffix: &str, file_suffix: &str) -> Vec<TreePath> {
        let mut directories: Vec<TreePath> = Vec::new();
        let mut add = |name: &str| {
            let found = self.directories.iter().filter_map(|d| follow(self.tree, &d.join(format!("{name}{suffix}"))));
            for path in found {
                if !directories.contains(&path) {
                    directories.push(path);
                }
            }
        };
        let others = unit.names.iter().filter(|n| **n != unit.id);
        for name in std::iter::once(&unit.id).chain(others) {
            name.directory_names().iter().for_each(|n| add(n));
        }
        add(unit.id.kind());
        search::merged_files(self.tree, &directories, file_suffix)
    }

    fn read(&self, path: &TreePath, unit: &mut Unit) {
        let Some(end) = follow(self.tree, path) else { return };
        match self.tree.content(&end) {
            Ok(bytes) => unit.files.push(UnitText { path: path.clone(), file: UnitFile::parse(&bytes) }),
            Err(failure) => unit.unreadable.push((path.clone(), failure.message)),
        }
    }
}

impl Unit {
    /// Every assignment of a key with the path of its file, in order, resets too.
    pub fn all<'u>(
        &'u self,
        section: &'u str,
        key: &'u str,
    ) -> impl Iterator<Item = (&'u TreePath, &'u super::unit_file::Assignment)> {
        self.files.iter().flat_map(move |text| text.file.all(section, key).map(move |a| (&text.path, a)))
    }

    /// The assignments of a list key that stand after its last reset.
    pub fn values<'u>(
        &'u self,
        section: &'u str,
        key: &'u str,
    ) -> Vec<(&'u TreePath, &'u super::unit_file::Assignment)> {
        let mut kept = Vec::new();
        for (path, assignment) in self.all(section, key) {
            if assignment.value.is_empty() {
                kept.clear();
            } else {
                kept.push((path, assignment));
            }
        }
        kept
    }

    /// The last value of a key that holds one.
    pub fn last(&self, section: &str, key: &str) -> Option<&str> {
        let mut all = self.files.iter().flat_map(|text| &text.file.assignments);
        let last = all.rfind(|a| a.section == section && a.key == key);
        last.map(|a| a.value.as_str()).filter(|v| !v.is_empty())
    }

    /// A boolean key, with its default.
    pub fn flag(&self, section: &str, key: &str, default: bool) -> bool {
        self.last(section, key).and_then(super::unit_file::boolean).unwrap_or(default)
    }
}

/// Why systemd does not load a unit that it has a file of (`service_verify`, `config_parse`). Only what is sure.
fn refusal(unit: &Unit) -> Option<&'static str> {
    let fragment = unit.files.iter().find(|text| Some(&text.path) == unit.fragment.as_ref())?;
    if fragment.file.broken {
        return Some("a section header of its unit file is broken");
    }
    let has = |key: &str| !unit.values("Service", key).is_empty();
    let idle = unit.id.kind() == "service" && !has("ExecStart") && !has("ExecStop");
    (idle && unit.last("Unit", "SuccessAction").is_none()).then_some("it is a service without any command")
}

/// The unit name that a path ends in.
pub fn unit_at(path: &TreePath) -> Option<UnitName> {
    std::str::from_utf8(path.file_name()).ok().and_then(UnitName::parse)
}

/// Whether a link of this name may be an alias of that unit (`unit_validate_alias_symlink_and_warn`).
fn may_alias(name: &UnitName, target: &UnitName) -> bool {
    let types = ["service", "socket", "target", "device", "timer", "path"];
    let shape = match (name.instance(), target.instance()) {
        (Some(a), Some(b)) => a == b,
        (Some(_), None) => target.is_template(),
        (None, Some(_)) => false,
        (None, None) => name.is_template() == target.is_template(),
    };
    shape && name.kind() == target.kind() && types.contains(&name.kind())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Files, tree};
    use super::*;

    const LIB: &str = "/usr/lib/systemd/system";
    const ETC: &str = "/etc/systemd/system";

    fn name(text: &str) -> UnitName {
        UnitName::parse(text).unwrap()
    }

    fn show(tree: &Tree, unit: &str) -> String {
        let set = UnitSet::new(tree);
        let unit = set.load(&name(unit));
        let load = match &unit.load {
            Load::Loaded => "loaded".to_owned(),
            Load::Masked(path) => format!("masked by {path}"),
            Load::SysV(path) => format!("sysv {path}"),
            Load::Refused(reason) => format!("refused, {reason}"),
            Load::NotFound => "not found".to_owned(),
        };
        let files: Vec<String> = unit.files.iter().map(|f| f.path.display()).collect();
        let links: Vec<String> = unit.links.iter().map(|l| format!("{} {}", l.key, l.to)).collect();
        let names: Vec<&str> = unit.names.iter().filter(|n| **n != unit.id).map(UnitName::as_str).collect();
        format!("{} [{}] {load}; {}; {}", unit.id, names.join(" "), files.join(" "), links.join(" "))
            .replace(LIB, "LIB")
            .replace(ETC, "ETC")
    }

    #[test]
    fn which_file_is_a_units() {
        let text = "[Unit]\n[Service]\nExecStart=/x\n";
        let table: &[(&str, Files, &str, &str)] = &[
            ("vendor", &[("LIB/a.service", text)], "a.service", "a.service [] loaded; LIB/a.service; "),
            (
                "/etc goes first",
                &[("LIB/a.service", text), ("ETC/a.service", text)],
                "a.service",
                "a.service [] loaded; ETC/a.service; ",
            ),
            (
                "alias",
                &[("LIB/a.service", text), ("ETC/b.service", "-> LIB/a.service")],
                "b.service",
                "a.service [b.service] loaded; LIB/a.service; ",
            ),
            (
                "alias of an alias",
                &[("LIB/a.service", text), ("LIB/b.service", "-> a.service"), ("ETC/c.service", "-> LIB/b.service")],
                "c.service",
                "a.service [b.service c.service] loaded; LIB/a.service; ",
            ),
            (
                "link to the same name has no effect",
                &[("LIB/a.service", text), ("ETC/a.service", "-> LIB/a.service")],
                "a.service",
                "a.service [] loaded; LIB/a.service; ",
            ),
            (
                "unit from elsewhere",
                &[("/opt/x.service", text), ("ETC/a.service", "-> /opt/x.service")],
                "a.service",
                "a.service [] loaded; ETC/a.service; ",
            ),
            (
                "masked",
                &[("LIB/a.service", text), ("ETC/a.service", "-> /dev/null"), ("ETC/a.service.d/x.conf", text)],
                "a.service",
                "a.service [] masked by ETC/a.service; ; ",
            ),
            (
                "masked by an empty file",
                &[("LIB/a.service", text), ("ETC/a.service", "")],
                "a.service",
                "a.service [] masked by ETC/a.service; ; ",
            ),
            (
                "alias of a masked unit",
                &[("ETC/a.service", "-> /dev/null"), ("LIB/a.service", text), ("LIB/b.service", "-> a.service")],
                "b.service",
                "a.service [b.service] masked by ETC/a.service; ; ",
            ),
            ("dangling", &[("ETC/a.service", "-> /nowhere/a.service")], "a.service", "a.service [] not found; ; "),
            (
                "instance of a template",
                &[("LIB/a@.service", text)],
                "a@x.service",
                "a@x.service [] loaded; LIB/a@.service; ",
            ),
            (
                "instance with its own file",
                &[("LIB/a@.service", text), ("ETC/a@x.service", text)],
                "a@x.service",
                "a@x.service [] loaded; ETC/a@x.service; ",
            ),
            (
                "alias of a template",
                &[("LIB/a@.service", text), ("ETC/b@.service", "-> LIB/a@.service")],
                "b@x.service",
                "a@x.service [b@x.service] loaded; LIB/a@.service; ",
            ),
            (
                "an instance that is an alias of a template",
                &[("LIB/a@.service", text), ("ETC/b@x.service", "-> LIB/a@.service")],
                "b@x.service",
                "a@x.service [b@x.service] loaded; LIB/a@.service; ",
            ),
            (
                "a type may not be crossed",
                &[("LIB/a.service", text), ("ETC/b.target", "-> LIB/a.service")],
                "b.target",
                "b.target [] not found; ; ",
            ),
            (
                "a service without a command",
                &[("LIB/a.service", "[Service]\nType=oneshot\n")],
                "a.service",
                "a.service [] refused, it is a service without any command; LIB/a.service; ",
            ),
            (
                "a broken header",
                &[("LIB/a.target", "[Unit]\nWants=b.service\n[Unit")],
                "a.target",
                "a.target [] refused, a section header of its unit file is broken; LIB/a.target; ",
            ),
            (
                "a broken header in a drop-in",
                &[("LIB/a.target", text), ("ETC/a.target.d/x.conf", "[Unit")],
                "a.target",
                "a.target [] loaded; LIB/a.target ETC/a.target.d/x.conf; ",
            ),
            (
                "hidden and backup files",
                &[
                    ("LIB/a.target", text),
                    ("ETC/a.target.d/.x.conf", text),
                    ("ETC/a.target.wants/b.service", "-> b"),
                    ("ETC/a.target.wants/b.service~", "-> b"),
                ],
                "a.target",
                "a.target [] loaded; LIB/a.target; Wants b.service",
            ),
            (
                "links that an older systemd does not know",
                &[
                    ("LIB/a.target", text),
                    ("ETC/a.target.upholds/u.service", "-> ../u.service"),
                    ("/usr/lib/systemd/libsystemd-shared-252.so", ""),
                ],
                "a.target",
                "a.target [] loaded; LIB/a.target; ",
            ),
            ("slices need no file", &[("LIB/a.service", text)], "x.slice", "x.slice [] loaded; ; "),
            (
                "drop-ins of every kind",
                &[
                    ("LIB/a-b@.service", text),
                    ("LIB/alias@.service", "-> a-b@.service"),
                    ("ETC/service.d/1.conf", text),
                    ("ETC/a-.service.d/2.conf", text),
                    ("LIB/a-b@.service.d/3.conf", text),
                    ("ETC/a-b@x.service.d/4.conf", text),
                    ("ETC/alias@x.service.d/5.conf", text),
                    ("ETC/a-b@x.service.d/not-a-drop-in", text),
                    ("ETC/a-b@x.service.d/3.conf", "-> /dev/null"),
                ],
                "a-b@x.service",
                "a-b@x.service [alias@x.service] loaded; LIB/a-b@.service ETC/service.d/1.conf ETC/a-.service.d/2.conf \
                 ETC/a-b@x.service.d/4.conf ETC/alias@x.service.d/5.conf; ",
            ),
            (
                "links of every kind",
                &[
                    ("LIB/a.target", text),
                    ("ETC/a.target.wants/w.service", "-> LIB/other.service"),
                    ("LIB/a.target.wants/masked.service", "-> x"),
                    ("ETC/a.target.wants/masked.service", "-> /dev/null"),
                    ("ETC/a.target.wants/file.service", text),
                    ("ETC/a.target.requires/r.service", "-> ../r.service"),
                    ("ETC/a.target.upholds/u.service", "-> ../u.service"),
                    ("ETC/target.wants/t.service", "-> ../t.service"),
                ],
                "a.target",
                "a.target [] loaded; LIB/a.target; Wants t.service Wants w.service Requires r.service Upholds u.service",
            ),
            (
                "a script without a native unit",
                &[("/etc/init.d/a", "#!/bin/sh"), ("LIB/x.service", text)],
                "a.service",
                "a.service [] sysv /etc/init.d/a; ; ",
            ),
            (
                "a script with a native unit",
                &[("/etc/init.d/a", "#!/bin/sh"), ("LIB/a.service", text)],
                "a.service",
                "a.service [] loaded; LIB/a.service; ",
            ),
        ];
        for (case, files, unit, want) in table {
            let files: Vec<(String, String)> =
                files.iter().map(|(p, t)| (p.replace("LIB", LIB).replace("ETC", ETC), t.replace("LIB", LIB))).collect();
            let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
            assert_eq!(show(&tree(&files), unit), *want, "{case}");
        }
    }

    #[test]
    fn dependencies_cannot_be_reset_and_lists_can() {
        let tree = tree(&[
            ("/usr/lib/systemd/system/a.service", "[Unit]\nWants=x.service\n[Service]\nExecStart=/a\n"),
            ("/etc/systemd/system/a.service.d/1.conf", "[Unit]\nWants=\n[Service]\nExecStart=\nExecStart=/b\n"),
        ]);
        let unit = UnitSet::new(&tree).load(&name("a.service"));
        assert_eq!(unit.all("Unit", "Wants").filter(|(_, a)| !a.value.is_empty()).count(), 1);
        let starts: Vec<&str> = unit.values("Service", "ExecStart").iter().map(|(_, a)| a.value.as_str()).collect();
        assert_eq!(starts, ["/b"]);
    }
}
