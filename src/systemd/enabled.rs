//! What `systemctl is-enabled` says of the units of a tree (systemctl(1); `unit_file_lookup_state` of systemd's
//! `src/shared/install.c`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::name::UnitName;
use super::search::{self, is_null_or_empty};
use super::unit_file::words;
use super::units::{Load, Unit, UnitSet, unit_at};
use crate::tree::{Kind, TreePath};

/// The state of a unit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitFileState {
    /// Links below `/etc/systemd/system` lead to it.
    Enabled,
    /// It has an `[Install]` section and no such link.
    Disabled,
    /// It has no `[Install]` section that does anything: only other units start it.
    Static,
    /// Enabling it enables others only (`Also=`), or it is enabled under a name or instance that it does not name.
    Indirect,
    /// Another name of a unit.
    Alias,
    /// Its file lies outside of the unit directories.
    Linked,
    /// It leads to `/dev/null` or is empty.
    Masked,
}

impl fmt::Display for UnitFileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnitFileState::Enabled => "enabled",
            UnitFileState::Disabled => "disabled",
            UnitFileState::Static => "static",
            UnitFileState::Indirect => "indirect",
            UnitFileState::Alias => "alias",
            UnitFileState::Linked => "linked",
            UnitFileState::Masked => "masked",
        })
    }
}

/// The state of every unit file of the tree, by name. SysV scripts and generated units have none.
pub fn states(set: &UnitSet) -> BTreeMap<UnitName, UnitFileState> {
    let links = Links::new(set);
    set.all_names().filter_map(|name| Some((name.clone(), state(set, name, &links)?))).collect()
}

/// `None` for a name whose link leads nowhere.
fn state(set: &UnitSet, name: &UnitName, links: &Links) -> Option<UnitFileState> {
    let path = set.fragment(name)?;
    if is_null_or_empty(set.tree, path) {
        return Some(UnitFileState::Masked);
    }
    search::follow(set.tree, path)?;
    let own = unit_at(path)?;
    if own != *name && own.instance().is_none() {
        return Some(UnitFileState::Alias);
    }
    let unit = set.load(name);
    // What systemd refuses to load can be enabled all the same.
    if !matches!(unit.load, Load::Loaded | Load::Refused(_)) {
        return None;
    }
    if let Some(state) = links.lead_to(&unit) {
        return Some(state);
    }
    let says = |keys: &[&str]| keys.iter().any(|key| !unit.values("Install", key).is_empty());
    let is_link = set.tree.get(path).is_some_and(|e| matches!(e.kind, Kind::Symlink(_)));
    Some(if is_link && links.directories.iter().any(|d| path.is_below(d)) {
        UnitFileState::Linked
    } else if says(&["WantedBy", "RequiredBy", "UpheldBy", "Alias"]) {
        UnitFileState::Disabled
    } else if says(&["Also"]) {
        UnitFileState::Indirect
    } else {
        UnitFileState::Static
    })
}

/// The links of the administrator's directory, where enabling makes them.
struct Links {
    directories: Vec<TreePath>,
    /// Names of the links in `.wants/`, `.requires/`, `.upholds/`, wherever they lead.
    pulled: BTreeSet<UnitName>,
    /// Names of links beside the units, with the unit they lead to.
    aliases: Vec<(UnitName, UnitName)>,
}

impl Links {
    fn new(set: &UnitSet) -> Links {
        let directories = search::existing(set.tree, &["etc/systemd/system"]);
        let (mut pulled, mut aliases) = (BTreeSet::new(), Vec::new());
        for (path, entry) in directories.iter().flat_map(|d| set.tree.children(d)) {
            let pulls =
                [".wants", ".requires", ".upholds"].iter().any(|suffix| path.file_name().ends_with(suffix.as_bytes()));
            match &entry.kind {
                Kind::Directory if pulls => {
                    let links = set.tree.children(path).filter(|(_, e)| matches!(e.kind, Kind::Symlink(_)));
                    pulled.extend(links.filter_map(|(link, _)| unit_at(link)));
                }
                Kind::Symlink(target) => {
                    let target = target.rsplit(|b| *b == b'/').next().unwrap_or_default();
                    let target = std::str::from_utf8(target).ok().and_then(UnitName::parse);
                    // A link of the same name says where the unit is, not that it is enabled.
                    aliases.extend(unit_at(path).zip(target).filter(|(own, target)| own != target));
                }
                _ => {}
            }
        }
        Links { directories, pulled, aliases }
    }

