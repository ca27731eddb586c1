//! The store, used as the commands use it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use time::macros::datetime;

use super::*;
use crate::declaration::{self, Files as Library};
use crate::pki::testing::begin;

const NOW: OffsetDateTime = datetime!(2026-11-30 12:00:00 UTC);
const DAY: Duration = Duration::from_secs(24 * 3600);

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
formats = ["tar.gz"]
target = "machine"

[base.common]
debian = "trixie"

[registry]
generation = 1
quota = "2GiB"
round-trip = "30ms"

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

fn mesh() -> Mesh {
    mesh_of(MESH)
}

fn mesh_of(text: &str) -> Mesh {
    match declaration::parse(&Library::builtin().with("mesh.toml", text)) {
        Ok(loaded) => loaded.mesh,
        Err(findings) => panic!("{findings:#?}"),
    }
}

fn init(directory: &Path, mesh: &Mesh) -> Store {
    Store::init(directory, mesh, NOW, None).unwrap()
}

fn open(directory: &Path) -> Result<Store, Problem> {
    Store::open(directory, &Access { passphrase: &Source::none(), say: &|_| {} })
}

fn findings(problem: Problem) -> Vec<(&'static str, String)> {
    match problem {
        Problem::Findings(all) => all.into_iter().map(|f| (f.code, f.message)).collect(),
        Problem::Failure(failure) => panic!("{failure}"),
    }
}

fn issue(store: &Store, mesh: &Mesh, node: &str, now: OffsetDateTime, issue: Issue) -> Result<NodePki, Problem> {
    store.node(mesh, &mesh.nodes[node], now, issue)
}

#[test]
fn a_voter_gets_three_a_client_one_and_the_second_time_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mesh) = (directory.path().join("pki"), mesh());
    let store = init(&path, &mesh);
    let voter = issue(&store, &mesh, "lis1", NOW, Issue::Allowed).unwrap();
    let client = issue(&store, &mesh, "edge1", NOW, Issue::Allowed).unwrap();
    assert!(voter.server.is_some() && voter.peer.is_some());
    assert!(client.server.is_none() && client.peer.is_none());
    assert_eq!(store.issued().len(), 4);
    drop(store);

    let store = open(&path).unwrap();
    for (node, first) in [("lis1", &voter), ("edge1", &client)] {
        let again = issue(&store, &mesh, node, NOW + DAY, Issue::Refused).unwrap();
        assert_eq!(again.client.certificate_pem, first.client.certificate_pem);
        assert_eq!(again.client.key_pem, first.client.key_pem);
        let public = Public::open(&path).unwrap().node(&mesh, &mesh.nodes[node]).unwrap();
        assert_eq!(public.client.certificate_pem, first.client.certificate_pem);
        assert_eq!(public.client.key_pem, None);
        assert_eq!(public.peer_authority_pem, first.peer_authority_pem);
    }
    assert!(store.issued().is_empty());
}

/// The certificate that stands in the store.
fn certificate(path: &Path, stem: &str) -> Certificate {
    Certificate::from_pem(std::fs::read(path.join(format!("{stem}.crt"))).unwrap()).unwrap()
}

fn days(certificate: &Certificate) -> i64 {
    (certificate.not_after - NOW).whole_days()
}

