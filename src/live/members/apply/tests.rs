//! What happens while a plan is carried out, on a registry that follows etcd's rules.

use super::super::plan::model::{Model, all_wanted, healthy};
use super::*;
use crate::live::members::votes::Stand;

/// Something that happens beside us, before a look.
type Happens<'a> = &'a mut dyn FnMut(&mut Model, Duration);

struct Fake<'a> {
    model: Model,
    wanted: Wanted,
    clock: Duration,
    /// A person does what is asked so long after it was asked.
    person: Option<Duration>,
    asked: Option<(Step, Duration)>,
    happens: Happens<'a>,
    /// So many times etcd says "not yet".
    not_yet: usize,
    /// Nothing can be seen until then.
    blind: Duration,
}

impl Acts for Fake<'_> {
    fn look(&mut self) -> Result<Vec<Seen>, Failure> {
        if self.clock < self.blind {
            return Err(Failure::new("nothing is heard"));
        }
        (self.happens)(&mut self.model, self.clock);
        Ok(self.model.members.clone())
    }
    fn take(&mut self, step: &Step) -> Result<(), Refusal> {
        if self.not_yet > 0 {
            self.not_yet -= 1;
            return Err(Refusal::NotYet("unhealthy cluster".into()));
        }
        self.model.take(step, &self.wanted).map_err(|e| Refusal::Never(Failure::new(e)))
    }
    fn now(&mut self) -> Duration {
        self.clock
    }
    fn pause(&mut self) {
        self.clock += Duration::from_secs(1);
        let next = plan(&self.wanted, &self.model.members, &Options::default());
        let Some(step) = next.steps.first().map(|p| p.step.clone()).filter(Step::is_for_operator) else { return };
        let (asked, since) = self.asked.get_or_insert((step.clone(), self.clock));
        if !asked.same(&step) {
            self.asked = Some((step, self.clock));
        } else if self.person.is_some_and(|takes| self.clock - *since >= takes) {
            self.model.take(&step, &self.wanted).expect("a person can always start a node");
            self.asked = None;
        }
    }
}

struct Ran {
    outcome: Result<Outcome, Failure>,
    events: Vec<String>,
    model: Model,
}

fn run(model: Model, want: usize, wait: u64, change: impl FnOnce(&mut Fake<'_>), happens: Happens<'_>) -> Ran {
    let (wanted, options) = (all_wanted(want), Options::default());
    let shown = plan(&wanted, &model.members, &options);
    let mut fake = Fake {
        model,
        wanted: wanted.clone(),
        clock: Duration::ZERO,
        person: Some(Duration::from_secs(5)),
        asked: None,
        happens,
        not_yet: 0,
        blind: Duration::ZERO,
    };
    change(&mut fake);
    let mut events = Vec::new();
    let mut tell = |event: Event<'_>| {
        events.push(match event {
            Event::Begins(n, p) => format!("{n} {}", p.step.kind()),
            Event::WaitsFor(n, p, _) => format!("{n} wait for {}", p.step.kind()),
            Event::Waits(why) => why,
            Event::Done(n, _) => format!("{n} done"),
        });
    };
    let outcome = apply(&mut fake, (&wanted, &options), &shown, Duration::from_secs(wait), &mut tell);
    Ran { outcome, events, model: fake.model }
}

fn nothing(_: &mut Model, _: Duration) {}

#[test]
fn it_goes_step_by_step_and_waits_for_the_person() {
    let ran = run(healthy(1), 3, 60, |_| {}, &mut nothing);
    assert_eq!(ran.outcome, Ok(Outcome::AsDeclared));
    assert!(ran.model.is(&all_wanted(3)));
    let each = |n: usize| [format!("{n} add"), format!("{n} done")];
    let mut want: Vec<String> = each(1).into();
    want.extend(["2 wait for start", "2 done", "3 promote", "3 done"].map(str::to_owned));
    want.extend(each(4));
    want.extend(["5 wait for start", "5 done", "6 promote", "6 done"].map(str::to_owned));
    assert_eq!(ran.events, want);
}

