//! Who may vote, how many, and from where.

use super::Check;
use crate::declaration::model::{Mesh, Node, Part, Topology};
use crate::declaration::section::Section;
use crate::declaration::votes::quorum_of;
use crate::finding::{Finding, Rule, Severity};

const WHOLE: &[Section] = &[Section::Mesh, Section::Nodes, Section::Sites, Section::Profiles, Section::References];

pub(super) const CHECKS: &[Check] = &[
    Check { rule: &PART_OF_OTHER_TOPOLOGY, needs: WHOLE, run: part_of_other_topology },
    Check { rule: &ODD_VOTERS, needs: WHOLE, run: odd_voters },
    Check { rule: &VOTER_SITES, needs: WHOLE, run: voter_sites },
    Check { rule: &SITE_HOLDS_QUORUM, needs: WHOLE, run: site_holds_quorum },
    Check { rule: &MANY_VOTERS, needs: WHOLE, run: many_voters },
    Check { rule: &ONE_CONTROL_PLANE, needs: WHOLE, run: one_control_plane },
];

/// A node's part does not exist in this topology.
pub static PART_OF_OTHER_TOPOLOGY: Rule = Rule {
    code: "part-of-other-topology",
    family: "declaration",
    severity: Severity::Error,
    summary: "a node's part in the registry does not exist in this topology",
    explanation: "In topology `quorum` the registry is kept by voters and an arbiter. In topology `single` it is kept by \
        one control plane that is declared and never elected: no quorum, no promotion, no second voter, and nothing \
        takes over when it is down. A mixture would promise a failover that cannot happen.",
};

/// The number of voters is even.
pub static ODD_VOTERS: Rule = Rule {
    code: "odd-voters",
    family: "declaration",
    severity: Severity::Error,
    summary: "the number of voters is even",
    explanation: "A majority of 4 is 3, so four voters survive the loss of one, as three do, and there is one more to \
        lose; two survive no loss at all (etcd FAQ, \"Why an odd number of cluster members?\"). With two data sites the \
        third vote is an arbiter at a third site. The arbiter votes; it counts here.",
};

/// The voters stand in fewer than three sites.
pub static VOTER_SITES: Rule = Rule {
    code: "voter-sites",
    family: "declaration",
    severity: Severity::Error,
    summary: "the voters stand in fewer than three sites",
    explanation: "With voters in one or two sites, one site holds a majority, and its loss stops the registry until people \
        intervene. Automatic failover needs a third place that can say which side lives: put an arbiter there, which \
        votes, offers no service and holds no data set. (etcd has no witness mode: the arbiter stores the registry too \
        and may lead.)",
};

/// One site holds a quorum of the votes.
pub static SITE_HOLDS_QUORUM: Rule = Rule {
    code: "site-holds-quorum",
    family: "declaration",
    severity: Severity::Error,
    summary: "one site holds a quorum of the votes",
    explanation: "When that site is lost, what is left cannot elect a leader, however many sites are left. Spread the \
        votes so that every site may be lost: 1+1+1, 2+2+1, 3+2+2.",
};

/// There are more than seven voters.
pub static MANY_VOTERS: Rule = Rule {
    code: "many-voters",
    family: "declaration",
    severity: Severity::Warning,
    summary: "there are more than seven voters",
    explanation: "Every write waits for a majority, so more voters make writes slower and add little safety. etcd's FAQ \
        advises at most seven. Nodes that only use the registry are clients.",
};

/// Topology `single` has not exactly one control plane.
pub static ONE_CONTROL_PLANE: Rule = Rule {
    code: "one-control-plane",
    family: "declaration",
    severity: Severity::Error,
    summary: "topology `single` has not exactly one control plane",
    explanation: "In topology `single` one node runs the control plane: it is declared, never elected, and nothing takes \
        over when it is down. A second one would be a second, different registry. What recovers it is a restore from a \
        verified backup.",
};

fn subject(node: &Node) -> String {
    format!("node {}", node.name.value)
}

fn part_of_other_topology(mesh: &Mesh, out: &mut Vec<Finding>) {
    for node in mesh.nodes.values() {
        let part = mesh.part_of(node);
        let (topology, help) = match (mesh.topology.value, part) {
            (Topology::Single, Part::Voter | Part::Arbiter) => {
                ("single", "give the one node that runs the registry the profile `control-plane`, and others `client`")
            }
            (Topology::Quorum, Part::ControlPlane) => {
                ("quorum", "make it a `voter`, or declare `topology = \"single\"`")
            }
            _ => continue,
        };
        out.push(
            PART_OF_OTHER_TOPOLOGY
                .finding(subject(node), format!("topology `{topology}` has no {}", part.as_str()))
                .at(&node.profile.span)
                .label(format!("its part is `{}`", part.as_str()))
                .related(&mesh.topology.span, format!("the topology is `{topology}`"))
                .help(help),
        );
    }
}

