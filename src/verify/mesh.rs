//! The mesh family: over all images that are given together. They are of one mesh, were born into one cluster, share what
//! they should share, and nothing that must be one node's alone.

mod paths;
mod shared;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::Image;
use crate::finding::{Finding, Rule, Severity};
use crate::image::manifest::Manifest;

/// All rules of the family.
pub static RULES: &[&Rule] = &[
    &OTHER,
    &SETTINGS,
    &BIRTH,
    &BASE,
    &TOOL,
    &VERSION,
    &NODE_TWICE,
    &ADDRESS_TWICE,
    &VOTER_ABSENT,
    &paths::PROFILE,
    &shared::SHARED,
];

const fn rule(code: &'static str, severity: Severity, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "mesh", severity, summary, explanation }
}

/// Another mesh.
pub static OTHER: Rule = rule(
    "mesh-other",
    Severity::Error,
    "an image of another mesh is among those given",
    "\
Meshes have authorities, tokens and names of their own, so that nodes of different ones never talk. Images of two meshes in one
call are mostly files that were left in one directory. Verify each mesh by itself.",
);

/// Settings of the mesh.
pub static SETTINGS: Rule = rule(
    "mesh-settings",
    Severity::Error,
    "images of one mesh differ in what is declared for the whole mesh",
    "\
Domain, topology, network, sites and target are declared once for all nodes. Where images differ, they were built from different
declarations: names and addresses of one node are then wrong in the images of others. Build all images again from one declaration.",
);

/// Birth record.
pub static BIRTH: Rule = rule(
    "mesh-birth",
    Severity::Error,
    "images of one mesh have different birth records",
    "\
The birth record holds the generation, the token and the peer URLs of the first voters, from which etcd computes the ids of cluster
and members (SHA-1 over both). Voters with different ones found different clusters, and answer each other with `request cluster ID
mismatch`. Build all images again with one `fitout.lock`.",
);

/// The base.
pub static BASE: Rule = rule(
    "mesh-base",
    Severity::Warning,
    "images of one mesh are built on different bases",
    "\
All nodes share one common image: what is known and proven of one then holds for all, and only one has to be upgraded. A base made
again of the same declaration differs when the archive has moved on; `--locked` and `fitout.lock` keep it. During a roll-out two bases
are meant. Paths of such images are not compared.",
);

/// The tool.
pub static TOOL: Rule = rule(
    "mesh-tool",
    Severity::Notice,
    "images of one mesh were built by different versions of fitout",
    "\
Another version may render other files of the same declaration. Nothing is wrong with either; the rules about paths say what differs.",
);

/// `[image] version`.
pub static VERSION: Rule = rule(
    "mesh-version",
    Severity::Notice,
    "images of one mesh have different versions",
    "\
`[image] version` is what the nodes say of themselves (`IMAGE_VERSION` in os-release(5)). During a roll-out two versions are meant.",
);

/// Two images of a node.
pub static NODE_TWICE: Rule = rule(
    "mesh-node-twice",
    Severity::Error,
    "two images of one node are among those given, and differ",
    "\
Only one of them can run: both have the node's certificates and address, and of a voter also its member id. Mostly one is older.
The same image in two formats is no finding.",
);

/// Two nodes of an address.
pub static ADDRESS_TWICE: Rule = rule(
    "mesh-address-twice",
    Severity::Error,
    "two nodes have one address",
    "\
Peers and clients dial addresses, and etcd compares the source address with the certificate. Addresses are declared, and the
declaration's rules refuse one that stands twice: these images are of different declarations.",
);

/// A voter whose image is not given.
pub static VOTER_ABSENT: Rule = rule(
    "mesh-voter-absent",
    Severity::Notice,
    "a voter of the birth record is not among the images",
    "\
What holds between nodes is proven only for the images given. Give those of all voters to have every pair proven.",
);

/// An image that says what it is.
#[derive(Debug, Clone, Copy)]
struct Node<'a> {
    image: &'a Image,
    manifest: &'a Manifest,
}

impl<'a> Node<'a> {
    fn name(&self) -> &'a str {
        &self.manifest.node
    }
}

/// Applies every rule of the family to the images of one call; of a single image there is nothing to say.
pub fn check(images: &[&Image], out: &mut Vec<Finding>) {
    let nodes: Vec<Node<'_>> =
        images.iter().filter_map(|image| image.manifest.as_ref().map(|manifest| Node { image, manifest })).collect();
    if nodes.len() < 2 {
        return;
    }
    differing(
        &nodes,
        |m| m.mesh.clone(),
        |node, is, norm, others| {
            let message = format!("it is node `{}` of mesh `{is}`; mesh `{norm}` is that of {others}", node.name());
            out.push(OTHER.finding(&node.image.name, message).help("verify each mesh by itself"));
        },
    );
    let meshes: BTreeSet<&str> = nodes.iter().map(|node| node.manifest.mesh.as_str()).collect();
    for mesh in meshes {
        let group: Vec<Node<'_>> = nodes.iter().copied().filter(|node| node.manifest.mesh == mesh).collect();
        settings(&group, out);
        birth(&group, out);
        twice(&group, out);
        shared::check(&group, out);
        paths::check(&group, out);
        voters(&group, out);
    }
}

