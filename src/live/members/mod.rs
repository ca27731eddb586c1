//! Members: from what is to what the declaration wants, step by step, never through a state without a quorum.
//!
//! [`mod@plan`] is a pure function of what was seen; [`mod@apply`] carries its steps out one at a time and looks again between
//! them. The commands and the votes are those by which `fitout check` judges.

mod act;
pub mod apply;
pub mod command;
pub mod join;
pub mod look;
pub mod plan;
pub mod votes;

pub use act::Living;
