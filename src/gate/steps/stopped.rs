//! A boot starts no registry and no announcer.

use std::time::Instant;

use super::{ANNOUNCER, BOOT, HANDLE, Stage, Step, Stop, announces, names, seconds};

/// All machines boot to the end, and etcd and the announcer stay off.
pub const STEP: Step =
    Step { name: "boots-stopped", claim: "every machine boots, and the registry is not started by it", run };

fn run(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let start = Instant::now();
    for machine in &stage.machines {
        // Until the last job is done: what is still queued might start it.
        let state = machine.wait_for(&["is-system-running"], &["running", "degraded"], BOOT)?;
        machine.wait_for(&["is-active", "multi-user.target"], &["active"], BOOT)?;
        if state == "degraded" {
            let failed = machine.systemctl(&["list-units", "--failed", "--plain", "--no-legend"])?;
            return Err(Stop::Broken(format!("{} boots degraded; failed units:\n{failed}", machine.node)));
        }
    }
    notes.push(format!("booted after {}: {}", seconds(start.elapsed()), names(&stage.machines)));
    let mut wrong = Vec::new();
    for machine in &stage.machines {
        let enabled = if machine.part.runs_registry() { "disabled" } else { "masked" };
        let mut want = vec![(["is-active", "etcd.service"], "inactive"), (["is-enabled", "etcd.service"], enabled)];
        if machine.part.runs_registry() {
            want.extend([(["is-active", HANDLE], "inactive"), (["is-enabled", HANDLE], "disabled")]);
        }
        if announces(machine)? {
            // It has no `[Install]`: only the handle starts it.
            want.extend([(["is-active", ANNOUNCER], "inactive"), (["is-enabled", ANNOUNCER], "static")]);
        }
        for (arguments, want) in want {
            let said = machine.systemctl(&arguments)?;
            if said != want {
                wrong.push(format!(
                    "{}: `systemctl {}` says `{said}`, not `{want}`",
                    machine.node,
                    arguments.join(" ")
                ));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Stop::Broken(wrong.join("\n"))) }
}
