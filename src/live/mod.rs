//! The living registry: handshakes, etcd's client, and the check of an image against it.
//!
//! tokio and etcd-client are used here and nowhere else. Asking ([`observe`]) is apart from judging ([`judge`]):
//! the judges are pure functions of what was seen, and are tested without a network.

pub mod bootstrap;
pub mod check;
pub mod claims;
pub mod client;
pub mod credentials;
pub mod endpoint;
pub mod etcdctl;
pub mod handshake;
pub mod judge;
pub mod keys;
pub mod look;
pub mod members;
pub mod metrics;
pub mod observe;
pub mod overview;
pub mod reach;
mod verifier;
pub mod watch;
pub mod words;

pub use check::{Options, RULES, Session, check};
