//! Tests of the program as its users run it, on real input. One binary, so that it links once.
//!
//! The common image is made once by mmdebstrap and kept in the cache (`FITOUT_CACHE`, else `target/fitout-cache`).

// A test says what it expects; helpers outside of #[test] functions do so too.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod common;

mod agent;
mod bad_input;
mod bases;
mod bookworm;
mod check;
mod ci;
mod corpus;
mod diff;
mod docs;
mod etcd_truth;
mod foreign_tars;
mod formats;
mod gate;
mod loopback;
mod members;
mod readers;
mod registry;
mod reproducible;
mod usage;
mod verify;
