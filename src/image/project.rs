//! A mesh with its base, its plan and its lock: what `build`, `plan`, `render`, `why` and `verify -C` start from.

use std::collections::BTreeMap;
use std::path::Path;

use super::agent;
use super::base::{self, Base, DebianRequest};
use super::cache::Cache;
use super::compose::{self, Composition};
use super::lock::{Ids, Lock, LockedBase, LockedUse};
use super::manifest::{Manifest, Registry, SCHEMA, Service};
use super::progress::Progress;
use crate::declaration::{Loaded, Mesh, Node};
use crate::etcd::birth::{self, Birth, Entrance};
use crate::etcd::urls::peer_url;
use crate::finding::{Failure, Finding, Problem};
use crate::overlay::{self, BaseView, Fitted, Plan};
use crate::pki::NodePki;

/// Makes a Debian root file system as a plain tar at a path.
pub type MakeDebian<'a> = &'a dyn Fn(&DebianRequest, &Path) -> Result<(), Failure>;

/// What preparing a project needs from outside.
pub struct Tools<'a> {
    /// Bases and compressed parts.
    pub cache: &'a Cache,
    /// How a Debian base is made.
    pub make: MakeDebian<'a>,
    /// `SOURCE_DATE_EPOCH`, seconds since 1970.
    pub epoch: Option<i64>,
    /// Receives progress.
    pub progress: &'a dyn Progress,
}

/// A mesh ready to be fitted out.
#[derive(Debug)]
pub struct Project {
    /// The declaration.
    pub mesh: Mesh,
    /// The base, its times clamped to the epoch.
    pub base: Base,
    /// What every profile does to it.
    pub plan: Plan,
    /// The birth record of the declared generation, as it is pinned.
    pub birth: Birth,
    /// The lock as it is to be.
    pub lock: Lock,
    /// What `--locked` would refuse; empty when the lock on disk says the same.
    pub lock_changes: Vec<Finding>,
    /// Time of all that is put, seconds since 1970.
    pub epoch: i64,
    /// Findings below the severity of an error.
    pub warnings: Vec<Finding>,
}

impl Project {
    /// Gets the base of a declaration, plans every profile and compares with the lock.
    ///
    /// # Errors
    /// All findings of the plan; with `locked`, every difference from the lock; a failure when
    /// the base cannot be made.
    pub fn prepare(loaded: Loaded, tools: &Tools<'_>, locked: bool) -> Result<Project, Problem> {
        let Loaded { mesh, mut warnings } = loaded;
        let old = Lock::load(&mesh.directory)?;
        let locked_users = old.users.iter().map(|(name, ids)| (name.clone(), (ids.uid, ids.gid))).collect();

        let packages = overlay::packages(&mesh);
        let mut base = base::prepare(&mesh, &packages, tools.cache, tools.make, tools.progress)?;
        let epoch = tools.epoch.unwrap_or(base.newest);
        compose::clamp(&mut base.tree, epoch);
        let agent = agent::find(&mesh, &base.tree);
        let view = BaseView {
            tree: &base.tree,
            packages: &base.packages,
            hostname: &base.hostname,
            epoch,
            agent: agent.as_ref(),
        };
        let plan = overlay::plan(&mesh, &view, &locked_users)?;
        warnings.extend(plan.warnings.iter().cloned());

        let declared = birth::compute(&mesh);
        let now = Pinned { name: &mesh.base.name.value, base: &base, plan: &plan, birth: &declared };
        let mut lock = old;
        let lock_changes = now.pin(&mut lock.clone(), LockedUse::Locked);
        let how = if locked { LockedUse::Locked } else { LockedUse::Update };
        let refused = now.pin(&mut lock, how);
        if !refused.is_empty() {
            return Err(refused.into());
        }
        // The record stands for life, whoever joined or left since.
        warnings.extend(lock.since_birth(&declared));
        let birth = lock.births.get(&declared.generation).cloned().unwrap_or(declared);
        Ok(Project { mesh, base, plan, birth, lock, lock_changes, epoch, warnings })
    }

