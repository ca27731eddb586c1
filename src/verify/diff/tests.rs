use super::*;
use crate::image::manifest::tests::sample;
use crate::systemd::testing::{put, tree as tree_of};

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn tree() -> Tree {
    let mut tree = tree_of(&[
        ("/usr/lib/systemd/system/default.target", "-> multi-user.target"),
        ("/usr/lib/systemd/system/multi-user.target", "[Unit]"),
        ("/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\n"),
        ("/etc/text", "one\ntwo\nthree\n"),
        ("/etc/link", "-> text"),
    ]);
    tree.insert(path("/etc/shadow"), Entry::file(*b"root:*:1::::::\n", 0o640));
    tree.insert(path("/etc/wg.conf"), Entry::file(*b"PrivateKey = a", 0o600));
    tree.insert(path("/usr/bin/a"), Entry::file(*b"\x7fELF\0\x01", 0o755));
    tree
}

/// One line per difference, as a table can say it.
fn said(difference: &Difference) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, from, to) in &difference.manifest {
        lines.push(format!("manifest {name}: {from} -> {to}"));
    }
    for (path, entry) in &difference.paths {
        let sign = match (&entry.from, &entry.to) {
            (None, _) => "+",
            (_, None) => "-",
            _ => "~",
        };
        let content = match &entry.content {
            None => String::new(),
            Some(Content::Text(text) | Content::Certificates(text)) => {
                format!(" {}", text.lines().filter(|l| l.starts_with(['+', '-'])).collect::<Vec<_>>().join(" "))
            }
            Some(other) => format!(" {other:?}"),
        };
        lines.push(format!("{sign} {path} {:?}{content}", entry.changes));
    }
    lines.extend(difference.times.iter().map(|path| format!("time {path}")));
    for unit in &difference.units {
        let words = |state: &Option<UnitState>| state.as_ref().map_or("nothing".to_owned(), UnitState::words);
        lines.push(format!("unit {}: {} -> {}", unit.unit, words(&unit.from), words(&unit.to)));
    }
    lines
}

#[test]
fn what_differs_is_said_in_its_kind() {
    type Mutation = fn(&mut Tree);
    let table: &[(&str, Mutation, &[&str])] = &[
        ("nothing", |_| {}, &[]),
        ("text", |t| put(t, "/etc/text", "one\n2\nthree\n"), &["~ /etc/text [Content] -two +2"]),
        ("mode", |t| t.entries.get_mut(&path("/etc/text")).unwrap().mode = 0o4755, &["~ /etc/text [Mode]"]),
        ("owner", |t| t.entries.get_mut(&path("/etc/text")).unwrap().gid = 7, &["~ /etc/text [Owner]"]),
        ("time", |t| t.entries.get_mut(&path("/etc/text")).unwrap().mtime = 7, &["time /etc/text"]),
        ("link", |t| put(t, "/etc/link", "-> other"), &["~ /etc/link [Target]"]),
        ("kind", |t| drop(t.insert(path("/etc/link"), Entry::directory(0o777))), &["~ /etc/link [Kind]"]),
        (
            "a password is not shown",
            |t| drop(t.insert(path("/etc/shadow"), Entry::file(*b"root:secret:1::::::\n", 0o640))),
            &["~ /etc/shadow [Content] Secret"],
        ),
        (
            "nor is a text that becomes a private key",
            |t| put(t, "/etc/text", &crate::pki::testing::pem("PRIVATE KEY", "MC4CAQ==\n")),
            &["~ /etc/text [Content] Secret"],
        ),
        (
            "nor what only its owner may read",
            |t| drop(t.insert(path("/etc/wg.conf"), Entry::file(*b"PrivateKey = b", 0o600))),
            &["~ /etc/wg.conf [Content] Secret"],
        ),
        (
            "a program",
            |t| drop(t.insert(path("/usr/bin/a"), Entry::file(*b"\x7fELF\0\x02", 0o755))),
            &["~ /usr/bin/a [Content] Binary"],
        ),
        ("added", |t| put(t, "/etc/new", "x"), &["+ /etc/new []"]),
        ("removed", |t| drop(t.remove(&path("/etc/text"))), &["- /etc/text []"]),
        (
            "a unit is enabled",
            |t| put(t, "/etc/systemd/system/multi-user.target.wants/a.service", "-> /usr/lib/systemd/system/a.service"),
            &[
                "+ /etc/systemd []",
                "+ /etc/systemd/system []",
                "+ /etc/systemd/system/multi-user.target.wants []",
                "+ /etc/systemd/system/multi-user.target.wants/a.service []",
                "unit a.service: disabled, does not start -> enabled, starts at boot",
            ],
        ),
        (
            "a unit is masked",
            |t| put(t, "/etc/systemd/system/a.service", "-> /dev/null"),
            &[
                "+ /etc/systemd []",
                "+ /etc/systemd/system []",
                "+ /etc/systemd/system/a.service []",
                "unit a.service: disabled, does not start -> masked, does not start",
            ],
        ),
    ];
    for (name, mutate, want) in table {
        let (a, mut b) = (tree(), tree());
        mutate(&mut b);
        let side = |tree| Side { tree, manifest: None };
        let difference = compare(&side(&a), &side(&b));
        assert_eq!(said(&difference), *want, "{name}");
        assert_eq!(difference.is_empty(), want.is_empty(), "{name}");
        let back = compare(&side(&b), &side(&a));
        assert_eq!(back.paths.len(), difference.paths.len(), "{name}: the other way round");
        assert_eq!(difference.same + difference.paths.len() + difference.times.len(), {
            a.entries.keys().chain(b.entries.keys()).collect::<std::collections::BTreeSet<_>>().len()
        });
    }
}

