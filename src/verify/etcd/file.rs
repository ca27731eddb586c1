//! The file as etcd reads it.

use super::{CONFIG, Facts, rule};
use crate::etcd::keys::{Reading, reading};
use crate::etcd::start::{About, refusals};
use crate::finding::{Finding, Rule, Severity};

/// No file.
pub static MISSING: Rule = rule(
    "etcd-config-missing",
    Severity::Error,
    "the image runs a part of the registry and has no readable etcd configuration",
    "\
etcd runs from `/etc/etcd/etcd.yaml` only: with a configuration file it ignores every flag and every ETCD_ variable, and
without `data-dir` in it etcd would make `<name>.etcd` in its working directory.",
);

/// No YAML.
pub static SYNTAX: Rule = rule(
    "etcd-config-syntax",
    Severity::Error,
    "etcd's configuration is no YAML mapping, or has a key twice",
    "\
etcd would refuse to start. A key that stands twice is accepted by etcd, which then uses the last one: it is refused here,
since one of the two is not what somebody meant.",
);

/// A key that this version does not read.
pub static UNKNOWN_KEY: Rule = rule(
    "etcd-key-unknown",
    Severity::Error,
    "the configuration has a key that the etcd in the image does not read",
    "\
etcd ignores unknown keys without a word, in every version, so the setting is simply not there. The classic is
`peer-client-cert-auth`, which is a flag: in the file it is `client-cert-auth` in `peer-transport-security`, and with the flag's
name peers are not authenticated at all. Keys are compared with those of the version that dpkg's status of the image names.",
);

/// A key that a later version does not read.
pub static OLD_KEY: Rule = rule(
    "etcd-key-old",
    Severity::Warning,
    "the configuration has a key that etcd gives up",
    "\
The etcd in the image reads the key and has something better; a later etcd ignores it without a word, so that an upgrade of the
base would take the setting away. Of 3.5 these are the API and the proxy of etcd 2, of 3.6 the `experimental-` keys, which 3.7
does not read. Where 3.6 finds an old key and its new one, it refuses to start.",
);

/// It would not start.
pub static REFUSES: Rule = rule(
    "etcd-refuses-start",
    Severity::Error,
    "etcd would refuse to start with this configuration",
    "\
These are etcd's own checks (`embed/config.go` Validate, `etcdserver/config.go` VerifyBootstrap), made before a boot. With a
mistake in TLS, etcd 3.4 exits only after it has written its first log, and mending the file later keeps the first
membership.",
);

/// Heartbeat and election.
pub static TIMING: Rule = rule(
    "etcd-timing",
    Severity::Error,
    "heartbeat and election timeout do not fit each other",
    "\
etcd refuses an election timeout of less than 5 heartbeats or of more than 50 s. Both derive from the declared round trip
(`[registry] round-trip`), and must be equal on all members.",
);

/// Applies the rules.
pub(super) fn check(facts: &Facts, out: &mut Vec<Finding>) {
    keys(facts, out);
    for refusal in refusals(facts.config, facts.version) {
        let rule = if refusal.about == About::Timing { &TIMING } else { &REFUSES };
        let message = format!("etcd {} would not start: {}", facts.version, refusal.message);
        out.push(facts.finding(rule, refusal.line, message));
    }
}

fn keys(facts: &Facts, out: &mut Vec<Finding>) {
    let version = facts.version;
    for entry in &facts.config.entries {
        let place = match &entry.section {
            Some(section) => format!("`{}` in `{section}`", entry.key),
            None => format!("`{}`", entry.key),
        };
        let (rule, message, help) = match reading(version, entry.section.as_deref(), &entry.key) {
            Reading::Known(_) => continue,
            Reading::Old { until, instead, .. } => (
                &OLD_KEY,
                format!("etcd {version} still reads {place}, and {until} does not any more"),
                format!("instead: {instead}"),
            ),
            Reading::Later(since) => (
                &UNKNOWN_KEY,
                format!("etcd {version} ignores {place} without a word: it is read from {since} on"),
                "remove it, or use a base with a later etcd".to_owned(),
            ),
            Reading::Gone { since, instead } => (
                &UNKNOWN_KEY,
                format!("etcd {version} ignores {place} without a word: it is not read since {since}"),
                if instead.is_empty() { "remove it".to_owned() } else { format!("instead: {instead}") },
            ),
            Reading::Unknown(meant) => (
                &UNKNOWN_KEY,
                format!("etcd ignores {place} without a word: no version reads it"),
                meant.map_or_else(|| format!("remove it from {CONFIG}"), |meant| format!("did you mean {meant}?")),
            ),
        };
        out.push(facts.finding(rule, entry.line, message).help(help));
    }
}
