//! `fitout`: from one declaration and one common image, one image per node, proven before it boots.
//!
//! Data flows one way; a module uses only those listed above it (see `docs/architecture.md`).

pub mod finding;

pub mod regular;

pub mod declaration;

pub mod layout;

pub mod etcd;

pub mod tree;

pub mod systemd;

pub mod pki;

pub mod overlay;

pub mod image;

pub mod verify;

pub mod process;

pub mod live;

pub mod gate;

pub mod cli;
