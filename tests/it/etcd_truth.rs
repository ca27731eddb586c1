//! What `etcd::start` says of a configuration against the etcd of the image: it refuses exactly where we say so.

use std::path::Path;
use std::time::Duration;

use fitout::etcd::config::Config;
use fitout::etcd::start::refusals;
use fitout::etcd::versions::Version;
use fitout::process::Command;

use crate::common::{built, tool};

const GOOD: &str = "\
name: n1
data-dir: DIR/data
listen-peer-urls: https://127.0.0.1:2380
listen-client-urls: https://127.0.0.1:2379
listen-metrics-urls: http://127.0.0.1:2381
initial-advertise-peer-urls: https://127.0.0.1:2380
advertise-client-urls: https://127.0.0.1:2379
initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380
initial-cluster-token: m-g1
initial-cluster-state: new
heartbeat-interval: 100
election-timeout: 1000
logger: zap
client-transport-security:
  cert-file: DIR/crt
  key-file: DIR/key
peer-transport-security:
  cert-file: DIR/crt
  key-file: DIR/key
";

/// What is replaced, by what, and whether etcd starts.
const TABLE: &[(&str, &str, bool)] = &[
    ("logger: zap", "logger: zap", true),
    // Ignored without a word, which is why unknown keys are findings.
    ("logger: zap", "logger: zap\npeer-client-cert-auth: true\nnonsense: 1", true),
    ("advertise-client-urls: https://127.0.0.1:2379\n", "", true),
    ("heartbeat-interval: 100", "heartbeat-interval: \"100\"", false),
    ("heartbeat-interval: 100", "heartbeat-interval: 300", false),
    ("election-timeout: 1000", "election-timeout: 60000", false),
    ("logger: zap", "logger: capnslog", false),
    ("cluster-state: new", "cluster-state: old", false),
    ("logger: zap", "grpc-keepalive-timeout: 10s", false),
    ("logger: zap", "log-outputs: stderr", false),
    ("logger: zap", "pre-vote: 1", false),
    ("logger: zap", "log-level: loud", false),
    ("logger: zap", "auto-compaction-mode: sometimes\nauto-compaction-retention: 1h", false),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: https://n1.mesh:2380\nlisten", false),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: https://127.0.0.1\nlisten", false),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: https://127.0.0.1:2380/x\nlisten", false),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: [https://127.0.0.1:2380]\nlisten", false),
    ("peer-urls: https://127.0.0.1:2380\nadvertise", "peer-urls: https://127.0.0.3:2380\nadvertise", false),
    ("name: n1", "name: n3", false),
    ("n2=https://127.0.0.2:2380", "n2=https://127.0.0.1:2380", false),
    ("logger: zap", "discovery-srv: mesh", false),
    ("client-transport-security:\n  cert-file: DIR/crt\n  key-file: DIR/key\n", "", false),
    ("peer-transport-security:\n  cert-file: DIR/crt\n", "peer-transport-security:\n", false),
];

/// How long etcd must run to count as started; refusals take a tenth of a second.
const RUNS: Duration = Duration::from_secs(4);

/// Whether etcd still runs after a while; otherwise what it said.
fn starts(directory: &Path, config: &str) -> Result<(), String> {
    let file = directory.join("config.yaml");
    std::fs::write(&file, config).expect("configuration");
    // In a network of its own: the ports are nobody else's.
    let etcd = format!(
        "ip link set lo up && exec timeout {} {}/usr/bin/etcd --config-file {}",
        RUNS.as_secs(),
        directory.display(),
        file.display()
    );
    let done = Command::new("unshare").args(["--net", "sh", "-c", &etcd]).deadline(Duration::from_secs(60)).run();
    let _ = std::fs::remove_dir_all(directory.join("data"));
    let done = done.unwrap_or_else(|failure| panic!("{failure}"));
    // timeout(1) exits with 124 when it had to end the program.
    if done.status.code() == Some(124) { Ok(()) } else { Err(done.log) }
}

#[test]
fn etcd_refuses_what_we_say_it_refuses() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let image = built().join("dist/lis1.tar.gz");
    tool("tar", &["-C", &at(""), "-xzf", image.to_str().expect("UTF-8"), "./usr/bin/etcd"]);
    let subject = ["-subj", "/CN=n1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
    let key = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"];
    tool("openssl", &[&key[..], &[&at("key"), "-out", &at("crt")], &subject[..]].concat());

    let version = tool(&at("usr/bin/etcd"), &["--version"]);
    let version = version.lines().next().and_then(|l| l.rsplit(' ').next()).and_then(Version::parse).expect("version");
    let mut wrong = Vec::new();
    for (from, to, want) in TABLE {
        assert!(GOOD.contains(from), "{from}");
        let config = GOOD.replacen(from, to, 1).replace("DIR", directory.path().to_str().expect("UTF-8"));
        let said = refusals(&Config::parse(&config).expect("YAML"), version);
        let truth = starts(directory.path(), &config);
        if said.is_empty() != *want || truth.is_ok() != *want {
            wrong.push(format!("{to:?}: we say {said:?}; etcd {version}: {truth:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
