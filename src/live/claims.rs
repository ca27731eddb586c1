//! Releasing and transferring claims: an operator's explicit commands. From what was read to the one transaction that is
//! allowed, or the reason why not, is pure; [`carry_out`] does it.

use std::time::Instant;

use etcd_client::{Compare, CompareOp, Txn, TxnOp};

use crate::finding::{Finding, Rule, Severity};
use crate::layout::values::{Claim, encode};
use crate::layout::{Key, Label, Time};
use crate::live::client::{Client, Items};
use crate::live::handshake::{Kind, Trouble};
use crate::live::overview::Overview;

const fn rule(code: &'static str, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "registry", severity: Severity::Error, summary, explanation }
}

/// Nothing to release or transfer.
pub static CLAIM_ABSENT: Rule = rule(
    "registry-claim-absent",
    "nobody holds this claim",
    "A claim is one data set in one site: `/mesh/claim/SET/SITE`. A node makes it by itself when it starts a service with that \
     data set, if the declaration gives it the set in that site. `fitout registry claim list` shows which there are.",
);

/// The holder lives.
pub static CLAIM_LIVING: Rule = rule(
    "registry-claim-living",
    "the node that holds this claim is there",
    "The claim is what keeps a second replica of a data set out of a site. Its holder announces itself, so it may be writing \
     that data now: taken from it, two nodes of one site could hold the set. Stop the service on the node, or the node, and do \
     it again when it is gone from `fitout registry show`. `--force` takes the claim from a living node: only when you know \
     that it does not use the data.",
);

/// The declaration does not give it to this node.
pub static CLAIM_NOT_GRANTED: Rule = rule(
    "registry-claim-not-granted",
    "the declaration does not give this node the data set in this site",
    "A node may hold a claim only if mesh.toml has a service of that node with the data set, and the node is in the site. The \
     registry knows the declaration of the last bootstrap. Change mesh.toml and run `fitout registry bootstrap` first.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&CLAIM_ABSENT, &CLAIM_LIVING, &CLAIM_NOT_GRANTED];

/// What is to be done with a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The claim's key.
    pub key: Key,
    /// Who holds it now.
    pub holder: Label,
    /// What to write; `None`: it is removed.
    pub value: Option<Claim>,
    /// A key that must not be there when it is done: the holder's presence.
    pub absent: Option<Key>,
}

/// Takes a claim away.
///
/// # Errors
/// When nobody holds it, or its holder lives and this is not forced.
pub fn release(all: &Overview, set: &Label, site: &Label, now: Time, force: bool) -> Result<Step, Box<Finding>> {
    let key = Key::Claim { set: set.clone(), site: site.clone() };
    let Some(claim) = all.claims.get(&(set.clone(), site.clone())) else {
        let known: Vec<String> = all.claims.keys().map(|(set, site)| format!("`{set} {site}`")).collect();
        let known =
            if known.is_empty() { "there are no claims".to_owned() } else { format!("there are {}", known.join(", ")) };
        return Err(Box::new(CLAIM_ABSENT.finding(key.to_string(), format!("nobody holds it; {known}"))));
    };
    let holder = claim.node.clone();
    let present = all.nodes.get(&holder).is_some_and(|node| node.live.here.is_some());
    if present && !force {
        let standing = all.nodes.get(&holder).map_or("away", |node| all.standing(node, now).0.as_str());
        let text = format!("{holder} holds it since {}, and announces itself ({standing})", claim.since);
        let help = format!("stop the service on {holder} and wait until it is gone, or take it with `--force`");
        return Err(Box::new(CLAIM_LIVING.finding(key.to_string(), text).help(help)));
    }
    let absent = (!force).then(|| Key::Here(holder.clone()));
    Ok(Step { key, holder, value: None, absent })
}

/// Gives a claim to another node.
///
/// # Errors
/// As [`release`], and when the declaration does not give it to that node.
pub fn transfer(
    all: &Overview,
    set: &Label,
    site: &Label,
    to: &Label,
    now: Time,
    force: bool,
) -> Result<Step, Box<Finding>> {
    let may = all.claimants(set, site);
    if !may.contains(&to) {
        let listed: Vec<&str> = may.iter().map(|node| node.as_str()).collect();
        let who = if listed.is_empty() { "nobody may".to_owned() } else { format!("only {} may", listed.join(", ")) };
        let key = Key::Claim { set: set.clone(), site: site.clone() };
        let finding = CLAIM_NOT_GRANTED
            .finding(key.to_string(), format!("{to} may not hold it: {who}"))
            .help("declare it in mesh.toml and run `fitout registry bootstrap` first");
        return Err(Box::new(finding));
    }
    let step = release(all, set, site, now, force)?;
    let generation = all.identity.as_ref().map_or(std::num::NonZeroU32::MIN, |identity| identity.generation);
    let claim = Claim { node: to.clone(), since: now, generation, extra: crate::layout::field::Extra::new() };
    Ok(Step { value: Some(claim), ..step })
}