fn is_quorum(mesh: &Mesh) -> bool {
    mesh.topology.value == Topology::Quorum
}

/// Voters and arbiters.
fn voters(mesh: &Mesh) -> Vec<&Node> {
    mesh.registry_nodes().filter(|n| mesh.part_of(n) != Part::ControlPlane).collect()
}

/// True when the votes can be counted: a control plane among them is reported by itself.
fn only_voters(mesh: &Mesh) -> bool {
    is_quorum(mesh) && mesh.registry_nodes().all(|n| mesh.part_of(n) != Part::ControlPlane)
}

fn odd_voters(mesh: &Mesh, out: &mut Vec<Finding>) {
    let voters = voters(mesh);
    if !is_quorum(mesh) || voters.len() % 2 == 1 {
        return;
    }
    let (message, help) = if voters.is_empty() {
        ("no node votes".to_owned(), "give three nodes in three sites the profile `voter`")
    } else {
        let names: Vec<&str> = voters.iter().map(|n| n.name.value.as_str()).collect();
        (
            format!("{} nodes vote, an even number: {}", voters.len(), names.join(", ")),
            "add an arbiter at another site, or make one of them a `client`",
        )
    };
    let mut finding =
        ODD_VOTERS.finding(format!("mesh {}", mesh.name.value), message).at(&mesh.topology.span).help(help);
    if !voters.is_empty() {
        let left = voters.len() - quorum_of(voters.len());
        finding =
            finding.note(format!("{} voters survive the loss of {left}, as {} do", voters.len(), voters.len() - 1));
    }
    out.push(finding);
}

fn voter_sites(mesh: &Mesh, out: &mut Vec<Finding>) {
    let sites = mesh.votes_by_site();
    if !only_voters(mesh) || sites.is_empty() || sites.len() >= 3 {
        return;
    }
    let names: Vec<&str> = sites.keys().copied().collect();
    let message =
        format!("all votes are in {}: {}", if names.len() == 1 { "one site" } else { "two sites" }, names.join(", "));
    out.push(
        VOTER_SITES
            .finding(format!("mesh {}", mesh.name.value), message)
            .at(&mesh.topology.span)
            .label("a quorum needs voters in at least three sites")
            .help("put an arbiter at a third site (`profile = \"arbiter\"`), or declare `topology = \"single\"`"),
    );
}

fn site_holds_quorum(mesh: &Mesh, out: &mut Vec<Finding>) {
    let sites = mesh.votes_by_site();
    // With one or two sites this is always so, and `voter-sites` has said it.
    if !only_voters(mesh) || sites.len() < 3 {
        return;
    }
    for (site, votes) in &sites {
        let after = mesh.votes_left_without(site);
        if after.has_quorum() {
            continue;
        }
        let place = mesh.sites.get(*site).map_or(&mesh.topology.span, |s| &s.name.span);
        out.push(
            SITE_HOLDS_QUORUM
                .finding(format!("site {site}"), format!("holds {votes} of {} votes", after.total))
                .at(place)
                .label("its loss stops the registry")
                .note(format!("without it {} votes are left, and a quorum is {}", after.left, after.needed))
                .help("move voters to other sites"),
        );
    }
}

fn many_voters(mesh: &Mesh, out: &mut Vec<Finding>) {
    let voters = voters(mesh).len();
    if voters > 7 {
        out.push(
            MANY_VOTERS
                .finding(format!("mesh {}", mesh.name.value), format!("{voters} nodes vote"))
                .at(&mesh.topology.span)
                .help("make some of them clients: five or seven votes are enough"),
        );
    }
}

fn one_control_plane(mesh: &Mesh, out: &mut Vec<Finding>) {
    if mesh.topology.value != Topology::Single {
        return;
    }
    let planes: Vec<&Node> = mesh.nodes.values().filter(|n| mesh.part_of(n) == Part::ControlPlane).collect();
    match planes.as_slice() {
        [_] => {}
        [] => out.push(
            ONE_CONTROL_PLANE
                .finding(format!("mesh {}", mesh.name.value), "no node runs the control plane")
                .at(&mesh.topology.span)
                .label("`single` needs exactly one")
                .help("give one node the profile `control-plane`"),
        ),
        [first, more @ ..] => {
            let mut finding = ONE_CONTROL_PLANE
                .finding(format!("mesh {}", mesh.name.value), format!("{} nodes run the control plane", planes.len()))
                .at(&first.profile.span)
                .label("one")
                .help("keep one, and make the others `client`; for automatic failover declare `topology = \"quorum\"`");
            for node in more {
                finding = finding.related(&node.profile.span, "another one");
            }
            out.push(finding);
        }
    }
}
