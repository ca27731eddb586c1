//! Steps in words and commands.

use super::{Removal, Start, Step, Votes};
use crate::live::etcdctl::{self, url};
use crate::live::members::command;
use crate::live::members::votes::Stand;

impl std::fmt::Display for Step {
    /// What is done, in a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Remove { who, why, .. } => {
                let why = match why {
                    Removal::Dead => "it is not declared, and takes no part",
                    Removal::Undeclared => "it is not declared",
                    Removal::Replaced => "it is replaced, and a dead member goes before its successor comes",
                    Removal::Learner => "a learner that is not wanted as it is; it has no vote",
                };
                write!(f, "remove {who}: {why}")
            }
            Step::Add { node, peer_url, learner: true } => {
                write!(f, "add {node} at {peer_url} as a learner: it gets all data, and no vote yet")
            }
            Step::Add { node, peer_url, learner: false } => {
                write!(f, "add {node} at {peer_url} as a voter at once: it counts from now on")
            }
            Step::Start { node, how } => match how {
                Start::Born => write!(f, "start {node} for the first time, with its image as it was built"),
                Start::Joins => write!(f, "build {node}'s image for the living list, ship it, and start it"),
                Start::Moved => write!(f, "start {node} at its new address, with its data and an image for it"),
                Start::Back(stand) => write!(f, "bring {node} back: {}", back(node, *stand)),
            },
            Step::Promote { node, .. } => write!(f, "promote {node}, once it is in sync"),
            Step::Update { node, from, to, .. } => write!(f, "change the peer URL of {node} from {from} to {to}"),
            Step::Rename { node, is } => {
                write!(f, "start {node} again with its own image: it calls itself `{is}`")
            }
        }
    }
}

fn back(node: &str, stand: Stand) -> String {
    match stand {
        Stand::Leaderless => "it runs and knows no leader; look at port 2380 between it and the others".to_owned(),
        Stand::Heard => {
            "something is there and does not answer as it should; `fitout check` of its image says why".to_owned()
        }
        Stand::Foreign => {
            format!("what answers there belongs to another registry; if its own data is lost: `--replace {node}`")
        }
        _ => format!("nothing is heard of it; start it with its data, and only if that is lost: `--replace {node}`"),
    }
}

impl Step {
    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Step::Remove { .. } => "remove",
            Step::Add { .. } => "add",
            Step::Start { .. } => "start",
            Step::Promote { .. } => "promote",
            Step::Update { .. } => "update",
            Step::Rename { .. } => "rename",
        }
    }

    /// The declared node that it is about.
    pub fn node(&self) -> Option<&str> {
        match self {
            Step::Remove { node, .. } => node.as_deref(),
            Step::Add { node, .. }
            | Step::Start { node, .. }
            | Step::Promote { node, .. }
            | Step::Update { node, .. }
            | Step::Rename { node, .. } => Some(node),
        }
    }
}

/// How commands name things on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// `fitout` with the options that find the same mesh.
    pub fitout: String,
}

impl Commands {
    /// What to type for a step, in order. A peer URL of the registry that is none is not put into a command.
    pub fn of(&self, step: &Step) -> Vec<etcdctl::Step> {
        match step {
            Step::Remove { id, node, why: Removal::Replaced, .. } => {
                let stop = node.as_ref().map(|n| etcdctl::Step::on(n, "if it still runs", command::STOP));
                stop.into_iter().chain([command::remove(*id)]).collect()
            }
            Step::Remove { id, .. } => vec![command::remove(*id)],
            Step::Add { node, peer_url, learner } => vec![command::add(node, peer_url, *learner)],
            Step::Update { id, to, .. } => url(to).map(|to| command::update(*id, &to)).into_iter().collect(),
            Step::Promote { peer_url, .. } => vec![command::promoted(peer_url)],
            Step::Start { node, how: Start::Joins } => {
                vec![self.build(node), command::empty(node), command::start(node)]
            }
            Step::Start { node, how: Start::Moved } => vec![self.build(node), command::start(node)],
            Step::Start { node, .. } => vec![command::start(node)],
            Step::Rename { node, .. } => vec![etcdctl::Step::on(node, "", "systemctl restart mesh-registry.target")],
        }
    }

    fn build(&self, node: &str) -> etcdctl::Step {
        etcdctl::Step::here(format!("{} build --node {node} --join", self.fitout))
    }
}

/// `3 of 3 votes, 2 needed -> 2 of 2 votes, 2 needed; one more loss stops all writes`.
pub fn votes(before: Votes, after: Votes) -> String {
    let change = if before == after { after.to_string() } else { format!("{before} -> {after}") };
    if after.spare() == 0 && after.all > 1 { format!("{change}; one more loss stops all writes") } else { change }
}
