//! Changes of a good image, each with the codes that it must give.

use super::*;
use crate::etcd::birth::{Birth, ClusterState};
use crate::etcd::config::Config;
use crate::systemd::testing::{put, tree};
use crate::tree::{Entry, Tree};

const GOOD: &str = "\
name: lis1
data-dir: /var/lib/etcd
listen-peer-urls: https://10.77.0.11:2380
listen-client-urls: https://10.77.0.11:2379,https://127.0.0.1:2379
listen-metrics-urls: http://127.0.0.1:2381
initial-advertise-peer-urls: https://10.77.0.11:2380
advertise-client-urls: https://10.77.0.11:2379
initial-cluster: arb1=https://10.77.0.31:2380,lis1=https://10.77.0.11:2380,por1=https://10.77.0.21:2380
initial-cluster-token: harbour-g1
initial-cluster-state: new
strict-reconfig-check: true
heartbeat-interval: 100
election-timeout: 1000
pre-vote: true
quota-backend-bytes: 2147483648
auto-compaction-mode: periodic
auto-compaction-retention: 1h
snapshot-count: 10000
enable-grpc-gateway: false
logger: zap
client-transport-security:
  cert-file: /etc/etcd/pki/server.crt
  key-file: /etc/etcd/pki/server.key
  trusted-ca-file: /etc/etcd/pki/client-ca.crt
  client-cert-auth: true
peer-transport-security:
  cert-file: /etc/etcd/pki/peer.crt
  key-file: /etc/etcd/pki/peer.key
  trusted-ca-file: /etc/etcd/pki/peer-ca.crt
  client-cert-auth: true
";

fn status(version: &str) -> String {
    format!("Package: etcd-server\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n")
}

/// A good image with this configuration and a version against which nothing is known.
fn image(config: &str) -> Image {
    let mut tree = tree(&[
        (CONFIG, config),
        ("/var/lib/dpkg/status", &status("3.5.33-1")),
        ("/etc/passwd", "root:x:0:0::/root:/bin/sh\netcd:x:100:101::/var/lib/etcd:/usr/sbin/nologin\n"),
        ("/etc/group", "root:x:0:\netcd:x:101:\n"),
        ("/etc/etcd/pki/server.crt", "x"),
        ("/etc/etcd/pki/server.key", "x"),
        ("/etc/etcd/pki/client-ca.crt", "x"),
        ("/etc/etcd/pki/peer.crt", "x"),
        ("/etc/etcd/pki/peer.key", "x"),
        ("/etc/etcd/pki/peer-ca.crt", "x"),
    ]);
    tree.insert(TreePath::parse(DATA).unwrap(), Entry::directory(0o700).owned(100, 101));
    let mut manifest = crate::verify::testing::manifest();
    let peer = |name: &str, address: &str| (name.to_owned(), format!("https://{address}:2380"));
    let peers = [peer("lis1", "10.77.0.11"), peer("por1", "10.77.0.21"), peer("arb1", "10.77.0.31")].into();
    manifest.birth = Birth::of(1, "harbour-g1".into(), peers);
    Image {
        name: "lis1.tar.gz".into(),
        tree,
        manifest: Some(manifest),
        private_keys: Vec::new(),
        etcd_builds: Vec::new(),
    }
}

/// An etcd that is no package: its program says the first version, the declaration the second.
fn a_binary(image: &mut Image, built: &str, declared: Option<&str>) {
    put(&mut image.tree, "/var/lib/dpkg/status", "\n");
    put(&mut image.tree, "/usr/local/bin/etcd", "program");
    put(&mut image.tree, "/usr/bin/etcd", "-> /usr/local/bin/etcd");
    if let Some(declared) = declared {
        put(&mut image.tree, DECLARED_VERSION, declared);
    }
    image.etcd_builds = vec![(TreePath::parse("/usr/local/bin/etcd").unwrap(), Version::parse(built).unwrap())];
}

