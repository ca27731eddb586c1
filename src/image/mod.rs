//! Images: bases, parts, formats, the embedded manifest, the cache and the lock file.

pub mod agent;
pub mod base;
pub mod build;
pub mod cache;
pub mod compose;
pub mod gzip;
pub mod index;
pub mod lock;
pub mod manifest;
pub mod output;
pub mod parts;
pub mod peek;
pub mod progress;
pub mod project;
pub mod rules;
pub mod splice;
