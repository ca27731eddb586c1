//! The JSON Schemas against the decoder: they know the same keys, take what it takes, and refuse what it refuses for its
//! shape.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::testing::{QUORUM, SINGLE, files};
use super::tests::{LIBRARY_CASES, MESH_CASES, changed, said};
use super::*;

const MESH: &str = include_str!("../../schemas/mesh.schema.json");
const PROFILE: &str = include_str!("../../schemas/profile.schema.json");
const OVERLAY: &str = include_str!("../../schemas/overlay.schema.json");

fn parsed(schema: &str) -> Value {
    serde_json::from_str(schema).unwrap()
}

/// A TOML file as the JSON that editors check: dates are texts.
fn json(text: &str) -> Option<Value> {
    fn of(value: toml::Value) -> Value {
        match value {
            toml::Value::Datetime(date) => date.to_string().into(),
            toml::Value::Table(table) => table.into_iter().map(|(k, v)| (k, of(v))).collect(),
            toml::Value::Array(all) => all.into_iter().map(of).collect(),
            toml::Value::String(text) => text.into(),
            toml::Value::Integer(number) => number.into(),
            toml::Value::Float(number) => number.into(),
            toml::Value::Boolean(truth) => truth.into(),
        }
    }
    text.parse::<toml::Table>().ok().map(|table| of(toml::Value::Table(table)))
}

/// Why a schema refuses a text; `None` when it takes it.
fn refused(schema: &str, text: &str) -> Option<String> {
    let validator = jsonschema::validator_for(&parsed(schema)).unwrap();
    let value = json(text)?;
    validator.iter_errors(&value).next().map(|e| format!("{}: {e}", e.instance_path()))
}

type Keys = BTreeMap<String, BTreeSet<String>>;

/// The keys of a schema by the shape of their table, `*` for names.
fn keys_of(schema: &Value) -> Keys {
    fn walk(root: &Value, at: &Value, shape: &str, keys: &mut Keys) {
        let target = at["$ref"].as_str().or_else(|| at["allOf"][0]["$ref"].as_str());
        if let Some(name) = target.and_then(|t| t.strip_prefix("#/definitions/")) {
            return walk(root, &root["definitions"][name], shape, keys);
        }
        if at["type"] != "object" {
            return;
        }
        assert!(at["description"].as_str().is_some_and(|d| !d.is_empty()), "{shape} is not described");
        if let Some(properties) = at["properties"].as_object() {
            assert_eq!(at["additionalProperties"], false, "{shape} takes unknown keys");
            keys.entry(shape.to_owned()).or_default().extend(properties.keys().cloned());
            for (key, below) in properties {
                assert!(below["description"].as_str().is_some_and(|d| !d.is_empty()), "{shape}.{key} is not described");
                walk(root, below, &if shape.is_empty() { key.clone() } else { format!("{shape}.{key}") }, keys);
            }
        } else {
            walk(root, &at["additionalProperties"], &format!("{shape}.*"), keys);
        }
    }
    let mut keys = Keys::new();
    walk(schema, schema, "", &mut keys);
    keys
}

/// The keys that the decoder has asked for while it read a file that has every table.
fn decoded(reports: &Reports) -> Keys {
    let owned = |keys: BTreeSet<&'static str>| keys.into_iter().map(str::to_owned).collect();
    reports.keys().into_iter().map(|(shape, keys)| (shape, owned(keys))).collect()
}

const EVERY_TABLE: &str = "[mesh]\n[image]\n[base.common]\n[registry]\n[round-trip]\na.b = '1ms'\n[agent.binary]\n[pki]\nserver = {}\n\
    client = {}\npeer = {}\n[site.a]\n[node.a]\nservice.x = {}\nparameters = {}\n[nodes.a]\nservice.x = {}\n[allow.x]\n";

#[test]
fn schemas_know_the_keys_that_the_decoder_knows() {
    let reports = Reports::default();
    let source = crate::finding::Source::new("mesh.toml", EVERY_TABLE);
    table::parse(&reports, &source, &Section::OF_MESH_FILE, |table| mesh_file::decode(table, Path::new(".")));
    assert_eq!(decoded(&reports), keys_of(&parsed(MESH)));

    let file = |text: &str| LibraryFile { name: "x".into(), content: LibraryContent::File(text.as_bytes().into()) };
    let reports = Reports::default();
    profile::profile(&reports, "x", &file("[parameters]\n[units]\n"));
    assert_eq!(decoded(&reports), keys_of(&parsed(PROFILE)));

    let reports = Reports::default();
    let manifest = file("[parameter.x]\n[path.'/x']\n[unit.'x.service']\n[user.x]\n");
    let mut overlay = files::OverlayFiles::default();
    overlay.files.insert("overlay.toml".to_owned(), &manifest);
    manifest::overlay(&reports, "x", &overlay);
    assert_eq!(decoded(&reports), keys_of(&parsed(OVERLAY)));
}

/// Refusals of a value that are about its form, by a part of the mutation.
const FORMS: &[&str] = &["\"30\"", "2GB", "quorom", "70000", "'on'", "'host'", "lis1.example", "sha256 = \\\"12"];