#[test]
fn what_stands_in_the_certificates() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mesh) = (directory.path().join("pki"), mesh());
    let store = init(&path, &mesh);
    for node in mesh.nodes.keys() {
        issue(&store, &mesh, node, NOW, Issue::Allowed).unwrap();
    }
    let leaf = |stem: &str| certificate(&path, &format!("nodes/{stem}"));
    let table: Vec<String> = ["lis1/server", "lis1/peer", "lis1/client", "edge1/client"]
        .iter()
        .map(|stem| {
            let c = leaf(stem);
            let extended: Vec<String> = c.extended.iter().flatten().map(ToString::to_string).collect();
            assert_eq!(c.key_usage, Some(crate::pki::profiles::LEAF_USAGE), "{stem}");
            format!(
                "{stem}: {} | {} | {} | {}",
                c.common_name.unwrap(),
                c.dns.join(" "),
                addresses(&c.addresses),
                extended.join(" + ")
            )
        })
        .collect();
    assert_eq!(
        table,
        [
            "lis1/server: lis1 | lis1 lis1.harbour.mesh localhost | 10.77.0.11 127.0.0.1 ::1 | server auth",
            "lis1/peer: lis1 | lis1 lis1.harbour.mesh | 10.77.0.11 | server auth + client auth",
            "lis1/client: node:lis1 |  |  | client auth",
            "edge1/client: node:edge1 |  |  | client auth",
        ]
    );
    for stem in ["lis1/server", "lis1/peer", "lis1/client", "por1/peer", "edge1/client"] {
        let c = leaf(stem);
        let authority = certificate(&path, if stem.ends_with("peer") { "authority/peer" } else { "authority/client" });
        let other = certificate(&path, if stem.ends_with("peer") { "authority/client" } else { "authority/peer" });
        assert!(c.is_signed_by(&authority) && !c.is_signed_by(&other), "{stem}");
        assert_eq!(c.authority_key, authority.subject_key, "{stem}");
        assert!(c.authority_key.is_some() && c.subject_key.is_some() && !c.is_ca, "{stem}");
        assert_eq!(c.defects, [""; 0], "{stem}");
        assert_eq!(c.not_before, NOW - authority::BACK_DATE, "{stem}");
        assert_eq!(c.serial.len(), 19, "{stem}");
        assert_eq!(c.key_kind, "ECDSA P-256");
    }
    let authority = certificate(&path, "authority/peer");
    assert_eq!((authority.is_ca, authority.path_length), (true, Some(0)));
    assert_eq!(authority.key_usage, Some(crate::pki::profiles::AUTHORITY_USAGE));
    assert_eq!(authority.common_name.as_deref(), Some("harbour peer authority"));
    assert!(authority.is_signed_by(&authority) && authority.defects.is_empty());
    assert_eq!(days(&authority), 3650);
    // arb1, lis1, por1: 1825 days, a week apart. Clients are not staggered.
    let ends: Vec<i64> =
        ["arb1/peer", "lis1/peer", "por1/peer", "por1/server", "por1/client"].iter().map(|s| days(&leaf(s))).collect();
    assert_eq!(ends, [1825, 1818, 1811, 1811, 1825]);
}

fn addresses(all: &[std::net::IpAddr]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn peers_of_a_loopback_mesh_carry_the_address_they_are_seen_with() {
    let text = MESH.replace("10.77.0.0/24", "127.77.0.0/24").replace("10.77.0.", "127.77.0.");
    let (directory, mesh) = (tempfile::tempdir().unwrap(), mesh_of(&text));
    let path = directory.path().join("pki");
    issue(&init(&path, &mesh), &mesh, "lis1", NOW, Issue::Allowed).unwrap();
    assert_eq!(addresses(&certificate(&path, "nodes/lis1/peer").addresses), "127.0.0.1 127.77.0.11");
}

#[test]
fn a_leaf_never_outlives_its_authority_and_is_not_reissued_in_vain() {
    let text = format!(
        "{MESH}\n[pki]\nauthority-lifetime = \"960h\"\nserver = {{ lifetime = \"900h\" }}\nclient = {{ lifetime = \"900h\" }}\npeer = {{ lifetime = \"900h\" }}\nrenew-before = \"240h\"\n"
    );
    let (directory, mesh) = (tempfile::tempdir().unwrap(), mesh_of(&text));
    let path = directory.path().join("pki");
    let store = init(&path, &mesh);
    let authority = certificate(&path, "authority/client");
    // Ten days before its end the authority cuts a new leaf; a day later nothing would be gained by another.
    let late = NOW + DAY * 30;
    issue(&store, &mesh, "edge1", late, Issue::Allowed).unwrap();
    assert_eq!(certificate(&path, "nodes/edge1/client").not_after, authority.not_after);
    issue(&store, &mesh, "edge1", late + DAY, Issue::Refused).unwrap();
    // After its end it signs nothing.
    let after = issue(&store, &mesh, "lis1", NOW + DAY * 41, Issue::Allowed).unwrap_err();
    let codes: Vec<&str> = findings(after).iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["store-authority-dates"; 3]);
}

