//! The keys themselves.
//!
//! Sources: the `json:` tags of `embed.Config`, `configJSON`, `securityConfig` (`server/embed/config.go`), and of
//! `configProxy` (`etcdmain/config.go`), as they stand in the programs 3.4.23, 3.5.0, 3.5.1, 3.5.16 and 3.5.30, and in
//! the sources of 3.6 and of what follows 3.7; patch levels between are from CHANGELOG-3.4 and CHANGELOG-3.5.

use super::Kind::{Any, Flag, Nanoseconds, Section, Signed, Text, Texts, Urls, Whole, Word};
use super::{Key, Kind};
use crate::etcd::versions::Version;

const V3_4: Version = Version::new(3, 4, 0);
pub(super) const V3_4_25: Version = Version::new(3, 4, 25);
pub(super) const V3_5: Version = Version::new(3, 5, 0);
const V3_5_2: Version = Version::new(3, 5, 2);
const V3_5_5: Version = Version::new(3, 5, 5);
const V3_5_8: Version = Version::new(3, 5, 8);
pub(super) const V3_5_14: Version = Version::new(3, 5, 14);
const V3_5_15: Version = Version::new(3, 5, 15);
pub(super) const V3_6: Version = Version::new(3, 6, 0);
pub(super) const V3_7: Version = Version::new(3, 7, 0);
const V3_8: Version = Version::new(3, 8, 0);

const fn always(name: &'static str, kind: Kind) -> Key {
    since(V3_4, name, kind)
}
const fn since(since: Version, name: &'static str, kind: Kind) -> Key {
    Key { name, kind, since, until: None, deprecated: None, instead: "" }
}
/// From one version to before another.
const fn span(since: Version, until: Version, name: &'static str, kind: Kind) -> Key {
    Key { name, kind, since, until: Some(until), deprecated: None, instead: "" }
}
/// Deprecated from the third version on.
const fn old(
    since: Version,
    until: Version,
    deprecated: Version,
    name: &'static str,
    kind: Kind,
    instead: &'static str,
) -> Key {
    Key { name, kind, since, until: Some(until), deprecated: Some(deprecated), instead }
}
/// `experimental-…`: deprecated in 3.6 and gone in 3.7 (CHANGELOG-3.7).
const fn experimental(since: Version, name: &'static str, kind: Kind, instead: &'static str) -> Key {
    old(since, V3_7, V3_6, name, kind, instead)
}
/// The proxy of etcd 2, gone with it.
const fn proxy(name: &'static str, kind: Kind) -> Key {
    old(V3_4, V3_6, V3_4, name, kind, "`etcd grpc-proxy`, a program of its own")
}

