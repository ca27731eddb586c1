//! Who must talk to whom, and whether each pair does: proven by handshakes in memory and etcd's source-address rule.

use std::collections::BTreeMap;

use rayon::prelude::*;
use time::OffsetDateTime;

use super::config::https_host;
use super::facts::{Node, content};
use super::rules;
use crate::finding::{Finding, Rule};
use crate::pki::Use;
use crate::pki::handshake::{self, Role, Side};
use crate::pki::source_address::{self, Accepted};
use crate::tree::TreePath;

/// A port of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// 2380: voter to voter.
    Peer,
    /// 2379: node to voter.
    Client,
}

/// What came of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Both accept; on the peer port with the reason why the source address passes.
    Accepted(Option<Accepted>),
    /// The handshake fails.
    Refused {
        /// Who refuses.
        by: Role,
        /// Why.
        reason: String,
    },
    /// The handshake succeeds, and the listener refuses the source address.
    Source(String),
    /// A certificate, key or authority could not be read; that has findings of its own.
    Unproven(String),
}

/// One ordered pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Port.
    pub port: Port,
    /// The node that dials.
    pub from: String,
    /// The voter that listens.
    pub to: String,
    /// Of two images of one node, the one that this pair is about; the dialling side's first.
    pub image: Option<String>,
    /// The host that is dialled.
    pub host: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// Every ordered pair that must talk, over the images given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The pairs: peer port first, by names.
    pub cells: Vec<Cell>,
    /// How many voters there were; with one, only its own certificates could be tried against each other.
    pub voters: usize,
}

impl Matrix {
    /// Pairs that accept each other, of all pairs, on a port.
    pub fn count(&self, port: Port) -> (usize, usize) {
        let of = || self.cells.iter().filter(move |cell| cell.port == port);
        (of().filter(|cell| matches!(cell.outcome, Outcome::Accepted(_))).count(), of().count())
    }

    /// The proof in words, one line each.
    pub fn summary(&self) -> Vec<String> {
        let (peers, peer_pairs) = self.count(Port::Peer);
        let (clients, client_pairs) = self.count(Port::Client);
        let mut lines = Vec::new();
        match self.voters {
            0 => lines.push("no voter among the images: nothing to prove between nodes".to_owned()),
            1 => lines.push("one voter among the images: its own certificates were tried against each other".to_owned()),
            voters => lines.push(format!(
                "{peers} of {peer_pairs} ordered pairs of {voters} voters accept each other on the peer port (TLS 1.2 and \
                 1.3, source address)"
            )),
        }
        if client_pairs > 0 {
            lines.push(format!(
                "{clients} of {client_pairs} pairs of node and voter accept each other on the client port"
            ));
        }
        lines
    }

    /// A finding for each node that is refused and each reason, with the pairs that it meets.
    pub(super) fn findings(&self, out: &mut Vec<Finding>) {
        type Group<'a> = (&'static str, &'a str, Option<&'a str>, &'a str);
        let mut groups: BTreeMap<Group<'_>, (&'static Rule, Vec<&Cell>)> = BTreeMap::new();
        for cell in &self.cells {
            let (rule, refused, reason): (&'static Rule, _, _) = match (&cell.outcome, cell.port) {
                (Outcome::Accepted(_) | Outcome::Unproven(_), _) => continue,
                (Outcome::Source(reason), _) => (&rules::SOURCE, &cell.from, reason),
                (Outcome::Refused { by, reason }, port) => {
                    let rule: &'static Rule = if port == Port::Peer { &rules::PEERS } else { &rules::CLIENTS };
                    let refused = match by {
                        Role::Client => &cell.to,
                        Role::Server => &cell.from,
                    };
                    (rule, refused, reason)
                }
            };
            let image = cell.image.as_deref();
            groups.entry((rule.code, refused, image, reason)).or_insert_with(|| (rule, Vec::new())).1.push(cell);
        }
        for ((_, refused, image, reason), (rule, cells)) in groups {
            let Some(first) = cells.first() else { continue };
            let refuses = if first.to == refused { &first.from } else { &first.to };
            let what = if rule.code == rules::SOURCE.code { "refuses the source address" } else { "refuses" };
            let mut finding = rule.finding(
                format!("{} → {}", first.from, first.to),
                format!("dialling {}: {refuses} {what}: {reason}", first.host),
            );
            if let Some(image) = image {
                finding = finding.of_image(image).note(format!("by {image}; another image of its node is given too"));
            }
            for more in cells.iter().skip(1).take(5) {
                finding = finding.note(format!("also {} → {}", more.from, more.to));
            }
            if cells.len() > 6 {
                finding = finding.note(format!("and {} more pairs", cells.len() - 6));
            }
            out.push(finding);
        }
    }
}

