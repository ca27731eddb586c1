//! The registry as a whole: every key read, put together by site, node, service, data set. Pure: from keys to tables.

mod object;
mod tables;

use std::collections::BTreeMap;

pub use object::{claims, objects};
pub use tables::{claims as claim_table, render};

use crate::layout::values::{
    Backup, Certificate, Claim, Health, Here, Identity, Schema, Service, State, WantData, WantNode, WantQuorum,
    WantService, WantSite,
};
use crate::layout::{CertificateUse, HexId, Key, Label, Time, Value};
use crate::live::client::Item;
use crate::live::words::{short, text};

/// A node writes its health every five minutes at least; after three times that, nothing but its lease is alive.
pub const HEALTH_IS_OLD: i64 = 15 * 60;

/// What a registry says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// Which registry it is.
    pub identity: Option<Identity>,
    /// Its schema.
    pub schema: Option<Schema>,
    /// Who votes.
    pub quorum: Option<WantQuorum>,
    /// The declared sites.
    pub sites: BTreeMap<Label, WantSite>,
    /// Every node that is declared or that has written something.
    pub nodes: BTreeMap<Label, Node>,
    /// The declared services.
    pub services: BTreeMap<Label, WantService>,
    /// The declared data sets.
    pub data: BTreeMap<Label, WantData>,
    /// Claims by data set and site.
    pub claims: BTreeMap<(Label, Label), Claim>,
    /// Keys below `/mesh/` that cannot be understood, each with the reason.
    pub bad: Vec<(String, String)>,
}

/// What there is of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// What is declared.
    pub want: Option<WantNode>,
    /// It is here.
    pub here: Option<Here>,
    /// How it is.
    pub health: Option<Health>,
    /// What it offers.
    pub offers: BTreeMap<Label, Service>,
    /// Its certificates.
    pub certificates: BTreeMap<CertificateUse, Certificate>,
    /// Its backups by time and revision.
    pub backups: BTreeMap<(Time, HexId), Backup>,
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It announces itself and says that it is well.
    Ok,
    /// It says that somebody should look.
    Warn,
    /// It says that something does not work.
    Bad,
    /// It announces itself, and has not said for long how it is.
    Stuck,
    /// Its announcements are of another generation of the registry.
    OldGeneration,
    /// It does not announce itself.
    Away,
}

impl Standing {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Ok => "ok",
            Standing::Warn => "warn",
            Standing::Bad => "bad",
            Standing::Stuck => "stuck",
            Standing::OldGeneration => "old-generation",
            Standing::Away => "away",
        }
    }

    /// It lives, as far as the registry can tell.
    pub fn lives(self) -> bool {
        !matches!(self, Standing::OldGeneration | Standing::Away)
    }
}

impl Overview {
    /// Puts keys together.
    pub fn of<'a>(items: impl IntoIterator<Item = &'a Item>) -> Overview {
        let mut all = Overview::default();
        for item in items {
            let read = Key::parse(&item.key).map_err(|error| error.to_string());
            let read = read.and_then(|key| match Value::decode(&key, &item.value) {
                Ok(value) => Ok((key, value)),
                Err(error) => Err(error.to_string()),
            });
            match read {
                Ok((key, value)) => all.take(key, value),
                Err(reason) => all.bad.push((text_of(&item.key), reason)),
            }
        }
        all
    }

    fn take(&mut self, key: Key, value: Value) {
        match (key, value) {
            (Key::Identity, Value::Identity(value)) => self.identity = Some(value),
            (Key::Schema, Value::Schema(value)) => self.schema = Some(value),
            (Key::WantQuorum, Value::WantQuorum(value)) => self.quorum = Some(value),
            (Key::WantSite(site), Value::WantSite(value)) => drop(self.sites.insert(site, value)),
            (Key::WantService(service), Value::WantService(value)) => drop(self.services.insert(service, value)),
            (Key::WantData(set), Value::WantData(value)) => drop(self.data.insert(set, value)),
            (Key::Claim { set, site }, Value::Claim(value)) => drop(self.claims.insert((set, site), value)),
            (Key::WantNode(node), Value::WantNode(value)) => self.node(node).want = Some(value),
            (Key::Here(node), Value::Here(value)) => self.node(node).here = Some(value),
            (Key::Health(node), Value::Health(value)) => self.node(node).health = Some(value),
            (Key::Service { node, service }, Value::Service(value)) => {
                self.node(node).offers.insert(service, value);
            }
            (Key::Certificate { node, purpose }, Value::Certificate(value)) => {
                self.node(node).certificates.insert(purpose, value);
            }
            (Key::Backup { node, time, revision }, Value::Backup(value)) => {
                self.node(node).backups.insert((time, revision), value);
            }
            // `Value::decode` gives the value of the key's kind.
            _ => {}
        }
    }

    fn node(&mut self, name: Label) -> &mut Node {
        self.nodes.entry(name).or_default()
    }

    /// How a node stands at a time, and why.
    pub fn standing(&self, node: &Node, now: Time) -> (Standing, String) {
        let Some(here) = &node.here else { return (Standing::Away, String::new()) };
        let generation = self.identity.as_ref().map(|identity| identity.generation);
        if generation.is_some_and(|generation| generation != here.generation) {
            return (Standing::OldGeneration, format!("it announces itself in generation {}", here.generation));
        }
        let Some(health) = &node.health else { return (Standing::Warn, "it does not say how it is".to_owned()) };
        let age = now.since(health.at);
        if age > HEALTH_IS_OLD {
            return (Standing::Stuck, format!("its lease lives, and its last health is {} min old", age / 60));
        }
        let standing = match health.state {
            State::Ok => Standing::Ok,
            State::Warn => Standing::Warn,
            State::Bad => Standing::Bad,
        };
        let wrong = health.checks.iter().filter(|(_, check)| check.state != State::Ok).map(|(name, check)| {
            let why = check.text.as_deref().map_or(String::new(), |why| format!(": {}", short(why.as_bytes())));
            format!("{name}{why}")
        });
        (standing, wrong.collect::<Vec<_>>().join("; "))
    }

    /// The nodes that may claim a data set in a site.
    pub fn claimants(&self, set: &Label, site: &Label) -> Vec<&Label> {
        let nodes = self.data.get(set).into_iter().flat_map(|data| &data.nodes);
        let in_site = |node: &&Label| {
            self.nodes.get(*node).and_then(|node| node.want.as_ref()).is_some_and(|want| want.site == *site)
        };
        nodes.filter(in_site).collect()
    }

    /// Every data set and site that somebody may claim, or has claimed.
    pub fn places(&self) -> Vec<(Label, Label)> {
        let mut places: Vec<(Label, Label)> = self.claims.keys().cloned().collect();
        for (set, data) in &self.data {
            let sites = data.nodes.iter().filter_map(|node| self.nodes.get(node)?.want.as_ref());
            places.extend(sites.map(|want| (set.clone(), want.site.clone())));
        }
        places.sort();
        places.dedup();
        places
    }
}

fn text_of(key: &[u8]) -> String {
    if key.len() > 200 { short(key) } else { text(key) }
}

#[cfg(test)]
mod tests;
