//! What is true of systemd, over a [`crate::tree::Tree`]: unit files, search paths, aliases, masks, drop-ins,
//! presets and SysV links. Pure: no I/O, and no running systemd is asked.

pub mod boot;
pub mod commands;
pub mod edges;
pub mod enabled;
pub mod fstab;
pub mod glob;
pub mod install;
pub mod name;
pub mod preset;
pub mod search;
pub mod sysv;
pub mod tmpfiles;
pub mod triggers;
pub mod unit_file;
pub mod units;
pub mod version;

#[cfg(test)]
pub(crate) mod testing;
