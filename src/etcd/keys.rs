//! Keys of etcd's configuration file, by version.
//!
//! etcd ignores a key that it does not know without a word, in every version (`embed/config.go` reads the file with a
//! loader that is not strict). A key is known whatever the case of its letters: Go's JSON decoder folds it.

mod table;

use super::versions::Version;
pub use table::{SOCKET, TOP, TRANSPORT};

/// What a key's value must be. A value of another type stops etcd at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text; a number or a boolean without quotes is none.
    Text,
    /// URLs in one text, separated by commas; not a list.
    Urls,
    /// `true` or `false`, or what YAML 1.1 takes as such (`yes`, `on`).
    Flag,
    /// A whole number, not negative.
    Whole,
    /// A whole number of 32 bits, not negative.
    Word,
    /// A whole number.
    Signed,
    /// A duration as a whole number of nanoseconds: `10m` is for flags only.
    Nanoseconds,
    /// A list of texts.
    Texts,
    /// A section of its own.
    Section,
    /// Anything.
    Any,
}

/// A key, in a span of versions. A name may stand twice, with spans that do not touch.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// First version that reads it.
    pub since: Version,
    /// First version that does not read it any more.
    pub until: Option<Version>,
    /// First version that has something better.
    pub deprecated: Option<Version>,
    /// What to write in place of it, in words; may be empty.
    pub instead: &'static str,
}

