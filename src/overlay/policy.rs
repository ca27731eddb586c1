//! The base policy: what holds in every image, whatever its profile names (design, section 6).
//!
//! It belongs to the overlay `mesh`, and is code because it depends on the image's target and the node's part, which a
//! manifest cannot say.

use crate::declaration::{Mesh, Part, Target, UnitState};
use crate::tree::{Tree, TreePath};

/// The overlay whose policy this is; every profile has it first.
pub const OVERLAY: &str = "mesh";

/// Debian's unit of the registry.
pub const REGISTRY_UNIT: &str = "etcd.service";

/// Units of the registry, which no overlay and no profile may enable: an image is stopped until somebody starts it.
pub const STOPPED_ALWAYS: [&str; 5] =
    [REGISTRY_UNIT, "etcd2.service", "mesh-registry.target", "mesh-preflight.service", "mesh-agent.service"];

/// systemd's units that set the clock and say when it is set (systemd-time-wait-sync.service(8)).
const TIME_UNITS: [&str; 2] = ["systemd-timesyncd.service", "systemd-time-wait-sync.service"];

/// Packages that the policy asks of the base.
pub fn packages(mesh: &Mesh) -> Vec<&'static str> {
    match mesh.image.target {
        // A virtual machine without udev has no interface names and no devices; a container's host cares for both.
        Target::Machine => vec!["systemd-timesyncd", "udev"],
        Target::Container | Target::UnprivilegedContainer => Vec::new(),
    }
}

/// Unit states, each with the reason.
pub fn units(mesh: &Mesh, part: Part) -> Vec<(&'static str, UnitState, &'static str)> {
    let registry = match part.runs_registry() {
        true => (REGISTRY_UNIT, UnitState::Stopped, "only mesh-registry.target starts the registry"),
        false => (REGISTRY_UNIT, UnitState::Masked, "this part of the mesh runs no registry"),
    };
    let time = match mesh.image.target {
        Target::Machine => (UnitState::Enabled, "a machine keeps its own time"),
        Target::Container | Target::UnprivilegedContainer => (UnitState::Stopped, "the host keeps the time"),
    };
    std::iter::once(registry).chain(TIME_UNITS.map(|unit| (unit, time.0, time.1))).collect()
}

/// A file that the policy puts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Absolute path.
    pub path: &'static str,
    /// Mode of the file.
    pub mode: u16,
    /// Name of the template among the policy's [`TEMPLATES`].
    pub template: &'static str,
}

/// Name and text of the policy's own templates.
pub const TEMPLATES: [(&str, &str); 1] = [("<policy>/mailname", "{{ node.fqdn }}\n")];

/// Files that depend on what the base has.
pub fn files(base: &Tree) -> Vec<File> {
    let mailname = TreePath::parse("/etc/mailname").ok().filter(|path| base.get(path).is_some());
    mailname.map(|_| File { path: "/etc/mailname", mode: 0o644, template: TEMPLATES[0].0 }).into_iter().collect()
}
