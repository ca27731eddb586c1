//! The birth record: what the cluster was born with, and the ids that follow from it for life.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
