//! What `verify` says of a changed image.
//!
//! The sound image is read once; a row's change, the upper directory of an overlay as a tar, is read by the same reader
//! and laid over it. So a hundred rows cost little more than one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use fitout::finding::{Finding, Severity};
use fitout::tree::{Kind, Tree, TreePath};
use fitout::verify::scan::scan;
use fitout::verify::{Image, verify};
use rayon::prelude::*;
use time::OffsetDateTime;

use super::Case;
use super::runner::Plan;
use crate::common::{Debian, image_of, run, tool};

/// Findings of errors and warnings that the sound image does not give.
#[derive(Debug)]
pub struct Verdict {
    findings: Vec<Finding>,
}

impl Verdict {
    /// The codes, sorted, each once.
    pub fn codes(&self) -> Vec<&str> {
        let codes: BTreeSet<&str> = self.findings.iter().map(|f| f.code).collect();
        codes.into_iter().collect()
    }

    /// Whether a message or note holds a text.
    pub fn says(&self, text: &str) -> bool {
        let holds = |f: &Finding| f.message.contains(text) || f.notes.iter().any(|note| note.contains(text));
        text.is_empty() || self.findings.iter().any(holds)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            write!(f, "\n    {}: {} [{}]", finding.code, finding.message, finding.notes.join(" | "))?;
        }
        Ok(())
    }
}

/// What is said of each row, in order.
pub fn all(plan: &Plan, cases: &[Case]) -> Vec<Verdict> {
    let used: BTreeSet<Debian> = cases.iter().map(|case| case.debian).collect();
    let sound: BTreeMap<Debian, Sound> = used.into_iter().map(|debian| (debian, Sound::new(debian))).collect();
    let judge = |(index, case): (usize, &Case)| sound[&case.debian].changed(&plan.row(index).join("changes.tar"));
    cases.par_iter().enumerate().map(judge).collect()
}

/// A sound image.
struct Sound {
    image: Image,
    codes: BTreeSet<&'static str>,
}

impl Sound {
    fn new(debian: Debian) -> Sound {
        let (image, container) = scan(&image_of(debian, "lis1")).unwrap_or_else(|failure| panic!("{failure}"));
        let mut codes = BTreeSet::new();
        let image = judged(image, container, &mut |finding| {
            assert_ne!(finding.severity, Severity::Error, "the sound image: {}: {}", finding.code, finding.message);
            codes.insert(finding.code);
        });
        let image = image.expect("the image again");
        Sound { image, codes }
    }

    fn changed(&self, changes: &Path) -> Verdict {
        // A change that failed is said of the row.
        if !changes.exists() {
            return Verdict { findings: Vec::new() };
        }
        let (upper, container) = scan(changes).unwrap_or_else(|failure| panic!("{failure}"));
        let manifest_path = fitout::image::manifest::MANIFEST_PATH.as_bytes();
        let touched = |image: &Image| image.tree.entries.keys().any(|path| path.as_bytes() == manifest_path);
        let manifest = if touched(&upper) { upper.manifest } else { self.image.manifest.clone() };
        let tree = laid_over(&self.image.tree, upper.tree);
        let kept = |path: &TreePath| self.image.tree.get(path).map(|e| &e.kind) == tree.get(path).map(|e| &e.kind);
        let old = self.image.private_keys.iter().filter(|key| kept(&key.path)).cloned();
        let new = upper.private_keys.into_iter().filter(|key| !kept(&key.path));
        let private_keys = old.chain(new).collect();
        // Whiteouts, and that an upper directory is no whole image, is not said of the image.
        let container = container.into_iter().filter(|f| ["container-unread", "container-name"].contains(&f.code));
        let etcd_builds = [self.image.etcd_builds.clone(), upper.etcd_builds].concat();
        let image = Image { name: "lis1".into(), tree, manifest, private_keys, etcd_builds };
        let mut findings = Vec::new();
        judged(image, container.collect(), &mut |finding| findings.push(finding));
        findings.retain(|finding| !self.codes.contains(finding.code));
        Verdict { findings }
    }
}

/// Hands out every error and warning.
fn judged(image: Image, container: Vec<Finding>, say: &mut dyn FnMut(Finding)) -> Option<Image> {
    let images = [(image, container)];
    let (findings, _) = verify(&images, OffsetDateTime::now_utc());
    findings.into_iter().filter(|f| f.severity != Severity::Notice).for_each(say);
    images.into_iter().next().map(|(image, _)| image)
}

/// The tree that an overlay mount shows (Documentation/filesystems/overlayfs.rst: whiteouts, opaque directories).
fn laid_over(lower: &Tree, upper: Tree) -> Tree {
    let mut tree = lower.clone();
    for (path, mut entry) in upper.entries {
        let opaque = entry.xattrs.remove(&b"trusted.overlay.opaque"[..]).is_some();
        entry.xattrs.retain(|name, _| !name.starts_with(b"trusted.overlay."));
        if matches!(entry.kind, Kind::Character { major: 0, minor: 0 }) {
            tree.remove(&path);
            continue;
        }
        if opaque || !entry.is_directory() {
            tree.remove(&path);
        }
        tree.insert(path, entry);
    }
    tree
}

/// The codes of errors and warnings that the program gives for an image.
pub fn codes_by_the_program(image: &Path) -> BTreeSet<String> {
    let image = image.to_str().expect("UTF-8");
    let said = run(&std::env::temp_dir(), &["verify", "--message-format", "json", image]);
    let objects = said.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let findings = objects.filter(|o| o["type"] == "finding" && o["severity"] != "notice");
    findings.map(|o| o["code"].as_str().expect("code").to_owned()).collect()
}

/// The codes that the program gives for a whole changed image, as a file, and not for the sound one.
pub fn by_the_program(plan: &Plan, index: usize, image: &Path, sound: &BTreeSet<String>) -> Vec<String> {
    let desk = tempfile::tempdir().expect("temporary directory");
    let at = |name: &str| desk.path().join(name).to_str().expect("UTF-8").to_owned();
    let program = r#"
import subprocess, sys, tarfile
upper = {m.name: m for m in tarfile.open(sys.argv[2])}
gone = [n for n, m in upper.items() if m.ischr() and (m.devmajor, m.devminor) == (0, 0)]
opaque = [n for n, m in upper.items() if 'SCHILY.xattr.trusted.overlay.opaque' in m.pax_headers]
def hidden(name):
    return name in upper or any(name.startswith(d + '/') for d in gone + opaque)
out = tarfile.open(sys.argv[3], 'w', format=tarfile.PAX_FORMAT)
source = tarfile.open(sys.argv[1])
for m in source:
    if not hidden(m.name):
        out.addfile(m, source.extractfile(m) if m.isreg() else None)
source = tarfile.open(sys.argv[2])
for m in source:
    if m.name not in gone:
        m.pax_headers = {k: v for k, v in m.pax_headers.items() if 'trusted.overlay' not in k}
        out.addfile(m, source.extractfile(m) if m.isreg() else None)
out.close()
"#;
    let changes = plan.row(index).join("changes.tar");
    let (image, changes) = (image.to_str().expect("UTF-8"), changes.to_str().expect("UTF-8"));
    tool("python3", &["-c", program, image, changes, &at("image.tar")]);
    let said = codes_by_the_program(Path::new(&at("image.tar")));
    said.difference(sound).cloned().collect()
}