/// Changes of the declaration or of time, and what a locked build says of them.
#[test]
fn what_changed_is_issued_again_or_refused_with_the_reason() {
    type Case<'a> = (&'a str, &'a dyn Fn(&str) -> String, Duration, &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        ("nothing", &|t| t.into(), DAY, &[]),
        (
            "address",
            &|t| t.replace("10.77.0.11", "10.77.0.99"),
            DAY,
            &[
                "it would be issued: it lacks 10.77.0.99, and names 10.77.0.11 that is not declared",
                "it would be issued: it lacks 10.77.0.99, and names 10.77.0.11 that is not declared",
            ],
        ),
        (
            "renewal window of the staggered two",
            &|t| t.into(),
            DAY * (1825 - 30 - 5),
            &[
                "it would be issued: it ends at 2031-11-22T12:00:00Z, within the renewal window",
                "it would be issued: it ends at 2031-11-22T12:00:00Z, within the renewal window",
            ],
        ),
        (
            "all expired",
            &|t| t.into(),
            DAY * 1900,
            &[
                "it would be issued: it ended at 2031-11-29T12:00:00Z",
                "it would be issued: it ended at 2031-11-22T12:00:00Z",
                "it would be issued: it ended at 2031-11-22T12:00:00Z",
            ],
        ),
    ];
    for (what, change, later, want) in cases {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pki");
        let before = mesh();
        let store = init(&path, &before);
        let first = issue(&store, &before, "lis1", NOW, Issue::Allowed).unwrap();
        let after = mesh_of(&change(MESH));
        let refused = issue(&store, &after, "lis1", NOW + *later, Issue::Refused);
        let got: Vec<String> = refused
            .err()
            .map(findings)
            .unwrap_or_default()
            .into_iter()
            .map(|(code, message)| {
                assert_eq!(code, "issue-refused");
                message
            })
            .collect();
        assert_eq!(&got, want, "{what}");
        let again = issue(&store, &after, "lis1", NOW + *later, Issue::Allowed).unwrap();
        assert_eq!(store.issued().len(), 3 + want.len(), "{what}");
        assert_eq!(
            again.peer.unwrap().certificate_pem == first.peer.unwrap().certificate_pem,
            want.is_empty(),
            "{what}"
        );
        issue(&store, &after, "lis1", NOW + *later, Issue::Refused).unwrap();
    }
}

#[test]
fn a_new_authority_means_new_leaves() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other, mesh) = (directory.path().join("pki"), directory.path().join("other"), mesh());
    drop(init(&path, &mesh));
    issue(&open(&path).unwrap(), &mesh, "lis1", NOW, Issue::Allowed).unwrap();
    drop(init(&other, &mesh));
    for file in ["authority/peer.crt", "authority/peer.key"] {
        std::fs::copy(other.join(file), path.join(file)).unwrap();
    }
    let refused = issue(&open(&path).unwrap(), &mesh, "lis1", NOW, Issue::Refused).unwrap_err();
    assert_eq!(findings(refused), [("issue-refused", "it would be issued: another authority signs now".to_owned())]);
}

#[test]
fn operators() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mesh) = (directory.path().join("pki"), mesh());
    let store = init(&path, &mesh);
    store.operator(&mesh, "anna", NOW, Issue::Allowed).unwrap();
    let anna = certificate(&path, "operators/anna");
    assert_eq!(anna.common_name.as_deref(), Some("operator:anna"));
    assert_eq!(anna.extended.as_deref(), Some(Use::Client.extended()));
    let long = "a".repeat(60);
    for name in ["", "an na", "../x", "a.b", &long] {
        let problem = store.operator(&mesh, name, NOW, Issue::Allowed).unwrap_err();
        assert_eq!(findings(problem)[0].0, "certificate-name", "{name:?}");
    }
}

