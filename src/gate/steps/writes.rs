//! Writes go on.

use std::time::{Duration, Instant};

use super::{AT_ONCE, HANDLE, Stage, Step, Stop, TOGETHER, handle, seconds};
use crate::gate::wait;

/// The key that is written and removed again.
const KEY: &str = "/gate/marker";

/// One voter is stopped: the leader, if it can be told, which is the hardest to lose.
pub const ONE_VOTER_AWAY: Step = Step {
    name: "writes-go-on",
    claim: "with one voter stopped the registry takes writes, and the voter catches up",
    run: away,
};

/// The control plane alone.
pub const CONTROL_PLANE: Step = Step { name: "writes", claim: "the control plane takes writes", run: alone };

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn put(stage: &Stage<'_>, node: &str, value: &str) -> Result<(), String> {
    let mut client = stage.client(node, soon()).map_err(|stop| format!("{stop:?}"))?;
    client.put(KEY, value, soon()).map_err(|t| t.reason)
}

/// Reads the key through one node and compares it.
fn expect(stage: &Stage<'_>, node: &str, want: Option<&str>) -> Result<(), Stop> {
    let got = stage.client(node, soon())?.get(KEY, soon());
    let got = got.map_err(|t| Stop::Broken(format!("{node}: cannot read {KEY}: {}", t.reason)))?;
    if got.as_deref() == want { Ok(()) } else { Err(Stop::Broken(format!("{node}: {KEY} is {got:?}, not {want:?}"))) }
}

fn remove(stage: &Stage<'_>, node: &str) -> Result<(), Stop> {
    let removed = stage.client(node, soon())?.delete(KEY, soon());
    match removed {
        Ok(true) => Ok(()),
        Ok(false) => Err(Stop::Broken(format!("{node}: {KEY} was not there any more"))),
        Err(trouble) => Err(Stop::Broken(format!("{node}: cannot remove {KEY}: {}", trouble.reason))),
    }
}

fn leader(stage: &Stage<'_>) -> Result<String, Stop> {
    let birth = &stage.manifest()?.birth;
    for machine in stage.registry() {
        let answer = stage.client(&machine.node, soon())?.ask(soon());
        let Ok(Some(leader)) = answer.map(|a| a.leader) else { continue };
        if let Some((node, _)) = birth.member_ids.iter().find(|(_, id)| **id == leader.to_string()) {
            return Ok(node.clone());
        }
    }
    Err(Stop::Broken("no member knows a leader of the birth record".into()))
}

fn away(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let gone = leader(stage)?;
    let machine = |node: &str| stage.machines.iter().find(|m| m.node == node);
    let (Some(lost), Some(other)) = (machine(&gone), stage.registry().find(|m| m.node != gone)) else {
        return Err(Stop::Broken("there is no second voter".into()));
    };
    put(stage, &other.node, "before").map_err(|why| Stop::Broken(format!("{}: no write: {why}", other.node)))?;
    let stopped = lost.run(&["systemctl", "stop", HANDLE])?;
    if !stopped.status.success() {
        return Err(Stop::Broken(format!("{gone}: `systemctl stop {HANDLE}` fails: {}", stopped.log.trim())));
    }
    // Its end is ordered after the handle's, so the command returns a moment before it.
    lost.wait_for(&["is-active", "etcd.service"], &["inactive"], AT_ONCE)?;
    let start = Instant::now();
    let what = format!("a write through {} while {gone} is stopped", other.node);
    wait::until(TOGETHER, &what, || put(stage, &other.node, "during"))?;
    notes.push(format!(
        "{gone}, the leader, stopped: next write through {} after {}",
        other.node,
        seconds(start.elapsed())
    ));
    expect(stage, &other.node, Some("during"))?;
    handle::start(lost)?;
    lost.wait_for(&["is-active", "etcd.service"], &["active"], TOGETHER)?;
    expect(stage, &gone, Some("during"))?;
    notes.push(format!("{gone} started again and reads what was written without it"));
    remove(stage, &gone)?;
    expect(stage, &other.node, None)
}

fn alone(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let Some(node) = stage.registry().next().map(|m| m.node.clone()) else {
        return Err(Stop::Broken("no image has the control plane".into()));
    };
    put(stage, &node, "marker").map_err(|why| Stop::Broken(format!("{node}: no write: {why}")))?;
    expect(stage, &node, Some("marker"))?;
    remove(stage, &node)?;
    expect(stage, &node, None)?;
    notes.push(format!("{node}: written, read and removed {KEY}"));
    Ok(())
}
