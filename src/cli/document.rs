//! Documents that are generated from what the program knows: `docs/findings.md` and `docs/message-format.md`. A test
//! compares; `make golden` writes them.

use std::fmt::Write as _;

use serde_json::Value;

use super::schema::Name;
use crate::finding::Rule;

/// `docs/findings.md`: every rule, by family.
pub fn findings(rules: &[&'static Rule]) -> String {
    let mut text = String::from(
        "# Findings\n\nGenerated from the rules (`make golden`): do not edit. `fitout explain CODE` prints the same.\n\n\
         An **error** makes a command exit 1, or 2 when the declaration, an overlay, the lock or the certificate store is \
         wrong. A **warning** works today and will surprise somebody; `--deny warnings` counts it as an error. A **notice** \
         is worth knowing. What may be allowed for a time, and how: [allow.md](allow.md).\n",
    );
    let mut families: Vec<&str> = Vec::new();
    for rule in rules {
        if !families.contains(&rule.family) {
            families.push(rule.family);
        }
    }
    text.push_str("\n| code | severity | what |\n|---|---|---|\n");
    for rule in families.iter().flat_map(|family| rules.iter().filter(move |r| r.family == *family)) {
        let summary = rule.summary.replace('|', "\\|");
        let _ = writeln!(text, "| [`{0}`](#{0}) | {1} | {summary} |", rule.code, rule.severity);
    }
    for family in families {
        let _ = write!(text, "\n## Family {family}\n");
        for rule in rules.iter().filter(|r| r.family == family) {
            let _ = write!(
                text,
                "\n### {}\n\n**{}**: {}.\n\n{}\n",
                rule.code,
                rule.severity,
                rule.summary,
                paragraphs(rule.explanation)
            );
        }
    }
    text
}

/// Paragraphs with single spaces; what only Markdown would take for its own is escaped outside of backticks.
fn paragraphs(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n")
            .map(|paragraph| {
                let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
                let parts = line.split('`').enumerate();
                let escaped: Vec<String> = parts
                    .map(|(n, part)| {
                        if n.is_multiple_of(2) {
                            part.replace('<', "&lt;").replace('*', "\\*")
                        } else {
                            part.to_owned()
                        }
                    })
                    .collect();
                escaped.join("`")
            })
            .collect();
    paragraphs.join("\n\n")
}

/// The generated part of `docs/message-format.md`: every type of object, from the schema.
///
/// # Errors
/// When the schema is not what this program was made with.
pub fn messages() -> Result<String, serde_json::Error> {
    let schema: Value = serde_json::from_str(Name::Message.text())?;
    let mut text = String::new();
    for (name, object) in schema["definitions"].as_object().into_iter().flatten() {
        let _ = write!(
            text,
            "\n### `{name}`\n\n{}\n\n| member | type | what |\n|---|---|---|\n",
            word(&object["description"])
        );
        for (member, what) in object["properties"].as_object().into_iter().flatten() {
            let optional = !object["required"].as_array().is_some_and(|r| r.iter().any(|m| m == member));
            let sometimes = if optional { "; not always there" } else { "" };
            let _ = writeln!(text, "| `{member}` | {} | {}{sometimes} |", types(what), word(&what["description"]));
        }
    }
    Ok(text)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn types(what: &Value) -> String {
    if let Some(values) = what["enum"].as_array() {
        return values.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ");
    }
    match &what["type"] {
        Value::Array(types) => types.iter().map(word).collect::<Vec<_>>().join(" or "),
        Value::String(array) if array == "array" => format!("list of {}s", word(&what["items"]["type"])),
        Value::String(one) => one.clone(),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::rules;
    use std::path::Path;

    /// Compares a document with what it should be, or writes it.
    fn golden(name: &str, want: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, want).unwrap();
        }
        let is = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = is.lines().zip(want.lines()).find(|(a, b)| a != b);
        assert!(is == want, "docs/{name} is not what the program says; `make golden` writes it: {differs:?}");
    }

    #[test]
    fn the_table_of_findings_is_true() {
        golden("findings.md", &findings(&rules::all()));
    }

    #[test]
    fn the_message_format_is_documented() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/message-format.md");
        let text = std::fs::read_to_string(path).unwrap();
        let mark = "<!-- generated from schemas/message.schema.json by `make golden` -->\n";
        let (head, _) = text.split_once(mark).unwrap();
        golden("message-format.md", &format!("{head}{mark}{}", messages().unwrap()));
    }
}
