//! The truth of the proof: what `verify` says of an image about starts, a boot of the very same tree agrees with.
//!
//! Each case puts one start back by hand. `boot_truth.sh` gives the changed tree to `verify` as a tar, boots it by
//! systemd-nspawn, and looks whether etcd was started. It needs root, as the gate does.

use std::time::Duration;

use serde_json::Value;

use crate::common::{built, project};
use fitout::process::Command;

/// What a boot does.
enum Boot {
    /// etcd is started.
    Starts,
    /// The boot ends without a start; etcd is started when this is run inside.
    StartsAfter(&'static str),
    /// etcd is not started.
    Stays,
}
use Boot::{Starts, StartsAfter, Stays};

struct Case {
    name: &'static str,
    /// Shell text with the helpers of `boot_truth.sh`, run in the root of the tree.
    change: &'static str,
    boot: Boot,
    /// What the image's own `systemctl is-enabled etcd.service` says of the changed tree.
    enabled: &'static str,
    /// All codes of the units family, sorted, each once.
    codes: &'static [&'static str],
    /// The way: in the message or the notes of a finding with one of these codes.
    says: &'static str,
}

const fn case(
    name: &'static str,
    change: &'static str,
    boot: Boot,
    enabled: &'static str,
    codes: &'static [&'static str],
    says: &'static str,
) -> Case {
    Case { name, change, boot, enabled, codes, says }
}

/// Codes of the claim *does not start at boot*: one of them is given exactly where a boot starts etcd.
const STARTS: &[&str] =
    &["unit-starts-at-boot", "unit-activated", "unit-start-command", "generator-names-unit", "first-boot-enables"];

