//! What this node has to do next to take its part, with the commands in the right order.
//!
//! An image that was not built with `--join` says `new`, also for a node that joins: the two lines of etcd.yaml that differ
//! then are changed on the node before its first start.

use super::quorum::{Change, commands, obstacle};
use super::{Declared, label, rule};
use crate::declaration::Topology;
use crate::etcd::birth::ClusterState;
use crate::etcd::ids::Id;
use crate::finding::{Finding, Rule, Severity};
use crate::live::etcdctl::{Step, url};
use crate::live::members::command;
use crate::live::members::votes::{Quorum, Stand, at, stand, unstarted};
use crate::live::observe::{Member, Observed};

/// The next step.
pub static NEXT_STEP: Rule = rule(
    "live-next-step",
    Severity::Notice,
    "what this node has to do next",
    "A node becomes a member in one of three ways: it is born with the registry (`new`), it is added to a living one as \
     a learner and started with `existing`, or it replaces a dead member, which is removed before its successor is \
     added (etcd's FAQ: adding first raises the quorum while one is missing). Which one it is follows from the member \
     list alone. For a member that runs nothing is to be done. When nothing is heard of it and its /var/lib/etcd is \
     lost, it is replaced by the printed commands, in their order; `fitout check --replace` prints them for one that \
     runs. They are printed only while the other voters have a quorum without it: else nothing can be changed, and data \
     that lives must not be removed. etcd changes no members (`unhealthy cluster`) until all have been connected for \
     five seconds: then the command is to be repeated.",
);
/// The image's state does not fit.
pub static WRONG_STATE: Rule = rule(
    "live-wrong-state",
    Severity::Error,
    "the image would start with the wrong `initial-cluster-state`",
    "An image built as `new` founds a cluster with the first members of the birth record. On an empty data directory it \
     takes the id it was born with; once that member was removed, the living ones refuse it for ever, and a node \
     that was never a first member founds a registry of its own. Such a node must be added first, and its /etc/etcd/etcd.yaml \
     say `existing` and the living list before its first start. Tested by comparing the image's state with the \
     member list.",
);

/// The image's list is an old one.
pub static STALE_JOIN: Rule = rule(
    "live-join-stale",
    Severity::Error,
    "the image was built to join another member list than the living one",
    "A node that joins starts with the living member list in `initial-cluster`, which `fitout build --join` has taken from \
     the registry. etcd compares it with what the living members say at its first start, by peer URL, and refuses any \
     difference (`member count is unequal`, `unmatched member while checking PeerURLs`). The list has changed since the \
     image was built: build it again. Once the node has started for the first time the list is not read any more.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&NEXT_STEP, &WRONG_STATE, &STALE_JOIN];

/// Judges this node's place in the living list.
pub fn judge(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    let node = &declared.node;
    let Some(peer) = &declared.peer_url else {
        let text = "nothing to do: a client has no part in the registry";
        out.push(NEXT_STEP.finding(node, text).help("ship it and start it"));
        return;
    };
    let Some(member) = at(live, peer) else {
        wrong_state(declared, "is not in the member list of a registry that lives", out);
        stale(declared, peer, live, replaced(declared, live).map(|m| m.id), out);
        out.push(not_a_member(declared, observed, peer, live));
        return;
    };
    let born = declared.first_ids.get(node) == Some(&member.id);
    if unstarted(member) {
        if !born {
            wrong_state(declared, "was added to a registry that lives", out);
            stale(declared, peer, live, None, out);
        }
        out.push(first_start(declared, observed, peer, member, born, live));
        return;
    }
    out.push(already(declared, observed, peer, member, live));
}

/// It is in the list and was started once. How it is replaced is printed when nothing is heard of it, or on request.
fn already(declared: &Declared, observed: &Observed, peer: &str, member: &Member, live: &[Member]) -> Finding {
    let node = &declared.node;
    let quorum = Quorum::of(declared.cluster, observed, live);
    let silent = stand(declared.cluster, observed, live, member) == Stand::Silent;
    let who = format!("is a member ({})", member.id);
    let mut finding = match (silent, quorum.lost()) {
        (true, _) => NEXT_STEP
            .finding(node, format!("{who} and does not answer"))
            .help("start it with its /var/lib/etcd, when that is there: `systemctl enable --now mesh-registry.target`"),
        (false, true) => NEXT_STEP
            .finding(node, format!("{who} and runs: keep its /var/lib/etcd, the only copy that is sure to be left"))
            .help("nothing is to be done here: `live-no-quorum` says what to bring back"),
        (false, false) => NEXT_STEP.finding(node, format!("{who}; nothing to do as long as its /var/lib/etcd is kept")),
    };
    if declared.topology == Topology::Single {
        let text = "if that is lost, the registry is lost: a new one is restored from a snapshot \
             (`etcdctl snapshot save`, and `restore`); there is no other member to join";
        return finding.note(text);
    }
    if !silent && !declared.replace {
        return if quorum.lost() { finding } else { finding.help("if it is lost: `fitout explain live-next-step`") };
    }
    if let Some(why) = obstacle(declared, observed, Change::Removal(member.id)) {
        return finding.note(format!("it cannot be replaced now: {why}"));
    }
    let mut lost = "if its /var/lib/etcd is lost, replace the member".to_owned();
    if quorum.one_more_stops(member.id) {
        lost.push_str("; until the last step one more loss stops all writes");
    }
    finding = finding.note(lost + ":");
    let mut steps = vec![Step::on(node, "if it still runs", command::STOP), command::remove(member.id)];
    steps.extend(joins(declared, peer, live, Some(member.id)));
    commands(declared, observed, finding, Change::Removal(member.id), steps)
}

/// It is in the list and waits.
fn first_start(
    declared: &Declared,
    observed: &Observed,
    peer: &str,
    member: &Member,
    born: bool,
    live: &[Member],
) -> Finding {
    let node = &declared.node;
    let mut finding = NEXT_STEP.finding(node, format!("member {} waits for its first start", member.id));
    let mut steps = Vec::new();
    if !born {
        steps.extend(existing(declared, peer, live, None));
    }
    steps.push(command::start(node));
    if !member.learner {
        // None of these needs etcdctl.
        for (n, step) in steps.iter().enumerate() {
            finding = finding.note(format!("{}. {step}", n + 1));
        }
        return finding.help("start it with this image");
    }
    steps.push(command::promoted(peer));
    let finding = finding.help("start it with this image, then promote it");
    commands(declared, observed, finding, Change::Of(member.id), steps)
}

/// The member whose place a node takes that is not in the list: the one of its name, else one that nobody declared.
fn replaced<'a>(declared: &Declared, live: &'a [Member]) -> Option<&'a Member> {
    let undeclared = |m: &&Member| m.peer_urls.iter().all(|u| declared.node_of(u).is_none());
    live.iter().find(|m| m.name == declared.node).or_else(|| live.iter().find(undeclared))
}

