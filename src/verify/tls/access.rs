//! Who can read a private key: its user through every directory above it, and nobody else.

use crate::tree::{Entry, Tree, TreePath};

use super::facts::content;

/// An account of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub name: String,
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Further groups (group(5)).
    pub groups: Vec<u32>,
    /// Accounts beside this one that are in its primary group.
    pub company: Vec<String>,
}

/// Looks an account up in the image's own passwd(5) and group(5).
///
/// # Errors
/// In words.
pub(super) fn user(tree: &Tree, name: &str) -> Result<User, String> {
    let read = |path: &str| {
        let path = TreePath::parse(path).unwrap_or_default();
        content(tree, &path).map(|b| String::from_utf8_lossy(&b).into_owned()).map_err(|why| format!("{path}: {why}"))
    };
    let accounts: Vec<(String, u32, u32)> = read("/etc/passwd")?
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?.to_owned();
            let uid = fields.nth(1)?.parse().ok()?;
            Some((name, uid, fields.next()?.parse().ok()?))
        })
        .collect();
    let (_, uid, gid) = accounts
        .iter()
        .find(|(account, ..)| account == name)
        .cloned()
        .ok_or_else(|| format!("there is no user `{name}` in /etc/passwd"))?;
    let mut company: Vec<String> =
        accounts.iter().filter(|(account, _, group)| *group == gid && account != name).map(|a| a.0.clone()).collect();
    let mut groups = Vec::new();
    for line in read("/etc/group")?.lines() {
        let mut fields = line.split(':');
        let Some(id) = fields.nth(2).and_then(|id| id.parse::<u32>().ok()) else { continue };
        let members: Vec<&str> = fields.next().unwrap_or_default().split(',').filter(|m| !m.is_empty()).collect();
        if members.contains(&name) {
            groups.push(id);
        }
        if id == gid {
            company.extend(members.into_iter().filter(|member| *member != name).map(str::to_owned));
        }
    }
    Ok(User { name: name.to_owned(), uid, gid, groups, company })
}

/// Why the user cannot read a file; empty when it can.
pub(super) fn hindrances(tree: &Tree, path: &TreePath, user: &User) -> Vec<String> {
    // Root passes everywhere (capabilities(7), CAP_DAC_OVERRIDE).
    if user.uid == 0 {
        return Vec::new();
    }
    let Ok(resolved) = tree.resolve_fully(path) else { return Vec::new() };
    let mut on_the_way = resolved.ancestors();
    // The directories of the links count as well.
    if let Ok(named) = tree.resolve(path) {
        on_the_way.extend(named.ancestors());
    }
    on_the_way.sort();
    on_the_way.dedup();
    let mut all: Vec<String> = on_the_way
        .iter()
        .filter_map(|directory| tree.get(directory).map(|entry| (directory, entry)))
        .filter(|(_, entry)| bits(entry, user) & 1 == 0)
        .map(|(directory, entry)| format!("{directory} ({}) does not let it through", describe(entry)))
        .collect();
    if let Some(entry) = tree.get(&resolved).filter(|entry| bits(entry, user) & 4 == 0) {
        all.push(format!("{resolved} ({}) does not let it read", describe(entry)));
    }
    all
}

/// How others than the user and root get at a file; empty when they do not.
pub(super) fn openings(tree: &Tree, path: &TreePath, user: &User) -> Vec<String> {
    let Ok(resolved) = tree.resolve_fully(path) else { return Vec::new() };
    let Some(entry) = tree.get(&resolved) else { return Vec::new() };
    let mut all = Vec::new();
    if entry.uid != user.uid && entry.uid != 0 {
        all.push(format!("it belongs to user {} and not to {} ({}) or root", entry.uid, user.name, user.uid));
    }
    if entry.mode & 0o007 != 0 {
        all.push(format!("mode {:04o} opens it to everybody", entry.mode));
    }
    if entry.mode & 0o070 != 0 {
        if entry.gid != user.gid {
            all.push(format!("mode {:04o} opens it to group {}, which is not {}'s", entry.mode, entry.gid, user.name));
        } else if !user.company.is_empty() {
            all.push(format!("mode {:04o} opens it to {} in the same group", entry.mode, user.company.join(", ")));
        }
    }
    if entry.xattrs.keys().any(|name| name.starts_with(b"system.posix_acl")) {
        all.push("it has an access control list (acl(5))".to_owned());
    }
    all
}

