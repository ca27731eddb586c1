//! Rules about round trips: what etcd's intervals bear.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Declared, members, ours, rule};
use crate::etcd::ids::Id;
use crate::finding::{Finding, Rule, Severity};
use crate::live::observe::Observed;

/// Too far apart.
pub static ROUND_TRIP: Rule = rule(
    "live-round-trip",
    Severity::Error,
    "a round trip is longer than the timing bears",
    "Heartbeat and election timeout follow from the declared round trip (etcd's tuning guide: heartbeat at least half of \
     it, election timeout at least ten times). Over longer ones a leader is given up for dead while it lives, and \
     writes stop for each election. An error when members measured it between each other: the mean since their start, \
     from `etcd_network_peer_round_trip_time_seconds`, of which there is one value every 30 s. While there is none, \
     the time of a status request from this host is taken, and is a warning: this host may be far from all members.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&ROUND_TRIP];

/// Judges what members measured, else what this host did.
pub fn judge(declared: &Declared, observed: &Observed, out: &mut Vec<Finding>) {
    let bears = declared.limits.bears();
    let live = members::reference(declared, observed).unwrap_or_default();
    let name = |id: &Id| live.iter().find(|m| m.id == *id).map_or_else(|| id.to_string(), |m| m.name.clone());
    // Both ends measure: the longer one of each pair counts.
    let mut pairs: BTreeMap<(Id, Id), (Duration, Id, Id)> = BTreeMap::new();
    let mut measured = BTreeSet::new();
    for (_, answer) in ours(declared, observed) {
        let Ok(metrics) = &answer.metrics else { continue };
        for (to, mean) in metrics.round_trips.iter().filter(|(to, _)| live.iter().any(|m| m.id == **to)) {
            measured.extend([answer.member, *to]);
            let pair = (answer.member.min(*to), answer.member.max(*to));
            let longest = pairs.entry(pair).or_insert((*mean, answer.member, *to));
            if *mean > longest.0 {
                *longest = (*mean, answer.member, *to);
            }
        }
    }
    for (mean, from, to) in pairs.into_values().filter(|(mean, ..)| *mean > bears) {
        let text = format!("the round trip is {}, the timing bears {}", milliseconds(mean), milliseconds(bears));
        let finding = ROUND_TRIP.finding(format!("{} to {}", name(&from), name(&to)), text);
        out.push(intervals(finding, declared).help(format!(
            "look at the route between the two; if it is so, declare `[registry] round-trip = \"{}\"` and build anew",
            milliseconds(mean).replace(' ', "")
        )));
    }
    for (endpoint, answer) in ours(declared, observed) {
        if answer.round_trip > bears && !measured.contains(&answer.member) {
            let text = format!(
                "answers this host after {}, the timing bears {} between members",
                milliseconds(answer.round_trip),
                milliseconds(bears)
            );
            let mut finding = ROUND_TRIP.finding(endpoint, text);
            finding.severity = Severity::Warning;
            finding = intervals(finding, declared).note("the members have not measured it yet: they do every 30 s");
            out.push(finding.help("check again in a minute; if this host is far from all members, it does not matter"));
        }
    }
}

fn intervals(finding: Finding, declared: &Declared) -> Finding {
    let limits = &declared.limits;
    finding.note(format!(
        "heartbeat {}, election timeout {}",
        milliseconds(limits.heartbeat),
        milliseconds(limits.election)
    ))
}

fn milliseconds(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}
