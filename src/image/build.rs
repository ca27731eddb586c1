//! From a prepared project to files in `dist/`: the shared part once, then every node by copying.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::cache::Cache;
use super::compose;
use super::gzip::End;
use super::index::{Index, IndexEntry};
use super::output::{self, Access, Atomic, Committed, Committer};
use super::parts::{self, Content, Part, Prefix};
use super::progress::Progress;
use super::project::Project;
use super::splice;
use crate::declaration::Node;
use crate::etcd::birth::Entrance;
use crate::finding::{Failure, Problem};
use crate::pki::NodePki;
use crate::tree::digest::{self, Digest};
use crate::tree::write::Links;

/// What a build did.
#[derive(Debug, Default)]
pub struct Report {
    /// Images made, by node.
    pub made: Vec<(String, IndexEntry)>,
    /// Nodes for which no image could be made, and why.
    pub failed: Vec<(String, Problem)>,
}

/// Where a node's certificates come from.
pub type Certificates<'a> = &'a (dyn Fn(&Node) -> Result<NodePki, Problem> + Sync);

/// How to build.
pub struct Options<'a> {
    /// Where images go.
    pub out: &'a Path,
    /// Threads.
    pub jobs: NonZeroUsize,
    /// Receives progress.
    pub progress: &'a dyn Progress,
    /// `initial-cluster` of the nodes that join a living registry; all others are born with theirs.
    pub joins: BTreeMap<String, Vec<(String, String)>>,
}

/// Builds the images of `nodes`. One that cannot be made does not stop the others.
///
/// # Errors
/// When the shared part or the output directory fails, so that no image can be made.
pub fn build(
    project: &Project,
    cache: &Cache,
    nodes: &[&Node],
    certificates: Certificates<'_>,
    options: &Options<'_>,
) -> Result<Report, Problem> {
    let out = options.out;
    std::fs::create_dir_all(out).map_err(|e| Failure::io("make", out, &e))?;
    // What an interrupted build left; never a file under its final name.
    output::sweep(out)?;
    let mut index = Index::begin(out, &project.mesh.name.value)?;
    let base = &project.base;
    let shared = compose::shared(&base.tree, project.plan.touched());
    let content = Content { entries: &shared, store: base.tree.store.as_deref() };
    let (prefix, links) = parts::shared(content, cache, options.jobs, options.progress)?;

    let committer = Committer::start()?;
    let (joins, profiles) = (&options.joins, Mutex::default());
    let workshop = Workshop { project, prefix, links, out, joins, committer: &committer, profiles };
    let step = options.progress.start("making images", Some(nodes.len() as u64));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.jobs.get())
        .build()
        .map_err(|e| Failure::new(format!("cannot start {} threads: {e}", options.jobs)))?;
    let results: Vec<_> = pool.install(|| {
        nodes
            .par_iter()
            .map(|node| {
                let result = certificates(node).and_then(|pki| workshop.image(node, &pki));
                step.advance(1);
                (node.name.value.clone(), result)
            })
            .collect()
    });
    let mut report = Report::default();
    for (name, result) in results {
        let result = result.and_then(|(entry, committed)| {
            committed.wait()?;
            Ok(entry)
        });
        match result {
            Ok(entry) => report.made.push((name, entry)),
            Err(problem) => report.failed.push((name, problem)),
        }
    }
    committer.finish()?;
    if report.made.is_empty() {
        return Ok(report);
    }
    index.update(report.made.iter().cloned(), &|name| project.mesh.nodes.contains_key(name));
    index.save(out)?;
    Ok(report)
}

/// What all nodes of a build share.
struct Workshop<'a> {
    project: &'a Project,
    prefix: Prefix,
    links: Links,
    out: &'a Path,
    joins: &'a BTreeMap<String, Vec<(String, String)>>,
    /// Stores images while the next ones are made.
    committer: &'a Committer,
    /// Profile parts by what is in them, with the hard link groups up to there.
    profiles: Mutex<HashMap<Digest, Arc<(Part, Links)>>>,
}

impl Workshop<'_> {
    fn image(&self, node: &Node, pki: &NodePki) -> Result<(IndexEntry, Committed), Problem> {
        let entrance = self.joins.get(&node.name.value).cloned().map_or(Entrance::Born, Entrance::Joins);
        let fitted = self.project.fit(node, &entrance, pki)?;
        if fitted.without_keys {
            return Err(
                Failure::new(format!("the keys of {} were not read, so no image can be made", fitted.node)).into()
            );
        }
        let composed = self.project.compose(node, &entrance, &fitted)?;
        let store = self.project.base.tree.store.as_deref();
        let profile = self.profile(&composed.entries(&composed.profile))?;
        let entries = composed.entries(&composed.node);
        let mut links = profile.1.clone();
        let part = parts::compress(Content { entries: &entries, store }, End::Final, &mut links, NonZeroUsize::MIN)?;

        let file = format!("{}.tar.gz", node.name.value);
        let mut image = Atomic::create(&self.out.join(&file), Access::Owner)?;
        let spliced = splice::write_image(&self.prefix, &profile.0, &part, &mut image)?;
        let entry = IndexEntry {
            file,
            size: spliced.size,
            sha256: spliced.sha256,
            identity: digest::identity(&composed.tree),
            base: self.project.base.digest,
            parts: spliced.parts,
        };
        Ok((entry, self.committer.commit(image)))
    }

    /// The profile part, compressed once per content.
    fn profile(&self, entries: &compose::Entries<'_>) -> Result<Arc<(Part, Links)>, Failure> {
        let key = digest::digest_of(entries.iter().copied());
        let mut made = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = made.get(&key) {
            return Ok(part.clone());
        }
        let mut links = self.links.clone();
        let content = Content { entries, store: self.project.base.tree.store.as_deref() };
        let part = parts::compress(content, End::Open, &mut links, NonZeroUsize::MIN)?;
        let part = Arc::new((part, links));
        made.insert(key, part.clone());
        Ok(part)
    }
}
