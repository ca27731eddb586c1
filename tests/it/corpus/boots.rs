//! What starts etcd at boot, what would start it later, and what looks so and does not: the truth is a boot.

use super::Boot::{Starts, StartsAfter, StartsAgain, Stays};
use super::{Boot, On, Row, Truth};

const fn boot(
    name: &'static str,
    change: &'static str,
    boot: Boot,
    enabled: &'static str,
    codes: &'static [&'static str],
    says: &'static str,
) -> Row {
    Row { name, change, on: On::Both, truth: Truth::Boot(boot, enabled), codes, says }
}

const fn on(on: On, row: Row) -> Row {
    Row { on, ..row }
}

/// The rows.
pub const ROWS: &[Row] = &[
    boot("the image as it is built", "", Stays, "disabled", &[], ""),
    // Dependencies.
    boot(
        "wants link of multi-user.target",
        "link $E/multi-user.target.wants/etcd.service $ETCD",
        Starts,
        "enabled",
        &["ledger-removed", "unit-starts-at-boot"],
        "multi-user.target wants etcd.service",
    ),
    boot(
        "wants link of another unit",
        "link $E/systemd-tmpfiles-setup.service.wants/etcd.service $ETCD",
        Starts,
        "enabled",
        &["unit-starts-at-boot"],
        "systemd-tmpfiles-setup.service wants etcd.service",
    ),
    boot(
        "wants link of an alias, in a vendor's directory, with a target that is not there",
        "link usr/local/lib/systemd/system/runlevel3.target.wants/etcd.service /nowhere/x.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "multi-user.target wants etcd.service",
    ),
    boot(
        "requires link",
        "link $E/sysinit.target.requires/etcd.service $ETCD",
        Starts,
        "enabled",
        &["unit-starts-at-boot"],
        "sysinit.target requires etcd.service",
    ),
    on(On::Trixie, boot(
        "upholds link",
        "link $E/basic.target.upholds/etcd.service $ETCD",
        Starts,
        "enabled",
        &["unit-starts-at-boot"],
        "basic.target upholds etcd.service",
    )),
    on(On::Bookworm, boot(
        "upholds link, which systemd knows from 254 on",
        "link $E/basic.target.upholds/etcd.service $ETCD",
        Stays,
        "disabled",
        &[],
        "",
    )),
    boot(
        "drop-in, which a later one tries to reset",
        "put $E/multi-user.target.d/a.conf '[Unit]' 'Wants=etcd.service'
         put $E/multi-user.target.d/b.conf '[Unit]' 'Wants='",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "/etc/systemd/system/multi-user.target.d/a.conf:2: Wants=etcd.service",
    ),
    boot(
        "drop-in of all services",
        "put $E/service.d/x.conf '[Unit]' 'Wants=etcd.service'",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "/etc/systemd/system/service.d/x.conf:2: Wants=etcd.service",
    ),
    boot(
        "drop-in of a prefix",
        "put $E/systemd-user-.service.d/x.conf '[Unit]' 'BindsTo=etcd.service'",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "systemd-user-sessions.service binds to etcd.service",
    ),
    boot(
        "instance of a template",
        "put $E/x@.service '[Unit]' 'Wants=%i.service' '[Service]' 'Type=oneshot' ExecStart=/usr/bin/true
         link $E/multi-user.target.wants/x@etcd.service /$E/x@.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "x@etcd.service wants etcd.service",
    ),
    boot(
        "moved default.target",
        "put $E/mine.target '[Unit]' 'Wants=etcd.service'
         link $E/default.target mine.target",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "mine.target wants etcd.service",
    ),
    boot(
        "the handle is enabled",
        "link $E/multi-user.target.wants/mesh-registry.target /usr/lib/systemd/system/mesh-registry.target",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "multi-user.target wants mesh-registry.target",
    ),
    boot(
        "mount that requires it",
        "put etc/fstab 'tmpfs /mnt tmpfs x-systemd.requires=etcd.service,nofail 0 0'",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "mnt.mount gets by a generator etcd.service (/etc/fstab:1: x-systemd.requires=etcd.service)",
    ),
    boot(
        "drop-in of a mount that /etc/fstab makes",
        "put etc/fstab 'tmpfs /mnt tmpfs nofail 0 0'
         put $E/mnt.mount.d/x.conf '[Unit]' Wants=etcd.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "mnt.mount wants etcd.service",
    ),
    boot(
        "upheld by what is active from the start",
        "put $E/init.scope.d/x.conf '[Unit]' Upholds=etcd.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "init.scope upholds etcd.service",
    ),
    boot(
        "S link, and the unit file is gone",
        "rm $L/etcd.service
         for n in 2 3 4 5; do mv etc/rc$n.d/K01etcd etc/rc$n.d/S01etcd; done",
        Starts,
        "enabled",
        &["handle-missing", "ledger-missing", "ledger-removed", "unit-starts-at-boot"],
        "/etc/rc2.d/S01etcd",
    ),
    // What starts it later.
    boot(
        "timer",
        "put $E/x.timer '[Timer]' OnBootSec=1s Unit=etcd.service
         link $E/timers.target.wants/x.timer /$E/x.timer",
        Starts,
        "disabled",
        &["unit-activated"],
        "x.timer activates by time etcd.service",
    ),
    boot(
        "path unit",
        "put $E/etcd.path '[Path]' PathExists=/etc/hostname
         link $E/multi-user.target.wants/etcd.path /$E/etcd.path",
        Starts,
        "disabled",
        &["unit-activated"],
        "etcd.path activates by a path etcd.service",
    ),
    boot(
        "socket, and a client that connects",
        "put $E/x.socket '[Socket]' ListenStream=127.0.0.1:4001 Service=etcd.service
         link $E/sockets.target.wants/x.socket /$E/x.socket",
        StartsAfter("bash -c 'exec 3<>/dev/tcp/127.0.0.1/4001'"),
        "disabled",
        &["unit-activated"],
        "x.socket activates by a connection etcd.service",
    ),
    boot(
        "bus name, and a client that asks for it",
        "put usr/share/dbus-1/system-services/net.example.X.service \
             '[D-BUS Service]' Name=net.example.X Exec=/bin/false User=root SystemdService=etcd.service",
        StartsAfter(
            "busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus \
             StartServiceByName su net.example.X 0 >/dev/null 2>&1 &",
        ),
        "disabled",
        &["unit-activated"],
        "the system bus activates by D-Bus etcd.service",
    ),
    boot(
        "failure of another unit",
        "oneshot x.service /usr/bin/false
         put $E/x.service.d/x.conf '[Unit]' OnFailure=etcd.service",
        Starts,
        "disabled",
        &["unit-activated"],
        "x.service starts on failure etcd.service",
    ),
    // Commands.
    boot(
        "command of another unit",
        "oneshot x.service '/usr/bin/systemctl start etcd'",
        Starts,
        "disabled",
        &["unit-start-command"],
        "x.service runs a command that starts etcd.service",
    ),
    boot(
        "script of a SysV service",
        "put etc/init.d/x '#!/bin/sh' '[ \"$1\" != start ] || service etcd start'
         chmod 755 etc/init.d/x
         link etc/rc3.d/S02x ../init.d/x",
        Starts,
        "disabled",
        &["unit-start-command"],
        "/etc/init.d/x:2: ",
    ),
    boot(
        "rc.local",
        "put etc/rc.local '#!/bin/sh' 'systemctl start etcd'
         chmod 755 etc/rc.local",
        Starts,
        "disabled",
        &["unit-start-command"],
        "/etc/rc.local:2: systemctl start etcd",
    ),
    boot(
        "generator",
        "put $E-generators/x '#!/bin/sh' 'mkdir $1/multi-user.target.wants' \
             'ln -s /usr/lib/systemd/system/etcd.service $1/multi-user.target.wants/etcd.service'
         chmod 755 $E-generators/x",
        Starts,
        "disabled",
        &["generator-names-unit"],
        "/etc/systemd/system-generators/x",
    ),
    // First boots and presets.
    boot(
        "first boot, and a preset that sorts earlier",
        "put $E-preset/00-a.preset 'enable etcd.service'
         put etc/machine-id uninitialized",
        Starts,
        "disabled",
        &["first-boot-enables", "ledger-content", "ledger-extra", "machine-id", "preset-enables"],
        "multi-user.target wants etcd.service",
    ),
    boot(
        "first boot for want of a machine-id, and no preset of ours",
        "rm etc/machine-id $E-preset/00-fitout.preset",
        Starts,
        "disabled",
        &["first-boot-enables", "ledger-missing", "machine-id", "preset-enables"],
        "multi-user.target wants etcd.service",
    ),
    boot(
        "first boot",
        "put etc/machine-id uninitialized",
        Stays,
        "disabled",
        &["ledger-content", "machine-id"],
        "`uninitialized`, so the next boot is a first boot",
    ),
    boot(
        "preset that sorts earlier",
        "put $E-preset/00-a.preset 'enable etcd.service'",
        Stays,
        "disabled",
        &["ledger-extra", "preset-enables"],
        "/etc/systemd/system-preset/00-a.preset:1: enable etcd.service is the first line that matches",
    ),
    // What would enable it, and what starts nothing.
    boot(
        "alias link",
        "link $E/etcd2.service $ETCD",
        Stays,
        "enabled",
        &["alias-left", "ledger-removed"],
        "/etc/systemd/system/etcd2.service is an alias",
    ),
    boot(
        "S link beside the unit file",
        "for n in 2 3 4 5; do mv etc/rc$n.d/K01etcd etc/rc$n.d/S01etcd; done",
        Stays,
        "disabled",
        &["ledger-missing", "ledger-removed", "sysv-start-link"],
        "/etc/rc2.d/S01etcd starts `etcd.service` at boot as soon as its unit file is gone",
    ),
    boot(
        "wants link of a unit that nothing starts",
        "link $E/rescue.target.wants/etcd.service $ETCD",
        Stays,
        "enabled",
        &["enablement-link-left"],
        "/etc/systemd/system/rescue.target.wants/etcd.service",
    ),
    boot(
        "masked, with a wants link",
        "link $E/etcd.service /dev/null
         link $E/multi-user.target.wants/etcd.service $ETCD",
        Stays,
        "masked",
        &["handle-missing", "ledger-removed"],
        "masked",
    ),
    boot(
        "wants entry that is no link, and a drop-in that is masked",
        "put $E/multi-user.target.wants/etcd.service '[Unit]'
         put $L/multi-user.target.d/x.conf '[Unit]' 'Wants=etcd.service'
         link $E/multi-user.target.d/x.conf /dev/null",
        Stays,
        "disabled",
        &["ledger-removed"],
        "",
    ),
    boot(
        "wanted by what is active from the start, so that nothing starts it",
        "put $E/init.scope.d/x.conf '[Unit]' Wants=etcd.service
         put $E/-.mount.d/x.conf '[Unit]' Wants=etcd.service",
        Stays,
        "disabled",
        &[],
        "",
    ),
    boot(
        "other dependencies, a timer and a socket that are not enabled",
        "put $E/multi-user.target.d/x.conf '[Unit]' After=etcd.service PartOf=etcd.service PropagatesStopTo=etcd.service
         put $E/etcd.timer '[Timer]' OnBootSec=1s
         put $E/etcd.socket '[Socket]' ListenStream=127.0.0.1:4001",
        Stays,
        "disabled",
        &[],
        "",
    ),
    // Where units are found.
    boot(
        "wants link in system.control",
        "link etc/systemd/system.control/multi-user.target.wants/etcd.service $ETCD",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "wants link in /usr/lib",
        "link $L/multi-user.target.wants/etcd.service ../etcd.service",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "wants link in /run, which a boot covers",
        "link run/systemd/system/multi-user.target.wants/etcd.service $ETCD",
        Stays, "enabled-runtime", &[], "",
    ),
    boot(
        "a directory of wants that is a link",
        "mkdir -p opt/wants; link opt/wants/etcd.service $ETCD; link $E/basic.target.wants /opt/wants",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "wants link that leads to itself",
        "link $E/multi-user.target.wants/etcd.service etcd.service",
        Starts, "enabled", &["ledger-removed", "unit-starts-at-boot"], "",
    ),
    boot(
        "wants link of another name",
        "link $E/multi-user.target.wants/registry.service $ETCD",
        Stays, "disabled", &[], "",
    ),
    boot(
        "wants link of an alias",
        "link $E/registry.service $ETCD; link $E/multi-user.target.wants/registry.service $ETCD",
        Starts, "indirect", &["alias-left", "unit-starts-at-boot"], "",
    ),
    boot(
        "wants link to /dev/null",
        "link $E/multi-user.target.wants/etcd.service /dev/null",
        Stays, "enabled", &["enablement-link-left", "ledger-removed"], "",
    ),
    boot(
        "masked in /usr/local, with a wants link",
        "link usr/local/lib/systemd/system/etcd.service /dev/null; link $E/multi-user.target.wants/etcd.service $ETCD",
        Stays, "masked", &["handle-missing", "ledger-removed"], "",
    ),
    boot(
        "masked by an empty file",
        "put $E/etcd.service; : >$E/etcd.service; link $E/multi-user.target.wants/etcd.service $ETCD",
        Stays, "masked", &["handle-missing", "ledger-removed"], "",
    ),
    on(On::Trixie, boot(
        "a unit file that is a dangling link",
        "link $E/etcd.service /nowhere/etcd.service; link $E/multi-user.target.wants/etcd.service $ETCD",
        Stays, "not-found", &["handle-missing", "ledger-removed"], "",
    )),
    on(On::Bookworm, boot(
        "a unit file that is a dangling link, on the older systemd",
        "link $E/etcd.service /nowhere/etcd.service; link $E/multi-user.target.wants/etcd.service $ETCD",
        Stays, "", &["handle-missing", "ledger-removed"], "",
    )),
    boot(
        "a copy of the unit under another name",
        "cp $L/etcd.service $E/registry.service; link $E/multi-user.target.wants/registry.service /$E/registry.service",
        Starts, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "a unit from elsewhere",
        "put opt/x.service '[Unit]' Wants=etcd.service '[Service]' ExecStart=/usr/bin/true
         link $E/x.service /opt/x.service; link $E/multi-user.target.wants/x.service /opt/x.service",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "multi-user.target of its own",
        "cp $L/multi-user.target $E/multi-user.target; printf '[Unit]\nWants=etcd.service\n' >>$E/multi-user.target",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "default.target is the handle",
        "link $E/default.target $L/mesh-registry.target; ln -sfn /usr/lib/systemd/system/mesh-registry.target $E/default.target",
        Starts, "disabled", &["alias-left", "unit-starts-at-boot"], "",
    ),
    boot(
        "default.target leads nowhere, and rescue.target wants it",
        "link $E/default.target /nowhere/x.target; link $E/rescue.target.wants/etcd.service $ETCD",
        Starts, "enabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "slice that every service lies in",
        "put $E/system.slice.d/x.conf '[Unit]' Wants=etcd.service",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "search path of the manager",
        "mkdir -p opt/units/multi-user.target.wants; link opt/units/multi-user.target.wants/etcd.service $ETCD
         put etc/systemd/system.conf.d/x.conf '[Manager]' ManagerEnvironment=SYSTEMD_UNIT_PATH=/opt/units:",
        Starts, "disabled", &["unit-search-path"], "",
    ),
    boot(
        "environment of the manager that changes no path",
        "put etc/systemd/system.conf.d/x.conf '[Manager]' ManagerEnvironment=LANG=C DefaultEnvironment=SYSTEMD_UNIT_PATH=/opt/units",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a program in front of systemd",
        "rm -f sbin/init usr/sbin/init; script usr/sbin/init '/usr/bin/etcd --config-file /etc/etcd/etcd.yaml &' \
             'exec /usr/lib/systemd/systemd'",
        Starts, "disabled", &["boot-program"], "",
    ),
    // What a unit file says.
    boot(
        "byte order mark",
        r"bytes $E/multi-user.target.d/x.conf '\xef\xbb\xbf[Unit]\nWants=etcd.service\n'",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "blanks around the key",
        r"bytes $E/multi-user.target.d/x.conf '  [Unit]\n  Wants \t =  etcd.service  \n'",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "quotes around the name, which are taken for a part of it",
        r#"bytes $E/multi-user.target.d/x.conf '[Unit]\nWants="etcd.service"\n'"#,
        Stays, "disabled", &[], "",
    ),
    boot(
        "ends of line of another system",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\r\nWants=etcd.service\r\n'",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "carriage returns alone end lines",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\r# x\rWants=etcd.service\r'",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "a NUL ends a line",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\nDescription=x\0Wants=etcd.service'",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "a comment between continued lines",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\nWants=a.service \\\n# x \\\n; y\n  etcd.service\n'",
        Starts, "disabled", &["unit-starts-at-boot"], "",
    ),
    boot(
        "a name with an escape",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\nWants=etcd\\x2eservice\n'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a name without its type",
        "put $E/multi-user.target.d/x.conf '[Unit]' Wants=etcd wants=etcd.service",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a key that ends in a no-break space",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\nWants\xc2\xa0=etcd.service\n'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a comment in Latin-1",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\n# gr\xfc\xdfe\nDescription=x\n'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a continued line that is not UTF-8",
        r"bytes $E/multi-user.target.d/x.conf '[Unit]\nDescription=gr\xfc\xdfe \\\nWants=etcd.service\n'",
        Stays, "disabled", &["unit-syntax"], "",
    ),
    boot(
        "nothing counts after a broken header",
        "put $E/multi-user.target.d/x.conf '[Unit' '[Unit]' Wants=etcd.service",
        Stays, "disabled", &["unit-syntax"], "",
    ),
    boot(
        "what stands before a broken header counts",
        "put $E/multi-user.target.d/x.conf '[Unit]' Wants=etcd.service '[Unit'",
        Starts, "disabled", &["unit-starts-at-boot", "unit-syntax"], "",
    ),
    boot(
        "a unit with a broken header is not loaded",
        "put $E/x.service '[Unit]' Wants=etcd.service '[Service' ExecStart=/usr/bin/true
         link $E/multi-user.target.wants/x.service /$E/x.service",
        Stays, "disabled", &["unit-syntax"], "",
    ),
    boot(
        "an include, which systemd no longer knows",
        "put opt/x '[Unit]' Wants=etcd.service; put $E/multi-user.target.d/x.conf '[Unit]' '.include /opt/x'",
        Stays, "disabled", &["unit-syntax"], "",
    ),
    boot(
        "a section that targets do not have",
        "put $E/multi-user.target.d/x.conf '[Service]' Wants=etcd.service '[X-Unit]' Wants=etcd.service",
        Stays, "disabled", &["unit-syntax"], "",
    ),
    boot(
        "a drop-in that is hidden, and one of another suffix",
        "put $E/multi-user.target.d/.x.conf '[Unit]' Wants=etcd.service; cp $E/multi-user.target.d/.x.conf $E/multi-user.target.d/x.conf.bak",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a service without a command is not loaded",
        "put $E/x.service '[Unit]' Wants=etcd.service '[Service]' Type=simple
         link $E/multi-user.target.wants/x.service /$E/x.service",
        Stays, "disabled", &[], "",
    ),
    // What is written while the system runs.
    boot(
        "tmpfiles.d makes a wants link",
        "put etc/tmpfiles.d/x.conf 'L /etc/systemd/system/multi-user.target.wants/etcd.service - - - - /usr/lib/systemd/system/etcd.service'",
        StartsAgain, "disabled", &["tmpfiles-starts"], "",
    ),
    boot(
        "tmpfiles.d writes a drop-in",
        r"put usr/lib/tmpfiles.d/x.conf 'd /etc/systemd/system/multi-user.target.d' 'f+ /etc/systemd/system/multi-user.target.d/x.conf 0644 - - - [Unit]\nWants=etcd.service\n'",
        StartsAgain, "disabled", &["tmpfiles-starts"], "",
    ),
    on(On::Trixie, boot(
        "tmpfiles.d copies a directory of units",
        "mkdir -p usr/share/x/basic.target.wants; link usr/share/x/basic.target.wants/etcd.service $ETCD
         put etc/tmpfiles.d/x.conf 'C+ /etc/systemd/system - - - - /usr/share/x'",
        StartsAgain, "disabled", &["tmpfiles-starts"], "",
    )),
    on(On::Bookworm, boot(
        "tmpfiles.d copies a directory of units, which it does from 254 on",
        "mkdir -p usr/share/x/basic.target.wants; link usr/share/x/basic.target.wants/etcd.service $ETCD
         put etc/tmpfiles.d/x.conf 'C+ /etc/systemd/system - - - - /usr/share/x'",
        Stays, "disabled", &[], "",
    )),
    boot(
        "tmpfiles.d takes a mask away",
        "link $E/etcd.service /dev/null; link $E/multi-user.target.wants/etcd.service $ETCD; put etc/tmpfiles.d/x.conf 'r! /etc/systemd/system/etcd.service'",
        StartsAgain, "masked", &["handle-missing", "ledger-removed", "tmpfiles-starts"], "",
    ),
    boot(
        "tmpfiles.d that names it and makes no start",
        "put etc/tmpfiles.d/x.conf 'L /opt/etcd.service - - - - /usr/lib/systemd/system/etcd.service' 'd /var/log/etcd 0750 etcd etcd' \
             '#L /etc/systemd/system/multi-user.target.wants/etcd.service - - - - /usr/lib/systemd/system/etcd.service'
         put usr/lib/tmpfiles.d/y.conf 'L /etc/systemd/system/multi-user.target.wants/etcd.service - - - - /usr/lib/systemd/system/etcd.service'
         link etc/tmpfiles.d/y.conf /dev/null",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a command links it",
        "oneshot x.service '/usr/bin/ln -s /usr/lib/systemd/system/etcd.service /etc/systemd/system/basic.target.wants/etcd.service'
         mkdir -p $E/basic.target.wants",
        StartsAgain, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "a command changes default.target",
        "oneshot x.service '/usr/bin/systemctl set-default mesh-registry.target'",
        StartsAgain, "disabled", &["unit-start-command"], "",
    ),
    // Commands.
    boot(
        "a command that runs the program itself",
        "oneshot x.service '/bin/sh -c \"exec /usr/bin/etcd --config-file /etc/etcd/etcd.yaml\"'",
        Starts, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "a script that runs the program by its name",
        "script usr/local/bin/x 'cd /' 'nohup etcd --config-file /etc/etcd/etcd.yaml &' 'sleep 5'; oneshot x.service /usr/local/bin/x",
        Starts, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "a copy of the program",
        "cp usr/bin/etcd opt/etcd; oneshot x.service '/opt/etcd --config-file /etc/etcd/etcd.yaml'",
        Starts, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "the name in a variable",
        "script etc/rc.local 'unit=etcd' 'systemctl start $unit'",
        Starts, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "the name in a loop",
        "script etc/rc.local 'for unit in nftables etcd; do' '  systemctl start \"${unit}.service\"' done",
        Starts, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "rc.local that only names it",
        "script etc/rc.local 'systemctl is-active etcd || echo \"etcd is stopped\"' 'systemctl stop etcd' 'systemctl try-restart etcd'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "rc.local that is not executable",
        "put etc/rc.local '#!/bin/sh' 'systemctl start etcd'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a command of another manager",
        "oneshot x.service '/usr/bin/systemctl --root=/ is-enabled etcd'; oneshot y.service '/usr/bin/systemctl --user start etcd'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a command when something is to be stopped",
        "oneshot x.service /usr/bin/true; put $E/x.service.d/x.conf '[Service]' 'ExecStopPost=/usr/bin/systemctl --no-block start etcd'",
        Starts, "disabled", &["unit-start-command"], "",
    ),
    boot(
        "crontab without a cron",
        "put etc/cron.d/x '@reboot root systemctl start etcd'; chmod 644 etc/cron.d/x",
        Stays, "disabled", &[], "",
    ),
    boot(
        "hooks of network programs that are not there",
        "script etc/network/if-up.d/x 'systemctl start etcd'; script etc/NetworkManager/dispatcher.d/x 'systemctl start etcd'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "hook of apt, which a timer runs",
        "put etc/apt/apt.conf.d/99x 'APT::Update::Pre-Invoke { \"systemctl start etcd\"; };'",
        StartsAfter("apt-get update >/dev/null 2>&1 &"),
        "disabled", &["unit-start-command"], "",
    ),
    boot(
        "log-in script",
        "put etc/profile.d/x.sh 'systemctl start etcd'",
        StartsAfter("bash --login -c true"),
        "disabled", &["unit-start-command"], "",
    ),
    boot(
        "name on the bus whose program is a script",
        "script usr/local/sbin/x 'systemctl start etcd'
         put usr/share/dbus-1/system-services/net.example.X.service '[D-BUS Service]' Name=net.example.X Exec=/usr/local/sbin/x User=root",
        StartsAfter("busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus StartServiceByName su net.example.X 0 >/dev/null 2>&1 &"),
        "disabled", &["unit-start-command"], "",
    ),
    boot(
        "a user's unit, and the user lingers, without a module of PAM to start it",
        "put var/lib/systemd/linger/root; put etc/systemd/user/x.service '[Service]' 'ExecStart=/usr/bin/systemctl --system start etcd'
         link etc/systemd/user/default.target.wants/x.service /etc/systemd/user/x.service",
        Stays, "disabled", &[], "",
    ),
    boot(
        "a script that a SysV service sources a dependency from",
        "script etc/init.d/x '### BEGIN INIT INFO' '# Provides: x' '# Required-Start: etcd' '# Default-Start: 3' '### END INIT INFO' 'exit 0'
         link etc/rc3.d/S02x ../init.d/x",
        Stays, "disabled", &[], "",
    ),
    // Generators.
    boot(
        "generator in the name of systemd's own",
        "script $E-generators/systemd-getty-generator 'mkdir -p $1/multi-user.target.wants' \
             'ln -s /usr/lib/systemd/system/etcd.service $1/multi-user.target.wants/etcd.service'",
        Starts, "disabled", &["generator-names-unit"], "",
    ),
    boot(
        "generator of systemd that is replaced",
        "rm usr/lib/systemd/system-generators/systemd-getty-generator
         script usr/lib/systemd/system-generators/systemd-getty-generator 'mkdir -p $1/multi-user.target.wants' \
             'ln -s /usr/lib/systemd/system/etcd.service $1/multi-user.target.wants/etcd.service'",
        Starts, "disabled", &["generator-names-unit"], "",
    ),
    boot(
        "generator that is not executable",
        "put $E-generators/x '#!/bin/sh' 'mkdir -p $1/multi-user.target.wants' \
             'ln -s /usr/lib/systemd/system/etcd.service $1/multi-user.target.wants/etcd.service'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "generator of the environment",
        "script $E-environment-generators/x 'mkdir -p /run/systemd/system/multi-user.target.wants' \
             'ln -s /usr/lib/systemd/system/etcd.service /run/systemd/system/multi-user.target.wants/etcd.service'",
        Starts, "disabled", &["generator-names-unit"], "",
    ),
    boot(
        "a mount that is not mounted at boot, and one that comes after it",
        "put etc/fstab 'tmpfs /mnt tmpfs noauto,x-systemd.requires=etcd.service 0 0' 'tmpfs /srv tmpfs nofail,x-systemd.after=etcd.service 0 0'",
        Stays, "disabled", &[], "",
    ),
    boot(
        "credential that would be a unit if it were the machine's",
        "put etc/credstore/systemd.extra-unit.x.service '[Unit]' Wants=etcd.service '[Install]' WantedBy=multi-user.target
         put usr/lib/credstore/systemd.unit-dropin.multi-user.target '[Unit]' Wants=etcd.service",
        Stays, "disabled", &[], "",
    ),
    boot(
        "what deb-systemd-helper remembers",
        "put var/lib/systemd/deb-systemd-helper-enabled/multi-user.target.wants/etcd.service
         put var/lib/systemd/deb-systemd-helper-enabled/etcd.service.dsh-also /etc/systemd/system/multi-user.target.wants/etcd.service",
        Stays, "disabled", &[], "",
    ),
];
