//! etcd's configuration file: values by key, each with its line.

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
            config.push(None, key, node);
            if let YamlData::Mapping(inner) = &node.data {
                for (key, node) in inner {
                    config.push(Some(&name), key, node);
                }
            }
        }
        Ok(config)
    }

    fn push(&mut self, section: Option<&str>, key: &MarkedYaml, node: &MarkedYaml) {
        let section = section.map(str::to_owned);
        self.entries.push(Entry { section, key: text_of(key), value: value_of(node), line: key.span.start.line() });
    }

    /// The entry of a key.
    pub fn entry(&self, section: Option<&str>, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.section.as_deref() == section && e.key == key)
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

fn text_of(node: &MarkedYaml) -> String {
    match value_of(node) {
        Value::Text(text) => text,
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        _ => String::new(),
    }
}

fn value_of(node: &MarkedYaml) -> Value {
    match &node.data {
        YamlData::Value(Scalar::String(text)) => Value::Text(text.to_string()),
        YamlData::Value(Scalar::Integer(number)) => Value::Whole(*number),
        YamlData::Value(Scalar::FloatingPoint(number)) => Value::Number(number.into_inner()),
        YamlData::Value(Scalar::Boolean(flag)) => Value::Flag(*flag),
        YamlData::Value(Scalar::Null) | YamlData::BadValue | YamlData::Alias(_) => Value::Null,
        YamlData::Sequence(items) => Value::List(items.iter().map(value_of).collect()),
        YamlData::Mapping(_) => Value::Section,
        YamlData::Representation(text, ..) => Value::Text(text.to_string()),
        YamlData::Tagged(_, inner) => value_of(inner),
    }
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
        ] {
            assert_eq!(Config::parse(text).map_err(|e| e.to_string()), Err(want.to_owned()), "{text}");
        }
        assert!(matches!(Config::parse("name: [a\n"), Err(ConfigError::Yaml { .. })));
    }
}
