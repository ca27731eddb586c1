//! The units family: the proof that what is stopped stays stopped, and that units are whole.
//!
//! Two claims, with two kinds of code. *Does not start at boot* is a matter of truth: a boot shows it, and its codes are
//! errors. *Would become enabled* names what would undo it (a first boot, `systemctl preset`, an upgrade, another
//! unit's `Also=`): its codes are warnings.

mod conditions;
mod enable;
mod facts;
mod files;
mod handle;
mod proof;
mod start;

#[cfg(test)]
mod tests;

pub use proof::{Proof, SubjectProof};

pub use facts::Facts;

use super::Image;
use crate::finding::{Finding, Rule};

/// All rules of the family.
pub static RULES: &[&Rule] = &[
    &start::STARTS_AT_BOOT,
    &start::ACTIVATED,
    &start::COMMAND,
    &start::GENERATOR,
    &start::FIRST_BOOT,
    &start::TMPFILES,
    &start::SEARCH_PATH,
    &start::BOOT_PROGRAM,
    &start::REQUISITE,
    &start::UNRESOLVED,
    &start::UNKNOWN_GENERATOR,
    &enable::MACHINE_ID,
    &enable::ALIAS_LEFT,
    &enable::LINK_LEFT,
    &enable::SYSV_LINK,
    &enable::PRESET,
    &enable::ALSO,
    &files::SYNTAX,
    &files::UNREADABLE,
    &files::EXECUTABLE,
    &handle::MISSING,
    &handle::HANDLE_FORM,
    &handle::REGISTRY_UNIT,
    &handle::ANNOUNCER_UNIT,
];

/// Applies every rule of the family to an image. Gives what was worked out, for other families.
pub fn check<'a>(image: &'a Image, out: &mut Vec<Finding>) -> Facts<'a> {
    let facts = Facts::new(image);
    start::check(&facts, out);
    enable::check(&facts, out);
    files::check(&facts, out);
    handle::check(&facts, out);
    facts
}

/// What was looked at, and what follows: printed by `verify`.
pub fn proof(image: &Image) -> Proof {
    Proof::new(&Facts::new(image))
}
