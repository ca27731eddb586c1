//! Quoting for what templates write. tera has none for these languages.

use tera::{Error, Kwargs, State, TeraResult, Value};

/// Registers all filters.
pub fn register(tera: &mut tera::Tera) {
    // A YAML flow scalar in double quotes takes JSON's escapes (YAML 1.2, chapter 5.7).
    tera.register_filter("json", |value: Value, _: Kwargs, _: &State| json(&value));
    tera.register_filter("yaml", |value: Value, _: Kwargs, _: &State| json(&value));
    tera.register_filter("toml", |value: Value, _: Kwargs, _: &State| toml_value(&value));
    tera.register_filter("sh_quote", |value: &str, _: Kwargs, _: &State| sh_quote(value));
    tera.register_filter("systemd_escape", |value: &str, _: Kwargs, _: &State| systemd_escape(value));
}

fn json(value: &Value) -> TeraResult<String> {
    serde_json::to_string(value).map_err(Error::message)
}

fn toml_value(value: &Value) -> TeraResult<String> {
    let json = serde_json::to_value(value).map_err(Error::message)?;
    let value = toml::Value::try_from(json).map_err(Error::message)?;
    match value {
        toml::Value::Table(_) => Err(Error::message("a table has no value form; write its fields one by one")),
        value => Ok(value.to_string()),
    }
}

/// One word of a POSIX shell, always quoted unless it is plainly safe.
pub fn sh_quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Escapes a text for use in a unit name, as systemd-escape(1) does without `--path`.
pub fn systemd_escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => escaped.push('-'),
            b'.' if index == 0 => escaped.push_str("\\x2e"),
            b if b.is_ascii_alphanumeric() || b":_.".contains(&b) => escaped.push(b.into()),
            b => escaped.push_str(&format!("\\x{b:02x}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        let mut tera = tera::Tera::new();
        register(&mut tera);
        let cases = [
            ("sh_quote", "a b", "'a b'"),
            ("sh_quote", "it's", "'it'\\''s'"),
            ("sh_quote", "", "''"),
            ("sh_quote", "10.77.0.11", "10.77.0.11"),
            ("sh_quote", "$(reboot)", "'$(reboot)'"),
            ("systemd_escape", "a/b-c.d", "a-b\\x2dc.d"),
            ("systemd_escape", ".x é", "\\x2ex\\x20\\xc3\\xa9"),
            ("json", "a\"b\n", "\"a\\\"b\\n\""),
            ("yaml", "no", "\"no\""),
            ("toml", "a\"b", "'a\"b'"),
            ("toml", "tab\t", "\"tab\\t\""),
        ];
        for (filter, value, want) in cases {
            let mut context = tera::Context::new();
            context.insert("v", value);
            let got = tera.render_str(&format!("{{{{ v | {filter} }}}}"), &context, false);
            assert_eq!(got.map_err(|e| e.to_string()), Ok(want.to_owned()), "{filter} {value:?}");
        }
    }

    #[test]
    fn lists_and_numbers() {
        let mut tera = tera::Tera::new();
        register(&mut tera);
        let mut context = tera::Context::new();
        context.insert("v", &vec!["a", "b"]);
        context.insert("n", &7u64);
        let got = tera.render_str("{{ v | toml }} {{ v | yaml }} {{ n | toml }}", &context, false).unwrap();
        assert_eq!(got, r#"["a", "b"] ["a","b"] 7"#);
    }
}
