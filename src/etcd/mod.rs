//! What is true of etcd: configuration keys per version, ids, URL and source-address rules, known-bad versions,
//! log lines and their causes. Pure: no I/O.

pub mod birth;
pub mod config;
pub mod ids;
pub mod keys;
pub mod logs;
pub mod start;
pub mod urls;
pub mod versions;
