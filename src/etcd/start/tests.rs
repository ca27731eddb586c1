//! Changes of a good configuration, each with the reason that it must give.

use super::*;

const GOOD: &str = "\
name: n1
data-dir: /var/lib/etcd
listen-peer-urls: https://10.0.0.1:2380
listen-client-urls: https://10.0.0.1:2379,https://127.0.0.1:2379
listen-metrics-urls: http://127.0.0.1:2381
initial-advertise-peer-urls: https://10.0.0.1:2380
advertise-client-urls: https://10.0.0.1:2379
initial-cluster: n1=https://10.0.0.1:2380,n2=https://10.0.0.2:2380
initial-cluster-token: m-g1
initial-cluster-state: new
heartbeat-interval: 100
election-timeout: 1000
quota-backend-bytes: 2147483648
auto-compaction-mode: periodic
logger: zap
client-transport-security:
  cert-file: /c
  key-file: /k
peer-transport-security:
  cert-file: /c
  key-file: /k
";

fn reasons_of(version: Version, text: &str) -> Vec<String> {
    let config = Config::parse(text).unwrap();
    refusals(&config, version).iter().map(|r| format!("{}: {}", r.line, r.message)).collect()
}

fn reasons(text: &str) -> Vec<String> {
    reasons_of(Version::new(3, 5, 16), text)
}

#[test]
fn each_mistake_is_refused_with_its_line() {
    assert_eq!(reasons(GOOD), [] as [&str; 0]);
    let table: &[(&str, &str, &str)] = &[
        (
            "heartbeat-interval: 100",
            "heartbeat-interval: \"100\"",
            "11: `heartbeat-interval` must be a whole number, not negative",
        ),
        (
            "heartbeat-interval: 100",
            "heartbeat-interval: 300",
            "12: `election-timeout` 1000 ms is less than 5 heartbeats of 300 ms",
        ),
        ("election-timeout: 1000", "election-timeout: 60000", "12: `election-timeout` 60000 ms is more than 50000 ms"),
        ("logger: zap", "logger: capnslog", "15: `logger` is `capnslog`, not one of `zap`"),
        (
            "cluster-state: new",
            "cluster-state: old",
            "10: `initial-cluster-state` is `old`, not one of `new`, `existing`",
        ),
        (
            "logger: zap",
            "grpc-keepalive-timeout: 10s",
            "15: `grpc-keepalive-timeout` must be a whole number of nanoseconds (`10m` is for the flag only)",
        ),
        ("logger: zap", "log-outputs: stderr", "15: `log-outputs` must be a list of texts"),
        ("logger: zap", "pre-vote: 1", "15: `pre-vote` must be `true` or `false`"),
        (
            "listen-peer-urls: https://10.0.0.1:2380",
            "listen-peer-urls: https://n1.mesh:2380",
            "3: `listen-peer-urls` has `https://n1.mesh:2380`: a listener needs an IP address, `n1.mesh` is a name",
        ),
        (
            "listen-peer-urls: https://10.0.0.1:2380",
            "listen-peer-urls: [https://10.0.0.1:2380]",
            "3: `listen-peer-urls` must be URLs in one text, separated by commas",
        ),
        ("name: n1", "name: n3", "8: `initial-cluster` has no member with this node's `name: n3`"),
        (
            "peer-urls: https://10.0.0.1:2380\nadvertise",
            "peer-urls: https://10.0.0.9:2380\nadvertise",
            "6: `initial-cluster` has `n1=https://10.0.0.1:2380`, and `initial-advertise-peer-urls` is `https://10.0.0.9:2380`",
        ),
        (
            "n2=https://10.0.0.2:2380",
            "n2=https://10.0.0.1:2380",
            "8: `initial-cluster` has the URL `https://10.0.0.1:2380` twice",
        ),
        ("logger: zap", "discovery-srv: mesh", "8: only one of `discovery-srv`, `initial-cluster` may be given"),
        (
            "client-transport-security:\n  cert-file: /c\n  key-file: /k\n",
            "",
            "4: `listen-client-urls` is https, and `client-transport-security` has no certificate",
        ),
        (
            "peer-transport-security:\n  cert-file: /c\n",
            "peer-transport-security:\n",
            "20: `peer-transport-security` has a `key-file` and no `cert-file`",
        ),
    ];
    for (from, to, want) in table {
        assert!(GOOD.contains(from), "{from}");
        assert_eq!(reasons(&GOOD.replacen(from, to, 1)), [*want], "{to}");
    }
}