fn codes(image: &Image) -> Vec<&'static str> {
    let mut out = Vec::new();
    check(image, &mut out);
    let mut codes: Vec<&str> = out.iter().map(|f| f.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// What is replaced in the configuration, by what, and the codes.
const CONFIGS: &[(&str, &str, &[&str])] = &[
    ("name: lis1", "name: lis1", &[]),
    ("name: lis1", "name: [", &["etcd-config-syntax"]),
    ("name: lis1", "name: lis1\nname: lis1", &["etcd-config-syntax"]),
    ("logger: zap", "logger: zap\npeer-client-cert-auth: true", &["etcd-key-unknown"]),
    ("logger: zap", "logger: zap\nfeature-gates: x", &["etcd-key-unknown"]),
    ("logger: zap", "logger: zap\ndebug: true", &["etcd-key-unknown"]),
    ("logger: zap", "logger: capnslog", &["etcd-refuses-start"]),
    ("heartbeat-interval: 100", "heartbeat-interval: 250", &["etcd-timing"]),
    ("name: lis1", "name: por1", &["etcd-name", "etcd-refuses-start"]),
    ("cluster-token: harbour-g1", "cluster-token: harbour-g2", &["etcd-cluster", "etcd-ids"]),
    ("initial-cluster-token: harbour-g1\n", "", &["etcd-cluster", "etcd-ids"]),
    ("cluster-state: new", "cluster-state: existing", &["etcd-cluster"]),
    (",por1=https://10.77.0.21:2380", "", &["etcd-cluster", "etcd-ids"]),
    ("por1=https://10.77.0.21:2380", "por1=https://10.77.0.22:2380", &["etcd-cluster", "etcd-ids"]),
    // Names do not enter the ids.
    ("por1=https://10.77.0.21:2380", "por2=https://10.77.0.21:2380", &["etcd-cluster"]),
    ("10.77.0.31:2380", "10.77.0.31:2380,x=https://10.77.0.41:2380", &["etcd-cluster", "etcd-ids"]),
    (
        "advertise-client-urls: https://10.77.0.11:2379",
        "advertise-client-urls: https://10.77.0.12:2379",
        &["etcd-address"],
    ),
    ("listen-peer-urls: https://10.77.0.11:2380", "listen-peer-urls: https://0.0.0.0:2380", &["etcd-address"]),
    ("https://127.0.0.1:2379", "http://127.0.0.1:2379", &["etcd-tls-off"]),
    ("peer.crt\n  key-file: /etc/etcd/pki/peer.key", "peer.crt\n  key-file: pki/peer.key", &["etcd-file-missing"]),
    ("pki/client-ca.crt", "pki/none.crt", &["etcd-file-missing"]),
    ("  trusted-ca-file: /etc/etcd/pki/client-ca.crt\n", "", &["etcd-client-auth"]),
    ("client-cert-auth: true\npeer", "client-cert-auth: false\npeer", &["etcd-client-auth"]),
    ("client-cert-auth: true\npeer", "client-cert-auth: true\n  auto-tls: true\npeer", &["etcd-client-auth"]),
    ("http://127.0.0.1:2381", "http://10.77.0.11:2381", &["etcd-metrics"]),
    ("listen-metrics-urls: http://127.0.0.1:2381\n", "", &["etcd-metrics"]),
    ("quota-backend-bytes: 2147483648", "quota-backend-bytes: 21474836480", &["etcd-quota"]),
    ("quota-backend-bytes: 2147483648\n", "", &["etcd-quota"]),
    ("quota-backend-bytes: 2147483648", "quota-backend-bytes: -1", &["etcd-quota"]),
    ("gateway: false", "gateway: true", &["etcd-gateway"]),
    ("pre-vote: true\n", "", &["etcd-default-differs"]),
    ("snapshot-count: 10000\n", "", &["etcd-default-differs"]),
    ("retention: 1h", "retention: \"0\"", &["etcd-compaction"]),
    ("mode: periodic", "mode: revision", &["etcd-compaction"]),
    ("mode: periodic\nauto-compaction-retention: 1h", "retention: \"5\"", &["etcd-compaction", "etcd-default-differs"]),
    ("mode: periodic", "mode: sometimes", &["etcd-refuses-start"]),
    ("logger: zap", "logger: zap\ncipher-suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]", &["etcd-ciphers"]),
    ("logger: zap", "logger: zap\ncipher-suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]", &[]),
    ("logger: zap", "logger: zap\ncipher-suites: [TLS_NONSENSE]", &["etcd-ciphers", "etcd-refuses-start"]),
    ("logger: zap", "logger: zap\nproxy: \"on\"", &["etcd-key-old", "etcd-proxy"]),
    ("logger: zap", "logger: zap\nenable-v2: true", &["etcd-key-old"]),
    ("logger: zap", "logger: zap\nexperimental-corrupt-check-time: 60000000000", &[]),
    ("pre-vote: true", "Pre-Vote: yes", &[]),
    ("cluster-token: harbour-g1", "cluster-token: 5", &["etcd-cluster", "etcd-ids", "etcd-refuses-start"]),
    ("reconfig-check: true", "reconfig-check: false", &["etcd-unsafe"]),
    ("logger: zap", "logger: zap\nforce-new-cluster: true", &["etcd-unsafe"]),
    ("data-dir: /var/lib/etcd", "data-dir: /srv/etcd", &["etcd-data-directory"]),
];

#[test]
fn each_configuration_gives_its_codes() {
    for (from, to, want) in CONFIGS {
        assert!(GOOD.contains(from), "{from}");
        assert_eq!(codes(&image(&GOOD.replacen(from, to, 1))), *want, "{from} -> {to}");
    }
}

/// What is done to the image, and the codes.
type Change = (&'static str, fn(&mut Image), &'static [&'static str]);

const IMAGES: &[Change] = &[
    ("no configuration", |i| drop(i.tree.remove(&at(CONFIG))), &["etcd-config-missing"]),
    ("data in the directory", |i| put(&mut i.tree, "/var/lib/etcd/member/wal/0", "x"), &["etcd-data-directory"]),
    ("mode of the directory", |i| put_directory(&mut i.tree, 0o755, 100), &["etcd-data-directory"]),
    ("owner of the directory", |i| put_directory(&mut i.tree, 0o700, 0), &["etcd-data-directory"]),
    ("no data directory", |i| drop(i.tree.remove(&at(DATA))), &[]),
    (
        "3.5.1",
        |i| put(&mut i.tree, "/var/lib/dpkg/status", &status("3.5.1-1")),
        &["etcd-version-bad", "etcd-version-known"],
    ),
    ("3.5.16", |i| put(&mut i.tree, "/var/lib/dpkg/status", &status("3.5.16-4+b2")), &["etcd-version-known"]),
    ("no package", |i| put(&mut i.tree, "/var/lib/dpkg/status", "\n"), &["etcd-version-unknown"]),
    ("no package, and a program that says its version", |i| a_binary(i, "3.5.33", None), &[]),
    ("a program of the version that is declared", |i| a_binary(i, "3.5.33", Some("3.5.33\n")), &[]),
    ("a program of another version", |i| a_binary(i, "3.5.33", Some("3.5.32\n")), &["etcd-version-other"]),
    (
        "a program of a bad version, declared as a good one",
        |i| a_binary(i, "3.5.1", Some("3.5.33\n")),
        &["etcd-version-bad", "etcd-version-known", "etcd-version-other"],
    ),
    ("a birth record with another id", |i| birth(i).cluster_id = "00".into(), &["etcd-ids"]),
    (
        "a birth record with another token",
        |i| *birth(i) = Birth::of(2, "harbour-g1".into(), birth(i).peers.clone()),
        &["etcd-ids"],
    ),
    ("a node that joins", join, &["etcd-cluster"]),
    ("a node without a part", |i| i.manifest.as_mut().unwrap().part = crate::declaration::Part::Client, &[]),
    ("an empty certificate", |i| put(&mut i.tree, "/etc/etcd/pki/peer.crt", ""), &["etcd-file-missing"]),
];

fn at(path: &str) -> TreePath {
    TreePath::parse(path).unwrap()
}

fn put_directory(tree: &mut Tree, mode: u16, uid: u32) {
    tree.insert(at(DATA), Entry::directory(mode).owned(uid, 101));
}

fn birth(image: &mut Image) -> &mut Birth {
    &mut image.manifest.as_mut().unwrap().birth
}

/// It is said to join, and its configuration says `new`.
fn join(image: &mut Image) {
    image.manifest.as_mut().unwrap().cluster_state = ClusterState::Existing;
}

#[test]
fn each_image_gives_its_codes() {
    for (case, change, want) in IMAGES {
        let mut image = image(GOOD);
        change(&mut image);
        assert_eq!(codes(&image), *want, "{case}");
    }
}

#[test]
fn a_joining_node_has_the_living_list() {
    let living = GOOD
        .replace("cluster-state: new", "cluster-state: existing")
        .replace("por1=https://10.77.0.21:2380", "por2=https://10.77.0.22:2380");
    let mut image = image(&living);
    join(&mut image);
    let list = Config::parse(&living).unwrap().initial_cluster();
    image.manifest.as_mut().unwrap().initial_cluster = Some(list.clone());
    assert_eq!(codes(&image), [] as [&str; 0]);
    // Not the list for which it was built.
    for other in [None, Some(list[1..].to_vec())] {
        image.manifest.as_mut().unwrap().initial_cluster = other;
        assert_eq!(codes(&image), ["etcd-cluster"]);
    }
}

#[test]
fn a_finding_points_at_its_line() {
    let mut out = Vec::new();
    check(&image(&GOOD.replace("logger: zap", "logger: zap\npeer-client-cert-auth: true")), &mut out);
    let span = out[0].span.clone().unwrap();
    assert_eq!(span.file_line(), "/etc/etcd/etcd.yaml:21");
    assert_eq!(&span.source.text[span.range.clone()], "peer-client-cert-auth: true");
    assert_eq!(
        out[0].help.as_deref(),
        Some(
            "did you mean `client-cert-auth` in `peer-transport-security`; `peer-client-cert-auth` is the flag's name?"
        )
    );
}

#[test]
fn every_rule_is_fired_by_a_fixture() {
    let fired: Vec<&str> = CONFIGS.iter().flat_map(|c| c.2).chain(IMAGES.iter().flat_map(|c| c.2)).copied().collect();
    for rule in RULES {
        assert!(fired.contains(&rule.code), "no fixture fires {}", rule.code);
        assert_eq!(rule.family, "etcd");
    }
    for code in fired {
        assert!(RULES.iter().any(|rule| rule.code == code), "{code} is in no rule");
    }
}
