//! `fitout verify` on finished images, and on images changed by hand.

use std::path::{Path, PathBuf};

use crate::common::{Said, built, run, tool};

/// Writes a copy of an image with changed members, as a plain tar. `script` sees `members`, a dictionary from
/// name to `[TarInfo, bytes or None]`, and `other(name)`, the bytes of a member of the second image.
pub fn changed(image: &Path, other: &Path, script: &str) -> tempfile::NamedTempFile {
    let program = format!(
        r#"
import io, sys, tarfile
source = tarfile.open(sys.argv[1])
members = {{}}
for m in source:
    members[m.name] = [m, source.extractfile(m).read() if m.isreg() else None]
def other(name):
    t = tarfile.open(sys.argv[2])
    return t.extractfile(name).read()
def edit(name, old, new):
    data = members[name][1]
    assert old in data, (name, old)
    members[name][1] = data.replace(old, new)
def put(name, data, mode=0o644):
    m = tarfile.TarInfo(name)
    m.mode = mode
    members[name] = [m, data]
def link(name, target):
    m = tarfile.TarInfo(name)
    m.type = tarfile.SYMTYPE
    m.linkname = target
    members[name] = [m, None]
extra = []
{script}
with tarfile.open(sys.argv[3], 'w', format=tarfile.PAX_FORMAT) as out:
    for m, data in list(members.values()) + extra:
        if data is not None:
            m.size = len(data)
        out.addfile(m, io.BytesIO(data) if data is not None else None)
"#
    );
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    let path = |p: &Path| p.to_str().expect("utf-8").to_owned();
    tool("python3", &["-c", &program, &path(image), &path(other), &path(file.path())]);
    file
}

fn image(node: usize) -> PathBuf {
    let mut images: Vec<PathBuf> = std::fs::read_dir(built().join("dist"))
        .expect("dist")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "gz"))
        .collect();
    images.sort();
    images.swap_remove(node)
}

fn verify(arguments: &[&str], images: &[&Path]) -> Said {
    let mut all = vec!["verify", "--message-format", "json"];
    all.extend(arguments);
    all.extend(images.iter().map(|p| p.to_str().expect("utf-8")));
    run(built(), &all)
}

/// Codes of the findings of severity error and warning, but for what is true of trixie's etcd in every image.
fn codes(said: &Said) -> Vec<String> {
    said.stdout
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).expect("one JSON object a line"))
        .filter(|o| o["type"] == "finding" && o["severity"] != "notice")
        .map(|o| o["code"].as_str().expect("code").to_owned())
        .filter(|code| code != "etcd-version-known")
        .collect()
}

#[test]
fn fresh_images_are_clean_alone_together_and_as_declared() {
    let images = [image(0), image(1), image(2)];
    let paths: Vec<&Path> = images.iter().map(PathBuf::as_path).collect();
    for one in &paths {
        let said = verify(&[], &[one]).exits(0);
        assert_eq!(codes(&said), Vec::<String>::new(), "{}", said.all());
    }
    let said = verify(&["-C", "."], &paths).exits(0);
    assert_eq!(codes(&said), Vec::<String>::new(), "{}", said.all());
    let human = run(built(), &["verify", paths[0].to_str().expect("utf-8")]).exits(0);
    human.says("self-consistent");
    let human = run(built(), &["verify", "-C", ".", paths[0].to_str().expect("utf-8")]).exits(0);
    human.says("as declared").says("does not start at boot");
}

/// What a base has much of and no rule reads: without it two dozen changes cost what eight would.
const BULK: &str = "
for name in list(members):
    if name.startswith(('./usr/share/', './usr/lib/x86_64-linux-gnu/', './usr/lib/udev/hwdb', './usr/bin/etcdutl')):
        del members[name]
";

