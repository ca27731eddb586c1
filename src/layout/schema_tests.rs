//! The JSON Schemas of `schemas/registry` and the tables of `docs/registry.md` are those of the types, and the schemas take
//! and refuse what the decoder takes and refuses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::text::Text;
use super::values::tests::{GOOD, REFUSED, good};
use super::values::{Value, schema_name, schemas};
use super::{HexId, Key, Label, Serial, Sha256, Time, Uuid, Writer};

fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares with a file, or writes it: `make golden`.
fn held(file: &Path, got: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, got).unwrap();
    }
    let want = std::fs::read_to_string(file).unwrap_or_default();
    assert!(want == got, "{} differs from the types; after a look: `make golden`", file.display());
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let schemas = schemas();
    for (name, schema) in &schemas {
        let file = of_repository(&format!("schemas/registry/{name}.schema.json"));
        held(&file, &format!("{}\n", serde_json::to_string_pretty(schema).unwrap()));
    }
    let there = std::fs::read_dir(of_repository("schemas/registry")).unwrap().count();
    assert_eq!(there, schemas.len(), "no schema is left over");
}

fn validators() -> BTreeMap<&'static str, jsonschema::Validator> {
    let made = |(name, schema): (&'static str, Json)| {
        (name, jsonschema::options().should_validate_formats(true).build(&schema).unwrap())
    };
    schemas().into_iter().map(made).collect()
}

#[test]
fn what_is_taken_and_refused_is_the_same() {
    let validators = validators();
    let taken = |at: &str, text: &str| {
        let key = Key::parse(at.as_bytes()).unwrap();
        let json: Json = serde_json::from_str(text).unwrap();
        (validators[schema_name(&key)].is_valid(&json), Value::decode(&key, text.as_bytes()).is_ok())
    };
    for (at, text) in GOOD {
        assert_eq!(taken(at, text), (true, true), "{at}");
    }
    for (at, old, new, _) in REFUSED {
        let text = good(at).replace(old, new);
        assert_eq!(taken(at, &text), (false, false), "{at}: {text}");
    }
}

/// Every place of every good value, filled with values of every type and with texts of every form.
#[test]
fn schema_and_decoder_agree_on_every_field() {
    let validators = validators();
    let fill = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(65_535),
        json!(65_536),
        json!(4_294_967_295_u64),
        json!(4_294_967_296_u64),
        json!(9_007_199_254_740_991_u64),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("a"),
        json!("A"),
        json!("lis1"),
        json!("10.77.0.11"),
        json!("fd00::1"),
        json!("10.77.0.256"),
        json!("b71f75320dc06a6c"),
        json!("B71F75320DC06A6C"),
        json!("4f00"),
        json!("4f0"),
        json!("2026-11-30T10:53:00Z"),
        json!("2026-11-30"),
        json!("6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f"),
        json!("0".repeat(64)),
        json!("x".repeat(64)),
        json!("site"),
        json!("none"),
        json!("tcp"),
        json!("ok"),
        json!("arbiter"),
        json!("data"),
        json!("quorum"),
        json!([]),
        json!(["a"]),
        json!([1]),
        json!(["arbiter"]),
        json!({}),
        json!({"a": 1}),
        json!({"a": {}}),
        json!({"A": 1}),
        json!({"a": {"port": 1}}),
        json!({"a": {"state": "ok"}}),
    ];
    let mut seen = [0_u32; 2];
    for (at, text) in GOOD {
        let key = Key::parse(at.as_bytes()).unwrap();
        // What a value repeats of its key is beyond a schema.
        let agrees = |json: &Json| !at.contains("/backup/") || json["revision"] == 1234;
        let whole: Json = serde_json::from_str(text).unwrap();
        let mut all = Vec::new();
        for path in places(&whole, "") {
            all.extend(fill.iter().map(|value| {
                let mut changed = whole.clone();
                *changed.pointer_mut(&path).unwrap() = value.clone();
                changed
            }));
            let (parent, name) = path.rsplit_once('/').unwrap();
            let mut without = whole.clone();
            if let Some(object) = without.pointer_mut(parent).unwrap().as_object_mut() {
                object.remove(name);
                all.push(without);
            }
        }
        for json in all.iter().filter(|json| agrees(json)) {
            let (schema, decoder) =
                (validators[schema_name(&key)].is_valid(json), Value::decode(&key, json.to_string().as_bytes()));
            assert_eq!(schema, decoder.is_ok(), "{at}: {json}: {decoder:?}");
            seen[usize::from(schema)] += 1;
        }
    }
    assert!(seen[0] > 1000 && seen[1] > 100, "both happen: {seen:?}");
}

