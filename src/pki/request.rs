//! What certificates the declaration asks for, and whether one that is there will do.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use time::OffsetDateTime;

use super::inspect::{Certificate, date};
use super::names::{San, check_host};
use super::profiles::{LEAF_USAGE, usage_words};
use super::{Use, authority, rules};
use crate::declaration::{Mesh, Node};
use crate::finding::{Failure, Finding};

/// Longest common name (RFC 5280, ub-common-name).
const COMMON_NAME_MAX: usize = 64;

/// Place among those that shall not expire together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// From 0, by name.
    pub place: u32,
    /// How many there are.
    pub of: u32,
}

/// One certificate that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whose, in words: `node lis1`, `operator anna`.
    pub who: String,
    /// Profile.
    pub purpose: Use,
    /// Common name; of client certificates etcd's user.
    pub common_name: String,
    /// Alternative names, sorted.
    pub sans: Vec<San>,
    /// `[pki] <purpose>.lifetime`.
    pub lifetime: Duration,
    /// `[pki] renew-before`.
    pub renew_before: Duration,
    /// For nodes of the registry.
    pub order: Option<Order>,
}

impl Request {
    /// `server certificate of node lis1`.
    pub fn title(&self) -> String {
        format!("{} certificate of {}", self.purpose, self.who)
    }
}

/// All certificates of a node: `client` for every one, `server` and `peer` where etcd runs.
///
/// # Errors
/// A finding for every name that cannot stand in a certificate.
pub fn of_node(mesh: &Mesh, node: &Node) -> Result<Vec<Request>, Vec<Finding>> {
    let name = &node.name.value;
    let who = format!("node {name}");
    let mut all = vec![client(mesh, who.clone(), format!("node:{name}"))];
    if mesh.part_of(node).runs_registry() {
        let of = mesh.registry_nodes().count() as u32;
        let place = mesh.registry_nodes().position(|n| n.name.value == *name).unwrap_or(0) as u32;
        for purpose in [Use::Server, Use::Peer] {
            let lifetime = match purpose {
                Use::Server => mesh.pki.server_lifetime.value,
                Use::Client | Use::Peer => mesh.pki.peer_lifetime.value,
            };
            all.push(Request {
                who: who.clone(),
                purpose,
                common_name: name.clone(),
                sans: sans(mesh, node, purpose),
                lifetime,
                renew_before: mesh.pki.renew_before.value,
                order: Some(Order { place, of }),
            });
        }
    }
    check(&all).map(|()| all)
}

/// The client certificate of a person or of CI.
///
/// # Errors
/// When the name cannot stand in a certificate.
pub fn of_operator(mesh: &Mesh, name: &str) -> Result<Request, Vec<Finding>> {
    let request = client(mesh, format!("operator {name}"), format!("operator:{name}"));
    if let Err(error) =
        check_host(name).and(if name.contains('.') { Err(super::names::NameError::Character) } else { Ok(()) })
    {
        return Err(vec![
            rules::NAME
                .finding(&request.who, format!("`{name}` cannot be an operator's name: it {error}"))
                .help("use letters, digits and inner hyphens"),
        ]);
    }
    check(std::slice::from_ref(&request)).map(|()| request)
}

fn client(mesh: &Mesh, who: String, common_name: String) -> Request {
    Request {
        who,
        purpose: Use::Client,
        common_name,
        sans: Vec::new(),
        lifetime: mesh.pki.client_lifetime.value,
        renew_before: mesh.pki.renew_before.value,
        order: None,
    }
}

/// Names of a node's listeners. Loopback is in `server` (a shell on the node asks its own etcd), and in `peer` only when
/// the mesh's network is loopback itself: peers then see the source address 127.0.0.1 or ::1, whatever they bind.
fn sans(mesh: &Mesh, node: &Node, purpose: Use) -> Vec<San> {
    let mut sans = vec![San::Dns(node.name.value.clone()), San::Dns(mesh.fqdn(node)), San::Ip(node.address.value)];
    let loopback = [San::Ip(Ipv4Addr::LOCALHOST.into()), San::Ip(Ipv6Addr::LOCALHOST.into())];
    match purpose {
        Use::Server => {
            sans.push(San::Dns("localhost".to_owned()));
            sans.extend(loopback);
        }
        Use::Peer if mesh.network.value.addr().is_loopback() => sans.push(match node.address.value {
            IpAddr::V4(_) => loopback[0].clone(),
            IpAddr::V6(_) => loopback[1].clone(),
        }),
        Use::Peer | Use::Client => {}
    }
    sans.sort();
    sans.dedup();
    sans
}

