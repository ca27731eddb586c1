//! Every name refers to something that is declared.

use std::collections::{BTreeMap, BTreeSet};

use super::Check;
use crate::declaration::mesh_file::UNKNOWN_REFERENCE;
use crate::declaration::model::Mesh;
use crate::declaration::section::Section;
use crate::declaration::suggest;
use crate::finding::{Finding, Spanned};

/// Run before all others: what does not resolve leaves references broken.
pub(super) const CHECKS: &[Check] = &[
    Check { rule: &UNKNOWN_REFERENCE, needs: &[Section::Sites], run: sites },
    Check { rule: &UNKNOWN_REFERENCE, needs: &[], run: profiles },
    Check { rule: &UNKNOWN_REFERENCE, needs: &[], run: overlays },
];

fn unknown<'a>(
    out: &mut Vec<Finding>,
    subject: String,
    kind: &str,
    name: &Spanned<String>,
    known: impl IntoIterator<Item = &'a String>,
    otherwise: String,
) {
    let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
    let mut finding = UNKNOWN_REFERENCE
        .finding(subject, format!("there is no {kind} `{}`", name.value.escape_debug()))
        .at(&name.span)
        .label(format!("no such {kind}"));
    finding.help = match suggest::closest(&name.value, known.iter().copied()) {
        Some(_) => suggest::help(&name.value, kind, &known),
        None if known.is_empty() || known.len() > 12 => Some(otherwise),
        None => suggest::help(&name.value, kind, &known).map(|all| format!("{otherwise} ({all})")),
    };
    out.push(finding);
}

fn sites(mesh: &Mesh, out: &mut Vec<Finding>) {
    let declare = |name: &str| format!("declare it with `[site.{name}]`");
    for node in mesh.nodes.values() {
        if !mesh.sites.contains_key(&node.site.value) {
            let subject = format!("node {}", node.name.value);
            unknown(out, subject, "site", &node.site, mesh.sites.keys(), declare(&node.site.value));
        }
    }
    for site in &mesh.corosync_sites {
        if !mesh.sites.contains_key(&site.value) {
            unknown(out, "mesh.corosync-sites".into(), "site", site, mesh.sites.keys(), declare(&site.value));
        }
    }
    for ((a, b), value) in &mesh.registry.round_trips {
        for site in [a, b] {
            if !mesh.sites.contains_key(site) {
                let name = Spanned::new(site.clone(), value.span.clone());
                unknown(out, format!("round-trip.{a}.{b}"), "site", &name, mesh.sites.keys(), declare(site));
            }
        }
    }
}

fn profiles(mesh: &Mesh, out: &mut Vec<Finding>) {
    for node in mesh.nodes.values() {
        // A profile whose file has faults exists: those are reported, and not this.
        if !mesh.profiles.contains_key(&node.profile.value) {
            let name = &node.profile.value;
            let otherwise = format!("write `profiles/{}.toml` beside mesh.toml", name.escape_debug());
            unknown(
                out,
                format!("node {}", node.name.value),
                "profile",
                &node.profile,
                mesh.profiles.keys(),
                otherwise,
            );
        }
    }
}

fn overlays(mesh: &Mesh, out: &mut Vec<Finding>) {
    let names: BTreeSet<&String> = mesh.overlays.keys().collect();
    let missing = |name: &str| format!("write `overlays/{}/overlay.toml` beside mesh.toml", name.escape_debug());
    for (profile, overlay) in
        mesh.profiles.values().flat_map(|p| p.overlays.iter().map(move |o| (format!("profile {}", p.name.value), o)))
    {
        if !names.contains(&overlay.value) {
            unknown(out, profile, "overlay", overlay, names.iter().copied(), missing(&overlay.value));
        }
    }
    let asked: BTreeMap<_, _> = mesh
        .overlays
        .values()
        .flat_map(|o| o.manifest.requires.iter().chain(&o.manifest.conflicts).map(move |r| ((&o.name, &r.value), r)))
        .collect();
    for ((overlay, _), name) in asked {
        if !names.contains(&name.value) {
            let subject = format!("overlay {overlay}");
            unknown(out, subject, "overlay", name, names.iter().copied(), missing(&name.value));
        }
    }
}
