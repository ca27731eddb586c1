//! The overview for programs: one object each.

use serde_json::{Value as Json, json};

use super::Overview;
use super::tables::holder_of;
use crate::layout::{Label, Time};

/// All objects, in the order of the tables.
pub fn objects(all: &Overview, now: Time, revision: i64) -> Vec<Json> {
    let identity = all.identity.as_ref();
    let mut objects = vec![json!({
        "type": "registry",
        "mesh": identity.map(|i| i.mesh.as_str()),
        "uuid": identity.map(|i| i.uuid.as_str()),
        "generation": identity.map(|i| i.generation.get()),
        "cluster-id": identity.map(|i| i.cluster_id.to_string()),
        "schema": all.schema.as_ref().map(|s| s.schema.get()),
        "topology": all.quorum.as_ref().map(|q| q.topology.as_str()),
        "revision": revision,
    })];
    for (site, want) in &all.sites {
        objects.push(json!({"type": "registry-site", "site": site.as_str(), "kind": want.kind.as_str()}));
    }
    for (name, node) in &all.nodes {
        let (state, why) = all.standing(node, now);
        let want = node.want.as_ref();
        objects.push(json!({
            "type": "registry-node",
            "node": name.as_str(),
            "declared": want.is_some(),
            "site": want.map(|w| w.site.as_str()),
            "part": want.map(|w| w.part.as_str()),
            "address": want.map(|w| w.address.to_string()),
            "state": state.as_str(),
            "why": why,
            "since": node.live.here.as_ref().map(|h| h.since.to_string()),
            "image": node.live.here.as_ref().and_then(|h| h.image.as_ref()).map(|i| i.as_str()),
            "member-id": node.live.here.as_ref().and_then(|h| h.member_id).map(|id| id.to_string()),
            "checked": node.live.health.as_ref().map(|h| h.at.to_string()),
        }));
        for (service, offer) in &node.live.services {
            objects.push(json!({
                "type": "registry-service", "service": service.as_str(), "node": name.as_str(), "host": offer.host,
                "port": offer.port.get(), "ready": offer.ready,
            }));
        }
    }
    objects.extend(claims(all, now));
    for (name, node) in &all.nodes {
        for (purpose, certificate) in &node.live.certificates {
            objects.push(json!({
                "type": "registry-certificate", "node": name.as_str(), "use": purpose.to_string(),
                "serial": certificate.serial.as_str(), "not-after": certificate.not_after.to_string(),
                "days": certificate.not_after.since(now).div_euclid(86_400),
            }));
        }
        for ((time, _), backup) in &node.live.backups {
            objects.push(json!({
                "type": "registry-backup", "node": name.as_str(), "time": time.to_string(),
                "revision": backup.revision, "generation": backup.generation.get(), "sha256": backup.sha256.as_str(),
                "rehearsed": backup.rehearsed_at.map(|at| at.to_string()),
            }));
        }
    }
    for (key, reason) in &all.bad {
        objects.push(json!({"type": "registry-bad-key", "key": key, "reason": reason}));
    }
    objects
}

/// The claims.
pub fn claims(all: &Overview, now: Time) -> Vec<Json> {
    let one = |(set, site): (Label, Label)| {
        let (holder, state) = holder_of(all, &set, &site, now);
        let may: Vec<&str> = all.claimants(&set, &site).into_iter().map(Label::as_str).collect();
        let claim = all.claims.get(&(set.clone(), site.clone()));
        json!({
            "type": "claim", "data-set": set.as_str(), "site": site.as_str(),
            "node": holder.map(|node| node.to_string()), "state": state,
            "since": claim.map(|claim| claim.since.to_string()), "may": may,
        })
    };
    all.places().into_iter().map(one).collect()
}
