//! A real issued set, and one mutation for every rule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use time::macros::datetime;

use super::*;
use crate::declaration::{self, Files, Mesh, Target};
use crate::etcd::birth::{Birth, ClusterState};
use crate::finding::Rule;
use crate::image::manifest::Manifest;
use crate::pki::authority::{self, Pair, Signer};
use crate::pki::inspect::Certificate;
use crate::pki::names::San;
use crate::pki::request::Request;
use crate::pki::store::{Issue, Store};
use crate::pki::{NodePki, Use};
use crate::tree::{Entry, Tree};
use crate::verify::scan;

const NOW: OffsetDateTime = datetime!(2026-11-30 12:00:00 UTC);
const DAY: Duration = Duration::from_secs(24 * 3600);
const ETCD: (u32, u32) = (100, 101);

const MESH: &str = r#"
[mesh]
name = "harbour"
topology = "quorum"
domain = "harbour.mesh"
network = "10.77.0.0/24"
time-to-rebuild = "4h"
[image]
base = "common"
version = "2026.11.0"
[base.common]
debian = "trixie"
[registry]
generation = 1
[site.lisbon]
[site.porto]
[site.arbiter]
[node.lis1]
site = "lisbon"
address = "10.77.0.11"
profile = "voter"
[node.por1]
site = "porto"
address = "10.77.0.12"
profile = "voter"
[node.arb1]
site = "arbiter"
address = "10.77.0.13"
profile = "arbiter"
[node.edge1]
site = "porto"
address = "10.77.0.21"
profile = "client"
"#;

/// A mesh with its issued certificates; made once, on a real store.
struct Set {
    mesh: Mesh,
    pki: BTreeMap<String, NodePki>,
    store: PathBuf,
    _directory: tempfile::TempDir,
}

fn make(text: &str) -> Set {
    let mesh = match declaration::parse(&Files::builtin().with("mesh.toml", text)) {
        Ok(loaded) => loaded.mesh,
        Err(findings) => panic!("{findings:#?}"),
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pki");
    let store = Store::init(&path, &mesh, NOW, None).unwrap();
    let pki = mesh
        .nodes
        .iter()
        .map(|(name, node)| (name.clone(), store.node(&mesh, node, NOW, Issue::Allowed).unwrap()))
        .collect();
    Set { mesh, pki, store: path, _directory: directory }
}

fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(|| make(MESH))
}

impl Set {
    fn images(&self) -> Vec<Image> {
        self.mesh.nodes.keys().map(|name| self.image(name)).collect()
    }

