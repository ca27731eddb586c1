//! Profiles against their overlays: order, requirements, conflicts, parts, parameters.

use std::collections::BTreeMap;

use super::Check;
use crate::declaration::manifest::{kind_of, kind_words};
use crate::declaration::model::{Mesh, Overlay, Parameter, Profile, Value};
use crate::declaration::profile::MESH_OVERLAY;
use crate::declaration::section::Section;
use crate::declaration::suggest;
use crate::finding::{Finding, Rule, Severity, Spanned};

const NEEDS: &[Section] = &[Section::Profiles, Section::Overlays, Section::References];

pub(super) const CHECKS: &[Check] = &[
    Check { rule: &OVERLAY_TWICE, needs: &[], run: overlay_twice },
    Check { rule: &MESH_OVERLAY_FIRST, needs: &[], run: mesh_overlay_first },
    Check { rule: &OVERLAY_REQUIRES, needs: NEEDS, run: overlay_requires },
    Check { rule: &OVERLAY_CONFLICTS, needs: NEEDS, run: overlay_conflicts },
    Check { rule: &OVERLAY_PART, needs: NEEDS, run: overlay_part },
    Check { rule: &UNKNOWN_PARAMETER, needs: NEEDS, run: unknown_parameter },
    Check { rule: &PARAMETER_TYPE, needs: NEEDS, run: parameter_type },
    Check { rule: &PARAMETER_OF_TWO, needs: NEEDS, run: parameter_of_two },
    Check { rule: &MISSING_PARAMETER, needs: NEEDS, run: missing_parameter },
];

/// A profile names an overlay twice.
pub static OVERLAY_TWICE: Rule = Rule {
    code: "overlay-twice",
    family: "declaration",
    severity: Severity::Error,
    summary: "a profile names an overlay twice",
    explanation: "Overlays are applied in order, each once.",
};

/// The overlay `mesh` is not the first of a profile.
pub static MESH_OVERLAY_FIRST: Rule = Rule {
    code: "mesh-overlay-first",
    family: "declaration",
    severity: Severity::Error,
    summary: "the overlay `mesh` is not the first of a profile",
    explanation: "The overlay `mesh` gives every node its identity and carries the base policy by which nothing of the \
        registry starts at boot. It is in every profile and comes first, so that others build on it; a profile that \
        does not name it gets it.",
};

/// An overlay that another one requires is missing or comes later.
pub static OVERLAY_REQUIRES: Rule = Rule {
    code: "overlay-requires",
    family: "declaration",
    severity: Severity::Error,
    summary: "an overlay that another one requires is missing from a profile, or comes later",
    explanation: "`requires` of a manifest names overlays that must come earlier in the same profile.",
};

/// Two overlays of a profile exclude each other.
pub static OVERLAY_CONFLICTS: Rule = Rule {
    code: "overlay-conflicts",
    family: "declaration",
    severity: Severity::Error,
    summary: "two overlays of a profile exclude each other",
    explanation: "`conflicts` of a manifest names overlays that may not be in the same profile.",
};

/// An overlay is not for nodes with the profile's part.
pub static OVERLAY_PART: Rule = Rule {
    code: "overlay-part",
    family: "declaration",
    severity: Severity::Error,
    summary: "an overlay is not for nodes with the profile's part",
    explanation: "`parts` of a manifest says which registry parts may carry the overlay; the overlay `etcd`, for instance, \
        is for voters, arbiters and control planes, and makes no sense on a client.",
};

/// A parameter is given that no overlay of the profile declares.
pub static UNKNOWN_PARAMETER: Rule = Rule {
    code: "unknown-parameter",
    family: "declaration",
    severity: Severity::Error,
    summary: "a parameter is given that no overlay of the profile declares",
    explanation: "Parameters are declared by manifests (`[parameter.NAME]`) and given by profiles (`[parameters]`) and \
        nodes (`parameters.NAME`). One that nobody reads is most likely misspelt.",
};

/// A parameter has another type than its overlay declares.
pub static PARAMETER_TYPE: Rule = Rule {
    code: "parameter-type",
    family: "declaration",
    severity: Severity::Error,
    summary: "a parameter has another type than its overlay declares",
    explanation: "The type is declared by `[parameter.NAME] type` of the overlay's manifest: boolean, integer, string or \
        strings.",
};

/// Two overlays of a profile declare one parameter.
pub static PARAMETER_OF_TWO: Rule = Rule {
    code: "parameter-of-two-overlays",
    family: "declaration",
    severity: Severity::Error,
    summary: "two overlays of a profile declare one parameter differently",
    explanation: "Parameters of all overlays of a profile share one name space. Two overlays may share a parameter when \
        type and default agree; otherwise nobody could say which holds.",
};

