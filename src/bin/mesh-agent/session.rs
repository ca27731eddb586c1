//! One connection to one member, for as long as it lasts: settle what the registry holds of this node, then keep it so.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use fitout::layout::keys::{live_of, ops_of};
use fitout::layout::values::{self, Identity, Schema};
use fitout::layout::{Key, Label, SCHEMA, Time};
use fitout::link::{Change, Done, Guard, Keeper, Link, Stored, Told, Trouble, Watch, Watched};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::agent::{Agent, Signal, Signals};
use crate::announce::{self, after, difference};
use crate::claims::{self, Next};
use crate::health::{self, Report};
use crate::say;

/// No call takes longer: two must fit between renewals.
const PATIENCE: Duration = Duration::from_secs(5);

/// What somebody else changes is settled at most this often.
const SETTLE: Duration = Duration::from_secs(1);

/// Changes in one transaction; etcd takes 128 operations (`max-txn-ops`).
const MOST_CHANGES: usize = 100;

/// Own revisions that are remembered: the watch tells them back within moments.
const OWN: usize = 64;

/// Why a session ended.
#[derive(Debug)]
pub enum Ended {
    /// A signal came.
    Signal(Signal),
    /// The registry does not answer, or not as it must; in words.
    Lost(String),
    /// The registry answers, and does not let this node do its part; in words.
    Refused(String),
}

/// Why a step did not succeed.
enum Stop {
    Lost(String),
    Refused(String),
    /// The identity or a claim was changed meanwhile: what was read is old.
    Stale,
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Stop {
        match trouble.is_denied() {
            true => Stop::Refused(trouble.to_string()),
            false => Stop::Lost(trouble.to_string()),
        }
    }
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Ended {
        match stop {
            Stop::Lost(why) => Ended::Lost(why),
            Stop::Refused(why) => Ended::Refused(why),
            Stop::Stale => Ended::Lost("the registry's identity changes all the time".to_owned()),
        }
    }
}

/// Runs until it ends. The connection is given back when it may still be used, to leave by it.
pub async fn run(agent: &mut Agent, endpoint: &str, signals: &mut Signals) -> (Ended, Option<Link>) {
    let patience = PATIENCE.min(agent.facts.renew / 2);
    let open = Link::open(endpoint, &agent.credentials, patience);
    let link = match tokio::select! {
        signal = signals.next() => return (Ended::Signal(signal), None),
        link = open => link,
    } {
        Ok(link) => link,
        Err(trouble) => return (Ended::Lost(format!("{endpoint}: {trouble}")), None),
    };
    let mut session = Session {
        link,
        endpoint: endpoint.to_owned(),
        identity: (NonZeroU32::MIN, 0),
        seen: 0,
        own: VecDeque::new(),
        there: Vec::new(),
        claims: BTreeMap::new(),
        told: None,
        keeper: None,
        settled: Instant::now(),
    };
    let ended = session.last(agent, signals).await;
    (ended, Some(session.link))
}

struct Session {
    link: Link,
    endpoint: String,
    /// Generation, and the revision of the identity from which it was read.
    identity: (NonZeroU32, i64),
    /// Everything up to this revision is known.
    seen: i64,
    /// Revisions of this session's own transactions.
    own: VecDeque<i64>,
    /// What the registry holds of this node.
    there: Vec<Stored>,
    /// How each service's claim stands, and its revision.
    claims: BTreeMap<Label, (claims::Standing, i64)>,
    /// The last report, as it was written, and when.
    told: Option<(Report, String, Instant)>,
    keeper: Option<Keeper>,
    settled: Instant,
}