    fn image(&self, name: &str) -> Image {
        let (mesh, node, pki) = (&self.mesh, &self.mesh.nodes[name], &self.pki[name]);
        let address = node.address.value;
        let mut tree = Tree::default();
        let mut put = |path: &str, entry: Entry| {
            tree.insert(TreePath::parse(path).unwrap(), entry);
        };
        let file = |text: &str| Entry::file(text.as_bytes(), 0o644);
        for directory in ["/", "/etc", "/etc/etcd", "/etc/mesh", "/root"] {
            put(directory, Entry::directory(0o755));
        }
        put("/etc/passwd", file("root:x:0:0::/root:/bin/sh\netcd:x:100:101::/var/lib/etcd:/bin/false\n"));
        put("/etc/group", file("root:x:0:\netcd:x:101:\n"));
        put("/etc/hosts", file("127.0.0.1 localhost\n10.77.0.11 lis1\n10.77.0.12 por1\n10.77.0.13 arb1\n"));
        put("/etc/mesh/pki", Entry::directory(0o700));
        put("/etc/mesh/pki/client-ca.crt", file(&pki.client_authority_pem));
        put("/etc/mesh/pki/client.crt", file(&pki.client.certificate_pem));
        let key = |leaf: &crate::pki::Leaf| leaf.key_pem.clone().unwrap();
        put("/etc/mesh/pki/client.key", Entry::file(key(&pki.client).as_bytes(), 0o600));
        if let (Some(server), Some(peer)) = (&pki.server, &pki.peer) {
            put("/etc/etcd/pki", Entry::directory(0o750).owned(0, ETCD.1));
            put("/etc/etcd/pki/peer-ca.crt", file(&pki.peer_authority_pem));
            put("/etc/etcd/pki/client-ca.crt", file(&pki.client_authority_pem));
            for (name, leaf) in [("server", server), ("peer", peer)] {
                put(&format!("/etc/etcd/pki/{name}.crt"), file(&leaf.certificate_pem));
                let key = Entry::file(key(leaf).as_bytes(), 0o600).owned(ETCD.0, ETCD.1);
                put(&format!("/etc/etcd/pki/{name}.key"), key);
            }
            put(
                "/etc/etcd/etcd.yaml",
                file(&format!(
                    "name: {name}\n\
                     listen-peer-urls: \"https://{address}:2380\"\n\
                     listen-client-urls: \"https://{address}:2379,https://127.0.0.1:2379\"\n\
                     initial-advertise-peer-urls: \"https://{address}:2380\"\n\
                     advertise-client-urls: \"https://{address}:2379\"\n\
                     client-transport-security: {{cert-file: /etc/etcd/pki/server.crt, key-file: /etc/etcd/pki/server.key, \
                     trusted-ca-file: /etc/etcd/pki/client-ca.crt}}\n\
                     peer-transport-security: {{cert-file: /etc/etcd/pki/peer.crt, key-file: /etc/etcd/pki/peer.key, \
                     trusted-ca-file: /etc/etcd/pki/peer-ca.crt}}\n"
                )),
            );
        }
        let peers = mesh
            .registry_nodes()
            .map(|n| (n.name.value.clone(), format!("https://{}:2380", n.address.value)))
            .collect();
        let manifest = Manifest {
            schema: 1,
            tool: "0".into(),
            mesh: mesh.name.value.clone(),
            domain: mesh.domain.value.clone(),
            topology: mesh.topology.value,
            node: name.to_owned(),
            site: node.site.value.clone(),
            address,
            network: mesh.network.value,
            profile: node.profile.value.clone(),
            part: mesh.part_of(node),
            target: Target::Machine,
            version: "1".into(),
            birth: Birth {
                generation: 1,
                token: mesh.token(),
                peers,
                cluster_id: String::new(),
                member_ids: BTreeMap::new(),
            },
            cluster_state: ClusterState::New,
            initial_cluster: None,
            base: String::new(),
            base_hostname: String::new(),
            sites: Vec::new(),
            registry: None,
            services: None,
            ledger: Default::default(),
        };
        Image {
            name: format!("{name}.tar.gz"),
            tree,
            manifest: Some(manifest),
            private_keys: Vec::new(),
            etcd_builds: Vec::new(),
        }
    }

    /// The store's own authority, to sign what the store would not.
    fn signer(&self, name: &str) -> Signer {
        let read = |end: &str| std::fs::read(self.store.join(format!("authority/{name}.{end}"))).unwrap();
        let key = crate::pki::key::from_pem(&read("key"), None).unwrap();
        Signer::new(Certificate::from_pem(read("crt")).unwrap(), &key).unwrap()
    }
}

fn request(purpose: Use, common_name: &str, sans: &[&str]) -> Request {
    Request {
        who: "test".into(),
        purpose,
        common_name: common_name.into(),
        sans: sans.iter().map(|n| n.parse().map_or_else(|_| San::Dns((*n).to_owned()), San::Ip)).collect(),
        lifetime: DAY * 1000,
        renew_before: DAY,
        order: None,
    }
}

fn find<'a>(images: &'a mut [Image], name: &str) -> &'a mut Image {
    images.iter_mut().find(|image| image.manifest.as_ref().is_some_and(|m| m.node == name)).unwrap()
}

/// Puts other bytes into a file that is there, its mode and owner kept.
fn write(images: &mut [Image], node: &str, path: &str, bytes: &[u8]) {
    let path = TreePath::parse(path).unwrap();
    let entry = find(images, node).tree.entries.get_mut(&path).unwrap();
    entry.kind = Entry::file(bytes, 0).kind;
}

