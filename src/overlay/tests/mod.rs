//! The module as a whole: from declaration and base to the tree of an image.

mod errors;
mod golden;
mod preflight;
mod program;

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::ledger::Action;
use super::testing::*;
use super::*;
use crate::systemd::testing::put;
use crate::tree::{Entry, Kind, LinkGroup, Tree};

fn path(path: &str) -> TreePath {
    TreePath::parse(path).unwrap()
}

/// `file 0644 0:0 <sha8>`; contents count, times do not.
fn line(entry: &Entry) -> String {
    match &entry.kind {
        Kind::Symlink(target) => format!("-> {}", String::from_utf8_lossy(target)),
        Kind::File(data) => {
            format!("file {:04o} {}:{} {}", entry.mode, entry.uid, entry.gid, &data.sha256.hex()[..8])
        }
        _ => format!("{} {:04o} {}:{}", entry.kind_name(), entry.mode, entry.uid, entry.gid),
    }
}

/// `- path entry` and `+ path entry` where the second tree differs.
fn difference(before: &Tree, after: &Tree) -> String {
    let paths: BTreeSet<&TreePath> = before.entries.keys().chain(after.entries.keys()).collect();
    let mut text = String::new();
    for path in paths {
        let (old, new) = (before.get(path).map(line), after.get(path).map(line));
        if old != new {
            text.extend(old.map(|old| format!("- {path} {old}\n")));
            text.extend(new.map(|new| format!("+ {path} {new}\n")));
        }
    }
    text
}

/// What an overlay of the user's does to the base, beside what the built-in ones do.
fn own_difference(files: &[(&str, &str)], base: &Tree) -> String {
    let own = |files: &[(&str, &str)]| {
        let mesh = mesh_with(files);
        let plan = plan_over(&mesh, base, &base_packages()).unwrap();
        merge(base, &fit_node(&plan, &mesh, "lis1", true).unwrap())
    };
    let without = [("profiles/voter.toml", "description = \"d\"\npart = \"voter\"\noverlays = [\"mesh\", \"etcd\"]\n")];
    difference(&own(&without), &own(files))
}

/// Paths and texts.
type Files<'a> = &'a [(&'a str, &'a str)];

const VOTER: &str = "description = \"d\"\npart = \"voter\"\noverlays = [\"mesh\", \"etcd\", \"own\"]\n";

