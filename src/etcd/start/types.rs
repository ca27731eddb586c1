//! Values of another type than their key's.

use super::{About, Refusals};
use crate::etcd::config::Value;
use crate::etcd::keys::{Kind, TRANSPORTS, reading};
use crate::etcd::versions::Version;

/// Applies the checks.
pub(super) fn check(all: &mut Refusals) {
    for entry in &all.config.entries {
        let Some(kind) = reading(all.version, entry.section.as_deref(), &entry.key).kind() else { continue };
        if let Some(wanted) = wanted(kind, &entry.value) {
            all.say(entry.line, About::Value, format!("`{}` must be {wanted}", entry.key));
        }
        // From 3.6 on the section is looked into a second time, and then nothing is no section.
        let peer = TRANSPORTS[1];
        if entry.section.is_none()
            && entry.key.eq_ignore_ascii_case(peer)
            && entry.value == Value::Null
            && all.version >= Version::new(3, 6, 0)
        {
            all.say(entry.line, About::Value, format!("`{peer}` is there and has no keys"));
        }
    }
}

/// What the value should be, when it is not.
fn wanted(kind: Kind, value: &Value) -> Option<&'static str> {
    let is_text = |value: &Value| matches!(value, Value::Text(_) | Value::Null);
    let fits = match (kind, value) {
        (_, Value::Null) | (Kind::Any, _) => true,
        (Kind::Text | Kind::Urls, value) => is_text(value),
        (Kind::Flag, value) => matches!(value, Value::Flag(_)),
        (Kind::Whole, Value::Whole(number)) => *number >= 0,
        (Kind::Word, Value::Whole(number)) => u32::try_from(*number).is_ok(),
        (Kind::Signed | Kind::Nanoseconds, value) => matches!(value, Value::Whole(_)),
        (Kind::Texts, Value::List(items)) => items.iter().all(is_text),
        (Kind::Section, value) => *value == Value::Section,
        _ => false,
    };
    let in_quotes = matches!(value, Value::Whole(_) | Value::Number(_) | Value::Flag(_));
    (!fits).then_some(match kind {
        Kind::Text if in_quotes => "text: put it in quotes",
        Kind::Text => "text",
        Kind::Urls => "URLs in one text, separated by commas",
        Kind::Flag => "`true` or `false`",
        Kind::Whole => "a whole number, not negative",
        Kind::Word => "a whole number below 2^32, not negative",
        Kind::Signed => "a whole number",
        Kind::Nanoseconds => "a whole number of nanoseconds (`10m` is for the flag only)",
        Kind::Texts => "a list of texts",
        Kind::Section => "a section of keys",
        Kind::Any => "",
    })
}