fn text(images: &mut [Image], node: &str, path: &str) -> String {
    String::from_utf8(find(images, node).tree.content(&TreePath::parse(path).unwrap()).unwrap()).unwrap()
}

/// Puts a pair into its place.
fn install(images: &mut [Image], node: &str, stem: &str, pair: &Pair) {
    write(images, node, &format!("{stem}.crt"), pair.certificate_pem.as_bytes());
    let key = crate::pki::key::to_pem(&pair.key_der, None).unwrap();
    write(images, node, &format!("{stem}.key"), key.as_bytes());
}

fn chmod(images: &mut [Image], node: &str, path: &str, mode: u16) {
    find(images, node).tree.entries.get_mut(&TreePath::parse(path).unwrap()).unwrap().mode = mode;
}

const PEER: &str = "/etc/etcd/pki/peer";
const SERVER: &str = "/etc/etcd/pki/server";
const CLIENT: &str = "/etc/mesh/pki/client";

fn run(images: &[Image], now: OffsetDateTime) -> (Vec<Finding>, Matrix) {
    // As a scan gives them: private keys found by content.
    let scanned: Vec<Image> = images
        .iter()
        .map(|i| Image { manifest: i.manifest.clone(), ..scan::from_tree(i.name.clone(), i.tree.clone()) })
        .collect();
    let mut out = Vec::new();
    let all: Vec<&Image> = scanned.iter().collect();
    let matrix = check(&all, now, &mut out);
    (out, matrix)
}

#[test]
fn an_issued_set_is_clean_and_proven() {
    let (findings, matrix) = run(&set().images(), NOW);
    assert_eq!(findings, []);
    assert_eq!((matrix.count(Port::Peer), matrix.count(Port::Client)), ((6, 6), (12, 12)));
    assert_eq!(
        matrix.summary(),
        [
            "6 of 6 ordered pairs of 3 voters accept each other on the peer port (TLS 1.2 and 1.3, source address)",
            "12 of 12 pairs of node and voter accept each other on the client port",
        ]
    );
    let images = set().images();
    assert_eq!(super::matrix(&images.iter().collect::<Vec<_>>(), NOW), matrix);
}

#[test]
fn one_image_proves_what_it_can() {
    for (node, peer, client) in [("lis1", (1, 1), (1, 1)), ("edge1", (0, 0), (0, 0))] {
        let (findings, matrix) = run(&[set().image(node)], NOW);
        assert_eq!(findings, [], "{node}");
        assert_eq!((matrix.count(Port::Peer), matrix.count(Port::Client)), (peer, client), "{node}");
    }
}

/// Only one of two images of a node can run: they are no pair, and what one does is not said of the other.
#[test]
fn two_images_of_one_node_are_no_pair() {
    let mut pair = [set().image("lis1"), set().image("lis1")];
    pair[1].name = "bad.tar.gz".into();
    let (findings, matrix) = run(&pair, NOW);
    assert_eq!(findings, []);
    assert_eq!((matrix.voters, matrix.count(Port::Peer), matrix.count(Port::Client)), (1, (2, 2), (2, 2)));

    let mut images: Vec<Image> = set().images();
    let other = set().signer("peer");
    let wrong = authority::sign(&other, &request(Use::Peer, "lis1", &["192.0.2.1"]), NOW).unwrap();
    let mut bad = [set().image("lis1")];
    install(&mut bad, "lis1", PEER, &wrong);
    let [mut bad] = bad;
    bad.name = "bad.tar.gz".into();
    images.push(bad);
    let (findings, matrix) = run(&images, NOW);
    assert_eq!(matrix.voters, 3);
    let pairs: Vec<&Finding> = findings.iter().filter(|f| f.subject.contains(" → ")).collect();
    assert!(!pairs.is_empty());
    let all: Vec<&Image> = images.iter().collect();
    for finding in pairs {
        assert_eq!(finding.image.as_deref(), Some("bad.tar.gz"), "{finding:?}");
        let good = images.iter().find(|image| image.name == "lis1.tar.gz").unwrap();
        assert!(!crate::verify::concerns(finding, good, &all));
    }
}

