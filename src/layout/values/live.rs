//! What the nodes announce and claim.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32};

use crate::layout::field::{object, words};
use crate::layout::text::{HexId, Label, Sha256, Time, Uuid};

words! {
    /// How something stands.
    pub enum State {
        /// As it should be.
        Ok = "ok",
        /// Works, and somebody should look.
        Warn = "warn",
        /// Does not work.
        Bad = "bad",
    }
}

object! {
    /// A node is there. Under its lease.
    pub struct Here {
        /// The kernel's boot id (/proc/sys/kernel/random/boot_id).
        pub boot_id: Uuid,
        /// Identity of the image that it runs, where it knows it.
        pub image: Option<Sha256>,
        /// Generation of the registry in which it announces itself. Readers ignore all of a node's announcements when
        /// this is another than identity's.
        pub generation: NonZeroU32,
        /// Id of its etcd member; absent on a node without.
        pub member_id: Option<HexId>,
        /// When the agent put this.
        pub since: Time,
        /// Name and version of the agent, for people.
        pub agent: String,
    }
}

object! {
    /// How a node is. Under its lease; written on change, else every 5 minutes, so that an old time tells of a node that is
    /// stuck although its lease is kept alive.
    pub struct Health {
        /// The worst of the checks.
        pub state: State,
        /// The checks by name.
        pub checks: BTreeMap<Label, Check>,
        /// When they were made.
        pub at: Time,
    }
}

object! {
    /// One check of a node's health.
    pub struct Check {
        /// How it stands.
        pub state: State,
        /// What is wrong, or what was measured, for people.
        pub text: Option<String>,
    }
}

object! {
    /// A service that a node offers. Under its lease. The names of the fields are those of SkyDNS.
    pub struct Service {
        /// Where: the node's address, or a name.
        pub host: String,
        /// Its port.
        pub port: NonZeroU16,
        /// Lower is asked first (RFC 2782).
        pub priority: u16,
        /// Share among those of one priority (RFC 2782).
        pub weight: u16,
        /// True when it may be used now: its unit is up, and its claim, if it needs one, is held.
        pub ready: bool,
    }
}

object! {
    /// Which node holds the one replica of a data set in a site. Created only when absent, without lease: it stays until
    /// an operator releases or transfers it.
    pub struct Claim {
        /// The node.
        pub node: Label,
        /// When it was claimed.
        pub since: Time,
        /// Generation of the registry in which it was claimed. A claim outlives a restore.
        pub generation: NonZeroU32,
    }
}
