//! Versions of etcd, and what is known against them.

use std::fmt;

/// Upstream version of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 3.
    pub major: u32,
    /// 4, 5, …
    pub minor: u32,
    /// Patch.
    pub patch: u32,
}

impl Version {
    /// A literal version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }

    /// Reads the upstream part of a Debian version: `1:3.5.16+dfsg-4+b2` is 3.5.16 (deb-version(7)).
    pub fn from_debian(text: &str) -> Option<Version> {
        let without_epoch = text.split_once(':').map_or(text, |(_, rest)| rest);
        Version::parse(without_epoch.split(['-', '+', '~']).next()?)
    }

    /// Reads `3.5.16` or `v3.5.16`.
    pub fn parse(text: &str) -> Option<Version> {
        let mut numbers = text.strip_prefix('v').unwrap_or(text).split('.').map(str::parse::<u32>);
        let version = Version {
            major: numbers.next()?.ok()?,
            minor: numbers.next()?.ok()?,
            patch: numbers.next().map_or(Some(0), Result::ok)?,
        };
        numbers.next().is_none().then_some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Something known against a range of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// First version that has it.
    pub from: Version,
    /// First version that does not have it any more.
    pub until: Version,
    /// Whether data is lost by it.
    pub harmful: bool,
    /// What it is, with the source.
    pub what: &'static str,
}

/// Known bad ranges. Debian may have patched single ones; that cannot be told from the upstream version.
pub const KNOWN: &[Known] = &[
    Known {
        from: Version::new(0, 0, 0),
        until: Version::new(3, 4, 0),
        harmful: true,
        what: "older than 3.4: its configuration and its storage are not what fitout renders and checks",
    },
    Known {
        from: Version::new(3, 5, 0),
        until: Version::new(3, 5, 3),
        harmful: true,
        what: "data of members may differ after a crash under load (etcd#13766, mended in 3.5.3)",
    },
    Known {
        from: Version::new(3, 5, 1),
        until: Version::new(3, 5, 20),
        harmful: false,
        what: "a promoted learner may stay a learner in the stored membership (etcd#19557, mended in 3.5.20)",
    },
    Known {
        from: Version::new(3, 5, 0),
        until: Version::new(3, 5, 32),
        harmful: false,
        what: "all members must run 3.5.32 or later before one goes to 3.6 (etcd's guide for the upgrade to 3.6)",
    },
    Known {
        from: Version::new(3, 4, 0),
        until: Version::new(3, 5, 0),
        harmful: false,
        what: "etcd 3.4 is not maintained since 2026-06-01 (CHANGELOG-3.4)",
    },
    Known {
        from: Version::new(3, 4, 0),
        until: Version::new(3, 4, 25),
        harmful: false,
        what: "debug requests on the client port are served without authentication (CVE-2021-28235, mended in 3.4.25)",
    },
    Known {
        from: Version::new(3, 4, 0),
        until: Version::new(3, 4, 42),
        harmful: false,
        what: "CVE-2026-33413, mended in 3.4.42, unless Debian has patched it",
    },
];

/// All that is known against a version.
pub fn known_against(version: Version) -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().filter(move |known| (known.from..known.until).contains(&version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_versions_have_an_upstream_part() {
        let cases = [
            ("3.5.16-4+b2", Some("3.5.16")),
            ("3.4.23-4+b4", Some("3.4.23")),
            ("1:3.4.23+dfsg-4", Some("3.4.23")),
            ("3.5.16~rc1-1", Some("3.5.16")),
            ("3.6", Some("3.6.0")),
            ("unknown", None),
            ("3.5.x-1", None),
            ("3.5.1.2-1", None),
        ];
        for (text, want) in cases {
            assert_eq!(Version::from_debian(text).map(|v| v.to_string()).as_deref(), want, "{text}");
        }
        assert_eq!(Version::parse("v3.5.16"), Some(Version::new(3, 5, 16)));
    }

    #[test]
    fn what_is_known_against_versions() {
        //           version              harmful, others
        let cases = [("3.3.25", 1, 0), ("3.4.23", 0, 3), ("3.4.45", 0, 1), ("3.5.0", 1, 1), ("3.5.2", 1, 2)];
        let later = [("3.5.3", 0, 2), ("3.5.16", 0, 2), ("3.5.20", 0, 1), ("3.5.33", 0, 0), ("3.6.14", 0, 0)];
        for (text, harmful, others) in cases.into_iter().chain(later) {
            let version = Version::parse(text).unwrap();
            let count = |is: bool| known_against(version).filter(|k| k.harmful == is).count();
            assert_eq!((count(true), count(false)), (harmful, others), "{text}");
        }
    }
}
