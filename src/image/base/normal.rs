//! What a base is freed of before it is built on.

use std::collections::BTreeMap;

use crate::tree::{Data, Kind, LinkGroup, Tree, TreePath};

/// Files that mmdebstrap copies from the build host, and secrets that packages' scripts make on it.
const OF_THE_HOST: &[&str] =
    &["etc/hostname", "etc/resolv.conf", "var/lib/systemd/random-seed", "var/lib/systemd/credential.secret"];

/// Directories whose content is of the moment; the directories themselves stay.
const OF_THE_MOMENT: &[&str] = &["run", "tmp", "var/tmp", "var/cache/apt/archives", "var/lib/apt/lists"];

/// Frees a base that was made here of what is the build host's or the moment's.
///
/// Removed: the files above when they are regular files (a link is a package's doing), SSH host keys (made by a
/// postinst, they would be the same in every image), the content of the directories above, caches that hold times and
/// inode numbers, and the `-old` backups of dpkg and debconf. Logs are emptied, not removed: programs want some of
/// them with their owner and mode.
pub(super) fn leave_nothing_of_the_host(tree: &mut Tree) {
    let drop: Vec<TreePath> = tree
        .entries
        .iter()
        .filter(|(path, entry)| {
            let bytes = path.as_bytes();
            let file = matches!(entry.kind, Kind::File(_));
            let listed = file && OF_THE_HOST.iter().any(|name| name.as_bytes() == bytes);
            let host_key = file && bytes.starts_with(b"etc/ssh/ssh_host_");
            let cache = file
                && (bytes == b"var/cache/ldconfig/aux-cache"
                    || (bytes.starts_with(b"var/cache/apt/") && bytes.ends_with(b".bin")));
            let backup = file
                && bytes.ends_with(b"-old")
                && (bytes.starts_with(b"var/lib/dpkg/") || bytes.starts_with(b"var/cache/debconf/"));
            let moment = OF_THE_MOMENT.iter().any(|directory| is_below(bytes, directory));
            listed || host_key || cache || backup || moment
        })
        .map(|(path, _)| path.clone())
        .collect();
    for path in drop {
        tree.entries.remove(&path);
    }
    for (path, entry) in &mut tree.entries {
        if let Kind::File(data) = &mut entry.kind
            && is_below(path.as_bytes(), "var/log")
        {
            *data = Data::memory(*b"");
        }
    }
}

fn is_below(path: &[u8], directory: &str) -> bool {
    path.strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Takes away the device nodes of `/dev`: an unprivileged container's host makes its own, and can unpack none.
pub(super) fn without_devices(tree: &mut Tree) {
    tree.entries.retain(|path, entry| {
        !(matches!(entry.kind, Kind::Character { .. } | Kind::Block { .. }) && is_below(path.as_bytes(), "dev"))
    });
}

/// A file whose other names are gone has a single name.
pub(super) fn single_names(tree: &mut Tree) {
    let mut names: BTreeMap<LinkGroup, u32> = BTreeMap::new();
    for group in tree.entries.values().filter_map(|e| e.links) {
        *names.entry(group).or_default() += 1;
    }
    for entry in tree.entries.values_mut() {
        if entry.links.is_some_and(|group| names.get(&group) == Some(&1)) {
            entry.links = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Entry;

    fn tree(entries: &[(&str, Entry)]) -> Tree {
        let mut tree = Tree::default();
        for (path, entry) in entries {
            tree.insert(TreePath::parse(path).unwrap(), entry.clone());
        }
        tree
    }

    fn paths(tree: &Tree) -> Vec<String> {
        tree.entries.keys().map(TreePath::display).collect()
    }

    #[test]
    fn nothing_of_the_host_or_the_moment_stays() {
        let file = || Entry::file(*b"x", 0o640).owned(0, 4);
        let gone = [
            "/etc/hostname",
            "/etc/resolv.conf",
            "/etc/ssh/ssh_host_ed25519_key",
            "/run/lock/subsys",
            "/tmp/x",
            "/var/cache/apt/archives/a.deb",
            "/var/cache/apt/pkgcache.bin",
            "/var/cache/debconf/config.dat-old",
            "/var/cache/ldconfig/aux-cache",
            "/var/lib/apt/lists/lock",
            "/var/lib/dpkg/status-old",
            "/var/lib/systemd/random-seed",
        ];
        let kept =
            ["/etc/hosts", "/var/cache/debconf/config.dat", "/var/lib/dpkg/status", "/var/log/wtmp", "/var/tmpfile"];
        let mut all: Vec<(&str, Entry)> = gone.iter().chain(&kept).map(|path| (*path, file())).collect();
        all.extend([("/run", Entry::directory(0o755)), ("/var/log/README", Entry::symlink("/usr/share/doc"))]);
        let mut tree = tree(&all);
        leave_nothing_of_the_host(&mut tree);
        assert_eq!(
            paths(&tree),
            [
                "/etc/hosts",
                "/run",
                "/var/cache/debconf/config.dat",
                "/var/lib/dpkg/status",
                "/var/log/README",
                "/var/log/wtmp",
                "/var/tmpfile"
            ]
        );
        let log = tree.get(&TreePath::parse("/var/log/wtmp").unwrap()).unwrap();
        assert_eq!(*log, Entry::file(*b"", 0o640).owned(0, 4));
    }

    #[test]
    fn links_of_packages_stay() {
        let mut tree = tree(&[("/etc/resolv.conf", Entry::symlink("../run/systemd/resolve/stub-resolv.conf"))]);
        leave_nothing_of_the_host(&mut tree);
        assert_eq!(paths(&tree), ["/etc/resolv.conf"]);
    }

    #[test]
    fn only_the_nodes_of_dev_are_the_hosts() {
        let node = Entry::new(Kind::Character { major: 1, minor: 3 }, 0o666);
        let mut tree =
            tree(&[("/dev/null", node.clone()), ("/dev/fd", Entry::symlink("/proc/self/fd")), ("/srv/null", node)]);
        without_devices(&mut tree);
        assert_eq!(paths(&tree), ["/dev/fd", "/srv/null"]);
    }

    #[test]
    fn a_last_name_is_no_hard_link() {
        let linked = |group| Entry { links: Some(LinkGroup(group)), ..Entry::file(*b"", 0o644) };
        let mut tree = tree(&[("/a", linked(1)), ("/b", linked(1)), ("/c", linked(2))]);
        single_names(&mut tree);
        let groups: Vec<_> = tree.entries.values().map(|e| e.links).collect();
        assert_eq!(groups, [Some(LinkGroup(1)), Some(LinkGroup(1)), None]);
    }
}
