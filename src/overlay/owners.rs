//! Owners by name, looked up in the image's own passwd and group; never on the build host.

use std::collections::BTreeMap;

/// Names and ids of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Name to uid.
    pub users: BTreeMap<String, u32>,
    /// Name to gid.
    pub groups: BTreeMap<String, u32>,
}

impl Accounts {
    /// Reads passwd(5) and group(5). Lines that are none are skipped, as getpwnam(3) does; of two equal names the
    /// first counts.
    pub fn parse(passwd: &[u8], group: &[u8]) -> Accounts {
        Accounts { users: ids(passwd), groups: ids(group) }
    }
    /// A uid, by name or number.
    pub fn user(&self, name: &str) -> Option<u32> {
        name.parse().ok().or_else(|| self.users.get(name).copied())
    }
    /// A gid, by name or number.
    pub fn group(&self, name: &str) -> Option<u32> {
        name.parse().ok().or_else(|| self.groups.get(name).copied())
    }
}

/// First and third field of each line.
fn ids(database: &[u8]) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    for line in String::from_utf8_lossy(database).lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(id)) = (fields.next(), fields.nth(1).and_then(|id| id.parse().ok())) {
            all.entry(name.to_owned()).or_insert(id);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let accounts = Accounts::parse(
            b"root:x:0:0:root:/root:/bin/sh\netcd:x:100:101::/var/lib/etcd/:/usr/sbin/nologin\nbroken\netcd:x:7:7::/:/\n",
            b"root:x:0:\netcd:x:101:\n",
        );
        assert_eq!(accounts.user("etcd"), Some(100));
        assert_eq!(accounts.group("etcd"), Some(101));
        assert_eq!(accounts.user("4000"), Some(4000));
        assert_eq!(accounts.user("nobody"), None);
        assert_eq!(accounts.user("broken"), None);
    }
}
