//! Judging: from what an image declares and what was seen to findings. Pure.

pub mod cluster;
pub mod endpoints;
pub mod members;
pub mod next;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::observe::{Answer, Member, Observed};
use crate::declaration::Part;
use crate::etcd::birth::ClusterState;
use crate::etcd::ids::Id;
use crate::etcd::urls::peer_url;
use crate::finding::{Finding, Rule};
use crate::image::manifest::Manifest;

/// All rules of the check.
pub static RULES: LazyLock<Vec<&'static Rule>> =
    LazyLock::new(|| [endpoints::RULES, cluster::RULES, members::RULES, next::RULES].concat());

/// What an image says the registry should be.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The node.
    pub node: String,
    /// Its part.
    pub part: Part,
    /// Its own peer URL; `None` when etcd does not run there.
    pub peer_url: Option<String>,
    /// `new` or `existing`.
    pub state: ClusterState,
    /// Peer URL of each declared member by node name: the first members, and this node when it joins later.
    pub members: BTreeMap<String, String>,
    /// Id of each first member, by node name.
    pub first_ids: BTreeMap<String, Id>,
    /// The cluster's id for life.
    pub cluster: Option<Id>,
    /// Token, for messages.
    pub token: String,
}

impl Declared {
    /// Reads a manifest.
    pub fn of(manifest: &Manifest) -> Declared {
        let birth = &manifest.birth;
        let runs = manifest.part.runs_registry();
        let own = runs.then(|| birth.peers.get(&manifest.node).cloned().unwrap_or_else(|| peer_url(manifest.address)));
        let mut members = birth.peers.clone();
        if let Some(url) = &own {
            members.insert(manifest.node.clone(), url.clone());
        }
        Declared {
            node: manifest.node.clone(),
            part: manifest.part,
            peer_url: own,
            state: manifest.cluster_state,
            members,
            first_ids: birth.member_ids.iter().filter_map(|(n, id)| Some((n.clone(), id.parse().ok()?))).collect(),
            cluster: birth.cluster_id.parse().ok(),
            token: birth.token.clone(),
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
    cluster::judge(declared, observed, &mut out);
    members::no_list(declared, observed, &mut out);
    if let Some(live) = members::reference(declared, observed) {
        members::judge(declared, observed, &live, &mut out);
        next::judge(declared, &live, &mut out);
    }
    out
}

/// The answers, each with its endpoint as text.
fn answers(observed: &Observed) -> impl Iterator<Item = (String, &Answer)> {
    observed.views.iter().filter_map(|v| Some((v.endpoint.to_string(), v.answer.as_ref().ok()?)))
}

/// `lis1 (8211f1d0f64f3269)`.
fn label(member: &Member) -> String {
    let name = if member.name.is_empty() { "a member without name" } else { &member.name };
    format!("{name} ({})", member.id)
}
