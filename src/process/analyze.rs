//! What the build host's `systemd-analyze verify` says of the units that overlays put into an image.
//!
//! It knows every key and value of its own systemd, which may be another version than the image's, so what it says is a
//! notice and never decides.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Command;
use crate::finding::{Failure, Finding, Rule, Severity};
use crate::overlay::ledger::{Action, Ledger};
use crate::systemd::name::UnitName;
use crate::systemd::unit_file::words;
use crate::systemd::units::UnitSet;
use crate::tree::{Kind, Tree, TreePath};
use crate::verify::Image;

/// Long for a fraction of a second's work.
const DEADLINE: Duration = Duration::from_secs(20);

/// Directories whose files are given with their content.
const UNITS: &[&[u8]] = &[b"etc/systemd", b"lib/systemd/system", b"usr/lib/systemd/system", b"usr/local/lib/systemd"];

/// The rules of this file.
pub static RULES: &[&Rule] = &[&ANALYZE];

/// What systemd-analyze says.
pub static ANALYZE: Rule = Rule {
    code: "unit-host-analysis",
    family: "units",
    severity: Severity::Notice,
    summary: "this host's `systemd-analyze verify` has something to say of an overlay's unit",
    explanation: "\
`systemd-analyze --root verify` (systemd-analyze(1)) of the build host was asked about the units and drop-ins that overlays
put into the image: unknown keys, values that cannot be parsed, dependencies that are not there. systemd ignores most of
these with a line in the journal, so a mistyped `Restart=` is easily missed. The host's systemd may be older or newer than
the image's and know other keys: that is why this is a notice. The units of the base are not asked about.",
};

/// Asks the host's systemd-analyze about an image's units. That it could not be asked is a notice, too.
pub fn notices(image: &Image) -> Vec<Finding> {
    let Some(manifest) = &image.manifest else { return Vec::new() };
    let units = units(&manifest.ledger);
    if units.is_empty() {
        return Vec::new();
    }
    match ask(&image.tree, &units) {
        Ok(lines) => lines.into_iter().map(|line| finding(&line)).collect(),
        Err(failure) => {
            let message = format!("this host's systemd-analyze could not be asked: {}", failure.message);
            let finding = ANALYZE.finding("units", message);
            vec![match failure.help {
                Some(help) => finding.help(help),
                None => finding,
            }]
        }
    }
}

/// `/etc/systemd/system/a.service:3: Unknown key …` is about that file; other lines begin with a unit.
fn finding(line: &str) -> Finding {
    let (subject, message) = match line.split_once(": ") {
        Some((subject, message)) if !subject.contains(' ') => (subject, message),
        _ => ("units", line),
    };
    ANALYZE
        .finding(subject, message.trim_end_matches('.'))
        .help("right when the image's systemd is the newer one; else mend the unit")
}

/// Units that the ledger has a file or drop-in of.
fn units(ledger: &Ledger) -> BTreeSet<UnitName> {
    let put = ledger.records.iter().filter(|(_, record)| record.action != Action::Removed && record.kind == "file");
    let names = put.filter_map(|(path, _)| {
        let mut elements = path.rsplit('/');
        let (file, directory) = (elements.next()?, elements.next()?);
        let name = match directory.strip_suffix(".d") {
            Some(unit) if file.ends_with(".conf") => unit,
            _ if path.contains("/systemd/system/") => file,
            _ => return None,
        };
        UnitName::parse(name).filter(|name| !name.is_template())
    });
    names.collect()
}

fn ask(tree: &Tree, units: &BTreeSet<UnitName>) -> Result<Vec<String>, Failure> {
    let root = tempfile::Builder::new().prefix("fitout-units-").tempdir();
    let root = root.map_err(|e| Failure::io("make a directory in", &std::env::temp_dir(), &e))?;
    lay_out(tree, &programs(tree, units), root.path())?;
    let mut argument = std::ffi::OsString::from("--root=");
    argument.push(root.path());
    let finished = Command::new("systemd-analyze")
        .arg(argument)
        .args(["--man=no", "--recursive-errors=no", "verify", "--"])
        .args(units.iter().map(UnitName::as_str))
        .clean_environment()
        .env("LC_ALL", "C.UTF-8")
        .env("SYSTEMD_COLORS", "0")
        .deadline(DEADLINE)
        .run()?;
    let prefix = root.path().display().to_string();
    Ok(finished.log.lines().map(|line| line.replace(&prefix, "")).filter(|line| !line.trim().is_empty()).collect())
}

/// The programs that the units run, under every name on the way to the file.
fn programs(tree: &Tree, units: &BTreeSet<UnitName>) -> BTreeSet<TreePath> {
    let set = UnitSet::new(tree);
    let mut found = BTreeSet::new();
    for unit in units {
        let unit = set.load(unit);
        let assignments = unit.files.iter().flat_map(|text| &text.file.assignments);
        for assignment in assignments.filter(|a| a.key.starts_with("Exec")) {
            // systemd.service(5), "Special executable prefixes".
            let program = words(&assignment.value).into_iter().next().unwrap_or_default();
            let Ok(path) = TreePath::parse(program.trim_start_matches(['@', '-', ':', '+', '!', '|'])) else {
                continue;
            };
            let Ok(path) = tree.resolve(&path) else { continue };
            found.extend(tree.resolve_fully(&path));
            found.insert(path);
        }
    }
    found
}

