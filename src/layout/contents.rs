//! All keys of a registry, read into their types. What cannot be read is a fault of its key, and the rest goes on.

use std::collections::BTreeMap;

use super::keys::{CertificateUse, Key, KeyError};
use super::text::{HexId, Label, Time};
use super::values::{
    Backup, Certificate, Claim, Health, Here, Identity, Schema, Service, Value, ValueError, WantData, WantNode,
    WantQuorum, WantService, WantSite,
};

/// A key with what etcd knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// Revision of its last change.
    pub revision: i64,
    /// Its lease; 0 when it has none.
    pub lease: i64,
}

/// What is wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is no key of this schema.
    Key(KeyError),
    /// Its value is none of its kind.
    Value(ValueError),
    /// It ends with nobody: a key of `live/` without a lease.
    LeaseMissing,
    /// It ends with somebody: a key that is to stay, with a lease.
    LeaseGiven,
}

/// The readable keys of `/mesh/`, by what they are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// `identity`, and the revision of its last change.
    pub identity: Option<(Identity, i64)>,
    /// `schema`.
    pub schema: Option<Schema>,
    /// `want/quorum`.
    pub quorum: Option<WantQuorum>,
    /// `want/site/`.
    pub sites: BTreeMap<Label, WantSite>,
    /// `want/node/`.
    pub nodes: BTreeMap<Label, WantNode>,
    /// `want/service/`.
    pub services: BTreeMap<Label, WantService>,
    /// `want/data/`.
    pub data: BTreeMap<Label, WantData>,
    /// `claim/`, by set and site.
    pub claims: BTreeMap<(Label, Label), Claim>,
    /// `live/` and `ops/`, by node.
    pub live: BTreeMap<Label, Live>,
}

/// What a node announces and reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// `here`.
    pub here: Option<Here>,
    /// `health`.
    pub health: Option<Health>,
    /// `service/`.
    pub services: BTreeMap<Label, Service>,
    /// `ops/<node>/cert/`.
    pub certificates: BTreeMap<CertificateUse, Certificate>,
    /// `ops/<node>/backup/`, oldest first.
    pub backups: BTreeMap<(Time, HexId), Backup>,
}

/// Reads keys of any order; each fault comes with the number of its item.
pub fn read<'a>(items: impl IntoIterator<Item = &'a Item>) -> (Contents, Vec<(usize, Fault)>) {
    let (mut contents, mut faults) = (Contents::default(), Vec::new());
    for (number, item) in items.into_iter().enumerate() {
        let key = match Key::parse(&item.key) {
            Ok(key) => key,
            Err(error) => {
                faults.push((number, Fault::Key(error)));
                continue;
            }
        };
        match (key.needs_lease(), item.lease != 0) {
            (true, false) => faults.push((number, Fault::LeaseMissing)),
            (false, true) => faults.push((number, Fault::LeaseGiven)),
            _ => {}
        }
        match Value::decode(&key, &item.value) {
            Ok(value) => contents.take(key, value, item.revision),
            Err(error) => faults.push((number, Fault::Value(error))),
        }
    }
    (contents, faults)
}

impl Contents {
    fn take(&mut self, key: Key, value: Value, revision: i64) {
        match (key, value) {
            (Key::Identity, Value::Identity(value)) => self.identity = Some((value, revision)),
            (Key::Schema, Value::Schema(value)) => self.schema = Some(value),
            (Key::WantQuorum, Value::WantQuorum(value)) => self.quorum = Some(value),
            (Key::WantSite(site), Value::WantSite(value)) => drop(self.sites.insert(site, value)),
            (Key::WantNode(node), Value::WantNode(value)) => drop(self.nodes.insert(node, value)),
            (Key::WantService(service), Value::WantService(value)) => drop(self.services.insert(service, value)),
            (Key::WantData(set), Value::WantData(value)) => drop(self.data.insert(set, value)),
            (Key::Claim { set, site }, Value::Claim(value)) => drop(self.claims.insert((set, site), value)),
            (Key::Here(node), Value::Here(value)) => self.of(node).here = Some(value),
            (Key::Health(node), Value::Health(value)) => self.of(node).health = Some(value),
            (Key::Service { node, service }, Value::Service(value)) => {
                drop(self.of(node).services.insert(service, value));
            }
            (Key::Certificate { node, purpose }, Value::Certificate(value)) => {
                drop(self.of(node).certificates.insert(purpose, value));
            }
            (Key::Backup { node, time, revision }, Value::Backup(value)) => {
                drop(self.of(node).backups.insert((time, revision), value));
            }
            // `Value::decode` gives the kind of its key.
            _ => {}
        }
    }

    fn of(&mut self, node: Label) -> &mut Live {
        self.live.entry(node).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::values::tests::GOOD;

    fn entries() -> Vec<Item> {
        let entry = |(key, value): &(&str, &str)| Item {
            key: key.as_bytes().to_vec(),
            value: value.as_bytes().to_vec(),
            lease: if key.starts_with("/mesh/live/") { 7 } else { 0 },
            revision: 3,
        };
        GOOD.iter().map(entry).collect()
    }

    #[test]
    fn each_kind_has_its_place() {
        let (contents, faults) = read(&entries());
        assert_eq!(faults, []);
        let live = &contents.live["lis1"];
        let counts = [
            usize::from(contents.identity.is_some_and(|(_, revision)| revision == 3)),
            usize::from(contents.schema.is_some()),
            usize::from(contents.quorum.is_some()),
            contents.sites.len(),
            contents.nodes.len(),
            contents.services.len(),
            contents.data.len(),
            contents.claims.len(),
            usize::from(live.here.is_some()),
            usize::from(live.health.is_some()),
            live.services.len(),
            live.certificates.len(),
            live.backups.len(),
        ];
        assert_eq!(counts, [1; 13]);
        assert_eq!(counts.len(), GOOD.len());
    }

    #[test]
    fn a_fault_is_of_its_key_and_the_rest_goes_on() {
        for n in 0..GOOD.len() {
            let live = GOOD[n].0.starts_with("/mesh/live/");
            let mut all = entries();
            all[n].lease = if live { 0 } else { 7 };
            let want = if live { Fault::LeaseMissing } else { Fault::LeaseGiven };
            assert_eq!(read(&all).1, [(n, want)]);
            let mut all = entries();
            all[n].value = b"\xff".to_vec();
            assert_eq!(read(&all).1, [(n, Fault::Value(ValueError::NotUtf8(0)))]);
            let mut all = entries();
            all[n].key.extend(b"/x");
            let (contents, faults) = read(&all);
            assert!(matches!(faults.as_slice(), [(at, Fault::Key(_))] if *at == n), "{faults:?}");
            assert_ne!(contents, read(&entries()).0);
        }
    }
}
