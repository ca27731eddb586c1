//! Mutations of a good mesh, each with the code, line and column that must come of it.

mod library_table;
mod mesh_table;
mod on_disk;

use std::collections::BTreeSet;

use super::testing::{QUORUM, SINGLE, files};
use super::*;
pub(super) use library_table::LIBRARY_CASES;
pub(super) use mesh_table::MESH_CASES;

/// `code:line:column` of every finding; files other than mesh.toml are named.
pub(super) fn said(files: &Files) -> Vec<String> {
    let findings = match parse_with(files, Some(&rulebook())) {
        Ok(loaded) => loaded.warnings,
        Err(findings) => findings,
    };
    findings
        .iter()
        .map(|f| match &f.span {
            Some(span) => {
                let (line, column) = span.source.line_column(span.range.start);
                let file = if span.source.name == MESH_FILE { String::new() } else { format!("{}:", span.source.name) };
                format!("{}:{file}{line}:{column}", f.code)
            }
            None => f.code.to_owned(),
        })
        .collect()
}

/// The declaration's own rules, of which errors may not be allowed, on the last day of November 2026.
fn rulebook() -> Rulebook {
    let never = |rule: &Rule| (rule.severity == Severity::Error).then_some("it is an error");
    Rulebook { today: time::macros::date!(2026 - 11 - 30), rules: RULES.iter().map(|r| (*r, never(r))).collect() }
}

/// A good mesh with one text replaced by another.
pub(super) fn changed(mesh: &str, from: &str, to: &str) -> Files {
    assert!(mesh.contains(from), "the good mesh has no {from:?}");
    files(&mesh.replacen(from, to, 1))
}

#[test]
fn the_good_meshes_are_good() {
    for mesh in [QUORUM, SINGLE] {
        assert_eq!(said(&files(mesh)), Vec::<String>::new());
    }
}

