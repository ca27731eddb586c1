//! The data directory, and the version of etcd.

use super::{DATA, PACKAGE, USER, rule};
use crate::etcd::versions::{Version, known_against};
use crate::finding::{Finding, Rule, Severity};
use crate::systemd::search::follow;
use crate::tree::{Tree, TreePath};
use crate::verify::Image;

/// The data directory.
pub static DIRECTORY: Rule = rule(
    "etcd-data-directory",
    Severity::Error,
    "etcd's data directory is not empty, or not etcd's alone",
    "\
An image with data in `/var/lib/etcd` would start with somebody else's membership and ids, whatever its configuration says:
`initial-cluster` and the token are ignored once there is a log. The directory must be the configuration's `data-dir`, belong to
`etcd:etcd` and have mode 0700. Where it is missing, `StateDirectory=etcd` of the unit makes it so.",
);

/// Versions that lose data.
pub static BAD_VERSION: Rule = rule(
    "etcd-version-bad",
    Severity::Error,
    "the etcd in the image is a version that loses data",
    "\
3.5.0 to 3.5.2 can leave members with different data after a crash under load, without any sign (etcd#13766). Versions before
3.4 are not supported. Upgrade the base.",
);

/// Versions with known faults.
pub static KNOWN_VERSION: Rule = rule(
    "etcd-version-known",
    Severity::Warning,
    "something is known against the etcd in the image",
    "\
The notes name it. The upstream version is taken from dpkg's status of the image; Debian may have mended single faults in its
own revision, which cannot be told from the number.",
);

/// No version.
pub static NO_VERSION: Rule = rule(
    "etcd-version-unknown",
    Severity::Warning,
    "the image does not say which etcd it has",
    "\
The package `etcd-server` is not in dpkg's status of the image and no overlay `etcd-binary` says the version of another etcd,
or it cannot be read. Keys of the configuration were
then compared with those of the newest etcd that this tool knows, which may accept what the image's etcd ignores.",
);

/// A declared version that is not the program's.
pub static OTHER_VERSION: Rule = rule(
    "etcd-version-other",
    Severity::Error,
    "the etcd in the image is not of the version that is declared",
    "\
For an etcd that is no package of Debian's the overlay `etcd-binary` takes the version from the declaration. The program itself
names another one: Go writes the modules of a build into it (`go version -m`), and since 3.5 a release names its own. The
configuration is then compared with the keys of the program's version. Give that one as `etcd-version`, or take the other
program.",
);

/// The version of a binary that is no package: what it says of itself counts more than what is declared.
pub(super) fn of_binary(declared: Option<Version>, built: Option<Version>, out: &mut Vec<Finding>) -> Option<Version> {
    if let (Some(declared), Some(built)) = (declared, built)
        && declared != built
    {
        let message = format!("etcd {declared} is declared, and the program says that it is {built}");
        out.push(OTHER_VERSION.finding("etcd", message).help(format!("declare `etcd-version = \"{built}\"`")));
    }
    built.or(declared)
}

/// Rules about the version.
pub(super) fn versions(version: Option<Version>, out: &mut Vec<Finding>) {
    let Some(version) = version else {
        let message = format!("no version of `{PACKAGE}` in /var/lib/dpkg/status, nor a declared one");
        let help = format!("use a base with Debian's `{PACKAGE}`, or the overlay `etcd-binary` with `etcd-version`");
        out.push(NO_VERSION.finding(PACKAGE, message).help(help));
        return;
    };
    for (rule, harmful) in [(&BAD_VERSION, true), (&KNOWN_VERSION, false)] {
        let known: Vec<String> =
            known_against(version).filter(|k| k.harmful == harmful).map(|k| k.what.to_owned()).collect();
        if !known.is_empty() {
            let mut finding = rule.finding(PACKAGE, format!("the image has etcd {version}"));
            finding.notes = known;
            out.push(finding.help("use a base with a later etcd as soon as there is one"));
        }
    }
}

/// Rules about the data directory.
pub(super) fn directory(image: &Image, out: &mut Vec<Finding>) {
    let mut say = |message: String, help: &str| out.push(DIRECTORY.finding(DATA, message).help(help.to_owned()));
    let Some(path) = TreePath::parse(DATA).ok().and_then(|p| follow(&image.tree, &p)) else { return };
    let Some(entry) = image.tree.get(&path) else { return };
    if !entry.is_directory() {
        say(format!("{DATA} is a {}", entry.kind_name()), "it must be a directory");
        return;
    }
    let below: Vec<&TreePath> = image.tree.below(&path).map(|(p, _)| p).collect();
    if let Some(first) = below.first() {
        let message = format!("{DATA} is not empty: {} entries, {first} the first", below.len());
        say(message, "an image never carries a data directory: mount it, or restore a snapshot on the node");
    }
    if entry.mode != 0o700 {
        say(format!("{DATA} has mode {:04o}", entry.mode), "mode 0700");
    }
    match (id(&image.tree, "/etc/passwd"), id(&image.tree, "/etc/group")) {
        (Some(uid), Some(gid)) if (entry.uid, entry.gid) == (uid, gid) => {}
        (Some(uid), Some(gid)) => {
            let message = format!("{DATA} belongs to {}:{}, and `{USER}` is {uid}:{gid}", entry.uid, entry.gid);
            say(message, "owner `etcd:etcd`");
        }
        _ => say(format!("there is no user and group `{USER}` in the image"), "use a base with Debian's `etcd-server`"),
    }
}

/// Id of [`USER`] in passwd(5) or group(5): the third field of its line.
fn id(tree: &Tree, path: &str) -> Option<u32> {
    let path = TreePath::parse(path).ok()?;
    let text = String::from_utf8(tree.content(&follow(tree, &path)?).ok()?).ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(USER))?;
    line.split(':').nth(2)?.parse().ok()
}
