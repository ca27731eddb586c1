//! How members stand, and what their votes can carry. Pure; `fitout check` and `fitout registry members` judge by the same.

use crate::etcd::ids::Id;
use crate::live::endpoint::Endpoint;
use crate::live::observe::{Answer, Member, Observed, View};

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

    /// In words, for tables.
    pub fn words(self) -> &'static str {
        match self {
            Stand::Serves => "serves",
            Stand::Leaderless => "knows no leader",
            Stand::Heard => "answers wrongly",
            Stand::Foreign => "of another registry",
            Stand::Silent => "silent",
            Stand::Unstarted => "never started",
            Stand::NotAsked => "not asked",
        }
    }
}

/// True when it never published its client URLs.
pub fn unstarted(member: &Member) -> bool {
    member.client_urls.is_empty()
}

/// The member with this peer URL.
pub fn at<'a>(live: &'a [Member], url: &str) -> Option<&'a Member> {
    live.iter().find(|m| m.peer_urls.iter().any(|u| u == url))
}

/// The member whose endpoint this is: the one with a peer URL on the same host.
pub fn member_at<'a>(live: &'a [Member], endpoint: &Endpoint) -> Option<&'a Member> {
    let host_of = |url: &String| Endpoint::of_peer_url(url).ok().map(|e| e.host);
    live.iter().find(|m| m.peer_urls.iter().filter_map(host_of).any(|host| host == endpoint.host))
}

/// The answers of one cluster, each with its endpoint as text. Without an id of the cluster there are none.
pub fn answers_of(cluster: Option<Id>, observed: &Observed) -> impl Iterator<Item = (String, &Answer)> {
    let answers = observed.views.iter().filter_map(|v| Some((v.endpoint.to_string(), v.answer.as_ref().ok()?)));
    answers.filter(move |(_, answer)| cluster == Some(answer.cluster))
}

/// How a member of the list stands. `cluster` is the id of the registry that is meant.
pub fn stand(cluster: Option<Id>, observed: &Observed, live: &[Member], member: &Member) -> Stand {
    if let Some((_, answer)) = answers_of(cluster, observed).find(|(_, answer)| answer.member == member.id) {
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

/// Voters of the member list, and those of them that take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Votes {
    /// Voters in the list.
    pub all: usize,
    /// Those that take part.
    pub up: usize,
}

impl Votes {
    /// The majority of all.
    pub fn needed(self) -> usize {
        self.all / 2 + 1
    }
    /// A majority takes part.
    pub fn hold(self) -> bool {
        self.up >= self.needed()
    }
    /// So many more may be lost before all writes stop.
    pub fn spare(self) -> usize {
        self.up.saturating_sub(self.needed())
    }
    /// With one voter less, which took part or not.
    pub fn without(self, took_part: bool) -> Votes {
        Votes { all: self.all.saturating_sub(1), up: self.up.saturating_sub(usize::from(took_part)) }
    }
    /// With one voter more, which takes part or not yet.
    pub fn with(self, takes_part: bool) -> Votes {
        Votes { all: self.all + 1, up: self.up + usize::from(takes_part) }
    }
    /// With one of the voters away.
    pub fn away(self) -> Votes {
        Votes { up: self.up.saturating_sub(1), ..self }
    }
    /// With one that was away back.
    pub fn back(self) -> Votes {
        Votes { up: self.all.min(self.up + 1), ..self }
    }
    /// Why nothing can be changed now; `None` when it can.
    pub fn obstacle(self) -> Option<String> {
        (!self.hold()).then(|| {
            format!(
                "{} of {} voters answer and know a leader, {} are needed: first mend what is said of the others",
                self.up,
                self.all,
                self.needed()
            )
        })
    }
    /// Why a removal that leaves these is not made; `None` when it may be.
    pub fn obstacle_to_removal(self) -> Option<String> {
        (!self.hold()).then(|| {
            format!(
                "without it {} of {} voters are left, {} are needed: first bring back what is away",
                self.up,
                self.all,
                self.needed()
            )
        })
    }
}

impl std::fmt::Display for Votes {
    /// `2 of 3 votes, 2 needed`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} votes, {} needed", self.up, self.all, self.needed())
    }
}

/// The voters of a member list, each with how it stands.
#[derive(Debug)]
pub struct Quorum<'a> {
    voters: Vec<(&'a Member, Stand)>,
}

impl<'a> Quorum<'a> {
    /// Of a member list.
    pub fn of(cluster: Option<Id>, observed: &Observed, live: &'a [Member]) -> Quorum<'a> {
        let voters = live.iter().filter(|m| !m.learner);
        Quorum { voters: voters.map(|m| (m, stand(cluster, observed, live, m))).collect() }
    }
    /// The voters.
    pub fn voters(&self) -> &[(&'a Member, Stand)] {
        &self.voters
    }
    /// How many stand so.
    pub fn count(&self, is: impl Fn(Stand) -> bool) -> usize {
        self.voters.iter().filter(|(_, stand)| is(*stand)).count()
    }
    /// All, and those that take part.
    pub fn votes(&self) -> Votes {
        Votes { all: self.voters.len(), up: self.count(Stand::counts) }
    }
    /// No majority can be at work.
    pub fn lost(&self) -> bool {
        self.count(|stand| stand.counts() || stand == Stand::Heard) < self.votes().needed()
    }
    /// The votes when a member is removed; a learner has none.
    pub fn without(&self, id: Id) -> Votes {
        match self.voters.iter().find(|(member, _)| member.id == id) {
            Some((_, stand)) => self.votes().without(stand.counts()),
            None => self.votes(),
        }
    }
    /// True when, after a member's removal, one more loss leaves no majority.
    pub fn one_more_stops(&self, id: Id) -> bool {
        self.without(id).spare() == 0
    }
}
