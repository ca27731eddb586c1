//! Which votes are left when a site is lost.

use std::collections::BTreeMap;

use super::{Declared, member_at, rule};
use crate::declaration::Topology;
use crate::finding::{Finding, Rule, Severity};
use crate::live::observe::{Member, Observed};

/// Votes per site.
pub static VOTES: Rule = rule(
    "live-votes",
    Severity::Notice,
    "which votes are left after the loss of each single site",
    "More than half of all voters in the member list must reach each other, else nothing is written. A voter that is \
     down, or was never started, still counts. So for each site: voters that answer now and are elsewhere, against \
     the majority of all. A warning when the loss of one more site would stop the writes: then what is \
     down must come back first. Members of a site that is not known (not declared) are named. With topology `single` \
     nothing takes over, as declared.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&VOTES];

/// What is known of a voter.
struct Voter<'a> {
    site: &'a str,
    /// It answers, or was not asked.
    up: bool,
}

/// Judges the loss of each site in turn.
pub fn judge(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    if declared.sites.len() < declared.members.len() {
        // An image of an early version knows only its own site.
        return;
    }
    let voters: Vec<Voter<'_>> =
        live.iter().filter(|m| !m.learner).map(|m| voter(declared, observed, live, m)).collect();
    if declared.topology == Topology::Single {
        let text = "one control plane, as declared: while it is away nothing changes, and nothing takes over";
        out.push(VOTES.finding("the registry", text));
        return;
    }
    let (all, up) = (voters.len(), voters.iter().filter(|v| v.up).count());
    let majority = all / 2 + 1;
    let mut sites: BTreeMap<&str, usize> = declared.sites.values().map(|site| (site.as_str(), 0)).collect();
    for voter in voters.iter().filter(|v| v.up) {
        *sites.entry(voter.site).or_default() += 1;
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
    let text = if up < majority {
        format!("{up} of {all} voters answer, {majority} are needed: there are no writes now")
    } else if stop.is_empty() {
        format!("{up} of {all} voters answer; the loss of any one site leaves a majority")
    } else {
        format!("{up} of {all} voters answer; the loss of {} would stop all writes", stop.join(" or "))
    };
    let mut finding = VOTES.finding("the registry", text);
    finding.notes = notes;
    if !stop.is_empty() {
        finding.severity = Severity::Warning;
        finding = finding.help("bring back what is away before anything else is stopped");
    }
    out.push(finding);
}

fn voter<'a>(declared: &'a Declared, observed: &Observed, live: &[Member], member: &Member) -> Voter<'a> {
    let node = member.peer_urls.iter().find_map(|url| declared.node_of(url));
    let site = node.and_then(|node| declared.sites.get(node)).map_or("a site that is not known", String::as_str);
    let mut asked = false;
    for view in &observed.views {
        match &view.answer {
            Ok(answer) if answer.member == member.id => return Voter { site, up: true },
            _ => asked |= member_at(live, &view.endpoint).is_some_and(|at| at.id == member.id),
        }
    }
    Voter { site, up: !asked }
}
