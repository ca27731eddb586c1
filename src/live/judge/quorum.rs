//! Whether a quorum is there, and with it: which commands may be printed. Without one no membership can be changed, and
//! the data of the members that live may be the only copy.

use super::members::{reference, unstarted};
use super::{Declared, endpoints_without, label, member_at, ours, rule};
use crate::etcd::ids::Id;
use crate::finding::{Finding, Rule, Severity};
use crate::live::etcdctl::Step;
use crate::live::observe::{Member, Observed, View};

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

/// What is known of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    /// It answers and knows a leader.
    Serves,
    /// It answers and knows none.
    Leaderless,
    /// Something is there that does not answer as it should: TLS, a refusal.
    Heard,
    /// What answers there belongs to another cluster.
    Foreign,
    /// Nothing is heard of it.
    Silent,
    /// It was added and never started.
    Unstarted,
    /// Its endpoint is not among those that were asked.
    NotAsked,
}

impl Stand {
    /// It takes part, as far as can be seen.
    pub fn counts(self) -> bool {
        matches!(self, Stand::Serves | Stand::NotAsked)
    }
}

/// How a member of the list stands.
pub fn stand(declared: &Declared, observed: &Observed, live: &[Member], member: &Member) -> Stand {
    if let Some((_, answer)) = ours(declared, observed).find(|(_, answer)| answer.member == member.id) {
        return if answer.leader.is_some() { Stand::Serves } else { Stand::Leaderless };
    }
    if unstarted(member) {
        return Stand::Unstarted;
    }
    let here = |view: &&View| member_at(live, &view.endpoint).is_some_and(|at| at.id == member.id);
    match observed.views.iter().find(here).map(|view| &view.answer) {
        None => Stand::NotAsked,
        Some(Err(trouble)) if trouble.kind.is_silence() => Stand::Silent,
        Some(Err(_)) => Stand::Heard,
        Some(Ok(_)) => Stand::Foreign,
    }
}

/// The voters of the member list.
#[derive(Debug)]
pub struct Quorum<'a> {
    voters: Vec<(&'a Member, Stand)>,
}

impl<'a> Quorum<'a> {
    /// Of a member list.
    pub fn of(declared: &Declared, observed: &Observed, live: &'a [Member]) -> Quorum<'a> {
        let voters = live.iter().filter(|m| !m.learner);
        Quorum { voters: voters.map(|m| (m, stand(declared, observed, live, m))).collect() }
    }
    /// The voters.
    pub fn voters(&self) -> &[(&'a Member, Stand)] {
        &self.voters
    }
    /// How many there are.
    pub fn all(&self) -> usize {
        self.voters.len()
    }
    /// The majority.
    pub fn needed(&self) -> usize {
        majority(self.all())
    }
    /// How many stand so.
    pub fn count(&self, is: impl Fn(Stand) -> bool) -> usize {
        self.voters.iter().filter(|(_, stand)| is(*stand)).count()
    }
    /// No majority can be at work.
    pub fn lost(&self) -> bool {
        self.count(|stand| stand.counts() || stand == Stand::Heard) < self.needed()
    }
    /// Voters, and those of them that take part, when a member is removed.
    fn without(&self, id: Id) -> (usize, usize) {
        let left = || self.voters.iter().filter(move |(member, _)| member.id != id);
        (left().count(), left().filter(|(_, stand)| stand.counts()).count())
    }
    /// True when, after a member's removal, one more loss leaves no majority.
    pub fn one_more_stops(&self, id: Id) -> bool {
        let (all, up) = self.without(id);
        up <= majority(all)
    }
}

fn majority(voters: usize) -> usize {
    voters / 2 + 1
}

/// Says when nothing can be written.
pub fn judge(declared: &Declared, observed: &Observed, live: &[Member], out: &mut Vec<Finding>) {
    let quorum = Quorum::of(declared, observed, live);
    if !quorum.lost() {
        return;
    }
    let (all, needed) = (quorum.all(), quorum.needed());
    let mut away: Vec<String> = quorum
        .voters
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
    let quorum = Quorum::of(declared, observed, &live);
    let (all, needed, up) = (quorum.all(), quorum.needed(), quorum.count(Stand::counts));
    if up < needed {
        return Some(format!(
            "{up} of {all} voters answer and know a leader, {needed} are needed: first mend what is said of the others"
        ));
    }
    if let Change::Removal(id) = change {
        let (all, up) = quorum.without(id);
        if up < majority(all) {
            return Some(format!(
                "without it {up} of {all} voters are left, {} are needed: first bring back what is away",
                majority(all)
            ));
        }
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
