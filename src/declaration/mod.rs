//! The declaration: `mesh.toml`, profiles and overlay manifests become a typed model with source spans.
//!
//! [`load`] reads the files, everything else is pure.

mod allow;
mod files;
mod manifest;
mod mesh_file;
pub mod model;
mod nodes;
mod profile;
mod rules;
mod section;
pub mod suggest;
mod table;
#[cfg(test)]
pub(crate) mod testing;
pub mod timing;
mod values;
mod votes;

use std::collections::BTreeMap;
use std::path::Path;

pub use allow::{LONGEST, Rulebook};
pub use files::{Files, MESH_FILE};
pub use model::*;
pub use profile::MESH_OVERLAY;
pub use rules::RULES;
pub use timing::Timing;
pub use values::{parse_duration, show_duration};
pub use votes::{VotesLeft, quorum_of};

use crate::finding::{Finding, Problem, Rule, Severity, has_errors};
use section::{Reports, Section};

/// There is no mesh.toml.
pub static MESH_FILE_MISSING: Rule = Rule {
    code: "mesh-file-missing",
    family: "declaration",
    severity: Severity::Error,
    summary: "there is no mesh.toml",
    explanation: "A mesh is a directory with a `mesh.toml`. `-C DIR` names it; without, the current directory is taken. \
        `fitout init DIR` writes one to start from.",
};

/// A mesh that is free of errors, and what is worth knowing about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The mesh.
    pub mesh: Mesh,
    /// Findings below the severity of an error.
    pub warnings: Vec<Finding>,
}

/// Reads `mesh.toml` of a directory with the library around it.
///
/// # Errors
/// All findings of all files when one of them is an error; a failure when a file cannot be read.
pub fn load(directory: &Path) -> Result<Loaded, Problem> {
    Ok(parse(&Files::read(directory)?)?)
}

/// As [`load`], and looks at the codes and dates of `[allow]` too.
///
/// # Errors
/// As [`load`].
pub fn load_with(directory: &Path, rulebook: &Rulebook) -> Result<Loaded, Problem> {
    Ok(parse_with(&Files::read(directory)?, Some(rulebook))?)
}

/// The mesh that files in memory declare; pure.
///
/// # Errors
/// All findings of all files when one of them is an error.
pub fn parse(files: &Files) -> Result<Loaded, Vec<Finding>> {
    parse_with(files, None)
}

/// As [`parse`]; with a rulebook the codes and dates of `[allow]` are looked at too.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(files: &Files, rulebook: Option<&Rulebook>) -> Result<Loaded, Vec<Finding>> {
    let reports = Reports::default();
    let Some(mesh_file) = files.mesh() else {
        return Err(vec![
            MESH_FILE_MISSING
                .finding(files.mesh_name(), "there is no such file")
                .help("name the mesh's directory with `-C DIR`, or make one with `fitout init DIR`"),
        ]);
    };
    for (path, what) in &files.unusable {
        let finding = manifest::OVERLAY_LAYOUT.finding(path.clone(), *what);
        let help =
            "rename or remove it: device nodes, sockets and pipes cannot come from an overlay, and names are UTF-8";
        reports.broken(Section::Overlays, finding.help(help));
    }
    let profiles: BTreeMap<String, Profile> = files
        .profiles()
        .iter()
        .map(|(name, (file, _))| (name.clone(), profile::profile(&reports, name, file)))
        .collect();
    let overlays: BTreeMap<String, Overlay> =
        files.overlays().iter().map(|(name, files)| (name.clone(), manifest::overlay(&reports, name, files))).collect();
    let source = manifest::text_of(&reports, Section::Mesh, mesh_file);
    let mesh = source.map(|source| {
        table::parse(&reports, &source, &Section::OF_MESH_FILE, |table| mesh_file::decode(table, &files.directory))
    });
    let mesh = mesh.map(|mut mesh| {
        mesh.profiles = profiles;
        mesh.overlays = overlays;
        mesh.templates = files.templates();
        rules::run(&mesh, &reports);
        allow::check(&mesh, rulebook, &reports);
        rules::unused::check(&mesh, files, &reports);
        let (profiles, overlays) = (rules::unused::used_profiles(&mesh), rules::unused::used_overlays(&mesh));
        mesh.profiles.retain(|name, _| profiles.contains(name));
        mesh.overlays.retain(|name, _| overlays.contains(name));
        mesh
    });
    let (findings, sound) = reports.finish();
    match mesh {
        Some(mesh) if sound && !has_errors(&findings) => Ok(Loaded { mesh, warnings: findings }),
        _ => Err(findings),
    }
}

#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;
