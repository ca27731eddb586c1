//! Acting on the living registry: the requests by which members come and go.

use std::time::{Duration, Instant};

use etcd_client::MemberAddOptions;

use super::apply::{Acts, Refusal};
use super::look::{IN_SYNC, Look, Registry};
use super::plan::{Seen, Step};
use crate::etcd::ids::Id;
use crate::finding::Failure;
use crate::live::client::Client;
use crate::live::endpoint::Endpoint;
use crate::live::handshake::{Kind, Trouble};
use crate::live::observe::Member;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// What etcd refuses now and may allow later (etcd `api/v3rpc/rpctypes/error.go`).
const LATER: &[&str] = &[
    "unhealthy cluster",
    "in sync with leader",
    "not enough started members",
    "leader changed",
    "no leader",
    "request timed out",
    "not found",
    "transport error",
];

/// The living registry.
#[derive(Debug)]
pub struct Living<'a> {
    registry: Registry<'a>,
    look: Option<Look>,
    begin: Instant,
}

impl<'a> Living<'a> {
    /// Nothing is asked yet.
    pub fn new(registry: Registry<'a>) -> Living<'a> {
        Living { registry, look: None, begin: Instant::now() }
    }

    /// What it was made of.
    pub fn into_registry(self) -> Registry<'a> {
        self.registry
    }

    /// A voter that serves and is not the one that the step is about; the leader, if it may be.
    fn whom(&self, look: &Look, about: Option<Id>) -> Option<Endpoint> {
        let mut all: Vec<&Seen> = look
            .seen
            .iter()
            .filter(|s| !s.member.learner && s.stand.counts() && Some(s.member.id) != about)
            .filter(|s| look.answers.contains_key(&s.member.id))
            .collect();
        all.sort_by_key(|s| !s.leads);
        all.first().and_then(|s| look.answers.get(&s.member.id)).map(|(endpoint, _)| endpoint.clone())
    }

    fn carry_out(&self, step: &Step, look: &Look) -> Result<(), Refusal> {
        let about = match step {
            Step::Remove { id, .. } => Some(*id),
            // A lone voter changes itself; of several another one changes it.
            Step::Update { id, .. } => Some(*id).filter(|_| look.seen.iter().filter(|s| !s.member.learner).count() > 1),
            _ => None,
        };
        let id = match step {
            Step::Promote { peer_url, .. } => Some(self.in_sync(look, peer_url)?),
            _ => None,
        };
        let Some(endpoint) = self.whom(look, about) else {
            return Err(Refusal::NotYet("no other voter answers that could carry it out".to_owned()));
        };
        let deadline = Instant::now() + self.registry.timeout;
        let client = Client::new(&endpoint, self.registry.credentials, deadline).map_err(refused)?;
        // A read that needs the quorum: what this member then lists is no older (a configuration change is an entry of the
        // same log).
        client.with(deadline, async |mut client| client.get("/mesh/identity", None).await).map_err(refused)?;
        let list = client.with(deadline, async |mut client| client.member_list().await).map_err(refused)?;
        let now = list.members().iter().map(|m| (Id(m.id()), m.is_learner(), m.peer_urls().to_vec()));
        if !same(now.collect(), &look.list()) {
            return Err(Refusal::NotYet("the member list has just changed".to_owned()));
        }
        match step {
            Step::Remove { id, .. } => client.with(deadline, async |mut c| c.member_remove(id.0).await).map(drop),
            Step::Update { id, to, .. } => {
                client.with(deadline, async |mut c| c.member_update(id.0, [to.clone()]).await).map(drop)
            }
            Step::Add { peer_url, learner, .. } => {
                let options = learner.then(|| MemberAddOptions::new().with_is_learner());
                client.with(deadline, async |mut c| c.member_add([peer_url.clone()], options).await).map(drop)
            }
            Step::Promote { .. } => {
                let id = id.unwrap_or(Id(0));
                client.with(deadline, async |mut c| c.member_promote(id.0).await).map(drop)
            }
            Step::Start { .. } | Step::Rename { .. } => Ok(()),
        }
        .map_err(refused)
    }