#[test]
fn encrypted_stores_open_with_the_passphrase_only() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mesh) = (directory.path().join("pki"), mesh());
    let passphrase = Passphrase::new("correct horse").unwrap();
    let store = Store::init(&path, &mesh, NOW, Some(&passphrase)).unwrap();
    let first = issue(&store, &mesh, "edge1", NOW, Issue::Allowed).unwrap();
    drop(store);
    for file in ["authority/peer.key", "authority/client.key", "nodes/edge1/client.key"] {
        let text = std::fs::read_to_string(path.join(file)).unwrap();
        assert!(text.starts_with(&begin("ENCRYPTED PRIVATE KEY")), "{file}");
        // A checkout opens the mode; that does not matter for encrypted keys.
        std::fs::set_permissions(path.join(file), std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let with = |text: Option<&'static str>| {
        let source = Source::new(
            None,
            Box::new(move |name| text.filter(|_| name == "FITOUT_PASSPHRASE").map(Into::into)),
            Box::new(|_| Ok(None)),
        );
        Store::open(&path, &Access { passphrase: &source, say: &|_| {} })
    };
    let again = issue(&with(Some("correct horse")).unwrap(), &mesh, "edge1", NOW, Issue::Refused).unwrap();
    assert_eq!(again.client.key_pem, first.client.key_pem);
    assert!(again.client.key_pem.unwrap().starts_with(&begin("PRIVATE KEY")), "images carry it plain");
    for (text, want) in [(Some("wrong"), "does not open"), (None, "there is no passphrase")] {
        let all = findings(with(text).unwrap_err());
        assert_eq!(all.len(), 1, "said once: {all:?}");
        assert_eq!(all[0].0, "store-passphrase");
        assert!(all[0].1.contains(want), "{all:?}");
    }
    Public::open(&path).unwrap().node(&mesh, &mesh.nodes["edge1"]).unwrap();
}

#[test]
fn files_are_private_whatever_the_umask() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mesh) = (directory.path().join("pki"), mesh());
    issue(&init(&path, &mesh), &mesh, "edge1", NOW, Issue::Allowed).unwrap();
    let mode = |file: &str| std::fs::metadata(path.join(file)).unwrap().permissions().mode() & 0o7777;
    let table: Vec<(&str, u32)> = [
        "",
        "authority",
        "authority/peer.key",
        "authority/peer.crt",
        "nodes",
        "nodes/edge1",
        "nodes/edge1/client.key",
        "lock",
    ]
    .iter()
    .map(|file| (*file, mode(file)))
    .collect();
    let want = [
        ("", 0o700),
        ("authority", 0o700),
        ("authority/peer.key", 0o600),
        ("authority/peer.crt", 0o644),
        ("nodes", 0o700),
        ("nodes/edge1", 0o700),
        ("nodes/edge1/client.key", 0o600),
        ("lock", 0o600),
    ];
    assert_eq!(table, want);
}

