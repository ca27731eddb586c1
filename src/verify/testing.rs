//! What the tests of several families start from.

use crate::declaration::{Part, Target, Topology};
use crate::etcd::birth::{Birth, ClusterState};
use crate::image::manifest::{Manifest, SCHEMA};
use crate::overlay::ledger::{Action, Ledger, Origin, Record, Scope};

/// A manifest of a voter with an empty ledger.
pub(super) fn manifest() -> Manifest {
    Manifest {
        schema: SCHEMA,
        tool: "0".into(),
        mesh: "harbour".into(),
        domain: "harbour.mesh".into(),
        topology: Topology::Quorum,
        node: "lis1".into(),
        site: "lisbon".into(),
        address: "10.77.0.11".parse().unwrap(),
        network: "10.77.0.0/24".parse().unwrap(),
        profile: "voter".into(),
        part: Part::Voter,
        target: Target::Machine,
        version: "1".into(),
        birth: Birth::of(1, "harbour-g1".into(), [("lis1".into(), "https://10.77.0.11:2380".into())].into()),
        cluster_state: ClusterState::New,
        initial_cluster: None,
        base: String::new(),
        base_hostname: String::new(),
        sites: vec!["lisbon".into()],
        registry: None,
        services: None,
        ledger: Ledger::default(),
    }
}

/// A record of a file that the overlay `app` gives.
pub(super) fn record(action: Action, scope: Scope) -> Record {
    Record {
        action,
        kind: "file".into(),
        mode: "0644".into(),
        uid: 0,
        gid: 0,
        sha256: None,
        target: None,
        public_key: None,
        scope,
        origin: Origin { overlay: "app".into(), file: "overlays/app/root/x".into(), by: String::new() },
        replaced: None,
    }
}
