//! The rules of the declaration: pure functions of a decoded mesh.

mod addresses;
mod corosync;
mod lifetimes;
mod overlays;
mod placement;
mod references;
mod timings;
pub(super) mod unused;
mod votes;

use super::model::Mesh;
use super::section::{Reports, Section};
use super::{allow, manifest, mesh_file, nodes, table, values};
use crate::finding::{Finding, Rule};

/// One rule with its function, and the sections that must be sound for it to say anything true.
#[derive(Debug)]
pub(super) struct Check {
    rule: &'static Rule,
    needs: &'static [Section],
    run: fn(&Mesh, &mut Vec<Finding>),
}

/// Families of checks, one file each.
const CHECKS: &[&[Check]] = &[
    addresses::CHECKS,
    votes::CHECKS,
    placement::CHECKS,
    lifetimes::CHECKS,
    timings::CHECKS,
    overlays::CHECKS,
    corosync::CHECKS,
];

/// Rules that decoding itself applies.
const DECODING: &[&[&Rule]] = &[
    &[&super::MESH_FILE_MISSING],
    table::RULES,
    values::RULES,
    manifest::RULES,
    mesh_file::RULES,
    nodes::RULES,
    allow::RULES,
];

const fn count() -> usize {
    let (mut n, mut i) = (0, 0);
    while i < CHECKS.len() {
        n += CHECKS[i].len();
        i += 1;
    }
    i = 0;
    while i < DECODING.len() {
        n += DECODING[i].len();
        i += 1;
    }
    n
}

const fn all() -> [&'static Rule; count()] {
    let mut rules: [&'static Rule; count()] = [&super::MESH_FILE_MISSING; count()];
    let (mut n, mut i) = (0, 0);
    while i < DECODING.len() {
        let mut j = 0;
        while j < DECODING[i].len() {
            rules[n] = DECODING[i][j];
            n += 1;
            j += 1;
        }
        i += 1;
    }
    i = 0;
    while i < CHECKS.len() {
        let mut j = 0;
        while j < CHECKS[i].len() {
            rules[n] = CHECKS[i][j].rule;
            n += 1;
            j += 1;
        }
        i += 1;
    }
    rules
}

/// Every rule of the declaration.
pub static RULES: &[&Rule] = &all();

/// Runs every check whose sections are sound. A reference that does not resolve leaves [`Section::References`] broken.
pub(super) fn run(mesh: &Mesh, reports: &Reports) {
    apply(references::CHECKS, mesh, reports, Some(Section::References));
    for family in CHECKS {
        apply(family, mesh, reports, None);
    }
}

fn apply(checks: &[Check], mesh: &Mesh, reports: &Reports, breaks: Option<Section>) {
    for check in checks {
        if !reports.sound(check.needs) {
            continue;
        }
        let mut findings = Vec::new();
        (check.run)(mesh, &mut findings);
        for finding in findings {
            breaks.into_iter().for_each(|section| reports.mark(section));
            reports.add(finding);
        }
    }
}
