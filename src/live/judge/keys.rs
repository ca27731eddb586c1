//! Judging the registry's keys against its own layout, against itself, and against an image that is to be added. Pure.

mod access;
mod announced;
mod claims;
mod grammar;
mod identity;
mod rate;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use crate::declaration::{Part, Topology};
use crate::etcd::ids::Id;
use crate::finding::{Finding, Rule};
use crate::image::manifest::{Manifest, Service};
use crate::layout::contents::{self, Contents};
use crate::live::handshake::Trouble;
use crate::live::keys::Keys;

pub use rate::Rate;

/// The rules about keys.
pub static RULES: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
    [access::RULES, grammar::RULES, identity::RULES, wanted::RULES, announced::RULES, claims::RULES, rate::RULES]
        .concat()
});

/// How many findings of one code are printed; the last of them says how many there are.
const AT_MOST: usize = 10;
/// How many names a message lists.
const NAMES: usize = 10;

/// What was seen of the keys.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The keys, or why they could not be read.
    pub keys: Result<&'a Keys, &'a Trouble>,
    /// Whose certificate was shown.
    pub whose: &'a str,
    /// Whether the image's own certificate opens what is outside of `/mesh/`; `None` when that was not tried.
    pub node_sees_outside: Option<bool>,
    /// Id of the etcd cluster.
    pub cluster: Id,
    /// Revisions over an interval, when asked for.
    pub rate: Option<Rate>,
    /// The present, seconds since 1970.
    pub at: i64,
}

/// What an image says of its node.
#[derive(Debug, Clone)]
pub struct Mine {
    /// Name of the mesh.
    pub mesh: String,
    /// Name of the node.
    pub node: String,
    /// Its site.
    pub site: String,
    /// Its address.
    pub address: IpAddr,
    /// Its part.
    pub part: Part,
    /// Generation of the birth record.
    pub generation: u32,
    /// Its services; `None` in images of versions that did not write them.
    pub services: Option<BTreeMap<String, Service>>,
    /// Topology of the mesh.
    pub topology: Topology,
    /// Names of the nodes on which etcd runs, sorted; empty when the image does not say.
    pub members: Vec<String>,
}

impl Mine {
    /// Reads a manifest.
    pub fn of(manifest: &Manifest) -> Mine {
        let members = manifest.registry.as_ref().map(|r| r.members.keys().cloned().collect());
        Mine {
            mesh: manifest.mesh.clone(),
            node: manifest.node.clone(),
            site: manifest.site.clone(),
            address: manifest.address,
            part: manifest.part,
            generation: manifest.birth.generation,
            services: manifest.services.clone(),
            topology: manifest.topology,
            members: members.unwrap_or_default(),
        }
    }
}

/// The findings. The keys of another mesh, or of a layout that is not ours, are not looked at further.
pub fn judge(mine: &Mine, seen: &Seen<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    let Some(keys) = access::judge(seen, &mut out) else { return out };
    if keys.mesh.items.is_empty() {
        out.push(identity::nothing());
        return out;
    }
    let (contents, faults) = contents::read(&keys.mesh.items);
    if !identity::judge(mine, seen, &contents, &mut out) {
        return out;
    }
    grammar::judge(&keys.mesh.items, &faults, &mut out);
    wanted::judge(mine, &contents, &mut out);
    announced::judge(mine, &contents, seen.at, &mut out);
    claims::judge(mine, &contents, &mut out);
    rate::judge(seen.rate, &contents, &mut out);
    out
}

/// Findings of one rule, of which only the first few are kept.
struct Few<'a> {
    out: &'a mut Vec<Finding>,
    count: usize,
}

impl<'a> Few<'a> {
    fn new(out: &'a mut Vec<Finding>) -> Few<'a> {
        Few { out, count: 0 }
    }

    fn push(&mut self, finding: impl FnOnce() -> Finding) {
        self.count += 1;
        if self.count <= AT_MOST {
            self.out.push(finding());
        }
    }
}

impl Drop for Few<'_> {
    fn drop(&mut self) {
        if self.count > AT_MOST
            && let Some(last) = self.out.pop()
        {
            let more = self.count - AT_MOST;
            self.out.push(last.note(format!("and {more} more of the same, which are not shown")));
        }
    }
}

/// A few names of many: `a, b, c and 7 more`.
fn few<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.into_iter().collect();
    let shown = all.iter().take(NAMES).copied().collect::<Vec<_>>().join(", ");
    if all.len() > NAMES { format!("{shown} and {} more", all.len() - NAMES) } else { shown }
}

/// `1 node`, `2 nodes`.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Whether a node of this name is in the registry's declaration.
fn wanted_node(contents: &Contents, node: &str) -> bool {
    contents.nodes.keys().any(|name| name.as_str() == node)
}
