//! `fitout verify IMAGE…`: the proof on the final bytes.

use std::path::PathBuf;

use rayon::prelude::*;
use time::OffsetDateTime;

use super::{Exit, Global, Ui, VerbResult, explain, project, rules};
use crate::finding::record::Counts;
use crate::finding::{Failure, Finding, Problem, has_errors};
use crate::image::progress::Progress;
use crate::pki::store::Public;
use crate::process::analyze;
use crate::verify::{self, Image, declared, units};

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Images made by `fitout build`
    #[arg(value_name = "IMAGE", required_unless_present = "list")]
    images: Vec<PathBuf>,
    /// List the rules
    #[arg(long)]
    list: bool,
}

/// Scans the images and applies every family of rules; with `-C DIR` compares with the declaration too.
///
/// # Errors
/// When an image or the declaration cannot be read.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    if args.list {
        explain::list(ui, &rules::of_image(true, true));
        return Ok(Exit::Clean);
    }
    let files = each_once(&args.images, ui);
    let step = ui.start("reading images", Some(files.len() as u64));
    let scanned: Vec<Result<(Image, Vec<Finding>), Failure>> = files
        .par_iter()
        .map(|path| {
            let result = verify::scan::scan(path);
            step.advance(1);
            result
        })
        .collect();
    drop(step);
    let mut images = Vec::new();
    let mut unread = Vec::new();
    for result in scanned {
        match result {
            Ok(image) => images.push(image),
            Err(failure) => unread.push(failure),
        }
    }
    let (mut findings, matrix) = verify::verify(&images, OffsetDateTime::now_utc());
    let whole: Vec<&Image> =
        images.iter().filter(|(_, found)| verify::is_whole(found)).map(|(image, _)| image).collect();
    findings.par_extend(whole.par_iter().flat_map_iter(|image| verify::about(&image.name, analyze::notices(image))));
    let declared = global.directory.is_some();
    if declared {
        findings.extend(compare(global, ui, &whole)?);
    }
    let all: Vec<&Image> = images.iter().map(|(image, _)| image).collect();
    verify::locate(&mut findings, &all);
    let findings = ui.judge(findings);
    for (image, _) in images.iter().filter(|(_, container)| verify::is_whole(container)) {
        ui.applied(&image.name, &rules::of_image(images.len() > 1, declared));
    }
    ui.findings(&findings);
    for (image, container) in &images {
        let own: Vec<&Finding> = findings.iter().filter(|f| verify::concerns(f, image, &all)).collect();
        summary(ui, image, verify::is_whole(container), &own, declared);
    }
    if !images.is_empty() {
        let lines = matrix.summary();
        ui.object(&serde_json::json!({"type": "matrix", "proof": lines}));
        if !ui.json() {
            lines.iter().for_each(|line| ui.line(line));
        }
    }
    if !ui.json() && !declared && !images.is_empty() {
        ui.line(
            "the ledger is inside the image, so this proves that each image is consistent in itself; `-C DIR` proves that it \
             is what the declaration makes",
        );
    }
    if !unread.is_empty() {
        unread.iter().for_each(|failure| ui.failure(failure));
        return Ok(Exit::Failure);
    }
    Ok(if has_errors(&findings) { Exit::Findings } else { Exit::Clean })
}

/// The files without those that are named again, which is said: a file proves nothing against itself.
fn each_once<'a>(given: &'a [PathBuf], ui: &Ui) -> Vec<&'a PathBuf> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut files = Vec::new();
    for path in given {
        // One that cannot be found is for the reader to tell.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if seen.contains(&real) {
            ui.status(format!("{} is given twice: it is read and counted once", path.display()));
        } else {
            seen.push(real);
            files.push(path);
        }
    }
    files
}

/// Renders each image's node again and compares.
fn compare(global: &Global, ui: &Ui, images: &[&Image]) -> Result<Vec<Finding>, Problem> {
    let cache = project::cache(global)?;
    let project = project::prepare(global, ui, &cache, false)?;
    let store = Public::open(&global.pki_directory())?;
    let mut findings = Vec::new();
    for image in images {
        let Some(manifest) = &image.manifest else { continue };
        match project::again(&project, &store, global, image, manifest)? {
            Ok((tree, expected)) => {
                let mut found = Vec::new();
                declared::check(image, manifest, &expected, &tree, &mut found);
                findings.extend(verify::about(&image.name, found));
            }
            Err(other) => findings.push(other),
        }
    }
    Ok(findings)
}

/// The proof and the verdict of one image.
fn summary(ui: &Ui, image: &Image, whole: bool, findings: &[&Finding], declared: bool) {
    let counts = Counts::of(findings.iter().copied());
    let node = image.manifest.as_ref().map(|m| m.node.as_str());
    if !whole {
        ui.verdict(&image.name, "not readable to its end, so nothing is proven", false);
        ui.object(&serde_json::json!({"type": "verdict", "image": image.name, "node": node, "claim": "not readable",
            "errors": counts.errors, "warnings": counts.warnings, "allowed": counts.allowed, "proof": null,
            "identity": null}));
        if !ui.json() {
            ui.line(format!("{}: not readable to its end, so nothing is proven", image.name));
        }
        return;
    }
    let proof = units::proof(image);
    let claim = match (counts.errors, declared) {
        (0, true) => "as declared",
        (0, false) => "self-consistent",
        (_, true) => "not as declared",
        (_, false) => "not self-consistent",
    };
    let identity = crate::tree::digest::identity(&image.tree);
    ui.verdict(&image.name, &format!("{claim}: {}", counts.words()), counts.errors == 0);
    ui.object(&serde_json::json!({"type": "verdict", "image": image.name, "node": node, "claim": claim,
        "errors": counts.errors, "warnings": counts.warnings, "allowed": counts.allowed, "proof": proof,
        "identity": identity}));
    if ui.json() {
        return;
    }
    ui.line(format!(
        "{}: node {}: {claim}: {} ({} entries, identity {})",
        image.name,
        node.unwrap_or("unknown"),
        counts.words(),
        image.tree.entries.len(),
        &identity.hex()[..16]
    ));
    for line in proof.lines() {
        ui.line(format!("  {line}"));
    }
}