    /// What the links make of a unit: enabled by those that enabling it makes, indirectly so by others.
    fn lead_to(&self, unit: &Unit) -> Option<UnitFileState> {
        let id = &unit.id;
        let default = unit.last("Install", "DefaultInstance").and_then(|instance| id.instantiate(instance));
        let aliases: Vec<_> = self.aliases.iter().filter(|(_, target)| target == id).map(|(own, _)| own).collect();
        let named = |alias: &UnitName| {
            let all = unit.values("Install", "Alias").into_iter().flat_map(|(_, a)| words(&a.value));
            all.filter_map(|word| id.expand(&word).ok()).any(|word| word == alias.as_str())
        };
        let is_default = |name: &UnitName| default.as_ref() == Some(name);
        if self.pulled.iter().any(|name| name == id || is_default(name)) || aliases.iter().any(|alias| named(alias)) {
            return Some(UnitFileState::Enabled);
        }
        let of_template = |name: &UnitName| name.template().as_ref() == Some(id);
        (self.pulled.iter().any(of_template) || !aliases.is_empty()).then_some(UnitFileState::Indirect)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn states_are_as_systemctl_says() {
        // `systemctl --root=TREE is-enabled` of systemd 252 and 257 says the same of this tree.
        let tree = tree(&[
            ("/usr/lib/systemd/system/multi-user.target", "[Unit]"),
            ("/usr/lib/systemd/system/on.service", "[Install]\nWantedBy=multi-user.target"),
            ("/etc/systemd/system/multi-user.target.wants/on.service", "-> /usr/lib/systemd/system/on.service"),
            ("/usr/lib/systemd/system/off.service", "[Install]\nWantedBy=multi-user.target"),
            ("/usr/lib/systemd/system/plain.service", "[Service]"),
            ("/usr/lib/systemd/system/vendor.service", "[Service]"),
            ("/usr/lib/systemd/system/multi-user.target.wants/vendor.service", "-> ../vendor.service"),
            ("/usr/lib/systemd/system/also.service", "[Install]\nAlso=off.service"),
            ("/usr/lib/systemd/system/other.service", "-> off.service"),
            ("/usr/lib/systemd/system/named.service", "[Install]\nAlias=alias.service"),
            ("/etc/systemd/system/alias.service", "-> /usr/lib/systemd/system/named.service"),
            ("/etc/systemd/system/gone.service", "-> /dev/null"),
            ("/etc/systemd/system/empty.service", ""),
            ("/etc/systemd/system/far.service", "-> /opt/far.service"),
            ("/opt/far.service", "[Install]\nWantedBy=multi-user.target"),
            ("/usr/lib/systemd/system/many@.service", "[Install]\nWantedBy=multi-user.target"),
            ("/etc/systemd/system/multi-user.target.wants/many@1.service", "-> /usr/lib/systemd/system/many@.service"),
            ("/etc/systemd/system/nowhere.service", "-> /usr/lib/systemd/system/nothing.service"),
            ("/usr/lib/systemd/system/def@.service", "[Install]\nWantedBy=multi-user.target\nDefaultInstance=tty1"),
            ("/etc/systemd/system/multi-user.target.wants/def@tty1.service", "-> /usr/lib/systemd/system/def@.service"),
            ("/usr/lib/systemd/system/nick.service", "[Install]\nWantedBy=multi-user.target"),
            ("/etc/systemd/system/nickname.service", "-> /usr/lib/systemd/system/nick.service"),
            ("/usr/lib/systemd/system/odd.service", "[Install]\nWantedBy=multi-user.target"),
            ("/etc/systemd/system/multi-user.target.wants/odd-name.service", "-> /usr/lib/systemd/system/odd.service"),
            ("/usr/lib/systemd/system/dang.service", "[Install]\nWantedBy=multi-user.target"),
            ("/etc/systemd/system/multi-user.target.wants/dang.service", "-> ../nothing/dang.service"),
            ("/usr/lib/systemd/system/stat.service", "[Service]"),
            ("/etc/systemd/system/multi-user.target.wants/stat.service", "-> /usr/lib/systemd/system/stat.service"),
        ]);
        let states: BTreeMap<String, String> = states(&UnitSet::new(&tree))
            .into_iter()
            .map(|(name, state)| (name.as_str().to_owned(), state.to_string()))
            .collect();
        let want = [
            ("alias.service", "alias"),
            ("also.service", "indirect"),
            ("dang.service", "enabled"),
            ("def@.service", "enabled"),
            ("empty.service", "masked"),
            ("far.service", "linked"),
            ("gone.service", "masked"),
            ("many@.service", "indirect"),
            ("multi-user.target", "static"),
            ("named.service", "enabled"),
            ("nick.service", "indirect"),
            ("nickname.service", "alias"),
            ("odd.service", "disabled"),
            ("off.service", "disabled"),
            ("on.service", "enabled"),
            ("other.service", "alias"),
            ("plain.service", "static"),
            ("stat.service", "enabled"),
            ("vendor.service", "static"),
        ];
        assert_eq!(states, want.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
    }
}
