//! The registry as a whole: every key read, put together by site, node, service, data set. Pure: from keys to tables.

mod object;
mod tables;

use std::collections::BTreeMap;

pub use object::{claims, objects};
pub use tables::{claims as claim_table, render};

use crate::layout::contents::{self, Fault, Live};
use crate::layout::values::{Claim, Identity, Schema, State, WantData, WantNode, WantQuorum, WantService, WantSite};
use crate::layout::{Label, Time};
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
    /// What it announces and reports.
    pub live: Live,
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
    pub fn of<'a>(items: impl IntoIterator<Item = &'a Item> + Clone) -> Overview {
        let (contents, faults) = contents::read(items.clone());
        let keys: Vec<&Item> = items.into_iter().collect();
        let bad = faults.into_iter().filter_map(|(number, fault)| match fault {
            Fault::Key(error) => Some((text_of(&keys[number].key), error.to_string())),
            Fault::Value(error) => Some((text_of(&keys[number].key), error.to_string())),
            // It says what it says; `fitout check` tells of leases.
            Fault::LeaseMissing | Fault::LeaseGiven => None,
        });
        let mut nodes: BTreeMap<Label, Node> = BTreeMap::new();
        for (node, want) in contents.nodes {
            nodes.entry(node).or_default().want = Some(want);
        }
        for (node, live) in contents.live {
            nodes.entry(node).or_default().live = live;
        }
        Overview {
            identity: contents.identity.map(|(identity, _)| identity),
            schema: contents.schema,
            quorum: contents.quorum,
            sites: contents.sites,
            nodes,
            services: contents.services,
            data: contents.data,
            claims: contents.claims,
            bad: bad.collect(),
        }
    }

    /// How a node stands at a time, and why.
    pub fn standing(&self, node: &Node, now: Time) -> (Standing, String) {
        let Some(here) = &node.live.here else { return (Standing::Away, String::new()) };
        let generation = self.identity.as_ref().map(|identity| identity.generation);
        if generation.is_some_and(|generation| generation != here.generation) {
            return (Standing::OldGeneration, format!("it announces itself in generation {}", here.generation));
        }
        let Some(health) = &node.live.health else { return (Standing::Warn, "it does not say how it is".to_owned()) };
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