/// The three bits that count for a user: exactly one class, as the kernel does (path_resolution(7)).
fn bits(entry: &Entry, user: &User) -> u16 {
    if entry.uid == user.uid {
        (entry.mode >> 6) & 7
    } else if entry.gid == user.gid || user.groups.contains(&entry.gid) {
        (entry.mode >> 3) & 7
    } else {
        entry.mode & 7
    }
}

fn describe(entry: &Entry) -> String {
    format!("{:04o} {}:{}", entry.mode, entry.uid, entry.gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, u16, u32, u32)]) -> Tree {
        let mut tree = Tree::default();
        let mut put = |path: &str, entry: Entry| tree.insert(TreePath::parse(path).unwrap(), entry);
        put("/", Entry::directory(0o755));
        put("/etc", Entry::directory(0o755));
        put("/etc/passwd", Entry::file(*b"root:x:0:0::/:\netcd:x:100:101::/:\nmallory:x:7:7::/:\n", 0o644));
        put("/etc/group", Entry::file(*b"root:x:0:\netcd:x:101:mallory\nssl:x:50:etcd\n", 0o644));
        for (path, mode, uid, gid) in entries {
            let entry = if path.ends_with("key") { Entry::file(*b"", *mode) } else { Entry::directory(*mode) };
            put(path, entry.owned(*uid, *gid));
        }
        tree
    }

    #[test]
    fn who_can_read() {
        type Case<'a> = (&'a [(&'a str, u16, u32, u32)], &'a str, usize, usize);
        let cases: &[Case<'_>] = &[
            (&[("/etc/pki", 0o750, 0, 101), ("/etc/pki/a.key", 0o600, 100, 101)], "etcd", 0, 0),
            (&[("/etc/pki", 0o700, 0, 0), ("/etc/pki/a.key", 0o600, 100, 101)], "etcd", 1, 0),
            (&[("/etc/pki", 0o700, 0, 0), ("/etc/pki/a.key", 0o600, 0, 0)], "etcd", 2, 0),
            (&[("/etc/pki", 0o750, 0, 50), ("/etc/pki/a.key", 0o600, 100, 0)], "etcd", 0, 0),
            // Mallory is in etcd's group.
            (&[("/etc/pki", 0o755, 0, 0), ("/etc/pki/a.key", 0o640, 0, 101)], "etcd", 0, 1),
            (&[("/etc/pki", 0o755, 0, 0), ("/etc/pki/a.key", 0o644, 100, 101)], "etcd", 0, 2),
            (&[("/etc/pki", 0o755, 0, 0), ("/etc/pki/a.key", 0o600, 7, 7)], "etcd", 1, 1),
            // The owner's class counts alone, though everybody may read.
            (&[("/etc/pki", 0o755, 0, 0), ("/etc/pki/a.key", 0o044, 100, 101)], "etcd", 1, 2),
            (&[("/etc/pki", 0o000, 0, 0), ("/etc/pki/a.key", 0o000, 0, 0)], "root", 0, 0),
        ];
        for (entries, name, hindered, opened) in cases {
            let tree = tree(entries);
            let user = user(&tree, name).unwrap();
            let path = TreePath::parse("/etc/pki/a.key").unwrap();
            let (no, open) = (hindrances(&tree, &path, &user), openings(&tree, &path, &user));
            assert_eq!((no.len(), open.len()), (*hindered, *opened), "{entries:?}: {no:?} {open:?}");
        }
        assert_eq!(user(&tree(&[]), "nobody").unwrap_err(), "there is no user `nobody` in /etc/passwd");
    }

    #[test]
    fn links_and_lists_count() {
        let mut tree = tree(&[("/var", 0o755, 0, 0), ("/var/x", 0o700, 0, 0), ("/var/x/a.key", 0o600, 100, 101)]);
        let link = TreePath::parse("/etc/a.key").unwrap();
        tree.insert(link.clone(), Entry::symlink("/var/x/a.key"));
        let etcd = user(&tree, "etcd").unwrap();
        assert_eq!(hindrances(&tree, &link, &etcd), ["/var/x (0700 0:0) does not let it through"]);
        let mut entry = Entry::file(*b"", 0o600).owned(100, 101);
        entry.xattrs.insert(b"system.posix_acl_access".to_vec(), vec![2]);
        tree.insert(link.clone(), entry);
        assert_eq!(openings(&tree, &link, &etcd), ["it has an access control list (acl(5))"]);
    }
}
