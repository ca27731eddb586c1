//! The registry comes together when its members are started.

use std::time::Instant;

use super::{Stage, Step, Stop, TOGETHER, handle, names, seconds};

/// All voters.
pub const VOTERS: Step = Step { name: "quorum", claim: "started on all voters, the registry forms a quorum", run };

/// The one control plane.
pub const CONTROL_PLANE: Step =
    Step { name: "control-plane", claim: "started on the control plane, the registry is up", run };

fn run(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let start = Instant::now();
    for machine in stage.registry() {
        handle::start(machine)?;
    }
    for machine in stage.registry() {
        // Type=notify: etcd is `active` once it has joined a quorum and serves clients.
        if let Err(late) = machine.wait_for(&["is-active", "etcd.service"], &["active"], TOGETHER) {
            let log =
                machine.run(&["journalctl", "--no-pager", "--output=cat", "--lines=10", "--unit=etcd.service"])?;
            return Err(Stop::Broken(format!("{late}\n{}", log.text().trim())));
        }
    }
    notes.push(format!("serving after {}: {}", seconds(start.elapsed()), names(stage.registry())));
    Ok(())
}
