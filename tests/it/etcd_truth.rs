//! What `etcd::start` and `etcd::keys` say of a configuration against real programs: etcd refuses exactly where we say so.
//!
//! The programs are those of the images, 3.5.16 of trixie and 3.4.23 of bookworm. `FITOUT_ETCD` may name more of them,
//! separated by colons: what is said is then compared with each.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use fitout::etcd::config::Config;
use fitout::etcd::keys::{Reading, TOP, reading};
use fitout::etcd::start::refusals;
use fitout::etcd::versions::Version;
use fitout::process::Command;

use crate::common::{built, kept_example, run, tool};

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
log-outputs: [stderr]
client-transport-security:
  cert-file: DIR/crt
  key-file: DIR/key
peer-transport-security:
  cert-file: DIR/crt
  key-file: DIR/key
";

/// Which of 3.4.23 and 3.5.16 starts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Starts {
    Both,
    Neither,
    Only3_4,
    Only3_5,
}
use Starts::{Both, Neither, Only3_4, Only3_5};

impl Starts {
    /// `None` for a version that the table does not speak of.
    fn with(self, version: Version) -> Option<bool> {
        match version.to_string().as_str() {
            "3.4.23" => Some(matches!(self, Both | Only3_4)),
            "3.5.16" => Some(matches!(self, Both | Only3_5)),
            _ => None,
        }
    }
}

