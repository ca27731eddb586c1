//! Mutations of a stopped image, each with the codes that it must give: the table is the specification.
//!
//! `tests/it/boot_truth.rs` boots a part of the same mutations on a real Debian base and compares.

use super::*;
use crate::systemd::testing::{put, tree};
use crate::tree::{Entry, Tree, TreePath};

const ETC: &str = "/etc/systemd/system";
const LIB: &str = "/usr/lib/systemd/system";

/// What a mutation does to the image: `+ path text` puts, `- path` removes.
type Mutation<'a> = &'a [(&'a str, &'a str)];

/// A small stopped image in the likeness of Debian's: units that matter, links as the base policy leaves them.
fn stopped() -> Tree {
    let mut tree = tree(&[
        ("/lib", "-> usr/lib"),
        ("/bin", "-> usr/bin"),
        ("/usr/bin/etcd", "#!ELF of etcd"),
        ("/usr/bin/true", "#!ELF"),
            ("/usr/bin/sh", "#!ELF"),
        ("/etc/machine-id", ""),
        ("L/default.target", "-> graphical.target"),
        ("L/graphical.target", "[Unit]\nRequires=multi-user.target\nWants=display-manager.service\n"),
        ("L/multi-user.target", "[Unit]\nRequires=basic.target\n"),
        ("L/runlevel3.target", "-> multi-user.target"),
        ("L/rescue.target", "[Unit]\nRequires=sysinit.target\n"),
        ("L/basic.target", "[Unit]\nRequires=sysinit.target\nWants=sockets.target timers.target paths.target slices.target\n"),
        ("L/sysinit.target", "[Unit]\nWants=local-fs.target\n"),
        ("L/local-fs.target", "[Unit]\nOnFailure=emergency.target\n"),
        ("L/emergency.target", "[Unit]\n"),
        ("L/sockets.target", "[Unit]\n"),
        ("L/timers.target", "[Unit]\n"),
        ("L/paths.target", "[Unit]\n"),
        ("L/slices.target", "[Unit]\n"),
        ("L/sockets.target.wants/systemd-udevd-kernel.socket", "-> ../systemd-udevd-kernel.socket"),
        ("L/systemd-udevd-kernel.socket", "[Unit]\nDefaultDependencies=no\n[Socket]\nService=systemd-udevd.service\n"),
        ("L/systemd-udevd.service", "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/true\n"),
        ("L/multi-user.target.wants/dbus.service", "-> ../dbus.service"),
        ("L/dbus.service", "[Service]\nExecStart=/usr/bin/true\n"),
        ("L/dbus.socket", "[Socket]\nListenStream=/run/dbus/system_bus_socket\n"),
        ("L/multi-user.target.wants/a-b.service", "-> ../a-b.service"),
        ("L/a-b.service", "[Service]\nExecStart=/usr/bin/true\n"),
        ("L/rc-local.service", "[Service]\nExecStart=/etc/rc.local start\n"),
        ("L/unreached.target", "[Unit]\n"),
        ("L/unreached.service", "[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"),
        (
            "L/etcd.service",
            "[Unit]\nAfter=network.target\n[Service]\nEnvironment=DAEMON_ARGS=\nEnvironment=ETCD_NAME=%H\n\
             EnvironmentFile=-/etc/default/%p\nType=notify\nExecStart=/usr/bin/etcd $DAEMON_ARGS\n\
             [Install]\nWantedBy=multi-user.target\nAlias=etcd2.service\n",
        ),
        (
            "E/etcd.service.d/10-mesh.conf",
            "[Unit]\nPartOf=mesh-registry.target\nRequires=mesh-preflight.service\nAfter=mesh-preflight.service\n\
             [Service]\nEnvironment=\nEnvironmentFile=\nExecStart=\n\
             ExecStart=/usr/bin/etcd --config-file /etc/etcd/etcd.yaml\nTimeoutStartSec=infinity\n",
        ),
        (
            "L/mesh-registry.target",
            "[Unit]\nDefaultDependencies=no\nConflicts=shutdown.target\nBefore=shutdown.target\n\
             Requires=mesh-preflight.service\nAfter=mesh-preflight.service\nWants=etcd.service\n\
             [Install]\nWantedBy=multi-user.target\n",
        ),
        ("L/mesh-preflight.service", "[Service]\nType=oneshot\nExecStart=/usr/lib/fitout/mesh-preflight\n"),
        ("/usr/lib/fitout/mesh-preflight", "#!/bin/sh\ncommand -v /usr/bin/etcd\n"),
        ("/etc/init.d/etcd", "#!/bin/sh\n"),
        ("/etc/rc2.d/K01etcd", "-> ../init.d/etcd"),
        (
            "/etc/systemd/system-preset/00-fitout.preset",
            "disable etcd.service\ndisable etcd2.service\ndisable mesh-registry.target\ndisable unreached.service\n",
        ),
    ]
    .map(|(path, text)| (where_is(path), text))
    .iter()
    .map(|(path, text)| (path.as_str(), *text))
    .collect::<Vec<_>>());
    tree.insert(TreePath::root(), Entry::directory(0o755));
    tree
}

