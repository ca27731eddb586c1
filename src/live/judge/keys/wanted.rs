//! What the operator wrote: against the image, and against itself.

use std::collections::BTreeMap;

use super::{Few, Mine, few};
use crate::declaration::Topology;
use crate::finding::{Finding, Rule, Severity};
use crate::layout::contents::Contents;
use crate::layout::text::Label;
use crate::layout::values::WantNode;
use crate::layout::{Key, values};
use crate::live::judge::rule;

/// The node is not declared there.
pub static MISSING: Rule = rule(
    "live-want-missing",
    Severity::Error,
    "the image's node is not in the registry's declaration",
    "`/mesh/want/node/` has no readable key for it: no user and no role either, so it cannot announce itself, and other nodes do \
     not expect it. `fitout registry bootstrap` writes what the declaration has new. Tested by name.",
);
/// The node is declared otherwise.
pub static DIFFERS: Rule = rule(
    "live-want-differs",
    Severity::Error,
    "the registry's declaration of the node is not the image's",
    "Site, part, address and services of the image are compared with `/mesh/want/node/`: one of them was made from another \
     state of `mesh.toml`. Tested field by field.",
);
/// The voters are declared otherwise.
pub static QUORUM: Rule = rule(
    "live-want-quorum",
    Severity::Error,
    "the registry's declaration of the voters is not the image's",
    "Topology and voters of `/mesh/want/quorum` are compared with what the image was built with. Whoever follows the registry \
     would count other votes. Tested by the names.",
);
/// A reference to nothing.
pub static REFERENCE: Rule = rule(
    "live-want-reference",
    Severity::Error,
    "a value of `/mesh/want/` names what is not there",
    "A node's site, a node's data set, a data set's nodes, the voters: each must have its own key below `/mesh/want/`. \
     Somebody deleted or renamed one by hand, or a bootstrap was stopped half-way. Tested on every value.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&MISSING, &DIFFERS, &QUORUM, &REFERENCE];

const BOOTSTRAP: &str = "`fitout registry bootstrap` shows the difference to the declaration, and `--yes` applies it";

pub(super) fn judge(mine: &Mine, contents: &Contents, out: &mut Vec<Finding>) {
    match contents.nodes.iter().find(|(name, _)| name.as_str() == mine.node) {
        Some((name, want)) => {
            let differences = differences(mine, want);
            if !differences.is_empty() {
                let finding = DIFFERS.finding(Key::WantNode(name.clone()).to_string(), differences.join("; "));
                out.push(finding.help(format!("{BOOTSTRAP}; or build the image anew")));
            }
        }
        None => {
            let text = format!("the registry does not know node `{}`", mine.node);
            out.push(MISSING.finding(format!("/mesh/want/node/{}", mine.node), text).help(BOOTSTRAP));
        }
    }
    quorum(mine, contents, out);
    references(contents, out);
}

fn differences(mine: &Mine, want: &WantNode) -> Vec<String> {
    let mut out = Vec::new();
    let mut compare = |what: &str, there: String, here: String| {
        if there != here {
            out.push(format!("{what} is {there} in the registry and {here} in the image"));
        }
    };
    compare("the site", want.site.to_string(), mine.site.clone());
    compare("the part", want.part.as_str().to_owned(), mine.part.as_str().to_owned());
    compare("the address", want.address.to_string(), mine.address.to_string());
    if let Some(services) = &mine.services {
        let shown = |name: &str, port: u16, set: Option<&str>| match set {
            Some(set) => format!("{name} on {port} with {set}"),
            None => format!("{name} on {port}"),
        };
        let list = |all: Vec<String>| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let there =
            want.services.iter().map(|(n, s)| shown(n.as_str(), s.port.get(), s.data_set.as_ref().map(Label::as_str)));
        let here = services.iter().map(|(n, s)| shown(n, s.port, s.data_set.as_deref()));
        compare("the list of services", list(there.collect()), list(here.collect()));
    }
    out
}

fn quorum(mine: &Mine, contents: &Contents, out: &mut Vec<Finding>) {
    const KEY: &str = "/mesh/want/quorum";
    let Some(quorum) = &contents.quorum else {
        out.push(REFERENCE.finding(KEY, "is not there or cannot be read").help(BOOTSTRAP));
        return;
    };
    let here = match mine.topology {
        Topology::Quorum => values::Topology::Quorum,
        Topology::Single => values::Topology::Single,
    };
    if here != quorum.topology {
        let (there, here) = (quorum.topology.as_str(), here.as_str());
        let text = format!("the topology is {there} in the registry and {here} in the image");
        out.push(QUORUM.finding(KEY, text).help(BOOTSTRAP));
    }
    let mut voters: Vec<&str> = quorum.voters.iter().map(Label::as_str).collect();
    voters.sort_unstable();
    if !mine.members.is_empty() && voters != mine.members {
        let here = few(mine.members.iter().map(String::as_str));
        let text = format!("the voters are {} in the registry and {here} in the image", few(voters));
        out.push(QUORUM.finding(KEY, text).help(format!("{BOOTSTRAP}; `fitout registry members` changes who votes")));
    }
}

/// What is named and not there, each thing once, with whoever names it.
fn references(contents: &Contents, out: &mut Vec<Finding>) {
    let mut missing: BTreeMap<String, (&str, Vec<String>)> = BTreeMap::new();
    let mut name = |there: Key, what: &'static str, by: Key| {
        missing.entry(there.to_string()).or_insert_with(|| (what, Vec::new())).1.push(by.to_string());
    };
    for (node, want) in &contents.nodes {
        let by = || Key::WantNode(node.clone());
        if !contents.sites.contains_key(&want.site) {
            name(Key::WantSite(want.site.clone()), "site", by());
        }
        for (service, has) in &want.services {
            if !contents.services.contains_key(service) {
                name(Key::WantService(service.clone()), "service", by());
            }
            if let Some(set) = has.data_set.as_ref().filter(|set| !contents.data.contains_key(*set)) {
                name(Key::WantData(set.clone()), "data set", by());
            }
        }
    }
    for (set, want) in &contents.data {
        for node in want.nodes.iter().filter(|node| !contents.nodes.contains_key(*node)) {
            name(Key::WantNode(node.clone()), "node", Key::WantData(set.clone()));
        }
    }
    for node in contents.quorum.iter().flat_map(|quorum| &quorum.voters) {
        if !contents.nodes.contains_key(node) {
            name(Key::WantNode(node.clone()), "voter", Key::WantQuorum);
        }
    }
    let mut findings = Few::new(out);
    for (there, (what, by)) in &missing {
        findings.push(|| {
            let by = few(by.iter().map(String::as_str));
            let text = format!("this {what} is not there or cannot be read, and is named by {by}");
            REFERENCE.finding(there.clone(), text).help(BOOTSTRAP)
        });
    }
}