fn not_a_member(declared: &Declared, observed: &Observed, peer: &str, live: &[Member]) -> Finding {
    let node = &declared.node;
    let old = replaced(declared, live);
    let change = Change::removal_of(old);
    if let Some(why) = obstacle(declared, observed, change) {
        return NEXT_STEP
            .finding(node, "is not a member, and cannot become one now")
            .note(why)
            .help("do not start it; check again when that is mended");
    }
    let mut finding = NEXT_STEP.finding(node, "is not a member yet: it joins as a learner");
    let mut steps = Vec::new();
    if let Some(old) = old {
        let same = old.name == *node;
        if same && let Some(peer) = url(peer) {
            finding = finding.note(format!(
                "if its data moved with it, `etcdctl member update {} --peer-urls={peer}` after step 1 is all",
                old.id
            ));
        }
        finding = finding.note(format!(
            "{} at {} is removed first, if this node replaces it; else leave that command out",
            label(old),
            old.peer_urls.join(", ")
        ));
        steps.push(command::remove(old.id));
    }
    steps.extend(joins(declared, peer, live, old.map(|m| m.id)));
    commands(declared, observed, finding, change, steps).help("add it to the living registry before it is started")
}

/// Add, start, promote; `gone` is the member that was removed before.
fn joins(declared: &Declared, peer: &str, live: &[Member], gone: Option<Id>) -> Vec<Step> {
    let node = &declared.node;
    let mut steps = vec![command::add(node, peer, true), command::empty(node)];
    steps.extend(existing(declared, peer, live, gone));
    steps.extend([command::start(node), command::promoted(peer)]);
    steps
}

/// An image that joins, by a list that is not the living one.
fn stale(declared: &Declared, peer: &str, live: &[Member], gone: Option<Id>, out: &mut Vec<Finding>) {
    if declared.state == ClusterState::Existing && existing(declared, peer, live, gone).is_some() {
        let was = declared.joins.iter().flatten().map(|(name, url)| format!("{name}={url}"));
        let is = command::initial_cluster((&declared.node, peer), live, gone, |url| declared.node_of(url));
        let is = is.iter().map(|(name, url)| format!("{name}={url}"));
        out.push(
            STALE_JOIN
                .finding(&declared.node, "the image was built to join another member list than the living one")
                .note(format!("built for: {}", was.collect::<Vec<_>>().join(", ")))
                .note(format!("the list:  {}", is.collect::<Vec<_>>().join(", ")))
                .help(format!("build it again: `fitout build --node {} --join`", declared.node)),
        );
    }
}

/// What an image that was not built for this list needs before its first start.
fn existing(declared: &Declared, peer: &str, live: &[Member], gone: Option<Id>) -> Option<Step> {
    let list = command::initial_cluster((&declared.node, peer), live, gone, |url| declared.node_of(url));
    let fits = declared.state == ClusterState::Existing && declared.joins.as_ref() == Some(&list);
    (!fits).then(|| command::existing(&declared.node, &list))
}

fn wrong_state(declared: &Declared, why: &str, out: &mut Vec<Finding>) {
    if declared.state == ClusterState::New {
        out.push(WRONG_STATE.finding(&declared.node, format!("the image says `new`, and the node {why}")).help(
            "do not start it as it is: `live-next-step` prints what to do before, and what to change on it; once \
                     it is added, `fitout build --node NODE --join` makes an image that needs no change",
        ));
    }
}
