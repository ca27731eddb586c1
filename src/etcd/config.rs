//! etcd's configuration file: values by key, each with its line, as etcd's loader takes them.
//!
//! The loader (`sigs.k8s.io/yaml`) reads YAML 1.1, turns it into JSON, and lets Go's decoder match the keys whatever the
//! case of their letters: `pre-vote: yes` is true, `0144` is 100, and `Name` is `name`. Tried with 3.4.23 to 3.5.30.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

/// A value of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// Whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// Nothing, or `~`.
    Null,
    /// List.
    List(Vec<Value>),
    /// Mapping, whose entries stand in [`Config::entries`] under their section.
    Section,
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Section it stands in; `None` at the top.
    pub section: Option<String>,
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// From 1.
    pub line: usize,
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// All keys, in order of appearance.
    pub entries: Vec<Entry>,
}

/// Why a text is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No YAML, or a key stands twice.
    #[error("line {line}: {reason}")]
    Yaml {
        /// From 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// Something else than one mapping.
    #[error("it is not one YAML mapping")]
    NotAMapping,
}

impl Config {
    /// Parses the text of the file.
    ///
    /// # Errors
    /// When it is no YAML or no mapping.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let documents = MarkedYaml::load_from_str(text)
            .map_err(|e| ConfigError::Yaml { line: e.marker().line(), reason: e.info().to_owned() })?;
        let [document] = documents.as_slice() else { return Err(ConfigError::NotAMapping) };
        let YamlData::Mapping(mapping) = &document.data else { return Err(ConfigError::NotAMapping) };
        let mut config = Config::default();
        for (key, node) in mapping {
            let name = text_of(key);
            config.push(None, key, node, text)?;
            if let YamlData::Mapping(inner) = &node.data {
                for (key, node) in inner {
                    config.push(Some(&name), key, node, text)?;
                }
            }
        }
        Ok(config)
    }

    fn push(
        &mut self,
        section: Option<&str>,
        key: &MarkedYaml,
        node: &MarkedYaml,
        source: &str,
    ) -> Result<(), ConfigError> {
        let line = key.span.start.line();
        let name = text_of(key);
        if let Some(other) = self.entry(section, &name) {
            return Err(ConfigError::Yaml { line, reason: format!("`{}` and `{name}` are one key", other.key) });
        }
        let section = section.map(str::to_owned);
        self.entries.push(Entry { section, key: name, value: value_of(node, source), line });
        Ok(())
    }

    /// The entry of a key, whatever the case of its letters.
    pub fn entry(&self, section: Option<&str>, key: &str) -> Option<&Entry> {
        let is_in = |entry: &Entry| match (entry.section.as_deref(), section) {
            (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
            (a, b) => a == b,
        };
        self.entries.iter().find(|entry| is_in(entry) && entry.key.eq_ignore_ascii_case(key))
    }

    /// A key of the top level as text; numbers as they read. Empty texts count as absent, as they do for etcd.
    pub fn text(&self, key: &str) -> Option<String> {
        self.entry(None, key).and_then(Entry::text)
    }

    /// A key of a section as text.
    pub fn text_in(&self, section: &str, key: &str) -> Option<String> {
        self.entry(Some(section), key).and_then(Entry::text)
    }

    /// A whole number of the top level.
    pub fn whole(&self, key: &str) -> Option<i64> {
        match self.entry(None, key)?.value {
            Value::Whole(number) => Some(number),
            _ => None,
        }
    }

    /// A flag; `None` when absent or of another type.
    pub fn flag(&self, section: Option<&str>, key: &str) -> Option<bool> {
        match self.entry(section, key)?.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// URLs of a key: one text, separated by commas. Blanks around them are dropped, as etcd does.
    pub fn urls(&self, key: &str) -> Vec<String> {
        let text = self.text(key).unwrap_or_default();
        text.split(',').map(str::trim).filter(|u| !u.is_empty()).map(str::to_owned).collect()
    }

    /// The line of a key, or 1 when it is absent.
    pub fn line(&self, section: Option<&str>, key: &str) -> usize {
        self.entry(section, key).map_or(1, |e| e.line)
    }

    /// `initial-cluster` as pairs of name and URL, in order; a part without `=` has an empty URL.
    pub fn initial_cluster(&self) -> Vec<(String, String)> {
        let text = self.text("initial-cluster").unwrap_or_default();
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        parts.map(|p| p.split_once('=').unwrap_or((p, ""))).map(|(n, u)| (n.to_owned(), u.to_owned())).collect()
    }
}

impl Entry {
    /// The value as text.
    pub fn text(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Whole(number) => Some(number.to_string()),
            Value::Number(number) => Some(number.to_string()),
            Value::Flag(flag) => Some(flag.to_string()),
            Value::Null | Value::List(_) | Value::Section => None,
        }
        .filter(|text| !text.is_empty())
    }
}

/// A key's name: as it reads, since `on: x` is no flag of ours.
fn text_of(node: &MarkedYaml) -> String {
    match &node.data {
        YamlData::Value(Scalar::String(text)) | YamlData::Representation(text, ..) => text.to_string(),
        YamlData::Value(Scalar::Integer(number)) => number.to_string(),
        YamlData::Value(Scalar::FloatingPoint(number)) => number.to_string(),
        YamlData::Value(Scalar::Boolean(flag)) => flag.to_string(),
        _ => String::new(),
    }
}