#[test]
fn overlay_and_base_give_the_tree() {
    let mut base = base();
    put(&mut base, "srv/link", "-> /usr/lib");
    put(&mut base, "srv/full/inner/file", "x");
    put(&mut base, "opt/tool", "old");
    let manifest = "description = \"d\"\n";
    let cases: &[(&str, Files<'_>, &str)] = &[
        (
            "a path through a link of the base lands where the link leads",
            &[("overlays/own/overlay.toml", manifest), ("overlays/own/root/lib/systemd/system/x.service", "a")],
            "+ /usr/lib/systemd/system/x.service file 0644 0:0 ca978112\n",
        ),
        (
            "missing directories are made, existing ones keep their mode",
            &[("overlays/own/overlay.toml", manifest), ("overlays/own/root/etc/app/d/x", "a")],
            "+ /etc/app directory 0755 0:0\n+ /etc/app/d directory 0755 0:0\n+ /etc/app/d/x file 0644 0:0 ca978112\n",
        ),
        (
            "owner and mode are declared, owners by name are the image's",
            &[
                (
                    "overlays/own/overlay.toml",
                    "description = \"d\"\n[path.\"/opt/tool\"]\nmode = \"4750\"\nuser = \"etcd\"\ngroup = \"shadow\"\n\
                     [path.\"/var/lib/etcd\"]\ndirectory = true\nmode = \"0700\"\nuser = \"etcd\"\n",
                ),
                ("overlays/own/root/opt/tool", "a"),
            ],
            "- /opt/tool file 0644 0:0 cba06b57\n+ /opt/tool file 4750 100:42 ca978112\n\
             - /var/lib/etcd directory 0755 0:0\n+ /var/lib/etcd directory 0700 100:0\n",
        ),
        (
            "a declared replacement takes the whole subtree",
            &[
                ("overlays/own/overlay.toml", "description = \"d\"\n[path.\"/srv/full\"]\nreplace = true\n"),
                ("overlays/own/root/srv/full", "a"),
            ],
            "- /srv/full directory 0755 0:0\n+ /srv/full file 0644 0:0 ca978112\n\
             - /srv/full/inner directory 0755 0:0\n- /srv/full/inner/file file 0644 0:0 2d711642\n",
        ),
        (
            "removals take what they name and what lies below",
            &[("overlays/own/overlay.toml", "description = \"d\"\nremove = [\"/srv/f*\", \"/srv/link\"]\n")],
            "- /srv/full directory 0755 0:0\n- /srv/full/inner directory 0755 0:0\n\
             - /srv/full/inner/file file 0644 0:0 2d711642\n- /srv/link -> /usr/lib\n",
        ),
        (
            "a system user gets an id, and files may be his",
            &[
                (
                    "overlays/own/overlay.toml",
                    "description = \"d\"\n[user.app]\nhome = \"/srv\"\n[path.\"/opt/app\"]\nuser = \"app\"\ngroup = \"app\"\n",
                ),
                ("overlays/own/root/opt/app", "a"),
            ],
            "- /etc/group file 0644 0:0 54be5616\n+ /etc/group file 0644 0:0 ee36846e\n\
             - /etc/gshadow file 0644 0:0 81c48f74\n+ /etc/gshadow file 0644 0:0 09804cd2\n\
             - /etc/passwd file 0644 0:0 669d6b45\n+ /etc/passwd file 0644 0:0 5fe6e593\n\
             - /etc/shadow file 0644 0:0 e2bb950c\n+ /etc/shadow file 0644 0:0 818d4342\n\
             + /opt/app file 0644 900:900 ca978112\n",
        ),
        (
            "a unit is enabled with the links of its [Install]",
            &[
                (
                    "overlays/own/overlay.toml",
                    "description = \"d\"\n[path.\"/etc/systemd/system-preset\"]\nmode = \"0700\"\ndirectory = true\n\
                     [unit.\"app.service\"]\nstate = \"enabled\"\n",
                ),
                (
                    "overlays/own/root/usr/lib/systemd/system/app.service",
                    "[Install]\nWantedBy=multi-user.target\nAlias=app2.service\n",
                ),
            ],
            "- /etc/systemd/system-preset directory 0755 0:0\n+ /etc/systemd/system-preset directory 0700 0:0\n\
             - /etc/systemd/system-preset/00-fitout.preset file 0644 0:0 645e111d\n\
             + /etc/systemd/system-preset/00-fitout.preset file 0644 0:0 b4e55883\n\
             + /etc/systemd/system/app2.service -> /usr/lib/systemd/system/app.service\n\
             + /etc/systemd/system/multi-user.target.wants/app.service -> /usr/lib/systemd/system/app.service\n\
             + /usr/lib/systemd/system/app.service file 0644 0:0 f772fd38\n",
        ),
    ];
    for (what, files, want) in cases {
        let files: Vec<_> = [("profiles/voter.toml", VOTER)].into_iter().chain(files.iter().copied()).collect();
        assert_eq!(own_difference(&files, &base), *want, "{what}");
    }
}

#[test]
fn the_base_policy_follows_target_and_part() {
    let mut base = base();
    put(&mut base, "etc/mailname", "vm.example\n");
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl a@b";
    let image = format!("[image]\ntarget = \"container\"\nssh-authorized-keys = [\"{key}\"]\n");
    let mesh = mesh_with(&[("mesh.toml", &MESH.replace("[image]\n", &image))]);
    let mut names = base_packages();
    names.retain(|name, _| name != "udev" && name != "systemd-timesyncd");
    assert_eq!(packages(&mesh), names.keys().cloned().collect());
    let plan = plan_over(&mesh, &base, &names).unwrap();
    let tree = |node| merge(&base, &fit_node(&plan, &mesh, node, true).unwrap());
    let voter = tree("lis1");
    assert_eq!(voter.content(&path("/etc/mailname")).unwrap(), b"lis1.harbour.mesh\n");
    let show = |tree: &Tree, name: &str| tree.get(&path(name)).map(line);
    assert_eq!(voter.content(&path("/root/.ssh/authorized_keys")).unwrap(), format!("{key}\n").into_bytes());
    assert_eq!(show(&voter, "/root/.ssh").as_deref(), Some("directory 0700 0:0"));
    assert!(show(&voter, "/root/.ssh/authorized_keys").is_some_and(|line| line.starts_with("file 0600 0:0")));
    // The host keeps a container's time.
    assert_eq!(show(&voter, "/etc/systemd/system/sysinit.target.wants/systemd-timesyncd.service"), None);
    // Where no registry runs, nobody starts it by mistake.
    assert_eq!(show(&voter, "/etc/systemd/system/etcd.service"), None);
    assert_eq!(show(&tree("edge1"), "/etc/systemd/system/etcd.service").as_deref(), Some("-> /dev/null"));
}

#[test]
fn two_overlays_with_equal_entries_agree_and_a_declared_one_wins() {
    let profile = "description = \"d\"\npart = \"voter\"\noverlays = [\"mesh\", \"etcd\", \"own\", \"two\"]\n";
    let files = |two: &'static str, manifest: &'static str| {
        [
            ("profiles/voter.toml", profile),
            ("overlays/own/overlay.toml", "description = \"d\"\n"),
            ("overlays/own/root/etc/x", "same"),
            ("overlays/two/overlay.toml", manifest),
            ("overlays/two/root/etc/x", two),
        ]
    };
    let content = |files: &[(&str, &str)]| {
        let mesh = mesh_with(files);
        let plan = plan_over(&mesh, &base(), &base_packages()).map_err(|found| found[0].notes.clone())?;
        let fitted = fit_node(&plan, &mesh, "lis1", true).unwrap();
        Ok(String::from_utf8(merge(&base(), &fitted).content(&path("/etc/x")).unwrap()).unwrap())
    };
    let plain = "description = \"d\"\n";
    assert_eq!(content(&files("same", plain)), Ok("same".into()));
    let both = "overlays/own/root/etc/x:1 and overlays/two/root/etc/x:1";
    assert_eq!(content(&files("other", plain)), Err(vec![both.to_owned()]));
    let wins = "description = \"d\"\n[path.\"/etc/x\"]\nreplace = true\n";
    assert_eq!(content(&files("other", wins)), Ok("other".into()));
}

#[test]
fn what_is_touched_is_the_union_over_profiles_with_all_names_of_a_file() {
    let mut base = base();
    for name in ["usr/bin/a", "usr/bin/b"] {
        put(&mut base, name, "same");
        base.entries.get_mut(&path(name)).unwrap().links = Some(LinkGroup(1));
    }
    let mesh = mesh_with(&[
        ("profiles/voter.toml", VOTER),
        ("overlays/own/overlay.toml", "description = \"d\"\n"),
        ("overlays/own/root/usr/bin/a", "other"),
    ]);
    let plan = plan_over(&mesh, &base, &base_packages()).unwrap();
    let touched: Vec<String> = plan.touched().iter().map(TreePath::display).collect();
    assert_eq!(
        touched,
        [
            "/etc/group",
            "/etc/gshadow",
            "/etc/hostname",
            "/etc/machine-id",
            "/etc/passwd",
            "/etc/rc2.d/S01etcd",
            "/etc/resolv.conf",
            "/etc/shadow",
            "/etc/ssh/ssh_host_ed25519_key",
            "/etc/systemd/system/etcd2.service",
            "/etc/systemd/system/multi-user.target.wants/etcd.service",
            "/usr/bin/a",
            "/usr/bin/b",
            "/usr/lib/os-release",
        ]
    );
}

#[test]
fn the_ledger_is_the_same_with_and_without_keys_and_agrees_with_the_tree() {
    let mesh = mesh_with(&[]);
    let base = base();
    let plan = plan_over(&mesh, &base, &base_packages()).unwrap();
    for node in mesh.nodes.keys() {
        let with = fit_node(&plan, &mesh, node, true).unwrap();
        let without = fit_node(&plan, &mesh, node, false).unwrap();
        assert_eq!((with.without_keys, without.without_keys), (false, true));
        assert_eq!(with.ledger, without.ledger);
        let tree = merge(&base, &with);
        for (name, record) in &with.ledger.records {
            let entry = tree.get(&path(name));
            assert_eq!(record.action == Action::Removed, entry.is_none(), "{name}");
            let Some(entry) = entry else { continue };
            assert_eq!(
                (record.mode.clone(), record.uid, record.gid),
                (format!("{:04o}", entry.mode), entry.uid, entry.gid)
            );
            match &entry.kind {
                Kind::File(data) if record.public_key.is_none() => {
                    assert_eq!(record.sha256, Some(data.sha256), "{name}")
                }
                _ => assert_eq!(record.sha256, None, "{name}"),
            }
        }
        let own_keys = with.ledger.records.values().filter(|r| r.public_key.is_some()).count();
        assert_eq!(own_keys, if node == "edge1" { 1 } else { 3 });
        let written: BTreeSet<&TreePath> = with.put.keys().chain(&with.removed).collect();
        assert_eq!(written.len(), with.ledger.records.len(), "every change has its record");
    }
}

#[test]
fn the_ledger_does_not_tell_where_the_mesh_lies() {
    let mut files = crate::declaration::Files::builtin();
    files.directory = PathBuf::from("/home/me/mesh");
    let files = files
        .with("mesh.toml", MESH)
        .with("profiles/voter.toml", VOTER)
        .with("overlays/own/overlay.toml", "description = \"d\"\nremove = [\"/etc/rc2.d/S01dbus\"]\n")
        .with("overlays/own/root/etc/x", "a");
    let mesh = crate::declaration::parse(&files).unwrap().mesh;
    let plan = plan_over(&mesh, &base(), &base_packages()).unwrap();
    let fitted = fit_node(&plan, &mesh, "lis1", true).unwrap();
    let file = |path: &str| fitted.ledger.records[path].origin.file.as_str();
    assert_eq!(file("/etc/x"), "overlays/own/root/etc/x");
    assert_eq!(file("/etc/rc2.d/S01dbus"), "overlays/own/overlay.toml:2");
}

#[test]
fn nodes_differ_only_where_the_scope_says_node() {
    let mesh = mesh_with(&[]);
    let plan = plan_over(&mesh, &base(), &base_packages()).unwrap();
    let (one, two) = (fit_node(&plan, &mesh, "lis1", true).unwrap(), fit_node(&plan, &mesh, "por1", true).unwrap());
    for (path, (scope, entry)) in &one.put {
        let other = &two.put[path];
        assert_eq!(*scope, other.0);
        if *scope == Scope::Profile {
            assert_eq!(*entry, other.1, "{path}");
        }
    }
}

#[test]
fn addresses_of_every_kind_make_urls_that_etcd_binds() {
    let cases = [
        ("10.77.0.", "https://10.77.0.11:2379,https://127.0.0.1:2379", "http://127.0.0.1:2381"),
        ("fd00::", "https://[fd00::11]:2379,https://127.0.0.1:2379", "http://127.0.0.1:2381"),
        // Nodes on loopback addresses may share one network namespace: none of them may take 127.0.0.1.
        ("127.77.0.", "https://127.77.0.11:2379", "http://127.77.0.11:2381"),
    ];
    for (prefix, clients, metrics) in cases {
        let network = if prefix.contains(':') { "fd00::/64".to_owned() } else { format!("{prefix}0/24") };
        let text = MESH.replace("10.77.0.0/24", &network).replace("\"10.77.0.", &format!("\"{prefix}"));
        let mesh = mesh_with(&[("mesh.toml", &text)]);
        let base = base();
        let plan = plan_over(&mesh, &base, &base_packages()).unwrap();
        let tree = merge(&base, &fit_node(&plan, &mesh, "lis1", true).unwrap());
        let config = String::from_utf8(tree.content(&path("/etc/etcd/etcd.yaml")).unwrap()).unwrap();
        for line in [format!("listen-client-urls: \"{clients}\""), format!("listen-metrics-urls: \"{metrics}\"")] {
            assert!(config.lines().any(|l| l == line), "{line}\n{config}");
        }
    }
}

/// Without Debian's package: the overlay `etcd-binary` brings the unit, the user and the path, and asks for no package.
#[test]
fn an_etcd_of_the_bases_own_gets_a_unit_and_a_user() {
    let profile = "description = 'd'\npart = 'voter'\noverlays = ['mesh', 'etcd-binary', 'etcd']\n\
                   [parameters]\netcd-version = '3.5.16'\n";
    let mesh =
        mesh_with(&[("profiles/voter.toml", profile), ("profiles/arbiter.toml", &profile.replace("voter", "arbiter"))]);
    assert!(!packages(&mesh).contains("etcd-server") && packages(&mesh).contains("dbus"));
    let mut base = base();
    let mut installed = base_packages();
    installed.remove("etcd-server");
    for gone in [
        "usr/bin/etcd",
        "usr/lib/systemd/system/etcd.service",
        "etc/init.d/etcd",
        "etc/rc2.d/S01etcd",
        "etc/rc0.d/K01etcd",
    ] {
        base.remove(&path(gone));
    }
    put(&mut base, "usr/local/bin/etcd", "#!elf\n");
    put(&mut base, "etc/systemd/system/etcd.service", "[Service]\nExecStart=/usr/local/bin/etcd\n");
    put(&mut base, "etc/systemd/system/etcd.service.d/own.conf", "[Service]\nExecStartPre=/bin/false\n");
    put(&mut base, "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
    put(&mut base, "etc/group", "root:x:0:\n");
    let plan = plan_over(&mesh, &base, &installed).unwrap();
    let fitted = fit_node(&plan, &mesh, "lis1", true).unwrap();
    let tree = merge(&base, &fitted);
    assert_eq!(tree.get(&path("/usr/bin/etcd")).unwrap().kind, Kind::Symlink(b"/usr/local/bin/etcd".to_vec()));
    let text = |at: &str| String::from_utf8(tree.content(&path(at)).unwrap()).unwrap();
    assert!(text("/usr/lib/systemd/system/etcd.service").contains("User=etcd\n"));
    assert!(tree.get(&path("/etc/systemd/system/etcd.service")).is_none());
    assert!(tree.get(&path("/etc/systemd/system/etcd.service.d/own.conf")).is_none());
    assert!(tree.get(&path("/etc/systemd/system/etcd.service.d/10-mesh.conf")).is_some());
    assert_eq!(text("/usr/lib/fitout/etcd-version"), "3.5.16\n");
    let (uid, gid) = plan.users["etcd"];
    assert!(text("/etc/passwd").contains(&format!("etcd:x:{uid}:{gid}:etcd:/var/lib/etcd:")));
    let key = tree.get(&path("/etc/etcd/pki/peer.key")).unwrap();
    assert_eq!((key.uid, key.gid, key.mode), (uid, gid, 0o600));
}

/// A directory that takes a link's place holds what the overlay puts below it; nothing goes through the link.
#[test]
fn a_directory_with_files_takes_a_links_place() {
    let manifest = "description = 'd'\n[path.'/lib']\ndirectory = true\nreplace = true\n";
    let profile = "description = 'd'\npart = 'client'\noverlays = ['mesh', 'own']\n";
    let mesh = mesh_with(&[
        ("profiles/client.toml", profile),
        ("overlays/own/overlay.toml", manifest),
        ("overlays/own/root/lib/sub/x", "x"),
    ]);
    let base = base();
    let plan = plan_over(&mesh, &base, &base_packages()).unwrap();
    let tree = merge(&base, &fit_node(&plan, &mesh, "edge1", true).unwrap());
    assert!(tree.get(&path("/lib")).unwrap().is_directory());
    assert_eq!(tree.content(&path("/lib/sub/x")), Ok(b"x".to_vec()));
    assert!(tree.get(&path("/usr/lib/sub")).is_none());
}
