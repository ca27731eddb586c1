//! What the registry should hold, from the declaration.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use super::current::Permission;
use crate::declaration::{self, Mesh};
use crate::etcd::birth::Birth;
use crate::etcd::ids::Id;
use crate::layout::access::{ROOT_ROLE, User, grants_of, role_of};
use crate::layout::field::Extra;
use crate::layout::values::{
    Identity, Part, Protocol, Schema, SiteKind, Spread, Topology, WantData, WantNode, WantNodeService, WantQuorum,
    WantService, WantSite,
};
use crate::layout::{HexId, Key, Label, SCHEMA, TextError, Time, Uuid, Value};

/// What the registry should hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// For a registry that has none.
    pub identity: Identity,
    /// The schema.
    pub schema: Schema,
    /// Every key of `/mesh/want/`.
    pub want: BTreeMap<Key, Value>,
    /// Roles with their permissions.
    pub roles: BTreeMap<String, BTreeSet<Permission>>,
    /// Users, each with its one role.
    pub users: BTreeMap<User, String>,
    /// Whether [`Wanted::users`] has every operator: then the others are removed.
    pub all_operators: bool,
    /// Common name of the certificate that is shown: it must not lock itself out.
    pub own: Option<User>,
}

/// What the declaration does not say.
#[derive(Debug, Clone)]
pub struct Given {
    /// The birth record of the declared generation.
    pub birth: Birth,
    /// For a registry that has no identity yet.
    pub uuid: Uuid,
    /// Now.
    pub now: Time,
    /// Names of the operators whose certificates the store has; `None` when there is no store to ask.
    pub operators: Option<Vec<String>>,
    /// Common name of the certificate that is shown.
    pub own: Option<String>,
}

/// What a declaration wants.
///
/// # Errors
/// When a name cannot stand in a key; the declaration's rules refuse such names before.
pub fn of(mesh: &Mesh, given: &Given) -> Result<Wanted, TextError> {
    let mut want: BTreeMap<Key, Value> = BTreeMap::new();
    for site in mesh.sites.keys() {
        want.insert(Key::WantSite(site.parse()?), site_of(mesh, site)?.into());
    }
    let mut roles = BTreeMap::from([(ROOT_ROLE.to_owned(), BTreeSet::new())]);
    let mut users = BTreeMap::from([(User::Root, ROOT_ROLE.to_owned())]);
    for node in mesh.nodes.values() {
        let (name, site): (Label, Label) = (node.name.value.parse()?, node.site.value.parse()?);
        let wanted = node_of(mesh, node)?;
        let sets: Vec<Label> = wanted.services.values().filter_map(|service| service.data_set.clone()).collect();
        let grants = grants_of(&name, sets.iter().map(|set| (set, &site)));
        roles.insert(role_of(&name), grants.into_iter().map(Permission::from).collect());
        users.insert(User::Node(name.clone()), role_of(&name));
        if mesh.part_of(node).runs_registry() {
            users.insert(User::Snapshot(name.clone()), ROOT_ROLE.to_owned());
        }
        want.insert(Key::WantNode(name), wanted.into());
    }
    let own = given.own.as_deref().and_then(User::parse);
    let listed = given.operators.iter().flatten().map(|name| User::Operator(name.clone()));
    let operators = listed.chain(own.clone().filter(|user| matches!(user, User::Operator(_))));
    users.extend(operators.map(|user| (user, ROOT_ROLE.to_owned())));
    want.insert(Key::WantQuorum, quorum_of(mesh)?.into());
    for (service, value) in services_of(mesh)? {
        want.insert(Key::WantService(service), value.into());
    }
    for (set, value) in data_of(mesh)? {
        want.insert(Key::WantData(set), value.into());
    }
    Ok(Wanted {
        identity: Identity {
            mesh: mesh.name.value.parse()?,
            uuid: given.uuid.clone(),
            generation: NonZeroU32::new(given.birth.generation).unwrap_or(NonZeroU32::MIN),
            token: given.birth.token.clone(),
            cluster_id: HexId(given.birth.cluster_id.parse::<Id>().map_or(0, |id| id.0)),
            born: given.now,
            restored_from: None,
            extra: Extra::new(),
        },
        schema: schema(),
        want,
        roles,
        users,
        all_operators: given.operators.is_some(),
        own,
    })
}

/// The schema that this version writes.
fn schema() -> Schema {
    let one = NonZeroU32::new(SCHEMA).unwrap_or(NonZeroU32::MIN);
    let written_by = format!("fitout {}", env!("CARGO_PKG_VERSION"));
    Schema { schema: one, least_reader: one, least_writer: one, written_by, extra: Extra::new() }
}

