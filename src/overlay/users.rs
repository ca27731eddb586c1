//! The `users` edit: system users in passwd, group, shadow and gshadow, and the lock on root.

use std::collections::{BTreeMap, BTreeSet};

use super::owners::Accounts;

/// Ids that Debian's policy (9.2.2) leaves to users made by packages at run time are 100-999; those of images start high
/// in it, so that a package installed later finds room.
const IDS: std::ops::RangeInclusive<u32> = 900..=999;

/// The four databases, as bytes. `None` where the base has no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Databases {
    /// passwd(5).
    pub passwd: Vec<u8>,
    /// group(5).
    pub group: Vec<u8>,
    /// shadow(5).
    pub shadow: Option<Vec<u8>>,
    /// gshadow(5).
    pub gshadow: Option<Vec<u8>>,
}

/// A system user to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name, of the group too.
    pub name: String,
    /// Home directory.
    pub home: String,
    /// Comment field.
    pub description: String,
}

/// uid and gid.
pub type Ids = (u32, u32);

/// Why a user cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    /// The lock says other ids than the base.
    #[error("`{name}` is {is:?} in the base, and {locked:?} in the lock file")]
    Differs {
        /// User.
        name: String,
        /// In the base.
        is: Ids,
        /// In the lock.
        locked: Ids,
    },
    /// The locked id is another's.
    #[error("the {kind} id {id} that the lock file gives to `{name}` is `{owner}`'s in the base")]
    Taken {
        /// User.
        name: String,
        /// `user` or `group`.
        kind: &'static str,
        /// Id.
        id: u32,
        /// Who has it.
        owner: String,
    },
    /// 900 to 999 are all used.
    #[error("no free id between 900 and 999 for `{0}`")]
    NoneFree(String),
}

/// Adds the users that the base lacks, with their locked ids or the lowest free ones, and returns the ids of all.
/// Root's password field becomes `*` unless it is locked already: nobody enters with a password that all images share.
///
/// # Errors
/// All users that cannot be had.
pub fn add(
    base: &Databases,
    wanted: &BTreeMap<String, Wanted>,
    locked: &BTreeMap<String, Ids>,
) -> Result<(Databases, BTreeMap<String, Ids>), Vec<UserError>> {
    let mut after = base.clone();
    let mut accounts = Accounts::parse(&base.passwd, &base.group);
    let mut ids = BTreeMap::new();
    let mut errors = Vec::new();
    // Ids that the lock promises to users which come later in this loop.
    let promised: BTreeSet<u32> = locked.values().flat_map(|(uid, gid)| [*uid, *gid]).collect();

    for user in wanted.values() {
        match ids_of(user, &accounts, locked.get(&user.name).copied(), &promised) {
            Ok((uid, gid)) => {
                write(&mut after, user, &accounts, (uid, gid));
                accounts.users.entry(user.name.clone()).or_insert(uid);
                accounts.groups.entry(user.name.clone()).or_insert(gid);
                ids.insert(user.name.clone(), (uid, gid));
            }
            Err(error) => errors.push(error),
        }
    }
    // A password in passwd itself goes before that in shadow (pam_unix(8)).
    let in_shadow: &[u8] = if after.shadow.is_some() { b"x" } else { b"*" };
    after.passwd = lock_root(&after.passwd, b"x", in_shadow);
    after.shadow = after.shadow.map(|shadow| lock_root(&shadow, b"", b"*"));
    if errors.is_empty() { Ok((after, ids)) } else { Err(errors) }
}

fn ids_of(user: &Wanted, accounts: &Accounts, locked: Option<Ids>, promised: &BTreeSet<u32>) -> Result<Ids, UserError> {
    let name = user.name.clone();
    let (uid, gid) = (accounts.users.get(&name).copied(), accounts.groups.get(&name).copied());
    if let Some(locked) = locked {
        let is = (uid.unwrap_or(locked.0), gid.unwrap_or(locked.1));
        if is != locked {
            return Err(UserError::Differs { name, is, locked });
        }
        let owner = |map: &BTreeMap<String, u32>, id| {
            map.iter().find(|(n, i)| **i == id && **n != name).map(|(n, _)| n.clone())
        };
        if let (None, Some(owner)) = (uid, owner(&accounts.users, locked.0)) {
            return Err(UserError::Taken { name, kind: "user", id: locked.0, owner });
        }
        if let (None, Some(owner)) = (gid, owner(&accounts.groups, locked.1)) {
            return Err(UserError::Taken { name, kind: "group", id: locked.1, owner });
        }
        return Ok(locked);
    }
    let used: BTreeSet<u32> = accounts.users.values().chain(accounts.groups.values()).copied().collect();
    let free = || IDS.into_iter().find(|id| !used.contains(id) && !promised.contains(id));
    match (uid, gid) {
        (Some(uid), Some(gid)) => Ok((uid, gid)),
        (uid, gid) => {
            let free = free().ok_or(UserError::NoneFree(name))?;
            Ok((uid.unwrap_or(free), gid.unwrap_or(free)))
        }
    }
}

fn write(to: &mut Databases, user: &Wanted, has: &Accounts, (uid, gid): Ids) {
    let Wanted { name, home, description } = user;
    if !has.users.contains_key(name) {
        append(&mut to.passwd, &format!("{name}:x:{uid}:{gid}:{description}:{home}:/usr/sbin/nologin"));
        if let Some(shadow) = &mut to.shadow {
            // No date of change: it would differ from build to build.
            append(shadow, &format!("{name}:!*::::::"));
        }
    }
    if !has.groups.contains_key(name) {
        append(&mut to.group, &format!("{name}:x:{gid}:"));
        if let Some(gshadow) = &mut to.gshadow {
            append(gshadow, &format!("{name}:!*::"));
        }
    }
}