#[test]
fn it_stops_where_a_person_is_needed_and_none_comes() {
    for wait in [0, 20] {
        let ran = run(healthy(3), 5, wait, |fake| fake.person = None, &mut nothing);
        assert!(
            matches!(&ran.outcome, Ok(Outcome::NotStarted(Step::Start { node, .. })) if node == "n3"),
            "{:?}",
            ran.outcome
        );
        assert!(ran.model.votes().hold());
    }
}

#[test]
fn it_goes_on_where_it_was_stopped() {
    let ran = run(healthy(3), 5, 0, |fake| fake.person = None, &mut nothing);
    let ran = run(ran.model, 5, 60, |_| {}, &mut nothing);
    assert_eq!(ran.outcome, Ok(Outcome::AsDeclared));
    assert_eq!(ran.events[0], "1 wait for start", "the node is not added again");
}

#[test]
fn it_takes_no_step_that_was_not_shown() {
    // Somebody adds a member of their own while the first node is waited for.
    let mut added = false;
    let mut happens = |model: &mut Model, _: Duration| {
        if !added && model.members.len() == 4 {
            added = true;
            let mut stranger = model.members[0].clone();
            stranger.member.id.0 = 77;
            stranger.member.name = "stranger".into();
            stranger.member.peer_urls = vec!["https://10.9.9.9:2380".into()];
            stranger.stand = Stand::Silent;
            model.members.push(stranger);
        }
    };
    let ran = run(healthy(3), 5, 600, |_| {}, &mut happens);
    assert!(matches!(&ran.outcome, Ok(Outcome::Changed(Step::Remove { id, .. })) if id.0 == 77), "{:?}", ran.outcome);
    assert!(ran.model.members.iter().any(|m| m.member.id.0 == 77), "nothing was done to it");
}

#[test]
fn it_stops_when_the_quorum_goes() {
    let mut happens = |model: &mut Model, _: Duration| {
        if model.members.len() == 4 {
            model.members[1].stand = Stand::Silent;
            model.members[2].stand = Stand::Silent;
        }
    };
    let ran = run(healthy(3), 5, 10, |fake| fake.person = None, &mut happens);
    let Ok(Outcome::Blocked(blocked)) = &ran.outcome else { panic!("{:?}", ran.outcome) };
    assert!(blocked.why.starts_with("1 of 3 voters answer"), "{blocked:?}");
    assert_eq!(ran.model.members.len(), 4, "the first learner was added before, and nothing else since");
}

#[test]
fn what_passes_is_waited_for_and_no_longer() {
    // An election after the leader was removed.
    let mut until = None;
    let mut election = |model: &mut Model, now: Duration| {
        if model.members.len() == 4 {
            let until = *until.get_or_insert(now + Duration::from_secs(3));
            let stand = if now < until { Stand::Leaderless } else { Stand::Serves };
            model.members.iter_mut().for_each(|m| m.stand = stand);
        }
    };
    let ran = run(healthy(5), 3, 0, |_| {}, &mut election);
    assert_eq!(ran.outcome, Ok(Outcome::AsDeclared));
    assert!(ran.events[2].starts_with("0 of 4 voters answer"), "{:?}", ran.events);

    let ran = run(healthy(1), 3, 60, |fake| fake.not_yet = 7, &mut nothing);
    assert_eq!(ran.outcome, Ok(Outcome::AsDeclared));
    assert_eq!(ran.events[..3], ["1 add", "unhealthy cluster", "1 done"], "a reason is told once");
    let ran = run(healthy(1), 3, 60, |fake| fake.not_yet = usize::MAX, &mut nothing);
    assert!(matches!(&ran.outcome, Ok(Outcome::Refused(Step::Add { .. }, why)) if why == "unhealthy cluster"));

    assert_eq!(
        run(healthy(1), 3, 60, |fake| fake.blind = Duration::from_secs(9), &mut nothing).outcome,
        Ok(Outcome::AsDeclared)
    );
    let ran = run(healthy(1), 3, 60, |fake| fake.blind = Duration::MAX, &mut nothing);
    assert_eq!(ran.outcome, Err(Failure::new("nothing is heard")));
}
