//! One change of a registry, and how it is shown.

use serde_json::{Value as Json, json};

use super::current::Permission;
use crate::layout::Key;
use crate::live::words::{difference, fields, text};

/// One change. Those of one plan are in the order in which they are carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Writes identity and schema, when there is no identity.
    Create {
        /// Value of `/mesh/identity`.
        identity: String,
        /// Value of `/mesh/schema`.
        schema: String,
        /// Both in words.
        shown: String,
    },
    /// Writes a key.
    Put {
        /// The key.
        key: Key,
        /// The value.
        value: String,
        /// What stands there now, and the revision of its last change.
        old: Option<(String, i64)>,
    },
    /// Removes a key of `/mesh/want/`.
    Delete {
        /// The key, which may be none of the schema.
        key: Vec<u8>,
        /// Revision of its last change.
        revision: i64,
    },
    /// Removes a user.
    RemoveUser(String),
    /// Removes a role, also from its users.
    RemoveRole(String),
    /// Takes a role from a user.
    TakeRole {
        /// The user.
        user: String,
        /// The role.
        role: String,
    },
    /// Takes a permission from a role.
    Revoke {
        /// The role.
        role: String,
        /// The permission.
        permission: Permission,
    },
    /// Makes a role with its permissions.
    AddRole {
        /// The role.
        role: String,
        /// Its permissions.
        permissions: Vec<Permission>,
    },
    /// Gives a role a permission, or changes what it allows.
    Grant {
        /// The role.
        role: String,
        /// The permission.
        permission: Permission,
    },
    /// Makes a user without password and gives it a role.
    AddUser {
        /// The user.
        user: String,
        /// Its role.
        role: String,
    },
    /// Gives a user that is there a role.
    GiveRole {
        /// The user.
        user: String,
        /// The role.
        role: String,
    },
    /// Turns authentication on.
    EnableAuthentication,
}

impl Change {
    /// What kind of thing it changes, for counting: `want/node`, `role`.
    pub fn kind(&self) -> String {
        match self {
            Change::Create { .. } => "identity".to_owned(),
            Change::Put { key, .. } => kind_of_key(&key.to_string()),
            Change::Delete { key, .. } => kind_of_key(&String::from_utf8_lossy(key)),
            Change::RemoveUser(_) | Change::AddUser { .. } | Change::GiveRole { .. } | Change::TakeRole { .. } => {
                "user".to_owned()
            }
            Change::RemoveRole(_) | Change::AddRole { .. } | Change::Grant { .. } | Change::Revoke { .. } => {
                "role".to_owned()
            }
            Change::EnableAuthentication => "authentication".to_owned(),
        }
    }

    /// `+` for something new, `-` for something that goes, `~` for something that changes.
    pub fn sign(&self) -> char {
        match self {
            Change::Create { .. } | Change::AddRole { .. } | Change::AddUser { .. } | Change::EnableAuthentication => {
                '+'
            }
            Change::Put { old: None, .. } => '+',
            Change::Put { .. } | Change::Grant { .. } | Change::Revoke { .. } => '~',
            Change::GiveRole { .. } | Change::TakeRole { .. } => '~',
            Change::Delete { .. } | Change::RemoveUser(_) | Change::RemoveRole(_) => '-',
        }
    }

    /// For programs: one object.
    pub fn to_json(&self) -> Json {
        let parsed = |text: &str| serde_json::from_str::<Json>(text).unwrap_or_else(|_| text.into());
        let permission = |p: &Permission| json!({"key": text(&p.key), "end": text(&p.end), "may": rights(p)});
        let mut object = match self {
            Change::Create { identity, schema, .. } => {
                json!({"action": "create", "identity": parsed(identity), "schema": parsed(schema)})
            }
            Change::Put { key, value, old } => json!({"action": "put", "key": key.to_string(), "value": parsed(value),
                "was": old.as_ref().map(|(old, _)| parsed(old))}),
            Change::Delete { key, .. } => json!({"action": "delete", "key": text(key)}),
            Change::RemoveUser(user) => json!({"action": "remove-user", "user": user}),
            Change::RemoveRole(role) => json!({"action": "remove-role", "role": role}),
            Change::TakeRole { user, role } => json!({"action": "take-role", "user": user, "role": role}),
            Change::Revoke { role, permission: p } => {
                json!({"action": "revoke", "role": role, "permissions": [permission(p)]})
            }
            Change::AddRole { role, permissions } => json!({"action": "add-role", "role": role,
                "permissions": permissions.iter().map(permission).collect::<Vec<_>>()}),
            Change::Grant { role, permission: p } => {
                json!({"action": "grant", "role": role, "permissions": [permission(p)]})
            }
            Change::AddUser { user, role } => json!({"action": "add-user", "user": user, "role": role}),
            Change::GiveRole { user, role } => json!({"action": "give-role", "user": user, "role": role}),
            Change::EnableAuthentication => json!({"action": "enable-authentication"}),
        };
        object["type"] = "change".into();
        object
    }
}

/// One line for people.
impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.sign())?;
        match self {
            Change::Create { shown, .. } => write!(f, "/mesh/identity and /mesh/schema: {shown}"),
            Change::Put { key, old: Some((old, _)), value } => write!(f, "{key}: {}", difference(old, value)),
            Change::Put { key, value, old: None } => write!(f, "{key}: {}", fields(value)),
            Change::Delete { key, .. } => write!(f, "{}", text(key)),
            Change::RemoveUser(user) => write!(f, "user {user}"),
            Change::RemoveRole(role) => write!(f, "role {role}"),
            Change::TakeRole { user, role } => write!(f, "user {user}: no more the role {role}"),
            Change::Revoke { role, permission } => write!(f, "role {role}: may no more {}", shown(permission)),
            Change::AddRole { role, permissions } => {
                let all: Vec<String> = permissions.iter().map(shown).collect();
                write!(
                    f,
                    "role {role}{}",
                    if all.is_empty() { String::new() } else { format!(": may {}", all.join(", ")) }
                )
            }
            Change::Grant { role, permission } => write!(f, "role {role}: may {}", shown(permission)),
            Change::AddUser { user, role } => write!(f, "user {user} with the role {role}"),
            Change::GiveRole { user, role } => write!(f, "user {user}: the role {role}"),
            Change::EnableAuthentication => f.write_str("authentication: from now on only these users get in"),
        }
    }
}

/// The first two parts below `/mesh/`.
fn kind_of_key(key: &str) -> String {
    let parts: Vec<&str> = key.trim_start_matches("/mesh/").split('/').collect();
    parts.iter().take(2.min(parts.len().saturating_sub(1)).max(1)).copied().collect::<Vec<_>>().join("/")
}

fn rights(permission: &Permission) -> &'static str {
    match (permission.read, permission.write) {
        (true, true) => "read and write",
        (false, true) => "write",
        _ => "read",
    }
}

/// `read /mesh/*`.
fn shown(permission: &Permission) -> String {
    let (key, end) = (text(&permission.key), text(&permission.end));
    let prefix = || crate::layout::keys::end_of(&String::from_utf8_lossy(&permission.key)) == end;
    let range = match end.as_str() {
        "" => key,
        _ if permission.key.is_ascii() && prefix() => format!("{key}*"),
        _ => format!("{key} up to {end}"),
    };
    format!("{} {range}", rights(permission))
}
