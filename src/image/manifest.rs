//! `/usr/lib/fitout/image.json`: what an image says of itself.

use serde::{Deserialize, Serialize};

use crate::declaration::{Part, Target, Topology};
use crate::etcd::birth::{Birth, ClusterState};
use crate::overlay::ledger::Ledger;

/// Where the manifest is in every image, relative to the root.
pub const MANIFEST_PATH: &str = "usr/lib/fitout/image.json";

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
    /// SHA-256 of the base's canonical listing, hex.
    pub base: String,
    /// The base's own hostname, which must not be found in the image; empty when it had none.
    pub base_hostname: String,
    /// Sites of the mesh, sorted.
    pub sites: Vec<String>,
    /// Every overlay path.
    pub ledger: Ledger,
}