fn where_is(path: &str) -> String {
    match path.split_at(2) {
        ("E/", rest) => format!("{ETC}/{rest}"),
        ("L/", rest) => format!("{LIB}/{rest}"),
        _ => path.to_owned(),
    }
}

fn image(mutation: Mutation) -> Image {
    let mut tree = stopped();
    for (path, text) in mutation {
        match path.strip_prefix("- ") {
            Some(path) => {
                tree.remove(&TreePath::parse(where_is(path)).unwrap());
            }
            None => put(&mut tree, &where_is(path), text),
        }
    }
    Image {
        name: "lis1.tar.gz".into(),
        tree,
        manifest: Some(manifest()),
        private_keys: Vec::new(),
        etcd_builds: Vec::new(),
    }
}

/// A manifest of a voter with an empty ledger.
pub(in crate::verify) fn manifest() -> crate::image::manifest::Manifest {
    use crate::declaration::{Part, Target, Topology};
    use crate::etcd::birth::{Birth, ClusterState};
    crate::image::manifest::Manifest {
        schema: crate::image::manifest::SCHEMA,
        tool: "0".into(),
        mesh: "harbour".into(),
        domain: "harbour.mesh".into(),
        topology: Topology::Quorum,
        node: "lis1".into(),
        site: "lisbon".into(),
        address: "10.77.0.11".parse().unwrap(),
        network: "10.77.0.0/24".parse().unwrap(),
        profile: "voter".into(),
        part: Part::Voter,
        target: Target::Machine,
        version: "1".into(),
        birth: Birth::of(1, "harbour-g1".into(), [("lis1".into(), "https://10.77.0.11:2380".into())].into()),
        cluster_state: ClusterState::New,
        base: String::new(),
        base_hostname: String::new(),
        sites: vec!["lisbon".into()],
        registry: None,
        ledger: crate::overlay::ledger::Ledger::default(),
    }
}

