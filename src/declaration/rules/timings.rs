//! etcd's timing against the round trip, and its quota.

use std::time::Duration;

use super::Check;
use crate::declaration::model::Mesh;
use crate::declaration::section::Section;
use crate::declaration::show_duration;
use crate::declaration::timing::{LEAST_HEARTBEAT, LONGEST_ELECTION};
use crate::finding::{Finding, Rule, Severity};

const NEEDS: &[Section] = &[Section::Registry];

pub(super) const CHECKS: &[Check] = &[
    Check { rule: &ROUND_TRIP_TOO_LONG, needs: NEEDS, run: round_trip_too_long },
    Check { rule: &ROUND_TRIP_ABOVE_WORST, needs: NEEDS, run: round_trip_above_worst },
    Check { rule: &HEARTBEAT_BOUNDS, needs: NEEDS, run: heartbeat_bounds },
    Check { rule: &ELECTION_BOUNDS, needs: NEEDS, run: election_bounds },
    Check { rule: &LARGE_QUOTA, needs: NEEDS, run: large_quota },
];

/// The round trip is too long for etcd.
pub static ROUND_TRIP_TOO_LONG: Rule = Rule {
    code: "round-trip-too-long",
    family: "declaration",
    severity: Severity::Error,
    summary: "the round trip is too long for etcd",
    explanation: "The election timeout must be ten round trips at least (etcd tuning guide), and etcd refuses one of more \
        than 50 s (`maxElectionMs`). So the longest round trip is 5 s.",
};

/// A pair's round trip is longer than the worst one.
pub static ROUND_TRIP_ABOVE_WORST: Rule = Rule {
    code: "round-trip-above-worst",
    family: "declaration",
    severity: Severity::Error,
    summary: "a pair of sites has a longer round trip than the worst one declared",
    explanation: "`[registry] round-trip` is the worst between any two sites, and etcd's timing is derived from it. The \
        table `[round-trip]` may only say that some pairs are nearer.",
};

/// The heartbeat does not fit the round trip.
pub static HEARTBEAT_BOUNDS: Rule = Rule {
    code: "heartbeat-bounds",
    family: "declaration",
    severity: Severity::Error,
    summary: "an override of the heartbeat does not fit the round trip",
    explanation: "etcd's tuning guide wants a heartbeat of 0.5 to 1.5 round trips; where that is less than 100 ms, etcd's \
        default of 100 ms is good too. Shorter ones load the network for nothing, longer ones delay elections and \
        writes. Without the override the heartbeat is max(100 ms, round trip).",
};

/// The election timeout does not fit the round trip.
pub static ELECTION_BOUNDS: Rule = Rule {
    code: "election-bounds",
    family: "declaration",
    severity: Severity::Error,
    summary: "an override of the election timeout does not fit the round trip or the heartbeat",
    explanation: "It must be ten round trips at least (etcd tuning guide), else a slow answer costs the leader; five \
        heartbeats at least and 50 s at most, else etcd does not start. Without the override it is max(1 s, 10 round \
        trips, 10 heartbeats).",
};

/// The quota is beyond what etcd advises.
pub static LARGE_QUOTA: Rule = Rule {
    code: "large-quota",
    family: "declaration",
    severity: Severity::Warning,
    summary: "the quota is beyond what etcd advises",
    explanation: "etcd warns when it starts with a quota above 8 GiB (`quota-backend-bytes`): restarts, snapshots and \
        restores become slow. The registry of a mesh takes some MiB.",
};

fn round_trip_too_long(mesh: &Mesh, out: &mut Vec<Finding>) {
    let registry = &mesh.registry;
    if 10 * registry.round_trip.value > LONGEST_ELECTION {
        out.push(
            ROUND_TRIP_TOO_LONG
                .finding(
                    "registry.round-trip",
                    format!("a round trip of {} is too long for etcd", show_duration(registry.round_trip.value)),
                )
                .at(&registry.round_trip.span)
                .note(format!(
                    "the election timeout would be {}, and etcd allows 50s",
                    show_duration(10 * registry.round_trip.value)
                ))
                .help("voters so far apart cannot share a registry: move one, or declare `topology = \"single\"`"),
        );
    }
}

