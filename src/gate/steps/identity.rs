//! The ids are those that were computed before anything was started.

use std::time::{Duration, Instant};

use super::{Stage, Step, Stop};

/// Cluster and member ids.
pub const STEP: Step = Step { name: "identity", claim: "cluster and member ids are those of the birth record", run };

fn run(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let birth = &stage.manifest()?.birth;
    let mut wrong = Vec::new();
    for machine in stage.registry() {
        let deadline = Instant::now() + Duration::from_secs(10);
        let node = &machine.node;
        let answer = stage.client(node, deadline)?.ask(deadline);
        let answer = answer.map_err(|t| Stop::Broken(format!("{node}: no status: {}", t.reason)))?;
        let want = birth.member_ids.get(node).map_or("none", String::as_str);
        if answer.member.to_string() != want {
            wrong.push(format!("{node}: member id {}, the birth record says {want}", answer.member));
        }
        if answer.cluster.to_string() != birth.cluster_id {
            wrong.push(format!("{node}: cluster id {}, the birth record says {}", answer.cluster, birth.cluster_id));
        }
        notes.push(format!("{node}: member {}, etcd {}", answer.member, answer.version));
    }
    notes.push(format!("cluster {}", birth.cluster_id));
    if wrong.is_empty() { Ok(()) } else { Err(Stop::Broken(wrong.join("\n"))) }
}
