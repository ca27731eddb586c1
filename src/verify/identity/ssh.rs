//! SSH host keys: none in the image, and a way to make them.

use super::{files_below, put_by_overlay, rule, text};
use crate::finding::{Finding, Rule, Severity};
use crate::overlay::ledger::Scope;
use crate::systemd::units::Unit;
use crate::verify::Image;
use crate::verify::units::Facts;

/// A key in the image.
pub static HOST_KEY: Rule = rule(
    "ssh-host-key",
    Severity::Error,
    "the image has an SSH host key that all its machines would share",
    "\
openssh-server's postinst makes host keys where it runs (`ssh-keygen -A`), so they end in whatever is built there. Who has the image
can pass for any of its machines. Remove them from the base and let each machine make its own; a key that is declared for this node
alone is taken as meant.",
);

/// No key, and nobody makes one.
pub static NO_HOST_KEYS: Rule = rule(
    "ssh-host-keys-none",
    Severity::Warning,
    "sshd starts at boot, has no host keys, and nothing makes them",
    "\
Only the package's postinst makes host keys, and it has run already. Debian's `ssh.service` tests its configuration first
(`sshd -t`), which fails with `no hostkeys available`, and nobody can log in. trixie's `sshd-keygen.service` has
`ConditionFirstBoot=yes`, which an empty `/etc/machine-id` does not meet: the condition is for a missing one (systemd.unit(5)). Give
the image a unit that runs `ssh-keygen -A` before, which makes only what is missing; on trixie the drop-in
`/etc/systemd/system/sshd-keygen.service.d/10-always.conf` with `[Unit]` and an empty `ConditionFirstBoot=` does it.",
);

/// Units of the server, by the names that Debian and others give them.
const SERVERS: [&str; 4] = ["ssh.service", "sshd.service", "ssh.socket", "sshd.socket"];

/// Applies the rules.
pub(super) fn check(image: &Image, facts: &Facts, out: &mut Vec<Finding>) {
    let is_key = |name: &[u8]| name.starts_with(b"ssh_host_") && name.ends_with(b"_key");
    let mut any = false;
    for (path, _) in files_below(image, "/etc/ssh").filter(|(path, _)| is_key(path.file_name())) {
        any = true;
        let record = put_by_overlay(image, path);
        if record.is_some_and(|record| record.scope == Scope::Node) {
            continue;
        }
        let whose = match record {
            Some(record) => format!("overlay `{}` puts it into every image of the profile", record.origin.overlay),
            None => "it was in the base, or was put there after the build".to_owned(),
        };
        out.push(
            HOST_KEY
                .finding(path.display(), format!("it is an SSH host key, and {whose}"))
                .help("remove it from the base, or by `remove = [\"/etc/ssh/ssh_host_*\"]` in an overlay"),
        );
    }
    if !any && !other_keys(image) {
        no_keys(facts, out);
    }
}

/// Whether the server is told of keys elsewhere.
fn other_keys(image: &Image) -> bool {
    let mut files: Vec<String> = vec!["/etc/ssh/sshd_config".into()];
    files.extend(files_below(image, "/etc/ssh/sshd_config.d").map(|(path, _)| path.display()));
    files.iter().filter_map(|file| text(image, file)).any(|text| {
        text.lines().any(|line| line.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("hostkey")))
    })
}

fn no_keys(facts: &Facts, out: &mut Vec<Finding>) {
    let server = facts.boot.reached.keys().find(|name| SERVERS.contains(&name.as_str()));
    let Some(server) = server else { return };
    let makers: Vec<&Unit> = facts.boot.units.values().filter(|unit| makes_keys(unit)).collect();
    if makers.iter().any(|unit| !at_first_boot_only(unit)) {
        return;
    }
    let mut finding = NO_HOST_KEYS
        .finding(server.as_str(), "it starts at boot without a host key, and nothing makes one")
        .help("let a unit run `ssh-keygen -A` before it, at every boot: it makes only what is missing");
    for unit in makers {
        finding = finding.note(format!(
            "`{}` makes keys at a first boot only (ConditionFirstBoot=), which an empty /etc/machine-id is not",
            unit.id
        ));
    }
    out.push(finding);
}

fn makes_keys(unit: &Unit) -> bool {
    let runs = |key: &'static str| {
        unit.values("Service", key).into_iter().any(|(_, assignment)| {
            let value = &assignment.value;
            value.contains("ssh-keygen") || value.contains("dpkg-reconfigure openssh-server")
        })
    };
    runs("ExecStart") || runs("ExecStartPre")
}

fn at_first_boot_only(unit: &Unit) -> bool {
    unit.flag("Unit", "ConditionFirstBoot", false)
}
