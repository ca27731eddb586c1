//! Whether a quorum is there, and with it: which commands may be printed. Without one no membership can be changed, and
//! the data of the members that live may be the only copy.

use super::members::reference;
use super::{Declared, endpoints_without, label, rule};
use crate::etcd::ids::Id;
use crate::finding::{Finding, Rule, Severity};
use crate::live::etcdctl::Step;
use crate::live::members::votes::{Quorum, Stand};
use crate::live::observe::{Member, Observed};

/// No writes.
pub static NO_QUORUM: Rule = rule(
    "live-no-quorum",
    Severity::Error,
    "too few voters answer: nothing can be written",
    "More than half of all voters in the member list must run and reach each other, else nothing is written and no \
     member can be added, removed or promoted. What is down must come back with its data; once a majority does, the \
     registry goes on by itself. When so many data directories are lost that it cannot, the registry is restored from \
     a backup, as a new generation. Never empty /var/lib/etcd of a member that still runs: it may be the only copy left. \
     So the check prints no commands that remove or replace a member until a quorum is there. Tested by the member \
     list and by which voters answer and know a leader; one that runs and refuses this client is counted as running.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&NO_QUORUM];

/// Says when nothing can be written.
pub fn judge(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    let quorum = Quorum::of(declared.cluster, observed, live);
    if !quorum.lost() {
        return;
    }
    let (all, needed) = (quorum.votes().all, quorum.votes().needed());
    let mut away: Vec<String> = quorum
        .voters()
        .iter()
        .filter(|(_, stand)| matches!(stand, Stand::Silent | Stand::Unstarted | Stand::Foreign))
        .map(|(member, _)| label(member))
        .collect();
    away.sort();
    let there = all - away.len();
    let (text, help) = if there < needed {
        let which = match needed - there {
            n if n == away.len() => away.join(" and "),
            n => format!("{n} of {}", away.join(", ")),
        };
        let text = format!("{there} of {all} voters answer, {needed} are needed: there are no writes now");
        let help = format!(
            "bring back {which} with its data: `systemctl enable --now mesh-registry.target` there; if that data is \
             lost, restore the registry from a backup"
        );
        (text, help)
    } else {
        let text =
            format!("{there} of {all} voters answer, and no {needed} of them know a leader: there are no writes now");
        let help =
            "they run and do not reach each other: look at port 2380 between them, and at `journalctl -u etcd -e`";
        (text, help.to_owned())
    };
    let note = "remove no member, and never the data of one that lives: it may be the only copy left";
    out.push(NO_QUORUM.finding("the registry", text).note(note).help(help));
}

/// What a sequence of commands does to the member list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is about no member that could not carry it out itself.
    Any,
    /// It is about this member, and the others carry it out.
    Of(Id),
    /// It removes this member.
    Removal(Id),
}

impl Change {
    /// Removal of the member, when there is one.
    pub fn removal_of(member: Option<&Member>) -> Change {
        member.map_or(Change::Any, |member| Change::Removal(member.id))
    }
    fn member(self) -> Option<Id> {
        match self {
            Change::Any => None,
            Change::Of(id) | Change::Removal(id) => Some(id),
        }
    }
}

/// Why a change cannot be carried out now, or would cost the quorum.
pub fn obstacle(declared: &Declared, observed: &Observed, change: Change) -> Option<String> {
    let Some(live) = reference(declared, observed) else {
        return Some("no member gives its member list".to_owned());
    };
    let quorum = Quorum::of(declared.cluster, observed, &live);
    if let Some(why) = quorum.votes().obstacle() {
        return Some(why);
    }
    if let Change::Removal(id) = change
        && let Some(why) = quorum.without(id).obstacle_to_removal()
    {
        return Some(why);
    }
    let none = endpoints_without(declared, observed, change.member()).is_empty();
    none.then(|| "no other voter was asked that could carry it out: check again without `--endpoint`".to_owned())
}

/// Adds commands to a finding, or why there are none.
pub fn commands(
    declared: &Declared,
    observed: &Observed,
    finding: Finding,
    change: Change,
    steps: Vec<Step>,
) -> Finding {
    match obstacle(declared, observed, change) {
        Some(why) => finding.note(format!("no commands now: {why}")),
        None => declared.etcdctl.steps(finding, &endpoints_without(declared, observed, change.member()), steps),
    }
}
