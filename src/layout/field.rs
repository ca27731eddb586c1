//! How the fields of values are read, written and described, each type in one place, so that the decoder and the JSON
//! Schema cannot differ.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};

use serde_json::{Map, Value, json};

use super::text::{HexId, Label, Serial, Sha256, Text, Time, Uuid};

/// Fields that this version does not know; they are written back as they were read.
pub type Extra = Map<String, Value>;

/// Largest whole number that every reader of JSON keeps (RFC 8259, section 6): 2^53 - 1.
pub const LARGEST_NUMBER: u64 = (1 << 53) - 1;

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Path of the field, joined by dots: `services.web.port`. Empty for the value itself.
    pub path: String,
    /// Why: `is missing`, `is a text, not a whole number`.
    pub reason: String,
}

impl Wrong {
    /// Of the value at hand.
    pub fn new(reason: impl Into<String>) -> Wrong {
        Wrong { path: String::new(), reason: reason.into() }
    }
    /// The same, seen from the object that holds it.
    pub fn below(self, name: &str) -> Wrong {
        // A name comes from the registry and may be anything.
        let name: String = name.chars().take(80).flat_map(char::escape_debug).collect();
        let path = if self.path.is_empty() { name } else { format!("{name}.{}", self.path) };
        Wrong { path, ..self }
    }
    fn kind(value: &Value, wanted: &str) -> Wrong {
        Wrong::new(format!("is {}, not {wanted}", kind(value)))
    }
}

/// What a JSON value is, for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A type of fields.
pub trait Field: Sized {
    /// False when the field may be left out.
    const REQUIRED: bool = true;
    /// JSON Schema of the type.
    fn schema() -> Value;
    /// Reads a value.
    ///
    /// # Errors
    /// When it is of another type or out of bounds.
    fn read(value: Value) -> Result<Self, Wrong>;
    /// Writes it.
    fn write(&self) -> Value;

    /// Takes the field out of an object.
    ///
    /// # Errors
    /// As [`Field::read`], and when it is missing.
    fn take(object: &mut Extra, name: &str) -> Result<Self, Wrong> {
        let value = object.shift_remove(name).ok_or_else(|| Wrong::new("is missing").below(name))?;
        Self::read(value).map_err(|wrong| wrong.below(name))
    }
    /// Puts the field into an object.
    fn put(&self, object: &mut Extra, name: &str) {
        object.insert(name.to_owned(), self.write());
    }
}

impl<T: Field> Field for Option<T> {
    const REQUIRED: bool = false;
    fn schema() -> Value {
        T::schema()
    }
    fn read(value: Value) -> Result<Self, Wrong> {
        T::read(value).map(Some)
    }
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, Field::write)
    }
    fn take(object: &mut Extra, name: &str) -> Result<Self, Wrong> {
        match object.shift_remove(name) {
            Some(value) => T::read(value).map(Some).map_err(|wrong| wrong.below(name)),
            None => Ok(None),
        }
    }
    fn put(&self, object: &mut Extra, name: &str) {
        if let Some(value) = self {
            value.put(object, name);
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
    fn read(value: Value) -> Result<Self, Wrong> {
        let Value::Array(items) = value else { return Err(Wrong::kind(&value, "a list")) };
        items.into_iter().enumerate().map(|(n, item)| T::read(item).map_err(|w| w.below(&n.to_string()))).collect()
    }
    fn write(&self) -> Value {
        self.iter().map(Field::write).collect()
    }
}

impl<T: Field> Field for BTreeMap<Label, T> {
    fn schema() -> Value {
        json!({"type": "object", "propertyNames": {"pattern": Label::PATTERN}, "additionalProperties": T::schema()})
    }
    fn read(value: Value) -> Result<Self, Wrong> {
        let Value::Object(object) = value else { return Err(Wrong::kind(&value, "an object")) };
        let pair = |(name, value): (String, Value)| {
            let label = Label::of_text(&name).map_err(|error| Wrong::new(format!("has a wrong key: {error}")))?;
            Ok((label, T::read(value).map_err(|wrong| wrong.below(&name))?))
        };
        object.into_iter().map(pair).collect()
    }
    fn write(&self) -> Value {
        Value::Object(self.iter().map(|(name, value)| (name.to_string(), value.write())).collect())
    }
}

impl Field for String {
    fn schema() -> Value {
        json!({"type": "string"})
    }
    fn read(value: Value) -> Result<Self, Wrong> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(Wrong::kind(&other, "a text")),
        }
    }
    fn write(&self) -> Value {
        self.clone().into()
    }
}

impl Field for bool {
    fn schema() -> Value {
        json!({"type": "boolean"})
    }
    fn read(value: Value) -> Result<Self, Wrong> {
        value.as_bool().ok_or_else(|| Wrong::kind(&value, "true or false"))
    }
    fn write(&self) -> Value {
        (*self).into()
    }
}