/// Does it in one transaction, if identity and claim are still what was read and the holder did not come back meanwhile.
/// False when not.
///
/// # Errors
/// When it is not answered in time, or refused.
pub fn carry_out(client: &Client, items: &Items, step: &Step, deadline: Instant) -> Result<bool, Trouble> {
    let same = |key: &Key| {
        let key = key.to_string();
        let item = items.items.iter().find(|item| item.key == key.as_bytes());
        Compare::mod_revision(key, CompareOp::Equal, item.map_or(0, |item| item.revision))
    };
    let mut compares = vec![same(&Key::Identity), same(&step.key)];
    compares.extend(step.absent.iter().map(|key| Compare::create_revision(key.to_string(), CompareOp::Equal, 0)));
    let operation = match &step.value {
        Some(claim) => {
            let value = encode(claim).map_err(|error| Trouble::new(Kind::Request, error.to_string()))?;
            TxnOp::put(step.key.to_string(), value, None)
        }
        None => TxnOp::delete(step.key.to_string(), None),
    };
    let txn = Txn::new().when(compares).and_then([operation]);
    Ok(client.with(deadline, async |mut client| client.txn(txn).await)?.succeeded())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::client::Item;

    fn overview(changes: &[(&str, Option<&str>)]) -> Overview {
        let node =
            |site: &str| format!(r#"{{"v":1,"site":"{site}","part":"client","address":"10.0.0.1","services":{{}}}}"#);
        let mut keys = std::collections::BTreeMap::from([
            (
                "/mesh/want/data/orders",
                r#"{"v":1,"replicas":2,"spread":"site","nodes":["a1","b1","c1"],"never_on":[]}"#.to_owned(),
            ),
            ("/mesh/want/node/a1", node("home")),
            ("/mesh/want/node/b1", node("home")),
            ("/mesh/want/node/c1", node("away")),
            (
                "/mesh/claim/orders/home",
                r#"{"v":1,"node":"a1","since":"2026-11-30T10:00:00Z","generation":1}"#.to_owned(),
            ),
        ]);
        for (key, value) in changes {
            match value {
                Some(value) => drop(keys.insert(key, (*value).to_owned())),
                None => drop(keys.remove(key)),
            }
        }
        let item = |(key, value): (&str, String)| Item { key: key.into(), value: value.into(), revision: 1, lease: 0 };
        let items: Vec<Item> = keys.into_iter().map(item).collect();
        Overview::of(&items)
    }

    const HERE: (&str, Option<&str>) = (
        "/mesh/live/a1/here",
        Some(
            r#"{"v":1,"boot_id":"6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f","generation":1,"since":"2026-11-30T10:00:00Z","agent":"x"}"#,
        ),
    );

    fn label(text: &str) -> Label {
        text.parse().unwrap()
    }

    #[test]
    fn a_claim_is_taken_only_from_who_is_gone() {
        let now = "2026-11-30T11:00:00Z".parse().unwrap();
        let released = |all: &Overview, set: &str, site: &str, force: bool| {
            release(all, &label(set), &label(site), now, force)
                .map(|step| (step.value, step.absent.map(|key| key.to_string())))
                .map_err(|finding| (finding.code, finding.message))
        };
        let here = Some("/mesh/live/a1/here".to_owned());
        assert_eq!(
            released(&overview(&[]), "orders", "home", false),
            Ok((None, here)),
            "and it must not come meanwhile"
        );
        let living = "a1 holds it since 2026-11-30T10:00:00Z, and announces itself (warn)".to_owned();
        assert_eq!(released(&overview(&[HERE]), "orders", "home", false), Err(("registry-claim-living", living)));
        assert_eq!(released(&overview(&[HERE]), "orders", "home", true), Ok((None, None)));
        let nobody = "nobody holds it; there are `orders home`".to_owned();
        assert_eq!(released(&overview(&[]), "orders", "away", true), Err(("registry-claim-absent", nobody)));
        let none = overview(&[("/mesh/claim/orders/home", None)]);
        let nobody = "nobody holds it; there are no claims".to_owned();
        assert_eq!(released(&none, "orders", "home", true), Err(("registry-claim-absent", nobody)));
    }

    #[test]
    fn a_claim_goes_only_to_who_may_have_it() {
        let now = "2026-11-30T11:00:00Z".parse().unwrap();
        let transferred = |to: &str, force| {
            transfer(&overview(&[HERE]), &label("orders"), &label("home"), &label(to), now, force)
                .map(|step| (step.holder.to_string(), step.value.map(|claim| (claim.node.to_string(), claim.since))))
                .map_err(|finding| (finding.code, finding.message))
        };
        assert_eq!(transferred("b1", true), Ok(("a1".into(), Some(("b1".into(), now)))));
        assert_eq!(transferred("b1", false).unwrap_err().0, "registry-claim-living");
        let only = "c1 may not hold it: only a1, b1 may".to_owned();
        assert_eq!(transferred("c1", true), Err(("registry-claim-not-granted", only)), "it is in another site");
        assert_eq!(transferred("nobody", true).unwrap_err().0, "registry-claim-not-granted");
    }
}
