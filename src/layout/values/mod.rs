//! The values, one type each. A value is a JSON object in UTF-8 of at most 8 KiB with `"v": 1`; fields that a reader does
//! not know are kept when it writes the value again.

mod live;
mod ops;
mod want;
mod whole;

use std::collections::BTreeMap;

use serde_json::Value as Json;

pub use live::{Check, Claim, Health, Here, Service, State};
pub use ops::{Backup, Certificate};
pub use want::{
    Part, Protocol, SiteKind, Spread, Topology, WantData, WantNode, WantNodeService, WantQuorum, WantService, WantSite,
};
pub use whole::{Identity, RestoredFrom, Schema};

use super::field::{Extra, Field, Wrong, kind};
use super::keys::Key;
use super::{LARGEST_VALUE, VALUE_VERSION};

/// Why bytes are no value of schema 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It is larger than [`LARGEST_VALUE`].
    #[error("the value has {0} bytes, more than {LARGEST_VALUE}")]
    TooLarge(usize),
    /// It is no UTF-8 from this byte on.
    #[error("the value is not UTF-8 from byte {0} on")]
    NotUtf8(usize),
    /// It is no JSON.
    #[error("the value is not JSON: {0}")]
    NotJson(String),
    /// It is JSON of another type.
    #[error("the value is {0}, not an object")]
    NotAnObject(&'static str),
    /// It is of another version: its meaning is not known here.
    #[error("the value is of version {0}, not {VALUE_VERSION}")]
    OtherVersion(u64),
    /// A field is missing or wrong.
    #[error("`{path}` {reason}")]
    Field {
        /// Path of the field: `services.web.port`.
        path: String,
        /// Why: `is missing`.
        reason: String,
    },
    /// A field says something else than the key.
    #[error("`{field}` is {value}, and the key says {key}")]
    NotOfKey {
        /// The field.
        field: &'static str,
        /// What stands there.
        value: String,
        /// What stands in the key.
        key: String,
    },
}

impl From<Wrong> for ValueError {
    fn from(wrong: Wrong) -> ValueError {
        ValueError::Field { path: wrong.path, reason: wrong.reason }
    }
}

