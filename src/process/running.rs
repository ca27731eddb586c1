//! A program that was started: watched, waited for, and never left behind.

use std::process::Child;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::command::{Finished, with_log};
use super::log::Tail;
use crate::finding::Failure;

/// How long a program may take to end after `TERM` before it gets `KILL`.
const GRACE: Duration = Duration::from_secs(5);

/// A started program. Dropping it kills it and its process group.
#[derive(Debug)]
pub struct Running {
    pub(super) name: String,
    pub(super) child: Option<Child>,
    pub(super) stdout: Tail,
    pub(super) stderr: Tail,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) started: Instant,
}

impl Running {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// What it has written to standard output so far (bounded).
    pub fn output(&self) -> String {
        self.stdout.text()
    }

    /// What it has written to standard error so far (bounded).
    pub fn log(&self) -> String {
        self.stderr.text()
    }

    /// Kills it and its process group now.
    ///
    /// # Errors
    /// When its status cannot be read.
    pub fn kill(mut self) -> Result<Finished, Failure> {
        self.end()
    }

    /// True when it has ended; its status is then there for [`Running::wait`].
    pub fn ended(&self) -> bool {
        self.pid().is_none_or(|pid| {
            // WNOWAIT leaves the process for `wait`, so that its id and its group stay ours until then.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None))
        })
    }

    /// Waits for its end, at most `deadline` from its start; then it and its process group are killed.
    ///
    /// # Errors
    /// When the deadline passes.
    pub fn wait(mut self, deadline: Duration) -> Result<Finished, Failure> {
        if !self.ended_before(self.started + deadline) {
            let name = std::mem::take(&mut self.name);
            self.end()?;
            let text = format!("`{name}` was not done after {} s and was stopped", deadline.as_secs_f32());
            return Err(Failure::new(with_log(&text, &self.stderr.text())));
        }
        self.end()
    }

    /// Asks it to end by `TERM`, and kills it and its group when it has not after a few seconds.
    ///
    /// # Errors
    /// When its status cannot be read.
    pub fn stop(self) -> Result<Finished, Failure> {
        self.stop_within(GRACE)
    }

    /// As [`Running::stop`], with more or less time for it to tidy up.
    ///
    /// # Errors
    /// When its status cannot be read.
    pub fn stop_within(mut self, grace: Duration) -> Result<Finished, Failure> {
        if let Some(pid) = self.pid() {
            // It may have ended already: then there is nobody to signal.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
            self.ended_before(Instant::now() + grace);
        }
        self.end()
    }

    fn pid(&self) -> Option<Pid> {
        self.child.as_ref().and_then(|child| i32::try_from(child.id()).ok()).and_then(Pid::from_raw)
    }

    fn ended_before(&self, end: Instant) -> bool {
        let mut pause = Duration::from_millis(1);
        while !self.ended() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        true
    }

    /// Kills what is left of the group, takes the status, and waits for the readers of the output.
    fn end(&mut self) -> Result<Finished, Failure> {
        let took = self.started.elapsed();
        if let Some(pid) = self.pid() {
            // The leader is not waited for yet, so the number of its group cannot have been given away.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
        let Some(mut child) = self.child.take() else {
            return Err(Failure::new(format!("`{}` was waited for twice", self.name)));
        };
        let status = child.wait().map_err(|e| Failure::new(format!("cannot wait for `{}`: {e}", self.name)))?;
        // A grandchild with a group of its own may hold the pipes: it cannot make us hang here.
        let end = Instant::now() + GRACE;
        while self.threads.iter().any(|t| !t.is_finished()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        for thread in self.threads.drain(..).filter(JoinHandle::is_finished) {
            if thread.join().is_err() {
                return Err(Failure::new(format!("the output of `{}` could not be read", self.name)));
            }
        }
        Ok(Finished { status, stdout: self.stdout.bytes(), log: self.stderr.text(), took })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.is_some() {
            // Nobody is left to tell.
            let _ = self.end();
        }
    }
}