const TABLE: &[Case] = &[
    case("the image as it is built", "", Stays, "disabled", &[], ""),
    // Dependencies.
    case(
        "wants link of multi-user.target",
        "link $E/multi-user.target.wants/etcd.service $ETCD",
        Starts,
        "enabled",
        &["unit-starts-at-boot"],
        "multi-user.target wants etcd.service",
    ),
    case(
        "wants link of another unit",
        "link $E/systemd-tmpfiles-setup.service.wants/etcd.service $ETCD",
        Starts,
        "enabled",
        &["unit-starts-at-boot"],
        "systemd-tmpfiles-setup.service wants etcd.service",
    ),
    case(
        "wants link of an alias, in a vendor's directory, with a target that is not there",
        "link usr/local/lib/systemd/system/runlevel3.target.wants/etcd.service /nowhere/x.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "multi-user.target wants etcd.service",
    ),
    case(
        "requires link",
        "link $E/sysinit.target.requires/etcd.service $ETCD",
        Starts,
        "enabled",
        &["unit-starts-at-boot"],
        "sysinit.target requires etcd.service",
    ),
    case(
        "upholds link",
        "link $E/basic.target.upholds/etcd.service $ETCD",
        Starts,
        "enabled",
        &["unit-starts-at-boot"],
        "basic.target upholds etcd.service",
    ),
    case(
        "drop-in, which a later one tries to reset",
        "put $E/multi-user.target.d/a.conf '[Unit]' 'Wants=etcd.service'
         put $E/multi-user.target.d/b.conf '[Unit]' 'Wants='",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "/etc/systemd/system/multi-user.target.d/a.conf:2: Wants=etcd.service",
    ),
    case(
        "drop-in of all services",
        "put $E/service.d/x.conf '[Unit]' 'Wants=etcd.service'",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "/etc/systemd/system/service.d/x.conf:2: Wants=etcd.service",
    ),
    case(
        "drop-in of a prefix",
        "put $E/systemd-user-.service.d/x.conf '[Unit]' 'BindsTo=etcd.service'",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "systemd-user-sessions.service binds to etcd.service",
    ),
    case(
        "instance of a template",
        "put $E/x@.service '[Unit]' 'Wants=%i.service' '[Service]' 'Type=oneshot' ExecStart=/usr/bin/true
         link $E/multi-user.target.wants/x@etcd.service /$E/x@.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "x@etcd.service wants etcd.service",
    ),
    case(
        "moved default.target",
        "put $E/mine.target '[Unit]' 'Wants=etcd.service'
         link $E/default.target mine.target",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "mine.target wants etcd.service",
    ),
    case(
        "the handle is enabled",
        "link $E/multi-user.target.wants/mesh-registry.target /usr/lib/systemd/system/mesh-registry.target",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "multi-user.target wants mesh-registry.target",
    ),
    case(
        "mount that requires it",
        "put etc/fstab 'tmpfs /mnt tmpfs x-systemd.requires=etcd.service,nofail 0 0'",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "mnt.mount gets by a generator etcd.service (/etc/fstab:1: x-systemd.requires=etcd.service)",
    ),
    case(
        "drop-in of a mount that /etc/fstab makes",
        "put etc/fstab 'tmpfs /mnt tmpfs nofail 0 0'
         put $E/mnt.mount.d/x.conf '[Unit]' Wants=etcd.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "mnt.mount wants etcd.service",
    ),
    case(
        "upheld by what is active from the start",
        "put $E/init.scope.d/x.conf '[Unit]' Upholds=etcd.service",
        Starts,
        "disabled",
        &["unit-starts-at-boot"],
        "init.scope upholds etcd.service",
    ),
    case(
        "S link, and the unit file is gone",
        "rm $L/etcd.service
         for n in 2 3 4 5; do mv etc/rc$n.d/K01etcd etc/rc$n.d/S01etcd; done",
        Starts,
        "enabled",
        &["handle-missing", "unit-starts-at-boot"],
        "/etc/rc2.d/S01etcd",
    ),
    // What starts it later.
    case(
        "timer",
        "put $E/x.timer '[Timer]' OnBootSec=1s Unit=etcd.service
         link $E/timers.target.wants/x.timer /$E/x.timer",
        Starts,
        "disabled",
        &["unit-activated"],
        "x.timer activates by time etcd.service",
    ),
    case(
        "path unit",
        "put $E/etcd.path '[Path]' PathExists=/etc/hostname
         link $E/multi-user.target.wants/etcd.path /$E/etcd.path",
        Starts,
        "disabled",
        &["unit-activated"],
        "etcd.path activates by a path etcd.service",
    ),
    case(
        "socket, and a client that connects",
        "put $E/x.socket '[Socket]' ListenStream=127.0.0.1:4001 Service=etcd.service
         link $E/sockets.target.wants/x.socket /$E/x.socket",
        StartsAfter("bash -c 'exec 3<>/dev/tcp/127.0.0.1/4001'"),
        "disabled",
        &["unit-activated"],
        "x.socket activates by a connection etcd.service",
    ),
    case(
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
    case(
        "failure of another unit",
        "oneshot x.service /usr/bin/false
         put $E/x.service.d/x.conf '[Unit]' OnFailure=etcd.service",
        Starts,
        "disabled",
        &["unit-activated"],
        "x.service starts on failure etcd.service",
    ),
    // Commands.
    case(
        "command of another unit",
        "oneshot x.service '/usr/bin/systemctl start etcd'",
        Starts,
        "disabled",
        &["unit-start-command"],
        "x.service runs a command that starts etcd.service",
    ),
    case(
        "script of a SysV service",
        "put etc/init.d/x '#!/bin/sh' '[ \"$1\" != start ] || service etcd start'
         chmod 755 etc/init.d/x
         link etc/rc3.d/S02x ../init.d/x",
        Starts,
        "disabled",
        &["unit-start-command"],
        "/etc/init.d/x:2: ",
    ),
    case(
        "rc.local",
        "put etc/rc.local '#!/bin/sh' 'systemctl start etcd'
         chmod 755 etc/rc.local",
        Starts,
        "disabled",
        &["unit-start-command"],
        "/etc/rc.local:2: systemctl start etcd",
    ),
    case(
        "generator",
        "put $E-generators/x '#!/bin/sh' 'mkdir $1/multi-user.target.upholds' \
             'ln -s /usr/lib/systemd/system/etcd.service $1/multi-user.target.upholds/etcd.service'
         chmod 755 $E-generators/x",
        Starts,
        "disabled",
        &["generator-names-unit"],
        "/etc/systemd/system-generators/x",
    ),
    // First boots and presets.
    case(
        "first boot, and a preset that sorts earlier",
        "put $E-preset/00-a.preset 'enable etcd.service'
         put etc/machine-id uninitialized",
        Starts,
        "disabled",
        &["first-boot-enables", "machine-id", "preset-enables"],
        "multi-user.target wants etcd.service",
    ),
    case(
        "first boot for want of a machine-id, and no preset of ours",
        "rm etc/machine-id $E-preset/00-fitout.preset",
        Starts,
        "disabled",
        &["first-boot-enables", "machine-id", "preset-enables"],
        "multi-user.target wants etcd.service",
    ),
    case(
        "first boot",
        "put etc/machine-id uninitialized",
        Stays,
        "disabled",
        &["machine-id"],
        "`uninitialized`, so the next boot is a first boot",
    ),
    case(
        "preset that sorts earlier",
        "put $E-preset/00-a.preset 'enable etcd.service'",
        Stays,
        "disabled",
        &["preset-enables"],
        "/etc/systemd/system-preset/00-a.preset:1: enable etcd.service is the first line that matches",
    ),
    // What would enable it, and what starts nothing.
    case(
        "alias link",
        "link $E/etcd2.service $ETCD",
        Stays,
        "enabled",
        &["alias-left"],
        "/etc/systemd/system/etcd2.service is an alias",
    ),
    case(
        "S link beside the unit file",
        "for n in 2 3 4 5; do mv etc/rc$n.d/K01etcd etc/rc$n.d/S01etcd; done",
        Stays,
        "disabled",
        &["sysv-start-link"],
        "/etc/rc2.d/S01etcd starts `etcd.service` at boot as soon as its unit file is gone",
    ),
    case(
        "wants link of a unit that nothing starts",
        "link $E/rescue.target.wants/etcd.service $ETCD",
        Stays,
        "enabled",
        &["enablement-link-left"],
        "/etc/systemd/system/rescue.target.wants/etcd.service",
    ),
    case(
        "masked, with a wants link",
        "link $E/etcd.service /dev/null
         link $E/multi-user.target.wants/etcd.service $ETCD",
        Stays,
        "masked",
        &["handle-missing"],
        "masked",
    ),
    case(
        "wants entry that is no link, and a drop-in that is masked",
        "put $E/multi-user.target.wants/etcd.service '[Unit]'
         put $L/multi-user.target.d/x.conf '[Unit]' 'Wants=etcd.service'
         link $E/multi-user.target.d/x.conf /dev/null",
        Stays,
        "disabled",
        &[],
        "",
    ),
    case(
        "wanted by what is active from the start, so that nothing starts it",
        "put $E/init.scope.d/x.conf '[Unit]' Wants=etcd.service
         put $E/-.mount.d/x.conf '[Unit]' Wants=etcd.service",
        Stays,
        "disabled",
        &[],
        "",
    ),
    case(
        "other dependencies, a timer and a socket that are not enabled",
        "put $E/multi-user.target.d/x.conf '[Unit]' After=etcd.service PartOf=etcd.service PropagatesStopTo=etcd.service
         put $E/etcd.timer '[Timer]' OnBootSec=1s
         put $E/etcd.socket '[Socket]' ListenStream=127.0.0.1:4001",
        Stays,
        "disabled",
        &[],
        "",
    ),
];

/// How long all of it may take; on two idle cores it is two minutes.
const DEADLINE: Duration = Duration::from_secs(1500);

#[test]
fn what_verify_says_of_starts_a_boot_agrees_with() {
    let script = project().join("tests/it/boot_truth.sh");
    let mut command = Command::new("bash")
        .arg(script)
        .args(["run", env!("CARGO_BIN_EXE_fitout")])
        .arg(built().join("dist/lis1.tar.gz"))
        .deadline(DEADLINE)
        .keep(8 << 20);
    for Case { name, change, boot, .. } in TABLE {
        let (wait, after) = match boot {
            Starts => ("start", ""),
            StartsAfter(text) => ("start", *text),
            Stays => ("nothing", ""),
        };
        command = command.args([*name, *change, wait, after]);
    }
    let done = command.check().unwrap_or_else(|failure| panic!("{failure}"));
    let text = done.text();
    let results: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("one JSON object a case")).collect();
    assert_eq!(results.len(), TABLE.len(), "{}", done.log);
    let wrong: Vec<String> =
        TABLE.iter().zip(&results).flat_map(|(case, result)| disagreements(case, result)).collect();
    assert!(wrong.is_empty(), "\n{}\n\n{}", wrong.join("\n"), done.log);
}