/// What a crash leaves behind at each moment of writing a pair over an older one.
#[test]
fn a_crash_at_any_moment_leaves_the_old_pair_or_the_new_one() {
    for crash in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        let (path, mesh) = (directory.path().join("pki"), mesh());
        let store = init(&path, &mesh);
        let old = issue(&store, &mesh, "edge1", NOW, Issue::Allowed).unwrap().client;
        let stem = path.join("nodes/edge1/client");
        let [key, crt, key_next, crt_next] = ["key", "crt", "key.next", "crt.next"].map(|e| stem.with_extension(e));
        let request = &request::of_node(&mesh, &mesh.nodes["edge1"]).unwrap()[0];
        let new = authority::sign(store.signer(request, NOW).unwrap(), request, NOW).unwrap();
        let key_pem = key::to_pem(&new.key_der, None).unwrap();
        drop(store);
        let steps: [&dyn Fn(); 5] = [
            &|| std::fs::write(path.join("nodes/edge1/.fitout-half"), "half of a k").unwrap(),
            &|| std::fs::write(&key_next, key_pem.as_bytes()).unwrap(),
            &|| std::fs::write(&crt_next, &new.certificate_pem).unwrap(),
            &|| std::fs::rename(&key_next, &key).unwrap(),
            &|| std::fs::rename(&crt_next, &crt).unwrap(),
        ];
        steps[..crash].iter().for_each(|step| step());
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        if key_next.exists() {
            std::fs::set_permissions(&key_next, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let got = issue(&open(&path).unwrap(), &mesh, "edge1", NOW, Issue::Refused).unwrap().client;
        let want = if crash < 3 { &old.certificate_pem } else { &new.certificate_pem };
        assert_eq!(&got.certificate_pem, want, "after {crash} steps");
        let left: Vec<_> = files::list(&path.join("nodes/edge1")).unwrap();
        assert_eq!(left, [crt, key], "after {crash} steps");
    }
}

/// Every rule of this family is fired by what it is about.
#[test]
fn every_rule_fires() {
    let mesh = mesh();
    let remove = |path: &Path, file: &str| std::fs::remove_file(path.join(file)).unwrap();
    let damage = |path: &Path, file: &str, text: &str| std::fs::write(path.join(file), text).unwrap();
    type Case<'a> = (&'static str, &'a dyn Fn(&Path) -> Result<(), Problem>);
    let lis1 = |path: &Path, now, mode| issue(&open(path)?, &mesh, "lis1", now, mode).map(|_| ());
    let status_of = |path: &Path, now| {
        let (_, findings) = status(&Public::open(path)?, &mesh, now)?;
        Err(Problem::Findings(findings))
    };
    let cases: &[Case<'_>] = &[
        ("store-missing", &|path| open(&path.join("elsewhere")).map(|_| ())),
        ("store-exists", &|path| Store::init(path, &mesh, NOW, None).map(|_| ())),
        ("store-damaged", &|path| {
            damage(path, "store.toml", "schema = 2\nmesh = \"harbour\"\nencrypted = false\n");
            open(path).map(|_| ())
        }),
        ("store-damaged", &|path| {
            damage(path, "store.toml", "schema = 1\nmesh = \"harbour\"\nencrypted = false\nmore = 1\n");
            open(path).map(|_| ())
        }),
        ("store-damaged", &|path| {
            remove(path, "authority/client.crt");
            open(path).map(|_| ())
        }),
        ("store-damaged", &|path| {
            std::fs::copy(path.join("nodes/lis1/peer.crt"), path.join("authority/peer.crt")).unwrap();
            open(path).map(|_| ())
        }),
        // The authorities change places, with their keys.
        ("store-damaged", &|path| {
            for kind in ["crt", "key"] {
                let at = |name: &str| path.join("authority").join(format!("{name}.{kind}"));
                std::fs::rename(at("peer"), at("x")).unwrap();
                std::fs::rename(at("client"), at("peer")).unwrap();
                std::fs::rename(at("x"), at("client")).unwrap();
            }
            open(path).map(|_| ())
        }),
        ("store-damaged", &|path| {
            remove(path, "nodes/lis1/peer.key");
            lis1(path, NOW, Issue::Allowed)
        }),
        ("store-damaged", &|path| {
            damage(path, "nodes/lis1/peer.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
            lis1(path, NOW, Issue::Allowed)
        }),
        ("store-damaged", &|path| {
            damage(path, "nodes/lis1/peer.key", "no key");
            lis1(path, NOW, Issue::Allowed)
        }),
        ("store-foreign", &|path| {
            let other = mesh_of(&MESH.replace("name = \"harbour\"", "name = \"dock\""));
            issue(&open(path)?, &other, "lis1", NOW, Issue::Allowed).map(|_| ())
        }),
        ("store-key-mismatch", &|path| {
            std::fs::copy(path.join("nodes/lis1/server.key"), path.join("nodes/lis1/peer.key")).unwrap();
            lis1(path, NOW, Issue::Allowed)
        }),
        ("store-key-mismatch", &|path| {
            std::fs::copy(path.join("authority/client.key"), path.join("authority/peer.key")).unwrap();
            open(path).map(|_| ())
        }),
        ("store-key-mode", &|path| {
            let key = path.join("nodes/lis1/peer.key");
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
            lis1(path, NOW, Issue::Allowed)
        }),
        ("store-passphrase", &|path| {
            damage(path, "store.toml", "schema = 1\nmesh = \"harbour\"\nencrypted = true\n");
            open(path).map(|_| ())
        }),
        ("store-authority-key", &|path| {
            remove(path, "authority/peer.key");
            lis1(path, NOW, Issue::Refused)?;
            issue(&open(path)?, &mesh, "por1", NOW, Issue::Allowed).map(|_| ())
        }),
        ("store-authority-dates", &|path| lis1(path, NOW + DAY * 4000, Issue::Allowed)),
        ("store-not-yet-valid", &|path| lis1(path, NOW - DAY, Issue::Allowed)),
        ("certificate-name", &|path| {
            let mut mesh = mesh.clone();
            mesh.domain.value = "harbour.mesh.".into();
            issue(&open(path)?, &mesh, "lis1", NOW, Issue::Allowed).map(|_| ())
        }),
        ("issue-refused", &|path| issue(&open(path)?, &mesh, "por1", NOW, Issue::Refused).map(|_| ())),
        ("issue-refused", &|path| Public::open(path)?.node(&mesh, &mesh.nodes["por1"]).map(|_| ())),
        ("certificate-expired", &|path| status_of(path, NOW + DAY * 2000)),
        ("certificate-due", &|path| status_of(path, NOW + DAY * 1815)),
    ];
    let mut fired = std::collections::BTreeSet::new();
    for (number, (code, act)) in cases.iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pki");
        issue(&init(&path, &mesh), &mesh, "lis1", NOW, Issue::Allowed).unwrap();
        let problem = act(&path).expect_err(code);
        for (got, message) in findings(problem) {
            assert_eq!(got, *code, "case {number}: {message}");
            fired.insert(got);
        }
    }
    for rule in rules::RULES {
        assert!(fired.contains(rule.code), "no case fires {}", rule.code);
    }
}

#[test]
fn status_names_every_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mesh) = (directory.path().join("pki"), mesh());
    let store = init(&path, &mesh);
    issue(&store, &mesh, "lis1", NOW, Issue::Allowed).unwrap();
    store.operator(&mesh, "anna", NOW, Issue::Allowed).unwrap();
    std::fs::create_dir(path.join("nodes/old1")).unwrap();
    // While the private side is in use, the public one can be read.
    let (rows, findings) = status(&Public::open(&path).unwrap(), &mesh, NOW + DAY * 1796).unwrap();
    let table: Vec<String> = rows.iter().map(|r| format!("{} {}: {}", r.who, r.purpose, r.state.word())).collect();
    assert_eq!(
        table,
        [
            "authority peer authority: good",
            "authority client authority: good",
            "node arb1 client: missing",
            "node arb1 server: missing",
            "node arb1 peer: missing",
            "node edge1 client: missing",
            "node lis1 client: due",
            "node lis1 server: due",
            "node lis1 peer: due",
            "node por1 client: missing",
            "node por1 server: missing",
            "node por1 peer: missing",
            "node old1 : undeclared",
            "operator anna client: due",
        ]
    );
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].message, "4 certificates are due for renewal, this one among them");

    // A node's key is needed for the next build; an operator takes his away.
    for key in ["nodes/lis1/peer.key", "operators/anna.key"] {
        std::fs::remove_file(path.join(key)).unwrap();
    }
    let (rows, findings) = status(&Public::open(&path).unwrap(), &mesh, NOW + DAY).unwrap();
    let without: Vec<String> =
        rows.iter().filter(|r| r.state == State::KeyMissing).map(|r| r.purpose.clone()).collect();
    assert_eq!(without, ["peer"]);
    assert_eq!(
        findings.iter().map(|f| (f.code, f.message.as_str())).collect::<Vec<_>>(),
        [(rules::DAMAGED.code, "the certificate is without a key")]
    );
}