/// Calls for each node whose value is not that of most (of the first ones, where it is a draw), with both values and the
/// names of those that have the other.
fn differing<'a, T: Ord + Clone>(
    nodes: &[Node<'a>],
    value: impl Fn(&Manifest) -> T,
    mut say: impl FnMut(&Node<'a>, &T, &T, &str),
) {
    let mut having: BTreeMap<T, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        having.entry(value(node.manifest)).or_default().push(node.name());
    }
    let most = having.values().map(Vec::len).max().unwrap_or_default();
    let Some(norm) = nodes.iter().map(|node| value(node.manifest)).find(|value| having[value].len() == most) else {
        return;
    };
    let others = names(&having[&norm]);
    for node in nodes {
        let is = value(node.manifest);
        if is != norm {
            say(node, &is, &norm, &others);
        }
    }
}

/// Some names, and how many more.
fn names(all: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = all.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = all.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

fn settings(group: &[Node<'_>], out: &mut Vec<Finding>) {
    type Setting = (&'static str, fn(&Manifest) -> String);
    let settings: [Setting; 5] = [
        ("domain", |m| m.domain.clone()),
        ("topology", |m| word(&m.topology)),
        ("network", |m| m.network.to_string()),
        ("sites", |m| m.sites.join(", ")),
        ("target", |m| word(&m.target)),
    ];
    for (what, value) in settings {
        differing(group, value, |node, is, norm, others| {
            let message = format!("{what} is `{is}`, and `{norm}` in {others}");
            out.push(SETTINGS.finding(&node.image.name, message).help("build all images again from one declaration"));
        });
    }
    differing(
        group,
        |m| m.base.clone(),
        |node, is, norm, others| {
            let short = |digest: &str| digest.get(..12).unwrap_or(digest).to_owned();
            let message = format!("its base is {}…, and {}… that of {others}", short(is), short(norm));
            out.push(BASE.finding(&node.image.name, message).help("build all images again with one `fitout.lock`"));
        },
    );
    differing(
        group,
        |m| m.tool.clone(),
        |node, is, norm, others| {
            let message = format!("it was built by fitout {is}, and {others} by fitout {norm}");
            out.push(TOOL.finding(&node.image.name, message));
        },
    );
    differing(
        group,
        |m| m.version.clone(),
        |node, is, norm, others| {
            let message = format!("its version is `{is}`, and `{norm}` that of {others}");
            out.push(VERSION.finding(&node.image.name, message));
        },
    );
}

/// A value by the word that stands for it in the declaration.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn birth(group: &[Node<'_>], out: &mut Vec<Finding>) {
    let value = |m: &Manifest| {
        let birth = &m.birth;
        (birth.generation, birth.token.clone(), birth.peers.clone(), birth.cluster_id.clone())
    };
    differing(group, value, |node, is, norm, others| {
        let mut finding = BIRTH
            .finding(&node.image.name, format!("its birth record is not that of {others}"))
            .help("build all images again with one `fitout.lock`");
        if is.0 != norm.0 {
            finding = finding.note(format!("generation: {}, not {}", is.0, norm.0));
        }
        if is.1 != norm.1 {
            finding = finding.note(format!("token: `{}`, not `{}`", is.1, norm.1));
        }
        for name in is.2.keys().chain(norm.2.keys()).collect::<BTreeSet<_>>() {
            let url =
                |peers: &BTreeMap<String, String>| peers.get(name).map_or("none".to_owned(), |u| format!("`{u}`"));
            if is.2.get(name) != norm.2.get(name) {
                finding = finding.note(format!("voter `{name}`: {}, not {}", url(&is.2), url(&norm.2)));
            }
        }
        if is.3 != norm.3 {
            finding = finding.note(format!("cluster id: {}, not {}", is.3, norm.3));
        }
        out.push(finding);
    });
}

fn twice(group: &[Node<'_>], out: &mut Vec<Finding>) {
    let mut seen: BTreeMap<&str, &Node<'_>> = BTreeMap::new();
    let mut addresses: BTreeMap<std::net::IpAddr, &Node<'_>> = BTreeMap::new();
    for node in group {
        match seen.get(node.name()) {
            Some(first) => {
                if paths::differ(first, node) {
                    let message = format!("it is an image of node `{}`, as {} is", node.name(), first.image.name);
                    out.push(
                        NODE_TWICE.finding(&node.image.name, message).help("give the image that the node is to run"),
                    );
                }
                continue;
            }
            None => seen.insert(node.name(), node),
        };
        if let Some(first) = addresses.insert(node.manifest.address, node) {
            let message = format!("it has the address {}, as node `{}` has", node.manifest.address, first.name());
            out.push(
                ADDRESS_TWICE.finding(&node.image.name, message).help("build all images again from one declaration"),
            );
        }
    }
}

fn voters(group: &[Node<'_>], out: &mut Vec<Finding>) {
    let given: BTreeSet<&str> = group.iter().map(Node::name).collect();
    let voters: BTreeSet<&str> =
        group.iter().flat_map(|node| node.manifest.birth.peers.keys()).map(String::as_str).collect();
    let absent: Vec<&str> = voters.difference(&given).copied().collect();
    if let (false, Some(first)) = (absent.is_empty(), group.first()) {
        let message = format!("of {} voters, {} are not among the images", voters.len(), names(&absent));
        let message = if absent.len() == 1 { message.replace(" are not", " is not") } else { message };
        out.push(VOTER_ABSENT.finding(&first.manifest.mesh, message).help("give the images of all voters"));
    }
}
