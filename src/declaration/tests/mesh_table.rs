//! Faults of mesh.toml.

use super::super::testing::{QUORUM, SINGLE};

/// Mutations of mesh.toml: which mesh, what is replaced, by what, and all that must be said.
pub(in super::super) const MESH_CASES: &[(&str, &str, &str, &[&str])] = &[
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
    // the same keys with the value that is built are accepted
    (QUORUM, "version = \"1\"", "version = \"1\"\nkeys = \"embed\"\nnetwork-config = \"none\"", &[]),
    // the announcer
    (QUORUM, "[pki]", "[agent.binary]\narm64 = \"bin/mesh-agent\"\n[pki]", &[]),
    (QUORUM, "[pki]", "[agent.binary]\nx86_64 = \"bin/mesh-agent\"\n[pki]", &["invalid-value:17:1"]),
    (QUORUM, "port = 5432", "port = 5432, unit = \"postgresql.service\"", &[]),
    (QUORUM, "port = 5432", "port = 5432, unit = \"postgresql\"", &["invalid-value:27:42"]),
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
