//! The node's own name, and not the base's.

use super::{rule, text};
use crate::finding::{Finding, Rule, Severity};
use crate::overlay::edits;
use crate::verify::Image;

/// `/etc/hostname`.
pub static HOSTNAME: Rule = rule(
    "hostname",
    Severity::Error,
    "`/etc/hostname` is not the node's name",
    "\
The static hostname (hostname(5)) is what the node calls itself in logs and prompts and towards DHCP. Without the file, systemd
takes `localhost` or what the host gives, and two nodes of one name cannot be told apart in what they log. The overlay `mesh` puts
the node's name there.",
);

/// The base's name.
pub static BASE_HOSTNAME: Rule = rule(
    "base-hostname",
    Severity::Error,
    "the hostname of the base, or of the machine that made it, is in the image",
    "\
mmdebstrap and debootstrap copy the build host's `/etc/hostname` into what they make, and installers write the name into
`/etc/hosts` and `/etc/mailname` as well (mailname(5)): mail and logs of all nodes would then bear it. The image's manifest keeps the
base's name so that it can be looked for. Give the base a name of no machine, or remove the line.",
);

/// Names that every machine has.
const EVERYBODY: [&str; 4] = ["", "localhost", "localhost.localdomain", "(none)"];

/// Applies the rules.
pub(super) fn check(image: &Image, out: &mut Vec<Finding>) {
    let Some(manifest) = &image.manifest else { return };
    let base = manifest.base_hostname.as_str();
    let path = "/etc/hostname";
    let name = text(image, path).and_then(|text| {
        let mut lines = text.lines().map(str::trim);
        lines.find(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned)
    });
    if name.as_deref() != Some(&manifest.node) {
        let message = match &name {
            None => format!("{path} is missing or empty, and the node is `{}`", manifest.node),
            Some(name) if name == base => {
                format!("{path} is `{name}`, the base's own, and the node is `{}`", manifest.node)
            }
            Some(name) => format!("{path} is `{name}`, and the node is `{}`", manifest.node),
        };
        out.push(HOSTNAME.finding(path, message).help("build the image again"));
    }
    if EVERYBODY.contains(&base) || base == manifest.node {
        return;
    }
    for path in ["/etc/hosts", "/etc/mailname"] {
        let Some(text) = text(image, path) else { continue };
        if let Some(line) = names_base(&text, base) {
            let message = format!("line {line} has `{base}`, the name of the base's own machine");
            out.push(BASE_HOSTNAME.finding(path, message).help("remove it from the base"));
        }
    }
}

/// The first line that has the name, alone or with a domain; not in the block of the mesh's own nodes.
fn names_base(text: &str, base: &str) -> Option<usize> {
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim() == edits::HOSTS_BEGIN {
            in_block = true;
        }
        if line.trim() == edits::HOSTS_END {
            in_block = false;
        }
        let content = line.split('#').next().unwrap_or_default();
        let is_base = |word: &str| word.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !in_block && content.split_whitespace().any(is_base) {
            return Some(index + 1);
        }
    }
    None
}
