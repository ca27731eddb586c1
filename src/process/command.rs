//! One program, run to its end or left running, that never outlives us.
//!
//! Every program is started through `setpriv --pdeathsig` of util-linux, so that the kernel signals it when
//! we die, by kill -9 too (prctl(2), `PR_SET_PDEATHSIG`). Two facts of that call matter here: it counts from
//! the *thread* that started the program, and it covers that one process only. So start long-running programs
//! from a thread that lives as long as they shall, and give helpers that fork their own way to die (mmdebstrap
//! tidies up on `TERM`; the gate's PID namespace takes all with it).
//!
//! Each program has a process group of its own: a deadline ends the whole group, and a `^C` on the terminal
//! reaches us first.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::log::{Tail, last_lines};
use super::missing;
use super::running::Running;
use crate::finding::Failure;

/// Bytes of each output stream that are kept unless [`Command::keep`] says otherwise.
const KEEP: usize = 1 << 20;
/// Lines of a failed program's log in the failure.
const LINES_IN_FAILURE: usize = 12;

/// Variables of ours that are secrets: no program that we start needs them, and every user of the machine who may read
/// its environment would have them (proc(5), `/proc/pid/environ`).
const SECRETS: &[&str] = &[crate::pki::passphrase::VARIABLE];

/// The signal that a program gets when we die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnOurDeath {
    /// `KILL`: for programs without children and without anything to tidy up.
    Kill,
    /// `TERM`: for programs that tidy up (mmdebstrap removes its temporary root).
    Terminate,
}

/// A program with its arguments, not started yet.
#[derive(Debug, Clone)]
pub struct Command {
    program: String,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    clean: bool,
    directory: Option<PathBuf>,
    input: Vec<u8>,
    input_file: Option<Arc<File>>,
    output: Output,
    deadline: Duration,
    keep: usize,
    on_our_death: OnOurDeath,
}

/// Where a program's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Captured,
    Ours,
}

/// A program that came to its end by itself.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output; the last bytes of it, when it was longer than what is kept.
    pub stdout: Vec<u8>,
    /// Its standard error, printable, bounded likewise.
    pub log: String,
    /// How long it ran.
    pub took: Duration,
}

