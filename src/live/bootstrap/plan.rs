//! The changes from what is there to what is wanted; pure.

use std::collections::BTreeSet;

use super::change::Change;
use super::current::{Current, Permission, Stored};
use super::rules::{FOREIGN_ACCESS, IDENTITY_UNREADABLE, NEWER_SCHEMA, NO_OPERATOR, OTHER_GENERATION, OTHER_MESH};
use super::wanted::Wanted;
use crate::etcd::ids::{Id, LONE_DEFAULT_CLUSTER};
use crate::finding::{Finding, has_errors};
use crate::layout::access::{ROOT_ROLE, User, node_of_role};
use crate::layout::values::{Identity, Schema, WantNode, decode, encode};
use crate::layout::{Key, SCHEMA, Value, ValueError};

/// What there is to do, and what is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they are carried out.
    pub changes: Vec<Change>,
    /// Findings below the severity of an error.
    pub warnings: Vec<Finding>,
}

/// Compares.
///
/// # Errors
/// All findings, when this registry must not be written.
pub fn plan(wanted: &Wanted, current: &Current) -> Result<Plan, Vec<Finding>> {
    let mut findings = refusals(wanted, current);
    findings.extend(foreign(current));
    if has_errors(&findings) {
        return Err(findings);
    }
    let too_large = |subject: &str, error: &ValueError| IDENTITY_UNREADABLE.finding(subject, error.to_string());
    let mut changes = Vec::new();
    if current.identity.is_none() {
        let identity = encode(&wanted.identity).map_err(|e| vec![too_large("/mesh/identity", &e)])?;
        let schema = encode(&wanted.schema).map_err(|e| vec![too_large("/mesh/schema", &e)])?;
        let Identity { mesh, generation, cluster_id, .. } = &wanted.identity;
        let shown = format!("mesh {mesh}, generation {generation}, cluster {cluster_id}, schema {SCHEMA}");
        changes.push(Change::Create { identity, schema, shown });
    } else if current.schema.is_none() {
        let value = encode(&wanted.schema).map_err(|e| vec![too_large("/mesh/schema", &e)])?;
        changes.push(Change::Put { key: Key::Schema, value, old: None });
    }
    values(wanted, current, &mut changes)?;
    let before = changes.len();
    access(wanted, current, &mut changes);
    order(&mut changes[before..]);
    if !current.authentication {
        changes.push(Change::EnableAuthentication);
    }
    Ok(Plan { changes, warnings: findings })
}

/// Why this registry must not be written.
fn refusals(wanted: &Wanted, current: &Current) -> Vec<Finding> {
    let mut findings = Vec::new();
    let born = Id(wanted.identity.cluster_id.0);
    if let Some(cluster) = current.cluster.filter(|cluster| *cluster != born) {
        let lone =
            if cluster == LONE_DEFAULT_CLUSTER { ": it was started alone, without its configuration" } else { "" };
        findings.push(
            OTHER_MESH
                .finding("the registry", format!("the etcd cluster has the id {cluster}, and the birth record says {born}{lone}"))
                .help("look at the endpoints and at `[mesh]` and `[registry] generation` of mesh.toml; `fitout check` tells more"),
        );
    }
    if let Some(stored) = &current.identity {
        match decode::<Identity>(&stored.value) {
            Ok(identity) => findings.extend(other(&wanted.identity, &identity)),
            Err(error) => findings.push(unreadable("/mesh/identity", &error)),
        }
    }
    if let Some(stored) = &current.schema {
        match decode::<Schema>(&stored.value) {
            Ok(schema) if schema.schema.get() > SCHEMA || schema.least_writer.get() > SCHEMA => findings.push(
                NEWER_SCHEMA
                    .finding(
                        "/mesh/schema",
                        format!(
                            "the registry has schema {} and is written by programs of schema {} or newer; this fitout knows \
                             schema {SCHEMA}",
                            schema.schema, schema.least_writer
                        ),
                    )
                    .help(format!("use the version that wrote it (`{}`) or a newer one", schema.written_by.escape_debug())),
            ),
            Ok(_) => {}
            Err(error) => findings.push(unreadable("/mesh/schema", &error)),
        }
    }
    if !matches!(wanted.own, Some(User::Operator(_))) {
        let shown = wanted.own.as_ref().map_or("a name that is no user's".to_owned(), |user| format!("`{user}`"));
        findings.push(
            NO_OPERATOR
                .finding("the certificate", format!("its common name is {shown}, not `operator:NAME`"))
                .help("issue one with `fitout pki issue --operator NAME` and name it with `--credentials`"),
        );
    }
    findings
}