#[test]
fn a_loopback_mesh_is_proven_with_the_source_that_peers_see() {
    let text = MESH.replace("10.77.0.0/24", "127.77.0.0/24").replace("10.77.0.", "127.77.0.");
    let set = make(&text);
    let (findings, matrix) = run(&set.images(), NOW);
    assert_eq!(findings, []);
    assert_eq!(matrix.count(Port::Peer), (6, 6));
    // The mistake that this is about: the listen address alone.
    let mut images = set.images();
    let pair = authority::sign(&set.signer("peer"), &request(Use::Peer, "lis1", &["127.77.0.11"]), NOW).unwrap();
    install(&mut images, "lis1", PEER, &pair);
    let (findings, matrix) = run(&images, NOW);
    assert_eq!(matrix.count(Port::Peer), (4, 6));
    assert_eq!(
        findings.iter().map(|f| format!("{}: {}: {}", f.code, f.subject, f.message)).collect::<Vec<_>>(),
        ["tls-matrix-source: lis1 → arb1: dialling 127.77.0.13: arb1 refuses the source address: \
          the certificate is valid for 127.77.0.11, not 127.0.0.1"]
    );
    assert_eq!(findings[0].notes, ["also lis1 → por1"]);
}

#[test]
fn a_swapped_certificate_is_named_with_each_pair_that_it_breaks() {
    let mut images = set().images();
    for end in ["crt", "key"] {
        let other = text(&mut images, "por1", &format!("{PEER}.{end}"));
        write(&mut images, "lis1", &format!("{PEER}.{end}"), other.as_bytes());
    }
    let (findings, _) = run(&images, NOW);
    let got: Vec<String> = findings.iter().map(|f| format!("{}: {}", f.code, f.subject)).collect();
    assert_eq!(
        got,
        [
            "tls-foreign: lis1.tar.gz: /etc/etcd/pki/peer.crt",
            "tls-names: lis1.tar.gz: /etc/etcd/pki/peer.crt",
            "tls-shared-key: por1.tar.gz: /etc/etcd/pki/peer.key",
            // por1's certificate does not say 10.77.0.11; as a dialler its names lead elsewhere.
            "tls-matrix-peer: arb1 → lis1",
            "tls-matrix-source: lis1 → arb1",
        ]
    );
    let pair = &findings[3];
    assert_eq!(
        pair.message,
        "dialling 10.77.0.11: arb1 refuses: the certificate is valid for por1, por1.harbour.mesh, 10.77.0.12, \
         not 10.77.0.11 (TLS 1.2)"
    );
    assert_eq!(pair.notes, ["also por1 → lis1"]);
}

