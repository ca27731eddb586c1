//! Which votes are left when a site is lost.

use std::collections::BTreeMap;

use super::{Declared, rule};
use crate::declaration::Topology;
use crate::finding::{Finding, Rule, Severity};
use crate::live::members::votes::{Quorum, Stand};
use crate::live::observe::{Member, Observed};

/// Votes per site.
pub static VOTES: Rule = rule(
    "live-votes",
    Severity::Notice,
    "which votes are left after the loss of each single site",
    "More than half of all voters in the member list must reach each other, else nothing is written. A voter that is \
     down, or was never started, still counts. So for each site: voters that answer now and are elsewhere, against \
     the majority of all. A warning when the loss of one more site would stop the writes: then what is \
     down must come back first; when there are none already, `live-no-quorum` says so. Members of a site that is not \
     known (not declared) are named. With topology `single` nothing takes over, as declared.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&VOTES];

/// Judges the loss of each site in turn.
pub fn judge(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    let quorum = Quorum::of(declared.cluster, observed, live);
    // Without a quorum there is nothing left to lose. An image of an early version knows only its own site.
    if quorum.lost() || declared.sites.len() < declared.members.len() {
        return;
    }
    if declared.topology == Topology::Single {
        let text = "one control plane, as declared: while it is away nothing changes, and nothing takes over";
        out.push(VOTES.finding("the registry", text));
        return;
    }
    let (all, majority, up) = (quorum.votes().all, quorum.votes().needed(), quorum.votes().up);
    let mut sites: BTreeMap<&str, usize> = declared.sites.values().map(|site| (site.as_str(), 0)).collect();
    for (member, _) in quorum.voters().iter().filter(|(_, stand)| stand.counts()) {
        *sites.entry(site(declared, member)).or_default() += 1;
    }
    let leaderless = quorum.count(|stand| stand == Stand::Leaderless) > 0;
    let answer = if leaderless { "answer and know a leader" } else { "answer" };
    if up < majority {
        let text =
            format!("{up} of {all} voters {answer}, {majority} are needed: whether there are writes is not known");
        let finding = VOTES.finding("the registry", text).help("first mend what is said of the others' endpoints");
        out.push(Finding { severity: Severity::Warning, ..finding });
        return;
    }
    let mut stop = Vec::new();
    let mut notes = Vec::new();
    for (site, there) in &sites {
        let left = up - there;
        let goes_on = left >= majority;
        if !goes_on {
            stop.push(*site);
        }
        let then = if goes_on { "writes go on" } else { "no writes" };
        notes.push(format!("without {site}: {left} of {all} votes, {majority} needed: {then}"));
    }
    let text = if stop.is_empty() {
        format!("{up} of {all} voters {answer}; the loss of any one site leaves a majority")
    } else {
        format!("{up} of {all} voters {answer}; the loss of {} would stop all writes", stop.join(" or "))
    };
    let mut finding = VOTES.finding("the registry", text);
    finding.notes = notes;
    if !stop.is_empty() {
        finding.severity = Severity::Warning;
        finding = finding.help("bring back what is away before anything else is stopped");
    }
    out.push(finding);
}

fn site<'a>(declared: &'a Declared, member: &Member) -> &'a str {
    let node = member.peer_urls.iter().find_map(|url| declared.node_of(url));
    node.and_then(|node| declared.sites.get(node)).map_or("a site that is not known", String::as_str)
}
