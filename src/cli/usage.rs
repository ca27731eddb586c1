//! What is wrong with a command line, where it is more than its form.

use crate::finding::{Rule, Severity};

const fn rule(code: &'static str, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "usage", severity: Severity::Error, summary, explanation }
}

/// An unknown code on the command line.
pub static UNKNOWN_CODE: Rule = rule(
    "unknown-code",
    "no rule has this code",
    "`fitout explain` knows the codes that `fitout explain --list` prints. \
     Codes are stable: one that a newer version reports may be unknown to an older one.",
);

/// A path that no image can have.
pub static PATH_UNKNOWN: Rule = rule(
    "path-unknown",
    "the path is not in the node's image",
    "`fitout why NODE PATH` answers for every path of the image: those that an overlay put, replaced, edited or \
     removed, and those that are the base's. This one is neither. Paths are absolute; links in the base are followed \
     on all but the last element, as the overlays' are.",
);

/// There is a mesh already.
pub static MESH_EXISTS: Rule = rule(
    "mesh-exists",
    "`fitout init` in a directory that has a mesh.toml",
    "`fitout init` never overwrites a declaration. Name another directory, or remove the file yourself.",
);

/// A client joins nothing.
pub static JOIN_CLIENT: Rule = rule(
    "join-client",
    "`fitout build --join` for a node on which etcd does not run",
    "`--join` puts the living member list into the image of a node that becomes a member of the registry. A client is none: \
     its image is the same whoever the members are.",
);

/// Rules of this file.
pub static RULES: &[&Rule] = &[&UNKNOWN_CODE, &PATH_UNKNOWN, &MESH_EXISTS, &JOIN_CLIENT];
