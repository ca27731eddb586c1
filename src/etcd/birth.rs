//! The birth record: what the cluster was born with, and the ids that follow from it for life.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::{Id, cluster_id, member_id};
use super::urls::peer_url;
use crate::declaration::Mesh;

/// What an etcd cluster was born with; its ids follow from it for life. Also kept in `fitout.lock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// Generation of the registry.
    pub generation: u32,
    /// `<mesh>-g<generation>`.
    pub token: String,
    /// Peer URL of each first member, by node name.
    pub peers: BTreeMap<String, String>,
    /// 16 hex digits.
    pub cluster_id: String,
    /// 16 hex digits per node name.
    pub member_ids: BTreeMap<String, String>,
}

/// `initial-cluster-state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClusterState {
    /// Born with the cluster.
    New,
    /// Joins a living one.
    Existing,
}

/// How a node comes to its cluster, which etcd reads while its data directory is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entrance {
    /// It is born with it: the first members of the birth record.
    Born,
    /// It joins a living one: exactly the living list with this node in it, name and peer URL. A member with two URLs
    /// stands twice.
    Joins(Vec<(String, String)>),
}

impl Entrance {
    /// `initial-cluster-state`.
    pub fn state(&self) -> ClusterState {
        match self {
            Entrance::Born => ClusterState::New,
            Entrance::Joins(_) => ClusterState::Existing,
        }
    }
    /// `initial-cluster`.
    pub fn initial_cluster(&self, birth: &Birth) -> String {
        match self {
            Entrance::Born => birth.initial_cluster(),
            Entrance::Joins(list) => initial_cluster(list.iter().map(|(name, url)| (name, url))),
        }
    }
    /// The list of a node that joins.
    pub fn list(&self) -> Option<Vec<(String, String)>> {
        match self {
            Entrance::Born => None,
            Entrance::Joins(list) => Some(list.clone()),
        }
    }
}

/// `name=url,name=url`, as etcd's configuration has it.
pub fn initial_cluster<'a>(members: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let members: Vec<String> = members.into_iter().map(|(name, url)| format!("{name}={url}")).collect();
    members.join(",")
}

impl Birth {
    /// The birth record of a cluster with these first members.
    pub fn of(generation: u32, token: String, peers: BTreeMap<String, String>) -> Birth {
        let ids: BTreeMap<String, Id> =
            peers.iter().map(|(name, url)| (name.clone(), member_id(&[url], &token))).collect();
        let all: Vec<Id> = ids.values().copied().collect();
        let member_ids = ids.into_iter().map(|(name, id)| (name, id.to_string())).collect();
        Birth { generation, token, peers, cluster_id: cluster_id(&all).to_string(), member_ids }
    }

    /// `initial-cluster` of the first members: `name=url,name=url`, by name.
    pub fn initial_cluster(&self) -> String {
        initial_cluster(&self.peers)
    }
}

/// The birth record that follows from a declaration: every node on which etcd runs is a first member.
pub fn compute(mesh: &Mesh) -> Birth {
    let peers = mesh.registry_nodes().map(|node| (node.name.value.clone(), peer_url(node.address.value))).collect();
    Birth::of(mesh.registry.generation.value, mesh.token(), peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_birth_record_names_its_ids() {
        let peers = [12380, 22380, 32380].map(|p| (format!("n{p}"), format!("http://127.0.0.1:{p}")));
        let birth = Birth::of(1, "etcd-cluster-1".into(), BTreeMap::from(peers));
        assert_eq!(birth.cluster_id, "ef37ad9dc622a7c4");
        assert_eq!(birth.member_ids["n22380"], "91bc3c398fb3c146");
        assert!(birth.initial_cluster().starts_with("n12380=http://127.0.0.1:12380,n22380="));
        let text = serde_json::to_string(&birth).unwrap();
        assert_eq!(serde_json::from_str::<Birth>(&text).unwrap(), birth);
    }

    #[test]
    fn the_token_alone_makes_another_cluster() {
        let peers = BTreeMap::from([("a".to_owned(), "https://10.0.0.1:2380".to_owned())]);
        let first = Birth::of(1, "m-g1".into(), peers.clone());
        let second = Birth::of(2, "m-g2".into(), peers);
        assert_ne!(first.cluster_id, second.cluster_id);
        assert_ne!(first.member_ids, second.member_ids);
    }
}
