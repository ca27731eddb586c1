//! Mutations of a good mesh, each with the code, line and column that must come of it.

use std::collections::BTreeSet;

use super::testing::{QUORUM, SINGLE, files};
use super::*;

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

/// Mutations of mesh.toml: which mesh, what is replaced, by what, and all that must be said.
pub(super) const MESH_CASES: &[(&str, &str, &str, &[&str])] = &[
    // TOML
    (QUORUM, "name = \"harbour\"", "name = ", &["toml-syntax:3:8"]),
    (QUORUM, "[image]", "[image", &["toml-syntax:7:7"]),
    (QUORUM, "[site.porto]", "[site.lisbon]", &["toml-syntax:20:7"]),
    // keys and types
    (QUORUM, "version = \"1\"", "version = \"1\"\ncolour = 1", &["unknown-key:9:1"]),
    (QUORUM, "network =", "netwrok =", &["missing-key:2:2", "unknown-key:5:1"]),
    (QUORUM, "version = \"1\"", "version = 1", &["wrong-type:8:11"]),
    (QUORUM, "[image]\nversion = \"1\"", "", &["missing-key:1:1"]),
    (QUORUM, "site = \"lisbon\"\n", "", &["missing-key:23:7"]),
    // values
    (QUORUM, "\"30ms\"", "\"30\"", &["invalid-value:14:14"]),
    (QUORUM, "\"30ms\"", "30", &["wrong-type:14:14"]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nquota = \"2GB\"", &["invalid-value:15:9"]),
    (QUORUM, "10.77.0.0/16", "10.77.0.1/16", &["invalid-value:5:11"]),
    (QUORUM, "\"10.77.0.11\"", "\"lis1.example\"", &["invalid-value:25:11"]),
    (QUORUM, "port = 5432", "port = 70000", &["invalid-value:27:29"]),
    (QUORUM, "10.77.1.1-10.77.1.9", "10.77.1.9-10.77.1.1", &["invalid-value:43:13"]),
    (QUORUM, "10.77.1.1-10.77.1.9", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &["address-outside-network:43:13"]),
    (
        QUORUM,
        "10.77.1.1-10.77.1.9",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        &["address-outside-network:43:13", "too-few-addresses:43:13"],
    ),
    (QUORUM, "10.77.1.1-10.77.1.9", "10.77.1.1-10.77.1.2", &["too-few-addresses:43:13"]),
    (QUORUM, "topology = \"quorum\"", "topology = \"quorom\"", &["invalid-value:4:12"]),
    (QUORUM, "debian = \"trixie\"", "tar = \"base.tar\"\nsha256 = \"12\"", &["invalid-value:12:10"]),
    (QUORUM, "version = \"1\"", "version = \"1\"\nssh-authorized-keys = [\"me\"]", &["invalid-value:9:24"]),
    // names
    (QUORUM, "name = \"harbour\"", "name = \"Harbour\"", &["invalid-name:3:8"]),
    (QUORUM, "[node.lis1]", "[node.lis_1]", &["invalid-name:23:7"]),
    (QUORUM, "[node.lis1]", "[node.root]", &["reserved-name:23:7"]),
    (QUORUM, "[node.mad1]", "[node.edge-002]", &["duplicate-name:40:8"]),
    // not built yet: refused, not ignored
    (QUORUM, "version = \"1\"", "version = \"1\"\nkeys = \"credentials\"", &["not-there-yet:9:8"]),
    (QUORUM, "version = \"1\"", "version = \"1\"\nnetwork-config = \"networkd\"", &["not-there-yet:9:18"]),
    (QUORUM, "version = \"1\"", "version = \"1\"\nformats = [\"tar.gz\", \"oci\"]", &["not-there-yet:9:22"]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nsnapshot = { every = \"30m\" }", &["not-there-yet:15:1"]),
    (QUORUM, "[pki]", "[clock]\ncertificates = []\n[pki]", &["not-there-yet:16:2"]),
    (QUORUM, "[pki]", "[agent]\n[pki]", &["not-there-yet:16:2"]),
    // the same keys with the value that is built are accepted
    (QUORUM, "version = \"1\"", "version = \"1\"\nkeys = \"embed\"\nnetwork-config = \"none\"", &[]),
    // references
    (QUORUM, "site = \"lisbon\"", "site = \"lisbn\"", &["unknown-reference:24:8"]),
    (QUORUM, "profile = \"voter\"", "profile = \"voters\"", &["unknown-reference:26:11"]),
    (QUORUM, "version = \"1\"", "version = \"1\"\nbase = \"comon\"", &["unknown-reference:9:8", "unused:11:7"]),
    (QUORUM, "[pki]", "[round-trip]\nlisbon.oporto = \"9ms\"\n[pki]", &["unknown-reference:17:17"]),
    // bases
    (QUORUM, "debian = \"trixie\"", "debian = \"trixie\"\ndir = \"root\"", &["base-source:10:7"]),
    (QUORUM, "debian = \"trixie\"", "", &["base-source:10:7"]),
    (QUORUM, "debian = \"trixie\"", "tar = \"base.tar\"", &["missing-key:10:7"]),
    (QUORUM, "debian = \"trixie\"", "dir = \"root\"\npackages = [\"nftables\"]", &["base-source:12:1"]),
    // addresses
    (QUORUM, "10.77.0.11", "10.78.0.11", &["address-outside-network:25:11"]),
    (QUORUM, "10.77.0.11", "10.77.0.0", &["address-of-no-host:25:11"]),
    (QUORUM, "10.77.0.11", "10.77.255.255", &["address-of-no-host:25:11"]),
    (QUORUM, "10.77.0.11", "10.77.0.12", &["duplicate-address:31:11"]),
    (QUORUM, "10.77.1.1-10.77.1.9", "10.78.1.1-10.78.1.9", &["address-outside-network:43:13"]),
    // votes
    (QUORUM, "profile = \"arbiter\"", "profile = \"client\"", &["odd-voters:4:12", "voter-sites:4:12"]),
    (QUORUM, "site = \"madrid\"", "site = \"porto\"", &["voter-sites:4:12", "unused:21:7"]),
    (QUORUM, "profile = \"client\"", "profile = \"arbiter\"", &["odd-voters:4:12", "site-holds-quorum:20:7"]),
    (QUORUM, "profile = \"client\"", "profile = \"control-plane\"", &["part-of-other-topology:44:11"]),
    (SINGLE, "profile = \"client\"", "profile = \"voter\"", &["part-of-other-topology:23:11"]),
    (SINGLE, "profile = \"client\"", "profile = \"control-plane\"", &["one-control-plane:18:11"]),
    (SINGLE, "profile = \"control-plane\"", "profile = \"client\"", &["one-control-plane:4:12"]),
    // placement
    (QUORUM, "profile = \"arbiter\"", "profile = \"arbiter\"\nservice.dns.port = 53", &["arbiter-with-service:39:9"]),
    (
        QUORUM,
        "profile = \"client\"",
        "profile = \"client\"\nservice.pg = { port = 5432, data-set = \"orders\" }",
        &["data-set-twice-in-site:33:46", "data-set-twice-in-site:45:40"],
    ),
    (QUORUM, "port = 5432", "port = 2380", &["port-taken:27:29"]),
    (
        QUORUM,
        "profile = \"client\"",
        "profile = \"client\"\nservice.a.port = 80\nservice.b.port = 80",
        &["port-taken:46:18"],
    ),
    // lifetimes
    (QUORUM, "[pki]", "[pki]\npeer.lifetime = \"99999h\"", &["leaf-outlives-authority:17:17"]),
    (QUORUM, "\"720h\"", "\"43800h\"", &["renewal-window:17:16"]),
    (QUORUM, "\"720h\"", "\"4h\"", &["rebuild-window:17:16"]),
    // timing
    (QUORUM, "\"30ms\"", "\"6s\"", &["round-trip-too-long:14:14"]),
    (QUORUM, "[pki]", "[round-trip]\nlisbon.porto = \"31ms\"\n[pki]", &["round-trip-above-worst:17:16"]),
    (QUORUM, "[pki]", "[round-trip]\nlisbon.porto = \"9ms\"\nporto.lisbon = \"9ms\"\n[pki]", &["invalid-value:18:16"]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nheartbeat = \"14ms\"", &["heartbeat-bounds:15:13"]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nheartbeat = \"15ms\"", &[]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nheartbeat = \"101ms\"", &["heartbeat-bounds:15:13"]),
    (QUORUM, "\"30ms\"", "\"200ms\"\nheartbeat = \"300ms\"", &[]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nelection = \"299ms\"", &["election-bounds:15:12"]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nelection = \"499ms\"", &["election-bounds:15:12"]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nelection = \"51s\"", &["election-bounds:15:12"]),
    (QUORUM, "\"30ms\"", "\"5s\"\nheartbeat = \"6s\"", &["election-bounds:15:13"]),
    (QUORUM, "\"30ms\"", "\"30ms\"\nquota = \"16GiB\"", &["large-quota:15:9"]),
    (QUORUM, "debian = \"trixie\"", "oci = \"image\"", &[]),
    (
        QUORUM,
        "debian = \"trixie\"",
        "oci = \"image\"\nref = \"v1\"\narchitecture = \"arm/v7\"\n\
         digest = \"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
        &[],
    ),
    (QUORUM, "debian = \"trixie\"", "oci = \"image\"\ndigest = \"sha256:12\"", &["invalid-value:12:10"]),
    (QUORUM, "debian = \"trixie\"", "oci = \"image\"\narchitecture = \"x86_64\"", &["invalid-value:12:16"]),
    (QUORUM, "debian = \"trixie\"", "oci = \"image\"\narchitecture = \"arm/\"", &["invalid-value:12:16"]),
    (QUORUM, "debian = \"trixie\"", "oci = \"image\"\nsha256 = \"12\"", &["base-source:12:1", "invalid-value:12:10"]),
    (QUORUM, "debian = \"trixie\"", "debian = \"trixie\"\nref = \"v1\"", &["base-source:12:1"]),
    (QUORUM, "debian = \"trixie\"", "oci = \"image\"\ndir = \"root\"", &["base-source:10:7"]),
    (QUORUM, "debian = \"trixie\"", "oci = 1", &["wrong-type:11:7"]),
    // Corosync from the base
    (
        QUORUM,
        "debian = \"trixie\"",
        "debian = \"trixie\"\npackages = [\"pacemaker\"]",
        &["corosync-across-sites:12:13"],
    ),
    (QUORUM, "network =", "corosync-sites = [\"lisbon\", \"porto\", \"madrid\"]\nnetwork =", &[]),
    // not used
    (QUORUM, "[site.porto]", "[site.porto]\n[site.faro]", &["unused:21:7"]),
    // what is allowed for a time; the tests' day is 2026-11-30
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"it comes in spring\"\nuntil = 2027-03-31\n[pki]", &[]),
    (
        QUORUM,
        "[pki]",
        "[allow.unused]\nreason = \"it comes in spring\"\nuntil = 2027-03-31\nnodes = [\"lis1\", \"edge-002\"]\n[pki]",
        &[],
    ),
    (
        QUORUM,
        "[pki]",
        "[allow.unusde]\nreason = \"it comes in spring\"\nuntil = 2027-03-31\n[pki]",
        &["allow-unknown-code:16:8"],
    ),
    (
        QUORUM,
        "[pki]",
        "[allow.odd-voters]\nreason = \"it comes in spring\"\nuntil = 2027-03-31\n[pki]",
        &["allow-refused:16:8"],
    ),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\nuntil = 2026-11-30\n[pki]", &[]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\nuntil = 2026-11-29\n[pki]", &["allow-expired:16:8"]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\nuntil = 2028-01-04\n[pki]", &[]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\nuntil = 2028-01-05\n[pki]", &["allow-too-far:18:9"]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\nuntil = \"2027-03-31\"\n[pki]", &["wrong-type:18:9"]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\nuntil = 2027-03-31T10:00:00Z\n[pki]", &["invalid-value:18:9"]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\nuntil = 2027-02-30\n[pki]", &["toml-syntax:18:9"]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \" \"\nuntil = 2027-03-31\n[pki]", &["invalid-value:17:10"]),
    (QUORUM, "[pki]", "[allow.unused]\nuntil = 2027-03-31\n[pki]", &["missing-key:16:8"]),
    (QUORUM, "[pki]", "[allow.unused]\nreason = \"r\"\n[pki]", &["missing-key:16:8"]),
    (
        QUORUM,
        "[pki]",
        "[allow.unused]\nreason = \"it comes in spring\"\nuntil = 2027-03-31\nnodes = [\"lis2\"]\n[pki]",
        &["unknown-reference:19:10"],
    ),
    (
        QUORUM,
        "[pki]",
        "[allow.unused]\nreason = \"it comes in spring\"\nuntil = 2027-03-31\nnodes = []\n[pki]",
        &["invalid-value:19:1"],
    ),
    (
        QUORUM,
        "[pki]",
        "[allow.unused]\nreason = \"it comes in spring\"\nuntil = 2027-03-31\nwhen = 1\n[pki]",
        &["unknown-key:19:1"],
    ),
    (QUORUM, "[pki]", "[allow]\nunused = \"r\"\n[pki]", &["wrong-type:17:10"]),
    // parameters of a node
    (
        QUORUM,
        "profile = \"arbiter\"",
        "profile = \"arbiter\"\nparameters.snapshot-count = \"9\"",
        &["parameter-type:39:29"],
    ),
    (
        QUORUM,
        "profile = \"arbiter\"",
        "profile = \"arbiter\"\nparameters.snapshot-cuont = 9",
        &["unknown-parameter:39:29"],
    ),
];

