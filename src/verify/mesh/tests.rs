//! Three images of a mesh, one of them changed, each with the codes that it must give.

use super::*;
use crate::etcd::birth::Birth;
use crate::overlay::ledger::{Action, Ledger, Scope};
use crate::systemd::testing::{put, tree};
use crate::tree::TreePath;
use crate::verify::scan::private_keys;
use crate::verify::testing::{self, record};

const WIREGUARD: &str = "/etc/wireguard/mesh.conf";
const SERVICE_KEY: &str = "/etc/app/tls.key";

fn image(node: &str, address: &str, profile: &str) -> Image {
    let tree = tree(&[
        ("/usr/bin/etcd", "etcd"),
        ("/etc/hostname", node),
        ("/etc/profile", profile),
        (WIREGUARD, &format!("[Interface]\nPrivateKey = {node}\n")),
        (SERVICE_KEY, "-"),
    ]);
    let mut manifest = testing::manifest();
    manifest.node = node.into();
    manifest.address = address.parse().unwrap();
    manifest.profile = profile.into();
    let peers =
        [("lis1", 1), ("por1", 2), ("arb1", 3)].map(|(n, i)| (n.to_owned(), format!("https://10.77.0.{i}:2380")));
    manifest.birth = Birth::of(1, "harbour-g1".into(), peers.into());
    let scopes = [
        ("/etc/hostname", Scope::Node),
        (WIREGUARD, Scope::Node),
        (SERVICE_KEY, Scope::Node),
        ("/etc/profile", Scope::Profile),
    ];
    manifest.ledger = Ledger {
        records: scopes.map(|(path, scope)| (path.to_owned(), record(Action::Added, scope))).into_iter().collect(),
    };
    Image {
        name: format!("{node}.tar.gz"),
        tree,
        manifest: Some(manifest),
        private_keys: Vec::new(),
        etcd_builds: Vec::new(),
    }
}

fn images() -> Vec<Image> {
    vec![
        image("lis1", "10.77.0.1", "voter"),
        image("por1", "10.77.0.2", "voter"),
        image("arb1", "10.77.0.3", "arbiter"),
    ]
}

/// Code and subject of each finding.
fn said(images: &mut [Image]) -> Vec<String> {
    for image in images.iter_mut() {
        image.private_keys = private_keys(&image.tree);
    }
    let all: Vec<&Image> = images.iter().collect();
    let mut out = Vec::new();
    check(&all, &mut out);
    out.iter().map(|finding| format!("{} {}", finding.code, finding.subject)).collect()
}

fn manifest(image: &mut Image) -> &mut Manifest {
    image.manifest.as_mut().unwrap()
}

fn write(image: &mut Image, path: &str, text: &str) {
    put(&mut image.tree, path, text);
}

