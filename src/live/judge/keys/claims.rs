//! Which node holds the one replica of a data set in each site, also with this image added.

use std::collections::BTreeSet;

use super::{Few, Mine};
use crate::finding::{Finding, Rule, Severity};
use crate::layout::Key;
use crate::layout::contents::Contents;
use crate::layout::text::Label;
use crate::layout::values::{Part, WantData};
use crate::live::judge::rule;

/// A claim that the declaration does not give.
pub static FOREIGN: Rule = rule(
    "live-claim-foreign",
    Severity::Error,
    "a claim is held by a node that may not hold it",
    "`/mesh/claim/<set>/<site>` is of a node that is in another site, is not among the set's nodes in `/mesh/want/data/`, or is \
     not declared at all; or the set or the site is not. The replica that is declared there cannot be announced. Tested on \
     every claim.",
);
/// A service without its claim.
pub static UNCLAIMED: Rule = rule(
    "live-service-unclaimed",
    Severity::Error,
    "a service is announced ready without its claim",
    "A service with a data set may be announced ready only while its node holds the claim of the set in its site: else two \
     replicas could be in one site. An agent of this program never does so; something else wrote it, or the claim was taken \
     away while the service ran. Tested for every announced service with a data set.",
);
/// Two replicas in one site.
pub static PLACEMENT: Rule = rule(
    "live-placement",
    Severity::Error,
    "with this image two replicas of a data set would share a site",
    "The image's node is to hold a data set whose claim in its site another node holds. Its service would be refused and never \
     announced. Transfer or release the claim first. Tested against the claims and the declared nodes of the registry, with \
     this image added.",
);
/// Too few replicas.
pub static REPLICAS: Rule = rule(
    "live-replicas-few",
    Severity::Warning,
    "a data set has fewer claimed replicas than declared",
    "Counted are the sites with a claim by a node that may hold it, and the image's own site when its node is to hold the set: \
     it claims when it is started. Each site counts once.",
);
/// A replica on the arbiter.
pub static ARBITER: Rule = rule(
    "live-data-on-arbiter",
    Severity::Error,
    "a data set is declared on an arbiter, or claimed by one",
    "The arbiter is data-less: it is there to vote at a third place, often on a small machine with little disk, and its loss \
     must cost a vote and nothing else. Tested by the part of each node of the set, and of each claim's node.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&FOREIGN, &UNCLAIMED, &PLACEMENT, &REPLICAS, &ARBITER];

const CLAIMS: &str = "`fitout registry claim list` shows them; `release` and `transfer` change them";

pub(super) fn judge(mine: &Mine, contents: &Contents, out: &mut Vec<Finding>) {
    foreign(contents, out);
    unclaimed(contents, out);
    placement(mine, contents, out);
    replicas(mine, contents, out);
    arbiters(contents, out);
}

/// Why a node may not hold a claim.
fn refusal(contents: &Contents, set: &Label, site: &Label, node: &Label) -> Option<String> {
    let Some(data) = contents.data.get(set.as_str()) else { return Some(format!("no data set `{set}` is declared")) };
    if !contents.sites.contains_key(site.as_str()) {
        return Some(format!("no site `{site}` is declared"));
    }
    let Some(want) = contents.nodes.get(node.as_str()) else { return Some(format!("no node `{node}` is declared")) };
    if want.site != *site {
        return Some(format!("`{node}` is in site `{}`", want.site));
    }
    (!data.nodes.contains(node)).then(|| format!("the declaration gives `{set}` not to `{node}`"))
}

fn foreign(contents: &Contents, out: &mut Vec<Finding>) {
    let mut few = Few::new(out);
    for ((set, site), claim) in &contents.claims {
        if let Some(reason) = refusal(contents, set, site, &claim.node) {
            let key = Key::Claim { set: set.clone(), site: site.clone() };
            few.push(|| {
                FOREIGN.finding(key.to_string(), format!("is held by `{}`: {reason}", claim.node)).help(CLAIMS)
            });
        }
    }
}

fn unclaimed(contents: &Contents, out: &mut Vec<Finding>) {
    let mut few = Few::new(out);
    for (node, live) in &contents.live {
        let Some(want) = contents.nodes.get(node.as_str()) else { continue };
        for (service, _) in live.services.iter().filter(|(_, announced)| announced.ready) {
            let set = want.services.get(service.as_str()).and_then(|service| service.data_set.as_ref());
            let Some(set) = set else { continue };
            let claim = Key::Claim { set: set.clone(), site: want.site.clone() };
            let holder = contents.claims.get(&(set.clone(), want.site.clone())).map(|claim| &claim.node);
            if holder != Some(node) {
                let held = holder.map_or("nobody".to_owned(), |holder| format!("`{holder}`"));
                let key = Key::Service { node: node.clone(), service: service.clone() };
                few.push(|| {
                    UNCLAIMED
                        .finding(key.to_string(), format!("is ready, and `{claim}` is held by {held}"))
                        .help(format!("stop the service on `{node}` until it holds the claim; {CLAIMS}"))
                });
            }
        }
    }
}

/// The data sets of the image's node, as labels of the registry.
fn sets_of<'a>(mine: &'a Mine, contents: &'a Contents) -> impl Iterator<Item = (&'a Label, &'a WantData)> {
    let services = mine.services.iter().flat_map(|services| services.values());
    let sets: BTreeSet<&str> = services.filter_map(|service| service.data_set.as_deref()).collect();
    contents.data.iter().filter(move |(set, _)| sets.contains(set.as_str()))
}