/// One mutation per rule, with the subject that must be named.
#[test]
fn every_rule_fires() {
    type Case<'a> = (&'static Rule, &'a str, &'a dyn Fn(&mut Vec<Image>), OffsetDateTime);
    let sign = |name: &str, request: &Request| authority::sign(&set().signer(name), request, NOW).unwrap();
    let lis1 = ["lis1", "10.77.0.11"];
    let cases: &[Case<'_>] = &[
        (
            &rules::FILE,
            "lis1.tar.gz: /etc/etcd/pki/peer.key",
            &|i| {
                find(i, "lis1").tree.remove(&TreePath::parse("/etc/etcd/pki/peer.key").unwrap());
            },
            NOW,
        ),
        (
            &rules::FILE,
            "lis1.tar.gz: /etc/etcd/pki/peer.crt",
            &|i| write(i, "lis1", "/etc/etcd/pki/peer.crt", b"x"),
            NOW,
        ),
        (&rules::FILE, "lis1.tar.gz: /etc/etcd/etcd.yaml", &|i| write(i, "lis1", "/etc/etcd/etcd.yaml", b"[1"), NOW),
        (
            &rules::FILE,
            "lis1.tar.gz: /etc/etcd/etcd.yaml",
            &|i| write(i, "lis1", "/etc/etcd/etcd.yaml", b"name: lis1\n"),
            NOW,
        ),
        (
            &rules::FILE,
            "edge1.tar.gz: /etc/mesh/pki/client-ca.crt",
            &|i| {
                find(i, "edge1").tree.remove(&TreePath::parse("/etc/mesh/pki/client-ca.crt").unwrap());
            },
            NOW,
        ),
        (
            &rules::KEY,
            "lis1.tar.gz: /etc/etcd/pki/peer.key",
            &|i| {
                let key = text(i, "lis1", "/etc/etcd/pki/server.key");
                write(i, "lis1", "/etc/etcd/pki/peer.key", key.as_bytes());
            },
            NOW,
        ),
        (
            &rules::CHAIN,
            "lis1.tar.gz: /etc/etcd/pki/peer.crt",
            &|i| {
                install(i, "lis1", PEER, &sign("client", &request(Use::Peer, "lis1", &lis1)));
            },
            NOW,
        ),
        (
            &rules::AUTHORITY,
            "lis1.tar.gz: /etc/etcd/pki/peer-ca.crt",
            &|i| {
                let own = text(i, "lis1", "/etc/etcd/pki/peer.crt");
                write(i, "lis1", "/etc/etcd/pki/peer-ca.crt", own.as_bytes());
            },
            NOW,
        ),
        (
            &rules::ONE_AUTHORITY,
            "lis1.tar.gz: /etc/etcd/pki/peer-ca.crt",
            &|i| {
                let both =
                    text(i, "lis1", "/etc/etcd/pki/peer-ca.crt") + &text(i, "lis1", "/etc/etcd/pki/client-ca.crt");
                write(i, "lis1", "/etc/etcd/pki/peer-ca.crt", both.as_bytes());
            },
            NOW,
        ),
        (
            &rules::MALFORMED,
            "lis1.tar.gz: /etc/etcd/pki/server.crt",
            &|i| {
                let sans = ["lis1", "10.77.0.11", "127.0.0.1", "10.77.0.11/24 "];
                install(i, "lis1", SERVER, &sign("client", &request(Use::Server, "lis1", &sans)));
            },
            NOW,
        ),
        (
            &rules::USAGE,
            "lis1.tar.gz: /etc/etcd/pki/peer.crt",
            &|i| {
                install(i, "lis1", PEER, &sign("peer", &request(Use::Server, "lis1", &lis1)));
            },
            NOW,
        ),
        (
            &rules::NAMES,
            "lis1.tar.gz: /etc/etcd/pki/server.crt",
            &|i| {
                install(i, "lis1", SERVER, &sign("client", &request(Use::Server, "lis1", &lis1)));
            },
            NOW,
        ),
        (
            &rules::NAMES,
            "lis1.tar.gz: /etc/etcd/pki/peer.crt",
            &|i| {
                install(i, "lis1", PEER, &sign("peer", &request(Use::Peer, "lis1", &["lis1"])));
            },
            NOW,
        ),
        (
            &rules::USER,
            "edge1.tar.gz: /etc/mesh/pki/client.crt",
            &|i| {
                install(i, "edge1", CLIENT, &sign("client", &request(Use::Client, "operator:edge1", &[])));
            },
            NOW,
        ),
        (
            &rules::FOREIGN,
            "edge1.tar.gz: /etc/mesh/pki/client.crt",
            &|i| {
                install(i, "edge1", CLIENT, &sign("client", &request(Use::Client, "node:lis1", &[])));
            },
            NOW,
        ),
        (&rules::EXPIRED, "lis1.tar.gz: /etc/etcd/pki/peer.crt", &|_| {}, NOW + DAY * 1850),
        (&rules::EXPIRED, "lis1.tar.gz: /etc/etcd/pki/peer-ca.crt", &|_| {}, NOW + DAY * 3700),
        (&rules::NOT_YET, "lis1.tar.gz: /etc/etcd/pki/peer.crt", &|_| {}, NOW - DAY),
        (&rules::SOON, "lis1.tar.gz: /etc/etcd/pki/peer.crt", &|_| {}, NOW + DAY * 1800),
        (
            &rules::FILE_UNREADABLE,
            "lis1.tar.gz: /etc/etcd/pki/peer.crt",
            &|i| chmod(i, "lis1", "/etc/etcd/pki/peer.crt", 0o600),
            NOW,
        ),
        (&rules::UNREADABLE, "lis1.tar.gz: /etc/etcd/pki/peer.key", &|i| chmod(i, "lis1", "/etc/etcd/pki", 0o700), NOW),
        (
            &rules::UNREADABLE,
            "lis1.tar.gz: /etc/etcd/pki/server.key",
            &|i| {
                write(i, "lis1", "/etc/passwd", b"root:x:0:0::/root:/bin/sh\n");
            },
            NOW,
        ),
        (
            &rules::OPEN,
            "lis1.tar.gz: /etc/etcd/pki/peer.key",
            &|i| chmod(i, "lis1", "/etc/etcd/pki/peer.key", 0o644),
            NOW,
        ),
        (
            &rules::OPEN,
            "edge1.tar.gz: /etc/mesh/pki/client.key",
            &|i| {
                chmod(i, "edge1", "/etc/mesh/pki/client.key", 0o604);
            },
            NOW,
        ),
        (
            &rules::SHARED_KEY,
            "lis1.tar.gz: /etc/mesh/pki/client.key",
            &|i| {
                for end in ["crt", "key"] {
                    let other = text(i, "edge1", &format!("{CLIENT}.{end}"));
                    write(i, "lis1", &format!("{CLIENT}.{end}"), other.as_bytes());
                }
            },
            NOW,
        ),
        (
            &rules::AUTHORITY_KEY,
            "edge1.tar.gz: /root/notes",
            &|i| {
                let key = std::fs::read_to_string(set().store.join("authority/peer.key")).unwrap();
                let path = TreePath::parse("/root/notes").unwrap();
                find(i, "edge1").tree.insert(path, Entry::file(format!("keep safe:\n{key}").as_bytes(), 0o600));
            },
            NOW,
        ),
        (
            &rules::AUTHORITY_KEY,
            "edge1.tar.gz: /etc/mesh/ca.der",
            &|i| {
                let pem = std::fs::read(set().store.join("authority/client.key")).unwrap();
                let der = crate::pki::key::from_pem(&pem, None).unwrap();
                let path = TreePath::parse("/etc/mesh/ca.der").unwrap();
                find(i, "edge1").tree.insert(path, Entry::file(der.as_slice(), 0o600));
            },
            NOW,
        ),
        (
            &rules::PEERS,
            "arb1 → lis1",
            &|i| {
                install(i, "lis1", PEER, &sign("peer", &request(Use::Peer, "lis1", &["lis1"])));
            },
            NOW,
        ),
        (
            &rules::SOURCE,
            "lis1 → arb1",
            &|i| {
                let pair = sign("peer", &request(Use::Peer, "lis1", &["lis1"]));
                install(i, "lis1", PEER, &pair);
                write(i, "arb1", "/etc/hosts", b"");
            },
            NOW,
        ),
        (
            &rules::CLIENTS,
            "arb1 → lis1",
            &|i| {
                install(i, "lis1", SERVER, &sign("client", &request(Use::Client, "lis1", &lis1)));
            },
            NOW,
        ),
    ];
    let mut fired = BTreeSet::new();
    for (rule, subject, mutate, now) in cases {
        let mut images = set().images();
        mutate(&mut images);
        for image in &mut images {
            image.private_keys = crate::verify::scan::private_keys(&image.tree);
        }
        let (findings, _) = run(&images, *now);
        let got: Vec<String> = findings.iter().map(|f| format!("{}: {}: {}", f.code, f.subject, f.message)).collect();
        let hit = findings.iter().find(|f| f.code == rule.code && f.subject == *subject);
        let hit = hit.unwrap_or_else(|| panic!("{} about {subject} is wanted; got {got:#?}", rule.code));
        assert_eq!(hit.severity, rule.severity);
        fired.insert(rule.code);
    }
    for rule in RULES {
        assert!(fired.contains(rule.code), "no case fires {}", rule.code);
    }
}
