//! The older Debian: etcd 3.4.23 and systemd 252, through build, verify, and the gate with its check.

use std::path::Path;

use crate::common::{Debian, Said, built_on, fitout, run};

/// `examples/three-site` over bookworm.
fn built() -> &'static Path {
    built_on(Debian::Bookworm)
}

/// Nothing but what is known against that etcd, with and without the declaration.
#[test]
fn every_family_finds_nothing() {
    let mesh = built();
    let lock = std::fs::read_to_string(mesh.join("fitout.lock")).expect("lock");
    for package in ["etcd-server = \"3.4.23", "systemd = \"252."] {
        assert!(lock.contains(package), "{package}:\n{lock}");
    }
    let images = ["dist/lis1.tar.gz", "dist/por1.tar.gz", "dist/mad1.tar.gz"];
    for more in [&[][..], &["-C", "."]] {
        let arguments: Vec<&str> = ["verify"].into_iter().chain(more.iter().copied()).chain(images).collect();
        let said = run(mesh, &arguments).exits(0).does_not_say("error[").says("the image has etcd 3.4.23");
        let warnings = said.stdout.lines().filter(|line| line.starts_with("warning["));
        assert!(warnings.clone().all(|line| line.starts_with("warning[etcd-version-known]")), "{}", said.all());
        assert_eq!(warnings.count(), images.len());
    }
}

/// The machines boot stopped, form a quorum, `check` finds nothing, and neither etcd nor systemd complains of what the
/// overlays brought: a key or an option that the older version does not know is named in the journal.
#[test]
fn the_gate_boots_it() {
    let mesh = built();
    let said: Said = fitout(mesh).args(["gate", "--keep-logs"]).output().expect("starts").into();
    let said = said.exits(0).does_not_say("error[");
    let report = said.all();
    let logs = mesh.join("gate");
    let mut read = 0;
    for file in walkdir::WalkDir::new(&logs).into_iter().filter_map(Result::ok).filter(|e| e.file_type().is_file()) {
        let text = String::from_utf8_lossy(&std::fs::read(file.path()).expect("readable")).into_owned();
        read += text.len();
        for bad in ["Unknown key name", "Unknown lvalue", "Failed to parse", "unrecognized", "unknown field"] {
            assert!(!text.contains(bad), "`{bad}` in {}:\n{text}", file.path().display());
        }
    }
    assert!(read > 1000, "the machines' logs were not kept in {}\n{report}", logs.display());
}