/// JSON pointers of everything inside.
fn places(json: &Json, at: &str) -> Vec<String> {
    let below: Vec<(String, &Json)> = match json {
        Json::Object(object) => object.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Json::Array(list) => list.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    below
        .iter()
        .flat_map(|(name, value)| {
            let path = format!("{at}/{name}");
            std::iter::once(path.clone()).chain(places(value, &path)).collect::<Vec<_>>()
        })
        .collect()
}

/// A type in words.
fn kind_of(schema: &Json) -> String {
    let patterns = [
        (Label::PATTERN, "name"),
        (HexId::PATTERN, "id"),
        (Time::PATTERN, "time"),
        (Uuid::PATTERN, "UUID"),
        (Sha256::PATTERN, "SHA-256"),
        (Serial::PATTERN, "serial"),
    ];
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_str().unwrap())).collect();
        return words.join(", ");
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        return patterns.iter().find(|(known, _)| *known == pattern).unwrap().1.to_owned();
    }
    match schema["type"].as_str().unwrap() {
        "string" if schema.get("anyOf").is_some() => "IP address".into(),
        "string" => "text".into(),
        "boolean" => "true or false".into(),
        "integer" if schema["maximum"] == 9_007_199_254_740_991_u64 => "whole number".into(),
        "integer" => format!("{} to {}", schema["minimum"], schema["maximum"]),
        "array" => format!("list of: {}", kind_of(&schema["items"])),
        _ if schema.get("additionalProperties").is_some() => {
            format!("by name: {}", kind_of(&schema["additionalProperties"]))
        }
        _ => "object".into(),
    }
}

fn rows(schema: &Json, below: &str, out: &mut String) {
    let required: Vec<&str> = schema["required"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
    for (name, field) in schema["properties"].as_object().unwrap() {
        if below.is_empty() && name == "v" {
            continue;
        }
        let must = if required.contains(&name.as_str()) { "yes" } else { "" };
        let path = format!("{below}{name}");
        out.push_str(&format!(
            "| `{path}` | {} | {must} | {} |\n",
            kind_of(field),
            field["description"].as_str().unwrap()
        ));
        let inner = field.get("additionalProperties").unwrap_or(field);
        if inner.get("properties").is_some() {
            let step = if inner == field { "" } else { ".*" };
            rows(inner, &format!("{path}{step}."), out);
        }
    }
}

/// The form of a key: its names in angle brackets.
fn form_of(key: &Key) -> String {
    match key {
        Key::WantSite(_) => "/mesh/want/site/<site>".into(),
        Key::WantNode(_) => "/mesh/want/node/<node>".into(),
        Key::WantService(_) => "/mesh/want/service/<service>".into(),
        Key::WantData(_) => "/mesh/want/data/<set>".into(),
        Key::Claim { .. } => "/mesh/claim/<set>/<site>".into(),
        Key::Here(_) => "/mesh/live/<node>/here".into(),
        Key::Health(_) => "/mesh/live/<node>/health".into(),
        Key::Service { .. } => "/mesh/live/<node>/service/<service>".into(),
        Key::Certificate { .. } => "/mesh/ops/<node>/cert/<use>".into(),
        Key::Backup { .. } => "/mesh/ops/<node>/backup/<time>-<revision>".into(),
        Key::Identity | Key::Schema | Key::WantQuorum => key.to_string(),
    }
}

#[test]
fn the_specification_has_every_field() {
    const BEGIN: &str = "<!-- from the types: make golden -->\n";
    const END: &str = "<!-- end -->\n";
    let schemas = schemas();
    let mut tables = String::new();
    for (at, example) in GOOD {
        let key = Key::parse(at.as_bytes()).unwrap();
        let schema = &schemas[schema_name(&key)];
        let writer = match key.writer() {
            Writer::Operator => "an operator",
            Writer::Node(_) => "the node",
            Writer::Claimant => "a node that the declaration gives the set in the site; an operator",
        };
        let lease = if key.needs_lease() { "the node's" } else { "none" };
        tables.push_str(&format!("### `{}`\n\n{}\n\n", form_of(&key), schema["description"].as_str().unwrap()));
        tables.push_str(&format!(
            "Written by: {writer}. Lease: {lease}. Schema: `schemas/registry/{}.schema.json`.\n\n",
            schema_name(&key)
        ));
        tables.push_str("| field | type | required | meaning |\n|---|---|---|---|\n");
        rows(schema, "", &mut tables);
        tables.push_str(&format!("\n    {example}\n\n"));
    }
    let file = of_repository("docs/registry.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    held(&file, &format!("{head}{BEGIN}\n{tables}{END}{tail}"));
}