fn unreadable(key: &str, error: &ValueError) -> Finding {
    IDENTITY_UNREADABLE.finding(key, error.to_string()).help(format!("look at it: `etcdctl get {key}`"))
}

fn other(wanted: &Identity, found: &Identity) -> Vec<Finding> {
    let mut findings = Vec::new();
    if found.mesh != wanted.mesh {
        let text = format!("the registry is of the mesh `{}`, and the declaration of `{}`", found.mesh, wanted.mesh);
        findings.push(OTHER_MESH.finding("/mesh/identity", text).help("look at the endpoints, and at `-C`"));
    }
    if found.generation != wanted.generation {
        let text = format!(
            "the registry is of generation {}, and the declaration says {}",
            found.generation, wanted.generation
        );
        let help =
            format!("write `generation = {}` into `[registry]` of mesh.toml, if that is right", found.generation);
        findings.push(OTHER_GENERATION.finding("/mesh/identity", text).help(help));
    } else if found.cluster_id != wanted.cluster_id {
        let text = format!(
            "it says that the etcd cluster is {}, and the birth record says {}",
            found.cluster_id, wanted.cluster_id
        );
        findings.push(OTHER_MESH.finding("/mesh/identity", text).help("look at fitout.lock: is it of this mesh?"));
    }
    findings
}

/// Users and roles that are not of the layout.
fn foreign(current: &Current) -> Vec<Finding> {
    let users: Vec<&String> = current.users.keys().filter(|name| User::parse(name).is_none()).collect();
    let known = |role: &&String| role.as_str() == ROOT_ROLE || node_of_role(role).is_some();
    let roles: Vec<&String> = current.roles.keys().filter(|role| !known(role)).collect();
    let listed = |names: &[&String]| {
        let shown: Vec<String> = names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
        shown.join(", ")
    };
    [("users", users), ("roles", roles)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| {
            FOREIGN_ACCESS
                .finding("the registry", format!("it has {what} that are not of the layout: {}", listed(&names)))
                .help(format!("they are left alone; see `etcdctl {} get NAME`", what.trim_end_matches('s')))
        })
        .collect()
}

/// Changes of `/mesh/want/`.
fn values(wanted: &Wanted, current: &Current, changes: &mut Vec<Change>) -> Result<(), Vec<Finding>> {
    for (key, value) in &wanted.want {
        let old = current.want.get(key.to_string().as_bytes());
        let known = old.and_then(|stored| Value::decode(key, &stored.value).ok());
        let value = known.as_ref().map_or_else(|| value.clone(), |old| keep(value, old));
        if known.as_ref() == Some(&value) {
            continue;
        }
        let text = value.encode().map_err(|error| {
            vec![IDENTITY_UNREADABLE.finding(key.to_string(), format!("it cannot be written: {error}"))]
        })?;
        let shown = |stored: &Stored| (String::from_utf8_lossy(&stored.value).into_owned(), stored.revision);
        changes.push(Change::Put { key: key.clone(), value: text, old: old.map(shown) });
    }
    let keys: BTreeSet<Vec<u8>> = wanted.want.keys().map(|key| key.to_string().into_bytes()).collect();
    let gone = current.want.iter().filter(|(key, _)| !keys.contains(*key));
    changes.extend(gone.map(|(key, stored)| Change::Delete { key: key.clone(), revision: stored.revision }));
    Ok(())
}

