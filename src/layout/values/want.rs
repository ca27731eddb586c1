//! What the operator wants, from the declaration.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;

use crate::layout::field::{object, words};
use crate::layout::text::{Label, Sha256};

words! {
    /// What a site is for.
    pub enum SiteKind {
        /// Its nodes may offer services and hold data sets.
        Data = "data",
        /// It only votes.
        Arbiter = "arbiter",
    }
}

words! {
    /// How the registry votes.
    pub enum Topology {
        /// An odd number of voters in at least three sites.
        Quorum = "quorum",
        /// One declared control plane; nothing takes over when it is down.
        Single = "single",
    }
}

words! {
    /// A node's part in the registry.
    pub enum Part {
        /// Votes, and may hold data.
        Voter = "voter",
        /// Votes; offers no service and holds no data set.
        Arbiter = "arbiter",
        /// Uses the registry.
        Client = "client",
        /// The one control plane of topology single.
        ControlPlane = "control-plane",
    }
}

words! {
    /// How a service is spoken to.
    pub enum Protocol {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
}

words! {
    /// How replicas are placed.
    pub enum Spread {
        /// No two in one site.
        Site = "site",
        /// Anywhere.
        None = "none",
    }
}

object! {
    /// A site.
    pub struct WantSite {
        /// data, or arbiter when every node of it is one.
        pub kind: SiteKind,
        /// Declared round trip to each other site, milliseconds.
        pub round_trip_ms: BTreeMap<Label, u32>,
    }
}

object! {
    /// A node.
    pub struct WantNode {
        /// Its site.
        pub site: Label,
        /// Its part in the registry.
        pub part: Part,
        /// Its address in the mesh's network.
        pub address: IpAddr,
        /// Identity of the image that it should run: SHA-256 of the canonical listing of its tree. Absent when the
        /// registry was written without knowing the images.
        pub image: Option<Sha256>,
        /// Its services by name.
        pub services: BTreeMap<Label, WantNodeService>,
    }
}

object! {
    /// A service of a node.
    pub struct WantNodeService {
        /// Its port.
        pub port: NonZeroU16,
        /// The data set that it is a replica of: it may be announced ready only while the node holds the claim.
        pub data_set: Option<Label>,
    }
}

object! {
    /// Who votes.
    pub struct WantQuorum {
        /// How the registry votes.
        pub topology: Topology,
        /// Every node that votes, arbiters too, sorted; in topology single the one control plane.
        pub voters: Vec<Label>,
        /// Those of them that offer nothing but their vote, sorted.
        pub arbiters: Vec<Label>,
    }
}

object! {
    /// A service of the mesh.
    pub struct WantService {
        /// Its port; absent when the nodes offer it on different ones.
        pub port: Option<NonZeroU16>,
        /// How it is spoken to.
        pub protocol: Protocol,
        /// With fewer nodes ready than this the service counts as down: what is declared, less the site that has most
        /// of it, and at least 1.
        pub least_count: NonZeroU16,
        /// site when it is declared in several sites.
        pub spread: Spread,
    }
}

object! {
    /// A data set.
    pub struct WantData {
        /// How many replicas there should be.
        pub replicas: NonZeroU16,
        /// Always site: two replicas of one data set never share a site.
        pub spread: Spread,
        /// The nodes that may claim it, sorted.
        pub nodes: Vec<Label>,
        /// Parts of the registry that never hold it: arbiter.
        pub never_on: Vec<Part>,
    }
}
