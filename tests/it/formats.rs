//! Every format of findings, on real images: JSON lines, GitHub, JUnit, Markdown; what is denied and what is allowed.

use std::path::Path;

use serde_json::Value;

use crate::common::{Said, built, built_copy, example, fitout, project, run, tool};

/// What is true of trixie's etcd in every image: the warning of these tests.
const WARNING: &str = "etcd-version-known";

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The lines of a run, each valid by the schema, the last of them of type `end` with the exit status of the run.
fn lines(text: &str, code: Option<i32>) -> Vec<Value> {
    let schema: Value = serde_json::from_str(&self::text(&project().join("schemas/message.schema.json"))).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    for line in &lines {
        let name = line["type"].as_str().expect("a type");
        let mut one = schema.clone();
        one["oneOf"] = serde_json::json!([{"$ref": format!("#/definitions/{name}")}]);
        let errors: Vec<String> =
            jsonschema::validator_for(&one).unwrap().iter_errors(line).map(|e| e.to_string()).collect();
        assert!(validator.is_valid(line), "{line}: {errors:?}");
    }
    let end = lines.last().expect("a last line");
    assert_eq!((end["type"].as_str(), end["exit"].as_i64()), (Some("end"), code.map(i64::from)), "{end}");
    lines
}

/// Checks a document with a parser that we did not write: elements and attributes as CI systems know them, and counts
/// that are true.
fn junit(file: &Path) -> String {
    let script = r#"
import sys, xml.etree.ElementTree as E
root = E.parse(sys.argv[1]).getroot()
known = {
    'testsuites': ({'name', 'tests', 'skipped', 'failures', 'errors'}, {'testsuite'}),
    'testsuite': ({'name', 'tests', 'skipped', 'failures', 'errors'}, {'properties', 'testcase'}),
    'properties': (set(), {'property'}), 'property': ({'name', 'value'}, set()),
    'testcase': ({'name', 'classname', 'file', 'line', 'time'}, {'failure', 'error', 'skipped', 'system-out'}),
    'failure': ({'message', 'type'}, set()), 'error': ({'message', 'type'}, set()),
    'skipped': ({'message'}, set()), 'system-out': (set(), set()),
}
def walk(e):
    attributes, children = known[e.tag]
    assert set(e.attrib) <= attributes, (e.tag, e.attrib)
    for child in e:
        assert child.tag in children, (e.tag, child.tag)
        walk(child)
assert root.tag == 'testsuites'
walk(root)
names = [(c.get('classname'), c.get('name')) for c in root.iter('testcase')]
assert len(names) == len(set(names)), 'a case is there twice'
for e in [root, *root.iter('testsuite')]:
    for attribute, tag in [('tests', 'testcase'), ('failures', 'failure'), ('errors', 'error'), ('skipped', 'skipped')]:
        assert int(e.get(attribute)) == len(list(e.iter(tag))), (e.get('name'), attribute)
for suite in root.iter('testsuite'):
    print(suite.get('name'))
for case in root.iter('testcase'):
    for what in ('failure', 'error', 'skipped'):
        if case.find(what) is not None:
            print(what, case.get('name'))
"#;
    tool("python3", &["-c", script, file.to_str().expect("utf-8")])
}