/// What is replaced, by what, and who starts.
#[rustfmt::skip]
const TABLE: &[(&str, &str, Starts)] = &[
    ("logger: zap", "logger: zap", Both),
    ("logger: zap\nlog-outputs: [stderr]", "logger: zap", Both),
    ("log-outputs: [stderr]", "log-outputs: [default]", Both),
    ("log-outputs: [stderr]", "log-outputs: [default, stderr]", Neither),
    ("logger: zap\nlog-outputs: [stderr]", "pre-vote: true", Both),
    ("logger: zap", "logger: capnslog", Only3_4),
    ("logger: zap", "logger: zap\nlog-level: loud", Neither),
    ("logger: zap", "logger: zap\nlog-level: \"\"", Only3_5),
    ("logger: zap", "logger: zap\npre-vote: yes", Both),
    ("logger: zap", "logger: zap\npre-vote: \"true\"", Neither),
    ("logger: zap", "logger: zap\nenable-v2: true", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 1x", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-retention: 1h", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-retention: \"5\"", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: revision\nauto-compaction-retention: 1h", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: \"\"", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: \"-1h\"", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: \"-5\"", Neither),
    ("logger: zap", "logger: zap\ntls-min-version: TLS1.4", Only3_4),
    ("logger: zap", "logger: zap\ntls-min-version: TLS1.3\ntls-max-version: TLS1.2", Only3_4),
    ("logger: zap", "logger: zap\ntls-min-version: TLS1.3\ncipher-suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]", Only3_4),
    ("logger: zap", "logger: zap\ncipher-suites: [TLS_NONSENSE]", Neither),
    ("logger: zap", "logger: zap\ncipher-suites: [TLS_AES_128_GCM_SHA256]", Both),
    ("logger: zap", "logger: zap\ncipher-suites: TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Neither),
    ("logger: zap", "logger: zap\nexperimental-compact-hash-check-time: 0", Only3_4),
    ("logger: zap", "logger: zap\nexperimental-enable-lease-checkpoint-persist: true", Neither),
    ("logger: zap", "logger: zap\nexperimental-distributed-tracing-sampling-rate: 2000000", Both),
    ("logger: zap", "logger: zap\nexperimental-enable-distributed-tracing: true\nexperimental-distributed-tracing-sampling-rate: 2000000", Only3_4),
    ("logger: zap", "logger: zap\nenable-log-rotation: true", Only3_4),
    ("logger: zap", "logger: zap\nauth-token: nonsense", Neither),
    ("logger: zap", "logger: zap\nbcrypt-cost: 99", Both),
    ("logger: zap", "logger: zap\nmetrics: nonsense", Both),
    ("logger: zap", "logger: zap\nv2-deprecation: nonsense", Both),
    ("logger: zap", "logger: zap\nv2-deprecation: write-only", Both),
    ("logger: zap", "logger: zap\nmax-wals: -1", Neither),
    ("logger: zap", "logger: zap\nbackend-batch-limit: -1", Both),
    ("logger: zap", "logger: zap\nsocket-options: {reuse-port: yes}", Both),
    ("logger: zap", "logger: zap\nsocket-options: x", Only3_4),
    ("logger: zap", "logger: zap\nquota-backend-bytes: 2GiB", Neither),
    ("logger: zap", "logger: zap\nlisten-client-http-urls: https://127.0.0.1:2379", Only3_4),
    ("logger: zap", "logger: zap\nlisten-client-http-urls: https://127.0.0.1:2389", Both),
    ("  key-file: DIR/key\npeer", "  key-file: DIR/key\n  allowed-cn: x\npeer", Only3_4),
    ("  key-file: DIR/key\npeer", "  key-file: DIR/key\n  allowed-cn: [x]\npeer", Both),
    ("listen-metrics-urls: http://127.0.0.1:2381", "listen-metrics-urls: https://127.0.0.1:2381", Both),
    ("listen-metrics-urls: http://127.0.0.1:2381", "listen-metrics-urls: http://127.0.0.1:2379", Neither),
    ("listen-metrics-urls: http://127.0.0.1:2381", "listen-metrics-urls: unix://x:1", Both),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: unixs://127.0.0.1:2379", Both),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: \" https://127.0.0.1:2379\"", Both),
    ("initial-cluster-state: new", "initial-cluster-state: \"\"", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: 100.0", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: 0", Neither),
    ("heartbeat-interval: 100", "heartbeat-interval:", Both),
    ("logger: zap", "logger: zap\ncors: \"::\"", Neither),
    ("logger: zap", "logger: zap\ndiscovery: http://127.0.0.1:1", Neither),
    ("logger: zap", "logger: zap\nunsafe-no-fsync: true", Both),
    ("logger: zap", "logger: zap\nlog-package-levels: \"etcdserver=loud\"", Both),
    ("heartbeat-interval: 100", "Heartbeat-Interval: 900", Neither),
    ("heartbeat-interval: 100", "heartbeat_interval: 900", Both),
    ("peer-transport-security:\n  cert-file: DIR/crt", "peer-transport-security:\n  Cert-File: DIR/crt", Both),
    ("peer-transport-security:", "Peer-Transport-Security:", Both),
    ("logger: zap", "logger: zap\nproxy: \"on\"", Both),
    ("logger: zap", "logger: zap\nproxy: \"loud\"", Neither),
    ("logger: zap", "logger: zap\nproxy: on", Neither),
    ("logger: zap", "logger: zap\ndiscovery-fallback: exit", Both),
    ("logger: zap", "logger: zap\ndiscovery-fallback: nonsense", Neither),
    ("logger: zap", "logger: zap\nproxy-dial-timeout: x", Neither),
    ("logger: zap", "logger: zap\nmetrics: extensive\nenable-pprof: \"x\"", Neither),
    ("logger: zap", "logger: zap\nstrict-reconfig-check: off", Both),
    ("logger: zap", "logger: zap\nstrict-reconfig-check: y", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 1", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 1.5h", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 1h30m", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 1d", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 1.5", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 0", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: \"+1\"", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: periodic\nauto-compaction-retention: 500ms", Both),
    ("logger: zap", "logger: zap\nauto-compaction-retention: 0", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-retention: \"0h\"", Both),
    ("logger: zap", "logger: zap\nauto-compaction-mode: revision\nauto-compaction-retention: -1h", Both),
    ("log-outputs: [stderr]", "log-outputs: []", Both),
    ("log-outputs: [stderr]", "log-outputs: [stderr, stderr]", Both),
    ("log-outputs: [stderr]", "log-outputs: [stderr, stdout]\nlog-level: warn", Both),
    ("log-outputs: [stderr]", "log-outputs: [stderr]\nlog-level: warning", Neither),
    ("log-outputs: [stderr]", "log-outputs: [stderr]\nlog-level: WARN", Only3_5),
    ("log-outputs: [stderr]", "log-outputs: [stderr]\nlog-level: dpanic", Both),
    ("log-outputs: [stderr]", "log-outputs: [stderr]\nlog-level: fatal", Both),
    ("logger: zap", "logger: Zap", Neither),
    ("logger: zap", "logger: \"\"", Neither),
    ("logger: zap", "logger: zap\nauth-token: jwt", Neither),
    ("logger: zap", "logger: zap\nauth-token: simple", Both),
    ("logger: zap", "logger: zap\nauth-token: \"simple,x=y\"", Both),
    ("logger: zap", "logger: zap\nauth-token: \"\"", Both),
    ("logger: zap", "logger: zap\nauth-token: jwt,sign-method=RS256", Neither),
    ("logger: zap", "logger: zap\nhost-whitelist: \"a,b\"", Both),
    ("logger: zap", "logger: zap\ncors: \"*\"", Both),
    ("logger: zap", "logger: zap\ncors: \"https://a:1,*\"", Neither),
    ("logger: zap", "logger: zap\ncors: \"foo\"", Neither),
    ("logger: zap", "logger: zap\nself-signed-cert-validity: 0", Both),
    ("logger: zap", "logger: zap\nexperimental-bootstrap-defrag-threshold-megabytes: 1", Both),
    ("logger: zap", "logger: zap\nmax-txn-ops: 0", Both),
    ("logger: zap", "logger: zap\nbackend-batch-interval: -5", Both),
    ("logger: zap", "logger: zap\nexperimental-corrupt-check-time: -5", Both),
    ("logger: zap", "logger: zap\nexperimental-compaction-batch-limit: -5", Both),
    ("election-timeout: 1000", "election-timeout: 0", Neither),
    ("heartbeat-interval: 100", "heartbeat-interval: 0x64", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: 1_00", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: 0144", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: 100.5", Neither),
    ("heartbeat-interval: 100", "heartbeat-interval: 1e2", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: ~", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: true", Neither),
    ("logger: zap", "logger: zap\nquota-backend-bytes: -1", Both),
    ("peer-transport-security:\n  cert-file: DIR/crt\n  key-file: DIR/key", "peer-transport-security:\n  - x", Neither),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: https://127.0.0.1:2379,", Neither),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: https://127.0.0.1:2379,https://127.0.0.1:2379", Both),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: https://127.0.0.1:2380", Neither),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: HTTPS://127.0.0.1:2379", Both),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: https://127.0.0.1:2379/", Neither),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: https://localhost:2379", Both),
    ("listen-metrics-urls: http://127.0.0.1:2381", "listen-metrics-urls: http://127.0.0.1:2380", Neither),
    ("initial-cluster-token: m-g1", "initial-cluster-token: \"\"", Both),
    ("initial-cluster-state: new", "initial-cluster-state: New", Neither),
    ("logger: zap", "logger: zap\ncipher-suites: [tls_aes_256_gcm_sha384]", Neither),
    ("name: n1", "name: 5", Neither),
    ("initial-cluster-token: m-g1", "initial-cluster-token: 5", Neither),
    ("initial-cluster-token: m-g1", "initial-cluster-token: true", Neither),
    ("initial-cluster-token: m-g1", "initial-cluster-token: 1.5", Neither),
    ("log-outputs: [stderr]", "log-outputs: [5]", Neither),
    ("  cert-file: DIR/crt\n  key-file: DIR/key\npeer", "  cert-file: 5\n  key-file: DIR/key\npeer", Neither),
    ("log-outputs: [stderr]", "log-outputs: stderr", Neither),
    ("listen-peer-urls: https://127.0.0.1:2380", "listen-peer-urls: https://127.0.0.1:2380,https://127.0.0.1:2380", Neither),
    ("initial-advertise-peer-urls: https://127.0.0.1:2380", "initial-advertise-peer-urls: https://127.0.0.1:2380,https://127.0.0.1:2380", Neither),
    ("advertise-client-urls: https://127.0.0.1:2379", "advertise-client-urls: https://127.0.0.1:2379,https://127.0.0.1:2379", Both),
    ("listen-peer-urls: https://127.0.0.1:2380", "listen-peer-urls: \" https://127.0.0.1:2380 , https://127.0.0.1:2390\"", Both),
    ("advertise-client-urls: https://127.0.0.1:2379", "advertise-client-urls: ftp://127.0.0.1:2379", Neither),
    ("advertise-client-urls: https://127.0.0.1:2379", "advertise-client-urls: https://:2379", Neither),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: http://127.0.0.1:2379", Both),
    ("listen-client-urls: https://127.0.0.1:2379", "listen-client-urls: unix://x", Only3_5),
    ("name: n1", "name: \"\"", Neither),
    ("initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380", "initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380,", Both),
    ("initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380", "initial-cluster: n1=https://127.0.0.1:2380, n2=https://127.0.0.2:2380", Both),
    ("initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380", "initial-cluster: n1=https://127.0.0.1:2380,n2", Neither),
    ("initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380", "initial-cluster: n1=https://127.0.0.1:2380,=https://127.0.0.2:2380", Both),
    ("initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380", "initial-cluster: \"\"", Neither),
    ("initial-cluster: n1=https://127.0.0.1:2380,n2=https://127.0.0.2:2380\n", "", Both),
    ("peer-transport-security:\n  cert-file: DIR/crt\n  key-file: DIR/key", "peer-transport-security:\n  auto-tls: true", Both),
    ("peer-transport-security:\n  cert-file: DIR/crt", "peer-transport-security:\n  allowed-cn: [x]\n  allowed-hostname: [y]\n  client-cert-auth: true\n  trusted-ca-file: DIR/crt\n  cert-file: DIR/crt", Only3_4),
    ("logger: zap", "logger: zap\nenable-v2: true\nexperimental-enable-v2v3: /x", Both),
    ("logger: zap", "logger: zap\nv2-deprecation: gone", Both),
    ("logger: zap", "logger: zap\nexperimental-enable-distributed-tracing: true", Both),
    ("logger: zap", "logger: zap\ndiscovery-srv: \"\"", Both),
    ("logger: zap", "logger: zap\ndiscovery-proxy: x", Both),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: https://n1.mesh:2380\nlisten", Neither),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: https://127.0.0.1\nlisten", Neither),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: https://127.0.0.1:2380/x\nlisten", Neither),
    ("peer-urls: https://127.0.0.1:2380\nlisten", "peer-urls: [https://127.0.0.1:2380]\nlisten", Neither),
    ("peer-urls: https://127.0.0.1:2380\nadvertise", "peer-urls: https://127.0.0.3:2380\nadvertise", Neither),
    ("advertise-client-urls: https://127.0.0.1:2379\n", "", Both),
    ("heartbeat-interval: 100", "heartbeat-interval: \"100\"", Neither),
    ("heartbeat-interval: 100", "heartbeat-interval: 300", Neither),
    ("election-timeout: 1000", "election-timeout: 60000", Neither),
    ("name: n1", "name: n3", Neither),
    ("n2=https://127.0.0.2:2380", "n2=https://127.0.0.1:2380", Neither),
    ("logger: zap", "logger: zap\ndiscovery-srv: mesh", Neither),
    ("logger: zap", "logger: zap\ngrpc-keepalive-timeout: 10s", Neither),
    ("logger: zap", "logger: zap\nauto-compaction-mode: sometimes\nauto-compaction-retention: 1h", Neither),
    ("logger: zap", "logger: capnslog\nlog-level: loud", Neither),
    ("logger: zap\nlog-outputs: [stderr]", "logger: capnslog\nlog-outputs: [stderr, stdout]", Neither),
    ("client-transport-security:\n  cert-file: DIR/crt\n  key-file: DIR/key\n", "", Neither),
    ("peer-transport-security:\n  cert-file: DIR/crt\n", "peer-transport-security:\n", Neither),
];

/// How long etcd must run to count as started; refusals take a tenth of a second.
const RUNS: Duration = Duration::from_secs(4);
/// Configurations tried at once. They mostly wait.
const AT_ONCE: usize = 8;

/// Whether etcd still runs after a while; otherwise what it said.
fn starts(etcd: &Path, config: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("config.yaml");
    let config = config.replace("DIR/data", directory.path().join("data").to_str().expect("UTF-8"));
    std::fs::write(&file, config).expect("configuration");
    // In a network of its own: the ports are nobody else's.
    let script = format!(
        "ip link set lo up && cd {} && exec timeout {} {} --config-file {}",
        directory.path().display(),
        RUNS.as_secs(),
        etcd.display(),
        file.display()
    );
    let done = Command::new("unshare").args(["--net", "sh", "-c", &script]).deadline(Duration::from_secs(60)).run();
    let done = done.unwrap_or_else(|failure| panic!("{failure}"));
    // timeout(1) exits with 124 when it had to end the program.
    if done.status.code() == Some(124) { Ok(()) } else { Err(done.log) }
}

/// The programs with their versions.
fn programs(directory: &Path) -> Vec<(PathBuf, Version)> {
    let mut all: Vec<PathBuf> = Vec::new();
    for (name, mesh) in [("trixie", built()), ("bookworm", bookworm())] {
        let to = directory.join(name);
        std::fs::create_dir(&to).expect("directory");
        let (image, to) = (mesh.join("dist/lis1.tar.gz"), to.to_str().expect("UTF-8"));
        tool("tar", &["-C", to, "-xzf", image.to_str().expect("UTF-8"), "./usr/bin/etcd"]);
        all.push(directory.join(name).join("usr/bin/etcd"));
    }
    let more = std::env::var("FITOUT_ETCD").unwrap_or_default();
    all.extend(more.split(':').filter(|path| !path.is_empty()).map(PathBuf::from));
    let version = |path: &PathBuf| {
        let said = tool(path.to_str().expect("UTF-8"), &["--version"]);
        said.lines().next().and_then(|l| l.rsplit(' ').next()).and_then(Version::parse).expect("version")
    };
    all.into_iter().map(|path| (path.clone(), version(&path))).collect()
}

/// One image of bookworm, for its etcd.
fn bookworm() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build_bookworm)
}

fn build_bookworm() -> PathBuf {
    let bookworm = kept_example("three-site", "etcd-bookworm");
    let file = bookworm.join("mesh.toml");
    let text = std::fs::read_to_string(&file).expect("mesh.toml");
    assert!(text.contains("debian = \"trixie\""), "{text}");
    std::fs::write(&file, text.replace("debian = \"trixie\"", "debian = \"bookworm\"")).expect("mesh.toml");
    run(&bookworm, &["pki", "init"]).exits(0);
    run(&bookworm, &["build", "--node", "lis1"]).exits(0);
    bookworm
}

/// What we say of a configuration: the reasons why it would not start.
fn said(config: &str, version: Version) -> Vec<String> {
    match Config::parse(config) {
        Ok(config) => refusals(&config, version).into_iter().map(|r| r.message).collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn etcd_refuses_what_we_say_it_refuses() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let subject = ["-subj", "/CN=n1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"];
    let key = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"];
    tool("openssl", &[&key[..], &[&at("key"), "-out", &at("crt")], &subject[..]].concat());
    let programs = programs(directory.path());
    let versions: Vec<String> = programs.iter().map(|(_, version)| version.to_string()).collect();
    assert_eq!(versions[..2], ["3.5.16", "3.4.23"], "the table is of these");

    let tasks: Vec<_> = TABLE.iter().flat_map(|row| programs.iter().map(move |program| (row, program))).collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(((from, to, want), (etcd, version))) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    assert!(GOOD.contains(from), "{from}");
                    let config = GOOD.replacen(from, to, 1);
                    let config =
                        ["crt", "key"].iter().fold(config, |c, name| c.replace(&format!("DIR/{name}"), &at(name)));
                    let said = said(&config, *version);
                    let truth = starts(etcd, &config);
                    let wanted = want.with(*version).unwrap_or(truth.is_ok());
                    if said.is_empty() != truth.is_ok() || truth.is_ok() != wanted {
                        let last = truth.map_err(|log| {
                            log.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect::<String>()
                        });
                        wrong.lock().expect("lock").push(format!("{to:?}: we say {said:?}; etcd {version}: {last:?}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("lock");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// The keys that a program reads are those that it was linked with: Go keeps the `json:` tags of its structures.
#[test]
fn the_table_of_keys_is_that_of_the_programs() {
    let directory = tempfile::tempdir().expect("temporary directory");
    for (path, version) in programs(directory.path()) {
        let program = std::fs::read(&path).expect("etcd");
        let tag = |name: &str| {
            ["\"", ",omitempty\""]
                .iter()
                .any(|end| memchr::memmem::find(&program, format!("json:\"{name}{end}").as_bytes()).is_some())
        };
        for key in TOP {
            let reads = matches!(reading(version, None, key.name), Reading::Known(_) | Reading::Old { .. });
            // A word that other structures have too says nothing.
            if key.name.contains('-') {
                assert_eq!(tag(key.name), reads, "etcd {version}: {}", key.name);
            }
        }
    }
}