#[test]
fn every_fault_of_mesh_toml_is_named_at_its_place() {
    let mut wrong = String::new();
    for (mesh, from, to, want) in MESH_CASES {
        let got = said(&changed(mesh, from, to));
        if got != *want {
            wrong += &format!("{from:?} -> {to:?}: {got:?}, not {want:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_fault_of_the_library_is_named_at_its_place() {
    let mut wrong = String::new();
    for (path, text, want) in LIBRARY_CASES {
        let got = said(&files(QUORUM).with(path, text));
        if got != *want {
            wrong += &format!("{path} {text:?}: {got:?}, not {want:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_file_that_is_not_text_or_not_there() {
    assert_eq!(said(&Files::builtin()), ["mesh-file-missing"]);
    assert_eq!(said(&Files::builtin().with(MESH_FILE, b"[mesh]\nname = \"\xff\"")), ["not-text:2:9"]);
    let link = LibraryContent::Link("x".into());
    assert_eq!(said(&files(QUORUM).with_content("profiles/x.toml", link)), ["not-text"]);
}

#[test]
fn more_than_seven_voters_are_warned_of() {
    let mut mesh =
        QUORUM.replace("[nodes.edge]", "[nodes.voter]").replace("profile = \"client\"", "profile = \"voter\"");
    mesh += "[nodes.more]\ncount = 3\nsite = \"lisbon\"\naddresses = \"10.77.2.1-10.77.2.9\"\nprofile = \"voter\"\n";
    assert_eq!(said(&files(&mesh)), ["many-voters:4:12"]);
}

/// All errors of all files in one run, also when one file is not even TOML.
#[test]
fn all_errors_of_all_files_are_said_at_once() {
    let mesh =
        QUORUM.replace("\"30ms\"", "30").replace("10.77.0.11", "10.99.0.11").replace("[image]", "[image]\nspeed = 1");
    let files = files(&mesh)
        .with("profiles/voter.toml", "description = 1\npart = 'voter'\noverlays = [")
        .with("overlays/app/overlay.toml", "colour = 1");
    assert_eq!(
        said(&files),
        [
            "unknown-key:8:1",
            "wrong-type:15:14",
            "address-outside-network:26:11",
            "missing-key:overlays/app/overlay.toml:1:1",
            "unknown-key:overlays/app/overlay.toml:1:1",
            "wrong-type:profiles/voter.toml:1:15",
            "toml-syntax:profiles/voter.toml:3:13",
        ]
    );
}

#[test]
fn every_rule_fires_in_some_case() {
    let mut fired = BTreeSet::new();
    let mut note = |all: &[&str]| fired.extend(all.iter().map(|s| s.split(':').next().unwrap().to_owned()));
    MESH_CASES.iter().for_each(|(.., want)| note(want));
    LIBRARY_CASES.iter().for_each(|(.., want)| note(want));
    // These have tests of their own above.
    note(&["mesh-file-missing", "not-text", "many-voters"]);
    let rules: BTreeSet<String> = RULES.iter().map(|r| r.code.to_owned()).collect();
    assert_eq!(rules.len(), RULES.len(), "codes are unique");
    assert_eq!(fired, rules);
}

#[test]
fn groups_are_expanded_in_order() {
    let mesh = testing::mesh();
    let edges: Vec<String> = mesh
        .nodes
        .values()
        .filter(|n| n.name.value.starts_with("edge"))
        .map(|n| format!("{} {}", n.name.value, n.address.value))
        .collect();
    assert_eq!(edges, ["edge-001 10.77.1.1", "edge-002 10.77.1.2", "edge-003 10.77.1.3"]);
}

#[test]
fn a_users_overlay_replaces_the_built_in_one_whole() {
    let files = files(QUORUM).with("overlays/etcd/overlay.toml", "description = 'mine'\nrequires = ['mesh']");
    let mesh = parse(&files).unwrap().mesh;
    assert_eq!(mesh.overlays["etcd"].files.len(), 0);
    assert_eq!(mesh.overlays["etcd"].manifest.description, "mine");
    assert!(!mesh.overlays["mesh"].files.is_empty());
    assert!(!mesh.profiles.contains_key("control-plane"), "only what a node uses");
}

#[test]
fn round_trips_of_pairs() {
    let mesh = QUORUM.replace("[pki]", "[round-trip]\nporto.lisbon = \"12ms\"\n[pki]");
    let mesh = parse(&files(&mesh)).unwrap().mesh;
    let trip = |a, b| mesh.round_trip_between(a, b).as_millis();
    assert_eq!(
        [trip("lisbon", "porto"), trip("porto", "lisbon"), trip("lisbon", "madrid"), trip("porto", "porto")],
        [12, 12, 30, 0]
    );
}

/// Every default that the commented templates show is the default.
#[test]
fn the_templates_show_the_true_defaults() {
    for name in ["quorum", "single"] {
        let shown = Files::builtin_text(&format!("templates/init/{name}.toml")).unwrap();
        // The same mesh without the keys that have defaults.
        let with_defaults = [
            "domain",
            "time-to-rebuild",
            "base",
            "formats",
            "target",
            "generation",
            "quota",
            "round-trip",
            "authority-lifetime",
            "server",
            "renew-before",
        ];
        let bare: Vec<&str> =
            shown.lines().filter(|l| !with_defaults.iter().any(|k| l.starts_with(&format!("{k} =")))).collect();
        assert_eq!(shown.lines().count() - bare.len(), with_defaults.len(), "{name} shows them all");
        let [shown, bare] = [shown, &bare.join("\n")].map(|text| parse(&files(text)).unwrap().mesh);
        assert_eq!(values(&shown), values(&bare), "{name}");
    }
}

/// All values with a default.
fn values(mesh: &Mesh) -> String {
    let (registry, pki) = (&mesh.registry, &mesh.pki);
    let formats: Vec<Format> = mesh.image.formats.iter().map(|f| f.value).collect();
    let lives =
        [&pki.authority_lifetime, &pki.server_lifetime, &pki.client_lifetime, &pki.peer_lifetime, &pki.renew_before];
    format!(
        "{} {:?} {} {formats:?} {:?} {} {} {:?} {:?}",
        mesh.domain.value,
        mesh.time_to_rebuild.value,
        mesh.base.name.value,
        mesh.image.target,
        registry.generation.value,
        registry.quota.value,
        registry.round_trip.value,
        lives.map(|l| l.value)
    )
}

#[test]
fn the_examples_load_without_a_word() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (name, nodes, votes) in [("three-site", 3, 3), ("two-site-arbiter", 7, 3), ("single", 3, 1)] {
        let loaded = load(&examples.join(name)).unwrap();
        assert_eq!(loaded.warnings, [], "{name}");
        let mesh = loaded.mesh;
        assert_eq!((mesh.nodes.len(), mesh.registry_nodes().count()), (nodes, votes), "{name}");
        if mesh.topology.value == Topology::Quorum {
            assert!(mesh.sites.keys().all(|site| mesh.votes_left_without(site).has_quorum()), "{name}");
        }
    }
}

/// Keys that must be given are looked for and then read, and are named once all the same.
#[test]
fn the_known_keys_are_named_once() {
    let text = format!("{QUORUM}\n[allow.mesh-tool]\nuntil = \"2099-01-01\"\nreason = \"y\"\nzzzzzzzzzzzz = 1\n");
    let Err(findings) = parse(&Files::builtin().with(MESH_FILE, text)) else { panic!("no findings") };
    let helps: Vec<&str> =
        findings.iter().filter_map(|f| f.help.as_deref()).filter(|h| h.starts_with("known")).collect();
    assert!(!helps.is_empty(), "{findings:#?}");
    for help in helps {
        let mut keys: Vec<&str> = help.trim_start_matches("known here: ").split(", ").collect();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all, "{help}");
    }
}

/// Whatever a half-saved or damaged file holds, it is answered and shown, never with a panic.
#[test]
fn damaged_files_are_answered_and_shown() {
    let bytes = QUORUM.as_bytes();
    for at in 0..bytes.len() {
        let mut swapped = bytes.to_vec();
        swapped[at] = [b'"', b'[', b'\n', b'=', 0xff][at % 5];
        for damaged in [&bytes[..at], &swapped] {
            if let Err(findings) = parse(&Files::builtin().with(MESH_FILE, damaged)) {
                assert!(has_errors(&findings), "refused without an error, byte {at}");
                for finding in &findings {
                    assert!(crate::finding::human::render(finding, false).contains(finding.code));
                }
            }
        }
    }
}

#[test]
fn what_holds_today_and_codes_that_nobody_knows_here() {
    let entry =
        "[allow.unused]\nreason = \"r\"\nuntil = 2027-03-31\n[allow.of-later]\nreason = \"r\"\nuntil = 2020-01-01\n";
    let files = files(&format!("{QUORUM}{entry}"));
    // Without a rulebook any code will do, and no date is over.
    let mesh = parse(&files).unwrap().mesh;
    let codes = |today| mesh.allowed_on(today).into_iter().map(|a| a.code).collect::<Vec<_>>();
    assert_eq!(codes(time::macros::date!(2027 - 03 - 31)), ["unused"]);
    assert_eq!(codes(time::macros::date!(2027 - 04 - 01)), Vec::<String>::new());
    assert_eq!(said(&files).len(), 2, "{:?}", said(&files));
}