fn check(requests: &[Request]) -> Result<(), Vec<Finding>> {
    let mut findings = Vec::new();
    for request in requests {
        if request.common_name.len() > COMMON_NAME_MAX {
            findings.push(rules::NAME.finding(
                &request.who,
                format!(
                    "the common name `{}` has {} characters; at most {COMMON_NAME_MAX} are allowed",
                    request.common_name,
                    request.common_name.len()
                ),
            ));
        }
        for san in &request.sans {
            let San::Dns(name) = san else { continue };
            if let Err(error) = check_host(name) {
                findings.push(rules::NAME.finding(
                    &request.who,
                    format!("`{name}` cannot stand in the {} certificate: it {error}", request.purpose),
                ));
            }
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// Why a certificate must be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// There is none.
    Missing,
    /// The declaration asks for something else: what, in words.
    Changed(String),
    /// The authority that signs now is not the one that signed it.
    Authority,
    /// Less than the renewal window is left.
    Due(OffsetDateTime),
    /// It ended then.
    Expired(OffsetDateTime),
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Missing => f.write_str("there is none yet"),
            Reason::Changed(what) => f.write_str(what),
            Reason::Authority => f.write_str("another authority signs now"),
            Reason::Due(end) => write!(f, "it ends at {}, within the renewal window", date(*end)),
            Reason::Expired(end) => write!(f, "it ended at {}", date(*end)),
        }
    }
}

/// Whether the declaration or the authority asks for another certificate than this; dates do not count.
pub fn differs(request: &Request, have: &Certificate, authority: &Certificate) -> Option<Reason> {
    if !have.is_signed_by(authority) {
        return Some(Reason::Authority);
    }
    if have.common_name.as_deref() != Some(&request.common_name) {
        let old = have.common_name.as_deref().unwrap_or("none");
        return Some(Reason::Changed(format!("its common name is `{old}`, declared is `{}`", request.common_name)));
    }
    let mut names: Vec<San> =
        have.dns.iter().cloned().map(San::Dns).chain(have.addresses.iter().copied().map(San::Ip)).collect();
    names.sort();
    if names != request.sans {
        let list = |all: &[San], but: &[San]| {
            let some: Vec<String> = all.iter().filter(|san| !but.contains(san)).map(ToString::to_string).collect();
            if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
        };
        let (lacks, has) = (list(&request.sans, &names), list(&names, &request.sans));
        return Some(Reason::Changed(format!("it lacks {lacks}, and names {has} that is not declared")));
    }
    let extended = have.extended.as_deref().unwrap_or_default();
    if have.key_usage != Some(LEAF_USAGE) || extended != request.purpose.extended() {
        let usage = usage_words(have.key_usage.unwrap_or(0));
        return Some(Reason::Changed(format!("its usages ({usage}) are not those of the profile")));
    }
    None
}

/// Whether its dates ask for another one. A renewal that would gain less than a tenth of the window (the authority ends
/// too) is not made: every build would make it again.
///
/// # Errors
/// When the new end would be no date.
pub fn outlived(
    request: &Request,
    have: &Certificate,
    authority: &Certificate,
    now: OffsetDateTime,
) -> Result<Option<Reason>, Failure> {
    if now > have.not_after {
        return Ok(Some(Reason::Expired(have.not_after)));
    }
    if have.not_after - now >= request.renew_before {
        return Ok(None);
    }
    let gain = authority::end(request, now, authority.not_after)? - have.not_after;
    Ok((gain > time::Duration::ZERO && gain >= request.renew_before / 10).then_some(Reason::Due(have.not_after)))
}
