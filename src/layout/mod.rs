//! The registry's key layout, schema 1: the grammar of its keys, its values, who writes what, and what needs a lease.
//!
//! `docs/registry.md` is the specification of what stands here, for other implementations. Pure: texts in, values out.
//! The agent on the nodes and `fitout` on the build host use this one module, so it depends on little.

pub mod access;
pub mod contents;
pub mod field;
pub mod keys;
pub mod lease;
pub mod text;
pub mod values;

pub use keys::{CertificateUse, Key, KeyError, ROOT, Writer};
pub use text::{HexId, Label, Serial, Sha256, TextError, Time, Uuid};
pub use values::{Value, ValueError};

/// The schema that this module reads and writes: `schema` of `/mesh/schema`.
pub const SCHEMA: u32 = 1;

/// `v` of every value of this schema.
pub const VALUE_VERSION: u64 = 1;

/// Most bytes of a value. etcd itself takes 1.5 MiB (`DefaultMaxRequestBytes` of its `embed/config.go`).
pub const LARGEST_VALUE: usize = 8 * 1024;

#[cfg(test)]
mod schema_tests;
