//! The gate: boots the built images on a bridge of this host, from the very same bytes, and judges what they do.
//!
//! Three processes, so that nothing is left behind however it ends:
//! - the one the user started ([`outer`]) only watches: it holds one end of a pipe to
//! - the janitor ([`janitor`]), which makes a control group, starts the next, and when that ends, or the pipe does
//!   (the user's process was interrupted or killed), kills all and removes the control group;
//! - the inside ([`inside`]) is init of its own PID namespace and lives in its own mount, network, IPC and UTS
//!   namespaces. All it makes (machines, interfaces, mounts, files on a tmpfs) dies with it.

pub mod bridge;
pub mod cgroup;
pub mod inside;
pub mod janitor;
pub mod logs;
pub mod machine;
pub mod outer;
pub mod plan;
pub mod report;
pub mod steps;
pub mod unpack;
pub mod wait;

pub use outer::{NotCarriedOut, Options, run};
pub use plan::Plan;
