//! `fitout diff` on finished images.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fitout::systemd::enabled::states;
use fitout::systemd::units::UnitSet;
use fitout::verify::scan;
use serde_json::Value;

use crate::common::{Said, built, built_copy, run, tool};
use crate::verify::changed;

fn image(directory: &Path, node: &str) -> PathBuf {
    directory.join("dist").join(format!("{node}.tar.gz"))
}

fn diff(directory: &Path, arguments: &[&str]) -> Said {
    run(directory, &[&["diff"], arguments].concat())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("utf-8")
}

#[test]
fn two_nodes_differ_only_in_what_is_the_nodes() {
    let (a, b) = (image(built(), "lis1"), image(built(), "por1"));
    let said = diff(built(), &["--message-format", "json", text(&a), text(&b)]).exits(1);
    let objects: Vec<Value> = said.stdout.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let of = |kind: &str| objects.iter().filter(|o| o["type"] == kind).cloned().collect::<Vec<_>>();
    let paths: BTreeMap<String, String> = of("path-difference")
        .iter()
        .map(|o| (o["path"].as_str().unwrap().to_owned(), format!("{} {}", o["changes"], o["content"])))
        .collect();
    let want = [
        ("/etc/etcd/etcd.yaml", "text"),
        ("/etc/etcd/pki/peer.crt", "certificates"),
        ("/etc/etcd/pki/peer.key", "secret"),
        ("/etc/etcd/pki/server.crt", "certificates"),
        ("/etc/etcd/pki/server.key", "secret"),
        ("/etc/mesh/preflight.conf", "text"),
        ("/etc/hostname", "text"),
        ("/etc/machine-info", "text"),
        ("/etc/mesh/node.toml", "text"),
        ("/etc/mesh/pki/client.crt", "certificates"),
        ("/etc/mesh/pki/client.key", "secret"),
    ];
    let want = want.map(|(path, kind)| (path.to_owned(), format!("[\"content\"] \"{kind}\"")));
    assert_eq!(paths, BTreeMap::from(want));
    let fields: Vec<Value> = of("manifest-difference").iter().map(|o| o["field"].clone()).collect();
    assert_eq!(fields, ["node", "site", "address"]);
    assert!(of("unit-difference").is_empty());
    // No key in any form, and what the text says is what the files say.
    assert!(!said.stdout.contains("PRIVATE"));
    let human = diff(built(), &[text(&a), text(&b)]).exits(1);
    human.says("-lis1").says("+por1").says("another private key").says("0 added, 0 removed, 11 changed");
    diff(built(), &["--brief", text(&a), text(&b)]).exits(1).says("~ /etc/hostname: content").does_not_say("+por1");
}

#[test]
fn an_image_and_its_declaration() {
    let mesh = built_copy();
    let mesh = mesh.path();
    let lis1 = image(mesh, "lis1");
    diff(mesh, &[text(&lis1)]).exits(0).says("no difference");

    let file = mesh.join("mesh.toml");
    let declaration = std::fs::read_to_string(&file).expect("mesh.toml");
    std::fs::write(&file, declaration.replace("round-trip = \"30ms\"", "round-trip = \"150ms\"")).expect("written");
    let said = diff(mesh, &[text(&lis1)]).exits(1).says("~ /etc/etcd/etcd.yaml: content");
    said.says("-heartbeat-interval: 100").says("+heartbeat-interval: 150").says("1 changed");

    // Another mesh, of which nothing was built yet.
    std::fs::remove_file(mesh.join("fitout.lock")).expect("removed");
    std::fs::write(&file, declaration.replace("lis1", "lis2")).expect("written");
    diff(mesh, &[text(&lis1)]).exits(2).says("declared-other-mesh").says("node `lis1` of mesh `harbour`");
    diff(mesh, &["nothing.tar.gz"]).exits(3).says("cannot open nothing.tar.gz");
}

#[test]
fn a_changed_image_shows_what_its_units_do_now() {
    let lis1 = image(built(), "lis1");
    let other = changed(
        &lis1,
        &lis1,
        "link('./etc/systemd/system/multi-user.target.wants/etcd.service', '/usr/lib/systemd/system/etcd.service')\n\
         members['./usr/bin/etcdctl' if './usr/bin/etcdctl' in members else './usr/bin/etcd'][1] += b'x'\n\
         members['./etc/hosts'][0].mode = 0o4755\n\
         members['./etc/hostname'][1] = b'\\x1b[2Jlis1\\n'\n",
    );
    let said = diff(built(), &[text(&lis1), text(other.path())]).exits(1);
    said.says("etcd.service: disabled, does not start → enabled, starts at boot")
        .says("multi-user.target wants etcd.service")
        .says("+ /etc/systemd/system/multi-user.target.wants/etcd.service: symlink")
        .says("mode 0644 → 4755")
        .says("~ /usr/bin/etcd: sha256 ")
        .says("+\\u{1b}[2Jlis1")
        .does_not_say("\u{1b}");

    let cut = tempfile::NamedTempFile::new().expect("temporary file");
    let bytes = std::fs::read(&lis1).expect("read");
    std::fs::write(cut.path(), &bytes[..bytes.len() / 2]).expect("written");
    diff(built(), &[text(&lis1), text(cut.path())]).exits(3).says("cannot be read to its end").says("fitout verify");
}

/// The truth of the states is systemctl's, for every unit of the image.
#[test]
fn systemctl_says_the_same_of_every_unit() {
    let lis1 = image(built(), "lis1");
    let root = tempfile::tempdir().expect("a temporary directory");
    let at = text(root.path()).to_owned();
    tool("tar", &["-xzf", text(&lis1), "-C", &at, "./etc/systemd", "./usr/lib/systemd", "./etc/init.d", "./lib"]);
    let (image, _) = scan::scan(&lis1).expect("the image is read");
    let states = states(&UnitSet::new(&image.tree));
    assert!(states.len() > 150, "{}", states.len());
    let names: Vec<&str> = states.keys().map(|name| name.as_str()).collect();
    let mut command = std::process::Command::new("systemctl");
    // It exits with 1 when a unit is not enabled.
    let output = command.args(["--root", &at, "is-enabled", "--"]).args(&names).output().expect("systemctl is there");
    let said: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(said.len(), names.len(), "{}", Said::from(output).all());
    let wrong: Vec<String> = states
        .iter()
        .zip(&said)
        .filter(|((_, state), said)| state.to_string() != **said)
        .map(|((name, state), said)| format!("{}: {state}, systemctl says {said}", name.as_str()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
