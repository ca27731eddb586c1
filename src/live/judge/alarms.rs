//! Rules about what members complain of: alarms, and what has no code of its own.

use std::collections::BTreeMap;

use super::quorum::{Change, commands};
use super::{Declared, answers, label, ours, rule};
use crate::etcd::ids::Id;
use crate::etcd::logs;
use crate::finding::{Finding, Rule, Severity};
use crate::live::etcdctl::Step;
use crate::live::observe::{Member, Observed};

/// No space.
pub static NOSPACE: Rule = rule(
    "live-alarm-nospace",
    Severity::Error,
    "the registry has reached its quota and takes no writes",
    "One member's backend reached `quota-backend-bytes`; since then the whole cluster refuses writes, until history \
     is compacted, each member is defragmented, one after the other, and the alarm is disarmed by hand (etcd's \
     maintenance guide). Compaction alone gives no space back, and the alarm stays until it is disarmed. Taken from the \
     members' status: asking for alarms would go through consensus.",
);
/// Corrupt.
pub static CORRUPT: Rule = rule(
    "live-alarm-corrupt",
    Severity::Error,
    "a member's data differ from the others'",
    "etcd compared hashes of the members' data and found one that differs; since then the cluster refuses reads and \
     writes. That member must be removed, and joined anew with an empty data directory; then the alarm is disarmed. \
     Which one it is, the alarm does not always say, and a corrupt leader blames the others (etcd \
     `etcdserver/corrupt.go`): so it is the one whose hash differs from a majority's, where that can be seen.",
);
/// Other complaints.
pub static COMPLAINT: Rule = rule(
    "live-member-complains",
    Severity::Warning,
    "a member reports an error of its own",
    "etcd lists what is wrong with a member in the `errors` of its status. What has a code of its own here (no leader, \
     the known alarms) is not repeated.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&NOSPACE, &CORRUPT, &COMPLAINT];

/// Kinds of alarm that have a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    NoSpace,
    Corrupt,
}

/// Judges the errors of every status.
pub fn judge(declared: &Declared, observed: &Observed, live: Option<&[Member]>, out: &mut Vec<Finding>) {
    let mut alarms: BTreeMap<(Alarm, Option<Id>), Vec<String>> = BTreeMap::new();
    for (endpoint, answer) in answers(observed) {
        for error in &answer.errors {
            match alarm(error) {
                Some(alarm) => alarms.entry(alarm).or_default().push(endpoint.clone()),
                None if error.contains("no leader") => {}
                None => {
                    let finding = COMPLAINT.finding(&endpoint, format!("member {} says: {error}", answer.member));
                    out.push(match logs::cause(error) {
                        Some(known) => finding.note(known.cause).help(known.help),
                        None => finding,
                    });
                }
            }
        }
    }
    let who = |id: Id| {
        let member = live.and_then(|live| live.iter().find(|m| m.id == id));
        member.map_or_else(|| format!("member {id}"), label)
    };
    for ((alarm, id), seen) in alarms {
        let at = format!("seen at {}", seen.join(", "));
        out.push(match alarm {
            Alarm::NoSpace => no_space(declared, observed, &id.map_or("a member".to_owned(), who)).note(at),
            Alarm::Corrupt => match differs(declared, observed).or(id) {
                Some(id) => corrupt(declared, observed, &who(id), id).note(at),
                None => corrupt_somewhere(declared, observed).note(at),
            },
        });
    }
}

/// The one member whose hash differs from that of all others, when those are a majority.
fn differs(declared: &Declared, observed: &Observed) -> Option<Id> {
    let hashes: Vec<(Id, u32)> = ours(declared, observed).filter_map(|(_, a)| Some((a.member, a.hash?))).collect();
    let others = |hash: u32| hashes.iter().filter(|(_, h)| *h != hash).count();
    let mut odd = hashes.iter().filter(|(_, hash)| hashes.len() > 2 && others(*hash) == hashes.len() - 1);
    let (id, _) = odd.next()?;
    let same = hashes.iter().filter(|(other, _)| other != id).all(|(_, hash)| others(*hash) == 1);
    (same && odd.next().is_none()).then_some(*id)
}

fn no_space(declared: &Declared, observed: &Observed, who: &str) -> Finding {
    let finding = NOSPACE
        .finding("the registry", format!("{who} has reached its quota: nothing is written any more"))
        .help("make room and disarm the alarm; if it fills again, raise `[registry] quota` and build anew");
    let revision =
        r#"$(etcdctl endpoint status --write-out=json | grep -o '"revision":[0-9]*' | head -n 1 | cut -d: -f2)"#;
    let steps = vec![
        Step::here(format!("etcdctl compact \"{revision}\"")),
        Step::here("etcdctl --command-timeout=60s defrag"),
        Step::here("etcdctl alarm disarm"),
    ];
    commands(declared, observed, finding, Change::Any, steps)
}

fn corrupt(declared: &Declared, observed: &Observed, who: &str, id: Id) -> Finding {
    let finding = CORRUPT
        .finding("the registry", format!("the data of {who} differ from the others'"))
        .help("remove that member, disarm the alarm, and join it anew: a check of its image then prints how");
    let steps = vec![Step::here(format!("etcdctl member remove {id}")), Step::here("etcdctl alarm disarm")];
    commands(declared, observed, finding, Change::Removal(id), steps)
}

fn corrupt_somewhere(declared: &Declared, observed: &Observed) -> Finding {
    let finding = CORRUPT
        .finding("the registry", "the data of one member differ from the others', and the alarm does not say whose")
        .help("the one with another hash than the others is to be removed and joined anew");
    let steps = vec![Step::here("etcdctl endpoint hashkv")];
    commands(declared, observed, finding, Change::Any, steps)
}

/// etcd prints an alarm of its status as `memberID:<decimal> alarm:<TYPE> `, without the id when that is 0.
fn alarm(error: &str) -> Option<(Alarm, Option<Id>)> {
    let (member, kind) = error.trim().split_once("alarm:")?;
    let id = match member.trim().strip_prefix("memberID:") {
        Some(id) => Some(Id(id.parse().ok()?)),
        None if member.is_empty() => None,
        None => return None,
    };
    match kind.trim() {
        "NOSPACE" => Some((Alarm::NoSpace, id)),
        "CORRUPT" => Some((Alarm::Corrupt, id)),
        _ => None,
    }
}
