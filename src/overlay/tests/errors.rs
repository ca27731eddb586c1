//! Every rule of the family, fired.

use std::collections::{BTreeMap, BTreeSet};

use super::{VOTER, path};
use crate::etcd::birth::{Birth, Entrance};
use crate::finding::Finding;
use crate::overlay::testing::*;
use crate::overlay::{RULES, fit};
use crate::systemd::testing::put;
use crate::tree::Tree;

/// `code subject: message @ file:line`.
pub(super) fn show(found: &[Finding]) -> Vec<String> {
    let place = |f: &Finding| f.span.as_ref().map_or(String::new(), |span| format!(" @ {}", span.file_line()));
    found.iter().map(|f| format!("{} {}: {}{}", f.code, f.subject, f.message, place(f))).collect()
}

#[test]
fn each_error_is_found_with_its_place() {
    let own = |manifest: &str| format!("description = \"d\"\n{manifest}");
    struct Case {
        manifest: String,
        files: &'static [(&'static str, &'static str)],
        base: fn(&mut Tree, &mut BTreeMap<String, String>),
        want: &'static [&'static str],
    }
    let plain: fn(&mut Tree, &mut BTreeMap<String, String>) = |_, _| {};
    let case = |manifest: &str, files, want| Case { manifest: own(manifest), files, base: plain, want };
    let cases = [
        case(
            "",
            &[("overlays/own/root/run/x", "")],
            &["overlay-path /run/x: is hidden or emptied when the image boots @ overlays/own/root/run/x:1"],
        ),
        case(
            "[path.\"/etc/tpyo\"]\nmode = \"0600\"\n",
            &[],
            &["overlay-path-rule-unused /etc/tpyo: the overlay `own` puts nothing there @ overlays/own/overlay.toml:2"],
        ),
        case(
            "",
            &[("overlays/own/root/etc/hostname", "other\n")],
            &[
                "overlay-conflict /etc/hostname: the overlays `mesh` and `own` of profile `voter` both give /etc/hostname, \
               and the entries differ @ overlays/own/root/etc/hostname:1",
            ],
        ),
        case(
            "",
            &[("overlays/own/root/etc/x", "plain"), ("overlays/own/root/etc/x.tera", "{{ node.name }}")],
            &[
                "overlay-conflict /etc/x: overlays/own/root/etc/x and overlays/own/root/etc/x.tera both become this path \
               @ overlays/own/root/etc/x.tera:1",
            ],
        ),
        // A directory with something in it may take a link's place.
        case("[path.\"/lib\"]\ndirectory = true\nreplace = true\n", &[("overlays/own/root/lib/x/y", "")], &[]),
        case(
            "[path.\"/lib\"]\ndirectory = true\n",
            &[],
            &["overlay-type-change /lib: a directory would take the place of the base's symlink -> usr/lib \
               @ overlays/own/overlay.toml:2"],
        ),
        case(
            "",
            &[("overlays/own/root/usr/bin/etcd/x", "")],
            &["overlay-below-no-directory /usr/bin/etcd/x: /usr/bin/etcd is a file, not a directory \
               @ overlays/own/root/usr/bin/etcd/x:1"],
        ),
        case("[path.\"/etc/ssh\"]\nreplace = true\n", &[("overlays/own/root/etc/ssh", "")], &[]),
        case(
            "[path.\"/etc/x\"]\nuser = \"nobody\"\ngroup = \"staff\"\n",
            &[("overlays/own/root/etc/x", "")],
            &[
                "overlay-owner-unknown /etc/x: there is no user `nobody` in the image @ overlays/own/overlay.toml:2",
                "overlay-owner-unknown /etc/x: there is no group `staff` in the image @ overlays/own/overlay.toml:2",
            ],
        ),
        case(
            "remove = [\"/etc/gone*\", \"?/etc/maybe\"]\n",
            &[],
            &["overlay-removal-unmatched /etc/gone*: matches nothing in the base @ overlays/own/overlay.toml:2"],
        ),
        case(
            "",
            &[
                ("overlays/own/root/etc/x.tera", "\n{% if %}"),
                ("overlays/own/root/etc/y.tera", "{{ node.nmae }}{{ nope }}"),
            ],
            &[
                "overlay-template-syntax overlays/own/root/etc/x.tera: found `%}` but expected one of: integer, float, \
                 string, bool, ident, `-`, `not`, `<`, `{`, `[` or `(` @ overlays/own/root/etc/x.tera:2",
                "overlay-template-render overlays/own/root/etc/y.tera: field `nmae` is not defined \
                 @ overlays/own/root/etc/y.tera:1",
            ],
        ),
        case(
            "",
            &[("overlays/own/root/etc/k.tera", "{{ pki.peer.key }}")],
            &["overlay-key-file /etc/k: holds a private key and is open to group or others (mode 0644) \
               @ overlays/own/root/etc/k.tera:1"],
        ),
        case(
            "[path.\"/etc/k\"]\nmode = \"0600\"\n",
            &[("overlays/own/root/etc/k.tera", "{% set l = pki.peer %}{{ l.key }}and more")],
            &[
                "overlay-key-file /etc/k: holds a private key and something else (mode 0600) @ overlays/own/overlay.toml:2",
            ],
        ),
        case(
            "",
            &[("overlays/own/root/etc/os-release", "x")],
            &["overlay-type-change /etc/os-release: a file would take the place of the base's symlink -> \
               ../usr/lib/os-release @ overlays/own/root/etc/os-release:1"],
        ),
        case(
            "",
            &[("overlays/own/root/etc/hosts", "x")],
            &[
                "overlay-edit /etc/hosts: is edited, and the overlay `own` gives it as a whole @ overlays/own/root/etc/hosts:1",
            ],
        ),
        Case {
            manifest: own(""),
            files: &[],
            base: |tree, _| drop(tree.remove(&path("/usr/lib/os-release"))),
            want: &[
                "overlay-base-path-missing /usr/lib/os-release: the base has no such path, which the overlay `mesh` needs \
                 @ <built-in>/overlays/mesh/overlay.toml:5",
                "overlay-edit /usr/lib/os-release: the base has no such file @ <built-in>/overlays/mesh/overlay.toml:16",
            ],
        },
        Case {
            manifest: own("[user.app]\n"),
            files: &[],
            base: |tree, _| {
                let all: String = (900..1000).map(|id| format!("u{id}:x:{id}:{id}::/:/x\n")).collect();
                put(tree, "etc/passwd", &(all + "etcd:x:100:101::/:/x\n"));
            },
            want: &[
                "overlay-user-ids fitout.lock: no free id between 900 and 999 for `app`",
                "overlay-user-ids fitout.lock: no free id between 900 and 999 for `mesh-agent`",
            ],
        },
        Case {
            manifest: own(""),
            files: &[],
            base: |tree, packages| {
                packages.remove("etcd-server");
                packages.remove("udev");
                tree.remove(&path("/usr/bin/etcd"));
            },
            want: &[
                "overlay-package-missing common: the base has no package `etcd-server`, which the overlay `etcd` needs \
                 @ <built-in>/overlays/etcd/overlay.toml:5",
                "overlay-package-missing common: the base has no package `udev`, which the overlay `mesh` needs \
                 @ <built-in>/overlays/mesh/overlay.toml:1",
            ],
        },
        case(
            "[unit.\"mesh-registry.target\"]\nstate = \"masked\"\n",
            &[],
            &["overlay-unit-states mesh-registry.target: `mesh` wants it stopped, `own` wants it masked \
               @ overlays/own/overlay.toml:3"],
        ),
        case(
            "[unit.\"etcd.service\"]\nstate = \"enabled\"\n",
            &[],
            &["overlay-unit-states etcd.service: is to be enabled, and the registry is stopped in every image \
               @ overlays/own/overlay.toml:3"],
        ),
        case(
            "",
            &[("overlays/own/root/usr/lib/fitout/image.json", "{}")],
            &["overlay-path /usr/lib/fitout/image.json: is where fitout itself says what is in the image \
               @ overlays/own/root/usr/lib/fitout/image.json:1"],
        ),
        case(
            "[unit.\"app.service\"]\nstate = \"enabled\"\n",
            &[],
            &[
                "overlay-unit-missing app.service: is to be enabled and is not in the image @ overlays/own/overlay.toml:3",
            ],
        ),
        case(
            "[unit.\"app.service\"]\nstate = \"enabled\"\n",
            &[("overlays/own/root/etc/systemd/system/app.service", "[Service]\n")],
            &[
                "overlay-unit-install app.service: is to be enabled, but it has no `WantedBy=`, `RequiredBy=`, `UpheldBy=`, \
               `Alias=` or `Also=` in `[Install]` @ overlays/own/overlay.toml:3",
            ],
        ),
        case(
            "",
            &[("overlays/own/root/etc/systemd/system/graphical.target.wants/etcd.service", "x")],
            &[
                "overlay-conflict /etc/systemd/system/graphical.target.wants/etcd.service: an overlay puts it, and `unit \
               etcd.service stopped: only mesh-registry.target starts the registry` of base policy decides about it too \
               @ overlays/own/root/etc/systemd/system/graphical.target.wants/etcd.service:1",
            ],
        ),
    ];
    let mut fired: BTreeSet<&str> = BTreeSet::new();
    for case in &cases {
        let (mut tree, mut packages) = (base(), base_packages());
        (case.base)(&mut tree, &mut packages);
        let mut files = vec![("profiles/voter.toml", VOTER), ("overlays/own/overlay.toml", &case.manifest)];
        files.extend(case.files);
        let mesh = mesh_with(&files);
        let found = plan_over(&mesh, &tree, &packages).map_or_else(|f| f, |plan| plan.warnings);
        fired.extend(found.iter().map(|f| f.code));
        assert_eq!(show(&found), case.want, "{}", case.manifest);
    }
    fired.extend(not_born().iter().map(|f| f.code));
    fired.extend(super::program::fired());
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(fired, all, "every rule is fired by a case above");
}

/// A fourth voter that came after the registry was born.
fn not_born() -> Vec<Finding> {
    born_as(|birth| drop(birth.peers.remove("lis1")))
}

/// What is said of `lis1` when the registry was born otherwise.
fn born_as(change: impl Fn(&mut Birth)) -> Vec<Finding> {
    let mesh = mesh_with(&[]);
    let plan = plan_over(&mesh, &base(), &base_packages()).unwrap();
    let mut birth = crate::etcd::birth::compute(&mesh);
    change(&mut birth);
    let node = &mesh.nodes["lis1"];
    match fit(&plan, &mesh, node, &birth, &Entrance::Born, &pki(true, true)) {
        Err(crate::finding::Problem::Findings(found)) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_voter_that_was_not_born_is_told_to_join() {
    assert_eq!(
        show(&not_born()),
        ["overlay-not-born lis1: is not among the first members of generation 1 @ mesh.toml:13"]
    );
    let moved = born_as(|birth| drop(birth.peers.insert("lis1".into(), "https://10.77.0.99:2380".into())));
    assert_eq!(
        show(&moved),
        [
            "overlay-not-born lis1: was born at https://10.77.0.99:2380, and is declared at https://10.77.0.11:2380 @ mesh.toml:13"
        ]
    );
}
