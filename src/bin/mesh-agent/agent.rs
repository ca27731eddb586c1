//! The announcer: from session to session, whatever the registry does.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use fitout::layout::{Time, Uuid};
use fitout::link::{Credentials, Link};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::timeout;

use crate::arguments::Options;
use crate::backoff::{Backoff, random};
use crate::facts::{self, Facts};
use crate::health::Observed;
use crate::metrics::{self, Measured};
use crate::notify::Notifier;
use crate::session::{self, Ended};
use crate::sources::Sources;
use crate::{say, version};

/// How long a member may take to end the lease when the announcer leaves.
const LEAVE: Duration = Duration::from_secs(2);

/// What came from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `SIGTERM`, `SIGINT`: leave.
    Leave,
    /// `SIGHUP`: read the facts again.
    Reload,
}

/// The signals of the process.
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hang_up: unix::Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hang_up: unix::signal(SignalKind::hangup())?,
        })
    }

    /// The next one. May be dropped while it waits.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Leave,
            _ = self.interrupt.recv() => Signal::Leave,
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }
}

/// What outlives a session.
pub struct Agent {
    /// What this node is.
    pub facts: Facts,
    /// With what it asks.
    pub credentials: Credentials,
    /// The service manager.
    pub notifier: Notifier,
    /// Waits between sessions.
    pub backoff: Backoff,
    /// What was seen of the node last.
    pub observed: Observed,
    /// The node's last backup, as the registry has it.
    pub backup: Option<Time>,
    /// The kernel's boot id.
    pub boot: Uuid,
    /// The lease, while it is thought to live.
    pub lease: Option<i64>,
    /// Since when it is held.
    pub since: Time,
    /// Id of this node's member, where it has one.
    pub member: Option<u64>,
    /// Generation of the registry that last answered.
    pub generation: Option<NonZeroU32>,
    sources: Sources,
    metrics: Option<PathBuf>,
    /// When the registry last answered, and whether it still does.
    answered: (Instant, bool),
}

/// Runs until it is asked to leave.
///
/// # Errors
/// When the facts cannot be used, or the process has no signals.
pub fn run(options: &Options) -> Result<(), String> {
    let (facts, credentials) = facts::load(&options.facts)?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_err(|e| format!("cannot read the boot id: {e}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("cannot make a runtime: {e}"))?;
    let agent = Agent {
        notifier: Notifier::of_process(),
        backoff: Backoff::default(),
        observed: Observed::default(),
        backup: None,
        boot: boot.trim().parse().map_err(|e| format!("the kernel's boot id: {e}"))?,
        lease: None,
        since: Time::of(SystemTime::now().into()),
        member: None,
        generation: None,
        sources: Sources::default(),
        metrics: options.metrics.clone(),
        answered: (Instant::now(), false),
        facts,
        credentials,
    };
    runtime.block_on(agent.announce(options))
}

impl Agent {
    async fn announce(mut self, options: &Options) -> Result<(), String> {
        let mut signals = Signals::listen().map_err(|e| format!("cannot listen for signals: {e}"))?;
        self.notifier.ready();
        say(&format!("{} for node `{}` of mesh `{}`", version::name(), self.facts.node, self.facts.mesh));
        self.look().await;
        self.write_metrics();
        let mut next = 0_usize;
        loop {
            let endpoint = self.facts.endpoints[next % self.facts.endpoints.len()].clone();
            let (ended, link) = session::run(&mut self, &endpoint, &mut signals).await;
            let signal = match ended {
                Ended::Signal(signal) => Some(signal),
                Ended::Lost(why) => {
                    next += 1;
                    self.answered.1 = false;
                    self.status(&format!("the registry is away: {why}"));
                    self.wait(&mut signals).await
                }
                Ended::Refused(why) => {
                    next += 1;
                    self.status(&format!("not announced: {why}"));
                    self.wait(&mut signals).await
                }
            };
            match signal {
                Some(Signal::Leave) => {
                    self.leave(link).await;
                    return Ok(());
                }
                Some(Signal::Reload) => {
                    self.reload(options, link).await;
                    next = 0;
                }
                None => {}
            }
        }
    }

    /// Waits before the next try. Meanwhile the node is looked at and measured as before.
    async fn wait(&mut self, signals: &mut Signals) -> Option<Signal> {
        let until = tokio::time::Instant::now() + self.backoff.next(random());
        loop {
            self.notifier.alive();
            self.look().await;
            self.write_metrics();
            let slice = until.min(tokio::time::Instant::now() + self.facts.renew);
            tokio::select! {
                signal = signals.next() => return Some(signal),
                () = tokio::time::sleep_until(slice) => {}
            }
            if tokio::time::Instant::now() >= until {
                return None;
            }
        }
    }

    /// Reads the facts again; bad ones change nothing.
    async fn reload(&mut self, options: &Options, link: Option<Link>) {
        match facts::load(&options.facts) {
            Ok((facts, credentials)) => {
                if facts.node != self.facts.node || facts.mesh != self.facts.mesh {
                    self.give_up(link).await;
                    self.member = None;
                }
                (self.facts, self.credentials) = (facts, credentials);
                self.backoff.reset();
                self.look().await;
                say("read the facts again");
            }
            Err(why) => say(&format!("{why}; the facts stay what they were")),
        }
    }

    async fn leave(&mut self, link: Option<Link>) {
        self.notifier.stopping();
        self.give_up(link).await;
        say("left");
    }

    /// Ends the lease, and with it everything that was announced: by the connection that is there, else by a new one.
    async fn give_up(&mut self, link: Option<Link>) {
        let Some(lease) = self.lease.take() else { return };
        if let Some(mut link) = link
            && let Ok(Ok(())) = timeout(LEAVE, link.revoke(lease)).await
        {
            return;
        }
        for endpoint in self.facts.endpoints.iter().take(3) {
            let try_it = async {
                let mut link = Link::open(endpoint, &self.credentials, LEAVE).await?;
                link.revoke(lease).await
            };
            match timeout(LEAVE, try_it).await {
                Ok(Ok(())) => return,
                Ok(Err(trouble)) if trouble.lease_is_gone() => return,
                _ => {}
            }
        }
        say("the lease could not be given up: what was announced is gone when it ends");
    }

    /// Looks at the node.
    pub async fn look(&mut self) {
        self.observed = self.sources.look(&self.facts).await;
    }

    /// The registry answered.
    pub fn heard(&mut self) {
        self.answered = (Instant::now(), true);
    }

    /// How it stands: told to the service manager, and to the journal when it is new.
    pub fn status(&mut self, text: &str) {
        if self.notifier.status(text) {
            say(text);
        }
    }

    /// Writes the textfile.
    pub fn write_metrics(&mut self) {
        let Some(path) = &self.metrics else { return };
        let now = Time::of(SystemTime::now().into());
        let certificates = self.observed.certificates.iter().flatten();
        let measured = Measured {
            unreachable: if self.answered.1 { 0 } else { self.answered.0.elapsed().as_secs() },
            certificates: certificates.map(|seen| (seen.purpose.clone(), seen.certificate.not_after)).collect(),
            backup: self.backup.map(|backup| now.since(backup)),
            generation: self.generation.map(NonZeroU32::get),
        };
        if let Err(why) = metrics::write(path, &metrics::render(&measured)) {
            say(&why);
        }
    }
}
