//! What the nodes announce and report, against what is wanted of them.

use super::{Few, Mine, count, few, wanted_node};
use crate::finding::{Finding, Rule, Severity};
use crate::layout::Key;
use crate::layout::contents::Contents;
use crate::layout::text::{Label, Time};
use crate::layout::values::State;
use crate::live::judge::rule;
use crate::live::overview::HEALTH_IS_OLD;

/// A node that nobody wants.
pub static ORPHAN: Rule = rule(
    "live-orphan",
    Severity::Warning,
    "somebody announces what nobody wants",
    "A node below `/mesh/live/` or `/mesh/ops/` has no key below `/mesh/want/node/`, or announces a service that the declaration \
     does not give it: it was taken out of the declaration and still runs, or its keys were left behind. Tested by name.",
);
/// A node that is away.
pub static AWAY: Rule = rule(
    "live-node-away",
    Severity::Warning,
    "a wanted node does not announce itself",
    "`/mesh/live/<node>/here` hangs on the node's lease: it is gone when the node, its agent or its line is. The image's own \
     node is left out: it may not have been started yet. Tested for every key of `/mesh/want/node/`.",
);
/// Too few of a service.
pub static FEW: Rule = rule(
    "live-service-few",
    Severity::Warning,
    "fewer nodes than declared have a service ready",
    "`/mesh/want/service/<service>` says with how many ready nodes the service counts as up. Counted are announcements of \
     this generation by wanted nodes with `\"ready\": true`.",
);
/// An announcement of an older generation.
pub static STALE: Rule = rule(
    "live-stale-generation",
    Severity::Warning,
    "an announcement is of another generation",
    "A snapshot holds the announcements of its time, and a restore brings them back with their leases: readers skip those whose \
     generation is not that of `/mesh/identity`. It ends with its lease, or the node runs an image of another generation. \
     Tested by `generation` of `/mesh/live/<node>/here`.",
);
/// A node that is ill.
pub static ILL: Rule = rule(
    "live-health",
    Severity::Warning,
    "a node reports that something is wrong",
    "`/mesh/live/<node>/health` has the state `warn` or `bad`; the checks in it say which. Tested for every node.",
);
/// An old report.
pub static OLD: Rule = rule(
    "live-health-old",
    Severity::Warning,
    "a node's last report is older than it may be, or of the future",
    "An agent reports on change and every five minutes. Any certificate of the client authority may keep another's lease alive, \
     so presence alone proves nothing: the time of the last report counts too. A report of the future is of a node whose \
     clock, or this host's, is wrong. Tested by `at`: fifteen minutes, and one of the future.",
);
/// A certificate that ends.
pub static CERTIFICATE: Rule = rule(
    "live-certificate-clock",
    Severity::Warning,
    "a node reports a certificate that ends soon, or has ended",
    "Agents report the dates of the node's certificates, the public ones of its services too, below `/mesh/ops/`. Renewal is the \
     clock of the mesh. Told when less than 30 days are left.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&ORPHAN, &AWAY, &FEW, &STALE, &ILL, &OLD, &CERTIFICATE];

/// How far the clocks of a mesh may be apart.
const FUTURE: i64 = 60;
const MONTH: i64 = 30 * 86_400;

pub(super) fn judge(mine: &Mine, contents: &Contents, now: i64, out: &mut Vec<Finding>) {
    orphans(contents, out);
    away(mine, contents, out);
    services(contents, out);
    health(contents, now, out);
    certificates(contents, now, out);
}

fn orphans(contents: &Contents, out: &mut Vec<Finding>) {
    let mut few = Few::new(out);
    for (node, live) in &contents.live {
        let Some(want) = contents.nodes.get(node.as_str()) else {
            few.push(|| {
                let text = format!("node `{node}` is not in the declaration");
                ORPHAN.finding(format!("/mesh/live/{node}/"), text).help(format!(
                    "stop it, or declare it and run `fitout registry bootstrap`; what it left goes with \
                     `etcdctl del --prefix /mesh/ops/{node}/`"
                ))
            });
            continue;
        };
        for service in live.services.keys().filter(|name| !want.services.contains_key(name.as_str())) {
            let key = Key::Service { node: node.clone(), service: service.clone() };
            few.push(|| {
                let text = format!("the declaration gives `{node}` no service `{service}`");
                ORPHAN.finding(key.to_string(), text).help("build and ship its image anew, or declare the service")
            });
        }
    }
}

/// Whether a node's announcement counts: wanted, and of this generation.
fn counts(contents: &Contents, node: &Label) -> bool {
    let here = contents.live.get(node.as_str()).and_then(|live| live.here.as_ref());
    let generation = contents.identity.as_ref().map(|(identity, _)| identity.generation);
    here.is_some_and(|here| generation.is_none_or(|g| here.generation == g)) && wanted_node(contents, node.as_str())
}

fn away(mine: &Mine, contents: &Contents, out: &mut Vec<Finding>) {
    let here = |node: &Label| contents.live.get(node.as_str()).is_some_and(|live| live.here.is_some());
    let away: Vec<&str> =
        contents.nodes.keys().filter(|node| !here(node)).map(Label::as_str).filter(|n| *n != mine.node).collect();
    if !away.is_empty() {
        let verb = if away.len() == 1 { "does" } else { "do" };
        let text = format!("{} {verb} not announce themselves: {}", count(away.len(), "node", "nodes"), few(away));
        let text = text.replacen("1 node does not announce themselves", "1 node does not announce itself", 1);
        out.push(AWAY.finding("/mesh/live/", text).help("on each: `systemctl status mesh-agent`"));
    }
    let Some((identity, _)) = &contents.identity else { return };
    let mut few = Few::new(out);
    for (node, live) in &contents.live {
        let Some(stale) = live.here.as_ref().filter(|here| here.generation != identity.generation) else { continue };
        few.push(|| {
            let text = format!("is of generation {}, and the registry of {}", stale.generation, identity.generation);
            let help = "when it does not end with its lease, build and ship the node's image anew";
            STALE.finding(Key::Here(node.clone()).to_string(), text).help(help)
        });
    }
}

fn services(contents: &Contents, out: &mut Vec<Finding>) {
    let mut few = Few::new(out);
    for (name, want) in &contents.services {
        let ready = |node: &&Label| contents.live[node.as_str()].services.get(name.as_str()).is_some_and(|s| s.ready);
        let ready = contents.live.keys().filter(|node| counts(contents, node)).filter(ready).count();
        if ready < usize::from(want.least_count.get()) {
            few.push(|| {
                let text = format!(
                    "{} it ready, and at least {} must",
                    count(ready, "node has", "nodes have"),
                    want.least_count
                );
                let help = "`fitout registry show` has who offers it and why not";
                FEW.finding(Key::WantService(name.clone()).to_string(), text).help(help)
            });
        }
    }
}

fn health(contents: &Contents, now: i64, out: &mut Vec<Finding>) {
    let (mut ill, mut old) = (Vec::new(), Vec::new());
    {
        let (mut ill, mut old) = (Few::new(&mut ill), Few::new(&mut old));
        for (node, live) in contents.live.iter().filter(|(node, _)| counts(contents, node)) {
            let key = || Key::Health(node.clone()).to_string();
            let Some(health) = &live.health else { continue };
            if health.state != State::Ok {
                ill.push(|| {
                    let finding = ILL.finding(key(), format!("node `{node}` reports `{}`", health.state.as_str()));
                    let bad = health.checks.iter().filter(|(_, check)| check.state != State::Ok);
                    let said = |(name, check): (&Label, &crate::layout::values::Check)| {
                        format!("{name}: {}", check.text.as_deref().unwrap_or(check.state.as_str()))
                    };
                    bad.map(said).fold(finding, Finding::note).help("look at what it names on that node")
                });
            }
            let age = now - health.at.seconds();
            if !(-FUTURE..=HEALTH_IS_OLD).contains(&age) {
                old.push(|| {
                    let text = if age < 0 {
                        format!("is {} s in the future of this host", -age)
                    } else {
                        format!("is {} min old; an agent reports every 5 min", age / 60)
                    };
                    let help = "on that node: `systemctl status mesh-agent`, and `timedatectl` here and there";
                    OLD.finding(key(), text).help(help)
                });
            }
        }
    }
    out.extend(ill);
    out.extend(old);
}

fn certificates(contents: &Contents, now: i64, out: &mut Vec<Finding>) {
    let mut few = Few::new(out);
    for (node, live) in contents.live.iter().filter(|(node, _)| wanted_node(contents, node.as_str())) {
        for (purpose, certificate) in &live.certificates {
            let left = certificate.not_after.seconds() - now;
            if left < MONTH {
                let key = Key::Certificate { node: node.clone(), purpose: purpose.clone() };
                few.push(|| {
                    CERTIFICATE.finding(key.to_string(), ends(certificate.not_after, left)).help(
                    "`fitout pki renew` and a new image for the node's own; a public one is renewed by its own service",
                )
                });
            }
        }
    }
}

fn ends(not_after: Time, left: i64) -> String {
    if left <= 0 {
        format!("has ended on {not_after}")
    } else {
        format!("ends in {} days, on {not_after}", left / 86_400)
    }
}
