//! Carrying a plan out: one step at a time, each waited for by its condition, the list read again before every one.
//!
//! The plan that was shown is the only one that is carried out. Before each step it is made anew from what is there then;
//! when that asks for anything that was not shown, or for nothing because the votes would not hold, it ends there.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::plan::{Blocked, Options, Plan, Planned, Seen, Step, Wanted, plan};
use crate::finding::Failure;

/// How long a state that should pass by itself may last: an election, a member that has just started.
pub const SETTLE: Duration = Duration::from_secs(30);
/// How long etcd may go on refusing a step for a reason that passes: it changes no members until all voters have been
/// connected for five seconds, and promotes no learner before it has caught up.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Why a step was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It may be taken a little later.
    NotYet(String),
    /// It will not.
    Never(Failure),
}

/// What is acted upon.
pub trait Acts {
    /// The members now.
    ///
    /// # Errors
    /// When nothing can be seen.
    fn look(&mut self) -> Result<Vec<Seen>, Failure>;
    /// Takes a step of those that are not for a person.
    ///
    /// # Errors
    /// When it is refused, or its outcome is not known.
    fn take(&mut self, step: &Step) -> Result<(), Refusal>;
    /// Time since the beginning.
    fn now(&mut self) -> Duration;
    /// Waits a moment before the next look.
    fn pause(&mut self);
}

/// What happens, for who watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step begins; `n` counts from 1 in the plan that was shown.
    Begins(usize, &'a Planned),
    /// It waits for a person, at most so long.
    WaitsFor(usize, &'a Planned, Duration),
    /// It waits, and why; told once for each reason.
    Waits(String),
    /// A step is done.
    Done(usize, &'a Planned),
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The list is as declared.
    AsDeclared,
    /// There is no way on from here.
    Blocked(Blocked),
    /// Somebody else has changed something: this step was not shown.
    Changed(Step),
    /// Nobody has done what is for a person.
    NotStarted(Step),
    /// etcd went on refusing.
    Refused(Step, String),
}

/// Carries out what `shown` says. `wait` is how long each thing that a person does may take.
///
/// # Errors
/// When the registry cannot be looked at any more, or says no for good.
pub fn apply(
    acts: &mut dyn Acts,
    (wanted, options): (&Wanted, &Options),
    shown: &Plan,
    wait: Duration,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Failure> {
    let mut walk = Walk { shown, cursor: 0, open: None, since: acts.now(), odd: None, said: String::new() };
    loop {
        let seen = acts.look();
        let now = acts.now();
        let current = match seen {
            Ok(seen) => plan(wanted, &seen, options),
            Err(failure) => {
                if now - walk.odd_since(now) > walk.bears(wait) {
                    return Err(failure);
                }
                walk.waits("the registry cannot be looked at".to_owned(), tell);
                acts.pause();
                continue;
            }
        };
        if current.is_done() {
            walk.close(tell);
            return Ok(Outcome::AsDeclared);
        }
        let Some(next) = current.steps.first() else {
            // A leader that was removed, a lone voter that moves: that passes, or a person ends it.
            let blocked = current.blocked.unwrap_or(Blocked { step: None, why: String::new(), help: String::new() });
            if now - walk.odd_since(now) > walk.bears(wait) {
                return Ok(Outcome::Blocked(blocked));
            }
            walk.waits(blocked.why, tell);
            acts.pause();
            continue;
        };
        let Some(n) = walk.find(&next.step) else {
            if now - walk.odd_since(now) > SETTLE {
                return Ok(Outcome::Changed(next.step.clone()));
            }
            acts.pause();
            continue;
        };
        walk.odd = None;
        let planned = &shown.steps[n];
        if walk.open != Some(n) {
            walk.close(tell);
            (walk.open, walk.cursor, walk.since) = (Some(n), n, now);
            walk.said.clear();
            if planned.step.is_for_operator() {
                tell(Event::WaitsFor(n + 1, planned, wait));
            } else {
                tell(Event::Begins(n + 1, planned));
            }
        }
        let took = now - walk.since;
        if planned.step.is_for_operator() {
            if took >= wait {
                return Ok(Outcome::NotStarted(planned.step.clone()));
            }
            acts.pause();
            continue;
        }
        // The step as it is now: ids that were not known when it was shown are there.
        match acts.take(&next.step) {
            Ok(()) => {
                walk.close(tell);
                walk.cursor = n + 1;
            }
            Err(Refusal::NotYet(why)) => {
                if took > PATIENCE {
                    return Ok(Outcome::Refused(next.step.clone(), why));
                }
                walk.waits(why, tell);
                acts.pause();
            }
            Err(Refusal::Never(failure)) => return Err(failure),
        }
    }
}

struct Walk<'a> {
    shown: &'a Plan,
    /// Steps before this one are done.
    cursor: usize,
    /// The one that is under way.
    open: Option<usize>,
    since: Duration,
    /// Since when what is seen fits no step.
    odd: Option<Duration>,
    said: String,
}

impl Walk<'_> {
    fn find(&self, step: &Step) -> Option<usize> {
        let rest = self.shown.steps.get(self.cursor..)?;
        rest.iter().position(|planned| planned.step.same(step)).map(|n| n + self.cursor)
    }

    fn odd_since(&mut self, now: Duration) -> Duration {
        *self.odd.get_or_insert(now)
    }

    /// A person may be at it: then that is how long it may last.
    fn bears(&self, wait: Duration) -> Duration {
        let next = self.shown.steps.get(self.cursor);
        if next.is_some_and(|planned| planned.step.is_for_operator()) { wait.max(SETTLE) } else { SETTLE }
    }

    fn waits(&mut self, why: String, tell: &mut dyn FnMut(Event<'_>)) {
        if self.said != why {
            self.said.clone_from(&why);
            tell(Event::Waits(why));
        }
    }

    fn close(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        if let Some(n) = self.open.take()
            && let Some(planned) = self.shown.steps.get(n)
        {
            tell(Event::Done(n + 1, planned));
        }
    }
}
