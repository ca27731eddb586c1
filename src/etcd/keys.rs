//! Keys of etcd's configuration file, by version.
//!
//! etcd ignores a key that it does not know without a word, in every version (`embed/config.go` reads the file with a
//! loader that is not strict). The table holds the `json:` tags of `Config`, `configJSON` and `securityConfig` as they
//! are in 3.4.23 (Debian's source) and 3.5.16 (Debian's binary); other bounds are from etcd's change logs.

use super::versions::Version;

/// What a key's value must be. A value of another type stops etcd at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text; a number or a boolean is taken as text.
    Text,
    /// URLs in one text, separated by commas; not a list.
    Urls,
    /// `true` or `false`.
    Flag,
    /// A whole number, not negative.
    Whole,
    /// A duration as a whole number of nanoseconds: `10m` is for flags only.
    Nanoseconds,
    /// A list of texts.
    Texts,
    /// A section of its own.
    Section,
    /// Anything.
    Any,
}

/// A key.
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
}

/// Section of a transport's TLS settings.
pub const TRANSPORTS: [&str; 2] = ["client-transport-security", "peer-transport-security"];

const V3_4: Version = Version::new(3, 4, 0);
const V3_4_25: Version = Version::new(3, 4, 25);
const V3_5: Version = Version::new(3, 5, 0);
const V3_5_14: Version = Version::new(3, 5, 14);
const V3_6: Version = Version::new(3, 6, 0);
const V3_7: Version = Version::new(3, 7, 0);

const fn always(name: &'static str, kind: Kind) -> Key {
    Key { name, kind, since: V3_4, until: None }
}
const fn since(since: Version, name: &'static str, kind: Kind) -> Key {
    Key { name, kind, since, until: None }
}
const fn only(since: Version, until: Version, name: &'static str, kind: Kind) -> Key {
    Key { name, kind, since, until: Some(until) }
}

use Kind::{Any, Flag, Nanoseconds, Section, Text, Texts, Urls, Whole};