/// What was changed by hand in an image is named by its own code, whatever else follows from it.
#[test]
fn a_change_by_hand_is_named() {
    let second = image(1);
    let first = changed(&image(0), &second, BULK);
    let first = first.path();
    assert_eq!(codes(&verify(&[], &[first]).exits(0)), Vec::<String>::new());
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "another node's server certificate",
            "members['./etc/etcd/pki/server.crt'][1] = other('./etc/etcd/pki/server.crt')",
            &["tls-key", "tls-foreign", "tls-names", "ledger-content"],
        ),
        (
            "another node's server certificate and key",
            "for f in ('server.crt', 'server.key'): members['./etc/etcd/pki/' + f][1] = other('./etc/etcd/pki/' + f)",
            &["tls-foreign", "tls-names", "ledger-key"],
        ),
        (
            "the authorities swapped",
            "m = members; a, b = './etc/etcd/pki/peer-ca.crt', './etc/etcd/pki/client-ca.crt'; \
             m[a][1], m[b][1] = m[b][1], m[a][1]",
            &["tls-chain"],
        ),
        (
            "a key that others read",
            "members['./etc/etcd/pki/peer.key'][0].mode = 0o644",
            &["tls-key-open", "ledger-mode"],
        ),
        (
            "a key that etcd cannot read",
            "members['./etc/etcd/pki/peer.key'][0].uid = 0",
            &["tls-key-unreadable", "ledger-owner"],
        ),
        ("an ancestor closed", "members['./etc/etcd'][0].mode = 0o700", &["tls-key-unreadable"]),
        (
            "a wants link",
            "link('./etc/systemd/system/multi-user.target.wants/etcd.service', '/usr/lib/systemd/system/etcd.service')",
            &["unit-starts-at-boot", "ledger-removed"],
        ),
        (
            "one name changed",
            "edit('./etc/etcd/etcd.yaml', b'name: \"lis1\"', b'name: \"lis2\"')",
            &["etcd-name", "ledger-content"],
        ),
        (
            "a wrong token",
            "edit('./etc/etcd/etcd.yaml', b'harbour-g1', b'harbour-g2')",
            &["etcd-cluster", "etcd-ids", "ledger-content"],
        ),
        (
            "one voter more",
            "edit('./etc/etcd/etcd.yaml', b'initial-cluster: \"', b'initial-cluster: \"bcn1=https://10.77.0.14:2380,')",
            &["etcd-cluster", "etcd-ids", "ledger-content"],
        ),
        (
            "a key that etcd ignores without a word",
            "members['./etc/etcd/etcd.yaml'][1] += b'peer-client-cert-auth: true\\n'",
            &["etcd-key-unknown"],
        ),
        ("no first boot", "members['./etc/machine-id'][1] = b'uninitialized\\n'", &["machine-id", "ledger-content"]),
        ("a file of an overlay gone", "del members['./etc/mesh/node.toml']", &["ledger-missing"]),
        ("a file beside an overlay's", "put('./etc/mesh/pki/extra', b'x')", &["ledger-extra"]),
        ("a path twice", "extra.append(list(members['./etc/hostname']))", &["container-duplicate"]),
        ("a name that leaves the root", "put('./../outside', b'x')", &["container-escape"]),
        ("no manifest", "del members['./usr/lib/fitout/image.json']", &["container-manifest"]),
        ("another hostname", "members['./etc/hostname'][1] = b'vm\\n'", &["hostname", "ledger-content"]),
        ("a random seed", "put('./var/lib/systemd/random-seed', b'x' * 512, 0o600)", &["random-seed"]),
        (
            "a credential secret",
            "put('./var/lib/systemd/credential.secret', b'x' * 4096, 0o600)",
            &["credential-secret"],
        ),
        (
            "an id of D-Bus",
            "put('./var/lib/dbus/machine-id', b'0123456789abcdef0123456789abcdef\\n')",
            &["dbus-machine-id"],
        ),
        ("an SSH host key", "put('./etc/ssh/ssh_host_ed25519_key', b'x', 0o600)", &["ssh-host-key"]),
        (
            "another node's key in a large file",
            "put('./srv/backup', b'x' * 3000000 + other('./etc/etcd/pki/peer.key'), 0o600)",
            &["private-key-foreign"],
        ),
    ];
    for (name, script, expected) in cases {
        let changed = changed(first, &second, script);
        let said = verify(&[], &[changed.path()]).exits(1);
        let codes = codes(&said);
        for code in *expected {
            assert!(codes.iter().any(|c| c == code), "{name}: `{code}` is not among {codes:?}");
        }
    }
}

/// What is wrong only beside the other images.
#[test]
fn images_are_compared_with_each_other() {
    let (first, second, third) = (image(0), image(1), image(2));
    let cases: &[(&str, &str, &[&str])] = &[
        ("a path of the base", "members['./usr/bin/env'][1] += b'x'", &["mesh-paths"]),
        (
            "another node's key",
            "put('./srv/key', other('./etc/etcd/pki/peer.key'), 0o600)",
            &["mesh-paths", "private-key-other-node"],
        ),
        (
            "another generation",
            "edit('./usr/lib/fitout/image.json', b'\"generation\": 1', b'\"generation\": 2')",
            &["mesh-birth"],
        ),
    ];
    for (name, script, expected) in cases {
        let changed = changed(&first, &second, script);
        let said = verify(&[], &[changed.path(), &second, &third]).exits(1);
        let codes = codes(&said);
        for code in *expected {
            assert!(codes.iter().any(|c| c == code), "{name}: `{code}` is not among {codes:?}\n{}", said.all());
        }
    }
}

/// The ledger is inside the image: who changes both is found by the declaration, not before.
#[test]
fn what_is_consistent_in_itself_is_not_yet_as_declared() {
    let script = "members['./usr/bin/env'][1] += b'x'; put('./etc/profile.d/mine.sh', b'echo hello')";
    let changed = changed(&image(0), &image(1), script);
    let said = verify(&[], &[changed.path()]).exits(0);
    assert_eq!(codes(&said), Vec::<String>::new(), "{}", said.all());
    let said = verify(&["-C", "."], &[changed.path()]).exits(1);
    assert_eq!(codes(&said), ["declared-path", "declared-path"], "{}", said.all());
    said.says("/usr/bin/env").says("/etc/profile.d/mine.sh");
}

#[test]
fn damage_is_a_finding_and_a_missing_file_a_failure() {
    let truncated = tempfile::NamedTempFile::new().expect("temporary file");
    let bytes = std::fs::read(image(0)).expect("image");
    std::fs::write(truncated.path(), &bytes[..bytes.len() / 2]).expect("written");
    let said = verify(&[], &[truncated.path()]).exits(1);
    assert!(codes(&said).iter().any(|c| c == "container-truncated"), "{}", said.all());
    verify(&[], &[Path::new("no-such-image")]).exits(3).says("no-such-image");
    verify(&[], &[Path::new("mesh.toml")]).exits(3).says("mesh.toml");
}