impl Finished {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

impl Command {
    /// A program by name, looked for in `PATH` and the system's directories, or by path. The deadline is one
    /// minute unless [`Command::deadline`] says otherwise.
    pub fn new(program: impl Into<String>) -> Command {
        Command {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            clean: false,
            directory: None,
            input: Vec::new(),
            input_file: None,
            output: Output::Captured,
            deadline: Duration::from_secs(60),
            keep: KEEP,
            on_our_death: OnOurDeath::Kill,
        }
    }
    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Command {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }
    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }
    /// Sets an environment variable; the others are ours, without the passphrase of the store.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Command {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }
    /// Gives the program none of our environment, only what [`Command::env`] sets and a `PATH` of the system's
    /// directories.
    pub fn clean_environment(mut self) -> Command {
        self.clean = true;
        self.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    }
    /// Sets the working directory.
    pub fn directory(mut self, directory: &Path) -> Command {
        self.directory = Some(directory.to_owned());
        self
    }
    /// Gives bytes on standard input; else it is `/dev/null`.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Command {
        self.input = bytes.into();
        self
    }
    /// Gives an open file on standard input, from where it stands.
    pub fn input_file(mut self, file: File) -> Command {
        self.input_file = Some(Arc::new(file));
        self
    }
    /// Lets it write to our own standard output and error; nothing is captured then.
    pub fn to_our_output(mut self) -> Command {
        self.output = Output::Ours;
        self
    }
    /// Sets how long the program may run.
    pub fn deadline(mut self, deadline: Duration) -> Command {
        self.deadline = deadline;
        self
    }
    /// Sets how many bytes of each output stream are kept; the end is kept.
    pub fn keep(mut self, bytes: usize) -> Command {
        self.keep = bytes;
        self
    }
    /// Sets the signal for the case that we die first.
    pub fn on_our_death(mut self, signal: OnOurDeath) -> Command {
        self.on_our_death = signal;
        self
    }

    /// The command line for messages, quoted for a shell where needed.
    pub fn display(&self) -> String {
        let words = std::iter::once(self.program.clone())
            .chain(self.arguments.iter().map(|a| a.to_string_lossy().into_owned()))
            .map(|word| quote(&word));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The command as the system will get it, without its streams.
    fn prepared(&self) -> Result<std::process::Command, Failure> {
        let program = missing::find(&self.program)?;
        let mut command = std::process::Command::new(missing::find("setpriv")?);
        if self.clean {
            command.env_clear();
        }
        command
            .arg("--pdeathsig")
            .arg(match self.on_our_death {
                OnOurDeath::Kill => "KILL",
                OnOurDeath::Terminate => "TERM",
            })
            .arg("--")
            .arg(program)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(k, v)| (k, v)))
            .process_group(0);
        for secret in SECRETS {
            command.env_remove(secret);
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Ok(command)
    }

    /// Starts it and returns at once.
    ///
    /// # Errors
    /// When the program or `setpriv` is not installed, or the process cannot be made.
    pub fn spawn(&self) -> Result<Running, Failure> {
        let mut command = self.prepared()?;
        let input = match &self.input_file {
            Some(file) => {
                let copy = file.try_clone();
                copy.map_err(|e| Failure::new(format!("cannot give its input to `{}`: {e}", self.program)))?.into()
            }
            None if self.input.is_empty() => Stdio::null(),
            None => Stdio::piped(),
        };
        let output = || if self.output == Output::Ours { Stdio::inherit() } else { Stdio::piped() };
        command.stdin(input).stdout(output()).stderr(output());
        let started = Instant::now();
        let mut child = command.spawn().map_err(|e| Failure::new(format!("cannot start `{}`: {e}", self.program)))?;
        let (stdout, stderr) = (Tail::new(self.keep), Tail::new(self.keep));
        let mut threads = Vec::new();
        if let Some(stream) = child.stdout.take() {
            let tail = stdout.clone();
            threads.push(std::thread::spawn(move || tail.drain(stream)));
        }
        if let Some(stream) = child.stderr.take() {
            let tail = stderr.clone();
            threads.push(std::thread::spawn(move || tail.drain(stream)));
        }
        if let Some(mut stream) = child.stdin.take() {
            let input = self.input.clone();
            threads.push(std::thread::spawn(move || {
                // A program that ends before it has read its input says so by its status.
                let _ = stream.write_all(&input);
            }));
        }
        Ok(Running { name: self.display(), child: Some(child), stdout, stderr, threads, started })
    }

    /// Runs it to its end. Its exit status is the caller's to judge.
    ///
    /// # Errors
    /// When it cannot be started, or its deadline passes: then it and its process group are killed.
    pub fn run(&self) -> Result<Finished, Failure> {
        self.spawn()?.wait(self.deadline)
    }

    /// Runs it to its end and wants exit status 0.
    ///
    /// # Errors
    /// As [`Command::run`], and when it exits otherwise: the failure ends with the last lines of its log.
    pub fn check(&self) -> Result<Finished, Failure> {
        let finished = self.run()?;
        if finished.status.success() {
            return Ok(finished);
        }
        Err(self.failed(&finished))
    }

    /// The failure for a program that ended badly.
    pub fn failed(&self, finished: &Finished) -> Failure {
        let text = if finished.log.trim().is_empty() { finished.text() } else { finished.log.clone() };
        Failure::new(with_log(&format!("`{}` {}", self.display(), ending(finished.status)), &text))
    }
}

/// `exited with status 2`, `was killed by signal 9`.
pub fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

pub(super) fn with_log(message: &str, log: &str) -> String {
    let lines = last_lines(log, LINES_IN_FAILURE);
    if lines.is_empty() {
        return message.to_owned();
    }
    format!("{message}; its last lines:\n  {}", lines.join("\n  "))
}

/// A word as a shell takes it, quoted where needed.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
