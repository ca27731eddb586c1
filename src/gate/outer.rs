//! The process that the user started: looks whether the gate can run at all, starts the janitor, and watches.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use std::os::unix::process::CommandExt;

use super::plan::{self, Plan};
use super::{janitor, wait};
use crate::finding::Failure;
use crate::process::{command::ending, missing};

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Images; empty: all of `dist`.
    pub images: Vec<PathBuf>,
    /// Directory of the mesh: logs go to `gate/` in it.
    pub directory: PathBuf,
    /// Directory of the images and their index.
    pub dist: PathBuf,
    /// Keep the logs of a passed run too.
    pub keep_logs: bool,
    /// Options of the program that the inside must have too, so that it prints alike.
    pub pass_on: Vec<String>,
}

/// What the gate runs; all are looked for before anything is made.
const PROGRAMS: &[&str] = &["systemd-nspawn", "unshare", "setpriv", "nsenter", "mount", "ip", "tar", "gzip", "sh"];

/// Runs the gate and says whether every step passed.
///
/// # Errors
/// When a program or right is missing, there is nothing to boot, or it was interrupted.
pub fn run(options: &Options) -> Result<bool, NotCarriedOut> {
    missing::require(PROGRAMS)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new("the gate makes namespaces, mounts and a bridge: it must run as root")
            .help("run it as `sudo fitout gate …`; everything it makes is its own and goes with it")
            .into());
    }
    let directory = plan::absolute(&options.directory)?;
    let plan = Plan {
        images: plan::images(&options.images, &options.dist)?,
        logs: directory.join("gate"),
        keep_logs: options.keep_logs,
        cgroup: PathBuf::new(),
    };
    let signalled = catch_signals()?;
    let argument = plan.to_argument()?;
    let mut janitor = start(&["--stage", "janitor", "--plan", &argument], &options.pass_on)?;
    let result = watch(&mut janitor, &signalled);
    if result.is_err() {
        // A killed janitor leaves its control group.
        let mut sweeper = start(&["--stage", "sweep", "--plan", &janitor.id().to_string()], &options.pass_on)?;
        sweeper.wait().map_err(|e| Failure::new(format!("cannot wait for the gate's sweeper: {e}")))?;
    }
    match result? {
        janitor::PASSED => Ok(true),
        janitor::FAILED => Ok(false),
        _ => Err(NotCarriedOut::Said),
    }
}

/// Why the gate has no verdict.
#[derive(Debug)]
pub enum NotCarriedOut {
    /// This.
    Because(Failure),
    /// One of its processes has printed it.
    Said,
}

impl From<Failure> for NotCarriedOut {
    fn from(failure: Failure) -> NotCarriedOut {
        NotCarriedOut::Because(failure)
    }
}

fn catch_signals() -> Result<Arc<AtomicUsize>, Failure> {
    let signalled = Arc::new(AtomicUsize::new(0));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register_usize(signal, Arc::clone(&signalled), signal.unsigned_abs() as usize)
            .map_err(|e| Failure::new(format!("cannot watch for signals: {e}")))?;
    }
    Ok(signalled)
}

/// Starts a stage in a mount namespace and a process group of its own: a `^C` reaches us, and we tell it.
fn start(stage: &[&str], pass_on: &[String]) -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::new(format!("cannot find this program: {e}")))?;
    Command::new(missing::find("unshare")?)
        .args(["--mount", "--"])
        .arg(program)
        .args(pass_on)
        .arg("gate")
        .args(stage)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| Failure::new(format!("cannot start `unshare`: {e}")))
}

/// Waits for the janitor. When a signal comes, closes the pipe, which is its sign to tidy up.
fn watch(janitor: &mut Child, signalled: &AtomicUsize) -> Result<i32, Failure> {
    let mut pipe = janitor.stdin.take();
    loop {
        let look = wait::until(Duration::from_secs(20), "the janitor ends", || match janitor.try_wait() {
            Ok(Some(status)) => Ok(status),
            Ok(None) if pipe.is_some() && signalled.load(Ordering::Relaxed) != 0 => {
                pipe = None;
                Err("told to tidy up".to_owned())
            }
            Ok(None) => Err("still there".to_owned()),
            Err(error) => Err(error.to_string()),
        });
        match look {
            Ok(status) => {
                let signal = signalled.load(Ordering::Relaxed);
                if signal != 0 {
                    return Err(Failure::new(format!("interrupted by {}", signal_name(signal)))
                        .help("nothing of the gate is left; run it again"));
                }
                return status.code().ok_or_else(|| Failure::new(format!("the gate's janitor {}", ending(status))));
            }
            // Without a signal the gate may take as long as its steps need.
            Err(_) if pipe.is_some() => {}
            Err(late) => {
                // It cannot be waited for any longer; its machines die with it.
                let _ = janitor.kill();
                return Err(Failure::new(late.to_string()));
            }
        }
    }
}

fn signal_name(number: usize) -> String {
    match number {
        1 => "SIGHUP".into(),
        2 => "^C".into(),
        15 => "SIGTERM".into(),
        other => format!("signal {other}"),
    }
}