/// What a schema cannot see: a date and a text are one to JSON, and TOML's syntax is not its business.
const UNSEEN: &[&str] = &["until = \"2027-03-31\""];

/// True when the decoder refuses a file for its shape: keys, types, forms that a schema can tell.
fn shape_is_wrong(said: &[String], mutation: &str) -> bool {
    let codes = ["unknown-key", "missing-key", "wrong-type", "mode-as-number"];
    let by_code = said.iter().any(|s| codes.contains(&s.split(':').next().unwrap_or_default()));
    let by_form = said.iter().any(|s| s.starts_with("invalid-value")) && FORMS.iter().any(|f| mutation.contains(f));
    (by_code || by_form) && !UNSEEN.iter().any(|u| mutation.contains(u))
}

#[test]
fn what_the_decoder_takes_or_refuses_of_mesh_toml_the_schema_does_too() {
    let mut wrong = String::new();
    let (mut taken, mut not_taken) = (0, 0);
    for mesh in [QUORUM, SINGLE, EXAMPLES[0], EXAMPLES[1], EXAMPLES[2], TEMPLATES[0], TEMPLATES[1]] {
        assert_eq!(refused(MESH, mesh), None);
    }
    for (mesh, from, to, _) in MESH_CASES {
        let text = mesh.replacen(from, to, 1);
        let all = changed(mesh, from, to);
        let said = said(&all);
        match refused(MESH, &text) {
            Some(why) if parse(&all).is_ok() => wrong += &format!("{from:?} -> {to:?} is refused: {why}\n"),
            None if shape_is_wrong(&said, to) => wrong += &format!("{from:?} -> {to:?} is taken: {said:?}\n"),
            Some(_) => not_taken += 1,
            None => taken += 1,
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(taken > 20 && not_taken > 15, "{taken} {not_taken}");
}

const EXAMPLES: [&str; 3] = [
    include_str!("../../examples/three-site/mesh.toml"),
    include_str!("../../examples/two-site-arbiter/mesh.toml"),
    include_str!("../../examples/single/mesh.toml"),
];

const TEMPLATES: [&str; 2] =
    [include_str!("../../templates/init/quorum.toml"), include_str!("../../templates/init/single.toml")];

#[test]
fn what_the_decoder_takes_or_refuses_of_the_library_the_schemas_do_too() {
    let mut wrong = String::new();
    let mut not_taken = 0;
    for (path, text, want) in LIBRARY_CASES {
        let schema = if path.starts_with("profiles/") { PROFILE } else { OVERLAY };
        if !path.ends_with(".toml") || json(text).is_none() {
            continue;
        }
        let said = said(&files(QUORUM).with(path, text));
        assert_eq!(said.len(), want.len());
        // Only what is said of this file.
        let here: Vec<String> = said.iter().filter(|s| s.contains(&format!(":{path}:"))).cloned().collect();
        match refused(schema, text) {
            Some(why) if here.iter().all(|s| !s.starts_with("invalid") && !shape_is_wrong(&here, text)) => {
                wrong += &format!("{path} {text:?} is refused: {why}\n");
            }
            None if shape_is_wrong(&here, text) => wrong += &format!("{path} {text:?} is taken: {here:?}\n"),
            Some(_) => not_taken += 1,
            None => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(not_taken >= 4, "{not_taken}");
    for (name, file) in Files::builtin().profiles() {
        let LibraryContent::File(bytes) = &file.0.content else { panic!("{name}") };
        assert_eq!(refused(PROFILE, std::str::from_utf8(bytes).unwrap()), None, "{name}");
    }
    for (name, overlay) in Files::builtin().overlays() {
        let LibraryContent::File(bytes) = &overlay.files["overlay.toml"].content else { panic!("{name}") };
        assert_eq!(refused(OVERLAY, std::str::from_utf8(bytes).unwrap()), None, "{name}");
    }
}

/// Mutations of one value each, of files that are right.
#[test]
fn the_shape_of_each_value_is_seen() {
    let cases: &[(&str, &str)] = &[
        (OVERLAY, "description = 'x'\n[path.'/x']\nmode = 644"),
        (OVERLAY, "description = 'x'\n[path.'/x']\nmode = '0888'"),
        (OVERLAY, "description = 'x'\n[path.'/x']\nreplace = 'yes'"),
        (OVERLAY, "description = 'x'\n[unit.'x.service']\nstate = 'on'"),
        (OVERLAY, "description = 'x'\nedits = ['host']"),
        (OVERLAY, "description = 'x'\ncolour = 1"),
        (OVERLAY, "description = 'x'\n[parameter.a]\ntype = 'string'\ndescription = 'x'\ndefault = 1"),
        (OVERLAY, "description = 'x'\npackages = 'etcd'"),
        (PROFILE, "description = 'x'\npart = 'witness'\noverlays = []"),
        (PROFILE, "description = 'x'\npart = 'client'"),
        (PROFILE, "description = 'x'\npart = 'client'\noverlays = []\n[units]\n'x.service' = 'on'"),
    ];
    for (schema, text) in cases {
        assert!(refused(schema, text).is_some(), "{text}");
    }
    assert_eq!(refused(OVERLAY, "description = 'x'\n[path.'/x']\nmode = '0644'\nuser = 0"), None);
}
