//! A registry that follows etcd's rules for its members, and people who do what they are asked. From whatever state a plan
//! starts, each of its steps is one that etcd allows, none leaves the voters without a majority, and it ends in what is
//! declared, or says why not.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Options, Place, Seen, Step, Wanted, plan};
use crate::etcd::ids::Id;
use crate::etcd::versions::Version;
use crate::live::members::votes::{Stand, Votes, unstarted};
use crate::live::observe::Member;

/// Nodes that exist; some are declared, some are members, some both.
const NODES: usize = 8;

pub(in crate::live::members) fn node(n: usize) -> String {
    format!("n{n}")
}
pub(in crate::live::members) fn home(n: usize) -> String {
    format!("https://10.0.0.{n}:2380")
}

/// The registry.
#[derive(Debug, Clone)]
pub(in crate::live::members) struct Model {
    pub members: Vec<Seen>,
    pub next_id: u64,
}

impl Model {
    pub fn votes(&self) -> Votes {
        let voters = || self.members.iter().filter(|m| !m.member.learner);
        Votes { all: voters().count(), up: voters().filter(|m| m.stand.counts()).count() }
    }

    fn at(&mut self, n: usize) -> &mut Seen {
        &mut self.members[n]
    }

    fn of(&self, url: &str) -> Result<usize, String> {
        self.members.iter().position(|m| m.member.peer_urls.iter().any(|u| u == url)).ok_or(format!("nobody at {url}"))
    }

    fn with_id(&self, id: Id) -> Result<usize, String> {
        self.members.iter().position(|m| m.member.id == id).ok_or(format!("no member {id}"))
    }

    /// What etcd, or a person, does; an error is etcd's refusal.
    pub fn take(&mut self, step: &Step, wanted: &Wanted) -> Result<(), String> {
        let started = |m: &Seen| !unstarted(&m.member);
        if !step.is_for_operator() && !self.votes().hold() {
            return Err("no quorum: nothing is committed".into());
        }
        match step {
            Step::Remove { id, .. } => {
                let n = self.with_id(*id)?;
                if !self.members[n].member.learner {
                    // membership/cluster.go IsReadyToRemoveVotingMember, server.go mayRemoveMember.
                    let left = || self.members.iter().filter(|m| !m.member.learner && m.member.id != *id);
                    let all = left().count();
                    if all == 0 || left().filter(|m| started(m)).count() < all / 2 + 1 {
                        return Err("not enough started members".into());
                    }
                    if self.members[n].stand.counts() && left().filter(|m| m.stand.counts()).count() < all / 2 + 1 {
                        return Err("unhealthy cluster".into());
                    }
                }
                self.members.remove(n);
            }
            Step::Add { peer_url, learner, .. } => {
                if self.of(peer_url).is_ok() {
                    return Err("peer URL exists".into());
                }
                if *learner && self.members.iter().any(|m| m.member.learner) {
                    return Err("too many learners".into());
                }
                let votes = self.votes();
                if votes.up < votes.all {
                    return Err("unhealthy cluster".into());
                }
                self.next_id += 1;
                let member = Member {
                    id: Id(self.next_id),
                    name: String::new(),
                    peer_urls: vec![peer_url.clone()],
                    client_urls: vec![],
                    learner: *learner,
                };
                self.members.push(Seen { member, stand: Stand::Unstarted, leads: false, version: None });
            }
            Step::Promote { peer_url, .. } => {
                let n = self.of(peer_url)?;
                let one = self.at(n);
                if !one.member.learner {
                    return Err("can only promote a learner".into());
                }
                if !one.stand.counts() || unstarted(&one.member) {
                    return Err("not in sync".into());
                }
                one.member.learner = false;
            }
            Step::Update { id, to, .. } => {
                let n = self.with_id(*id)?;
                if self.of(to).is_ok() {
                    return Err("peer URL exists".into());
                }
                if self.members[n].member.learner {
                    return Err("etcd#21694: it would be no learner any more".into());
                }
                let alone = self.votes().all == 1;
                let one = self.at(n);
                one.member.peer_urls = vec![to.clone()];
                if !alone && started(one) {
                    one.stand = Stand::Silent;
                }
            }
            Step::Start { node, .. } | Step::Rename { node, .. } => {
                let n = self.of(&wanted.nodes[node].peer_url)?;
                let one = self.at(n);
                one.stand = Stand::Serves;
                one.member.name.clone_from(node);
                one.member.client_urls = vec!["https://client".into()];
            }
        }
        Ok(())
    }

    pub fn is(&self, wanted: &Wanted) -> bool {
        let right = |(node, place): (&String, &Place)| {
            self.members.iter().any(|m| {
                m.member.name == *node
                    && m.member.peer_urls == [place.peer_url.clone()]
                    && !m.member.learner
                    && m.stand.counts()
            })
        };
        self.members.len() == wanted.nodes.len() && wanted.nodes.iter().all(right)
    }
}

