//! etcd's timing, derived from the declared round trip.

use std::time::Duration;

use super::model::Mesh;

/// etcd's default heartbeat: never faster, since a slow disk or a busy host would lose the leader.
pub const LEAST_HEARTBEAT: Duration = Duration::from_millis(100);
/// etcd's default election timeout.
pub const LEAST_ELECTION: Duration = Duration::from_secs(1);
/// etcd refuses a longer election timeout (`server/embed/config.go`, `maxElectionMs`).
pub const LONGEST_ELECTION: Duration = Duration::from_secs(50);

/// What etcd's two intervals are. Whole milliseconds; the same on every voter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// `heartbeat-interval`.
    pub heartbeat: Duration,
    /// `election-timeout`.
    pub election: Duration,
}

/// The timing for a round trip: heartbeat = max(100 ms, round trip), election = max(1 s, 10 × round trip,
/// 10 × heartbeat), each unless overridden (etcd's tuning guide).
pub fn derive(round_trip: Duration, heartbeat: Option<Duration>, election: Option<Duration>) -> Timing {
    let heartbeat = heartbeat.unwrap_or_else(|| LEAST_HEARTBEAT.max(round_trip));
    let election = election.unwrap_or_else(|| LEAST_ELECTION.max(10 * round_trip).max(10 * heartbeat));
    Timing { heartbeat, election }
}

impl Mesh {
    /// etcd's timing of this mesh.
    pub fn timing(&self) -> Timing {
        let registry = &self.registry;
        derive(
            registry.round_trip.value,
            registry.heartbeat.as_ref().map(|h| h.value),
            registry.election.as_ref().map(|e| e.value),
        )
    }

    /// The declared round trip between two sites: the pair's own, else the worst one; nothing within a site.
    pub fn round_trip_between(&self, a: &str, b: &str) -> Duration {
        if a == b {
            return Duration::ZERO;
        }
        let pair = if a < b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) };
        self.registry.round_trips.get(&pair).map_or(self.registry.round_trip.value, |r| r.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing_follows_from_the_round_trip() {
        let ms = Duration::from_millis;
        for (round_trip, heartbeat, election, want) in [
            (1, None, None, (100, 1000)),
            (30, None, None, (100, 1000)),
            (150, None, None, (150, 1500)),
            (400, None, None, (400, 4000)),
            (30, Some(45), None, (45, 1000)),
            (200, Some(300), None, (300, 3000)),
            (30, None, Some(3000), (100, 3000)),
        ] {
            let timing = derive(ms(round_trip), heartbeat.map(ms), election.map(ms));
            assert_eq!((timing.heartbeat.as_millis(), timing.election.as_millis()), want, "{round_trip} ms");
        }
    }
}