#[test]
fn certificates_are_taken_apart_and_keys_known_by_their_public_half() {
    let pem = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let ((a_certificate, a_key), (b_certificate, b_key)) = (pem("a.mesh"), pem("b.mesh"));
    let with = |certificate: &str, key: &str| {
        let mut tree = tree();
        put(&mut tree, "/etc/cert.crt", certificate);
        put(&mut tree, "/etc/cert.key", key);
        tree
    };
    let (a, b) = (with(&a_certificate, &a_key), with(&b_certificate, &b_key));
    let difference = compare(&Side { tree: &a, manifest: None }, &Side { tree: &b, manifest: None });
    let Some(Content::Certificates(text)) = &difference.paths[&path("/etc/cert.crt")].content else {
        panic!("{difference:?}")
    };
    assert!(text.contains("-names        a.mesh") && text.contains("+names        b.mesh"), "{text}");
    assert!(!text.contains("BEGIN"), "{text}");
    let key = &difference.paths[&path("/etc/cert.key")];
    assert_eq!(key.content, Some(Content::Secret));
    assert_eq!(key.from.as_ref().and_then(|a| a.sha256.as_ref()), None);
    let all = serde_json::to_string(&difference.paths.values().collect::<Vec<_>>()).unwrap();
    assert!(!all.contains("PRIVATE KEY"), "{all}");
}

#[test]
fn a_key_that_was_not_opened_is_the_same_when_its_public_key_is() {
    let with = |key: &str, public: u8| {
        let mut tree = tree();
        put(&mut tree, "/etc/mesh.key", key);
        let mut manifest = sample();
        let record = serde_json::json!({"action": "added", "kind": "file", "mode": "0600", "uid": 0, "gid": 0,
            "public_key": crate::tree::Digest([public; 32]), "scope": "node",
            "origin": {"overlay": "mesh", "file": "overlay.toml"}});
        let record = serde_json::from_value(record).unwrap();
        manifest.ledger.records.insert("/etc/mesh.key".to_owned(), record);
        (tree, manifest)
    };
    for (public, want) in [(1, vec![]), (2, vec!["~ /etc/mesh.key [Content] Secret".to_owned()])] {
        let ((a, a_manifest), (b, b_manifest)) = (with("opened", 1), with("", public));
        let sides = (Side { tree: &a, manifest: Some(&a_manifest) }, Side { tree: &b, manifest: Some(&b_manifest) });
        assert_eq!(said(&compare(&sides.0, &sides.1)), want);
    }
}

#[test]
fn fields_of_the_manifest_are_compared_each() {
    let (tree, a, mut b) = (tree(), sample(), sample());
    b.version = "2".into();
    b.birth.token = "m-g2".into();
    let difference = compare(&Side { tree: &tree, manifest: Some(&a) }, &Side { tree: &tree, manifest: Some(&b) });
    assert_eq!(said(&difference), ["manifest version: \"1\" -> \"2\"", "manifest birth.token: \"m-g1\" -> \"m-g2\""]);
}
