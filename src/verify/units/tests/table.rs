//! The table: a mutation of the stopped image, and the codes that it must give.

use super::fixture::Mutation;

pub(super) const ETCD: &str = "-> /usr/lib/systemd/system/etcd.service";
/// The announcer as the overlay has it, where it matters here.
const AGENT: &str = "[Unit]\nPartOf=mesh-registry.target\nRequires=mesh-preflight.service\nAfter=mesh-preflight.service\n\
    [Service]\nUser=mesh-agent\nExecStart=-/usr/bin/mesh-agent\n";
const WANTS_AGENT: (&str, &str) = ("E/mesh-registry.target.d/a.conf", "[Unit]\nWants=mesh-agent.service\n");
const STARTS: &[&str] = &["unit-starts-at-boot"];
const ACTIVATED: &[&str] = &["unit-activated"];
const COMMAND: &[&str] = &["unit-start-command"];
const NOTHING: &[&str] = &[];

/// Case, mutation, codes.
pub(super) const TABLE: &[(&str, Mutation, &[&str])] = &[
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
    // The announcer.
    ("the announcer", &[("L/mesh-agent.service", AGENT), WANTS_AGENT], NOTHING),
    ("an announcer that the handle does not start", &[("L/mesh-agent.service", AGENT)], &["handle-form"]),
    (
        "an announcer that starts at boot",
        &[
            ("L/mesh-agent.service", AGENT),
            WANTS_AGENT,
            ("E/multi-user.target.wants/mesh-agent.service", "-> /usr/lib/systemd/system/mesh-agent.service"),
        ],
        STARTS,
    ),
    (
        "an announcer that waits for etcd, as root, under a condition",
        &[
            ("L/mesh-agent.service", AGENT),
            WANTS_AGENT,
            (
                "E/mesh-agent.service.d/x.conf",
                "[Unit]\nAfter=etcd.service\nConditionPathExists=/x\n[Service]\nUser=root\n",
            ),
        ],
        &["announcer-unit"],
    ),
    (
        "an announcer by itself",
        &[("L/mesh-agent.service", "[Service]\nUser=mesh-agent\nExecStart=-/x\n"), WANTS_AGENT],
        &["announcer-unit"],
    ),
];
