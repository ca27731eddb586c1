//! The shipped overlays as they are rendered for a fixed mesh, file by file, in `tests/golden/overlay`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::overlay::ledger::Record;
use crate::overlay::program;
use crate::overlay::testing::*;
use crate::tree::Kind;

/// Compares with a file of `tests/golden/overlay`, or writes it: `UPDATE_GOLDEN=1 cargo test --lib overlay::`.
fn golden(name: &str, got: &str) {
    let file = golden_directory().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, got).unwrap();
    }
    let want = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(want == got, "{} differs; after a look: UPDATE_GOLDEN=1 cargo test --lib overlay::\n{got}", file.display());
}

fn golden_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/overlay")
}

fn ledger_line(name: &str, record: &Record) -> String {
    let Record { action, kind, mode, uid, gid, scope, origin, .. } = record;
    let content = match (&record.sha256, &record.target, &record.public_key) {
        (Some(sha), ..) => format!(" {}", &sha.hex()[..8]),
        (_, Some(target), _) => format!(" -> {target}"),
        (.., Some(_)) => " (key)".to_owned(),
        _ => String::new(),
    };
    let origin = format!("{} {} {}", origin.overlay, origin.file, origin.by);
    format!("{name}\n    {action:?} {kind} {mode} {uid}:{gid}{content}, {scope:?}, {}\n", origin.trim_end())
}

#[test]
fn the_shipped_overlays_as_they_are_rendered() {
    let mesh = mesh_with(&[]);
    let base = base();
    let plan = plan_over(&mesh, &base, &base_packages()).unwrap();
    assert_eq!(plan.warnings, []);
    let mut expected = BTreeSet::new();
    for node in ["lis1", "mad1", "edge1"] {
        let fitted = fit_node(&plan, &mesh, node, true).unwrap();
        let ledger: String = fitted.ledger.records.iter().map(|(name, record)| ledger_line(name, record)).collect();
        let name = format!("{node}/LEDGER");
        golden(&name, &ledger);
        expected.insert(name);
        for (path, (_, entry)) in &fitted.put {
            let Kind::File(data) = &entry.kind else { continue };
            if path.file_name() == program::MESH_AGENT.as_bytes() {
                assert_eq!((entry.mode, base.read(data).unwrap().as_slice()), (0o755, AGENT.as_bytes()));
                continue;
            }
            assert_eq!(entry.mtime, EPOCH);
            let name = format!("{node}{path}");
            golden(&name, &String::from_utf8(base.read(data).unwrap()).unwrap());
            expected.insert(name);
        }
    }
    let files = walkdir::WalkDir::new(golden_directory()).into_iter().map(Result::unwrap);
    let files = files.filter(|entry| entry.file_type().is_file());
    let there: BTreeSet<String> = files
        .map(|entry| entry.path().strip_prefix(golden_directory()).unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(there, expected, "no golden file is left over");
}
