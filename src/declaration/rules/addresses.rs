//! Names and addresses of nodes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Check;
use crate::declaration::model::{Mesh, Node};
use crate::declaration::section::Section;
use crate::finding::{Finding, Rule, Severity, Span};

pub(super) const CHECKS: &[Check] = &[
    Check { rule: &RESERVED_NAME, needs: &[], run: reserved_name },
    Check { rule: &ADDRESS_OUTSIDE_NETWORK, needs: &[Section::Mesh], run: address_outside_network },
    Check { rule: &ADDRESS_OF_NO_HOST, needs: &[Section::Mesh], run: address_of_no_host },
    Check { rule: &DUPLICATE_ADDRESS, needs: &[], run: duplicate_address },
];

/// A node has a name that means something else.
pub static RESERVED_NAME: Rule = Rule {
    code: "reserved-name",
    family: "declaration",
    severity: Severity::Error,
    summary: "a node has a name that means something else",
    explanation: "etcd's user `root` exists without password and without certificate; a node of that name would make its \
        certificate a candidate for it. `localhost` is every machine's own name (RFC 6761).",
};

/// A node's address is outside of the mesh's network.
pub static ADDRESS_OUTSIDE_NETWORK: Rule = Rule {
    code: "address-outside-network",
    family: "declaration",
    severity: Severity::Error,
    summary: "a node's address is outside of the mesh's network",
    explanation: "Nodes talk over one mesh network with fixed addresses; certificates, peer URLs and etcd's source-address \
        rule rely on them.",
};

/// A node has the network's own or its broadcast address.
pub static ADDRESS_OF_NO_HOST: Rule = Rule {
    code: "address-of-no-host",
    family: "declaration",
    severity: Severity::Error,
    summary: "a node has the network's own or its broadcast address",
    explanation: "The first address of an IPv4 network names the network, the last one is its broadcast address (RFC 919); \
        in IPv6 the first one is every router's (RFC 4291 section 2.6.1). No host can have them. IPv4 networks of /31 \
        and /32 have neither (RFC 3021).",
};

/// Two nodes have one address.
pub static DUPLICATE_ADDRESS: Rule = Rule {
    code: "duplicate-address",
    family: "declaration",
    severity: Severity::Error,
    summary: "two nodes have one address",
    explanation: "Addresses identify nodes: they are in certificates and in the registry.",
};

fn subject(node: &Node) -> String {
    format!("node {}", node.name.value)
}

fn reserved_name(mesh: &Mesh, out: &mut Vec<Finding>) {
    for node in mesh.nodes.values() {
        let why = match node.name.value.as_str() {
            "root" => "`root` is etcd's own user, and no certificate may carry its name",
            "localhost" => "`localhost` is every machine's own name",
            _ => continue,
        };
        out.push(RESERVED_NAME.finding(subject(node), why).at(&node.name.span).help("choose another name"));
    }
}

fn address_outside_network(mesh: &Mesh, out: &mut Vec<Finding>) {
    let network = &mesh.network;
    for node in mesh.nodes.values().filter(|n| !network.contains(&n.address.value)) {
        out.push(
            ADDRESS_OUTSIDE_NETWORK
                .finding(subject(node), format!("the address is not in the mesh's network {}", network.value))
                .at(&node.address.span)
                .label(format!("{} is not in {}", node.address.value, network.value))
                .related(&network.span, "the network is declared here")
                .help("give it an address in the network, or declare a wider network"),
        );
    }
}

fn is_no_host(address: IpAddr, network: IpNet) -> Option<&'static str> {
    match network {
        IpNet::V4(net) if net.prefix_len() >= 31 => None,
        IpNet::V6(net) if net.prefix_len() >= 127 => None,
        _ if address == network.network() => Some("the network's own address"),
        IpNet::V4(_) if address == network.broadcast() => Some("the network's broadcast address"),
        _ => None,
    }
}

fn address_of_no_host(mesh: &Mesh, out: &mut Vec<Finding>) {
    for node in mesh.nodes.values() {
        if let Some(what) = is_no_host(node.address.value, mesh.network.value) {
            out.push(
                ADDRESS_OF_NO_HOST
                    .finding(subject(node), format!("{} is {what}", node.address.value))
                    .at(&node.address.span)
                    .related(&mesh.network.span, "the network is declared here"),
            );
        }
    }
}

fn duplicate_address(mesh: &Mesh, out: &mut Vec<Finding>) {
    let mut first: BTreeMap<IpAddr, &Node> = BTreeMap::new();
    // Overlapping groups share many addresses and two places: one finding says it.
    let mut said: Vec<(&Span, &Span)> = Vec::new();
    for node in mesh.nodes.values() {
        let Some(other) = first.get(&node.address.value) else {
            first.insert(node.address.value, node);
            continue;
        };
        let places = (&other.address.span, &node.address.span);
        if said.contains(&places) {
            continue;
        }
        said.push(places);
        out.push(
            DUPLICATE_ADDRESS
                .finding(subject(node), format!("the address {} is that of `{}`", node.address.value, other.name.value))
                .at(&node.address.span)
                .related(&other.address.span, format!("`{}` has it", other.name.value))
                .help("give each node its own address"),
        );
    }
}