/// Keys of the top level.
pub const TOP: &[Key] = &[
    always("name", Text),
    always("data-dir", Text),
    always("wal-dir", Text),
    always("snapshot-count", Whole),
    always("max-snapshots", Whole),
    always("max-wals", Whole),
    always("heartbeat-interval", Whole),
    always("election-timeout", Whole),
    always("initial-election-tick-advance", Flag),
    always("backend-batch-interval", Nanoseconds),
    always("backend-batch-limit", Whole),
    always("quota-backend-bytes", Whole),
    always("max-txn-ops", Whole),
    always("max-request-bytes", Whole),
    always("max-concurrent-streams", Whole),
    always("listen-peer-urls", Urls),
    always("listen-client-urls", Urls),
    always("listen-metrics-urls", Urls),
    always("initial-advertise-peer-urls", Urls),
    always("advertise-client-urls", Urls),
    always("client-transport-security", Section),
    always("peer-transport-security", Section),
    always("cipher-suites", Texts),
    always("initial-cluster", Text),
    always("initial-cluster-token", Text),
    always("initial-cluster-state", Text),
    always("strict-reconfig-check", Flag),
    always("discovery-srv", Text),
    always("discovery-srv-name", Text),
    always("auto-compaction-mode", Text),
    always("auto-compaction-retention", Text),
    always("grpc-keepalive-min-time", Nanoseconds),
    always("grpc-keepalive-interval", Nanoseconds),
    always("grpc-keepalive-timeout", Nanoseconds),
    always("pre-vote", Flag),
    always("cors", Text),
    always("host-whitelist", Text),
    always("auth-token", Text),
    always("auth-token-ttl", Whole),
    always("bcrypt-cost", Whole),
    always("force-new-cluster", Flag),
    always("enable-pprof", Flag),
    always("metrics", Text),
    always("logger", Text),
    always("log-level", Text),
    always("log-outputs", Texts),
    always("enable-grpc-gateway", Flag),
    always("unsafe-no-fsync", Flag),
    // Until 3.7: discovery of etcd 2. Until 3.6: the API of etcd 2.
    only(V3_4, V3_7, "discovery", Text),
    only(V3_4, V3_7, "discovery-proxy", Text),
    only(V3_4, V3_6, "enable-v2", Flag),
    only(V3_4, V3_6, "experimental-enable-v2v3", Text),
    only(V3_4, V3_5, "debug", Flag),
    only(V3_4, V3_5, "log-output", Texts),
    only(V3_4, V3_5, "log-package-levels", Text),
    only(V3_4, V3_5, "experimental-backend-bbolt-freelist-type", Text),
    only(V3_4, V3_7, "experimental-initial-corrupt-check", Flag),
    only(V3_4, V3_7, "experimental-corrupt-check-time", Nanoseconds),
    only(V3_4, V3_7, "experimental-compaction-batch-limit", Whole),
    only(V3_4, V3_7, "experimental-enable-lease-checkpoint", Flag),
    only(V3_4, V3_7, "experimental-enable-lease-checkpoint-persist", Flag),
    only(V3_4, V3_7, "experimental-warning-apply-duration", Nanoseconds),
    only(V3_4, V3_7, "experimental-watch-progress-notify-interval", Nanoseconds),
    since(V3_4_25, "listen-client-http-urls", Urls),
    since(V3_4_25, "tls-min-version", Text),
    since(V3_4_25, "tls-max-version", Text),
    since(V3_5, "backend-bbolt-freelist-type", Text),
    since(V3_5, "self-signed-cert-validity", Whole),
    since(V3_5, "socket-options", Section),
    since(V3_5, "v2-deprecation", Text),
    since(V3_5, "enable-log-rotation", Flag),
    since(V3_5, "log-rotation-config-json", Text),
    only(V3_5, V3_7, "experimental-bootstrap-defrag-threshold-megabytes", Whole),
    only(V3_5, V3_7, "experimental-compact-hash-check-enabled", Flag),
    only(V3_5, V3_7, "experimental-compact-hash-check-time", Nanoseconds),
    only(V3_5, V3_7, "experimental-compaction-sleep-interval", Nanoseconds),
    only(V3_5, V3_7, "experimental-distributed-tracing-address", Text),
    only(V3_5, V3_7, "experimental-distributed-tracing-instance-id", Text),
    only(V3_5, V3_7, "experimental-distributed-tracing-sampling-rate", Whole),
    only(V3_5, V3_7, "experimental-distributed-tracing-service-name", Text),
    only(V3_5, V3_7, "experimental-downgrade-check-time", Nanoseconds),
    only(V3_5, V3_7, "experimental-enable-distributed-tracing", Flag),
    only(V3_5, V3_7, "experimental-memory-mlock", Flag),
    only(V3_5, V3_7, "experimental-snapshot-catch-up-entries", Whole),
    only(V3_5, V3_7, "experimental-stop-grpc-service-on-defrag", Flag),
    only(V3_5, V3_7, "experimental-txn-mode-write-with-shared-buffer", Flag),
    since(V3_6, "bootstrap-defrag-threshold-megabytes", Whole),
    since(V3_6, "compact-hash-check-time", Nanoseconds),
    since(V3_6, "compaction-batch-limit", Whole),
    since(V3_6, "compaction-sleep-interval", Nanoseconds),
    since(V3_6, "corrupt-check-time", Nanoseconds),
    since(V3_6, "discovery-config", Section),
    since(V3_6, "distributed-tracing-address", Text),
    since(V3_6, "distributed-tracing-instance-id", Text),
    since(V3_6, "distributed-tracing-sampling-rate", Whole),
    since(V3_6, "distributed-tracing-service-name", Text),
    since(V3_6, "downgrade-check-time", Nanoseconds),
    since(V3_6, "enable-distributed-tracing", Flag),
    since(V3_6, "feature-gates", Any),
    since(V3_6, "log-format", Text),
    since(V3_6, "max-learners", Whole),
    since(V3_6, "memory-mlock", Flag),
    since(V3_6, "snapshot-catchup-entries", Whole),
    since(V3_6, "warning-apply-duration", Nanoseconds),
    since(V3_6, "warning-unary-request-duration", Nanoseconds),
    since(V3_6, "watch-progress-notify-interval", Nanoseconds),
];

/// Keys of [`TRANSPORTS`].
pub const TRANSPORT: &[Key] = &[
    always("cert-file", Text),
    always("key-file", Text),
    always("trusted-ca-file", Text),
    always("client-cert-auth", Flag),
    always("auto-tls", Flag),
    since(V3_5, "client-cert-file", Text),
    since(V3_5, "client-key-file", Text),
    // One text in 3.5.14, a list from 3.5.15 on.
    since(V3_5_14, "allowed-cn", Any),
    since(V3_5_14, "allowed-hostname", Any),
    since(V3_6, "skip-client-san-verification", Flag),
];

