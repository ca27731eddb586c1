//! Rules about the member list, compared by peer URL: names can lie, a peer URL is where the others really send to.

use super::quorum::{Change, commands};
use super::{Declared, answers, label, ours, rule};
use crate::etcd::ids::Id;
use crate::finding::{Finding, Rule, Severity};
use crate::live::endpoint::Endpoint;
use crate::live::etcdctl::url;
use crate::live::members::command;
use crate::live::members::votes::{at, member_at, unstarted};
use crate::live::observe::{Member, Observed};

/// Declared, not there.
pub static MISSING: Rule = rule(
    "live-member-missing",
    Severity::Error,
    "a declared member is not in the living registry",
    "No member of the list has the declared peer URL: it was removed, or the declaration gained a voter that nobody \
     has added yet. A new image does not make it a member: `etcdctl member add` on a living one does. \
     Tested by comparing the member list with the image's birth record by peer URL.",
);
/// There, not declared.
pub static EXTRA: Rule = rule(
    "live-member-extra",
    Severity::Error,
    "the living registry has a member that is not declared",
    "Every voter counts for the quorum, also one that nobody remembers: with four voters two may not be lost. \
     Declare it, or remove it. Tested by comparing the member list with the image's birth record by peer URL.",
);
/// Other URL.
pub static MOVED: Rule = rule(
    "live-member-moved",
    Severity::Error,
    "a member has another peer URL than the declaration says",
    "The others go on sending to the address in the member list, whatever a new image says. Change the list first \
     (`etcdctl member update`), which needs a quorum, then start the node with the new address. \
     Tested by finding the declared name under another peer URL.",
);
/// Other name.
pub static RENAMED: Rule = rule(
    "live-member-renamed",
    Severity::Error,
    "a member has another name than the declaration says",
    "etcd does not care for names, but people and `initial-cluster` do: a member that runs under another node's name \
     was started with another node's configuration, or the node was renamed after its birth. \
     Tested by the name in the member list at the declared peer URL.",
);
/// Never started.
pub static UNSTARTED: Rule = rule(
    "live-member-unstarted",
    Severity::Warning,
    "a member has never been started",
    "It counts for the quorum and does not vote: adding a second member to a lone one stops all writes until it \
     starts. A member publishes its client URLs at its first start; this one has none. Tested by the member list.",
);
/// A learner.
pub static LEARNER: Rule = rule(
    "live-member-learner",
    Severity::Warning,
    "a member is still a learner",
    "A learner gets all data and has no vote. It is promoted by hand once it has caught up: \
     `etcdctl member promote`. At most one learner at a time. Tested by the member list.",
);
/// Another id than the first one's.
pub static REJOINED: Rule = rule(
    "live-member-rejoined",
    Severity::Notice,
    "a first member was replaced since the registry's birth",
    "Its id is not the one that follows from the birth record. A member that is added later hashes the time \
     into its id, so it was removed and added again; its data directory must never be the first one's. \
     Tested by comparing ids with the birth record.",
);
/// Somebody else answers.
pub static SWAPPED: Rule = rule(
    "live-member-swapped",
    Severity::Error,
    "another member answers than the one whose address it is",
    "The member that answers at an endpoint has its peer URL on another host: two nodes were started with each \
     other's configuration or data directory, or an address was given twice. Tested by comparing the member id in \
     the status with the member list.",
);
/// Lists differ.
pub static DISAGREE: Rule = rule(
    "live-members-disagree",
    Severity::Warning,
    "the members do not agree on the member list",
    "Each member was asked for its own list. For a moment after a change they may differ; if it lasts, a member is cut \
     off or belongs to another cluster. Tested by comparing all lists.",
);
/// No list.
pub static NO_LIST: Rule = rule(
    "live-members-unknown",
    Severity::Error,
    "no member gives its member list",
    "etcd 3.5 and newer ask the leader before they answer, so without a quorum there is no list, and membership cannot \
     be compared with the declaration.",
);

/// The rules of this file.
pub static RULES: &[&Rule] =
    &[&MISSING, &EXTRA, &MOVED, &RENAMED, &UNSTARTED, &LEARNER, &REJOINED, &SWAPPED, &DISAGREE, &NO_LIST];

/// The member list to judge by: of an endpoint that belongs to the birth record's cluster, else of any.
pub fn reference(declared: &Declared, observed: &Observed) -> Option<Vec<Member>> {
    let mut lists: Vec<_> = answers(observed)
        .filter_map(|(_, a)| Some((declared.cluster != Some(a.cluster), a.members.as_ref().ok()?)))
        .collect();
    lists.sort_by_key(|(foreign, _)| *foreign);
    // The list of another cluster says nothing of this one: the finding about the cluster says it all.
    let (foreign, list) = lists.first()?;
    if *foreign {
        return None;
    }
    let mut list = (*list).clone();
    list.sort_by(|a, b| a.peer_urls.cmp(&b.peer_urls));
    Some(list)
}

