//! The one handle never waits for a quorum, neither by hand nor at boot.

use std::time::Instant;

use super::{ANNOUNCER, AT_ONCE, BOOT, HANDLE, Stage, Step, Stop, announces, seconds};

/// A voter without the others.
pub const ALONE: Step = Step {
    name: "one-voter-alone",
    claim: "on a voter without quorum the handle returns at once, and a reboot reaches multi-user.target",
    run,
};

fn run(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let lone = stage.machines.iter_mut().find(|m| m.part.runs_registry());
    let Some(lone) = lone else { return Err(Stop::Broken("no image has a part in the registry".into())) };
    let took = start(lone)?;
    notes.push(format!("{}: `systemctl enable --now {HANDLE}` returned after {}", lone.node, seconds(took)));
    // It must really be trying: a handle that starts nothing returns at once, too.
    lone.wait_for(&["is-active", "etcd.service"], &["activating"], AT_ONCE)?;
    if announces(lone)? {
        // It runs without a registry, as its own user, with the key that the manager hands over.
        lone.wait_for(&["is-active", ANNOUNCER], &["active"], AT_ONCE)?;
        notes.push(format!("{}: {ANNOUNCER} runs and waits for the registry", lone.node));
    }
    let boot = Instant::now();
    lone.reboot(BOOT)??;
    lone.wait_for(&["is-active", "multi-user.target"], &["active"], BOOT)?;
    notes.push(format!("{}: down and up to multi-user.target in {}", lone.node, seconds(boot.elapsed())));
    lone.wait_for(&["is-active", "etcd.service"], &["activating"], AT_ONCE)?;
    notes.push(format!("{}: the handle is enabled, etcd waits for the others and holds nothing up", lone.node));
    Ok(())
}

/// Enables and starts the handle, and says how long that took.
pub fn start(machine: &super::Machine) -> Result<std::time::Duration, Stop> {
    let done = machine.run_within(&["systemctl", "enable", "--now", HANDLE], AT_ONCE);
    let done = done.map_err(|failure| Stop::Broken(failure.message))?;
    if done.status.success() {
        return Ok(done.took);
    }
    let log =
        machine.run(&["journalctl", "--no-pager", "--output=cat", "--lines=10", "--unit=mesh-preflight.service"])?;
    Err(Stop::Broken(format!(
        "{}: `systemctl enable --now {HANDLE}` fails: {}\n{}",
        machine.node,
        done.log.trim(),
        log.text().trim()
    )))
}