/// In what the boot, `verify` and the table differ.
fn disagreements(case: &Case, result: &Value) -> Vec<String> {
    let units = |code: &str| fitout::verify::units::RULES.iter().any(|rule| rule.code == code);
    let verify = result["verify"].as_array().expect("objects");
    let findings: Vec<&Value> =
        verify.iter().filter(|o| o["type"] == "finding" && units(o["code"].as_str().expect("code"))).collect();
    let mut codes: Vec<&str> = findings.iter().map(|f| f["code"].as_str().expect("code")).collect();
    codes.sort_unstable();
    codes.dedup();
    let started = result["started"] == true;
    let mut wrong = Vec::new();
    let mut wants = |what: bool, text: String| {
        if !what {
            wrong.push(format!("{}: {text}", case.name));
        }
    };
    let state = &result["state"];
    match case.boot {
        Starts => wants(started, format!("etcd was not started: the boot ended {state}")),
        StartsAfter(_) => {
            wants(result["stopped"] == true, format!("etcd was started before anything was done: {state}"));
            wants(started, "etcd was not started afterwards".to_owned());
        }
        Stays => {
            wants(!started && result["stopped"] == true, format!("etcd was started, or the boot did not end: {state}"));
            wants(result["active"] == "inactive", format!("`is-active` says {}", result["active"]));
        }
    }
    let claim = codes.iter().any(|code| STARTS.contains(code));
    wants(
        claim == started,
        format!("`verify` says {codes:?}, and etcd was {}started", if started { "" } else { "not " }),
    );
    wants(codes == case.codes, format!("`verify` says {codes:?} instead of {:?}", case.codes));
    let says = |text: &Value| text.as_str().is_some_and(|t| t.contains(case.says));
    let named =
        findings.iter().any(|f| says(&f["message"]) || f["notes"].as_array().is_some_and(|n| n.iter().any(says)));
    wants(named || case.says.is_empty(), format!("`{}` is not said: {findings:#?}", case.says));
    wants(result["own"] == case.enabled, format!("`is-enabled` says {} instead of {}", result["own"], case.enabled));
    if case.change.is_empty() {
        wants(verify.iter().all(|o| o["severity"] != "error"), format!("there are errors: {verify:#?}"));
        wants(state == "running", format!("it is {state}"));
        wants(result["outside"] == "disabled", format!("from outside, `is-enabled` says {}", result["outside"]));
        wants(result["enabled"] == "disabled", format!("inside, `is-enabled` says {}", result["enabled"]));
    }
    wrong
}
