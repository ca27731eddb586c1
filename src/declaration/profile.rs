//! `profiles/NAME.toml`: what kind of appliance a node is.
//!
//! ```toml
//! description = "one line for people"
//! part = "voter"             # voter | arbiter | client | control-plane
//! overlays = ["mesh", "etcd"] # in order; `mesh` is put first when it is not named
//!
//! [parameters]               # values for the overlays' parameters; a node's `parameters` come over them
//! verbosity = 2
//!
//! [units]                    # over what the overlays say
//! "ssh.service" = "enabled"  # stopped | enabled | masked
//! ```

use std::collections::BTreeMap;

use super::manifest::{check_unit_name, part, text_of, unit_state};
use super::model::{LibraryFile, Part, Profile};
use super::section::{Reports, Section};
use super::table::{Table, parse};
use super::values;
use crate::finding::{Source, Span, Spanned};

/// The overlay that is in every profile: identity, site labels, hosts, and the base policy.
pub const MESH_OVERLAY: &str = "mesh";

/// Reads one profile. What cannot be read is reported, and stand-ins take its place.
pub(super) fn profile(reports: &Reports, name: &str, file: &LibraryFile) -> Profile {
    // An unreadable file has been reported; an empty one stands in, so that references to it still resolve.
    let readable = text_of(reports, Section::Profiles, file);
    let source = readable.clone().unwrap_or_else(|| Source::new(file.name.clone(), ""));
    let name = Spanned::new(name.to_owned(), Span::new(&source, 0..0));
    if readable.is_none() {
        let part = Spanned::new(Part::Client, name.span.clone());
        return Profile {
            name,
            description: String::new(),
            part,
            overlays: Vec::new(),
            parameters: BTreeMap::new(),
            units: BTreeMap::new(),
        };
    }
    parse(reports, &source, &[Section::Profiles], |table| decode(table, name))
}

fn decode(mut table: Table<'_>, name: Spanned<String>) -> Profile {
    let description = table.need("description", values::line, "\"one line for people\"");
    let part = table.need("part", part, "\"client\"").unwrap_or_else(|| table.implied(Part::Client));
    let given = table.key_span("overlays");
    let mut overlays = table.list("overlays", values::label);
    if given.is_none() {
        table.missing("overlays", "add `overlays = [\"mesh\"]`");
    }
    if !overlays.iter().any(|o| o.value == MESH_OVERLAY) {
        overlays.insert(0, Spanned::new(MESH_OVERLAY.to_owned(), given.unwrap_or_else(|| table.span())));
    }
    let parameters = table.table("parameters", Section::Profiles).map_or_else(BTreeMap::new, |t| {
        t.all_values(values::parameter).into_iter().map(|(name, value)| (name.value, value)).collect()
    });
    let mut units = BTreeMap::new();
    if let Some(given) = table.table("units", Section::Profiles) {
        let reports = given.reports;
        for (name, state) in given.all_values(unit_state) {
            check_unit_name(&name, reports, Section::Profiles);
            units.insert(name.value, state);
        }
    }
    table.finish();
    let description = description.map(|d| d.value).unwrap_or_default();
    Profile { name, description, part, overlays, parameters, units }
}
