//! `[node.NAME]` and `[nodes.GROUP]`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::model::{Node, Service};
use super::section::{Reports, Section};
use super::table::{Refusal, Table};
use super::values::{self, INVALID_VALUE};
use crate::finding::{Rule, Severity, Spanned};

/// Two nodes have one name.
pub static DUPLICATE_NAME: Rule = Rule {
    code: "duplicate-name",
    family: "declaration",
    severity: Severity::Error,
    summary: "two nodes have one name",
    explanation: "A group `[nodes.edge]` makes the nodes `edge-001`, `edge-002` and so on; a node of one of these names \
        declared by itself, or by another group, would be a second one of that name. Names are the keys of the \
        registry, the host names and the names in certificates, so each is unique.",
};

/// A group has more nodes than addresses.
pub static TOO_FEW_ADDRESSES: Rule = Rule {
    code: "too-few-addresses",
    family: "declaration",
    severity: Severity::Error,
    summary: "a group has more nodes than addresses",
    explanation: "`addresses = \"first-last\"` of a group gives the addresses of its nodes in order, one each, both ends \
        included.",
};

/// Rules of this file.
pub(super) const RULES: &[&Rule] = &[&DUPLICATE_NAME, &TOO_FEW_ADDRESSES];

/// All nodes of the declaration, groups expanded.
pub(super) fn nodes(file: &mut Table<'_>) -> BTreeMap<String, Node> {
    let reports = file.reports;
    let mut all = BTreeMap::new();
    for (name, table) in file.tables("node", Section::Nodes) {
        check_name(reports, "node", &name);
        if let Some(node) = node(name, table) {
            insert(reports, &mut all, node);
        }
    }
    for (name, table) in file.tables("nodes", Section::Nodes) {
        check_name(reports, "nodes", &name);
        for node in group(name, table) {
            insert(reports, &mut all, node);
        }
    }
    all
}

fn insert(reports: &Reports, all: &mut BTreeMap<String, Node>, node: Node) {
    if let Some(first) = all.get(&node.name.value) {
        reports.broken(
            Section::Nodes,
            DUPLICATE_NAME
                .finding(format!("node {}", node.name.value), format!("the name `{}` is taken", node.name.value))
                .at(&node.name.span)
                .label("this makes it a second time")
                .related(&first.name.span, "it is made here first")
                .help("rename one of them"),
        );
        return;
    }
    all.insert(node.name.value.clone(), node);
}

/// Reports a name that is no RFC 1123 label.
pub(super) fn check_name(reports: &Reports, kind: &str, name: &Spanned<String>) {
    if let Some(fault) = values::label_fault(&name.value) {
        let refusal = values::bad_name(&name.value, &fault);
        reports.mark(Section::References);
        reports.add(refusal.finding(&format!("{kind}.{}", name.value.escape_debug()), &name.span));
    }
}

/// What a node and a group have in common.
struct Common {
    site: Option<Spanned<String>>,
    profile: Option<Spanned<String>>,
    services: BTreeMap<String, Service>,
    parameters: BTreeMap<String, Spanned<super::model::Value>>,
}

fn common(table: &mut Table<'_>) -> Common {
    Common {
        site: table.need("site", values::text, "\"SITE\""),
        profile: table.need("profile", values::text, "\"voter\""),
        services: table
            .tables("service", Section::Nodes)
            .into_iter()
            .filter_map(|(name, table)| Some((name.value.clone(), service(name, table)?)))
            .collect(),
        parameters: table.table("parameters", Section::Nodes).map_or_else(BTreeMap::new, |t| {
            t.all_values(values::parameter).into_iter().map(|(name, value)| (name.value, value)).collect()
        }),
    }
}

fn node(name: Spanned<String>, mut table: Table<'_>) -> Option<Node> {
    let common = common(&mut table);
    let address = table.need("address", values::address, "\"10.77.0.11\"");
    table.finish();
    Some(Node {
        name,
        site: common.site?,
        address: address?,
        profile: common.profile?,
        services: common.services,
        parameters: common.parameters,
    })
}

fn service(name: Spanned<String>, mut table: Table<'_>) -> Option<Service> {
    check_name(table.reports, "service", &name);
    let port = table.need("port", values::port, "5432");
    let data_set = table.get("data-set", values::label);
    let unit = table.get("unit", values::unit_name);
    table.finish();
    Some(Service { name, port: port?, data_set, unit })
}

fn group(name: Spanned<String>, mut table: Table<'_>) -> Vec<Node> {
    let common = common(&mut table);
    let count = table.need("count", values::count, "10");
    let addresses = table.need("addresses", values::address_range, "\"10.77.1.1-10.77.1.250\"");
    let (Some(count), Some(addresses), Some(site), Some(profile)) = (count, addresses, common.site, common.profile)
    else {
        table.finish();
        return Vec::new();
    };
    let (first, last) = addresses.value;
    // Saturating: the last IPv6 address is the last number.
    let room = (number(last) - number(first)).saturating_add(1);
    if room < u128::from(count.value) {
        let refusal = Refusal::new(&TOO_FEW_ADDRESSES, format!("{room} addresses for {} nodes", count.value))
            .label(format!("{room} addresses"))
            .help(format!(
                "let the range end at {} or later",
                address(first, number(first).saturating_add(u128::from(count.value) - 1))
            ));
        table.refuse("addresses", &addresses.span, refusal);
    }
    let width = count.value.to_string().len().max(3);
    let longest = name.value.len() + 1 + width;
    if values::label_fault(&name.value).is_none() && longest > 63 {
        let refusal = Refusal::new(
            &INVALID_VALUE,
            format!("the names of the group's nodes would have {longest} characters, more than 63"),
        );
        table.refuse("count", &name.span, refusal.help("shorten the group's name"));
    }
    table.finish();
    (1..=count.value)
        .take_while(|i| u128::from(*i) <= room)
        .map(|i| Node {
            name: Spanned::new(format!("{}-{i:0width$}", name.value), name.span.clone()),
            site: site.clone(),
            address: Spanned::new(
                address(first, number(first).saturating_add(u128::from(i) - 1)),
                addresses.span.clone(),
            ),
            profile: profile.clone(),
            services: common.services.clone(),
            parameters: common.parameters.clone(),
        })
        .collect()
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(a) => u128::from(a.to_bits()),
        IpAddr::V6(a) => a.to_bits(),
    }
}

/// The address of a number in the family of `like`.
fn address(like: IpAddr, number: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX))),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
    }
}
