//! The units that `systemd-fstab-generator` makes of `/etc/fstab` (systemd.mount(5), FSTAB; fstab-generator.c).

use super::name::{UnitName, escape_path};
use super::search::{follow, path};
use crate::tree::Tree;

/// File systems that the network carries (`fstype_is_network`, the common ones); `_netdev` says so of any other.
const NETWORK_TYPES: [&str; 10] = ["afs", "ceph", "cifs", "glusterfs", "gfs2", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3"];

/// A mount, swap or automount unit of a line. It has a unit file once the generator has run, so its drop-ins count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FstabUnit {
    /// The unit.
    pub unit: UnitName,
    /// Units that pull it in at boot; none with `noauto`, and for the mount of an automount.
    pub pulled_by: Vec<String>,
    /// Units that it pulls in, each with the option that says so.
    pub pulls: Vec<(String, String)>,
    /// `/etc/fstab:LINE`.
    pub place: String,
}

/// All units of `/etc/fstab`.
pub fn units(tree: &Tree) -> Vec<FstabUnit> {
    let at = path("etc/fstab");
    let text = follow(tree, &at).and_then(|end| tree.content(&end).ok()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [what, mount_point, kind, rest @ ..] = fields.as_slice() else { continue };
        if !what.starts_with('#') {
            let options: Vec<&str> = rest.first().map_or(Vec::new(), |options| options.split(',').collect());
            of_line(what, mount_point, kind, &options, &format!("{at}:{}", index + 1), &mut all);
        }
    }
    all
}

fn of_line(what: &str, mount_point: &str, kind: &str, options: &[&str], place: &str, all: &mut Vec<FstabUnit>) {
    let has = |option: &str| options.contains(&option);
    let values = |keys: &[&str]| -> Vec<(String, String)> {
        let value = |option: &str| keys.iter().find_map(|key| option.strip_prefix(key)).map(str::to_owned);
        options.iter().filter_map(|option| Some((value(option)?, (*option).to_owned()))).collect()
    };
    let swap = kind == "swap";
    let (stem, suffix, target) = match (swap, NETWORK_TYPES.contains(&kind) || has("_netdev")) {
        (true, _) => (escape_path(what), "swap", "swap.target"),
        (_, true) => (escape_path(mount_point), "mount", "remote-fs.target"),
        (_, false) => (escape_path(mount_point), "mount", "local-fs.target"),
    };
    let wanted: Vec<String> =
        values(&["x-systemd.wanted-by=", "x-systemd.required-by="]).into_iter().map(|(unit, _)| unit).collect();
    let pulled_by = match (has("noauto"), wanted.is_empty()) {
        (_, false) => wanted,
        (true, true) => Vec::new(),
        (false, true) => vec![target.to_owned()],
    };
    let mut add = |suffix: &str, pulled_by: Vec<String>, pulls: Vec<(String, String)>| {
        let unit = UnitName::parse(&format!("{stem}.{suffix}"));
        all.extend(unit.map(|unit| FstabUnit { unit, pulled_by, pulls, place: place.to_owned() }));
    };
    let pulls = values(&["x-systemd.requires=", "x-systemd.wants="]);
    if has("x-systemd.automount") && !swap {
        add("automount", pulled_by, Vec::new());
        add(suffix, Vec::new(), pulls);
    } else {
        add(suffix, pulled_by, pulls);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    #[test]
    fn units_of_lines() {
        let table: &[(&str, &[&str])] = &[
            ("/dev/x / ext4 defaults 0 1", &["-.mount < local-fs.target"]),
            ("/dev/x /var/lib ext4", &["var-lib.mount < local-fs.target"]),
            ("h:/x /x nfs rw", &["x.mount < remote-fs.target"]),
            ("/dev/x /x ext4 _netdev,nofail", &["x.mount < remote-fs.target"]),
            ("/dev/x none swap sw", &["dev-x.swap < swap.target"]),
            ("/dev/x /x ext4 noauto,x-systemd.requires=a.service", &["x.mount > a.service"]),
            ("/dev/x /x ext4 noauto,x-systemd.wanted-by=a.service", &["x.mount < a.service"]),
            (
                "/dev/x /x ext4 x-systemd.automount,x-systemd.wants=a.service",
                &["x.automount < local-fs.target", "x.mount > a.service"],
            ),
            ("# /dev/x /x ext4 defaults", &[]),
            ("/dev/x", &[]),
        ];
        for (line, want) in table {
            let units = units(&tree(&[("/etc/fstab", line)]));
            let got: Vec<String> = units
                .iter()
                .map(|u| {
                    let by = u.pulled_by.iter().map(|by| format!(" < {by}"));
                    let pulls = u.pulls.iter().map(|(unit, _)| format!(" > {unit}"));
                    format!("{}{}", u.unit, by.chain(pulls).collect::<String>())
                })
                .collect();
            assert_eq!(got, *want, "{line}");
            assert!(units.iter().all(|u| u.place == "/etc/fstab:1"));
        }
        assert_eq!(units(&tree(&[])), []);
    }
}