fn append(database: &mut Vec<u8>, line: &str) {
    if database.last().is_some_and(|b| *b != b'\n') {
        database.push(b'\n');
    }
    database.extend_from_slice(line.as_bytes());
    database.push(b'\n');
}

/// `*` and not `!`: sshd without PAM takes a leading `!` for a locked account and refuses keys too (sshd(8)). `elsewhere` is
/// the field that sends to another file; empty where there is none.
fn lock_root(file: &[u8], elsewhere: &[u8], lock: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = file.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    for line in &mut lines {
        let mut fields: Vec<&[u8]> = line.split(|b| *b == b':').collect();
        if fields.len() > 1 && fields[0] == b"root" {
            let is_locked = matches!(fields[1].first(), Some(b'*' | b'!'));
            if is_locked || (!elsewhere.is_empty() && fields[1] == elsewhere) {
                continue;
            }
            fields[1] = lock;
            *line = fields.join(&b':');
        }
    }
    lines.join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Databases {
        Databases {
            passwd: b"root:x:0:0:root:/root:/bin/bash\nold:x:900:900::/:/bin/false\netcd:x:100:101::/var/lib/etcd:/x"
                .into(),
            group: b"root:x:0:\netcd:x:101:\nold:x:900:\n".into(),
            shadow: Some(b"root::20000:0:99999:7:::\netcd:!:20000::::::\n".into()),
            gshadow: None,
        }
    }

    fn wanted(names: &[&str]) -> BTreeMap<String, Wanted> {
        let user = |name: &str| Wanted { name: name.into(), home: "/nonexistent".into(), description: "d".into() };
        names.iter().map(|n| ((*n).to_owned(), user(n))).collect()
    }

    #[test]
    fn missing_users_get_the_lowest_free_ids_and_root_is_locked() {
        let (after, ids) = add(&base(), &wanted(&["agent", "etcd"]), &BTreeMap::new()).unwrap();
        assert_eq!(ids, BTreeMap::from([("agent".into(), (901, 901)), ("etcd".into(), (100, 101))]));
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        assert!(text(&after.passwd).ends_with("/x\nagent:x:901:901:d:/nonexistent:/usr/sbin/nologin\n"));
        assert_eq!(text(&after.group), "root:x:0:\netcd:x:101:\nold:x:900:\nagent:x:901:\n");
        assert_eq!(text(&after.shadow.unwrap()), "root:*:20000:0:99999:7:::\netcd:!:20000::::::\nagent:!*::::::\n");
        assert_eq!(after.gshadow, None);
    }

    #[test]
    fn done_twice_it_changes_nothing_more() {
        let (once, ids) = add(&base(), &wanted(&["agent"]), &BTreeMap::new()).unwrap();
        assert_eq!(add(&once, &wanted(&["agent"]), &ids), Ok((once, ids)));
    }

    #[test]
    fn the_lock_decides_and_what_contradicts_it_is_refused() {
        let locked = |name: &str, ids| BTreeMap::from([(name.to_owned(), ids)]);
        assert_eq!(add(&base(), &wanted(&["agent"]), &locked("agent", (950, 951))).unwrap().1["agent"], (950, 951));
        // What the lock promises to one is not given to another.
        assert_eq!(add(&base(), &wanted(&["a", "b"]), &locked("b", (901, 901))).unwrap().1["a"], (902, 902));
        let cases = [
            (
                wanted(&["etcd"]),
                locked("etcd", (100, 200)),
                "`etcd` is (100, 101) in the base, and (100, 200) in the lock file",
            ),
            (
                wanted(&["agent"]),
                locked("agent", (900, 901)),
                "the user id 900 that the lock file gives to `agent` is `old`'s in the base",
            ),
            (
                wanted(&["agent"]),
                locked("agent", (901, 101)),
                "the group id 101 that the lock file gives to `agent` is `etcd`'s in the base",
            ),
        ];
        for (wanted, locked, want) in cases {
            let errors = add(&base(), &wanted, &locked).unwrap_err();
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
        }
    }

    #[test]
    fn a_locked_root_is_left_as_it_is() {
        for field in ["*", "!", "!$y$abc"] {
            let shadow = format!("root:{field}:1::::::\n");
            assert_eq!(lock_root(shadow.as_bytes(), b"", b"*"), shadow.as_bytes());
        }
        let passwd = b"root:x:0:0:root:/root:/bin/bash\n";
        assert_eq!(lock_root(passwd, b"x", b"x"), passwd);
    }

    #[test]
    fn a_password_of_roots_in_passwd_itself_is_locked_too() {
        for field in ["", "$y$abc"] {
            let passwd = format!("root:{field}:0:0:root:/root:/bin/bash\n").into_bytes();
            let shadowed =
                add(&Databases { passwd: passwd.clone(), ..base() }, &wanted(&[]), &BTreeMap::new()).unwrap().0;
            assert!(shadowed.passwd.starts_with(b"root:x:0:0:"), "{field:?}");
            let lone = Databases { passwd, shadow: None, ..base() };
            assert!(
                add(&lone, &wanted(&[]), &BTreeMap::new()).unwrap().0.passwd.starts_with(b"root:*:0:0:"),
                "{field:?}"
            );
        }
    }
}
