//! Every node announces itself, as it is shipped: under its unit, with its own certificate.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::{ANNOUNCER, Stage, Step, Stop, TOGETHER, announces, handle, names, seconds};
use crate::finding::Failure;
use crate::gate::wait;
use crate::layout::text::Text;
use crate::layout::values::{self, Here, Identity};
use crate::layout::{HexId, Key, Label, Time, Uuid};

/// All nodes.
pub const STEP: Step =
    Step { name: "announces", claim: "every node announces itself in the registry, under a lease of its own", run };

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn run(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let start = Instant::now();
    let mut announcing = Vec::new();
    for machine in &stage.machines {
        if announces(machine)? {
            announcing.push(machine);
        }
    }
    if announcing.is_empty() {
        notes.push("no image has the announcer".to_owned());
        return Ok(());
    }
    for machine in announcing.iter().filter(|machine| !machine.part.runs_registry()) {
        handle::start(machine)?;
    }
    let Some(member) = stage.registry().next() else { return Err(Stop::Broken("no image runs the registry".into())) };
    let broken = |what: &str, why: String| Stop::Broken(format!("{}: {what}: {why}", member.node));
    let identity = identity(stage)?;
    let key = Key::Identity.to_string();
    let mut client = stage.client(&member.node, soon())?;
    client.put(&key, &identity, soon()).map_err(|t| broken("no identity can be written", t.reason))?;
    for machine in &announcing {
        let node = Label::of_text(&machine.node).map_err(|e| Failure::new(e.to_string()))?;
        let key = Key::Here(node).to_string();
        let look = || {
            let value = client.get(&key, soon()).map_err(|t| t.reason)?.ok_or(format!("{key} is not there"))?;
            values::decode::<Here>(value.as_bytes()).map_err(|e| format!("{key}: {e}"))
        };
        if let Err(late) = wait::until(TOGETHER, &machine.node, look) {
            let unit = format!("--unit={ANNOUNCER}");
            let log = machine.run(&["journalctl", "--no-pager", "--output=cat", "--lines=10", &unit])?;
            return Err(Stop::Broken(format!("{late}\n{}", log.text().trim())));
        }
    }
    notes.push(format!("announced after {}: {}", seconds(start.elapsed()), names(announcing)));
    Ok(())
}

/// The identity that `fitout registry bootstrap` would give the registry of these images.
fn identity(stage: &Stage<'_>) -> Result<String, Stop> {
    let manifest = stage.manifest()?;
    let failure = |what: &str, why: String| Failure::new(format!("{what} of the images cannot be used: {why}"));
    let identity = Identity {
        mesh: Label::of_text(&manifest.mesh).map_err(|e| failure("the mesh", e.to_string()))?,
        uuid: Uuid::of_random(*b"gate of a fitout"),
        generation: NonZeroU32::new(manifest.birth.generation).unwrap_or(NonZeroU32::MIN),
        token: manifest.birth.token.clone(),
        cluster_id: HexId::of_text(&manifest.birth.cluster_id).map_err(|e| failure("the cluster id", e.to_string()))?,
        born: Time::of(time::OffsetDateTime::now_utc()),
        restored_from: None,
        extra: Default::default(),
    };
    Ok(values::encode(&identity).map_err(|e| failure("the identity", e.to_string()))?)
}
