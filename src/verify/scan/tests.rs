use std::collections::BTreeSet;
use std::io::Write;

use serde_json::json;

use super::super::container::RULES;
use super::*;
use crate::finding::Severity;
use crate::tree::read::raw::{Fields, Raw};
use crate::tree::{Entry, Place};

/// The manifest of an image for a target.
fn manifest_json(target: &str) -> serde_json::Value {
    let birth = json!({
        "generation": 1, "token": "harbour-g1", "peers": {}, "cluster_id": "0123456789abcdef", "member_ids": {},
    });
    json!({
        "schema": SCHEMA, "tool": "0", "mesh": "harbour", "domain": "harbour.mesh", "topology": "quorum",
        "node": "lis1", "site": "lisbon", "address": "10.77.0.11", "network": "10.77.0.0/24", "profile": "voter",
        "part": "voter", "target": target, "version": "1", "birth": birth, "cluster_state": "new", "base": "",
        "base_hostname": "", "sites": ["lisbon"], "ledger": {},
    })
}

/// A whole image to which a case adds.
fn start() -> Raw {
    Raw::new().directory("./").directory("./dev").directory("./etc")
}

fn with_manifest(raw: Raw, manifest: &str) -> Vec<u8> {
    raw.directory("./usr")
        .directory("./usr/lib")
        .directory("./usr/lib/fitout")
        .file("./usr/lib/fitout/image.json", manifest.as_bytes())
        .end()
}

fn image_for(target: &str, raw: Raw) -> Vec<u8> {
    with_manifest(raw, &manifest_json(target).to_string())
}

fn image(raw: Raw) -> Vec<u8> {
    image_for("machine", raw)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn scan_bytes(bytes: &[u8]) -> Result<(Image, Vec<Finding>), Failure> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    scan(file.path())
}

#[test]
fn a_named_pipe_is_no_image() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(scan(&pipe).map(|_| ())));
    let said = receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for the other end");
    assert!(said.unwrap_err().message.ends_with("pipe: it is a named pipe, not a regular file"));
}

fn path(path: &str) -> TreePath {
    TreePath::parse(path).unwrap()
}

#[test]
fn a_whole_image_has_no_findings_however_it_is_compressed() {
    let tar = image(start().device("./dev/null", b'3', (1, 3)).device("./dev/sda", b'4', (8, 0)));
    for bytes in [tar.clone(), gzip(&tar), zstd::encode_all(&*tar, 1).unwrap()] {
        let (image, findings) = scan_bytes(&bytes).unwrap();
        assert_eq!(findings, []);
        assert_eq!(image.manifest.map(|m| m.node), Some("lis1".into()));
    }
}

/// For each rule at least one image that breaks it, and what it then says.
#[test]
fn every_rule_is_fired_by_an_image_that_breaks_it() {
    let with = |mut bytes: Vec<u8>, more: &[u8]| {
        bytes.extend_from_slice(more);
        bytes
    };
    let damaged = {
        let mut gz = gzip(&image(start()));
        let last = gz.len() - 6;
        gz[last] ^= 1;
        gz
    };
    let large = "x".repeat((1 << 20) + 1);
    let newer = {
        let mut manifest = manifest_json("machine");
        manifest["schema"] = json!(SCHEMA + 1);
        manifest["birth"] = json!("in another form");
        manifest.to_string()
    };
    let link =
        |name: &'static str| Fields { name: name.as_bytes(), flag: b'2', size: 5, link: b"t", ..Fields::default() };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("container-truncated", image(start())[..4196].to_vec(), "is truncated within"),
        (
            "container-truncated",
            {
                let mut t = image(start());
                t.truncate(t.len() - 512);
                t
            },
            "has no end marker",
        ),
        ("container-damaged", damaged, "is damaged"),
        ("container-trailing", with(image(start()), b"more"), "data after its end marker"),
        ("container-trailing", with(gzip(&image(start())), &gzip(b"more")), "data after its end marker"),
        ("container-duplicate", image(start().file("./etc/a", b"").file("etc/a", b"")), "`etc/a` is there twice"),
        ("container-escape", image(start().file("/etc/a", b"")), "`/etc/a` is an absolute name"),
        ("container-escape", image(start().file("./etc/../../a", b"")), "has a `..` element"),
        ("container-escape", image(start().hard_link("./a", "../shadow")), "is a hard link to `../shadow`"),
        ("container-escape", image(start().symlink("./a", "/etc").file("./a/x", b"")), "leads out of the root"),
        ("container-below", image(start().symlink("./a", "etc").file("./a/x", b"")), "which leads to `/etc/x`"),
        ("container-below", image(start().file("./a", b"").file("./a/x", b"")), "lies below /a, which is a file"),
        ("container-misread", image(start().header(&link("./l")).data(b"12345")), "is a symlink with a size"),
        (
            "container-misread",
            image(start().pax(b'x', &[("size", b"1")]).file("./a", b"ab")),
            "has a PAX size of 1 bytes and 2",
        ),
        ("container-misread", image(start().pax(b'g', &[("uid", b"1")])), "global PAX header with `uid`"),
        ("container-malformed", image(start().hard_link("./a", "./b")), "which is not there before it"),
        ("container-malformed", image(start().extension(b'x', b"nonsense")), "malformed PAX header"),
        ("container-name", image(start().file("./etc/a\nb", b"")), "holds a control character"),
        ("container-name", image(start().pax(b'x', &[("path", b"./etc/\xff")]).file("a", b"")), "is not UTF-8"),
        ("container-directory", image(start().file("./srv/a", b"")), "the archive does not list it"),
        ("container-device", image(start().device("./etc/null", b'3', (1, 3))), "lies outside of `/dev`"),
        (
            "container-device",
            image_for("container", start().device("./dev/sda", b'4', (8, 0))),
            "the block device 8:0 would give the container a device of its host",
        ),
        (
            "container-device",
            image_for("unprivileged-container", start().device("./dev/null", b'3', (1, 3))),
            "cannot be made in an unprivileged container",
        ),
        ("container-unread", image(start().file("./etc/large", large.as_bytes())), "it has 1048577 bytes and was not"),
        ("container-manifest", start().end(), "the image has no manifest"),
        ("container-manifest-unreadable", with_manifest(start(), "{"), "the manifest cannot be read: EOF"),
        ("container-manifest-unreadable", with_manifest(start(), "{\"schema\":1}"), "missing field"),
        ("container-manifest-newer", with_manifest(start(), &newer), "this program knows 1"),
    ];
    let mut fired = BTreeSet::new();
    for (code, bytes, text) in cases {
        let (_, findings) = scan_bytes(&bytes).unwrap();
        let codes: Vec<&str> = findings.iter().map(|f| f.code).collect();
        assert!(codes.contains(&code), "{code}: {codes:?}");
        let told = findings.iter().find(|f| f.message.contains(text));
        assert_eq!(told.map(|f| f.code), Some(code), "{text}: {findings:#?}");
        // A cut or damaged image may also lack its manifest; nothing else is told twice.
        let cut = ["container-truncated", "container-damaged"].contains(&code);
        let others = codes.iter().filter(|c| **c != code && !(cut && **c == "container-manifest"));
        assert_eq!(others.count(), 0, "{code}: {codes:?}");
        fired.insert(code);
    }
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(fired, rules);
    assert!(RULES.iter().all(|rule| rule.family == "container" && rule.explanation.len() > 80));
    assert!(RULES.iter().any(|rule| rule.severity == Severity::Error));
}