/// What the real `openssl verify` says: every leaf against its own authority and against the other one.
#[test]
fn openssl_accepts_each_leaf_against_its_own_authority_only() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mesh) = (directory.path().join("pki"), mesh());
    let store = Store::init(&path, &mesh, OffsetDateTime::now_utc(), None).unwrap();
    for node in ["lis1", "edge1"] {
        issue(&store, &mesh, node, OffsetDateTime::now_utc(), Issue::Allowed).unwrap();
    }
    let accepts = |authority: &str, purpose: &str, leaf: &str| {
        let output = std::process::Command::new("openssl")
            .args(["verify", "-x509_strict", "-purpose", purpose, "-CAfile"])
            .arg(path.join(format!("authority/{authority}.crt")))
            .arg(path.join(format!("nodes/{leaf}.crt")))
            .output()
            .expect("openssl (Debian package openssl) runs");
        output.status.success()
    };
    let cases = [
        ("lis1/server", "client", [true, false]),
        ("lis1/client", "client", [false, true]),
        ("lis1/peer", "peer", [true, true]),
        ("edge1/client", "client", [false, true]),
    ];
    for (leaf, own, [server, client]) in cases {
        let other = if own == "peer" { "client" } else { "peer" };
        assert_eq!(accepts(own, "sslserver", leaf), server, "{leaf} as server");
        assert_eq!(accepts(own, "sslclient", leaf), client, "{leaf} as client");
        for purpose in ["sslserver", "sslclient"] {
            assert!(!accepts(other, purpose, leaf), "{leaf} against the {other} authority");
        }
    }
}
