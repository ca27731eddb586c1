//! `fitout build`: one image per node.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use time::OffsetDateTime;

use super::registry::access::seconds;
use super::{Exit, Global, Ui, VerbResult, project, usage};
use crate::declaration::Node;
use crate::etcd::birth;
use crate::finding::{Finding, Problem};
use crate::image::build::{self, Certificates, Options};
use crate::image::index::IndexEntry;
use crate::image::project::Project;
use crate::live::credentials::Credentials;
use crate::live::endpoint::Endpoint;
use crate::live::members::join;
use crate::live::members::look::Registry;
use crate::live::members::plan::Wanted;
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
    /// Build for joining the living registry: its member list, asked for now, goes into the images of the nodes that --node
    /// names, or of all voters that were not born with it
    #[arg(long)]
    join: bool,
    /// With --join: client URL of a member to ask; may be given several times [default: every declared voter]
    #[arg(long = "endpoint", value_name = "URL", requires = "join")]
    endpoints: Vec<Endpoint>,
    /// With --join: how long to wait for an answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, requires = "join")]
    timeout: Duration,
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
    let joining: Vec<&Node> = match (args.join, args.nodes.is_empty()) {
        (false, _) => Vec::new(),
        (true, false) => nodes.clone(),
        (true, true) => nodes.iter().copied().filter(|node| !project.is_born(node)).collect(),
    };
    let joins = joins(args, &project, &joining, &certificates, ui)?;
    let options = Options { out: &out, jobs: project::jobs(args.jobs), progress: ui, joins };
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

/// `initial-cluster` of every node that joins, from the living list. It is asked for with the first one's own client
/// certificate: any of the mesh may list the members.
fn joins(
    args: &Args,
    project: &Project,
    nodes: &[&Node],
    certificates: Certificates<'_>,
    ui: &Ui,
) -> Result<BTreeMap<String, Vec<(String, String)>>, Problem> {
    let mesh = &project.mesh;
    let clients = nodes.iter().filter(|node| !mesh.part_of(node).runs_registry());
    let clients: Vec<Finding> = clients
        .map(|node| {
            let text = format!("etcd does not run on {}: it is a client", *node.name);
            usage::JOIN_CLIENT.finding(&*node.name, text).at(&node.profile.span).help("build it without `--join`")
        })
        .collect();
    if !clients.is_empty() {
        return Err(clients.into());
    }
    let Some(first) = nodes.first() else { return Ok(BTreeMap::new()) };
    let credentials = Credentials::of_node(&certificates(first)?)?;
    let declared = || mesh.registry_nodes().map(|node| Endpoint::of_address(*node.address)).collect();
    let registry = Registry {
        wanted: Wanted::of(mesh),
        birth: project.birth.clone(),
        endpoints: if args.endpoints.is_empty() { declared() } else { args.endpoints.clone() },
        credentials: &credentials,
        timeout: args.timeout,
    };
    let look = registry.look()?;
    let mut joins = BTreeMap::new();
    for node in nodes {
        let list = join::list(&node.name, &registry.wanted, &look)?;
        let shown = birth::initial_cluster(list.iter().map(|(name, url)| (name, url)));
        ui.status(format!("{} joins {shown}", *node.name));
        joins.insert(node.name.value.clone(), list);
    }
    Ok(joins)
}

fn print(ui: &Ui, node: &str, path: &std::path::Path, entry: &IndexEntry) {
    ui.object(&serde_json::json!({"type": "image", "node": node, "file": path, "size": entry.size,
        "sha256": entry.sha256, "identity": entry.identity}));
    if !ui.json() {
        let mib = entry.size as f64 / f64::from(1 << 20);
        ui.line(format!("{}  {mib:.1} MiB  identity {}", path.display(), &entry.identity.hex()[..16]));
    }
}
