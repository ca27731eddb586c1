//! `fitout build`: one image per node.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use time::OffsetDateTime;

use super::{Exit, Global, Ui, VerbResult, project};
use crate::declaration::Node;
use crate::image::build::{self, Options};
use crate::image::index::IndexEntry;
use crate::pki::passphrase::Source;
use crate::pki::store::{Access, Issue, Store};

/// Arguments of `build`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Build only this node; may be given several times
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
    /// Where images go [default: dist/ beside mesh.toml]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Refuse any change of fitout.lock, and any issuing of certificates
    #[arg(long)]
    locked: bool,
    /// Threads [default: one per processor]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// File that holds the passphrase of the store's keys
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// Makes the images and writes the lock.
///
/// # Errors
/// When no image can be made. Nodes that fail are printed, and give the exit status of their problems.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let directory = global.mesh_directory();
    let cache = project::cache(global)?;
    // Before the base, which may take a minute: the most common thing to be missing.
    let passphrase = Source::of_process(args.passphrase_file.as_deref());
    let loaded = project::declared(global, ui)?;
    let say = |line: &str| ui.status(line);
    let store = Store::open(&global.pki_directory(), &Access { passphrase: &passphrase, say: &say })?;

    let project = project::planned(loaded, ui, &cache, args.locked)?;
    let nodes = project.nodes(&args.nodes)?;
    let issue = if args.locked { Issue::Refused } else { Issue::Allowed };
    let now = OffsetDateTime::now_utc();
    let certificates = |node: &Node| store.node(&project.mesh, node, now, issue);
    let out = args.out.clone().unwrap_or_else(|| directory.join("dist"));
    let options = Options { out: &out, jobs: project::jobs(args.jobs), progress: ui, joins: BTreeMap::new() };
    let report = build::build(&project, &cache, &nodes, &certificates, &options)?;

    for issued in store.issued() {
        ui.status(format!("issued the {} ({})", issued.title, issued.reason));
    }
    if project.lock.save(&directory)? {
        let what: Vec<_> = project.lock_changes.iter().map(|f| f.subject.as_str()).collect();
        ui.status(format!("wrote fitout.lock ({}); commit it", what.join(", ")));
    }
    for (node, entry) in &report.made {
        print(ui, node, &out.join(&entry.file), entry);
    }
    let mut exit = Exit::Clean;
    for (node, problem) in &report.failed {
        ui.status(format!("no image for {node}:"));
        let this = ui.problem(problem);
        exit = if exit == Exit::Clean || this == Exit::Failure { this } else { exit };
    }
    if !report.failed.is_empty() {
        let names: Vec<_> = report.failed.iter().map(|(n, _)| n.as_str()).collect();
        ui.status(format!("{} of {} images could not be made: {}", names.len(), nodes.len(), names.join(", ")));
    }
    Ok(exit)
}

fn print(ui: &Ui, node: &str, path: &std::path::Path, entry: &IndexEntry) {
    ui.object(&serde_json::json!({"type": "image", "node": node, "file": path, "size": entry.size,
        "sha256": entry.sha256, "identity": entry.identity}));
    if !ui.json() {
        let mib = entry.size as f64 / f64::from(1 << 20);
        ui.line(format!("{}  {mib:.1} MiB  identity {}", path.display(), &entry.identity.hex()[..16]));
    }
}
