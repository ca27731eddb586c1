//! Why a registry is not bootstrapped, and what is worth knowing about one that is.

use crate::finding::{Rule, Severity};

const fn rule(code: &'static str, severity: Severity, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "registry", severity, summary, explanation }
}

/// The registry is another mesh's.
pub static OTHER_MESH: Rule = rule(
    "registry-other-mesh",
    Severity::Error,
    "the registry belongs to another mesh",
    "The id of an etcd cluster follows from what it was born with: the peer URLs of its first members and its token, which \
     holds the mesh's name and generation. `/mesh/identity` names the mesh once more. Where one of them is another than the \
     declaration's, these endpoints, this mesh.toml or this certificate store are not of one mesh, and what would be written \
     would damage somebody else's registry. Look at the endpoints first. The birth record is kept in fitout.lock: a registry \
     keeps its id when voters are added later.",
);

/// The registry is of another generation.
pub static OTHER_GENERATION: Rule = rule(
    "registry-other-generation",
    Severity::Error,
    "the registry is of another generation than the declaration",
    "Every restore raises the generation of the registry, so that what is left of the old one cannot be mistaken for the new. \
     `[registry] generation` in mesh.toml must say the same: take the mesh.toml that the restore was made with, or write the \
     registry's generation into it.",
);

/// A newer schema.
pub static NEWER_SCHEMA: Rule = rule(
    "registry-newer-schema",
    Severity::Error,
    "the registry has a newer schema than this fitout",
    "`/mesh/schema` says which layout the registry has and which programs may write it. A newer fitout has written this one; \
     to write it with this version would undo that. Use a fitout of the same version or newer.",
);

/// Identity or schema cannot be understood.
pub static IDENTITY_UNREADABLE: Rule = rule(
    "registry-identity-unreadable",
    Severity::Error,
    "what says which registry this is cannot be understood",
    "`/mesh/identity` and `/mesh/schema` say which registry this is and who may write it (docs/registry.md). They are there, \
     and cannot be read as such: somebody has written them by other means. Nothing is written before that is mended: look at \
     them with `etcdctl get`, and put them right, or restore from a backup.",
);

/// The certificate is no operator's.
pub static NO_OPERATOR: Rule = rule(
    "registry-no-operator",
    Severity::Error,
    "the certificate that is shown is no operator's",
    "Bootstrap turns authentication on. etcd then takes the common name of a certificate as the user, and only operators, \
     `operator:NAME`, have the role `root`. With another certificate one would lock oneself out. `fitout pki issue --operator \
     NAME` issues one.",
);

/// Users or roles that are not of the layout.
pub static FOREIGN_ACCESS: Rule = rule(
    "registry-foreign-access",
    Severity::Warning,
    "the registry has users or roles that are not of the layout",
    "Users are `root`, `node:NODE`, `operator:NAME` and `snapshot:NODE`, roles `root` and `node:NODE` (docs/registry.md). \
     Others were made by somebody else, and are left alone; what their roles open is open. Remove them with `etcdctl user \
     delete` and `etcdctl role delete` if nobody needs them.",
);

/// The rules of this file.
pub static RULES: &[&Rule] =
    &[&OTHER_MESH, &OTHER_GENERATION, &NEWER_SCHEMA, &IDENTITY_UNREADABLE, &NO_OPERATOR, &FOREIGN_ACCESS];