/// What later versions do, from their sources: their programs cannot be had here.
#[test]
fn what_3_6_and_3_7_refuse() {
    let table: &[(&str, &str, &str)] = &[
        // version, what stands in place of `logger: zap`, the reason; none when it starts
        ("3.6.14", "logger: zap", ""),
        ("3.6.14", "enable-v2: true", ""),
        ("3.6.14", "auto-compaction-retention: 1h", ""),
        ("3.6.14", "log-format: xml", "`log-format` is `xml`, not one of `json`, `console`"),
        ("3.6.14", "feature-gates: InitialCorruptCheck=true", ""),
        ("3.6.14", "feature-gates: Nonsense=true", "`feature-gates` has `Nonsense`, which is no feature gate of 3.6"),
        ("3.7.1", "feature-gates: Nonsense=true", ""),
        ("3.7.1", "feature-gates: X=y", "`feature-gates` has `X` with `y`, not `true` or `false`"),
        ("3.6.14", "feature-gates: LeaseCheckpointPersist=true", "`LeaseCheckpointPersist` needs `LeaseCheckpoint`"),
        ("3.6.14", "feature-gates: {X: true}", "`feature-gates` must be text"),
        (
            "3.6.14",
            "corrupt-check-time: 1\nexperimental-corrupt-check-time: 1",
            "`experimental-corrupt-check-time` and `corrupt-check-time` are both given",
        ),
        ("3.7.1", "corrupt-check-time: 1\nexperimental-corrupt-check-time: 1", ""),
        (
            "3.6.14",
            "feature-gates: CompactHashCheck=true\nexperimental-compact-hash-check-enabled: true",
            "`experimental-compact-hash-check-enabled` and the feature gate `CompactHashCheck` are both given",
        ),
        ("3.6.14", "compact-hash-check-time: 0", "`compact-hash-check-time` must be more than 0"),
        (
            "3.6.14",
            "enable-distributed-tracing: true\ndistributed-tracing-sampling-rate: -1",
            "`distributed-tracing-sampling-rate` is per million",
        ),
    ];
    for (version, to, want) in table {
        let version = Version::parse(version).unwrap();
        let said = reasons_of(version, &GOOD.replacen("logger: zap", to, 1));
        let said: Vec<&str> = said.iter().filter_map(|s| s.split_once(": ")).map(|(_, text)| text).collect();
        let want: Vec<&str> = Some(*want).filter(|want| !want.is_empty()).into_iter().collect();
        assert_eq!(said, want, "{version} {to}");
    }
    let mode = GOOD.replacen("auto-compaction-mode: periodic", "auto-compaction-mode: \"\"", 1);
    assert_eq!(reasons_of(Version::new(3, 6, 0), &mode), ["14: `auto-compaction-mode` is empty"]);
    assert_eq!(reasons_of(Version::new(3, 5, 16), &mode), [] as [&str; 0]);
    let empty =
        GOOD.replacen("peer-transport-security:\n  cert-file: /c\n  key-file: /k\n", "peer-transport-security:\n", 1);
    assert!(reasons_of(Version::new(3, 6, 0), &empty)[0].contains("is there and has no keys"));
}

#[test]
fn retentions_are_read_as_etcd_reads_them() {
    use Retention::{Number, Seconds};
    let cases = [
        ("5", Some(Number(5))),
        ("+1", Some(Number(1))),
        ("1h", Some(Seconds(3600.0))),
        ("1h30m", Some(Seconds(5400.0))),
        ("1.5h", Some(Seconds(5400.0))),
        ("-1h", Some(Seconds(-3600.0))),
        ("500ms", Some(Seconds(0.5))),
        ("0h", Some(Seconds(0.0))),
        ("-5", None),
        ("1d", None),
        ("1.5", None),
        ("1x", None),
        ("h", None),
        ("", None),
    ];
    for (text, want) in cases {
        assert_eq!(retention(text), want, "{text}");
    }
}
