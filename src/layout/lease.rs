//! How long a node's lease lives.

use std::time::Duration;

/// No lease is shorter: etcd prolongs leases to 1.5 times the election timeout anyway (`minTTL` of its
/// `server/etcdserver/server.go`), and a mesh across sites must outlive a short cut of the line.
pub const LEAST: Duration = Duration::from_secs(30);

/// How many renewals may be lost before the lease ends.
pub const RENEWALS: u32 = 3;

/// How many elections a lease outlives: no renewal is answered while there is no leader.
pub const ELECTIONS: u32 = 2;

/// TTL of a node's lease in whole seconds, as etcd counts it: at least 30 s, three renewals and two elections.
pub fn ttl(renewal: Duration, election: Duration) -> Duration {
    let ttl = LEAST.max(renewal.saturating_mul(RENEWALS)).max(election.saturating_mul(ELECTIONS));
    Duration::from_secs(ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0)))
}

/// The longest renewal that a TTL allows.
pub fn renewal(ttl: Duration) -> Duration {
    ttl / RENEWALS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_three_in_whole_seconds() {
        let ms = Duration::from_millis;
        for (renewal, election, seconds) in
            [(10_000, 1_000, 30), (10_001, 1_000, 31), (20_000, 1_000, 60), (1_000, 50_000, 100), (1_000, 15_500, 31)]
        {
            assert_eq!(ttl(ms(renewal), ms(election)).as_secs(), seconds, "{renewal} {election}");
        }
        assert_eq!(renewal(Duration::from_secs(30)).as_secs(), 10);
        assert!(ttl(Duration::MAX, Duration::ZERO) > LEAST);
    }
}
