//! What can be wrong with what is asked of a mesh.

use crate::finding::{Finding, Rule, Severity};

/// The rules of this file.
pub static RULES: &[&Rule] = &[&UNKNOWN_NODE];

/// A node that is not declared.
pub static UNKNOWN_NODE: Rule = Rule {
    code: "unknown-node",
    family: "image",
    severity: Severity::Error,
    summary: "no node of the mesh has this name",
    explanation: "Nodes are the tables `[node.NAME]` of `mesh.toml`, and those that `[nodes.GROUP]` makes \
        (`edge-001`, …). `fitout plan` lists all.",
};

/// A name on the command line that is no node.
pub fn unknown_node<'a>(name: &str, nodes: impl Iterator<Item = &'a String>) -> Finding {
    let near = nodes.map(|n| (strsim::jaro_winkler(n, name), n)).max_by(|a, b| a.0.total_cmp(&b.0));
    let finding = UNKNOWN_NODE.finding(name, format!("the mesh has no node `{name}`"));
    match near {
        Some((score, near)) if score > 0.7 => finding.help(format!("did you mean `{near}`?")),
        _ => finding.help("`fitout plan` lists the nodes"),
    }
}