    /// The learner's id, once it has all that the leader has. etcd checks it too, and before 3.4.24 and 3.5.7 not always
    /// (etcd#15096).
    fn in_sync(&self, look: &Look, peer_url: &str) -> Result<Id, Refusal> {
        let learner = look.seen.iter().find(|s| s.member.peer_urls.iter().any(|u| u == peer_url));
        let Some(learner) = learner else {
            return Err(Refusal::NotYet(format!("no member has the peer URL {peer_url} yet")));
        };
        match look.behind(learner.member.id) {
            Some(behind) if behind <= IN_SYNC => Ok(learner.member.id),
            Some(behind) => Err(Refusal::NotYet(format!("it is {behind} entries behind the leader"))),
            None => Err(Refusal::NotYet("it does not say yet how far it has come".to_owned())),
        }
    }
}

impl Acts for Living<'_> {
    fn look(&mut self) -> Result<Vec<Seen>, Failure> {
        let look = self.registry.look()?;
        let seen = look.seen.clone();
        self.look = Some(look);
        Ok(seen)
    }

    fn take(&mut self, step: &Step) -> Result<(), Refusal> {
        match &self.look {
            Some(look) => self.carry_out(step, look),
            None => Err(Refusal::NotYet("nothing was seen yet".to_owned())),
        }
    }

    fn now(&mut self) -> Duration {
        self.begin.elapsed()
    }

    fn pause(&mut self) {
        std::thread::sleep(PAUSE);
    }
}

/// Whether two lists are of the same members, votes and peer URLs.
fn same(mut now: Vec<(Id, bool, Vec<String>)>, seen: &[Member]) -> bool {
    let mut seen: Vec<_> = seen.iter().map(|m| (m.id, m.learner, m.peer_urls.clone())).collect();
    now.sort();
    seen.sort();
    now == seen
}

/// When nothing was heard the outcome is not known: the next look tells.
fn refused(trouble: Trouble) -> Refusal {
    let reason = trouble.reason;
    if trouble.kind.is_silence() || LATER.iter().any(|later| reason.contains(later)) {
        return Refusal::NotYet(reason);
    }
    let failure = Failure::new(format!("the registry refuses: {reason}"));
    let denied = trouble.kind == Kind::Request && reason.contains("permission denied");
    Refusal::Never(if denied {
        failure.help("members are changed by an operator, who has the role root: `fitout registry bootstrap` gives it")
    } else {
        failure.help("`fitout registry members` shows what is there now; the steps that are done stay done")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_waited_for_and_what_does_not_is_said() {
        for (kind, reason, later) in [
            (Kind::Request, "etcdserver: unhealthy cluster", true),
            (Kind::Request, "etcdserver: can only promote a learner member which is in sync with leader", true),
            (Kind::Request, "etcdserver: re-configuration failed due to not enough started members", true),
            (Kind::Request, "etcdserver: leader changed", true),
            (Kind::Silent, "no answer in time", true),
            (Kind::Request, "etcdserver: permission denied", false),
            (Kind::Request, "etcdserver: too many learner members in cluster", false),
            (Kind::Request, "etcdserver: Peer URLs already exists", false),
        ] {
            let refusal = refused(Trouble::new(kind, reason));
            assert_eq!(matches!(refusal, Refusal::NotYet(_)), later, "{reason}: {refusal:?}");
        }
    }

    #[test]
    fn a_list_that_changed_is_another_one() {
        let member = |id: u64, learner| Member {
            id: Id(id),
            name: String::new(),
            peer_urls: vec![format!("https://10.0.0.{id}:2380")],
            client_urls: vec![],
            learner,
        };
        let of = |m: &Member| (m.id, m.learner, m.peer_urls.clone());
        let (a, b) = (member(1, false), member(2, true));
        assert!(same(vec![of(&b), of(&a)], &[a.clone(), b.clone()]), "the order does not matter");
        assert!(!same(vec![of(&a)], &[a.clone(), b.clone()]));
        assert!(!same(vec![of(&a), of(&member(2, false))], &[a, b]), "a vote is a change");
    }
}