/// A parameter without default is not given.
pub static MISSING_PARAMETER: Rule = Rule {
    code: "missing-parameter",
    family: "declaration",
    severity: Severity::Error,
    summary: "a parameter without default is not given",
    explanation: "A parameter that its overlay declares without a default must be given by the profile, or by each node.",
};

fn subject(profile: &Profile) -> String {
    format!("profile {}", profile.name.value)
}

/// The overlays of a profile, in order, with the places that name them.
fn carried<'m>(mesh: &'m Mesh, profile: &'m Profile) -> Vec<(&'m Spanned<String>, &'m Overlay)> {
    profile.overlays.iter().filter_map(|name| Some((name, mesh.overlays.get(&name.value)?))).collect()
}

/// Parameters that the overlays of a profile declare.
fn declared<'m>(mesh: &'m Mesh, profile: &'m Profile) -> BTreeMap<&'m str, (&'m Overlay, &'m Parameter)> {
    let mut all = BTreeMap::new();
    for (_, overlay) in carried(mesh, profile) {
        for parameter in overlay.manifest.parameters.values() {
            all.entry(parameter.name.value.as_str()).or_insert((overlay, parameter));
        }
    }
    all
}

/// All values given for parameters: by profiles, and by nodes for theirs.
fn given(mesh: &Mesh) -> Vec<(String, &Profile, &str, &Spanned<Value>)> {
    let profiles = mesh.profiles.values().map(|p| (subject(p), p, &p.parameters));
    let nodes = mesh
        .nodes
        .values()
        .filter_map(|n| Some((format!("node {}", n.name.value), mesh.profiles.get(&n.profile.value)?, &n.parameters)));
    profiles.chain(nodes).flat_map(|(s, p, all)| all.iter().map(move |(n, v)| (s.clone(), p, n.as_str(), v))).collect()
}

fn overlay_twice(mesh: &Mesh, out: &mut Vec<Finding>) {
    for profile in mesh.profiles.values() {
        for (i, name) in profile.overlays.iter().enumerate() {
            if let Some(first) = profile.overlays[..i].iter().find(|o| o.value == name.value) {
                out.push(
                    OVERLAY_TWICE
                        .finding(subject(profile), format!("names the overlay `{}` twice", name.value))
                        .at(&name.span)
                        .related(&first.span, "named here first")
                        .help("remove one"),
                );
            }
        }
    }
}

fn mesh_overlay_first(mesh: &Mesh, out: &mut Vec<Finding>) {
    for profile in mesh.profiles.values() {
        if let Some(name) = profile.overlays.iter().skip(1).find(|o| o.value == MESH_OVERLAY)
            && profile.overlays.first().is_some_and(|o| o.value != MESH_OVERLAY)
        {
            out.push(
                MESH_OVERLAY_FIRST
                    .finding(subject(profile), format!("the overlay `{MESH_OVERLAY}` is not the first"))
                    .at(&name.span)
                    .help("put it first, or leave it out: every profile has it"),
            );
        }
    }
}

fn overlay_requires(mesh: &Mesh, out: &mut Vec<Finding>) {
    for profile in mesh.profiles.values() {
        for (i, (name, overlay)) in carried(mesh, profile).into_iter().enumerate() {
            for required in &overlay.manifest.requires {
                let Some(at) = profile.overlays.iter().position(|o| o.value == required.value) else {
                    out.push(
                        OVERLAY_REQUIRES
                            .finding(subject(profile), format!("`{}` requires `{}`", overlay.name, required.value))
                            .at(&name.span)
                            .label(format!("`{}` is not in this profile", required.value))
                            .related(&required.span, "required here")
                            .help(format!("name `{}` before `{}`", required.value, overlay.name)),
                    );
                    continue;
                };
                if at > i {
                    out.push(
                        OVERLAY_REQUIRES
                            .finding(
                                subject(profile),
                                format!("`{}` requires `{}`, which comes later", overlay.name, required.value),
                            )
                            .at(&name.span)
                            .related(&required.span, "required here")
                            .help(format!("name `{}` before `{}`", required.value, overlay.name)),
                    );
                }
            }
        }
    }
}