impl Session {
    async fn last(&mut self, agent: &mut Agent, signals: &mut Signals) -> Ended {
        let begun = async {
            self.settle(agent).await?;
            self.watch(agent).await
        };
        let mut watch = match tokio::select! {
            signal = signals.next() => return Ended::Signal(signal),
            begun = begun => begun,
        } {
            Ok(watch) => watch,
            Err(stop) => return self.named(stop),
        };
        agent.backoff.reset();
        let mut tick = interval_at(Instant::now() + agent.facts.renew, agent.facts.renew);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Something else than this session changed what it keeps, or the watch ended.
        let (mut dirty, mut blind) = (false, false);
        loop {
            let earliest = self.settled + SETTLE;
            let step = tokio::select! {
                biased;
                signal = signals.next() => return Ended::Signal(signal),
                told = watch.next(), if !blind => {
                    match told {
                        Told::Events(events) => {
                            let foreign = |revision: i64| revision > self.seen && !self.own.contains(&revision);
                            dirty |= events.iter().any(|event| foreign(event.revision));
                        }
                        Told::Over(why) => {
                            say(&format!("{}: the watch ended ({why}): reading again", self.endpoint));
                            (dirty, blind) = (true, true);
                        }
                    }
                    continue;
                }
                () = sleep_until(earliest), if dirty => Step::Settle,
                _ = tick.tick() => Step::Tick,
            };
            let done = async {
                match step {
                    Step::Tick => self.tick(agent).await?,
                    Step::Settle => self.settle(agent).await?,
                }
                Ok(if blind && matches!(step, Step::Settle) { Some(self.watch(agent).await?) } else { None })
            };
            let done: Result<Option<Watch>, Stop> = tokio::select! {
                signal = signals.next() => return Ended::Signal(signal),
                done = done => done,
            };
            match done {
                Ok(again) => {
                    if let Step::Settle = step {
                        dirty = false;
                    }
                    if let Some(again) = again {
                        (watch, blind) = (again, false);
                    }
                }
                Err(stop) => return self.named(stop),
            }
        }
    }

    /// With the member that it is about.
    fn named(&self, stop: Stop) -> Ended {
        match stop {
            Stop::Lost(why) => Ended::Lost(format!("{}: {why}", self.endpoint)),
            other => other.into(),
        }
    }

    /// Renews the lease, looks at the node, and writes what is new.
    async fn tick(&mut self, agent: &mut Agent) -> Result<(), Stop> {
        agent.notifier.alive();
        let kept = match &mut self.keeper {
            Some(keeper) => keeper.once_more().await?,
            None => false,
        };
        agent.heard();
        if !kept {
            say("the lease is lost: announcing everything under a new one");
            (self.keeper, agent.lease) = (None, None);
        }
        agent.look().await;
        // Once in a while everything is compared, though no watch has told of a change: a claim that was refused may be
        // granted now.
        if !kept || self.settled.elapsed() >= agent.facts.health {
            return self.settle(agent).await;
        }
        match self.publish(agent).await {
            Err(Stop::Stale) => self.settle(agent).await,
            other => other,
        }
    }

    /// Reads everything of this node and makes it what it should be.
    async fn settle(&mut self, agent: &mut Agent) -> Result<(), Stop> {
        let mut last = Stop::Stale;
        for _ in 0..3 {
            match self.settle_once(agent).await {
                Err(Stop::Stale) => last = Stop::Stale,
                other => {
                    self.settled = Instant::now();
                    return other;
                }
            }
        }
        Err(last)
    }

    async fn settle_once(&mut self, agent: &mut Agent) -> Result<(), Stop> {
        agent.notifier.alive();
        self.read_identity(agent).await?;
        agent.heard();
        // etcd's members bear the names of their nodes.
        if agent.facts.etcd.is_some() {
            agent.member = self.link.member(agent.facts.node.as_str()).await?;
        }
        self.ensure_lease(agent).await?;
        agent.notifier.alive();
        let node = agent.facts.node.clone();
        self.there = self.link.below(&live_of(&node)).await?.keys;
        self.there.extend(self.link.below(&format!("{}cert/", ops_of(&node))).await?.keys);
        let backup = self.link.last(&format!("{}backup/", ops_of(&node))).await?;
        agent.backup = backup.and_then(|key| match Key::parse(&key) {
            Ok(Key::Backup { time, .. }) => Some(time),
            _ => None,
        });
        agent.notifier.alive();
        self.settle_claims(agent).await?;
        self.publish(agent).await
    }

