//! What this node has to do next to take its part, with the commands in the right order.

use super::members::{at, unstarted};
use super::{Declared, label};
use crate::etcd::birth::ClusterState;
use crate::finding::{Finding, Rule, Severity};
use crate::live::observe::Member;

/// The next step.
pub static NEXT_STEP: Rule = Rule {
    code: "live-next-step",
    family: "check",
    severity: Severity::Notice,
    summary: "what this node has to do next",
    explanation: "A node becomes a member in one of three ways: it is born with the registry (`new`), it is added to a \
                  living one as a learner and started with `existing`, or it replaces a dead member, which is removed \
                  before its successor is added (etcd's FAQ: adding first raises the quorum while one is missing). \
                  Which one it is follows from the member list alone.",
};
/// The image's state does not fit.
pub static WRONG_STATE: Rule = Rule {
    code: "live-wrong-state",
    family: "check",
    severity: Severity::Error,
    summary: "the image would start with the wrong `initial-cluster-state`",
    explanation: "An image built as `new` founds a cluster with the first members of the birth record. On an empty \
                  data directory it takes the id it was born with; once that member was removed, the living ones refuse \
                  it for ever, and a node that was never a first member founds a registry of its own. Such a node must \
                  be added first and its image built with `fitout build --join`, which writes `existing` and the \
                  living list. Tested by comparing the image's state with the member list.",
};

/// The rules of this file.
pub static RULES: &[&Rule] = &[&NEXT_STEP, &WRONG_STATE];

/// For the commands: where etcdctl finds the registry and its certificate.
const ETCDCTL: &str = "`etcdctl` needs `--endpoints`, `--cacert`, `--cert` and `--key` of an operator";

/// Judges this node's place in the living list.
pub fn judge(declared: &Declared, live: &[Member], out: &mut Vec<Finding>) {
    let node = &declared.node;
    let Some(url) = &declared.peer_url else {
        let text = "nothing to do: a client has no part in the registry";
        out.push(NEXT_STEP.finding(node, text).help("ship it and start it"));
        return;
    };
    let step = |text: String| NEXT_STEP.finding(node, text);
    let Some(member) = at(live, url) else {
        wrong_state(declared, "is not in the member list", out);
        out.push(not_a_member(declared, url, live));
        return;
    };
    let born = declared.first_ids.get(node) == Some(&member.id);
    let id = member.id;
    if unstarted(member) {
        if !born {
            wrong_state(declared, "was added to a living registry", out);
        }
        let mut finding = step(format!("member {id} waits for its first start"))
            .note(format!("1. on {node}: `systemctl enable --now mesh-registry.target`"));
        if member.learner {
            finding = finding.note(format!("2. when it has caught up: `etcdctl member promote {id}`")).note(ETCDCTL);
        }
        out.push(finding.help("start it with this image"));
        return;
    }
    out.push(
        step(format!("is already a member ({id})"))
            .note("it keeps its place as long as it keeps its /var/lib/etcd: mount it into the new image's machine")
            .note("if that is lost, replace the member:")
            .note(format!("1. `etcdctl member remove {id}`"))
            .note(format!("2. `etcdctl member add {node} --learner --peer-urls={url}`"))
            .note(format!(
                "3. `fitout build --join --node {node}`, ship it, `systemctl enable --now mesh-registry.target`"
            ))
            .note("4. when it has caught up: `etcdctl member promote` with the id that step 2 printed")
            .note(ETCDCTL)
            .help("nothing to do when its data is kept"),
    );
}

fn not_a_member(declared: &Declared, url: &str, live: &[Member]) -> Finding {
    let node = &declared.node;
    let mut finding = NEXT_STEP.finding(node, "is not a member yet: it joins as a learner");
    let mut number = 1;
    let mut say = |text: String| {
        finding.notes.push(format!("{number}. {text}"));
        number += 1;
    };
    if let Some(old) = live.iter().find(|m| m.name == *node) {
        let old_urls = old.peer_urls.join(", ");
        say(format!("if its data moved with it: `etcdctl member update {} --peer-urls={url}` and start it", old.id));
        say(format!(
            "else `etcdctl member remove {}` ({} at {old_urls}), before the next is added",
            old.id,
            label(old)
        ));
    } else if let Some(dead) = live.iter().find(|m| m.peer_urls.iter().all(|u| declared.node_of(u).is_none())) {
        say(format!("if it replaces {}: `etcdctl member remove {}` first", label(dead), dead.id));
    }
    say(format!("`etcdctl member add {node} --learner --peer-urls={url}`"));
    say(format!("`fitout build --join --node {node}`, ship it, `systemctl enable --now mesh-registry.target`"));
    say("when it has caught up: `etcdctl member promote` with the id that `member add` printed".to_owned());
    finding.note(ETCDCTL).help("add it on a living member before it is started")
}

fn wrong_state(declared: &Declared, why: &str, out: &mut Vec<Finding>) {
    if declared.state == ClusterState::New {
        out.push(
            WRONG_STATE
                .finding(&declared.node, format!("the image says `new`, and the node {why} of a registry that lives"))
                .help(format!("add it first, then `fitout build --join --node {}`", declared.node)),
        );
    }
}
