//! Which registry it is, of which generation and schema.

use super::{Mine, Seen};
use crate::finding::{Finding, Rule, Severity};
use crate::layout::SCHEMA;
use crate::layout::contents::Contents;
use crate::live::judge::rule;

/// Nothing there yet.
pub static EMPTY: Rule = rule(
    "live-not-bootstrapped",
    Severity::Warning,
    "the registry has no keys of the mesh yet",
    "etcd runs, and nobody has written the mesh's identity, its declaration, its users and roles: nodes cannot announce \
     themselves, and every client certificate may write everything. `fitout registry bootstrap` does it once, from any host \
     with the declaration and an operator's certificate. Tested by reading `/mesh/`.",
);
/// No identity.
pub static MISSING: Rule = rule(
    "live-identity-missing",
    Severity::Error,
    "the registry has keys and no readable identity",
    "Every write of an agent compares `/mesh/identity`; without it nobody announces anything. Somebody deleted or damaged \
     it. `fitout registry bootstrap` writes it when it is absent. Tested by reading it.",
);
/// Another mesh's.
pub static OTHER: Rule = rule(
    "live-other-mesh",
    Severity::Error,
    "the registry belongs to another mesh",
    "`/mesh/identity` names another mesh than the image: the endpoints are wrong, or the image is. Nothing else is compared. \
     Tested by the name in it.",
);
/// Another cluster's identity.
pub static CLUSTER: Rule = rule(
    "live-identity-cluster",
    Severity::Error,
    "the registry's identity is of another etcd cluster",
    "`/mesh/identity` carries the id of the cluster that it was written for. Another id means that the data was copied or \
     restored without `fitout registry restore`, which rewrites it: agents cannot tell this registry from the one that it \
     was copied from. Tested against the id that the members answer with.",
);
/// Another generation.
pub static GENERATION: Rule = rule(
    "live-generation",
    Severity::Error,
    "the image and the registry are of different generations",
    "A restore raises the generation, and with it the token from which the cluster's id follows. An image of an older \
     generation does not join, and one of a newer generation was built before its restore. Raise or correct `[registry] \
     generation` and build anew. Tested against `/mesh/identity`.",
);
/// A layout that we do not know.
pub static SCHEMA_RULE: Rule = rule(
    "live-schema",
    Severity::Error,
    "the registry's layout is newer than this program, or is not said",
    "`/mesh/schema` says which schema the keys have and the oldest that may read them. This program knows schema 1. A newer \
     layout is not judged: update fitout. Without the key no program knows how to read the others. Tested by reading it.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&EMPTY, &MISSING, &OTHER, &CLUSTER, &GENERATION, &SCHEMA_RULE];

pub(super) fn nothing() -> Finding {
    EMPTY
        .finding("/mesh/", "the registry has no keys of the mesh yet")
        .help("`fitout registry bootstrap` shows what it would write, and `--yes` writes it")
}

/// Whether the keys are ours to judge.
pub(super) fn judge(mine: &Mine, seen: &Seen<'_>, contents: &Contents, out: &mut Vec<Finding>) -> bool {
    const IDENTITY: &str = "/mesh/identity";
    match &contents.schema {
        Some(schema) if schema.least_reader.get() > SCHEMA => {
            let text = format!("asks for readers of schema {}; this is one of schema {SCHEMA}", schema.least_reader);
            let finding = SCHEMA_RULE.finding("/mesh/schema", text);
            out.push(finding.note(format!("written by {}", schema.written_by)).help("update fitout"));
            return false;
        }
        Some(_) => {}
        None => {
            let finding = SCHEMA_RULE.finding("/mesh/schema", "is not there or cannot be read");
            out.push(finding.help("`fitout registry bootstrap` writes it"));
        }
    }
    let Some((identity, _)) = &contents.identity else {
        let finding = MISSING.finding(IDENTITY, "is not there or cannot be read");
        out.push(finding.help("`fitout registry bootstrap` writes it when it is absent"));
        return true;
    };
    if identity.mesh.as_str() != mine.mesh {
        let text = format!("is of mesh `{}`, and the image of `{}`", identity.mesh, mine.mesh);
        out.push(OTHER.finding(IDENTITY, text).help("give the right `--endpoint`, or the right image"));
        return false;
    }
    if identity.cluster_id.0 != seen.cluster.0 {
        let text = format!("was written for cluster {}, and this is {}", identity.cluster_id, seen.cluster);
        let help = "restore with `fitout registry restore`, which gives the registry a generation of its own; a copy that \
                    runs beside the original must be stopped";
        out.push(CLUSTER.finding(IDENTITY, text).help(help));
    }
    if identity.generation.get() != mine.generation {
        let text = format!("is of generation {}, and the image of generation {}", identity.generation, mine.generation);
        let help =
            format!("set `[registry] generation = {}` in mesh.toml and build the image anew", identity.generation);
        out.push(GENERATION.finding(IDENTITY, text).help(help));
    }
    true
}
