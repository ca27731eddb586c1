//! What a member measures itself: its Prometheus text at `/metrics` of the client port.
//!
//! The listener serves it beside gRPC, whatever `listen-metrics-urls` says (etcd 3.4 to 3.6: `embed/etcd.go`
//! serveClients, `etcdhttp.HandleMetrics`).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::etcd::ids::Id;

/// Most bytes that are read. A member of a large registry gives some 200 KiB.
pub const LIMIT: u64 = 4 << 20;

/// What rules read of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Mean round trip to each other member, since this one was started. A member notes one every 30 s
    /// (`rafthttp/probing_status.go`), so after a start there is none at first.
    pub round_trips: BTreeMap<Id, Duration>,
    /// `quota-backend-bytes` as it runs.
    pub quota: Option<u64>,
}

/// Reads the text. Lines that are not understood are passed over.
pub fn parse(text: &str) -> Metrics {
    let mut sums: BTreeMap<Id, f64> = BTreeMap::new();
    let mut counts: BTreeMap<Id, f64> = BTreeMap::new();
    let mut metrics = Metrics::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        if let Some(rest) = name.strip_prefix("etcd_network_peer_round_trip_time_seconds_") {
            let into = match rest.split('{').next() {
                Some("sum") => &mut sums,
                Some("count") => &mut counts,
                _ => continue,
            };
            if let Some(id) = label(rest, "To").and_then(|id| id.parse().ok()) {
                into.insert(id, value);
            }
        } else if name == "etcd_server_quota_backend_bytes" && value >= 0.0 {
            metrics.quota = Some(value as u64);
        }
    }
    for (id, sum) in sums {
        let count = counts.get(&id).copied().unwrap_or_default();
        if count >= 1.0
            && let Ok(mean) = Duration::try_from_secs_f64(sum / count)
        {
            metrics.round_trips.insert(id, mean);
        }
    }
    metrics
}

/// The value of a label in `name{a="x",b="y"}`.
fn label<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, labels) = text.split_once('{')?;
    let labels = labels.strip_suffix('}')?;
    labels.split(',').find_map(|one| one.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_per_member_and_the_quota() {
        let text = "# HELP etcd_network_peer_round_trip_time_seconds Round-Trip-Time histogram between peers\n\
            etcd_network_peer_round_trip_time_seconds_bucket{To=\"91b77ff8891250ac\",le=\"0.0001\"} 0\n\
            etcd_network_peer_round_trip_time_seconds_sum{To=\"91b77ff8891250ac\"} 0.36\n\
            etcd_network_peer_round_trip_time_seconds_count{To=\"91b77ff8891250ac\"} 3\n\
            etcd_network_peer_round_trip_time_seconds_sum{To=\"834028c884b672c\"} 0\n\
            etcd_network_peer_round_trip_time_seconds_count{To=\"834028c884b672c\"} 0\n\
            etcd_server_quota_backend_bytes 2.147483648e+09\n\
            nonsense\n\
            etcd_network_peer_round_trip_time_seconds_sum{To=\"x\"} 1\n";
        let metrics = parse(text);
        assert_eq!(metrics.round_trips, BTreeMap::from([(Id(0x91b7_7ff8_8912_50ac), Duration::from_millis(120))]));
        assert_eq!(metrics.quota, Some(2 << 30));
        assert_eq!(parse("<html>"), Metrics::default());
    }
}