    async fn read_identity(&mut self, agent: &mut Agent) -> Result<(), Stop> {
        let read = self.link.get(&Key::Identity.to_string()).await?;
        let Some(stored) = read.keys.first() else {
            let why = "the registry has no identity yet: `fitout registry bootstrap` gives it one";
            return Err(Stop::Refused(why.to_owned()));
        };
        let identity: Identity = values::decode(&stored.value)
            .map_err(|error| Stop::Refused(format!("the registry's identity cannot be read: {error}")))?;
        if identity.mesh != agent.facts.mesh {
            let why = format!("the registry is of mesh `{}`, and this node of `{}`", identity.mesh, agent.facts.mesh);
            return Err(Stop::Refused(why));
        }
        let schema = self.link.get(&Key::Schema.to_string()).await?;
        if let Some(stored) = schema.keys.first() {
            let schema: Schema = values::decode(&stored.value)
                .map_err(|error| Stop::Refused(format!("the registry's schema cannot be read: {error}")))?;
            if schema.least_writer.get() > SCHEMA {
                let why = format!(
                    "the registry wants writers of schema {} or later, and this is {SCHEMA}",
                    schema.least_writer
                );
                return Err(Stop::Refused(why));
            }
        }
        // All that is read from here on is at least of this revision.
        self.seen = read.revision;
        self.identity = (identity.generation, stored.changed);
        agent.generation = Some(identity.generation);
        Ok(())
    }

    async fn ensure_lease(&mut self, agent: &mut Agent) -> Result<(), Stop> {
        if let Some(keeper) = &mut self.keeper {
            if keeper.once_more().await? {
                return Ok(());
            }
            (self.keeper, agent.lease) = (None, None);
        }
        if let Some(lease) = agent.lease {
            self.keeper = self.link.keep(lease).await?;
            if self.keeper.is_some() {
                return Ok(());
            }
        }
        let lease = self.link.grant(agent.facts.lease).await?;
        agent.lease = Some(lease);
        agent.since = Time::of(SystemTime::now().into());
        self.keeper = self.link.keep(lease).await?;
        Ok(())
    }

    async fn settle_claims(&mut self, agent: &mut Agent) -> Result<(), Stop> {
        let facts = agent.facts.clone();
        let mut all = BTreeMap::new();
        for (name, service) in &facts.services {
            let Some(set) = &service.data_set else { continue };
            let key = Key::Claim { set: set.clone(), site: facts.site.clone() }.to_string();
            let (standing, changed) = match self.claim(agent, &key, set).await {
                Ok(claim) => claim,
                Err(Stop::Refused(why)) => (claims::denied(set, &facts.site, &why), 0),
                Err(other) => return Err(other),
            };
            if let claims::Standing::Refused(why) = &standing
                && self.claims.get(name).is_none_or(|(before, _)| *before != standing)
            {
                say(&format!("service `{name}` is not announced: {why}"));
            }
            all.insert(name.clone(), (standing, changed));
            agent.notifier.alive();
        }
        self.claims = all;
        Ok(())
    }

    /// Takes a claim, if it is free; how it stands then, and its revision.
    async fn claim(&mut self, agent: &Agent, key: &str, set: &Label) -> Result<(claims::Standing, i64), Stop> {
        let facts = &agent.facts;
        // A second time when somebody was faster.
        for _ in 0..2 {
            let read = self.link.get(key).await?;
            let there = read.keys.first();
            match claims::judge(there.map(|stored| stored.value.as_slice()), &facts.node, set, &facts.site) {
                Next::Stands(standing) => return Ok((standing, there.map_or(0, |stored| stored.changed))),
                Next::Create => {
                    let now = Time::of(SystemTime::now().into());
                    let value = claims::of(&facts.node, now, self.identity.0).map_err(Stop::Lost)?;
                    let guards = [self.guard(), Guard::Changed(key.to_owned(), 0)];
                    if let Done::At(revision) =
                        self.link.commit(&guards, &[Change::Put(key.to_owned(), value, 0)]).await?
                    {
                        self.remember(revision);
                        return Ok((claims::Standing::Held, revision));
                    }
                }
            }
        }
        Err(Stop::Stale)
    }

