//! `fitout plan`: what will be in each image, before anything is made.

use super::{Exit, Global, Ui, VerbResult, project};
use crate::declaration::{Mesh, Topology};
use crate::image::project::Project;
use crate::overlay::ledger::{Action, Ledger, Record};

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show only this node; may be given several times
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
    /// Refuse any change of fitout.lock
    #[arg(long)]
    locked: bool,
}

/// Prints the mesh, the ids and votes that follow, and per profile every path that changes.
///
/// # Errors
/// All findings of the declaration and the overlays.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let cache = project::cache(global)?;
    let project = project::prepare(global, ui, &cache, args.locked)?;
    let nodes = project.nodes(&args.nodes)?;
    let mesh = &project.mesh;
    let votes = votes(mesh);

    for node in &nodes {
        let name = &node.name.value;
        let ledger = project.plan.profile(&node.profile.value).map(|p| p.whole_ledger());
        ui.object(
            &serde_json::json!({"type": "node", "node": name, "site": node.site.value, "part": mesh.part_of(node),
            "profile": node.profile.value, "address": node.address.value,
            "member-id": project.birth.member_ids.get(name), "cluster-id": project.birth.cluster_id,
            "paths": ledger}),
        );
    }
    if ui.json() {
        return Ok(Exit::Clean);
    }

    let topology = match mesh.topology.value {
        Topology::Quorum => "quorum",
        Topology::Single => "single",
    };
    ui.line(format!("mesh {}: {topology}, {} sites, {} nodes", mesh.name.value, mesh.sites.len(), mesh.nodes.len()));
    ui.line(format!(
        "base {}: {} entries, {} packages, identity {}",
        mesh.base.name.value,
        project.base.tree.entries.len(),
        project.base.packages.len(),
        project.base.digest
    ));
    ui.line(format!("registry: cluster {} with token {}", project.birth.cluster_id, project.birth.token));
    let timing = mesh.timing();
    ui.line(format!(
        "timing: heartbeat {} ms, election {} ms, from a round trip of {} ms",
        timing.heartbeat.as_millis(),
        timing.election.as_millis(),
        mesh.registry.round_trip.value.as_millis()
    ));
    for line in &votes {
        ui.line(line);
    }
    for change in &project.lock_changes {
        ui.line(format!("fitout.lock would change: {}: {}", change.subject, change.message));
        change.notes.iter().for_each(|note| ui.line(format!("  {note}")));
    }

    ui.line("");
    ui.line(format!("{:<16} {:<14} {:<12} {:<16} member id", "node", "part", "site", "address"));
    for node in &nodes {
        let id = project.birth.member_ids.get(&node.name.value).map_or("-", String::as_str);
        let part = mesh.part_of(node).as_str();
        let address = node.address.value.to_string();
        ui.line(format!("{:<16} {part:<14} {:<12} {address:<16} {id}", node.name.value, node.site.value));
    }
    let mut profiles: Vec<&str> = nodes.iter().map(|n| n.profile.value.as_str()).collect();
    profiles.sort_unstable();
    profiles.dedup();
    for profile in profiles {
        print_profile(ui, &project, profile);
    }
    Ok(Exit::Clean)
}

fn print_profile(ui: &Ui, project: &Project, name: &str) {
    let Some(plan) = project.plan.profile(name) else { return };
    let ledger = plan.whole_ledger();
    let count = |action| ledger.records.values().filter(|r| r.action == action).count();
    ui.line("");
    ui.line(format!(
        "profile {name}: {} added (+), {} replaced (~), {} edited (e), {} removed (-); `node` is this node's only",
        count(Action::Added),
        count(Action::Replaced),
        count(Action::Edited),
        count(Action::Removed)
    ));
    print_ledger(ui, &ledger);
}

fn print_ledger(ui: &Ui, ledger: &Ledger) {
    for (path, record) in &ledger.records {
        ui.line(format!("  {}", line(path, record)));
    }
}

/// `+ /etc/x  file 0644 0:0  node  overlays/mesh/root/etc/x.tera`.
fn line(path: &str, record: &Record) -> String {
    use crate::overlay::ledger::Scope;
    let sign = match record.action {
        Action::Added => '+',
        Action::Replaced => '~',
        Action::Edited => 'e',
        Action::Removed => '-',
    };
    let scope = if record.scope == Scope::Node { "node" } else { "" };
    let by = if record.origin.by.is_empty() { String::new() } else { format!(" ({})", record.origin.by) };
    let target = record.target.as_ref().map(|t| format!(" -> {t}")).unwrap_or_default();
    format!(
        "{sign} {:<58} {:<9} {} {:>3}:{:<3} {scope:<4} {}{by}",
        format!("{path}{target}"),
        record.kind,
        record.mode,
        record.uid,
        record.gid,
        record.origin.file
    )
}

/// What is left when a site is lost; honest about what nothing takes over.
fn votes(mesh: &Mesh) -> Vec<String> {
    if mesh.topology.value == Topology::Single {
        let name = mesh.registry_nodes().next().map_or("none", |n| n.name.value.as_str());
        return vec![format!(
            "votes: one control plane, {name}; nothing takes over when it is down: no change is accepted, every node goes \
             on with what it was last told, and recovery is a restore"
        )];
    }
    let mut lines = Vec::new();
    for site in mesh.votes_by_site().keys() {
        let votes = mesh.votes_left_without(site);
        if lines.is_empty() {
            lines.push(format!("votes: {}, quorum {}", votes.total, votes.needed));
        }
        let word = if votes.has_quorum() { "writes go on" } else { "no writes" };
        lines.push(format!("  without {site}: {} of {} left, {word}", votes.left, votes.total));
    }
    for arbiter in mesh.arbiters() {
        lines.push(format!(
            "  arbiter {}: offers no service and holds no data set; it still stores the registry and may lead it",
            arbiter.name.value
        ));
    }
    lines
}