#[test]
fn usual_devices_are_for_every_privileged_target() {
    for target in ["machine", "container"] {
        let (_, findings) = scan_bytes(&image_for(target, start().device("./dev/tty", b'3', (5, 0)))).unwrap();
        assert_eq!(findings, [], "{target}");
    }
}

#[test]
fn what_is_no_archive_is_a_failure() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "is not a tar: it is empty"),
        (b"<!DOCTYPE html>", "it looks like a page of HTML"),
        (b"BZh91AY&SY", "compressed with bzip2, which is not supported"),
    ];
    for (bytes, text) in cases {
        let failure = scan_bytes(bytes).map(|_| ()).unwrap_err();
        assert!(failure.message.contains(text), "{failure}");
    }
    let missing = scan(Path::new("missing.tar.gz")).map(|_| ()).unwrap_err();
    assert!(missing.message.starts_with("cannot open missing.tar.gz"), "{missing}");
}

#[test]
fn contents_are_kept_where_rules_read_and_keys_wherever_they_are() {
    let pair = rcgen::KeyPair::generate().unwrap();
    let (pem, der) = (pair.serialize_pem(), pair.serialize_der());
    let key = pem.as_bytes();
    let public = crate::pki::key::public_key_digest(key).unwrap();
    let deep = [&vec![b'x'; 300_000][..], key, &[b'x'; 10]].concat();
    let tar = image(
        start()
            .file("./etc/hosts", b"127.0.0.1 localhost\n")
            .directory("./usr/bin")
            .file("./usr/bin/etcd", b"\x7fELF")
            .file("./usr/bin/key", key)
            .file("./usr/bin/deep", &deep)
            .file("./usr/bin/der", &der),
    );
    // The archive names directories twice then: only what is read counts here.
    let (image, _) = scan_bytes(&gzip(&tar)).unwrap();
    assert_eq!(image.tree.content(&path("/etc/hosts")), Ok(b"127.0.0.1 localhost\n".to_vec()));
    let found: Vec<_> = image.private_keys.iter().map(|found| (found.path.display(), found.key.public)).collect();
    let all = ["/usr/bin/key", "/usr/bin/deep", "/usr/bin/der"];
    assert_eq!(found, all.map(|path| (path.to_owned(), Some(public))));
    assert_eq!(image.tree.content(&path("/usr/bin/key")), Ok(key.to_vec()));
    for dropped in ["/usr/bin/etcd", "/usr/bin/deep"] {
        let entry = image.tree.get(&path(dropped)).unwrap();
        assert!(matches!(&entry.kind, Kind::File(data) if data.place == Place::Dropped), "{dropped}");
    }
}

#[test]
fn a_tree_in_memory_is_an_image_too() {
    let mut tree = Tree::default();
    let manifest = manifest_json("machine").to_string().into_bytes();
    tree.insert(path(MANIFEST_PATH), Entry::file(manifest, 0o644));
    tree.insert(path("/k"), Entry::file(rcgen::KeyPair::generate().unwrap().serialize_pem().into_bytes(), 0o600));
    let image = from_tree("lis1", tree);
    let keys: Vec<&TreePath> = image.private_keys.iter().map(|found| &found.path).collect();
    assert_eq!((image.name.as_str(), keys), ("lis1", vec![&path("/k")]));
    assert_eq!(image.manifest.map(|m| m.site), Some("lisbon".into()));
}