/// Keys of the top level.
pub const TOP: &[Key] = &[
    always("name", Text),
    always("data-dir", Text),
    always("wal-dir", Text),
    always("snapshot-count", Whole),
    always("max-wals", Whole),
    always("heartbeat-interval", Whole),
    always("election-timeout", Whole),
    always("initial-election-tick-advance", Flag),
    always("backend-batch-interval", Nanoseconds),
    always("backend-batch-limit", Signed),
    always("quota-backend-bytes", Signed),
    always("max-txn-ops", Whole),
    always("max-request-bytes", Whole),
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
    // Not in 3.5.0 to 3.5.4, though 3.4.20 has it.
    span(Version::new(3, 4, 20), V3_5, "max-concurrent-streams", Word),
    since(V3_5_5, "max-concurrent-streams", Word),
    span(V3_4_25, V3_5, "listen-client-http-urls", Urls),
    since(V3_5_8, "listen-client-http-urls", Urls),
    span(V3_4_25, V3_5, "tls-min-version", Text),
    since(V3_5_8, "tls-min-version", Text),
    span(V3_4_25, V3_5, "tls-max-version", Text),
    since(V3_5_8, "tls-max-version", Text),
    // etcd#22306: with what was left of the store of etcd 2.
    old(V3_4, V3_8, V3_6, "max-snapshots", Whole, "nothing: no snapshot files are kept any more"),
    old(V3_5, V3_8, V3_6, "v2-deprecation", Text, "nothing: its default is enforced since 3.6, whatever it says"),
    old(V3_4, V3_7, V3_6, "discovery", Text, "`initial-cluster`"),
    old(V3_4, V3_7, V3_6, "discovery-proxy", Text, "`initial-cluster`"),
    old(V3_4, V3_6, V3_5, "enable-v2", Flag, "nothing: 3.6 has no API of etcd 2"),
    old(V3_4, V3_6, V3_5, "experimental-enable-v2v3", Text, "nothing: 3.6 has no API of etcd 2"),
    proxy("proxy", Text),
    proxy("proxy-failure-wait", Whole),
    proxy("proxy-refresh-interval", Whole),
    proxy("proxy-dial-timeout", Whole),
    proxy("proxy-write-timeout", Whole),
    proxy("proxy-read-timeout", Whole),
    old(V3_4, V3_6, V3_4, "discovery-fallback", Text, "`initial-cluster`"),
    old(V3_4, V3_5, V3_4, "debug", Flag, "`log-level: debug`"),
    old(V3_4, V3_5, V3_4, "log-output", Text, "`log-outputs`"),
    old(V3_4, V3_5, V3_4, "log-package-levels", Text, "`log-level`"),
    old(V3_4, V3_5, V3_5, "experimental-backend-bbolt-freelist-type", Text, "`backend-bbolt-freelist-type`"),
    since(V3_5, "backend-bbolt-freelist-type", Text),
    since(V3_5, "enable-log-rotation", Flag),
    since(V3_5, "log-rotation-config-json", Text),
    since(Version::new(3, 5, 1), "self-signed-cert-validity", Whole),
    // Until 3.5.9 the field had no tag.
    since(Version::new(3, 5, 10), "socket-options", Section),
    since(V3_6, "bootstrap-defrag-threshold-megabytes", Whole),
    since(V3_6, "compact-hash-check-time", Nanoseconds),
    since(V3_6, "compaction-batch-limit", Signed),
    since(V3_6, "compaction-sleep-interval", Nanoseconds),
    since(V3_6, "corrupt-check-time", Nanoseconds),
    since(V3_6, "discovery-config", Section),
    since(V3_6, "distributed-tracing-address", Text),
    since(V3_6, "distributed-tracing-instance-id", Text),
    since(V3_6, "distributed-tracing-sampling-rate", Signed),
    since(V3_6, "distributed-tracing-service-name", Text),
    since(V3_6, "downgrade-check-time", Nanoseconds),
    since(V3_6, "enable-distributed-tracing", Flag),
    since(V3_6, "feature-gates", Text),
    // For programs that embed etcd: no file can give one.
    since(V3_6, "grpc-additional-server-options", Any),
    since(V3_6, "log-format", Text),
    since(V3_6, "max-learners", Signed),
    since(V3_6, "memory-mlock", Flag),
    since(V3_6, "snapshot-catchup-entries", Whole),
    since(V3_6, "warning-apply-duration", Nanoseconds),
    since(V3_6, "warning-unary-request-duration", Nanoseconds),
    since(V3_6, "watch-progress-notify-interval", Nanoseconds),
    // etcd#21566.
    since(V3_7, "disable-log-sampling", Flag),
    experimental(V3_4, "experimental-initial-corrupt-check", Flag, "`feature-gates: InitialCorruptCheck=true`"),
    experimental(V3_4, "experimental-corrupt-check-time", Nanoseconds, "`corrupt-check-time`"),
    experimental(V3_4, "experimental-compaction-batch-limit", Signed, "`compaction-batch-limit`"),
    experimental(V3_4, "experimental-enable-lease-checkpoint", Flag, "`feature-gates: LeaseCheckpoint=true`"),
    span(Version::new(3, 4, 20), V3_5, "experimental-enable-lease-checkpoint-persist", Flag),
    experimental(
        V3_5_2,
        "experimental-enable-lease-checkpoint-persist",
        Flag,
        "`feature-gates: LeaseCheckpoint=true,LeaseCheckpointPersist=true`",
    ),
    experimental(
        Version::new(3, 4, 16),
        "experimental-warning-apply-duration",
        Nanoseconds,
        "`warning-apply-duration`",
    ),
    experimental(
        Version::new(3, 4, 11),
        "experimental-watch-progress-notify-interval",
        Nanoseconds,
        "`watch-progress-notify-interval`",
    ),
    experimental(
        V3_5,
        "experimental-bootstrap-defrag-threshold-megabytes",
        Whole,
        "`bootstrap-defrag-threshold-megabytes`",
    ),
    experimental(V3_5_5, "experimental-compact-hash-check-enabled", Flag, "`feature-gates: CompactHashCheck=true`"),
    experimental(V3_5_5, "experimental-compact-hash-check-time", Nanoseconds, "`compact-hash-check-time`"),
    experimental(
        Version::new(3, 5, 16),
        "experimental-compaction-sleep-interval",
        Nanoseconds,
        "`compaction-sleep-interval`",
    ),
    experimental(V3_5, "experimental-distributed-tracing-address", Text, "`distributed-tracing-address`"),
    experimental(V3_5, "experimental-distributed-tracing-instance-id", Text, "`distributed-tracing-instance-id`"),
    experimental(
        Version::new(3, 5, 11),
        "experimental-distributed-tracing-sampling-rate",
        Signed,
        "`distributed-tracing-sampling-rate`",
    ),
    experimental(V3_5, "experimental-distributed-tracing-service-name", Text, "`distributed-tracing-service-name`"),
    experimental(V3_5, "experimental-downgrade-check-time", Nanoseconds, "`downgrade-check-time`"),
    experimental(V3_5, "experimental-enable-distributed-tracing", Flag, "`enable-distributed-tracing`"),
    experimental(V3_5, "experimental-memory-mlock", Flag, "`memory-mlock`"),
    experimental(V3_5_14, "experimental-snapshot-catch-up-entries", Whole, "`snapshot-catchup-entries`"),
    experimental(
        V3_5_14,
        "experimental-stop-grpc-service-on-defrag",
        Flag,
        "`feature-gates: StopGRPCServiceOnDefrag=true`",
    ),
    experimental(
        V3_5,
        "experimental-txn-mode-write-with-shared-buffer",
        Flag,
        "`feature-gates: TxnModeWriteWithSharedBuffer=true`",
    ),
    // Flags only until 3.6 gave them a tag, for one version.
    experimental(
        V3_6,
        "experimental-peer-skip-client-san-verification",
        Flag,
        "`skip-client-san-verification` in `peer-transport-security`",
    ),
    experimental(V3_6, "experimental-warning-unary-request-duration", Nanoseconds, "`warning-unary-request-duration`"),
];