/// Says when there is no list at all.
pub fn no_list(declared: &Declared, observed: &Observed, out: &mut Vec<Finding>) {
    let ours: Vec<_> = answers(observed).filter(|(_, a)| declared.cluster == Some(a.cluster)).collect();
    if ours.is_empty() || ours.iter().any(|(_, a)| a.members.is_ok()) {
        return;
    }
    let mut finding = NO_LIST.finding("the registry", "no member gives its member list");
    for (endpoint, answer) in ours {
        if let Err(trouble) = &answer.members {
            finding = finding.note(format!("{endpoint}: {}", trouble.reason));
        }
    }
    out.push(finding.help("a majority of the voters must run: start the others"));
}

/// Compares the living list with the declaration.
pub fn judge(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    for (node, url) in &declared.members {
        match at(live, url) {
            Some(member) => present(declared, observed, node, url, member, out),
            None => absent(declared, observed, node, url, live, out),
        }
    }
    for member in live {
        let known = member.peer_urls.iter().any(|u| declared.node_of(u).is_some());
        let moved = declared.members.contains_key(&member.name);
        if !known && !moved {
            let votes = if member.learner { "a learner" } else { "a voter" };
            let finding = EXTRA
                .finding(label(member), format!("{votes} at {} that is not declared", member.peer_urls.join(", ")))
                .help("declare it and build anew, or remove it");
            let steps = vec![command::remove(member.id)];
            out.push(commands(declared, observed, finding, Change::Removal(member.id), steps));
        }
    }
    // What a member of another cluster says has codes of its own.
    swapped(declared, observed, live, out);
    disagree(declared, observed, live, out);
}

fn present(declared: &Declared, observed: &Observed, node: &str, url: &str, member: &Member, out: &mut Vec<Finding>) {
    if !member.name.is_empty() && member.name != node {
        out.push(
            RENAMED
                .finding(node, format!("the member at {url} calls itself `{}`", member.name))
                .help("start it with its own image, or declare the name it has"),
        );
    }
    if unstarted(member) {
        out.push(
            UNSTARTED
                .finding(node, format!("member {} has never been started", member.id))
                .help(format!("a check of {node}'s image prints the steps before and after its first start")),
        );
    }
    if member.learner {
        let finding = LEARNER.finding(node, format!("member {} is a learner and has no vote", member.id));
        out.push(if unstarted(member) {
            // etcd before 3.4.24 and 3.5.7 may promote it all the same (etcd#15096).
            finding.help("start it first; it is promoted when it has caught up")
        } else {
            let steps = vec![command::promoted(url)];
            let finding = finding.help("promote it when it has caught up; the command waits for its answer");
            commands(declared, observed, finding, Change::Of(member.id), steps)
        });
    }
    if let Some(first) = declared.first_ids.get(node)
        && *first != member.id
    {
        out.push(
            REJOINED.finding(node, format!("is member {}, was born as {first}: it was replaced since", member.id)),
        );
    }
}

fn absent(declared: &Declared, observed: &Observed, node: &str, at: &str, live: &[Member], out: &mut Vec<Finding>) {
    // A member of that name somewhere else, where nobody else is declared, has moved.
    let elsewhere = live.iter().find(|m| m.name == node && m.peer_urls.iter().all(|u| declared.node_of(u).is_none()));
    let Some(member) = elsewhere else {
        out.push(
            MISSING
                .finding(node, format!("no member has the peer URL {at}"))
                .help(format!("a check of {node}'s image prints the steps by which it joins")),
        );
        return;
    };
    let finding = MOVED
        .finding(node, format!("is at {} in the registry, declared at {at}", member.peer_urls.join(", ")))
        .help("change the list first, then start the node at its new address");
    let command = url(at).map(|at| command::update(member.id, &at));
    out.push(commands(declared, observed, finding, Change::Of(member.id), command.into_iter().collect()));
}

fn swapped(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    for (text, answer) in ours(declared, observed) {
        let Ok(endpoint) = text.parse::<Endpoint>() else { continue };
        if let Some(expected) = member_at(live, &endpoint)
            && expected.id != answer.member
        {
            let who: Option<&Member> = live.iter().find(|m| m.id == answer.member);
            let who = who.map_or_else(|| Id::to_string(&answer.member), label);
            out.push(SWAPPED.finding(text, format!("{who} answers where {} should", label(expected))).help(
                "compare `name` and `initial-advertise-peer-urls` in /etc/etcd/etcd.yaml with that node's image",
            ));
        }
    }
}

fn disagree(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    let key = |list: &[Member]| {
        let mut ids: Vec<Id> = list.iter().map(|m| m.id).collect();
        ids.sort_unstable();
        ids
    };
    let want = key(live);
    for (endpoint, answer) in ours(declared, observed) {
        if let Ok(list) = &answer.members
            && key(list) != want
        {
            let ids: Vec<String> = key(list).iter().map(Id::to_string).collect();
            out.push(
                DISAGREE
                    .finding(endpoint, format!("lists {} members where others list {}", list.len(), live.len()))
                    .note(format!("its list: {}", ids.join(", "))),
            );
        }
    }
}