/// The wanted value with what only the old one knows: fields of later versions, and the image, which the declaration does
/// not name.
fn keep(wanted: &Value, old: &Value) -> Value {
    let mut value = wanted.clone();
    match (&mut value, old) {
        (Value::WantSite(new), Value::WantSite(old)) => new.extra.clone_from(&old.extra),
        (Value::WantNode(new), Value::WantNode(old)) => keep_node(new, old),
        (Value::WantQuorum(new), Value::WantQuorum(old)) => new.extra.clone_from(&old.extra),
        (Value::WantService(new), Value::WantService(old)) => new.extra.clone_from(&old.extra),
        (Value::WantData(new), Value::WantData(old)) => new.extra.clone_from(&old.extra),
        _ => {}
    }
    value
}

fn keep_node(new: &mut WantNode, old: &WantNode) {
    new.extra.clone_from(&old.extra);
    if new.image.is_none() {
        new.image.clone_from(&old.image);
    }
    for (name, service) in &mut new.services {
        if let Some(old) = old.services.get(name) {
            service.extra.clone_from(&old.extra);
        }
    }
}

/// Changes of users and roles.
fn access(wanted: &Wanted, current: &Current, changes: &mut Vec<Change>) {
    for name in current.users.keys() {
        let gone = match User::parse(name) {
            Some(user @ (User::Node(_) | User::Snapshot(_))) => !wanted.users.contains_key(&user),
            Some(user @ User::Operator(_)) => wanted.all_operators && !wanted.users.contains_key(&user),
            Some(User::Root) | None => false,
        };
        if gone {
            changes.push(Change::RemoveUser(name.clone()));
        }
    }
    for role in current.roles.keys() {
        if node_of_role(role).is_some() && !wanted.roles.contains_key(role) {
            changes.push(Change::RemoveRole(role.clone()));
        }
    }
    for (role, permissions) in &wanted.roles {
        match current.roles.get(role) {
            None => {
                changes.push(Change::AddRole { role: role.clone(), permissions: permissions.iter().cloned().collect() })
            }
            // etcd's own role: whatever it is given, it may do everything.
            Some(_) if role == ROOT_ROLE => {}
            Some(there) => permissions_of(role, permissions, there, changes),
        }
    }
    for (user, role) in &wanted.users {
        let name = user.to_string();
        let Some(there) = current.users.get(&name) else {
            changes.push(Change::AddUser { user: name, role: role.clone() });
            continue;
        };
        if !there.contains(role) {
            changes.push(Change::GiveRole { user: name.clone(), role: role.clone() });
        }
        let more = there.iter().filter(|other| *other != role && wanted.keeps(other, current));
        changes.extend(more.map(|other| Change::TakeRole { user: name.clone(), role: other.clone() }));
    }
}

impl Wanted {
    /// A role that goes is taken from its users by etcd.
    fn keeps(&self, role: &str, current: &Current) -> bool {
        self.roles.contains_key(role) || node_of_role(role).is_none() || !current.roles.contains_key(role)
    }
}

/// etcd keeps one permission for a range: another right to it replaces the first.
fn permissions_of(role: &str, wanted: &BTreeSet<Permission>, there: &BTreeSet<Permission>, changes: &mut Vec<Change>) {
    let same_range = |a: &Permission, b: &Permission| a.key == b.key && a.end == b.end;
    for permission in there.iter().filter(|old| !wanted.iter().any(|new| same_range(new, old))) {
        changes.push(Change::Revoke { role: role.to_owned(), permission: permission.clone() });
    }
    for permission in wanted.difference(there) {
        changes.push(Change::Grant { role: role.to_owned(), permission: permission.clone() });
    }
}

/// What is taken away first; then roles, then users: etcd computes the permissions of all users anew when a role changes
/// that any of them has, so roles are complete before users get them.
fn order(changes: &mut [Change]) {
    changes.sort_by_key(|change| match change {
        Change::RemoveUser(_) => 0,
        Change::TakeRole { .. } => 1,
        Change::RemoveRole(_) => 2,
        Change::Revoke { .. } => 3,
        Change::Grant { .. } => 4,
        Change::AddRole { .. } => 5,
        Change::AddUser { .. } => 6,
        Change::GiveRole { .. } => 7,
        _ => 8,
    });
}

#[cfg(test)]
mod tests;