type Case = (&'static str, fn(&mut Vec<Image>), &'static [&'static str]);

const CASES: &[Case] = &[
    ("nothing", |_| {}, &[]),
    ("one image alone", |i| i.truncate(1), &[]),
    ("a voter is not given", |i| i.truncate(2), &["mesh-voter-absent harbour"]),
    (
        "another mesh",
        |i| manifest(&mut i[1]).mesh = "quay".into(),
        &["mesh-other por1.tar.gz", "mesh-voter-absent harbour", "mesh-voter-absent quay"],
    ),
    ("another domain", |i| manifest(&mut i[2]).domain = "quay.mesh".into(), &["mesh-settings arb1.tar.gz"]),
    (
        "another network",
        |i| manifest(&mut i[0]).network = "10.78.0.0/24".parse().unwrap(),
        &["mesh-settings lis1.tar.gz"],
    ),
    (
        "another topology",
        |i| manifest(&mut i[0]).topology = crate::declaration::Topology::Single,
        &["mesh-settings lis1.tar.gz"],
    ),
    ("more sites", |i| manifest(&mut i[0]).sites.push("x".into()), &["mesh-settings lis1.tar.gz"]),
    (
        "another target",
        |i| manifest(&mut i[0]).target = crate::declaration::Target::Container,
        &["mesh-settings lis1.tar.gz"],
    ),
    (
        "another generation",
        |i| {
            let birth = &mut manifest(&mut i[1]).birth;
            *birth = Birth::of(2, "harbour-g2".into(), birth.peers.clone());
        },
        &["mesh-birth por1.tar.gz"],
    ),
    (
        "another peer URL",
        |i| {
            let birth = &mut manifest(&mut i[1]).birth;
            birth.peers.insert("arb1".into(), "https://10.77.0.4:2380".into());
            *birth = Birth::of(1, "harbour-g1".into(), birth.peers.clone());
        },
        &["mesh-birth por1.tar.gz"],
    ),
    ("another base", |i| manifest(&mut i[1]).base = "00".repeat(32), &["mesh-base por1.tar.gz"]),
    ("another tool", |i| manifest(&mut i[1]).tool = "9".into(), &["mesh-tool por1.tar.gz"]),
    ("another version", |i| manifest(&mut i[1]).version = "9".into(), &["mesh-version por1.tar.gz"]),
    (
        "an older image of a node",
        |i| {
            let mut older = image("lis1", "10.77.0.1", "voter");
            older.name = "old.tar.gz".into();
            write(&mut older, "/etc/hostname", "x");
            i.push(older);
        },
        &["mesh-node-twice old.tar.gz"],
    ),
    (
        "a node in two formats",
        |i| {
            let mut again = image("lis1", "10.77.0.1", "voter");
            again.name = "lis1.tar.zst".into();
            i.push(again);
        },
        &[],
    ),
    (
        "one address",
        |i| manifest(&mut i[1]).address = "10.77.0.1".parse().unwrap(),
        &["mesh-address-twice por1.tar.gz"],
    ),
    ("a node's own path", |i| write(&mut i[1], "/etc/hostname", "x"), &[]),
    ("a profile's path", |i| write(&mut i[1], "/etc/profile", "x"), &["mesh-paths por1"]),
    ("of different profiles", |i| write(&mut i[2], "/etc/profile", "x"), &[]),
    ("the base's path", |i| write(&mut i[2], "/usr/bin/etcd", "x"), &["mesh-paths arb1"]),
    ("a path too much", |i| write(&mut i[2], "/usr/bin/x", "x"), &["mesh-paths arb1"]),
    ("a path too little", |i| drop(i[1].tree.remove(&TreePath::parse("/usr/bin/etcd").unwrap())), &["mesh-paths por1"]),
    (
        "a mode",
        |i| i[1].tree.entries.get_mut(&TreePath::parse("/usr/bin/etcd").unwrap()).unwrap().mode = 0o4755,
        &["mesh-paths por1"],
    ),
    (
        "the first of three is named once",
        |i| {
            i.push(image("bcn1", "10.77.0.9", "voter"));
            write(&mut i[0], "/etc/profile", "x");
        },
        &["mesh-paths lis1"],
    ),
    (
        "a tunnel's key",
        |i| write(&mut i[1], WIREGUARD, "[Interface]\nPrivateKey=lis1\n"),
        &["mesh-shared por1.tar.gz: /etc/wireguard/mesh.conf"],
    ),
    (
        "a service's key",
        |i| {
            let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
            write(&mut i[0], SERVICE_KEY, &key);
            write(&mut i[1], SERVICE_KEY, &key);
        },
        &["mesh-shared por1.tar.gz: /etc/app/tls.key"],
    ),
    (
        "a serial number",
        |i| {
            for image in &mut i[..2] {
                let mut parameters = rcgen::CertificateParams::new(vec!["x".into()]).unwrap();
                parameters.serial_number = Some(7u64.into());
                let certificate = parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
                write(image, "/etc/app/tls.crt", &certificate.pem());
                manifest(image).ledger.records.insert("/etc/app/tls.crt".into(), record(Action::Added, Scope::Node));
            }
        },
        &["mesh-shared por1.tar.gz: /etc/app/tls.crt"],
    ),
];

#[test]
fn each_set_of_images_gives_its_codes() {
    for (name, change, want) in CASES {
        let mut images = images();
        change(&mut images);
        assert_eq!(said(&mut images), *want, "{name}");
    }
}

#[test]
fn a_birth_record_is_compared_in_words() {
    let mut images = images();
    let birth = &mut manifest(&mut images[1]).birth;
    *birth = Birth::of(2, "harbour-g2".into(), birth.peers.clone());
    let all: Vec<&Image> = images.iter().collect();
    let mut out = Vec::new();
    check(&all, &mut out);
    assert_eq!(out[0].message, "its birth record is not that of `lis1`, `arb1`");
    assert_eq!(out[0].notes[..2], ["generation: 2, not 1", "token: `harbour-g2`, not `harbour-g1`"]);
}

#[test]
fn every_rule_is_fired_by_a_fixture() {
    let fired: Vec<&str> = CASES.iter().flat_map(|c| c.2).filter_map(|said| said.split(' ').next()).collect();
    for rule in RULES {
        assert!(fired.contains(&rule.code), "no fixture fires {}", rule.code);
        assert_eq!(rule.family, "mesh");
    }
    for code in fired {
        assert!(RULES.iter().any(|rule| rule.code == code), "{code} is in no rule");
    }
}