fn placement(mine: &Mine, contents: &Contents, out: &mut Vec<Finding>) {
    for (set, data) in sets_of(mine, contents) {
        let held = contents.claims.iter().find(|((of, site), _)| of == set && site.as_str() == mine.site);
        if let Some(((_, site), claim)) = held.filter(|(_, claim)| claim.node.as_str() != mine.node) {
            let key = Key::Claim { set: set.clone(), site: site.clone() };
            let text = format!(
                "`{set}` in site `{site}` is claimed by `{}`, and this image brings it to `{}`",
                claim.node, mine.node
            );
            let help = format!(
                "`fitout registry claim transfer {set} {site} {}` when that node no longer holds the data",
                mine.node
            );
            out.push(PLACEMENT.finding(key.to_string(), text).help(help));
            continue;
        }
        let in_site =
            |node: &&Label| contents.nodes.get(node.as_str()).is_some_and(|want| want.site.as_str() == mine.site);
        let other = data.nodes.iter().filter(in_site).find(|node| node.as_str() != mine.node);
        if let Some(other) = other {
            let text = format!(
                "`{other}` of site `{}` is declared to hold `{set}`, and this image brings it to `{}`",
                mine.site, mine.node
            );
            let help =
                "two replicas never share a site: `fitout registry bootstrap` when the declaration has changed since";
            out.push(PLACEMENT.finding(Key::WantData(set.clone()).to_string(), text).help(help));
        }
    }
}

fn replicas(mine: &Mine, contents: &Contents, out: &mut Vec<Finding>) {
    let brought: BTreeSet<&Label> = sets_of(mine, contents).map(|(set, _)| set).collect();
    let mut few = Few::new(out);
    for (set, data) in &contents.data {
        let claims = contents.claims.iter().filter(|((of, _), _)| of == set);
        let valid = claims.filter(|((set, site), claim)| refusal(contents, set, site, &claim.node).is_none());
        let mut sites: BTreeSet<&str> = valid.map(|((_, site), _)| site.as_str()).collect();
        if brought.contains(set) {
            sites.insert(&mine.site);
        }
        if sites.len() < usize::from(data.replicas.get()) {
            few.push(|| {
                let text = format!("{} of {} replicas are claimed", sites.len(), data.replicas);
                let away: Vec<&str> =
                    data.nodes.iter().filter(|node| !holds(contents, set, node)).map(Label::as_str).collect();
                let finding = REPLICAS.finding(Key::WantData(set.clone()).to_string(), text);
                finding.help(format!("start the set's service on {}: it claims by itself", super::few(away)))
            });
        }
    }
}

fn holds(contents: &Contents, set: &Label, node: &Label) -> bool {
    contents.claims.iter().any(|((of, _), claim)| of == set && claim.node == *node)
}

fn arbiters(contents: &Contents, out: &mut Vec<Finding>) {
    let arbiter = |node: &Label| contents.nodes.get(node.as_str()).is_some_and(|want| want.part == Part::Arbiter);
    let mut few = Few::new(out);
    for (set, data) in &contents.data {
        for node in data.nodes.iter().filter(|node| arbiter(node)) {
            few.push(|| {
                let text = format!("`{node}` is an arbiter and is declared to hold it");
                ARBITER.finding(Key::WantData(set.clone()).to_string(), text).help("declare the set on a data node")
            });
        }
    }
    for ((set, site), claim) in contents.claims.iter().filter(|(_, claim)| arbiter(&claim.node)) {
        few.push(|| {
            let text = format!("is held by the arbiter `{}`", claim.node);
            let key = Key::Claim { set: set.clone(), site: site.clone() };
            ARBITER.finding(key.to_string(), text).help(CLAIMS)
        });
    }
}
