//! Judging: from what an image declares and what was seen to findings. Pure.

pub mod alarms;
pub mod certificates;
pub mod cluster;
pub mod data;
pub mod endpoints;
pub mod keys;
pub mod members;
pub mod next;
pub mod quorum;
#[cfg(test)]
mod tests;
pub mod timing;
pub mod votes;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use super::endpoint::Endpoint;
use super::etcdctl::Etcdctl;
use super::members::plan::label;
use super::members::votes::answers_of;
use super::observe::{Answer, Observed};
use crate::declaration::timing::{LEAST_ELECTION, LEAST_HEARTBEAT};
use crate::declaration::{Part, Topology};
use crate::etcd::birth::ClusterState;
use crate::etcd::ids::Id;
use crate::etcd::urls::peer_url;
use crate::finding::{Finding, Rule, Severity};
use crate::image::manifest::Manifest;

/// All rules of the check.
pub static RULES: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
    [
        endpoints::RULES,
        certificates::RULES,
        cluster::RULES,
        alarms::RULES,
        data::RULES,
        timing::RULES,
        members::RULES,
        quorum::RULES,
        votes::RULES,
        next::RULES,
        &keys::RULES,
    ]
    .concat()
});

const fn rule(code: &'static str, severity: Severity, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "check", severity, summary, explanation }
}

/// What an image says the registry should be.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The node.
    pub node: String,
    /// Its part.
    pub part: Part,
    /// Topology of the mesh.
    pub topology: Topology,
    /// Its own peer URL; `None` when etcd does not run there.
    pub peer_url: Option<String>,
    /// `new` or `existing`.
    pub state: ClusterState,
    /// `initial-cluster` of an image that joins.
    pub joins: Option<Vec<(String, String)>>,
    /// Peer URL of each declared member by node name.
    pub members: BTreeMap<String, String>,
    /// Site of each declared member by node name; images of early versions name only their own.
    pub sites: BTreeMap<String, String>,
    /// Id of each first member, by node name.
    pub first_ids: BTreeMap<String, Id>,
    /// The cluster's id for life.
    pub cluster: Option<Id>,
    /// Token, for messages.
    pub token: String,
    /// What the living registry is measured by.
    pub limits: Limits,
    /// For the commands that findings print.
    pub etcdctl: Etcdctl,
    /// The steps that replace the node are asked for, also while it runs.
    pub replace: bool,
}

/// What the declaration promises or asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `heartbeat-interval`.
    pub heartbeat: Duration,
    /// `election-timeout`.
    pub election: Duration,
    /// `quota-backend-bytes`.
    pub quota: u64,
    /// `[pki] renew-before`.
    pub renew_before: Duration,
    /// `[mesh] time-to-rebuild`.
    pub time_to_rebuild: Duration,
}

impl Default for Limits {
    /// The defaults of the declaration, for images that do not say.
    fn default() -> Limits {
        Limits {
            heartbeat: LEAST_HEARTBEAT,
            election: LEAST_ELECTION,
            quota: 2 << 30,
            renew_before: Duration::from_secs(30 * 86_400),
            time_to_rebuild: Duration::from_secs(4 * 3600),
        }
    }
}

impl Limits {
    /// The longest round trip that the timing bears: the declaration's rules, heartbeat at least half of it and election
    /// timeout at least ten times, turned round.
    pub fn bears(&self) -> Duration {
        (2 * self.heartbeat).min(self.election / 10)
    }
}

impl Declared {
    /// Reads a manifest.
    pub fn of(manifest: &Manifest, etcdctl: Etcdctl) -> Declared {
        let birth = &manifest.birth;
        let runs = manifest.part.runs_registry();
        // The birth record says where a first member was, the address where it is now.
        let own = runs.then(|| peer_url(manifest.address));
        let (mut members, mut sites, mut limits) = (birth.peers.clone(), BTreeMap::new(), Limits::default());
        if let Some(registry) = &manifest.registry {
            members = registry.members.iter().map(|(name, m)| (name.clone(), m.peer_url.clone())).collect();
            sites = registry.members.iter().map(|(name, m)| (name.clone(), m.site.clone())).collect();
            limits = Limits {
                heartbeat: Duration::from_millis(registry.heartbeat_ms),
                election: Duration::from_millis(registry.election_ms),
                quota: registry.quota_bytes,
                renew_before: Duration::from_secs(registry.renew_before_s),
                time_to_rebuild: Duration::from_secs(registry.time_to_rebuild_s),
            };
        }
        if let Some(url) = &own {
            members.insert(manifest.node.clone(), url.clone());
            sites.insert(manifest.node.clone(), manifest.site.clone());
        }
        Declared {
            node: manifest.node.clone(),
            part: manifest.part,
            topology: manifest.topology,
            peer_url: own,
            state: manifest.cluster_state,
            joins: manifest.initial_cluster.clone(),
            members,
            sites,
            first_ids: birth.member_ids.iter().filter_map(|(n, id)| Some((n.clone(), id.parse().ok()?))).collect(),
            cluster: birth.cluster_id.parse().ok(),
            token: birth.token.clone(),
            limits,
            etcdctl,
            replace: false,
        }
    }

    /// The declared node with this peer URL.
    pub fn node_of(&self, url: &str) -> Option<&str> {
        self.members.iter().find(|(_, u)| *u == url).map(|(name, _)| name.as_str())
    }
}

/// The findings, endpoints first.
pub fn judge(declared: &Declared, observed: &Observed) -> Vec<Finding> {
    let mut out = Vec::new();
    endpoints::judge(observed, &mut out);
    certificates::judge(declared, observed, &mut out);
    cluster::judge(declared, observed, &mut out);
    members::no_list(declared, observed, &mut out);
    let live = members::reference(declared, observed);
    alarms::judge(declared, observed, live.as_deref(), &mut out);
    data::judge(declared, observed, &mut out);
    timing::judge(declared, observed, &mut out);
    if let Some(live) = live {
        members::judge(declared, observed, &live, &mut out);
        quorum::judge(declared, observed, &live, &mut out);
        votes::judge(declared, observed, &live, &mut out);
        next::judge(declared, observed, &live, &mut out);
    }
    out
}

/// The member that keys are read from: the first of ours that knows a leader and is not behind by being a learner. Gives
/// the cluster's id too.
pub fn reader(declared: &Declared, observed: &Observed) -> Option<(Endpoint, Id)> {
    observed.views.iter().find_map(|view| {
        let answer = view.answer.as_ref().ok()?;
        let ours = declared.cluster == Some(answer.cluster) && answer.leader.is_some() && !answer.learner;
        ours.then(|| (view.endpoint.clone(), answer.cluster))
    })
}

/// The answers, each with its endpoint as text.
fn answers(observed: &Observed) -> impl Iterator<Item = (String, &Answer)> {
    observed.views.iter().filter_map(|v| Some((v.endpoint.to_string(), v.answer.as_ref().ok()?)))
}

/// The answers of the birth record's cluster.
fn ours<'a>(declared: &Declared, observed: &'a Observed) -> impl Iterator<Item = (String, &'a Answer)> {
    answers_of(declared.cluster, observed)
}

/// Endpoints for commands: members of ours that vote and know a leader, without the one that the commands are about.
fn endpoints_without(declared: &Declared, observed: &Observed, member: Option<Id>) -> Vec<String> {
    ours(declared, observed)
        .filter(|(_, answer)| !answer.learner && answer.leader.is_some() && Some(answer.member) != member)
        .map(|(endpoint, _)| endpoint)
        .collect()
}