/// Nodes 0 to `n`, all well.
pub(in crate::live::members) fn healthy(n: usize) -> Model {
    let one = |n: usize| {
        let client_urls = vec!["https://client".into()];
        let member =
            Member { id: Id(n as u64 + 1), name: node(n), peer_urls: vec![home(n)], client_urls, learner: false };
        Seen { member, stand: Stand::Serves, leads: n == 0, version: Version::parse("3.5.16") }
    };
    Model { members: (0..n).map(one).collect(), next_id: 1000 }
}

/// Nodes 0 to `n`, declared.
pub(in crate::live::members) fn all_wanted(n: usize) -> Wanted {
    let place = |n: usize| (node(n), Place { peer_url: home(n), site: "s".into() });
    Wanted { nodes: (0..n).map(place).collect() }
}

fn stands() -> impl Strategy<Value = Stand> {
    prop_oneof![
        6 => Just(Stand::Serves),
        1 => Just(Stand::NotAsked),
        1 => Just(Stand::Silent),
        1 => Just(Stand::Leaderless),
        1 => Just(Stand::Heard),
        1 => Just(Stand::Foreign),
        1 => Just(Stand::Unstarted),
    ]
}

prop_compose! {
    /// Node `n`'s member, if it has one: mostly where it should be, and of its name.
    fn member(n: usize)(
        there in prop::bool::weighted(0.6),
        stand in stands(),
        learner in prop::bool::weighted(0.15),
        away in prop::bool::weighted(0.15),
        renamed in prop::bool::weighted(0.1),
        replaced in prop::bool::weighted(0.15),
    ) -> Option<(Seen, bool)> {
        let name = match (stand, renamed) {
            (Stand::Unstarted, _) => String::new(),
            (_, true) => "other".into(),
            _ => node(n),
        };
        let client_urls = if stand == Stand::Unstarted { vec![] } else { vec!["https://client".into()] };
        let url = if away { format!("https://10.9.9.{n}:2380") } else { home(n) };
        let member = Member { id: Id(n as u64 + 1), name, peer_urls: vec![url], client_urls, learner };
        there.then_some((Seen { member, stand, leads: false, version: Version::parse("3.5.16") }, replaced))
    }
}

fn members() -> impl Strategy<Value = Vec<Option<(Seen, bool)>>> {
    (0..NODES).map(member).collect::<Vec<_>>()
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let size = prop_oneof![Just(1_usize), Just(3), Just(5)];
    size.prop_flat_map(|size| prop::sample::subsequence((0..NODES).collect::<Vec<_>>(), size)).prop_map(|nodes| {
        let place = |n: &usize| (node(*n), Place { peer_url: home(*n), site: "s".into() });
        Wanted { nodes: nodes.iter().map(place).collect() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn no_plan_goes_through_a_state_without_a_quorum_and_each_arrives(
        (seen, wanted, learner) in (members(), wanted(), prop::bool::weighted(0.8)),
    ) {
        let chosen: Vec<(Seen, bool)> = seen.into_iter().flatten().collect();
        let replace: BTreeSet<Id> =
            chosen.iter().filter(|(_, replaced)| *replaced).map(|(s, _)| s.member.id).collect();
        let mut model = Model { members: chosen.into_iter().map(|(s, _)| s).collect(), next_id: 1000 };
        // Two members may not have one URL.
        let urls: BTreeSet<_> = model.members.iter().map(|m| m.member.peer_urls.clone()).collect();
        prop_assume!(urls.len() == model.members.len() && !model.members.is_empty());
        let options = Options { learner, replace, ..Options::default() };
        let had_quorum = model.votes().hold();
        let first = plan(&wanted, &model.members, &options);
        prop_assert!(had_quorum || first.steps.is_empty(), "without a quorum nothing is planned: {first:#?}");
        let mut cursor = 0;
        let mut now = first.clone();
        while let Some(next) = now.steps.first() {
            // Planned anew from what is there now, it is the same way: what was shown is what is done.
            let here = first.steps[cursor..].iter().position(|p| p.step.same(&next.step));
            prop_assert!(here.is_some(), "{:?} was not planned after {cursor} in {first:#?}", next.step);
            cursor += here.unwrap() + 1;
            prop_assert_eq!(next.before, model.votes());
            prop_assert!(next.after.hold(), "{next:#?}");
            let taken = model.take(&next.step, &wanted);
            prop_assert!(taken.is_ok(), "{next:#?}: {taken:?} in {model:#?}");
            prop_assert_eq!(next.after, model.votes(), "{:#?}", next);
            prop_assert!(model.votes().hold(), "{next:#?} left {model:#?}");
            now = plan(&wanted, &model.members, &options);
        }
        prop_assert!(now.blocked.is_some() || model.is(&wanted), "{first:#?}\nended in {model:#?}");
        prop_assert!(now.blocked.is_none() || !now.is_done());
        // From a quorum only what the votes cannot carry is in the way: with learners, and nothing moved or replaced, nothing.
        let plain = options.learner && options.replace.is_empty();
        let moved = first.steps.iter().any(|p| matches!(p.step, Step::Update { .. } | Step::Rename { .. }));
        if had_quorum && plain && !moved && let Some(blocked) = &now.blocked {
            prop_assert!(matches!(blocked.step, Some(Step::Update { .. } | Step::Rename { .. })), "{blocked:#?}");
        }
    }
}