/// Mutations of the library: a file beside mesh.toml, and what must be said of it.
pub(super) const LIBRARY_CASES: &[(&str, &str, &[&str])] = &[
    (
        "profiles/voter.toml",
        "description = 'v'\npart = 'voter'\noverlays = ['mesh', 'etcd', 'etcd']",
        &["overlay-twice:profiles/voter.toml:3:29"],
    ),
    (
        "profiles/voter.toml",
        "description = 'v'\npart = 'voter'\noverlays = ['etcd', 'mesh']",
        &["overlay-requires:profiles/voter.toml:3:13", "mesh-overlay-first:profiles/voter.toml:3:21"],
    ),
    (
        "profiles/client.toml",
        "description = 'c'\npart = 'client'\noverlays = ['mesh', 'etcd']",
        &["overlay-part:profiles/client.toml:3:21"],
    ),
    (
        "profiles/client.toml",
        "description = 'c'\npart = 'client'\noverlays = ['mseh']",
        &["unknown-reference:profiles/client.toml:3:13"],
    ),
    (
        "profiles/client.toml",
        "part = 'client'\noverlays = ['mesh']\n[units]\n'x' = 'on'",
        &["missing-key:profiles/client.toml:1:1", "invalid-value:profiles/client.toml:4:7"],
    ),
    (
        "profiles/voter.toml",
        "description = 'v'\npart = 'voter'\noverlays = ['mesh', 'etcd']\n[parameters]\nlog-level = 1",
        &["parameter-type:profiles/voter.toml:5:13"],
    ),
    (
        "profiles/spare.toml",
        "description = 's'\npart = 'client'\noverlays = ['mesh']",
        &["unused:profiles/spare.toml:2:8"],
    ),
    ("profiles/spare.toml", "description = ", &["toml-syntax:profiles/spare.toml:1:15"]),
    ("overlays/app/overlay.toml", "description = 'app'", &["unused:overlays/app/overlay.toml:1:1"]),
    ("overlays/app/root/etc/app.conf", "", &["overlay-layout"]),
    // The second finding: an overlay of the user's replaces the built-in one whole, so it lacks `overlay.toml` here.
    ("overlays/etcd/root", "", &["overlay-layout", "overlay-layout"]),
    ("overlays/mesh/root/etc/.tera", "", &["overlay-layout", "overlay-layout"]),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\n[path.'/etc/x']\nmode = 644",
        &["mode-as-number:overlays/mesh/overlay.toml:3:8"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\n[path.'etc/x']",
        &["invalid-value:overlays/mesh/overlay.toml:2:7"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\nremove = ['/etc/[x']",
        &["invalid-value:overlays/mesh/overlay.toml:2:11"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\nedits = ['host']",
        &["invalid-value:overlays/mesh/overlay.toml:2:10"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\n[unit.etcd]\nstate = 'stopped'",
        &["invalid-value:overlays/mesh/overlay.toml:2:7"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\n[path.'/a']\nlink = 'b'\ndirectory = true",
        &["invalid-value:overlays/mesh/overlay.toml:3:8"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\nprovides = ['A b']",
        &["invalid-value:overlays/mesh/overlay.toml:2:13"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\n[user.'a:b']",
        &["invalid-value:overlays/mesh/overlay.toml:2:7"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\n[parameter.log-level]\ntype = 'string'\ndescription = 'x'",
        &[
            "parameter-of-two-overlays:<built-in>/profiles/arbiter.toml:3:21",
            "parameter-of-two-overlays:<built-in>/profiles/control-plane.toml:3:21",
            "parameter-of-two-overlays:<built-in>/profiles/voter.toml:3:21",
            "missing-parameter:26:11",
            "missing-parameter:32:11",
            "missing-parameter:38:11",
            "missing-parameter:44:11",
        ],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\n[parameter.motd]\ntype = 'string'\ndescription = 'x'\ndefault = 1",
        &["wrong-type:overlays/mesh/overlay.toml:5:11"],
    ),
    (
        "overlays/mesh/overlay.toml",
        "description = 'm'\npackages = ['corosync']",
        &["corosync-across-sites:overlays/mesh/overlay.toml:2:13"],
    ),
    (
        "overlays/etcd/overlay.toml",
        "description = 'e'\nrequires = ['mesh']\nconflicts = ['mesh']",
        &[
            "overlay-conflicts:<built-in>/profiles/arbiter.toml:3:21",
            "overlay-conflicts:<built-in>/profiles/control-plane.toml:3:21",
            "overlay-conflicts:<built-in>/profiles/voter.toml:3:21",
        ],
    ),
];

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

/// What a checkout or a user's directory holds: links are content below `root/`, modes never count.
#[test]
fn a_users_directory_is_read_with_its_links() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(MESH_FILE, &QUORUM.replace("profile = \"client\"", "profile = \"app\""));
    write("profiles/app.toml", "description = 'a'\npart = 'client'\noverlays = ['mesh', 'app']");
    write("overlays/app/overlay.toml", "description = 'app'");
    write("overlays/app/README.md", "about");
    write("overlays/app/root/etc/app.conf", "x");
    std::os::unix::fs::symlink("/nowhere", directory.path().join("overlays/app/root/etc/link")).unwrap();
    std::fs::create_dir_all(directory.path().join("overlays/app/root/srv/empty")).unwrap();

    let mesh = load(directory.path()).unwrap().mesh;
    let shown: Vec<String> = mesh.overlays["app"]
        .files
        .iter()
        .map(|(path, file)| match &file.content {
            LibraryContent::File(bytes) => format!("{path}: {} bytes", bytes.len()),
            LibraryContent::Link(target) => format!("{path} -> {target}"),
            LibraryContent::Directory => format!("{path}/"),
        })
        .collect();
    assert_eq!(shown, ["etc/app.conf: 1 bytes", "etc/link -> /nowhere", "srv/empty/"]);
}

/// What no overlay can hold is told with all else, and nothing of it is taken.
#[test]
fn what_no_overlay_can_hold_is_told() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(MESH_FILE), QUORUM.replace("name = \"harbour\"", "name = 1")).unwrap();
    let app = directory.path().join("overlays/app");
    std::fs::create_dir_all(app.join("root/etc")).unwrap();
    std::fs::write(app.join("overlay.toml"), "description = 'app'").unwrap();
    let odd = |name: &[u8]| app.join("root/etc").join(std::ffi::OsStr::from_bytes(name));
    std::fs::write(odd(b"x\xff"), "x").unwrap();
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(b"y\xff"), odd(b"link")).unwrap();
    std::os::unix::net::UnixListener::bind(odd(b"socket")).unwrap();
    let linked = directory.path().join("overlays/linked");
    std::fs::create_dir(&linked).unwrap();
    std::fs::write(linked.join("overlay.toml"), "description = 'linked'").unwrap();
    std::os::unix::fs::symlink("/etc", linked.join("root")).unwrap();

    let Err(Problem::Findings(findings)) = load(directory.path()) else { panic!("no findings") };
    let said: Vec<String> = findings.iter().map(|f| format!("{} {}", f.code, f.message)).collect();
    for want in [
        "wrong-type",
        "overlay-layout has a name that is not UTF-8",
        "overlay-layout is a link with a target that is not UTF-8",
        "overlay-layout is neither a file, nor a directory, nor a symbolic link",
        "overlay-layout `root` is no directory",
    ] {
        assert_eq!(said.iter().filter(|s| s.starts_with(want)).count(), 1, "{want}: {said:#?}");
    }
}

/// A pipe without a writer would be waited for without end.
#[test]
fn a_named_pipe_is_no_declaration() {
    let directory = tempfile::tempdir().unwrap();
    let mesh = directory.path().join(MESH_FILE);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &mesh, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let place = directory.path().to_owned();
    std::thread::spawn(move || sender.send(load(&place).map(|_| ())));
    let said = receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for the other end");
    let Err(Problem::Failure(failure)) = said else { panic!("{said:?}") };
    assert!(failure.message.ends_with("mesh.toml: it is a named pipe, not a regular file"), "{failure}");
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
