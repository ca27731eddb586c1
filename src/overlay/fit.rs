//! One node's own files over its profile's plan.

use super::Fitted;
use super::context::{self, pki_values};
use super::ledger::Scope;
use super::plan::Plan;
use super::rules::NOT_BORN;
use crate::declaration::{Mesh, Node};
use crate::etcd::birth::{Birth, Entrance};
use crate::etcd::urls::peer_url;
use crate::finding::{Failure, Finding, Problem};
use crate::pki::{Leaf, NodePki, Use};
use crate::tree::{Data, Entry, Kind};

/// Fits a node out.
///
/// # Errors
/// All findings of its templates; a voter that is not in the birth record and is to start a new cluster; a failure when
/// the plan has no such profile or a certificate cannot be read.
pub fn fit(
    plan: &Plan,
    mesh: &Mesh,
    node: &Node,
    birth: &Birth,
    entrance: &Entrance,
    pki: &NodePki,
) -> Result<Fitted, Problem> {
    let name = &node.name.value;
    let Some(profile) = plan.profile(&node.profile) else {
        return Err(Failure::new(format!("profile `{}` of node `{name}` was not planned", *node.profile)).into());
    };
    let mut found = Vec::new();
    if *entrance == Entrance::Born && mesh.part_of(node).runs_registry() {
        found.extend(not_born(node, birth));
    }
    let mut context = profile.context.clone();
    context::node(&mut context, mesh, node, birth, entrance, &pki_values(pki)?)?;

    let mut fitted = Fitted {
        put: profile.put.clone(),
        removed: profile.removed.clone(),
        ledger: profile.ledger.clone(),
        ..Fitted::empty(name, &node.profile)
    };
    for (path, rendered) in &profile.rendered {
        let text = match plan.templates.render(&rendered.template, &context) {
            Ok(text) => text,
            Err(findings) => {
                found.extend(findings.into_iter().map(|f| f.note(format!("rendered for node `{name}`"))));
                continue;
            }
        };
        let mut record = rendered.record.clone();
        let data = Data::memory(text.into_bytes());
        match rendered.key.and_then(|purpose| leaf(pki, purpose)) {
            Some(leaf) => {
                record.public_key = Some(leaf.public_key);
                fitted.without_keys |= leaf.key_pem.is_none();
            }
            None => record.sha256 = Some(data.sha256),
        }
        let entry = Entry { kind: Kind::File(data), ..rendered.entry.clone() };
        fitted.ledger.records.insert(path.display(), record);
        fitted.put.insert(path.clone(), (Scope::Node, entry));
    }
    if found.is_empty() { Ok(fitted) } else { Err(found.into()) }
}

fn leaf(pki: &NodePki, purpose: Use) -> Option<&Leaf> {
    match purpose {
        Use::Client => Some(&pki.client),
        Use::Server => pki.server.as_ref(),
        Use::Peer => pki.peer.as_ref(),
    }
}

fn not_born(node: &Node, birth: &Birth) -> Option<Finding> {
    let (generation, declared) = (birth.generation, peer_url(*node.address));
    let message = match birth.peers.get(&node.name.value) {
        Some(born) if *born == declared => return None,
        Some(born) => format!("was born at {born}, and is declared at {declared}"),
        None => format!("is not among the first members of generation {generation}"),
    };
    let born: Vec<&str> = birth.peers.keys().map(String::as_str).collect();
    let finding = NOT_BORN
        .finding(&node.name.value, message)
        .at(&node.name.span)
        .note(format!("first members: {}", born.join(", ")))
        .note(format!(
            "was the registry never started? remove `[birth.{generation}]` from fitout.lock: the next build makes a new one"
        ))
        .help("does it live? `fitout registry members` says the steps, and the image is built with `--join`");
    Some(finding)
}