fn round_trip_above_worst(mesh: &Mesh, out: &mut Vec<Finding>) {
    let worst = &mesh.registry.round_trip;
    for ((a, b), value) in mesh.registry.round_trips.iter().filter(|(_, v)| v.value > worst.value) {
        let (this, worst_text) = (show_duration(value.value), show_duration(worst.value));
        out.push(
            ROUND_TRIP_ABOVE_WORST
                .finding(
                    format!("round-trip.{a}.{b}"),
                    format!("{this} is longer than the worst round trip of {worst_text}"),
                )
                .at(&value.span)
                .related(&worst.span, "the worst one, from which the timing is derived")
                .help(format!("set `[registry] round-trip = \"{this}\"` if that is so")),
        );
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

fn heartbeat_bounds(mesh: &Mesh, out: &mut Vec<Finding>) {
    let round_trip = &mesh.registry.round_trip;
    let Some(heartbeat) = &mesh.registry.heartbeat else { return };
    let (low, high) = (round_trip.value / 2, LEAST_HEARTBEAT.max(round_trip.value * 3 / 2));
    if heartbeat.value < low || heartbeat.value > high {
        out.push(
            HEARTBEAT_BOUNDS
                .finding(
                    "registry.heartbeat",
                    format!(
                        "a heartbeat of {} does not fit a round trip of {}",
                        show_duration(heartbeat.value),
                        show_duration(round_trip.value)
                    ),
                )
                .at(&heartbeat.span)
                .related(&round_trip.span, "the worst round trip")
                .help(format!("choose {} to {}, or leave it out", milliseconds(low), milliseconds(high))),
        );
    }
}

fn election_bounds(mesh: &Mesh, out: &mut Vec<Finding>) {
    let round_trip = &mesh.registry.round_trip;
    let timing = mesh.timing();
    let heartbeat = timing.heartbeat;
    let Some(election) = &mesh.registry.election else {
        // Derived from an override of the heartbeat it can exceed what etcd allows, too.
        if let (Some(given), true) = (&mesh.registry.heartbeat, timing.election > LONGEST_ELECTION) {
            out.push(
                ELECTION_BOUNDS
                    .finding(
                        "registry.heartbeat",
                        format!("ten heartbeats of {} are more than etcd's 50s", show_duration(heartbeat)),
                    )
                    .at(&given.span)
                    .help("choose at most 5s, or set `election` too"),
            );
        }
        return;
    };
    let low = (10 * round_trip.value).max(5 * heartbeat);
    let message = if election.value > LONGEST_ELECTION {
        format!("an election timeout of {} is more than etcd's 50s", show_duration(election.value))
    } else if election.value < 10 * round_trip.value {
        format!(
            "an election timeout of {} is less than ten round trips of {}",
            show_duration(election.value),
            show_duration(round_trip.value)
        )
    } else if election.value < 5 * heartbeat {
        format!(
            "an election timeout of {} is less than five heartbeats of {}",
            show_duration(election.value),
            show_duration(heartbeat)
        )
    } else {
        return;
    };
    out.push(
        ELECTION_BOUNDS
            .finding("registry.election", message)
            .at(&election.span)
            .related(&round_trip.span, "the worst round trip")
            .help(format!("choose {} to 50000ms, or leave it out", milliseconds(low))),
    );
}

fn large_quota(mesh: &Mesh, out: &mut Vec<Finding>) {
    let quota = &mesh.registry.quota;
    if quota.value > 8 << 30 {
        out.push(
            LARGE_QUOTA
                .finding("registry.quota", "the quota is above 8 GiB, and etcd warns of that at each start")
                .at(&quota.span)
                .help("2GiB is ample for a mesh of thousands of nodes"),
        );
    }
}