    /// Fits one node out, in memory.
    ///
    /// # Errors
    /// Findings of its templates, or a failure.
    pub fn fit(&self, node: &Node, entrance: &Entrance, pki: &NodePki) -> Result<Fitted, Problem> {
        overlay::fit(&self.plan, &self.mesh, node, &self.birth, entrance, pki)
    }

    /// The image of a node that was fitted out, in memory.
    ///
    /// # Errors
    /// A failure when its manifest cannot be written.
    pub fn compose(&self, node: &Node, entrance: &Entrance, fitted: &Fitted) -> Result<Composition, Failure> {
        let manifest = self.manifest(node, entrance, fitted);
        compose::compose(&self.base.tree, self.plan.touched(), fitted, &manifest, self.epoch)
    }

    /// What the image says of itself.
    pub fn manifest(&self, node: &Node, entrance: &Entrance, fitted: &Fitted) -> Manifest {
        let mesh = &self.mesh;
        Manifest {
            schema: SCHEMA,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            mesh: mesh.name.value.clone(),
            domain: mesh.domain.value.clone(),
            topology: mesh.topology.value,
            node: node.name.value.clone(),
            site: node.site.value.clone(),
            address: node.address.value,
            network: mesh.network.value,
            profile: node.profile.value.clone(),
            part: mesh.part_of(node),
            target: mesh.image.target,
            version: mesh.image.version.value.clone(),
            birth: self.birth.clone(),
            cluster_state: entrance.state(),
            initial_cluster: entrance.list(),
            base: self.base.digest.hex(),
            base_hostname: self.base.hostname.clone(),
            sites: mesh.sites.keys().cloned().collect(),
            registry: Some(Registry::of(mesh)),
            services: Some(Service::all_of(node)),
            ledger: fitted.ledger.clone(),
        }
    }

    /// True when the node's image founds the registry with the others, or has no part in it: it needs no `--join`.
    pub fn is_born(&self, node: &Node) -> bool {
        let declared = peer_url(node.address.value);
        !self.mesh.part_of(node).runs_registry() || self.birth.peers.get(&node.name.value) == Some(&declared)
    }

    /// Nodes by name; all when none is named.
    ///
    /// # Errors
    /// A finding for each name that is no node.
    pub fn nodes(&self, names: &[String]) -> Result<Vec<&Node>, Problem> {
        select(&self.mesh.nodes, names)
    }
}

/// What is true now, to be pinned or compared with what was.
struct Pinned<'a> {
    name: &'a str,
    base: &'a Base,
    plan: &'a Plan,
    birth: &'a Birth,
}

impl Pinned<'_> {
    /// Pins all of it; gives what is refused.
    fn pin(&self, lock: &mut Lock, how: LockedUse) -> Vec<Finding> {
        let base = LockedBase {
            name: self.name.to_owned(),
            digest: self.base.digest,
            tar_sha256: self.base.tar_sha256,
            packages: self.base.packages.clone(),
        };
        let users = self.plan.users.iter().map(|(name, (uid, gid))| (name, Ids { uid: *uid, gid: *gid }));
        let mut refused: Vec<Finding> = lock.pin_base(base, how).err().into_iter().collect();
        for (name, ids) in users {
            refused.extend(lock.pin_user(name, ids, how).err());
        }
        refused.extend(lock.pin_birth(self.birth, how).err());
        refused
    }
}

/// Nodes by name; all when none is named.
///
/// # Errors
/// A finding for each name that is no node.
pub fn select<'a>(nodes: &'a BTreeMap<String, Node>, names: &[String]) -> Result<Vec<&'a Node>, Problem> {
    if names.is_empty() {
        return Ok(nodes.values().collect());
    }
    let mut chosen = BTreeMap::new();
    let mut findings = Vec::new();
    for name in names {
        match nodes.get(name) {
            Some(node) => {
                chosen.insert(name, node);
            }
            None => findings.push(super::rules::unknown_node(name, nodes.keys())),
        }
    }
    if findings.is_empty() { Ok(chosen.into_values().collect()) } else { Err(findings.into()) }
}