#[test]
fn one_run_in_every_format() {
    let mesh = built_copy();
    let image = "dist/lis1.tar.gz";
    let reports = ["--report", "junit=out/r.xml", "--report", "json=out/r.jsonl", "--report", "markdown=out/r.md"];
    let mut arguments = vec!["verify", image, "dist/none.tar.gz", "--message-format", "json"];
    arguments.extend(reports);
    let said = run(mesh.path(), &arguments).exits(3);
    assert_eq!(said.stderr, "");
    let all = lines(&said.stdout, said.code);
    assert_eq!(text(&mesh.path().join("out/r.jsonl")), said.stdout, "the file has the same lines");
    let of = |kind: &str| all.iter().filter(|v| v["type"] == kind).collect::<Vec<_>>();
    let warning = of("finding").into_iter().find(|f| f["code"] == WARNING).expect("trixie's etcd");
    assert_eq!((&warning["image"], &warning["nodes"][0]), (&Value::from(image), &Value::from("lis1")));
    assert_eq!(of("failure").len(), 1);

    let cases = junit(&mesh.path().join("out/r.xml"));
    assert!(cases.starts_with(&format!("{image}\ncarried out\n")) && cases.contains("\nerror "), "{cases}");
    assert!(!cases.contains("failure "), "{cases}");
    let summary = text(&mesh.path().join("out/r.md"));
    assert!(summary.contains(WARNING) && summary.contains("not carried out"), "{summary}");

    // The same document on stdout; what people read is on stderr.
    let said = run(mesh.path(), &["verify", image, "dist/none.tar.gz", "--message-format", "junit"]).exits(3);
    assert_eq!(said.stdout, text(&mesh.path().join("out/r.xml")), "the same input gives the same bytes");
    assert!(said.stderr.contains("self-consistent"), "{}", said.all());
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let mesh = built_copy();
    let declaration = mesh.path().join("mesh.toml");
    std::fs::write(&declaration, text(&declaration) + "\n[site.faro]\n").expect("written");
    let line = text(&declaration).lines().count();
    let summary = mesh.path().join("summary.md");
    let parent = mesh.path().parent().expect("a parent").canonicalize().expect("canonical");
    let directory = mesh.path().canonicalize().expect("canonical");
    let said: Said = fitout(&directory)
        .args(["plan", "--message-format", "github"])
        .env("GITHUB_STEP_SUMMARY", &summary)
        .env("GITHUB_WORKSPACE", &parent)
        .output()
        .expect("starts")
        .into();
    let said = said.exits(0);
    let name = directory.file_name().expect("a name").to_str().expect("utf-8");
    let want = format!(
        "::warning file={name}/mesh.toml,line={line},endLine={line},col=7,endColumn=11,title=fitout%3A unused::"
    );
    assert!(said.stdout.lines().any(|l| l.starts_with(&want)), "{want}\n{}", said.all());
    assert!(said.stdout.contains("warning[unused]"), "the log is for people: {}", said.all());
    assert!(text(&summary).contains("### fitout plan: 0 errors, 1 warning"), "{}", text(&summary));
}

#[test]
fn what_is_denied_stops_before_anything_is_made() {
    let mesh = example("three-site");
    let declaration = mesh.path().join("mesh.toml");
    std::fs::write(&declaration, text(&declaration) + "\n[site.faro]\n").expect("written");
    run(mesh.path(), &["pki", "init"]).exits(0);
    for verb in [&["plan"][..], &["build"], &["render", "--out", "rendered"]] {
        let mut arguments = verb.to_vec();
        arguments.extend(["--deny", "warnings"]);
        run(mesh.path(), &arguments).exits(2).says("error[unused]").says("denied");
    }
    assert!(!mesh.path().join("dist").exists() && !mesh.path().join("rendered").exists());
    assert!(!mesh.path().join("fitout.lock").exists());
}