/// A whole number between bounds. `80.0` is one (JSON Schema, and RFC 8259 knows one kind of number).
fn whole(value: &Value, least: u64, most: u64) -> Result<u64, Wrong> {
    let Value::Number(number) = value else { return Err(Wrong::kind(value, "a whole number")) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let of_float = |n: f64| (n.fract() == 0.0 && (0.0..9e15).contains(&n)).then_some(n as u64);
    let whole = number.as_u64().or_else(|| number.as_f64().and_then(of_float));
    match whole {
        Some(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(Wrong::new(format!("is {number}, not a whole number from {least} to {most}"))),
    }
}

macro_rules! numbers {
    ($($type:ty: $least:expr, $most:expr, $get:expr;)+) => {$(
        impl Field for $type {
            fn schema() -> Value {
                let (least, most): (u64, u64) = ($least, $most);
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            fn read(value: Value) -> Result<Self, Wrong> {
                let number = whole(&value, $least, $most)?;
                <$type>::try_from(number).map_err(|_| Wrong::kind(&value, "a whole number in bounds"))
            }
            fn write(&self) -> Value {
                let get: fn(&$type) -> u64 = $get;
                get(self).into()
            }
        }
    )+};
}

numbers! {
    u16: 0, u16::MAX.into(), |n| (*n).into();
    u32: 0, u32::MAX.into(), |n| (*n).into();
    u64: 0, LARGEST_NUMBER, |n| *n;
}

/// Whole numbers from 1.
macro_rules! positive {
    ($($type:ty, $inner:ty;)+) => {$(
        impl Field for $type {
            fn schema() -> Value {
                json!({"type": "integer", "minimum": 1, "maximum": <$inner>::MAX})
            }
            fn read(value: Value) -> Result<Self, Wrong> {
                let number = whole(&value, 1, <$inner>::MAX.into())?;
                let number = <$inner>::try_from(number).ok().and_then(<$type>::new);
                number.ok_or_else(|| Wrong::kind(&value, "a whole number in bounds"))
            }
            fn write(&self) -> Value {
                self.get().into()
            }
        }
    )+};
}

positive! {
    NonZeroU16, u16;
    NonZeroU32, u32;
}

macro_rules! of_text {
    ($($type:ty)+) => {$(
        impl Field for $type {
            fn schema() -> Value {
                json!({"type": "string", "pattern": <$type as Text>::PATTERN})
            }
            fn read(value: Value) -> Result<Self, Wrong> {
                let text = String::read(value)?;
                <$type as Text>::of_text(&text).map_err(|error| Wrong::new(format!("is wrong: {error}")))
            }
            fn write(&self) -> Value {
                self.to_text().into()
            }
        }
    )+};
}

of_text! { Label Uuid Sha256 Serial HexId Time }

impl Field for IpAddr {
    fn schema() -> Value {
        json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]})
    }
    fn read(value: Value) -> Result<Self, Wrong> {
        let text = String::read(value)?;
        let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
        text.parse().map_err(|_| Wrong::new(format!("is wrong: `{shown}` is no IPv4 or IPv6 address")))
    }
    fn write(&self) -> Value {
        self.to_string().into()
    }
}

/// One line of documentation out of the lines of a doc comment.
pub(super) fn described(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// An enumeration that is written as words.
macro_rules! words {
    ($(#[doc = $about:literal])+ pub enum $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl $name {
            /// Every one, in the order of the specification.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word in the registry.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::layout::field::Field for $name {
            fn schema() -> serde_json::Value {
                let words: Vec<&str> = $name::ALL.iter().map(|one| one.as_str()).collect();
                serde_json::json!({"enum": words})
            }
            fn read(value: serde_json::Value) -> Result<Self, $crate::layout::field::Wrong> {
                let text = <String as $crate::layout::field::Field>::read(value)?;
                $name::ALL.iter().copied().find(|one| one.as_str() == text).ok_or_else(|| {
                    let words: Vec<String> = $name::ALL.iter().map(|one| format!("`{one}`")).collect();
                    let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
                    $crate::layout::field::Wrong::new(format!("is `{shown}`, not one of {}", words.join(", ")))
                })
            }
            fn write(&self) -> serde_json::Value {
                self.as_str().into()
            }
        }
    };
}

/// An object with the fields that are listed, and any others besides. Doc comments become the schema's descriptions.
macro_rules! object {
    ($(#[doc = $about:literal])+ pub struct $name:ident { $($(#[doc = $doc:literal])+ pub $field:ident: $type:ty,)+ }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)+
            /// Fields that this version does not know; written back as they were read.
            pub extra: $crate::layout::field::Extra,
        }

        impl $crate::layout::field::Field for $name {
            fn schema() -> serde_json::Value {
                let mut properties = $crate::layout::field::Extra::new();
                let mut required: Vec<&str> = Vec::new();
                $(
                    let mut schema = <$type as $crate::layout::field::Field>::schema();
                    schema["description"] = $crate::layout::field::described(&[$($doc),+]).into();
                    properties.insert(stringify!($field).to_owned(), schema);
                    if <$type as $crate::layout::field::Field>::REQUIRED {
                        required.push(stringify!($field));
                    }
                )+
                let about = $crate::layout::field::described(&[$($about),+]);
                serde_json::json!({"description": about, "type": "object", "required": required, "properties": properties})
            }
            fn read(value: serde_json::Value) -> Result<Self, $crate::layout::field::Wrong> {
                let serde_json::Value::Object(mut object) = value else {
                    let reason = format!("is {}, not an object", $crate::layout::field::kind(&value));
                    return Err($crate::layout::field::Wrong::new(reason));
                };
                $(let $field = <$type as $crate::layout::field::Field>::take(&mut object, stringify!($field))?;)+
                Ok($name { $($field,)+ extra: object })
            }
            fn write(&self) -> serde_json::Value {
                let mut object = $crate::layout::field::Extra::new();
                $($crate::layout::field::Field::put(&self.$field, &mut object, stringify!($field));)+
                // What is known wins over a field that somebody put among the unknown ones.
                for (name, value) in &self.extra {
                    object.entry(name.clone()).or_insert_with(|| value.clone());
                }
                serde_json::Value::Object(object)
            }
        }
    };
}

pub(super) use {object, words};
