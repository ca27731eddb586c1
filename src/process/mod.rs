//! Running other programs: each with a deadline and a captured, bounded log, and none of them survives us.
//!
//! A program that is not installed is a [`crate::finding::Failure`] that names its Debian package.

pub mod analyze;
pub mod command;
pub mod log;
pub mod missing;
pub mod mmdebstrap;
pub mod running;

pub use command::{Command, Finished, OnOurDeath};
pub use running::Running;