#[test]
fn what_is_allowed_does_not_count_until_its_day_is_over() {
    let mesh = built_copy();
    let declaration = mesh.path().join("mesh.toml");
    let plain = text(&declaration);
    let image = "dist/lis1.tar.gz";
    let verify =
        ["verify", image, "-C", ".", "--deny", "warnings", "--report", "junit=r.xml", "--message-format", "json"];
    let denied = run(mesh.path(), &verify).exits(1);
    assert!(lines(&denied.stdout, Some(1)).iter().any(|f| f["code"] == WARNING && f["denied"] == true));
    assert!(junit(&mesh.path().join("r.xml")).contains(&format!("failure {WARNING} ({image})")));

    let year = time::OffsetDateTime::now_utc().date().year();
    let entry = |until: &str, nodes: &str| {
        format!("{plain}\n[allow.{WARNING}]\nreason = \"it comes in spring\"\nuntil = {until}\n{nodes}")
    };
    let (soon, far) = (format!("{}-01-01", year + 1), format!("{}-01-01", year + 3));
    std::fs::write(&declaration, entry(&soon, "nodes = [\"lis1\"]")).expect("written");
    let allowed = run(mesh.path(), &verify).exits(0);
    let all = lines(&allowed.stdout, Some(0));
    let found = all.iter().find(|f| f["code"] == WARNING).expect("still shown");
    assert_eq!(found["allowed"]["until"], soon);
    assert_eq!(all.last().expect("end")["allowed"], 1);
    assert!(junit(&mesh.path().join("r.xml")).contains(&format!("skipped {WARNING} ({image})")));
    run(mesh.path(), &["verify", image, "-C", "."]).exits(0).says(&format!("allowed until {soon}: it comes in spring"));
    // An image alone allows itself nothing, and an entry for another node does not help this one.
    run(mesh.path(), &["verify", image, "--deny", "warnings"]).exits(1);
    std::fs::write(&declaration, entry(&soon, "nodes = [\"por1\"]")).expect("written");
    run(mesh.path(), &verify).exits(1);

    std::fs::write(&declaration, entry("2020-01-01", "")).expect("written");
    run(mesh.path(), &["verify", image, "-C", "."]).exits(0).says("allow-expired").says("warning[etcd-version-known]");
    run(mesh.path(), &verify).exits(2).says("allow-expired");
    std::fs::write(&declaration, entry(&far, "")).expect("written");
    run(mesh.path(), &["plan"]).exits(2).says("allow-too-far");
    std::fs::write(&declaration, entry(&soon, "").replace(WARNING, "etcd-version-knwon")).expect("written");
    run(mesh.path(), &["plan"]).exits(2).says("did you mean `etcd-version-known`?");
    std::fs::write(&declaration, entry(&soon, "").replace(WARNING, "container-truncated")).expect("written");
    run(mesh.path(), &["check", "-C", ".", image]).exits(2).says("allow-refused");
}

#[test]
fn every_verb_speaks_json_to_its_end() {
    let mesh = built_copy();
    let runs: &[&[&str]] = &[
        &["plan"],
        &["build"],
        &["render", "--out", "rendered"],
        &["verify", "-C", ".", "dist/lis1.tar.gz", "dist/por1.tar.gz"],
        &["verify", "--list"],
        &["why", "lis1", "/etc/hostname"],
        &["why", "lis1", "/etc/passwd"],
        &["why", "lis1", "/usr/bin/env"],
        &["explain", "unused"],
        &["explain", "--list"],
        &["pki", "status"],
        &["pki", "issue", "--operator", "ci"],
        &["init", "new"],
        &["diff", "dist/lis1.tar.gz", "dist/por1.tar.gz"],
        &["explain", "no-such-code"],
    ];
    for arguments in runs {
        let mut all = arguments.to_vec();
        all.extend(["--message-format", "json"]);
        let said = run(mesh.path(), &all);
        lines(&said.stdout, said.code);
        assert_eq!(said.stderr, "", "{arguments:?}");
    }
}

/// Every type that the source prints is in the schema, from which docs/message-format.md is made.
#[test]
fn every_type_is_in_the_schema() {
    let schema: Value = serde_json::from_str(&text(&project().join("schemas/message.schema.json"))).unwrap();
    let mut seen = 0;
    for directory in ["src/cli", "src/gate", "src/finding", "src/live"] {
        for entry in walkdir::WalkDir::new(project().join(directory)).into_iter().filter_map(Result::ok) {
            if entry.path().extension().is_none_or(|e| e != "rs") {
                continue;
            }
            for rest in text(entry.path()).split("\"type\": \"").skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                assert!(
                    schema["definitions"][name].is_object(),
                    "{}: `{name}` is not documented",
                    entry.path().display()
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn schemas_are_printed_and_written_by_init() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    run(directory.path(), &["init", "new"]).exits(0);
    for name in ["mesh", "profile", "overlay"] {
        let printed = run(directory.path(), &["schema", name]).exits(0).stdout;
        assert_eq!(text(&directory.path().join(format!("new/.fitout/{name}.schema.json"))), printed);
    }
    assert!(text(&directory.path().join("new/mesh.toml")).starts_with("#:schema ./.fitout/mesh.schema.json\n"));
    // A report that cannot be written is not a clean run.
    run(built(), &["explain", "unused", "--report", "json=/proc/no/such"]).exits(3).says("/proc/no");
}