/// Keys of a transport section.
pub const TRANSPORT: &[Key] = &[
    always("cert-file", Text),
    always("key-file", Text),
    always("trusted-ca-file", Text),
    always("client-cert-auth", Flag),
    always("auto-tls", Flag),
    since(V3_5, "client-cert-file", Text),
    since(V3_5, "client-key-file", Text),
    span(V3_5_14, V3_5_15, "allowed-cn", Text),
    since(V3_5_15, "allowed-cn", Texts),
    span(V3_5_14, V3_5_15, "allowed-hostname", Text),
    since(V3_5_15, "allowed-hostname", Texts),
    since(V3_6, "skip-client-san-verification", Flag),
];

/// Keys of `socket-options`.
pub const SOCKET: &[Key] = &[always("reuse-port", Flag), always("reuse-address", Flag)];

/// Flags and other names that people write into the file, and what they mean.
pub(super) const MEANT: &[(&str, &str)] = &[
    (
        "peer-client-cert-auth",
        "`client-cert-auth` in `peer-transport-security`; `peer-client-cert-auth` is the flag's name",
    ),
    ("peer-cert-file", "`cert-file` in `peer-transport-security`"),
    ("peer-key-file", "`key-file` in `peer-transport-security`"),
    ("peer-client-cert-file", "`client-cert-file` in `peer-transport-security`, from 3.5 on"),
    ("peer-client-key-file", "`client-key-file` in `peer-transport-security`, from 3.5 on"),
    ("peer-trusted-ca-file", "`trusted-ca-file` in `peer-transport-security`"),
    ("peer-auto-tls", "`auto-tls` in `peer-transport-security`"),
    ("peer-cert-allowed-cn", "`allowed-cn` in `peer-transport-security`, from 3.5.14 on"),
    ("peer-cert-allowed-hostname", "`allowed-hostname` in `peer-transport-security`, from 3.5.14 on"),
    ("client-cert-allowed-hostname", "`allowed-hostname` in `client-transport-security`, from 3.5.14 on"),
    ("peer-skip-client-san-verification", "`skip-client-san-verification` in `peer-transport-security`, from 3.6 on"),
    (
        "experimental-snapshot-catchup-entries",
        "`experimental-snapshot-catch-up-entries`: the file's key has one hyphen more than the flag",
    ),
    ("socket-reuse-port", "`reuse-port` in `socket-options`, from 3.5.10 on"),
    ("socket-reuse-address", "`reuse-address` in `socket-options`, from 3.5.10 on"),
    ("ca-file", "`trusted-ca-file` in `client-transport-security`"),
    ("peer-ca-file", "`trusted-ca-file` in `peer-transport-security`"),
    ("client-crl-file", "the flag `--client-crl-file`: no version reads a revocation list from the file"),
    ("peer-crl-file", "the flag `--peer-crl-file`: no version reads a revocation list from the file"),
    ("crl-file", "a flag: no version reads a revocation list from the file"),
    ("next-cluster-version-compatible", "a flag of 3.4.30 and later: the file has no key for it"),
    ("raft-read-timeout", "a flag: the file has no key for it"),
    ("raft-write-timeout", "a flag: the file has no key for it"),
    ("config-file", "the flag that names this file"),
    ("initial-advertise-client-urls", "`advertise-client-urls`"),
    ("advertise-peer-urls", "`initial-advertise-peer-urls`"),
    ("initial-cluster-members", "`initial-cluster`"),
    ("auto-compaction", "`auto-compaction-retention`"),
    ("client-security", "`client-transport-security`"),
    ("peer-security", "`peer-transport-security`"),
];