/// Flags and other names that people write into the file, and what they mean.
const MEANT: &[(&str, &str)] = &[
    (
        "peer-client-cert-auth",
        "`client-cert-auth` in `peer-transport-security`; `peer-client-cert-auth` is the flag's name",
    ),
    ("client-cert-auth", "`client-cert-auth` in `client-transport-security`"),
    ("cert-file", "`cert-file` in `client-transport-security`"),
    ("key-file", "`key-file` in `client-transport-security`"),
    ("trusted-ca-file", "`trusted-ca-file` in `client-transport-security`"),
    ("auto-tls", "`auto-tls` in `client-transport-security`"),
    ("peer-cert-file", "`cert-file` in `peer-transport-security`"),
    ("peer-key-file", "`key-file` in `peer-transport-security`"),
    ("peer-trusted-ca-file", "`trusted-ca-file` in `peer-transport-security`"),
    ("peer-auto-tls", "`auto-tls` in `peer-transport-security`"),
    ("peer-cert-allowed-cn", "`allowed-cn` in `peer-transport-security`, from 3.5.14 on"),
    ("peer-cert-allowed-hostname", "`allowed-hostname` in `peer-transport-security`, from 3.5.14 on"),
    ("ca-file", "`trusted-ca-file`"),
    ("client-crl-file", "the flag `--client-crl-file`: no version reads a revocation list from the file"),
    ("peer-crl-file", "the flag `--peer-crl-file`: no version reads a revocation list from the file"),
    ("crl-file", "a flag: no version reads a revocation list from the file"),
    ("initial-advertise-client-urls", "`advertise-client-urls`"),
    ("advertise-peer-urls", "`initial-advertise-peer-urls`"),
    ("proxy", "the gRPC proxy, which is a program of its own"),
];

/// What a version makes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// It reads it.
    Known(Kind),
    /// A later version reads it.
    Later(Version),
    /// It is not read any more since this version.
    Gone(Version),
    /// No version reads it; what may be meant, in words.
    Unknown(Option<String>),
}

/// What a version makes of a key of the top level, or of a transport section.
pub fn reading(version: Version, section: Option<&str>, name: &str) -> Reading {
    let table = match section {
        None => TOP,
        Some(section) if TRANSPORTS.contains(&section) => TRANSPORT,
        // Sections without a table of their own.
        Some(_) => return Reading::Known(Any),
    };
    match table.iter().find(|key| key.name == name) {
        Some(key) if version < key.since => Reading::Later(key.since),
        Some(Key { until: Some(until), .. }) if version >= *until => Reading::Gone(*until),
        Some(key) => Reading::Known(key.kind),
        None => Reading::Unknown(meant(table, version, section, name)),
    }
}

fn meant(table: &[Key], version: Version, section: Option<&str>, name: &str) -> Option<String> {
    let plain = name.replace('_', "-").to_lowercase();
    if let Some((_, meant)) = MEANT.iter().find(|(wrong, _)| section.is_none() && *wrong == plain) {
        return Some((*meant).to_owned());
    }
    let usable = table.iter().filter(|key| version >= key.since && key.until.is_none_or(|until| version < until));
    let close = usable.map(|key| (strsim::osa_distance(key.name, &plain), key.name)).min()?;
    (close.0 <= 3.max(plain.len() / 5)).then(|| format!("`{}`", close.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN_12: Version = Version::new(3, 4, 23);
    const DEBIAN_13: Version = Version::new(3, 5, 16);

    #[test]
    fn keys_by_version() {
        use Reading::{Gone, Known, Later};
        let peer = Some("peer-transport-security");
        let cases = [
            (DEBIAN_12, None, "name", Known(Text)),
            (DEBIAN_12, None, "tls-min-version", Later(V3_4_25)),
            (DEBIAN_13, None, "tls-min-version", Known(Text)),
            (DEBIAN_12, None, "debug", Known(Flag)),
            (DEBIAN_13, None, "debug", Gone(V3_5)),
            (DEBIAN_13, None, "feature-gates", Later(V3_6)),
            (DEBIAN_12, peer, "allowed-cn", Later(V3_5_14)),
            (DEBIAN_13, peer, "allowed-cn", Known(Any)),
            (DEBIAN_12, peer, "client-cert-auth", Known(Flag)),
            (DEBIAN_13, Some("socket-options"), "reuse-port", Known(Any)),
            (Version::new(3, 7, 1), None, "experimental-corrupt-check-time", Gone(V3_7)),
        ];
        for (version, section, name, want) in cases {
            assert_eq!(reading(version, section, name), want, "{version} {name}");
        }
    }

    #[test]
    fn what_is_meant_by_unknown_keys() {
        let cases = [
            (
                "peer-client-cert-auth",
                "`client-cert-auth` in `peer-transport-security`; `peer-client-cert-auth` is the flag's name",
            ),
            ("peer_cert_file", "`cert-file` in `peer-transport-security`"),
            ("election-timout", "`election-timeout`"),
            ("heartbeat_interval", "`heartbeat-interval`"),
            ("peer-crl-file", "the flag `--peer-crl-file`: no version reads a revocation list from the file"),
            ("nonsense", ""),
        ];
        for (name, want) in cases {
            let Reading::Unknown(meant) = reading(DEBIAN_13, None, name) else { panic!("{name} is known") };
            assert_eq!(meant.unwrap_or_default(), want, "{name}");
        }
    }

    #[test]
    fn no_key_stands_twice() {
        for table in [TOP, TRANSPORT] {
            let mut names: Vec<&str> = table.iter().map(|key| key.name).collect();
            names.sort_unstable();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }
}
