//! `fitout`: from one declaration and one common image, one image per node, proven before it boots.
//!
//! Data flows one way; a module uses only those listed above it (see `docs/architecture.md`).
//! Without the feature `tool` only what the announcer on the nodes needs is there.

#[cfg(feature = "tool")]
pub mod finding;

#[cfg(feature = "tool")]
pub mod regular;

#[cfg(feature = "tool")]
pub mod declaration;

pub mod layout;

#[cfg(feature = "tool")]
pub mod etcd;

#[cfg(feature = "tool")]
pub mod tree;

#[cfg(feature = "tool")]
pub mod systemd;

#[cfg(feature = "tool")]
pub mod pki;

#[cfg(feature = "tool")]
pub mod overlay;

#[cfg(feature = "tool")]
pub mod image;

#[cfg(feature = "tool")]
pub mod verify;

#[cfg(feature = "tool")]
pub mod process;

pub mod link;

#[cfg(feature = "tool")]
pub mod live;

#[cfg(feature = "tool")]
pub mod gate;

#[cfg(feature = "tool")]
pub mod cli;