fn site_of(mesh: &Mesh, site: &str) -> Result<WantSite, TextError> {
    let others = mesh.sites.keys().filter(|other| *other != site);
    let round_trip = |other: &String| Ok((other.parse()?, milliseconds(mesh.round_trip_between(site, other))));
    let mut nodes = mesh.nodes.values().filter(|node| node.site.value == site).peekable();
    let arbiter = nodes.peek().is_some() && nodes.all(|node| mesh.part_of(node) == declaration::Part::Arbiter);
    let kind = if arbiter { SiteKind::Arbiter } else { SiteKind::Data };
    Ok(WantSite { kind, round_trip_ms: others.map(round_trip).collect::<Result<_, _>>()?, extra: Extra::new() })
}

fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn part(part: declaration::Part) -> Part {
    match part {
        declaration::Part::Voter => Part::Voter,
        declaration::Part::Arbiter => Part::Arbiter,
        declaration::Part::Client => Part::Client,
        declaration::Part::ControlPlane => Part::ControlPlane,
    }
}

fn port(port: u16) -> NonZeroU16 {
    NonZeroU16::new(port).unwrap_or(NonZeroU16::MIN)
}

fn node_of(mesh: &Mesh, node: &declaration::Node) -> Result<WantNode, TextError> {
    let service = |(name, service): (&String, &declaration::Service)| {
        let data_set = service.data_set.as_ref().map(|set| set.value.parse()).transpose()?;
        Ok((name.parse()?, WantNodeService { port: port(service.port.value), data_set, extra: Extra::new() }))
    };
    Ok(WantNode {
        site: node.site.value.parse()?,
        part: part(mesh.part_of(node)),
        address: node.address.value,
        image: None,
        services: node.services.iter().map(service).collect::<Result<_, _>>()?,
        extra: Extra::new(),
    })
}

fn quorum_of(mesh: &Mesh) -> Result<WantQuorum, TextError> {
    let voters = mesh.registry_nodes().map(|node| node.name.value.parse()).collect::<Result<_, _>>()?;
    let arbiters = mesh.arbiters().map(|node| node.name.value.parse()).collect::<Result<_, _>>()?;
    let topology = match mesh.topology.value {
        declaration::Topology::Quorum => Topology::Quorum,
        declaration::Topology::Single => Topology::Single,
    };
    Ok(WantQuorum { topology, voters, arbiters, extra: Extra::new() })
}

/// The services of the mesh: each with the nodes that offer it.
fn services_of(mesh: &Mesh) -> Result<BTreeMap<Label, WantService>, TextError> {
    let mut ports: BTreeMap<&String, BTreeSet<u16>> = BTreeMap::new();
    let mut sites: BTreeMap<&String, BTreeMap<&str, u16>> = BTreeMap::new();
    for node in mesh.nodes.values() {
        for (name, service) in &node.services {
            ports.entry(name).or_default().insert(service.port.value);
            let count = sites.entry(name).or_default().entry(&node.site.value).or_default();
            *count = count.saturating_add(1);
        }
    }
    let service = |(name, sites): (&String, BTreeMap<&str, u16>)| {
        let all = sites.values().fold(0_u16, |sum, count| sum.saturating_add(*count));
        let fullest = sites.values().copied().max().unwrap_or_default();
        let one = ports.get(name).filter(|ports| ports.len() == 1).and_then(|ports| ports.first());
        let value = WantService {
            port: one.copied().map(port),
            protocol: Protocol::Tcp,
            least_count: port(all.saturating_sub(fullest)),
            spread: if sites.len() > 1 { Spread::Site } else { Spread::None },
            extra: Extra::new(),
        };
        Ok((name.parse()?, value))
    };
    sites.into_iter().map(service).collect()
}

/// The data sets of the mesh: each with the nodes that may hold a replica.
fn data_of(mesh: &Mesh) -> Result<BTreeMap<Label, WantData>, TextError> {
    let mut holders: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for node in mesh.nodes.values() {
        for set in node.services.values().filter_map(|service| service.data_set.as_ref()) {
            holders.entry(&set.value).or_default().insert(&node.name.value);
        }
    }
    let data = |(set, nodes): (&String, BTreeSet<&String>)| {
        let value = WantData {
            replicas: port(u16::try_from(nodes.len()).unwrap_or(u16::MAX)),
            spread: Spread::Site,
            nodes: nodes.into_iter().map(|node| node.parse()).collect::<Result<_, _>>()?,
            never_on: vec![Part::Arbiter],
            extra: Extra::new(),
        };
        Ok((set.parse()?, value))
    };
    holders.into_iter().map(data).collect()
}
