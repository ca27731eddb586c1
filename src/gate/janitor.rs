//! The janitor: outlives the process that the user started just long enough to leave nothing behind.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::cgroup;
use super::plan::Plan;
use super::wait;
use crate::finding::Failure;
use crate::process::Command;
use crate::process::command::ending;

/// Exit status of the inside when every step passed. `unshare` itself exits with 1 when the inside is killed
/// (seen with util-linux 2.38), so the inside's own statuses are others.
pub const PASSED: i32 = 100;
/// Exit status of the inside when a step failed.
pub const FAILED: i32 = 101;
/// Exit status of the inside when it could not be carried out; it has said why.
pub const NOT_CARRIED_OUT: i32 = 103;

/// Runs the inside and returns its exit status, one of the three; the last also when nobody waits any more.
///
/// # Errors
/// When the namespaces or the control group cannot be made or removed, or the inside was killed.
pub fn run(mut plan: Plan, pass_on: &[String]) -> Result<i32, Failure> {
    let abandoned = watch_pipe();
    cgroup::mount()?;
    plan.cgroup = cgroup::create(std::process::id())?;
    let result = inside(&plan, pass_on, &abandoned);
    let removed = cgroup::remove(&plan.cgroup);
    let status = result?;
    removed?;
    Ok(status)
}

/// True as soon as the process that started us is gone, or has closed the pipe.
fn watch_pipe() -> Arc<AtomicBool> {
    let abandoned = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&abandoned);
    std::thread::spawn(move || {
        // Nothing is ever written: any end of the reading means that nobody is there any more.
        let _ = std::io::stdin().read(&mut [0; 1]);
        flag.store(true, Ordering::Relaxed);
    });
    abandoned
}

/// Starts the inside as init of a PID namespace. `--kill-child` ties it to `unshare`, and `unshare` is tied to us.
fn inside(plan: &Plan, pass_on: &[String], abandoned: &AtomicBool) -> Result<i32, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::new(format!("cannot find this program: {e}")))?;
    let running = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL", "--mount-proc", "--"])
        .arg(program)
        .args(pass_on)
        .args(["gate", "--stage", "inside", "--plan"])
        .arg(plan.to_argument()?)
        .to_our_output()
        .spawn()?;
    loop {
        let ended = wait::until(Duration::from_secs(3600), "the gate ends", || {
            if running.ended() || abandoned.load(Ordering::Relaxed) { Ok(()) } else { Err("still running".into()) }
        });
        if ended.is_ok() {
            break;
        }
    }
    let stopped = !running.ended();
    let finished = running.kill()?;
    if stopped {
        return Ok(NOT_CARRIED_OUT);
    }
    match finished.status.code() {
        Some(status @ (PASSED | FAILED | NOT_CARRIED_OUT)) => Ok(status),
        _ => {
            Err(Failure::new(format!("the gate was killed or could not start: `unshare` {}", ending(finished.status)))
                .help("all machines live in memory: the kernel's log says whether it ran out"))
        }
    }
}

/// Removes what a killed janitor has left: the control group with its number.
///
/// # Errors
/// When the hierarchy cannot be mounted, or the group does not go.
pub fn sweep(number: u32) -> Result<(), Failure> {
    cgroup::mount()?;
    cgroup::remove(&cgroup::of(number)?)
}
