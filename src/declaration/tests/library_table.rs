//! Faults of profiles and overlays.

/// Mutations of the library: a file beside mesh.toml, and what must be said of it.
pub(in super::super) const LIBRARY_CASES: &[(&str, &str, &[&str])] = &[
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
