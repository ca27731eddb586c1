//! Services and data sets: who may hold them, and where.

use std::collections::BTreeMap;

use super::Check;
use crate::declaration::model::{Mesh, Node, Part, Service};
use crate::declaration::section::Section;
use crate::finding::{Finding, Rule, Severity, Span};

pub(super) const CHECKS: &[Check] = &[
    Check { rule: &ARBITER_WITH_SERVICE, needs: &[Section::Profiles, Section::References], run: arbiter_with_service },
    Check { rule: &DATA_SET_TWICE_IN_SITE, needs: &[Section::References], run: data_set_twice_in_site },
    Check { rule: &PORT_TAKEN, needs: &[Section::Profiles, Section::References], run: port_taken },
];

/// The arbiter offers a service or holds a data set.
pub static ARBITER_WITH_SERVICE: Rule = Rule {
    code: "arbiter-with-service",
    family: "declaration",
    severity: Severity::Error,
    summary: "the arbiter offers a service or holds a data set",
    explanation: "The arbiter is there to vote from a third place, often a small rented machine. It is data-less: it offers \
        no service and holds no replica, so that its loss, or its owner's curiosity, touches nothing but the registry.",
};

/// Two replicas of one data set are in one site.
pub static DATA_SET_TWICE_IN_SITE: Rule = Rule {
    code: "data-set-twice-in-site",
    family: "declaration",
    severity: Severity::Error,
    summary: "two replicas of one data set are in one site",
    explanation: "A site is what fails as one. Two replicas there are lost together, so the second one is no replica. This \
        is enforced: here, by the check, and in the registry by a transaction on `/mesh/claim/<set>/<site>`.",
};

/// Two listeners of one node want one port.
pub static PORT_TAKEN: Rule = Rule {
    code: "port-taken",
    family: "declaration",
    severity: Severity::Error,
    summary: "two listeners of one node want one port",
    explanation: "Two services of one node cannot both listen on a port. Where the registry runs, etcd takes 2379 \
        (clients), 2380 (peers) and on loopback 2381 (metrics).",
};

/// Ports that etcd listens on, with what for.
const REGISTRY_PORTS: [(u16, &str); 3] = [(2379, "clients"), (2380, "peers"), (2381, "metrics")];

fn subject(node: &Node) -> String {
    format!("node {}", node.name.value)
}

fn arbiter_with_service(mesh: &Mesh, out: &mut Vec<Finding>) {
    for node in mesh.nodes.values().filter(|n| mesh.part_of(n) == Part::Arbiter) {
        for service in node.services.values() {
            let message = match &service.data_set {
                Some(set) => format!("the arbiter holds the data set `{}`", set.value),
                None => format!("the arbiter offers the service `{}`", service.name.value),
            };
            let place = service.data_set.as_ref().map_or(&service.name.span, |s| &s.span);
            out.push(
                ARBITER_WITH_SERVICE
                    .finding(subject(node), message)
                    .at(place)
                    .related(&node.profile.span, "its profile makes it the arbiter")
                    .help("move the service to another node"),
            );
        }
    }
}

fn data_set_twice_in_site(mesh: &Mesh, out: &mut Vec<Finding>) {
    let mut first: BTreeMap<(&str, &str), (&Node, &Span)> = BTreeMap::new();
    // One finding per pair of places: two nodes of one group stand in the same place.
    let mut said: Vec<(&Span, &Span)> = Vec::new();
    for node in mesh.nodes.values() {
        for set in node.services.values().filter_map(|s| s.data_set.as_ref()) {
            let key = (set.value.as_str(), node.site.value.as_str());
            let Some((other, place)) = first.get(&key) else {
                first.insert(key, (node, &set.span));
                continue;
            };
            if said.contains(&(place, &set.span)) {
                continue;
            }
            said.push((place, &set.span));
            let message = if other.name.value == node.name.value {
                format!("two of its services hold the data set `{}`", key.0)
            } else {
                format!("holds the data set `{}` in site `{}`, where `{}` holds it", key.0, key.1, other.name.value)
            };
            let mut finding = DATA_SET_TWICE_IN_SITE.finding(subject(node), message).at(&set.span);
            if **place == set.span {
                finding = finding.note("both are nodes of one group");
            } else {
                finding = finding.related(place, format!("the replica of site `{}`", key.1));
            }
            out.push(finding.help("put one replica in another site: one data set has at most one replica per site"));
        }
    }
}

fn port_taken(mesh: &Mesh, out: &mut Vec<Finding>) {
    for node in mesh.nodes.values() {
        let mut first: BTreeMap<u16, &Service> = BTreeMap::new();
        for service in node.services.values() {
            let port = service.port.value;
            if let Some(other) = first.get(&port) {
                out.push(
                    PORT_TAKEN
                        .finding(subject(node), format!("two services want port {port}"))
                        .at(&service.port.span)
                        .related(&other.port.span, format!("`{}` wants it too", other.name.value)),
                );
            }
            first.insert(port, service);
            let etcd = REGISTRY_PORTS.iter().find(|(p, _)| *p == port);
            if let (true, Some((_, what))) = (mesh.part_of(node).runs_registry(), etcd) {
                out.push(
                    PORT_TAKEN
                        .finding(subject(node), format!("etcd listens on port {port}, for {what}"))
                        .at(&service.port.span)
                        .help("choose another port, or move the service to a client"),
                );
            }
        }
    }
}
