//! From what is to what the declaration wants: steps in order, each with the votes before and after it. Pure.
//!
//! What etcd asks for, and so decides the order (etcd `etcdserver/server.go` mayAddMember, mayRemoveMember, mayPromote):
//! - a member is added only while all voters are connected: so the dead go first, and what is declared and away comes back;
//! - at most one learner at a time (3.4 and 3.5 allow no more): so each is promoted before the next is added;
//! - a learner has no vote: so a voter is added as one, and gets its vote once it has all data;
//! - a living member that is not declared goes last: until then it is one more that may be lost.

#[cfg(test)]
pub(in crate::live::members) mod model;
mod order;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use super::votes::{Stand, Votes};
use crate::etcd::ids::Id;
use crate::etcd::versions::Version;
use crate::live::observe::Member;

pub use words::{Commands, votes};

/// What the declaration wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Every node that has a vote, by name.
    pub nodes: BTreeMap<String, Place>,
}

/// Where a voter is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its peer URL.
    pub peer_url: String,
    /// Its site.
    pub site: String,
}

/// A member of the living list, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What the list says.
    pub member: Member,
    /// How it stands.
    pub stand: Stand,
    /// It is the leader.
    pub leads: bool,
    /// The etcd that it runs, when it answers.
    pub version: Option<Version>,
}

/// How to get there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Add voters as learners first; false: as voters at once.
    pub learner: bool,
    /// Members whose data is lost or given up: removed and added anew.
    pub replace: BTreeSet<Id>,
    /// Ids of the first members by node, from the birth record.
    pub born: BTreeMap<String, Id>,
}

impl Default for Options {
    fn default() -> Options {
        Options { learner: true, replace: BTreeSet::new(), born: BTreeMap::new() }
    }
}

/// Why a member is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Not declared, and takes no part.
    Dead,
    /// Not declared, and lives.
    Undeclared,
    /// Replaced, as asked.
    Replaced,
    /// A learner that is not declared, not where it is declared, or is replaced. It has no vote.
    Learner,
}

/// What a node's start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The first one of a first member, with the image as it was built.
    Born,
    /// The first one of a member that was added: its image is built with `--join`.
    Joins,
    /// Of one that is away, with its data.
    Back(Stand),
    /// At its new address, with its data.
    Moved,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Take a member out of the list.
    Remove {
        /// Its id.
        id: Id,
        /// `lis1 (8211f1d0f64f3269)`.
        who: String,
        /// The declared node that it was.
        node: Option<String>,
        /// Why.
        why: Removal,
    },
    /// Put a node into the list.
    Add {
        /// The node.
        node: String,
        /// Its peer URL.
        peer_url: String,
        /// As a learner.
        learner: bool,
    },
    /// Start a node: this is for a person.
    Start {
        /// The node.
        node: String,
        /// Which start.
        how: Start,
    },
    /// Give a learner its vote, once it is in sync.
    Promote {
        /// The node.
        node: String,
        /// Its peer URL, by which its id is found when it is not added yet.
        peer_url: String,
        /// Its id, when it is in the list already.
        id: Option<Id>,
    },
    /// Change a member's peer URL.
    Update {
        /// The node.
        node: String,
        /// Its id.
        id: Id,
        /// The URLs in the list.
        from: String,
        /// The declared one.
        to: String,
    },
    /// Start a node again with its own image, so that it calls itself by its name: this is for a person.
    Rename {
        /// The node.
        node: String,
        /// What it calls itself.
        is: String,
    },
}

impl Step {
    /// It is for a person; `fitout` can only wait for it.
    pub fn is_for_operator(&self) -> bool {
        matches!(self, Step::Start { .. } | Step::Rename { .. })
    }

    /// The same work, whatever became known of it meanwhile.
    pub fn same(&self, other: &Step) -> bool {
        match (self, other) {
            (Step::Remove { id, .. }, Step::Remove { id: other, .. }) => id == other,
            (Step::Update { id, to, .. }, Step::Update { id: other, to: there, .. }) => id == other && to == there,
            (Step::Add { node, learner, .. }, Step::Add { node: other, learner: so, .. }) => {
                node == other && learner == so
            }
            (Step::Start { node, .. }, Step::Start { node: other, .. })
            | (Step::Promote { node, .. }, Step::Promote { node: other, .. })
            | (Step::Rename { node, .. }, Step::Rename { node: other, .. }) => node == other,
            _ => false,
        }
    }
}

/// A step with what it does to the votes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The step.
    pub step: Step,
    /// Votes before it.
    pub before: Votes,
    /// Votes after it; a majority, always.
    pub after: Votes,
    /// What to know before.
    pub warning: Option<String>,
}

/// Why there is no way from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// What is not done; `None`: nothing at all can be.
    pub step: Option<Step>,
    /// Why.
    pub why: String,
    /// What to do now.
    pub help: String,
}

/// The way from what is to what is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In order.
    pub steps: Vec<Planned>,
    /// Why it ends before what is wanted.
    pub blocked: Option<Blocked>,
}

impl Plan {
    /// The list is as declared, and all of it takes part.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty() && self.blocked.is_none()
    }
}

/// Plans.
pub fn plan(wanted: &Wanted, seen: &[Seen], options: &Options) -> Plan {
    order::plan(wanted, seen, options)
}

/// Which member is which declared node: by peer URL; else by name, when nobody else is declared where it is. Names can
/// lie, a peer URL is where the others really send to.
pub fn assign<'a>(wanted: &'a Wanted, seen: &[Seen]) -> Vec<Option<&'a str>> {
    let mut of: Vec<Option<&str>> = vec![None; seen.len()];
    let declared = |url: &String| wanted.nodes.values().any(|place| place.peer_url == *url);
    for (node, place) in &wanted.nodes {
        if let Some(n) = seen.iter().position(|s| s.member.peer_urls.contains(&place.peer_url))
            && of[n].is_none()
        {
            of[n] = Some(node);
        }
    }
    for node in wanted.nodes.keys() {
        if of.contains(&Some(node)) {
            continue;
        }
        let moved = |(n, s): &(usize, &Seen)| {
            of[*n].is_none() && s.member.name == *node && !s.member.peer_urls.iter().any(declared)
        };
        // Of two with one name, the one that lives.
        let mut all: Vec<(usize, &Seen)> = seen.iter().enumerate().filter(moved).collect();
        all.sort_by_key(|(_, s)| (!s.stand.counts(), s.member.learner));
        if let Some((n, _)) = all.first() {
            of[*n] = Some(node);
        }
    }
    of
}

/// `lis1 (8211f1d0f64f3269)`.
pub fn label(member: &Member) -> String {
    let name = if member.name.is_empty() { "a member without name" } else { &member.name };
    format!("{name} ({})", member.id)
}

/// The version for which a promotion needs a warning: the first of the range among those that run. etcd#19557: 3.5.1 to
/// 3.5.19 do not write a promotion to the membership that etcd 3.6 reads.
pub fn forgets_promotion(seen: &[Seen]) -> Option<Version> {
    let range = Version::new(3, 5, 1)..Version::new(3, 5, 20);
    seen.iter().filter_map(|s| s.version).filter(|version| range.contains(version)).min()
}
