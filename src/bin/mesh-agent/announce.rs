//! What the registry shall hold of this node, and the changes that lead there.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use fitout::layout::values::{Here, Service};
use fitout::layout::{HexId, Key, Time, Uuid, values};
use fitout::link::{Change, Stored};

use crate::certificates::Seen;
use crate::facts::Facts;
use crate::health::Report;
use crate::version;

/// Of these SRV fields all services of a mesh have the same: none comes before another (RFC 2782).
const PRIORITY: u16 = 10;
const WEIGHT: u16 = 100;

/// Keys with their values and whether they are under the lease.
pub type Wanted = BTreeMap<String, (String, bool)>;

/// Under what a node announces itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The kernel's boot id.
    pub boot: Uuid,
    /// Generation of the registry.
    pub generation: NonZeroU32,
    /// Id of this node's member.
    pub member: Option<u64>,
    /// Since when this lease is held.
    pub since: Time,
}

/// All keys of this node, `health` being the encoded report.
///
/// # Errors
/// When a value cannot be written.
pub fn wanted(
    facts: &Facts,
    standing: &Standing,
    report: &Report,
    health: String,
    certificates: &[Seen],
) -> Result<Wanted, String> {
    let node = &facts.node;
    let here = Here {
        boot_id: standing.boot.clone(),
        image: None,
        generation: standing.generation,
        member_id: standing.member.map(HexId),
        since: standing.since,
        agent: version::name(),
        extra: Default::default(),
    };
    let text = |error: values::ValueError| error.to_string();
    let mut all = Wanted::new();
    all.insert(Key::Here(node.clone()).to_string(), (values::encode(&here).map_err(text)?, true));
    all.insert(Key::Health(node.clone()).to_string(), (health, true));
    for (name, ready) in &report.services {
        let Some(service) = facts.services.get(name) else { continue };
        let value = Service {
            host: facts.address.to_string(),
            port: service.port,
            priority: PRIORITY,
            weight: WEIGHT,
            ready: *ready,
            extra: Default::default(),
        };
        let key = Key::Service { node: node.clone(), service: name.clone() };
        all.insert(key.to_string(), (values::encode(&value).map_err(text)?, true));
    }
    for seen in certificates {
        let key = Key::Certificate { node: node.clone(), purpose: seen.purpose.clone() };
        all.insert(key.to_string(), (values::encode(&seen.certificate).map_err(text)?, false));
    }
    Ok(all)
}

/// The changes from what is there to what is wanted, under a lease. What is there and not wanted goes when it is under
/// `owned`: only this node writes there.
pub fn difference(there: &[Stored], wanted: &Wanted, lease: i64, owned: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    for (key, (value, leased)) in wanted {
        let lease = if *leased { lease } else { 0 };
        let is = there.iter().find(|stored| stored.key == key.as_bytes());
        if is.is_none_or(|stored| stored.value != value.as_bytes() || stored.lease != lease) {
            changes.push(Change::Put(key.clone(), value.clone(), lease));
        }
    }
    for stored in there {
        // A key that is no text is none of ours, and cannot be named here.
        let Ok(key) = std::str::from_utf8(&stored.key) else { continue };
        if key.starts_with(owned) && !wanted.contains_key(key) {
            changes.push(Change::Delete(key.to_owned()));
        }
    }
    changes
}

/// What is there after the changes.
pub fn after(mut there: Vec<Stored>, changes: &[Change], revision: i64) -> Vec<Stored> {
    for change in changes {
        let (Change::Put(key, ..) | Change::Delete(key)) = change;
        there.retain(|stored| stored.key != key.as_bytes());
        if let Change::Put(key, value, lease) = change {
            let (key, value) = (key.clone().into_bytes(), value.clone().into_bytes());
            there.push(Stored { key, value, lease: *lease, changed: revision });
        }
    }
    there
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;
    use fitout::layout::keys::live_of;

    fn sample() -> (Facts, Wanted) {
        let facts = facts::parse(facts::tests::TEXT).unwrap();
        let standing = Standing {
            boot: Uuid::of_random([7; 16]),
            generation: NonZeroU32::MIN,
            member: Some(0xabc),
            since: "2026-11-30T10:53:00Z".parse().unwrap(),
        };
        let services = [("postgres".parse().unwrap(), true), ("web".parse().unwrap(), false)].into();
        let report = Report { services, ..Report::default() };
        let wanted = wanted(&facts, &standing, &report, "{}".to_owned(), &[]).unwrap();
        (facts, wanted)
    }

    fn stored(wanted: &Wanted, lease: i64) -> Vec<Stored> {
        let one = |(key, (value, leased)): (&String, &(String, bool))| Stored {
            key: key.clone().into_bytes(),
            value: value.clone().into_bytes(),
            lease: if *leased { lease } else { 0 },
            changed: 9,
        };
        wanted.iter().map(one).collect()
    }

    #[test]
    fn every_value_is_of_schema_1() {
        let (_, wanted) = sample();
        let keys: Vec<&str> = wanted.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "/mesh/live/lis1/health",
                "/mesh/live/lis1/here",
                "/mesh/live/lis1/service/postgres",
                "/mesh/live/lis1/service/web"
            ]
        );
        for (key, (value, leased)) in &wanted {
            let key = Key::parse(key.as_bytes()).unwrap();
            assert_eq!(key.needs_lease(), *leased);
            if key.to_string().ends_with("/health") {
                continue;
            }
            values::Value::decode(&key, value.as_bytes()).unwrap();
        }
    }

    #[test]
    fn only_what_differs_is_written() {
        let (facts, wanted) = sample();
        let owned = live_of(&facts.node);
        let all = difference(&[], &wanted, 5, &owned);
        assert_eq!(all.len(), 4);
        let there = stored(&wanted, 5);
        assert_eq!(difference(&there, &wanted, 5, &owned), [], "a quiet node writes nothing");
        assert_eq!(difference(&there, &wanted, 6, &owned).len(), 4, "another lease takes all of them");
        let mut gone = there.clone();
        gone.remove(1);
        assert_eq!(difference(&gone, &wanted, 5, &owned).len(), 1);
        let mut more = there.clone();
        let mut other = |key: &[u8]| more.push(Stored { key: key.to_vec(), value: Vec::new(), lease: 0, changed: 1 });
        other(b"/mesh/live/lis1/service/old");
        other(b"/mesh/live/lis1/\xff");
        other(b"/mesh/ops/lis1/cert/public-web");
        assert_eq!(
            difference(&more, &wanted, 5, &owned),
            [Change::Delete("/mesh/live/lis1/service/old".to_owned())],
            "what others report stays"
        );
    }

    #[test]
    fn what_was_written_is_known_without_reading() {
        let (facts, wanted) = sample();
        let owned = live_of(&facts.node);
        let before = vec![Stored { key: b"/mesh/live/lis1/service/old".to_vec(), value: vec![], lease: 1, changed: 1 }];
        let changes = difference(&before, &wanted, 5, &owned);
        let there = after(before, &changes, 10);
        assert_eq!(there.len(), 4);
        assert_eq!(difference(&there, &wanted, 5, &owned), []);
    }
}