/// The codes that an image gives, sorted, each once.
fn codes(image: &Image) -> Vec<&'static str> {
    let mut out = Vec::new();
    check(image, &mut out);
    let mut codes: Vec<&str> = out.iter().map(|f| f.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

const ETCD: &str = "-> /usr/lib/systemd/system/etcd.service";
const STARTS: &[&str] = &["unit-starts-at-boot"];
const ACTIVATED: &[&str] = &["unit-activated"];
const COMMAND: &[&str] = &["unit-start-command"];
const NOTHING: &[&str] = &[];

/// Case, mutation, codes.
const TABLE: &[(&str, Mutation, &[&str])] = &[
    ("the stopped image", &[], NOTHING),
    // Dependencies that start.
    ("wants link of multi-user.target", &[("E/multi-user.target.wants/etcd.service", ETCD)], STARTS),
    ("wants link of another unit", &[("E/a-b.service.wants/etcd.service", ETCD)], STARTS),
    ("requires link", &[("E/sysinit.target.requires/etcd.service", ETCD)], STARTS),
    ("upholds link", &[("E/basic.target.upholds/etcd.service", ETCD)], STARTS),
    ("wants link of an alias", &[("E/runlevel3.target.wants/etcd.service", ETCD)], STARTS),
    ("wants link of a type", &[("E/target.wants/etcd.service", ETCD)], &["handle-form", "unit-starts-at-boot"]),
    ("wants link of a prefix", &[("E/a-.service.wants/etcd.service", ETCD)], STARTS),
    (
        "the link's own name counts",
        &[("E/multi-user.target.wants/etcd.service", "-> /usr/lib/systemd/system/x.service")],
        STARTS,
    ),
    (
        "wants link to the alias",
        &[("E/etcd2.service", ETCD), ("E/multi-user.target.wants/etcd2.service", ETCD)],
        &["alias-left", "unit-starts-at-boot"],
    ),
    ("Wants= in a drop-in", &[("E/multi-user.target.d/x.conf", "[Unit]\nWants=etcd.service\n")], STARTS),
    (
        "Wants= that a later drop-in tries to reset",
        &[
            ("E/multi-user.target.d/x.conf", "[Unit]\nWants=etcd.service\n"),
            ("E/multi-user.target.d/y.conf", "[Unit]\nWants=\n"),
        ],
        STARTS,
    ),
    ("Requires= in a drop-in of the type", &[("E/service.d/x.conf", "[Unit]\nRequires=etcd.service\n")], STARTS),
    ("BindsTo= in a drop-in of a prefix", &[("E/a-.service.d/x.conf", "[Unit]\nBindsTo=etcd.service\n")], STARTS),
    (
        "Upholds= in a unit",
        &[("E/a-b.service", "[Unit]\nUpholds=etcd.service\n[Service]\nExecStart=/usr/bin/true\n")],
        STARTS,
    ),
    (
        "Wants= across a continued line",
        &[("E/a-b.service.d/x.conf", "[Unit]\nWants=x.service \\\n# y\n etcd.service\n")],
        STARTS,
    ),
    ("Wants= in the slice", &[("E/system.slice.d/x.conf", "[Unit]\nWants=etcd.service\n")], STARTS),
    (
        "an instance of a template",
        &[
            ("L/t@.service", "[Unit]\nWants=%i.service\n[Service]\nExecStart=/usr/bin/true\n"),
            ("E/multi-user.target.wants/t@etcd.service", "-> /usr/lib/systemd/system/t@.service"),
        ],
        STARTS,
    ),
    (
        "a drop-in of a template",
        &[
            ("L/t@.service", "[Service]\nExecStart=/usr/bin/true\n"),
            ("E/t@.service.d/x.conf", "[Unit]\nWants=etcd.service\n"),
            ("E/multi-user.target.wants/t@x.service", "-> /usr/lib/systemd/system/t@.service"),
        ],
        STARTS,
    ),
    (
        "moved default.target",
        &[("E/default.target", "-> /etc/systemd/system/my.target"), ("E/my.target", "[Unit]\nWants=etcd.service\n")],
        STARTS,
    ),
    (
        "no default.target: rescue.target",
        &[("- L/default.target", ""), ("E/rescue.target.wants/etcd.service", ETCD)],
        STARTS,
    ),
    (
        "the handle enabled",
        &[("E/multi-user.target.wants/mesh-registry.target", "-> /usr/lib/systemd/system/mesh-registry.target")],
        STARTS,
    ),
    (
        "only the S links and no unit file",
        &[("- L/etcd.service", ""), ("/etc/rc3.d/S01etcd", "-> ../init.d/etcd")],
        &["handle-missing", "unit-starts-at-boot"],
    ),
    (
        "x-systemd.requires= of a mount",
        &[("/etc/fstab", "/dev/x /x ext4 x-systemd.requires=etcd.service 0 0\n")],
        STARTS,
    ),
    (
        "x-systemd.requires= of a mount that is not mounted at boot",
        &[("/etc/fstab", "/dev/x /x ext4 noauto,x-systemd.requires=etcd.service 0 0\n")],
        NOTHING,
    ),
    (
        "a drop-in of a mount that /etc/fstab makes",
        &[("/etc/fstab", "/dev/x /x ext4\n"), ("E/x.mount.d/x.conf", "[Unit]\nWants=etcd.service\n")],
        STARTS,
    ),
    ("upheld by PID 1's own scope", &[("E/init.scope.upholds/etcd.service", ETCD)], STARTS),
    ("upheld by a mount that is there", &[("E/run.mount.d/x.conf", "[Unit]\nUpholds=etcd.service\n")], STARTS),
    (
        "a mount that is wanted",
        &[
            ("L/x.mount", "[Unit]\nWants=etcd.service\n[Mount]\nWhat=/x\nWhere=/x\n"),
            ("E/a-b.service.d/x.conf", "[Unit]\nRequiresMountsFor=/x/y\n"),
        ],
        STARTS,
    ),
    (
        "an offline update",
        &[("/system-update", "-> /var/lib/update"), ("L/system-update.target", "[Unit]\nWants=etcd.service\n")],
        STARTS,
    ),
    // What starts it later.
    (
        "a timer",
        &[("E/etcd.timer", "[Timer]\nOnBootSec=1\n"), ("E/timers.target.wants/etcd.timer", "-> ../etcd.timer")],
        ACTIVATED,
    ),
    (
        "a timer of another name",
        &[
            ("E/x.timer", "[Timer]\nOnBootSec=1\nUnit=etcd.service\n"),
            ("E/timers.target.wants/x.timer", "-> ../x.timer"),
        ],
        ACTIVATED,
    ),
    (
        "a socket",
        &[
            ("E/x.socket", "[Socket]\nListenStream=2379\nService=etcd.service\n"),
            ("E/sockets.target.wants/x.socket", "-> ../x.socket"),
        ],
        ACTIVATED,
    ),
    (
        "a path unit",
        &[
            ("E/x.path", "[Path]\nPathExists=/etc\nUnit=etcd.service\n"),
            ("E/multi-user.target.wants/x.path", "-> ../x.path"),
        ],
        ACTIVATED,
    ),
    ("OnFailure=", &[("E/a-b.service.d/x.conf", "[Unit]\nOnFailure=etcd.service\n")], ACTIVATED),
    ("OnSuccess=", &[("E/a-b.service.d/x.conf", "[Unit]\nOnSuccess=etcd.service\n")], ACTIVATED),
    ("wanted by what starts on failure", &[("E/emergency.target.wants/etcd.service", ETCD)], ACTIVATED),
    (
        "a name on the bus",
        &[("/usr/share/dbus-1/system-services/x.service", "[D-BUS Service]\nName=x.y\nSystemdService=etcd.service\n")],
        ACTIVATED,
    ),
    (
        "SYSTEMD_WANTS",
        &[("/etc/udev/rules.d/1.rules", "ACTION==\"add\", ENV{SYSTEMD_WANTS}+=\"etcd.service\"\n")],
        ACTIVATED,
    ),
    ("wants of a device", &[("E/dev-null.device.wants/etcd.service", ETCD)], ACTIVATED),
    (
        "a link that tmpfiles.d makes",
        &[("/etc/tmpfiles.d/x.conf", "L /etc/systemd/system/multi-user.target.wants/etcd.service - - - - /x\n")],
        &["tmpfiles-starts"],
    ),
    (
        "a link that tmpfiles.d makes where nothing lasts",
        &[("/etc/tmpfiles.d/x.conf", "L /run/systemd/system/multi-user.target.wants/etcd.service - - - - /x\n")],
        NOTHING,
    ),
    (
        "a search path of the manager's own",
        &[("/etc/systemd/system.conf", "[Manager]\nManagerEnvironment=A=b \"SYSTEMD_UNIT_PATH=/opt/units\"\n")],
        &["unit-search-path"],
    ),
    (
        "the init of systemd",
        &[
            ("/usr/sbin/init", "-> /lib/systemd/systemd"),
            ("/sbin", "-> usr/sbin"),
            ("/usr/lib/systemd/systemd", "#!ELF of systemd"),
        ],
        NOTHING,
    ),
    ("another init", &[("/sbin/init", "#!/bin/sh\nexec /usr/lib/systemd/systemd\n")], &["boot-program"]),
    // Commands.
    (
        "a hook of wg-quick",
        &[
            ("L/wg-quick@.service", "[Service]\nExecStart=/usr/bin/true\n"),
            ("E/multi-user.target.wants/wg-quick@wg0.service", "-> /usr/lib/systemd/system/wg-quick@.service"),
            ("/etc/wireguard/wg0.conf", "[Interface]\nPostUp = systemctl start etcd\n"),
        ],
        COMMAND,
    ),
    (
        "a hook of wg-quick, which is not started",
        &[("/etc/wireguard/wg0.conf", "[Interface]\nPostUp = systemctl start etcd\n")],
        NOTHING,
    ),
    (
        "a unit of a user's manager",
        &[
            ("L/systemd-logind.service", "[Service]\nExecStart=/usr/bin/true\n"),
            ("E/multi-user.target.wants/systemd-logind.service", "-> x"),
            ("/usr/lib/x86_64-linux-gnu/security/pam_systemd.so", ""),
            ("/etc/systemd/user/x.service", "[Service]\nExecStart=/bin/systemctl start etcd\n"),
        ],
        COMMAND,
    ),
    (
        "a script that a udev rule runs",
        &[
            ("/etc/udev/rules.d/1.rules", "ACTION==\"add\", RUN+=\"/usr/local/sbin/x %k\"\n"),
            ("/usr/local/sbin/x", "#!/bin/sh\nsystemctl start etcd\n"),
        ],
        COMMAND,
    ),
    (
        "a copy of the program",
        &[("/opt/x", "#!ELF of etcd"), ("E/a-b.service.d/x.conf", "[Service]\nExecStart=/opt/x\n")],
        COMMAND,
    ),
    ("a generator that is not executable", &[("/etc/systemd/system-generators/x", "etcd.service")], NOTHING),
    (
        "ExecStart=systemctl start",
        &[("E/a-b.service.d/x.conf", "[Service]\nExecStartPost=/bin/sh -c 'systemctl start etcd'\n")],
        COMMAND,
    ),
    (
        "a script",
        &[
            ("E/a-b.service.d/x.conf", "[Service]\nExecStart=/usr/local/bin/x\n"),
            ("/usr/local/bin/x", "#!/bin/sh\nsystemctl enable --now mesh-registry.target\n"),
        ],
        COMMAND,
    ),
    ("rc.local", &[("/etc/rc.local", "#!/bin/sh\nservice etcd start\n")], COMMAND),
    ("rc.local that is not executable", &[("/etc/rc.local", "service etcd start\n")], NOTHING),
    (
        "cron",
        &[
            ("L/cron.service", "[Service]\nExecStart=/usr/bin/true\n"),
            ("E/multi-user.target.wants/cron.service", "-> ../x"),
            ("/etc/cron.d/x", "@reboot root systemctl start etcd\n"),
        ],
        COMMAND,
    ),
    ("a cron table without a cron", &[("/etc/cron.d/x", "@reboot root systemctl start etcd\n")], NOTHING),
    (
        "another unit that runs the program",
        &[
            ("E/other.service", "[Service]\nExecStart=/bin/etcd\n"),
            ("E/multi-user.target.wants/other.service", "-> ../other.service"),
        ],
        COMMAND,
    ),
    (
        "a generator that names it",
        &[("/etc/systemd/system-generators/x", "#!/bin/sh\nln -s x $1/multi-user.target.wants/etcd.service\n")],
        &["generator-names-unit"],
    ),
    ("a generator", &[("/etc/systemd/system-generators/x", "#!/bin/sh\n")], &["unknown-generator"]),
    (
        "a generator that is masked",
        &[
            ("/usr/lib/systemd/system-generators/x", "#!/bin/sh\n"),
            ("/etc/systemd/system-generators/x", "-> /dev/null"),
        ],
        NOTHING,
    ),
    // What starts nothing.
    (
        "masked",
        &[("E/etcd.service", "-> /dev/null"), ("E/multi-user.target.wants/etcd.service", ETCD)],
        &["handle-missing"],
    ),
    (
        "wants of a masked unit",
        &[("E/a-b.service", "-> /dev/null"), ("E/a-b.service.d/x.conf", "[Unit]\nWants=etcd.service\n")],
        NOTHING,
    ),
    ("Wants= of PID 1's own scope", &[("E/init.scope.d/x.conf", "[Unit]\nWants=etcd.service\n")], NOTHING),
    ("Wants= of a mount without a file", &[("E/-.mount.d/x.conf", "[Unit]\nWants=etcd.service\n")], NOTHING),
    ("Wants= of an unreached unit", &[("E/unreached.target.d/x.conf", "[Unit]\nWants=etcd.service\n")], NOTHING),
    ("a timer that nothing starts", &[("E/etcd.timer", "[Timer]\nOnBootSec=1\n")], NOTHING),
    ("a wants entry that is no link", &[("E/multi-user.target.wants/etcd.service", "[Unit]\n")], NOTHING),
    (
        "a wants link masked in a higher directory",
        &[("L/multi-user.target.wants/etcd.service", ETCD), ("E/multi-user.target.wants/etcd.service", "-> /dev/null")],
        &["enablement-link-left"],
    ),
    (
        "a drop-in that is masked",
        &[
            ("L/multi-user.target.d/x.conf", "[Unit]\nWants=etcd.service\n"),
            ("E/multi-user.target.d/x.conf", "-> /dev/null"),
        ],
        NOTHING,
    ),
    ("After= orders only", &[("E/a-b.service.d/x.conf", "[Unit]\nAfter=etcd.service\nBefore=etcd.service\n")], NOTHING),
    ("PartOf= stops only", &[("E/a-b.service.d/x.conf", "[Unit]\nPartOf=etcd.service\n")], NOTHING),
    (
        "Requisite= only looks",
        &[("E/a-b.service.d/x.conf", "[Unit]\nRequisite=etcd.service\n")],
        &["requisite-of-stopped"],
    ),
    (
        "Sockets= starts the socket, not the service",
        &[
            ("E/etcd.service.d/x.conf", "[Service]\nSockets=y.socket\n"),
            ("E/y.socket", "[Socket]\nListenStream=1\nService=unreached.service\n"),
            ("E/sockets.target.wants/y.socket", "-> ../y.socket"),
        ],
        NOTHING,
    ),
    (
        "a host name in a dependency",
        &[("E/a-b.service.d/x.conf", "[Unit]\nWants=%H.service\n")],
        &["unit-name-unresolved"],
    ),
    // What would enable it.
    ("alias left", &[("E/etcd2.service", ETCD)], &["alias-left"]),
    (
        "a link in an unreached unit's .wants",
        &[("E/unreached.target.wants/etcd.service", ETCD)],
        &["enablement-link-left"],
    ),
    ("S link", &[("/etc/rc2.d/S01etcd", "-> ../init.d/etcd")], &["sysv-start-link"]),
    ("S link without a script", &[("/etc/rc2.d/S01etcd", "-> ../init.d/etcd"), ("- /etc/init.d/etcd", "")], NOTHING),
    (
        "a preset that sorts earlier",
        &[("/usr/lib/systemd/system-preset/00-a.preset", "enable etcd*\n")],
        &["preset-enables"],
    ),
    ("no preset", &[("- /etc/systemd/system-preset/00-fitout.preset", "")], &["preset-enables"]),
    ("machine-id uninitialized, preset in place", &[("/etc/machine-id", "uninitialized\n")], &["machine-id"]),
    (
        "machine-id missing, no preset",
        &[("- /etc/machine-id", ""), ("- /etc/systemd/system-preset/00-fitout.preset", "")],
        &["first-boot-enables", "machine-id", "preset-enables"],
    ),
    (
        "machine-id uninitialized, and a unit with Also=",
        &[
            ("/etc/machine-id", "uninitialized\n"),
            ("L/z.service", "[Service]\nExecStart=/usr/bin/true\n[Install]\nAlso=etcd.service\n"),
        ],
        &["also-enables", "first-boot-enables", "machine-id"],
    ),
    (
        "machine-id uninitialized, and a unit that wants it",
        &[
            ("/etc/machine-id", "uninitialized\n"),
            (
                "L/z.service",
                "[Unit]\nWants=etcd.service\n[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n",
            ),
        ],
        &["first-boot-enables", "machine-id"],
    ),
    ("machine-id set", &[("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")], &["machine-id"]),
    (
        "Also= of another unit",
        &[("E/unreached.service.d/x.conf", "[Install]\nAlso=etcd2.service\n"), ("E/etcd2.service", ETCD)],
        &["alias-left", "also-enables"],
    ),
    // Whole files.
    ("a line without =", &[("E/a-b.service.d/x.conf", "[Unit]\nWants etcd.service\n")], &["unit-syntax"]),
    ("a section of another type", &[("E/a-b.service.d/x.conf", "[Timer]\nOnBootSec=1\n")], &["unit-syntax"]),
    ("a preset line that is none", &[("/etc/systemd/system-preset/50-x.preset", "disabled x\n")], &["unit-syntax"]),
    ("a program that is missing", &[("- /usr/lib/fitout/mesh-preflight", "")], &["exec-missing"]),
    ("a program that is not executable", &[("/usr/lib/fitout/mesh-preflight", "x")], &["exec-missing"]),
    (
        "a program of a unit that starts",
        &[("E/a-b.service.d/x.conf", "[Service]\nExecStart=nowhere\n")],
        &["exec-missing"],
    ),
    (
        "a condition on a kernel's modules that the image has not",
        &[(
            "E/a-b.service.d/x.conf",
            "[Unit]\nConditionFileNotEmpty=/lib/modules/%v/modules.devname\n[Service]\nExecStart=nowhere\n",
        )],
        NOTHING,
    ),
    (
        "a condition on a kernel's modules that the image has",
        &[
            (
                "E/a-b.service.d/x.conf",
                "[Unit]\nConditionFileNotEmpty=/usr/lib/modules/%v/modules.devname\n[Service]\nExecStart=nowhere\n",
            ),
            ("/usr/lib/modules/6.1/modules.devname", "x"),
        ],
        &["exec-missing"],
    ),
    (
        "a condition on a file that is empty",
        &[
            ("E/a-b.service.d/x.conf", "[Unit]\nConditionFileNotEmpty=/usr/lib/x\n[Service]\nExecStart=nowhere\n"),
            ("/usr/lib/x", ""),
        ],
        NOTHING,
    ),
    (
        "a condition on what the boot may make",
        &[("E/a-b.service.d/x.conf", "[Unit]\nConditionPathExists=/run/x\n[Service]\nExecStart=nowhere\n")],
        &["exec-missing"],
    ),
    (
        "a condition that another may make up for",
        &[("E/a-b.service.d/x.conf", "[Unit]\nConditionPathExists=|/usr/lib/x\n[Service]\nExecStart=nowhere\n")],
        &["exec-missing"],
    ),
    (
        "a condition that something is not there",
        &[("E/a-b.service.d/x.conf", "[Unit]\nConditionPathExists=!/usr/lib/x\n[Service]\nExecStart=nowhere\n")],
        &["exec-missing"],
    ),
    (
        "a condition taken back",
        &[(
            "E/a-b.service.d/x.conf",
            "[Unit]\nConditionPathExists=/usr/lib/x\nConditionPathExists=\n[Service]\nExecStart=nowhere\n",
        )],
        &["exec-missing"],
    ),
    ("a program that may be missing", &[("E/a-b.service.d/x.conf", "[Service]\nExecStart=-/nowhere\n")], NOTHING),
    // The handle.
    ("no handle", &[("- L/mesh-registry.target", "")], &["handle-missing"]),
    (
        "default dependencies",
        &[("E/mesh-registry.target.d/x.conf", "[Unit]\nDefaultDependencies=yes\n")],
        &["handle-form"],
    ),
    (
        "a link in the handle's .wants",
        &[("E/mesh-registry.target.wants/etcd.service", ETCD)],
        &["enablement-link-left", "handle-form"],
    ),
    (
        "the handle waits for etcd",
        &[("E/mesh-registry.target.d/x.conf", "[Unit]\nAfter=etcd.service\n")],
        &["handle-form"],
    ),
    (
        "a condition",
        &[("E/etcd.service.d/x.conf", "[Unit]\nConditionPathExists=/etc/etcd/pki/peer.key\n")],
        &["registry-unit"],
    ),
    ("no drop-in", &[("- E/etcd.service.d", "")], &["registry-unit"]),
    (
        "a variable that is left",
        &[("E/etcd.service.d/x.conf", "[Service]\nEnvironment=ETCD_NAME=x\n")],
        &["registry-unit"],
    ),
];

#[test]
fn each_mutation_gives_its_codes() {
    let mut wrong = Vec::new();
    for (case, mutation, want) in TABLE {
        let image = image(mutation);
        let got = codes(&image);
        if got != *want {
            let mut out = Vec::new();
            check(&image, &mut out);
            wrong.push(format!("{case}: {got:?}, wanted {want:?}\n{out:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_proof_agrees_with_the_findings() {
    let claims =
        ["unit-starts-at-boot", "unit-activated", "unit-start-command", "first-boot-enables", "tmpfiles-starts"];
    let triggers = ["alias-left", "enablement-link-left", "sysv-start-link", "preset-enables", "also-enables"];
    for (case, mutation, codes) in TABLE {
        let proof = proof(&image(mutation));
        let any = |list: &[&str]| codes.iter().any(|code| list.contains(code));
        assert_eq!(proof.subjects.iter().all(|s| s.stopped), !any(&claims), "{case}: {:#?}", proof.subjects);
        assert_eq!(proof.subjects.iter().all(|s| s.stays_disabled), !any(&triggers), "{case}: {:#?}", proof.subjects);
        assert!(serde_json::to_string(&proof).is_ok());
    }
}

#[test]
fn a_finding_carries_its_route() {
    let image =
        image(&[("E/x.target", "[Unit]\nWants=etcd.service\n"), ("E/basic.target.wants/x.target", "-> ../x.target")]);
    let mut out = Vec::new();
    check(&image, &mut out);
    assert_eq!(
        out[0].notes,
        [
            "PID 1 starts default.target (/usr/lib/systemd/system/default.target -> graphical.target (/usr/lib/systemd/system/graphical.target))",
            "graphical.target requires multi-user.target (/usr/lib/systemd/system/graphical.target:2: Requires=multi-user.target)",
            "multi-user.target requires basic.target (/usr/lib/systemd/system/multi-user.target:2: Requires=basic.target)",
            "basic.target wants x.target (/etc/systemd/system/basic.target.wants/x.target -> ../x.target)",
            "x.target wants etcd.service (/etc/systemd/system/x.target:2: Wants=etcd.service)",
        ]
    );
}

#[test]
fn every_way_in_is_one_finding() {
    let image = image(&[
        ("E/multi-user.target.wants/etcd.service", ETCD),
        ("E/a-b.service.d/x.conf", "[Unit]\nWants=etcd.service\n"),
        ("E/etcd.timer", "[Timer]\nOnBootSec=1\n"),
        ("E/timers.target.wants/etcd.timer", "-> ../etcd.timer"),
    ]);
    let mut out = Vec::new();
    check(&image, &mut out);
    let mut codes: Vec<&str> = out.iter().map(|f| f.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["unit-activated", "unit-starts-at-boot", "unit-starts-at-boot"]);
}

#[test]
fn the_ledger_says_which_units_are_stopped() {
    use crate::overlay::ledger::{Action, Origin, Record, Scope};
    let record = |by: &str| Record {
        action: Action::Removed,
        kind: "symlink".into(),
        mode: "0777".into(),
        uid: 0,
        gid: 0,
        sha256: None,
        target: None,
        public_key: None,
        scope: Scope::Profile,
        origin: Origin { overlay: "mesh".into(), file: "overlay.toml:1".into(), by: by.into() },
        replaced: None,
    };
    let mut image = image(&[("E/multi-user.target.wants/etcd.service", ETCD)]);
    let ledger = &mut image.manifest.as_mut().unwrap().ledger.records;
    ledger.insert("/etc/systemd/system/x".into(), record("unit a-b.service stopped"));
    ledger.insert("/etc/systemd/system/y".into(), record("unit etcd.service enabled"));
    let mut out = Vec::new();
    check(&image, &mut out);
    let starting: Vec<&str> =
        out.iter().filter(|f| f.code == "unit-starts-at-boot").map(|f| f.message.as_str()).collect();
    assert_eq!(starting.len(), 1, "{starting:?}");
    assert!(starting[0].starts_with("`a-b.service` is started at boot"), "{starting:?}");
}

#[test]
fn the_last_step_is_said_in_words() {
    use crate::systemd::edges::{Edge, EdgeKind};
    use crate::systemd::name::UnitName;
    let words = [
        (EdgeKind::Wants, "wants it by /x"),
        (EdgeKind::BindsTo, "binds to it by /x"),
        (EdgeKind::SysV, "wants it by a SysV link (/x)"),
        (EdgeKind::Device, "activates it by a device (/x)"),
        (EdgeKind::OnFailure, "starts it on failure (/x)"),
        (EdgeKind::Command, "runs a command that starts it (/x)"),
    ];
    for (kind, want) in words {
        let edge = Edge { kind, to: UnitName::parse("etcd.service").unwrap(), place: "/x".into() };
        assert_eq!(start::said(&edge), want);
    }
}

#[test]
fn contents_that_are_not_there_are_a_hole() {
    use crate::tree::{Data, Kind, Place};
    let mut image = image(&[]);
    let path = TreePath::parse(format!("{LIB}/a-b.service")).unwrap();
    let data = Data { place: Place::Dropped, ..Data::memory(*b"x") };
    image.tree.insert(path, Entry::new(Kind::File(data), 0o644));
    assert_eq!(codes(&image), ["unit-unreadable"]);
}

#[test]
fn every_rule_is_fired_by_a_fixture() {
    let mut fired: Vec<&str> = TABLE.iter().flat_map(|(_, _, codes)| codes.iter().copied()).collect();
    // Its fixture is a test of its own: it needs an entry without content.
    fired.push("unit-unreadable");
    for rule in RULES {
        assert!(fired.contains(&rule.code), "no fixture fires {}", rule.code);
        assert_eq!(rule.family, "units");
    }
    for code in fired {
        assert!(RULES.iter().any(|rule| rule.code == code), "{code} is in no rule");
    }
}
