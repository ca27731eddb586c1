//! Tests of the program as its users run it, on real input. One binary, so that it links once.
//!
//! The common image is made once by mmdebstrap and kept in the cache (`FITOUT_CACHE`, else `target/fitout-cache`).

mod common;

mod bad_input;
mod docs;
mod foreign_tars;
mod readers;
mod reproducible;
mod usage;
mod verify;
