//! `fitout why NODE PATH`: what put a path into a node's image.

use super::usage::PATH_UNKNOWN;
use super::{Exit, Global, Ui, VerbResult, project};
use crate::etcd::birth::Entrance;
use crate::finding::Problem;
use crate::overlay::ledger::{Action, Record, Scope};
use crate::pki::store::Public;
use crate::tree::TreePath;

/// Arguments of `why`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node
    node: String,
    /// Absolute path in its image
    path: String,
}

/// Prints the ledger's answer.
///
/// # Errors
/// Findings of the declaration, an unknown node or path.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let cache = project::cache(global)?;
    let project = project::prepare(global, ui, &cache, false)?;
    let nodes = project.nodes(std::slice::from_ref(&args.node))?;
    let Some(node) = nodes.first() else { return Ok(Exit::Usage) };
    let unknown = |why: String| {
        Problem::from(PATH_UNKNOWN.finding(&args.path, why).help("`fitout plan` lists the paths that overlays change"))
    };
    let asked = TreePath::parse(&args.path).map_err(|e| unknown(format!("the path {e}")))?;

    // Certificates give the digests of what is this node's only; without a store the answer lacks just those.
    let ledger = match Public::open(&global.pki_directory()).and_then(|store| store.node(&project.mesh, node)) {
        Ok(pki) if project.is_born(node) => project.fit(node, &Entrance::Born, &pki)?.ledger,
        // Nor is the living list known here, by which a node joins that came later.
        _ => project.plan.profile(&node.profile.value).map(|p| p.whole_ledger()).unwrap_or_default(),
    };
    let path = project.base.tree.resolve(&asked).map_err(|e| unknown(e.to_string()))?;
    let shown = path.display();
    if let Some(record) = ledger.get(&path) {
        ui.object(&serde_json::json!({"type": "why", "node": args.node, "path": shown, "record": record}));
        if !ui.json() {
            print(ui, &shown, record);
        }
        return Ok(Exit::Clean);
    }
    let Some(entry) = project.base.tree.get(&path) else {
        return Err(unknown(format!("neither the base nor an overlay of profile `{}` has it", node.profile.value)));
    };
    ui.object(
        &serde_json::json!({"type": "why", "node": args.node, "path": shown, "base": project.mesh.base.name.value}),
    );
    if !ui.json() {
        ui.line(format!("{shown}: {} {:04o} {}:{}", entry.kind_name(), entry.mode, entry.uid, entry.gid));
        ui.line(format!("  from      the base `{}`, unchanged", project.mesh.base.name.value));
    }
    Ok(Exit::Clean)
}

fn print(ui: &Ui, path: &str, record: &Record) {
    let Record { kind, mode, uid, gid, origin, .. } = record;
    let word = match record.action {
        Action::Added => "added",
        Action::Replaced => "replaced",
        Action::Edited => "edited",
        Action::Removed => "removed",
    };
    ui.line(format!("{path}: {kind} {mode} {uid}:{gid}"));
    let by = if origin.by.is_empty() { String::new() } else { format!(", by {}", origin.by) };
    ui.line(format!("  {word:<9} by overlay `{}`{by}", origin.overlay));
    ui.line(format!("  from      {}", origin.file));
    if let Some(replaced) = &record.replaced {
        ui.line(format!("  before    {replaced}"));
    }
    if let Some(target) = &record.target {
        ui.line(format!("  target    {target}"));
    }
    if let Some(sha256) = &record.sha256 {
        ui.line(format!("  sha256    {sha256}"));
    }
    if let Some(key) = &record.public_key {
        ui.line(format!("  key       private; sha256 of its public key {key}"));
    }
    let part = if record.scope == Scope::Node { "this node's only" } else { "the same for all nodes of the profile" };
    ui.line(format!("  part      {part}"));
}