/// One handshake to carry out.
struct Task<'a> {
    port: Port,
    from: &'a Node<'a>,
    to: &'a Node<'a>,
    host: String,
}

/// Tries every pair. Images of different meshes are not tried against each other.
pub(super) fn prove(nodes: &[Node<'_>], now: OffsetDateTime) -> Matrix {
    let voters: Vec<&Node<'_>> = nodes.iter().filter(|node| node.manifest.part.runs_registry()).collect();
    // Two images of one node are no pair: only one of them can run.
    let is_same = |a: &Node<'_>, b: &Node<'_>| a.name() == b.name() && a.manifest.mesh == b.manifest.mesh;
    let is_again = |from: &Node<'_>, to: &Node<'_>| is_same(from, to) && !std::ptr::eq(from, to);
    let twice = |node: &Node<'_>| nodes.iter().any(|other| is_again(node, other)).then(|| node.image.name.clone());
    let distinct = voters.iter().enumerate().filter(|(i, node)| !voters[..*i].iter().any(|other| is_same(node, other)));
    let count = distinct.count();
    let lone = count == 1;
    let mut tasks = Vec::new();
    for from in nodes {
        for to in voters.iter().filter(|to| to.manifest.mesh == from.manifest.mesh && !is_again(from, to)) {
            if from.manifest.part.runs_registry() && (lone || from.name() != to.name()) {
                tasks.push(Task { port: Port::Peer, from, to, host: peer_host(from, to) });
            }
            tasks.push(Task { port: Port::Client, from, to, host: client_host(to) });
        }
    }
    tasks.sort_by(|a, b| (a.port, a.from.name(), a.to.name()).cmp(&(b.port, b.from.name(), b.to.name())));
    let cells = tasks
        .par_iter()
        .map(|task| Cell {
            port: task.port,
            from: task.from.name().to_owned(),
            to: task.to.name().to_owned(),
            image: twice(task.from).or_else(|| twice(task.to)),
            host: task.host.clone(),
            outcome: try_pair(task, now),
        })
        .collect();
    Matrix { cells, voters: count }
}

/// The host by which a voter knows another: its birth record, else what the other advertises.
fn peer_host(from: &Node<'_>, to: &Node<'_>) -> String {
    let known = from.manifest.birth.peers.get(to.name());
    let own = to.config.as_ref().and_then(|config| config.peer_dial.first());
    known.or(own).and_then(|url| https_host(url)).map_or_else(|| to.manifest.address.to_string(), str::to_owned)
}

fn client_host(to: &Node<'_>) -> String {
    let own = to.config.as_ref().and_then(|config| config.client_dial.first());
    own.and_then(|url| https_host(url)).map_or_else(|| to.manifest.address.to_string(), str::to_owned)
}

fn try_pair(task: &Task<'_>, now: OffsetDateTime) -> Outcome {
    let (dials, listens) = match task.port {
        Port::Peer => (Use::Peer, Use::Peer),
        Port::Client => (Use::Client, Use::Server),
    };
    let sides: Result<(Side, Side), String> =
        task.from.side(dials).and_then(|client| Ok((client, task.to.side(listens)?)));
    let (client, server) = match sides {
        Ok(sides) => sides,
        Err(why) => return Outcome::Unproven(why),
    };
    if let Err(refusal) = handshake::prove(&client, &server, &task.host, now) {
        return Outcome::Refused { by: refusal.by, reason: refusal.reason };
    }
    if task.port == Port::Client {
        return Outcome::Accepted(None);
    }
    let source = source_address::source(task.from.manifest.address);
    let hosts = hosts(task.to);
    match source_address::accepts(client.certificate(), source, &|name| source_address::hosts_file(&hosts, name)) {
        Ok(accepted) => Outcome::Accepted(Some(accepted)),
        Err(reason) => Outcome::Source(reason),
    }
}

/// The listener's `/etc/hosts`; without one no name leads anywhere.
fn hosts(node: &Node<'_>) -> String {
    let path = TreePath::parse("/etc/hosts").unwrap_or_default();
    content(&node.image.tree, &path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
