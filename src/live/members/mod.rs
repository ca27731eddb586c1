//! Members: from what is to what the declaration wants, step by step, never through a state without a quorum.
//!
//! [`plan`] is a pure function of what was seen; [`apply`] carries its steps out one at a time and looks again between
//! them. The commands and the votes are those by which `fitout check` judges.

pub mod command;
pub mod plan;
pub mod votes;