/// Reads a value of a type that is known.
///
/// # Errors
/// When the bytes are no such value; junk of any size is refused without being parsed.
pub fn decode<T: Field>(bytes: &[u8]) -> Result<T, ValueError> {
    if bytes.len() > LARGEST_VALUE {
        return Err(ValueError::TooLarge(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ValueError::NotUtf8(error.valid_up_to()))?;
    let json: Json = serde_json::from_str(text).map_err(|error| ValueError::NotJson(error.to_string()))?;
    let Json::Object(mut object) = json else { return Err(ValueError::NotAnObject(kind(&json))) };
    let version = u64::take(&mut object, "v")?;
    if version != VALUE_VERSION {
        return Err(ValueError::OtherVersion(version));
    }
    Ok(T::read(Json::Object(object))?)
}

/// Writes a value as one line of JSON: `v` first, known fields in the order of the specification, unknown ones last.
///
/// # Errors
/// [`ValueError::TooLarge`] when it would be larger than [`LARGEST_VALUE`].
pub fn encode<T: Field>(value: &T) -> Result<String, ValueError> {
    let mut object = Extra::new();
    object.insert("v".to_owned(), VALUE_VERSION.into());
    if let Json::Object(fields) = value.write() {
        for (name, field) in fields {
            object.entry(name).or_insert(field);
        }
    }
    let text = Json::Object(object).to_string();
    if text.len() > LARGEST_VALUE { Err(ValueError::TooLarge(text.len())) } else { Ok(text) }
}

/// JSON Schema (draft-07) of a type's value as it stands in the registry.
fn schema_of<T: Field>(name: &str) -> Json {
    let mut schema = T::schema();
    let mut whole = Extra::new();
    whole.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    whole.insert("title".to_owned(), name.into());
    if let Some(list) = schema["required"].as_array_mut() {
        list.insert(0, "v".into());
    }
    let mut properties = Extra::new();
    let v = serde_json::json!({"const": VALUE_VERSION, "description": "Version of the value."});
    properties.insert("v".to_owned(), v);
    if let Json::Object(known) = schema["properties"].take() {
        properties.extend(known);
    }
    schema["properties"] = Json::Object(properties);
    if let Json::Object(rest) = schema {
        whole.extend(rest);
    }
    Json::Object(whole)
}

/// One line per kind of value: its variant, its type, its schema's name, the keys that hold it.
macro_rules! kinds {
    ($($(#[$about:meta])+ $variant:ident($type:ty), $name:literal, $key:pat,)+) => {
        /// A value of any key.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Value {
            $($(#[$about])+ $variant($type),)+
        }

        impl Value {
            /// Reads the value of a key.
            ///
            /// # Errors
            /// As [`decode`], and when it contradicts its key.
            pub fn decode(key: &Key, bytes: &[u8]) -> Result<Value, ValueError> {
                let value = match key {
                    $($key => Value::$variant(decode::<$type>(bytes)?),)+
                };
                value.agrees(key)?;
                Ok(value)
            }

            /// Writes it.
            ///
            /// # Errors
            /// As [`encode`].
            pub fn encode(&self) -> Result<String, ValueError> {
                match self {
                    $(Value::$variant(value) => encode(value),)+
                }
            }

            /// Its fields as JSON, without `v`: what `--message-format json` shows.
            pub fn to_json(&self) -> Json {
                match self {
                    $(Value::$variant(value) => value.write(),)+
                }
            }
        }

        /// The JSON Schemas of all values by name.
        pub fn schemas() -> BTreeMap<&'static str, Json> {
            BTreeMap::from([$(($name, schema_of::<$type>($name)),)+])
        }

        /// Name of the schema for a key's value.
        pub fn schema_name(key: &Key) -> &'static str {
            match key {
                $($key => $name,)+
            }
        }

        $(impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$variant(value)
            }
        })+
    };
}

kinds! {
    /// Of `/mesh/identity`.
    Identity(Identity), "identity", Key::Identity,
    /// Of `/mesh/schema`.
    Schema(Schema), "schema", Key::Schema,
    /// Of `/mesh/want/site/<site>`.
    WantSite(WantSite), "want-site", Key::WantSite(_),
    /// Of `/mesh/want/node/<node>`.
    WantNode(WantNode), "want-node", Key::WantNode(_),
    /// Of `/mesh/want/quorum`.
    WantQuorum(WantQuorum), "want-quorum", Key::WantQuorum,
    /// Of `/mesh/want/service/<service>`.
    WantService(WantService), "want-service", Key::WantService(_),
    /// Of `/mesh/want/data/<set>`.
    WantData(WantData), "want-data", Key::WantData(_),
    /// Of `/mesh/claim/<set>/<site>`.
    Claim(Claim), "claim", Key::Claim { .. },
    /// Of `/mesh/live/<node>/here`.
    Here(Here), "live-here", Key::Here(_),
    /// Of `/mesh/live/<node>/health`.
    Health(Health), "live-health", Key::Health(_),
    /// Of `/mesh/live/<node>/service/<service>`.
    Service(Service), "live-service", Key::Service { .. },
    /// Of `/mesh/ops/<node>/cert/<use>`.
    Certificate(Certificate), "ops-cert", Key::Certificate { .. },
    /// Of `/mesh/ops/<node>/backup/<time>-<revision>`.
    Backup(Backup), "ops-backup", Key::Backup { .. },
}

impl Value {
    /// What a value repeats of its key is the same.
    fn agrees(&self, key: &Key) -> Result<(), ValueError> {
        match (self, key) {
            (Value::Backup(backup), Key::Backup { revision, .. }) if backup.revision != revision.0 => {
                Err(ValueError::NotOfKey {
                    field: "revision",
                    value: backup.revision.to_string(),
                    key: revision.0.to_string(),
                })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