impl Key {
    fn is_read_by(&self, version: Version) -> bool {
        version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

/// Section of a transport's TLS settings.
pub const TRANSPORTS: [&str; 2] = ["client-transport-security", "peer-transport-security"];

/// What a version makes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// It reads it.
    Known(Kind),
    /// It reads it, and has something better.
    Old {
        /// What the value must be.
        kind: Kind,
        /// First version that does not read it.
        until: Version,
        /// What to write in place of it.
        instead: &'static str,
    },
    /// A later version reads it.
    Later(Version),
    /// It is not read any more.
    Gone {
        /// Since this version.
        since: Version,
        /// What to write in place of it; may be empty.
        instead: &'static str,
    },
    /// No version reads it; what may be meant, in words.
    Unknown(Option<String>),
}

impl Reading {
    /// What the value must be, where the key is read.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Reading::Known(kind) | Reading::Old { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}

/// What a version makes of a key of the top level, or of a section.
pub fn reading(version: Version, section: Option<&str>, name: &str) -> Reading {
    let Some(table) = table_of(section) else { return Reading::Known(Kind::Any) };
    let all = || table.iter().filter(|key| key.name.eq_ignore_ascii_case(name));
    if let Some(key) = all().find(|key| key.is_read_by(version)) {
        return match (key.deprecated, key.until) {
            (Some(deprecated), Some(until)) if version >= deprecated => {
                Reading::Old { kind: key.kind, until, instead: key.instead }
            }
            _ => Reading::Known(key.kind),
        };
    }
    // Where a key came back, its return counts more than its absence.
    if let Some(later) = all().find(|key| version < key.since) {
        return Reading::Later(later.since);
    }
    match all().filter_map(|key| key.until.map(|since| (since, key.instead))).max_by_key(|(since, _)| *since) {
        Some((since, instead)) => Reading::Gone { since, instead },
        None => Reading::Unknown(meant(version, section, name)),
    }
}

/// The keys of a section; `None` for sections without a table of their own.
fn table_of(section: Option<&str>) -> Option<&'static [Key]> {
    let Some(section) = section else { return Some(TOP) };
    if TRANSPORTS.iter().any(|name| name.eq_ignore_ascii_case(section)) {
        return Some(TRANSPORT);
    }
    section.eq_ignore_ascii_case("socket-options").then_some(SOCKET)
}

/// What a name that no version reads may mean: another spelling, a flag's name, or a key at the wrong place.
fn meant(version: Version, section: Option<&str>, name: &str) -> Option<String> {
    let plain = name.replace(['_', ' '], "-").to_lowercase();
    let in_section = |section: &str, name: &str| format!("`{name}` in `{section}`");
    if let Some((_, meant)) = table::MEANT.iter().find(|(wrong, _)| *wrong == plain) {
        return Some((*meant).to_owned());
    }
    let usable = |table: &'static [Key]| table.iter().filter(move |key| key.is_read_by(version)).map(|key| key.name);
    let own = table_of(section).unwrap_or_default();
    if let Some(known) = usable(own).find(|known| *known == plain) {
        return Some(format!("`{known}`"));
    }
    match section {
        None if usable(TRANSPORT).any(|known| known == plain) => {
            return Some(format!("{}, or in `{}`", in_section(TRANSPORTS[0], &plain), TRANSPORTS[1]));
        }
        Some(_) if usable(TOP).any(|known| known == plain) => return Some(format!("`{plain}` at the top level")),
        _ => {}
    }
    let close = usable(own).map(|known| (strsim::osa_distance(known, &plain), known)).min()?;
    if close.0 <= 3.max(plain.len() / 5) {
        return Some(format!("`{}`", close.1));
    }
    // A flag's prefix in front of a key of a section.
    let rest = plain.strip_prefix("peer-")?;
    let known = usable(TRANSPORT).find(|known| *known == rest)?;
    Some(in_section(TRANSPORTS[1], known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Flag, Nanoseconds, Text, Texts};
    use table::{V3_4_25, V3_5, V3_5_14, V3_6, V3_7};

    const DEBIAN_12: Version = Version::new(3, 4, 23);
    const DEBIAN_13: Version = Version::new(3, 5, 16);
    const NEXT: Version = Version::new(3, 6, 14);
    const LAST: Version = Version::new(3, 7, 1);

    #[test]
    fn keys_by_version() {
        use Reading::{Known, Later};
        let gone = |since, instead| Reading::Gone { since, instead };
        let old = |kind, until, instead| Reading::Old { kind, until, instead };
        let peer = Some("peer-transport-security");
        let cases = [
            (DEBIAN_12, None, "name", Known(Text)),
            (DEBIAN_12, None, "Name", Known(Text)),
            (DEBIAN_12, None, "tls-min-version", Later(V3_4_25)),
            (Version::new(3, 5, 7), None, "tls-min-version", Later(Version::new(3, 5, 8))),
            (DEBIAN_13, None, "tls-min-version", Known(Text)),
            (DEBIAN_12, None, "debug", old(Flag, V3_5, "`log-level: debug`")),
            (DEBIAN_13, None, "debug", gone(V3_5, "`log-level: debug`")),
            (DEBIAN_13, None, "feature-gates", Later(V3_6)),
            (DEBIAN_12, None, "max-concurrent-streams", Known(Kind::Word)),
            (Version::new(3, 5, 4), None, "max-concurrent-streams", Later(Version::new(3, 5, 5))),
            (DEBIAN_13, None, "proxy", old(Text, V3_6, "`etcd grpc-proxy`, a program of its own")),
            (DEBIAN_13, None, "experimental-corrupt-check-time", Known(Nanoseconds)),
            (NEXT, None, "experimental-corrupt-check-time", old(Nanoseconds, V3_7, "`corrupt-check-time`")),
            (LAST, None, "experimental-corrupt-check-time", gone(V3_7, "`corrupt-check-time`")),
            (NEXT, None, "enable-v2", gone(V3_6, "nothing: 3.6 has no API of etcd 2")),
            (LAST, None, "discovery", gone(V3_7, "`initial-cluster`")),
            (DEBIAN_12, peer, "allowed-cn", Later(V3_5_14)),
            (V3_5_14, peer, "allowed-cn", Known(Text)),
            (DEBIAN_13, peer, "allowed-cn", Known(Texts)),
            (DEBIAN_12, peer, "client-cert-auth", Known(Flag)),
            (DEBIAN_13, Some("socket-options"), "reuse-port", Known(Flag)),
            (NEXT, Some("discovery-config"), "token", Known(Kind::Any)),
        ];
        for (version, section, name, want) in cases {
            assert_eq!(reading(version, section, name), want, "{version} {name}");
        }
    }

    #[test]
    fn what_is_meant_by_unknown_keys() {
        let peer = Some("peer-transport-security");
        let cases = [
            (
                None,
                "peer-client-cert-auth",
                "`client-cert-auth` in `peer-transport-security`; `peer-client-cert-auth` is the flag's name",
            ),
            (None, "peer_cert_file", "`cert-file` in `peer-transport-security`"),
            (
                None,
                "client-cert-auth",
                "`client-cert-auth` in `client-transport-security`, or in `peer-transport-security`",
            ),
            (peer, "peer-cert-file", "`cert-file` in `peer-transport-security`"),
            (peer, "heartbeat-interval", "`heartbeat-interval` at the top level"),
            (peer, "trusted-ca-fil", "`trusted-ca-file`"),
            (None, "election-timout", "`election-timeout`"),
            (None, "heartbeat_interval", "`heartbeat-interval`"),
            (None, "peer-crl-file", "the flag `--peer-crl-file`: no version reads a revocation list from the file"),
            (Some("socket-options"), "reuse_port", "`reuse-port`"),
            (None, "nonsense", ""),
        ];
        for (section, name, want) in cases {
            let Reading::Unknown(meant) = reading(DEBIAN_13, section, name) else { panic!("{name} is known") };
            assert_eq!(meant.unwrap_or_default(), want, "{name}");
        }
    }

    #[test]
    fn spans_of_one_name_do_not_touch() {
        for table in [TOP, TRANSPORT, SOCKET] {
            for (index, key) in table.iter().enumerate() {
                let same = table[..index].iter().filter(|other| other.name == key.name);
                for other in same {
                    assert!(other.until.is_some_and(|until| until <= key.since), "{}", key.name);
                }
                assert!(key.until.is_none_or(|until| until > key.since), "{}", key.name);
            }
        }
    }

    #[test]
    fn what_is_read_instead_is_read_when_the_old_key_goes() {
        for key in TOP {
            let (Some(until), Some(name)) = (key.until, key.instead.strip_prefix('`')) else { continue };
            let name = name.split(['`', ':']).next().unwrap_or_default();
            let known = TOP.iter().chain(TRANSPORT).filter(|other| other.name == name);
            assert!(
                name.starts_with("etcd ") || known.clone().any(|other| other.is_read_by(until)),
                "{} → {name}",
                key.name
            );
        }
    }
}
