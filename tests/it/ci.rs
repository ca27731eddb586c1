//! The CI jobs of `docs/ci`: they parse, use only what exists, and the plain one runs.

use clap::Parser;
use saphyr::{LoadableYamlNode, Yaml};

use crate::common::{Said, built_copy, cache, project, tool};

fn document(name: &str) -> String {
    std::fs::read_to_string(project().join("docs/ci").join(name)).expect(name)
}

/// Every text of a YAML document.
fn texts(node: &Yaml<'_>, out: &mut Vec<String>) {
    if let Some(text) = node.as_str() {
        out.push(text.to_owned());
    }
    node.as_sequence().into_iter().flatten().for_each(|child| texts(child, out));
    node.as_mapping().into_iter().flatten().for_each(|(_, child)| texts(child, out));
}

/// Command lines of fitout in a script.
fn commands(script: &str, program: &str) -> Vec<Vec<String>> {
    let lines = script.lines().map(str::trim).filter(|line| line.starts_with(&format!("{program} ")));
    lines.map(|line| line.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect()).collect()
}

#[test]
fn jobs_use_only_what_exists() {
    let mut found = commands(&document("ci.sh"), "\"$fitout\"");
    for name in ["github.yml", "gitlab.yml"] {
        let text = document(name);
        let yaml = Yaml::load_from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut all = Vec::new();
        texts(yaml.first().expect("a document"), &mut all);
        let here: Vec<_> = all.iter().flat_map(|text| commands(text, "fitout")).collect();
        assert_eq!(here.len(), 4, "{name}: plan, build, verify, check: {here:?}");
        found.extend(here);
    }
    assert_eq!(found.len(), 12);
    for words in found {
        if let Err(error) = fitout::cli::Cli::try_parse_from(&words) {
            panic!("{words:?}: {error}");
        }
    }
}

#[test]
fn github_job_has_the_form_of_a_workflow() {
    let text = document("github.yml");
    let yaml = Yaml::load_from_str(&text).expect("YAML");
    let root = yaml.first().expect("a document");
    let job = &root["jobs"]["images"];
    assert!(job["runs-on"].as_str().is_some() && root["permissions"]["contents"].as_str() == Some("read"));
    for step in job["steps"].as_sequence().expect("steps") {
        let step = step.as_mapping().expect("a step");
        let key = |name: &str| step.iter().any(|(k, _)| k.as_str() == Some(name));
        assert!(key("uses") != key("run"), "a step uses an action or runs a script: {step:?}");
        for (k, _) in step {
            assert!(["uses", "run", "name", "with", "if", "env"].contains(&k.as_str().expect("a key")), "{k:?}");
        }
    }
}

#[test]
fn the_plain_job_runs() {
    let mesh = built_copy();
    let script = project().join("docs/ci/ci.sh");
    let said: Said = std::process::Command::new("sh")
        .arg(&script)
        .current_dir(mesh.path())
        .env("FITOUT", env!("CARGO_BIN_EXE_fitout"))
        .env("FITOUT_CACHE", cache())
        .env_remove("FITOUT_CHECK")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("starts")
        .into();
    said.exits(0).says("as declared").says("not checked against the living registry");
    for step in ["plan", "build", "verify"] {
        let report = mesh.path().join(format!("reports/{step}.xml"));
        tool(
            "python3",
            &["-c", "import sys, xml.etree.ElementTree as E; E.parse(sys.argv[1])", report.to_str().expect("utf-8")],
        );
        assert!(mesh.path().join(format!("reports/{step}.md")).exists());
    }
}
