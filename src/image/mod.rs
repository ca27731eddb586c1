//! Images: bases, parts, formats, the embedded manifest, the cache and the lock file.

pub mod manifest;
pub mod progress;