    /// Writes what differs from what the registry holds; nothing when nothing does.
    async fn publish(&mut self, agent: &mut Agent) -> Result<(), Stop> {
        let facts = &agent.facts;
        let now = Time::of(SystemTime::now().into());
        let standings = self.claims.iter().map(|(name, (standing, _))| (name.clone(), standing.clone())).collect();
        let mut observed = agent.observed.clone();
        observed.backup = agent.backup;
        let report = health::judge(facts, &observed, &standings, now);
        let old = self.told.take().filter(|(told, _, at)| *told == report && at.elapsed() < facts.health);
        let (report, text, at) = match old {
            Some(old) => old,
            None => {
                let text = report.encode(now).map_err(Stop::Lost)?;
                (report, text, Instant::now())
            }
        };
        let standing = announce::Standing {
            boot: agent.boot.clone(),
            generation: self.identity.0,
            member: agent.member,
            since: agent.since,
        };
        let certificates: Vec<_> = observed.certificates.iter().flatten().cloned().collect();
        let wanted = announce::wanted(facts, &standing, &report, text.clone(), &certificates).map_err(Stop::Lost)?;
        let Some(lease) = agent.lease else { return Err(Stop::Stale) };
        let changes = difference(&self.there, &wanted, lease, &live_of(&facts.node));
        for some in changes.chunks(MOST_CHANGES) {
            let mut guards = vec![self.guard()];
            guards.extend(self.claim_guards(agent, some));
            match self.link.commit(&guards, some).await {
                Ok(Done::At(revision)) => {
                    self.remember(revision);
                    self.there = after(std::mem::take(&mut self.there), some, revision);
                }
                Ok(Done::NotSo) => return Err(Stop::Stale),
                // It ended between the renewal and the transaction.
                Err(trouble) if trouble.lease_is_gone() => {
                    (self.keeper, agent.lease) = (None, None);
                    return Err(Stop::Stale);
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
        agent.heard();
        let state = report.state();
        self.told = Some((report, text, at));
        agent.status(&format!("announced by {}, generation {}, health {state}", self.endpoint, self.identity.0));
        agent.write_metrics();
        Ok(())
    }

    /// Nothing is written when the registry's identity is another than the one that was read.
    fn guard(&self) -> Guard {
        Guard::Changed(Key::Identity.to_string(), self.identity.1)
    }

    /// A service with a data set is put only while its claim is the one that was read.
    fn claim_guards(&self, agent: &Agent, changes: &[Change]) -> Vec<Guard> {
        let facts = &agent.facts;
        let of = |(name, (_, revision)): (&Label, &(claims::Standing, i64))| {
            let set = facts.services.get(name)?.data_set.clone()?;
            let service = Key::Service { node: facts.node.clone(), service: name.clone() }.to_string();
            let puts = |change: &Change| matches!(change, Change::Put(key, ..) if *key == service);
            let claim = Key::Claim { set, site: facts.site.clone() }.to_string();
            changes.iter().any(puts).then_some(Guard::Changed(claim, *revision))
        };
        self.claims.iter().filter_map(of).collect()
    }

    fn remember(&mut self, revision: i64) {
        self.own.push_back(revision);
        if self.own.len() > OWN {
            self.own.pop_front();
        }
    }

    async fn watch(&mut self, agent: &Agent) -> Result<Watch, Stop> {
        let facts = &agent.facts;
        let mut what = vec![Watched::Key(Key::Identity.to_string()), Watched::Prefix(live_of(&facts.node))];
        let sets = facts.services.values().filter_map(|service| service.data_set.clone());
        what.extend(sets.map(|set| Watched::Key(Key::Claim { set, site: facts.site.clone() }.to_string())));
        Ok(self.link.watch(&what, self.seen + 1).await?)
    }
}

enum Step {
    Tick,
    Settle,
}
