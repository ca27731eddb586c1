//! What is declared and not used: a warning, often of a misspelt name.

use std::collections::BTreeSet;

use crate::declaration::files::Files;
use crate::declaration::mesh_file::UNUSED;
use crate::declaration::model::Mesh;
use crate::declaration::section::{Reports, Section};
use crate::finding::Span;

/// Warns of sites without nodes, and of the user's own profiles and overlays that no node uses. `mesh` still holds all
/// profiles and overlays.
pub(in crate::declaration) fn check(mesh: &Mesh, files: &Files, reports: &Reports) {
    if !reports.sound(&[Section::Sites, Section::Nodes, Section::Profiles, Section::Overlays, Section::References]) {
        return;
    }
    let sites: BTreeSet<&str> = mesh.nodes.values().map(|n| n.site.value.as_str()).collect();
    for site in mesh.sites.values().filter(|s| !sites.contains(s.name.value.as_str())) {
        let subject = format!("site {}", site.name.value);
        reports.add(UNUSED.finding(subject, "no node is in this site").at(&site.name.span));
    }
    let used = used_profiles(mesh);
    for (name, (_, own)) in files.profiles() {
        if let (true, Some(profile)) = (own && !used.contains(&name), mesh.profiles.get(&name)) {
            let subject = format!("profile {name}");
            reports.add(UNUSED.finding(subject, "no node has this profile").at(&profile.part.span));
        }
    }
    let used = used_overlays(mesh);
    for (name, overlay) in files.overlays() {
        if let (true, Some(of_mesh)) = (overlay.own && !used.contains(&name), mesh.overlays.get(&name)) {
            let place = Span::new(&of_mesh.manifest.source, 0..0);
            let subject = format!("overlay {name}");
            reports.add(UNUSED.finding(subject, "no profile that a node has names this overlay").at(&place));
        }
    }
}

/// Profiles that nodes have.
pub(in crate::declaration) fn used_profiles(mesh: &Mesh) -> BTreeSet<String> {
    mesh.nodes.values().map(|n| n.profile.value.clone()).collect()
}

/// Overlays of profiles that nodes have.
pub(in crate::declaration) fn used_overlays(mesh: &Mesh) -> BTreeSet<String> {
    let profiles = used_profiles(mesh);
    let used = mesh.profiles.iter().filter(|(name, _)| profiles.contains(*name));
    used.flat_map(|(_, p)| p.overlays.iter().map(|o| o.value.clone())).collect()
}