/// Writes what systemd-analyze looks at: units with their content, programs as empty files, links. Nothing is written
/// through a link: links come last, and what lies below one is left out.
fn lay_out(tree: &Tree, programs: &BTreeSet<TreePath>, root: &Path) -> Result<(), Failure> {
    let at = |path: &TreePath| -> PathBuf { root.join(std::ffi::OsStr::from_bytes(path.as_bytes())) };
    let proper =
        |path: &TreePath| path.ancestors().iter().all(|a| a.is_root() || tree.get(a).is_some_and(|e| e.is_directory()));
    let is_unit = |path: &TreePath| {
        UNITS.iter().any(|unit| {
            path.as_bytes().strip_prefix(*unit).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        })
    };
    let wanted = tree.entries.iter().filter(|(path, _)| !path.is_root() && proper(path));
    let (links, others): (Vec<_>, Vec<_>) = wanted.partition(|(_, entry)| matches!(entry.kind, Kind::Symlink(_)));
    for (path, entry) in others {
        let place = at(path);
        let (bytes, mode) = match &entry.kind {
            Kind::File(data) if is_unit(path) => (tree.read(data)?, 0o600),
            Kind::File(_) if entry.mode & 0o111 != 0 && programs.contains(path) => (Vec::new(), 0o700),
            Kind::Directory if is_unit(path) => {
                directory(&place)?;
                continue;
            }
            _ => continue,
        };
        directory(place.parent().unwrap_or(root))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&place);
        file.and_then(|mut file| file.write_all(&bytes)).map_err(|e| Failure::io("write", &place, &e))?;
    }
    for (path, entry) in links {
        let (Kind::Symlink(target), place) = (&entry.kind, at(path)) else { continue };
        if is_unit(path) || programs.contains(path) || path.parent().is_some_and(|parent| parent.is_root()) {
            directory(place.parent().unwrap_or(root))?;
            symlink(std::ffi::OsStr::from_bytes(target), &place)
                .map_err(|e| Failure::io("make the link", &place, &e))?;
        }
    }
    Ok(())
}

fn directory(path: &Path) -> Result<(), Failure> {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| Failure::io("make", path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systemd::testing::{put, tree};

    fn image(files: &[(&str, &str)]) -> Image {
        let mut tree = tree(&[
            ("/lib", "-> usr/lib"),
            ("/usr/lib/systemd/system/sysinit.target", "[Unit]\nDescription=x\n"),
            ("/usr/lib/systemd/system/basic.target", "[Unit]\nDescription=x\n"),
            ("/usr/lib/systemd/system/shutdown.target", "[Unit]\nDescription=x\n"),
            ("/usr/lib/systemd/system/base.service", "[Service]\nBogus=1\nExecStart=/usr/bin/true\n"),
        ]);
        put(&mut tree, "/usr/bin/true", "");
        tree.entries.get_mut(&TreePath::parse("/usr/bin/true").unwrap()).unwrap().mode = 0o755;
        let mut manifest = crate::image::manifest::tests::sample();
        for (path, text) in files {
            put(&mut tree, path, text);
            let record = serde_json::json!({"action": "added", "kind": "file", "mode": "0644", "uid": 0, "gid": 0,
                "scope": "profile", "origin": {"overlay": "x", "file": "overlay.toml"}});
            manifest.ledger.records.insert((*path).to_owned(), serde_json::from_value(record).unwrap());
        }
        Image { manifest: Some(manifest), ..crate::verify::scan::from_tree("a", tree) }
    }

    #[test]
    fn what_the_host_says_is_told_of_the_overlays_units_only() {
        const GOOD: &str = "[Service]\nExecStart=/usr/bin/true\n";
        type Files = &'static [(&'static str, &'static str)];
        let table: &[(&str, Files, &[&str])] = &[
            ("nothing of an overlay's", &[], &[]),
            ("a good unit", &[("/usr/lib/systemd/system/a.service", GOOD)], &[]),
            (
                "a key that is none",
                &[("/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/usr/bin/true\nRestrat=no\n")],
                &["/a.service:3|Unknown key"],
            ),
            (
                "in a drop-in",
                &[("/etc/systemd/system/base.service.d/x.conf", "[Service]\nRestart=perhaps\n")],
                &["/base.service:2|Unknown key", "/base.service.d/x.conf:2|Failed to parse"],
            ),
            (
                "a program that is not there",
                &[("/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/usr/bin/false\n")],
                &["a.service|/usr/bin/false"],
            ),
        ];
        for (name, files, want) in table {
            let found = notices(&image(files));
            let said: Vec<String> = found.iter().map(|f| format!("{}|{}", f.subject, f.message)).collect();
            assert_eq!(said.len(), want.len(), "{name}: {said:#?}");
            for want in *want {
                let (subject, message) = want.split_once('|').unwrap();
                assert!(
                    found.iter().any(|f| f.subject.ends_with(subject) && f.message.contains(message)),
                    "{name}: {want}: {said:#?}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let outside = tempfile::tempdir().unwrap();
        let target = format!("-> {}", outside.path().display());
        let mut image = image(&[("/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/usr/bin/true\n")]);
        put(&mut image.tree, "/etc/systemd/system", &target);
        // As a hostile archive has it: entries below a link.
        for path in ["etc/systemd/system/evil.service", "etc/systemd/system/evil.d/x.conf"] {
            let link = crate::tree::Entry::file(*b"[Unit]", 0o755);
            image.tree.insert(TreePath::from_tar_name(path.as_bytes()).unwrap(), link);
        }
        image.tree.insert(
            TreePath::from_tar_name(b"etc/systemd/system/link.service").unwrap(),
            crate::tree::Entry::symlink("/etc/passwd"),
        );
        notices(&image);
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
