//! No Corosync across sites.

use std::collections::BTreeSet;

use super::Check;
use crate::declaration::model::{Mesh, Node, Overlay};
use crate::declaration::section::Section;
use crate::finding::{Finding, Rule, Severity, Span};

pub(super) const CHECKS: &[Check] = &[Check {
    rule: &COROSYNC_ACROSS_SITES,
    needs: &[Section::Mesh, Section::Base, Section::Nodes, Section::Profiles, Section::Overlays, Section::References],
    run: corosync_across_sites,
}];

/// Corosync would run across sites.
pub static COROSYNC_ACROSS_SITES: Rule = Rule {
    code: "corosync-across-sites",
    family: "declaration",
    severity: Severity::Error,
    summary: "Corosync would run on nodes of several sites",
    explanation: "Corosync passes a token around all members and wants a few milliseconds and no loss; over a WAN it fences \
        healthy nodes. So an overlay or a package of the base that brings it is refused when the nodes that carry it \
        span sites. Within one site it is fine. If two sites are one place by every measure, \
        `[mesh] corosync-sites` names the sites across which it is allowed.",
};

/// True for Debian packages that are Corosync or bring it: pacemaker and its two front ends depend on it.
fn brings_corosync(package: &str) -> bool {
    package.starts_with("corosync") || package.starts_with("pacemaker") || ["crmsh", "pcs"].contains(&package)
}

/// Where an overlay brings Corosync, with what.
fn in_overlay(overlay: &Overlay) -> Option<(Span, String)> {
    let manifest = &overlay.manifest;
    if let Some(package) = manifest.packages.iter().find(|p| brings_corosync(&p.value)) {
        return Some((package.span.clone(), format!("the package `{}`", package.value)));
    }
    let unit = manifest.units.iter().find(|(name, _)| name.starts_with("corosync") || name.starts_with("pacemaker"));
    if let Some((name, state)) = unit {
        return Some((state.span.clone(), format!("the unit `{name}`")));
    }
    let whole = Span::new(&manifest.source, 0..0);
    let path = overlay.files.keys().find(|path| path.split('/').any(|e| e.starts_with("corosync")));
    path.map(|path| (whole, format!("the path `/{path}`")))
}

fn corosync_across_sites(mesh: &Mesh, out: &mut Vec<Finding>) {
    let all: Vec<&Node> = mesh.nodes.values().collect();
    if let Some(package) = mesh.base.packages.iter().find(|p| brings_corosync(&p.value)) {
        let what = format!("the base brings the package `{}`", package.value);
        report(mesh, out, format!("base {}", mesh.base.name.value), &what, &package.span, &all);
    }
    for overlay in mesh.overlays.values() {
        let Some((place, what)) = in_overlay(overlay) else { continue };
        let carriers: Vec<&Node> = all
            .iter()
            .copied()
            .filter(|n| mesh.profile_of(n).overlays.iter().any(|o| o.value == overlay.name))
            .collect();
        report(mesh, out, format!("overlay {}", overlay.name), &format!("it brings {what}"), &place, &carriers);
    }
}

fn report(mesh: &Mesh, out: &mut Vec<Finding>, subject: String, what: &str, place: &Span, carriers: &[&Node]) {
    let sites: BTreeSet<&str> = carriers.iter().map(|n| n.site.value.as_str()).collect();
    let allowed = |site: &&str| mesh.corosync_sites.iter().any(|s| s.value == **site);
    if sites.len() < 2 || sites.iter().all(allowed) {
        return;
    }
    let names: Vec<&str> = sites.into_iter().collect();
    out.push(
        COROSYNC_ACROSS_SITES
            .finding(subject, format!("{what}, and the nodes that carry it are in {}", names.join(", ")))
            .at(place)
            .label("brings Corosync")
            .help("keep it within one site, or drop it: the registry's quorum does not need it"),
    );
}
