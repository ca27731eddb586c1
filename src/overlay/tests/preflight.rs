//! The preflight script, with stand-ins for the programs that look at the machine (`ip`, `setpriv`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/overlays/mesh/root/usr/lib/fitout/mesh-preflight");

fn program(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the script over a good configuration after a change of it; exit status and what it says.
fn run(change: &dyn Fn(&Path, &str) -> String) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    program(at, "ip", "echo \"local $4 dev wg0\"");
    program(at, "setpriv", "for last; do :; done\n[ \"${last##*/}\" != secret.key ]");
    for file in ["etcd.yaml", "peer.key"] {
        fs::write(at.join(file), "content").unwrap();
    }
    let name = at.display();
    let good = format!(
        "address=10.77.0.11\nuser=$(id -un)\ndata={name}/data\nnot_before=1000\nnot_after=99999999999\n\
         readable=\"\n{name}/etcd.yaml\n{name}/peer.key\n\"\n"
    );
    let configuration = at.join("preflight.conf");
    fs::write(&configuration, change(at, &good)).unwrap();
    let path = format!("{name}:{}", std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args([SCRIPT.as_ref(), configuration.as_os_str()]).env("PATH", path).output().unwrap();
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap().replace(&format!("{name}/"), ""))
}

#[test]
fn it_says_every_reason_and_exits_1() {
    type Change = &'static dyn Fn(&Path, &str) -> String;
    let cases: &[(Change, &str)] = &[
        (&|_, good| good.to_owned(), ""),
        (
            &|at, good| {
                program(at, "ip", "exit 2");
                good.to_owned()
            },
            "no interface has the address 10.77.0.11: bring up the mesh's network first",
        ),
        (
            &|_, good| good.replace("before=1000", "before=99999999998"),
            "the clock says TODAY, the certificates begin 5138-11-16: set the clock",
        ),
        (
            &|_, good| good.replace("after=99999999999", "after=86400"),
            "a certificate of this node ended 1970-01-02: issue a new one and build the image again",
        ),
        (
            &|at, good| {
                fs::remove_file(at.join("peer.key")).unwrap();
                fs::write(at.join("etcd.yaml"), "").unwrap();
                good.to_owned()
            },
            "etcd.yaml is empty\npeer.key is missing",
        ),
        (
            &|at, good| {
                fs::rename(at.join("peer.key"), at.join("secret.key")).unwrap();
                good.replace("peer.key", "secret.key")
            },
            "secret.key is not readable by user ME",
        ),
        (&|_, good| good.replace("user=", "user=no-such-"), "there is no user no-such-ME"),
        (
            &|at, good| {
                fs::write(at.join("data"), "").unwrap();
                good.to_owned()
            },
            "data is not a directory",
        ),
        (
            &|at, good| {
                fs::create_dir_all(at.join("data/member")).unwrap();
                program(at, "stat", "echo somebody");
                good.to_owned()
            },
            "data/member belongs to somebody, not to ME",
        ),
    ];
    let me = Command::new("id").arg("-un").output().unwrap().stdout;
    let me = String::from_utf8(me).unwrap();
    let today = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().unwrap().stdout;
    let today = String::from_utf8(today).unwrap();
    for (change, want) in cases {
        let want: String = want.lines().map(|line| format!("mesh-preflight: {line}\n")).collect();
        let want = want.replace("ME", me.trim()).replace("TODAY", today.trim());
        let status = if want.is_empty() { 0 } else { 1 };
        assert_eq!(run(change), (Some(status), want));
    }
}

#[test]
fn without_its_configuration_it_says_so() {
    let output = Command::new("sh").args([SCRIPT, "/nonexistent/x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "mesh-preflight: /nonexistent/x is missing\n");
}