fn value_of(node: &MarkedYaml, source: &str) -> Value {
    match &node.data {
        YamlData::Value(scalar) => match plain(node, source) {
            Some(text) => scalar_of(text),
            None => match scalar {
                Scalar::String(text) => Value::Text(text.to_string()),
                Scalar::Integer(number) => Value::Whole(*number),
                Scalar::FloatingPoint(number) => number_of(number.into_inner()),
                Scalar::Boolean(flag) => Value::Flag(*flag),
                Scalar::Null => Value::Null,
            },
        },
        YamlData::BadValue | YamlData::Alias(_) => Value::Null,
        YamlData::Sequence(items) => Value::List(items.iter().map(|item| value_of(item, source)).collect()),
        YamlData::Mapping(_) => Value::Section,
        YamlData::Representation(text, ..) => Value::Text(text.to_string()),
        YamlData::Tagged(_, inner) => value_of(inner, source),
    }
}

/// The text of a scalar that stands without quotes on one line; `None` for others.
fn plain<'a>(node: &MarkedYaml, source: &'a str) -> Option<&'a str> {
    let (start, end) = (node.span.start, node.span.end);
    if start.line() != end.line() {
        return None;
    }
    let line = source.lines().nth(start.line().checked_sub(1)?)?;
    let at = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let text = line.get(at(start.col())..at(end.col()))?.trim();
    (!text.starts_with(['"', '\'', '|', '>', '&', '*', '!'])).then_some(text)
}

/// A plain scalar as YAML 1.1 takes it (`go-yaml` v2, resolve.go).
fn scalar_of(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => return Value::Flag(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            return Value::Flag(false);
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Value::Text(text.to_owned());
    }
    let digits = text.replace('_', "");
    let (sign, unsigned) = match digits.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let (radix, number) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // No second sign: `from_str_radix` would take one.
    if number.starts_with(|c: char| c.is_ascii_hexdigit())
        && let Ok(number) = i64::from_str_radix(number, radix)
    {
        return Value::Whole(sign * number);
    }
    let is_float = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    match digits.parse::<f64>() {
        Ok(number) if is_float => number_of(number),
        _ => Value::Text(text.to_owned()),
    }
}

/// Whole numbers that are written with a point or an exponent become whole in JSON.
fn number_of(number: f64) -> Value {
    let fits = number.fract() == 0.0 && number.abs() < 9.0e18;
    if fits { Value::Whole(number as i64) } else { Value::Number(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lines() {
        let text = "# etcd\nname: \"n1\"\nheartbeat-interval: 100\npre-vote: true\nlog-outputs: [stderr]\n\
                    initial-cluster: a=https://1:2380, b=https://2:2380\npeer-transport-security:\n  client-cert-auth: true\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.text("name").as_deref(), Some("n1"));
        assert_eq!(config.whole("heartbeat-interval"), Some(100));
        assert_eq!(config.flag(Some("peer-transport-security"), "client-cert-auth"), Some(true));
        assert_eq!(config.flag(None, "client-cert-auth"), None);
        assert_eq!(config.line(Some("peer-transport-security"), "client-cert-auth"), 8);
        assert_eq!(
            config.entry(None, "log-outputs").map(|e| e.value.clone()),
            Some(Value::List(vec![Value::Text("stderr".into())]))
        );
        assert_eq!(config.initial_cluster()[1], ("b".to_owned(), "https://2:2380".to_owned()));
        assert_eq!(config.urls("initial-cluster"), ["a=https://1:2380", "b=https://2:2380"]);
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        for (text, want) in [
            ("- a\n", "it is not one YAML mapping"),
            ("", "it is not one YAML mapping"),
            ("name: a\nname: b\n", "line 2: duplicated key in mapping"),
            ("name: a\nName: b\n", "line 2: `name` and `Name` are one key"),
        ] {
            assert_eq!(Config::parse(text).map_err(|e| e.to_string()), Err(want.to_owned()), "{text}");
        }
        assert!(matches!(Config::parse("name: [a\n"), Err(ConfigError::Yaml { .. })));
    }

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        let cases = [
            ("yes", Value::Flag(true)),
            ("off", Value::Flag(false)),
            ("\"yes\"", Value::Text("yes".into())),
            ("'1'", Value::Text("1".into())),
            ("1", Value::Whole(1)),
            ("-1", Value::Whole(-1)),
            ("0x64", Value::Whole(100)),
            ("0144", Value::Whole(100)),
            ("1_00", Value::Whole(100)),
            ("1e2 # hundred", Value::Whole(100)),
            ("100.0", Value::Whole(100)),
            ("100.5", Value::Number(100.5)),
            ("99999999999999999999", Value::Number(1e20)),
            ("1h", Value::Text("1h".into())),
            ("10.0.0.1", Value::Text("10.0.0.1".into())),
            ("--1", Value::Text("--1".into())),
            ("", Value::Null),
            ("~", Value::Null),
            ("[yes, x]", Value::List(vec![Value::Flag(true), Value::Text("x".into())])),
        ];
        for (text, want) in cases {
            let config = Config::parse(&format!("Key: {text}\nnext: 1\n")).unwrap();
            assert_eq!(config.entry(None, "key").map(|e| e.value.clone()), Some(want), "{text}");
        }
    }
}
