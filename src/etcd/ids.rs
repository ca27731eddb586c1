//! Ids of clusters and members, computed as etcd computes them.
//!
//! A member's id is the first 8 bytes of SHA-1 over its sorted peer URLs and the token; a cluster's the same over
//! its first members' ids in ascending order (etcd v3.4 to v3.6: `membership/member.go` computeMemberID,
//! `membership/cluster.go` genID). Names do not matter. A member that is added later also hashes the time of its
//! addition, so its id cannot be computed; the cluster's stays what it was born with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

/// Id of a lone member that was started with etcd's defaults (`http://localhost:2380`, token `etcd-cluster`).
/// A node that shows it was started without its configuration.
pub const LONE_DEFAULT_CLUSTER: Id = Id(0xcdf8_1819_4e3a_8c32);

/// The member id of that lone start.
pub const LONE_DEFAULT_MEMBER: Id = Id(0x8e9e_05c5_2164_694d);

/// A 64-bit id; written as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Id(pub u64);

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id of 16 hex digits")]
pub struct IdError(String);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Id {
    type Err = IdError;
    /// Reads up to 16 hex digits (etcd's own logs leave leading zeros out).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = !text.is_empty() && text.len() <= 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let value = if digits { u64::from_str_radix(text, 16).ok() } else { None };
        value.map(Id).ok_or_else(|| IdError(text.to_owned()))
    }
}

impl From<Id> for String {
    fn from(id: Id) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for Id {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// Id of a first member with these peer URLs (in any order) in a cluster born with this token.
pub fn member_id<S: AsRef<str>>(peer_urls: &[S], token: &str) -> Id {
    let mut urls: Vec<&str> = peer_urls.iter().map(AsRef::as_ref).collect();
    urls.sort_unstable();
    let mut text = urls.concat();
    text.push_str(token);
    first_eight(text.as_bytes())
}

/// Id of the cluster that is born with these members (in any order).
pub fn cluster_id(members: &[Id]) -> Id {
    let mut ids: Vec<u64> = members.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()).collect();
    first_eight(&bytes)
}

fn first_eight(bytes: &[u8]) -> Id {
    let hash = Sha1::digest(bytes);
    Id(hash.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_etcds_own_tests() {
        // etcd v3.6 membership/member_test.go, TestMemberTime (without the time).
        let cases: &[(&[&str], &str, u64)] = &[
            (&["http://10.0.0.8:2379"], "", 14_544_069_596_553_697_298),
            (&["http://10.0.0.1:2379", "http://10.0.0.2:2379"], "", 16_552_244_735_972_308_939),
            (&["http://10.0.0.2:2379", "http://10.0.0.1:2379"], "", 16_552_244_735_972_308_939),
        ];
        for (urls, token, want) in cases {
            assert_eq!(member_id(urls, token), Id(*want), "{urls:?}");
        }
    }

    #[test]
    fn the_lone_default_start() {
        let member = member_id(&["http://localhost:2380"], "etcd-cluster");
        assert_eq!(member, LONE_DEFAULT_MEMBER);
        assert_eq!(cluster_id(&[member]), LONE_DEFAULT_CLUSTER);
    }

    #[test]
    fn the_local_cluster_of_etcds_documentation() {
        let ids: Vec<Id> =
            [12380, 22380, 32380].map(|p| member_id(&[format!("http://127.0.0.1:{p}")], "etcd-cluster-1")).to_vec();
        let hex: Vec<String> = ids.iter().map(Id::to_string).collect();
        assert_eq!(hex, ["8211f1d0f64f3269", "91bc3c398fb3c146", "fd422379fda50e48"]);
        assert_eq!(cluster_id(&ids).to_string(), "ef37ad9dc622a7c4");
        let reversed: Vec<Id> = ids.into_iter().rev().collect();
        assert_eq!(cluster_id(&reversed).to_string(), "ef37ad9dc622a7c4");
    }

    #[test]
    fn ids_as_text() {
        assert_eq!("0000000000000a0b".parse(), Ok(Id(0xa0b)));
        assert_eq!("a0b".parse(), Ok(Id(0xa0b)));
        assert_eq!(Id(0xa0b).to_string(), "0000000000000a0b");
        for bad in ["", "+1", "xyz", "00000000000000000"] {
            assert!(bad.parse::<Id>().is_err(), "{bad}");
        }
    }
}
