//! The declaration: `mesh.toml`, profiles and overlay manifests become a typed model with source spans.
//!
//! [`load`] reads the files, everything else is pure.

pub mod model;

pub use model::*;