fn overlay_conflicts(mesh: &Mesh, out: &mut Vec<Finding>) {
    for profile in mesh.profiles.values() {
        for (name, overlay) in carried(mesh, profile) {
            for conflict in &overlay.manifest.conflicts {
                let Some(other) = profile.overlays.iter().find(|o| o.value == conflict.value) else { continue };
                out.push(
                    OVERLAY_CONFLICTS
                        .finding(subject(profile), format!("`{}` excludes `{}`", overlay.name, conflict.value))
                        .at(&name.span)
                        .related(&other.span, "and both are in this profile")
                        .related(&conflict.span, "excluded here")
                        .help("remove one of them from the profile"),
                );
            }
        }
    }
}

fn overlay_part(mesh: &Mesh, out: &mut Vec<Finding>) {
    for profile in mesh.profiles.values() {
        for (name, overlay) in carried(mesh, profile) {
            let parts = &overlay.manifest.parts;
            if parts.is_empty() || parts.iter().any(|p| p.value == profile.part.value) {
                continue;
            }
            let words: Vec<&str> = parts.iter().map(|p| p.value.as_str()).collect();
            let part = profile.part.value.as_str();
            out.push(
                OVERLAY_PART
                    .finding(subject(profile), format!("`{}` is not for a {part}", overlay.name))
                    .at(&name.span)
                    .label(format!("it is for: {}", words.join(", ")))
                    .related(&profile.part.span, format!("the part is `{part}`"))
                    .help("remove the overlay from the profile, or change the part"),
            );
        }
    }
}

fn unknown_parameter(mesh: &Mesh, out: &mut Vec<Finding>) {
    for (subject, profile, name, value) in given(mesh) {
        let declared = declared(mesh, profile);
        if declared.contains_key(name) {
            continue;
        }
        let known: Vec<&str> = declared.keys().copied().collect();
        let message =
            format!("no overlay of the profile `{}` has a parameter `{}`", profile.name.value, name.escape_debug());
        let mut finding = UNKNOWN_PARAMETER.finding(subject, message).at(&value.span).label("nothing reads this");
        finding.help = suggest::help(name, "parameter", &known);
        out.push(finding);
    }
}

fn parameter_type(mesh: &Mesh, out: &mut Vec<Finding>) {
    for (subject, profile, name, value) in given(mesh) {
        let Some((overlay, parameter)) = declared(mesh, profile).get(name).copied() else { continue };
        // An empty list has no type of its own.
        if kind_of(&value.value) != parameter.kind {
            out.push(
                PARAMETER_TYPE
                    .finding(subject, format!("the parameter `{name}` must be {}", kind_words(parameter.kind)))
                    .at(&value.span)
                    .label(format!("this is {}", kind_words(kind_of(&value.value))))
                    .related(&parameter.name.span, format!("declared by the overlay `{}`", overlay.name)),
            );
        }
    }
}

fn parameter_of_two(mesh: &Mesh, out: &mut Vec<Finding>) {
    for profile in mesh.profiles.values() {
        let declared = declared(mesh, profile);
        for (name, overlay) in carried(mesh, profile) {
            for parameter in overlay.manifest.parameters.values() {
                let Some((owner, first)) = declared.get(parameter.name.value.as_str()) else { continue };
                if owner.name != overlay.name && (first.kind != parameter.kind || first.default != parameter.default) {
                    out.push(
                        PARAMETER_OF_TWO
                            .finding(
                                subject(profile),
                                format!(
                                    "`{}` and `{}` both declare `{}`",
                                    owner.name, overlay.name, parameter.name.value
                                ),
                            )
                            .at(&name.span)
                            .related(&first.name.span, "declared here")
                            .related(&parameter.name.span, "and here, with another type or default")
                            .help("rename one of them"),
                    );
                }
            }
        }
    }
}

fn missing_parameter(mesh: &Mesh, out: &mut Vec<Finding>) {
    for node in mesh.nodes.values() {
        let Some(profile) = mesh.profiles.get(&node.profile.value) else { continue };
        for (name, (overlay, parameter)) in declared(mesh, profile) {
            let given = node.parameters.contains_key(name) || profile.parameters.contains_key(name);
            if !given && parameter.default.is_none() {
                out.push(
                    MISSING_PARAMETER
                        .finding(
                            format!("node {}", node.name.value),
                            format!("the overlay `{}` wants a value for `{name}`", overlay.name),
                        )
                        .at(&node.profile.span)
                        .related(&parameter.name.span, "declared without a default")
                        .note(parameter.description.clone())
                        .help(format!(
                            "give it: `[parameters] {name} = …` in the profile, or `parameters.{name} = …` here"
                        )),
                );
            }
        }
    }
}
