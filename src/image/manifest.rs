//! `/usr/lib/fitout/image.json`: what an image says of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::declaration::{Mesh, Node, Part, Target, Topology};
use crate::etcd::birth::{Birth, ClusterState, Entrance};
use crate::etcd::urls::peer_url;
use crate::overlay::ledger::Ledger;

pub use crate::overlay::ledger::MANIFEST_PATH;

/// Version of this format.
pub const SCHEMA: u32 = 1;

/// The embedded manifest. Unknown fields are ignored on reading; `schema` says whether it can be understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `fitout`'s version.
    pub tool: String,
    /// Name of the mesh.
    pub mesh: String,
    /// Domain of the mesh.
    pub domain: String,
    /// Topology of the mesh.
    pub topology: Topology,
    /// Name of the node.
    pub node: String,
    /// Site of the node.
    pub site: String,
    /// Address of the node.
    pub address: std::net::IpAddr,
    /// The mesh's network.
    pub network: ipnet::IpNet,
    /// Profile of the node.
    pub profile: String,
    /// The node's part in the registry.
    pub part: Part,
    /// What the image is to run on.
    pub target: Target,
    /// `[image] version`.
    pub version: String,
    /// What the etcd cluster was born with.
    pub birth: Birth,
    /// `new` or `existing`.
    pub cluster_state: ClusterState,
    /// With `existing`: the living list for which it was built, name and peer URL, sorted; a member with two URLs stands
    /// twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_cluster: Option<Vec<(String, String)>>,
    /// SHA-256 of the base's canonical listing, hex.
    pub base: String,
    /// The base's own hostname, which must not be found in the image; empty when it had none.
    pub base_hostname: String,
    /// Sites of the mesh, sorted.
    pub sites: Vec<String>,
    /// What the declaration says of the registry; `None` in images of versions that did not write it.
    #[serde(default)]
    pub registry: Option<Registry>,
    /// The node's services by name; `None` in images of versions that did not write them.
    #[serde(default)]
    pub services: Option<BTreeMap<String, Service>>,
    /// Every overlay path.
    pub ledger: Ledger,
}

/// What the declaration said of the registry when the image was built: what the living one is measured by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    /// Every node on which etcd runs, by name.
    pub members: BTreeMap<String, Member>,
    /// `heartbeat-interval`, milliseconds.
    pub heartbeat_ms: u64,
    /// `election-timeout`, milliseconds.
    pub election_ms: u64,
    /// `[registry] round-trip`, milliseconds.
    pub round_trip_ms: u64,
    /// `[registry] quota`, bytes.
    pub quota_bytes: u64,
    /// `[pki] renew-before`, seconds.
    pub renew_before_s: u64,
    /// `[mesh] time-to-rebuild`, seconds.
    pub time_to_rebuild_s: u64,
}

/// A service of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Its port.
    pub port: u16,
    /// The data set that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_set: Option<String>,
}

/// A node on which etcd runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its site.
    pub site: String,
    /// Its part.
    pub part: Part,
    /// Its peer URL.
    pub peer_url: String,
}

impl Service {
    /// The services of a node.
    pub fn all_of(node: &Node) -> BTreeMap<String, Service> {
        let service = |s: &crate::declaration::Service| Service {
            port: s.port.value,
            data_set: s.data_set.as_ref().map(|set| set.value.clone()),
        };
        node.services.iter().map(|(name, s)| (name.clone(), service(s))).collect()
    }
}

impl Registry {
    /// From the declaration.
    pub fn of(mesh: &Mesh) -> Registry {
        let timing = mesh.timing();
        let milliseconds = |d: std::time::Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let members = mesh.registry_nodes().map(|node| {
            let member = Member {
                site: node.site.value.clone(),
                part: mesh.part_of(node),
                peer_url: peer_url(node.address.value),
            };
            (node.name.value.clone(), member)
        });
        Registry {
            members: members.collect(),
            heartbeat_ms: milliseconds(timing.heartbeat),
            election_ms: milliseconds(timing.election),
            round_trip_ms: milliseconds(mesh.registry.round_trip.value),
            quota_bytes: mesh.registry.quota.value,
            renew_before_s: mesh.pki.renew_before.value.as_secs(),
            time_to_rebuild_s: mesh.time_to_rebuild.value.as_secs(),
        }
    }
}

impl Manifest {
    /// How the image's node comes to its cluster.
    pub fn entrance(&self) -> Entrance {
        match self.cluster_state {
            ClusterState::New => Entrance::Born,
            ClusterState::Existing => Entrance::Joins(self.initial_cluster.clone().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A manifest of a node `a` alone in a mesh `m`.
    pub(crate) fn sample() -> Manifest {
        Manifest {
            schema: SCHEMA,
            tool: "0".into(),
            mesh: "m".into(),
            domain: "m.mesh".into(),
            topology: Topology::Single,
            node: "a".into(),
            site: "s".into(),
            address: [10, 77, 0, 1].into(),
            network: "10.77.0.0/24".parse().unwrap(),
            profile: "p".into(),
            part: Part::ControlPlane,
            target: Target::Machine,
            version: "1".into(),
            birth: Birth {
                generation: 1,
                token: "m-g1".into(),
                peers: [("a".to_owned(), "https://10.77.0.1:2380".to_owned())].into(),
                cluster_id: String::new(),
                member_ids: Default::default(),
            },
            cluster_state: ClusterState::New,
            initial_cluster: None,
            base: String::new(),
            base_hostname: String::new(),
            sites: vec!["s".into()],
            registry: None,
            services: None,
            ledger: Ledger::default(),
        }
    }

    #[test]
    fn round_trip() {
        let json = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&json).unwrap(), sample());
    }
}
