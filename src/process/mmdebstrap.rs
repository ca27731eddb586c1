//! Makes a Debian root file system by mmdebstrap(1).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::{Command, OnOurDeath, missing};
use crate::finding::Failure;
use crate::image::base::DebianRequest;

/// A slow mirror and an emulated machine included.
const DEADLINE: Duration = Duration::from_secs(4 * 3600);

/// Makes the root file system of a request as a plain tar at `to`.
///
/// mmdebstrap chooses its own mode: as root a chroot, else user namespaces, so no privilege is needed where the user
/// has subordinate ids. Its temporary root goes to `TMPDIR`. When we die it gets `TERM` and tidies up.
///
/// # Errors
/// When mmdebstrap is not installed, or fails: the end of its log is in the failure.
pub fn make(request: &DebianRequest, to: &Path) -> Result<(), Failure> {
    run(&command(request, to)).map_err(|failure| {
        Failure::new(format!("cannot make the base debian {}: {}", request.suite, failure.message))
            .help(failure.help.unwrap_or_else(|| HELP.into()))
    })
}

/// How long mmdebstrap may take to tidy up: it first waits for the package that dpkg is at.
const TIDY: Duration = Duration::from_secs(60);

/// Runs it to its end. A signal to us is passed on, and we wait until it has removed its temporary root; a second one
/// ends us at once.
fn run(command: &Command) -> Result<(), Failure> {
    missing::find("mmdebstrap")?;
    let signals = Signals::catch()?;
    let running = command.spawn()?;
    while !running.ended() {
        if signals.came() {
            running.stop_within(TIDY)?;
            return Err(Failure::new("stopped by a signal; mmdebstrap has tidied up").help("run it again"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let finished = running.wait(DEADLINE)?;
    if signals.came() {
        return Err(Failure::new("stopped by a signal").help("run it again"));
    }
    if finished.status.success() { Ok(()) } else { Err(command.failed(&finished)) }
}

/// Catches the first signal that asks us to end, until it is dropped; a second one, or one after that, ends us at once as
/// it would without this.
struct Signals(Arc<AtomicBool>);

impl Signals {
    fn catch() -> Result<Signals, Failure> {
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset and sets it, the second finds it set.
            for register in [flag::register_conditional_default, flag::register] {
                let handler = register(signal, came.clone());
                handler.map_err(|e| Failure::new(format!("cannot catch signals: {e}")))?;
            }
        }
        Ok(Signals(came))
    }

    fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const HELP: &str = "see the log above: mostly a name of a package or suite is wrong, or the mirror cannot be reached";

fn command(request: &DebianRequest, to: &Path) -> Command {
    // As root it mounts proc and the like below its temporary root: in a mount namespace of its own, so that nothing
    // stays mounted on the host whatever ends it. Else it makes its own.
    let mut command = match rustix::process::geteuid().is_root() {
        true => Command::new("unshare").args(["--mount", "--", "mmdebstrap"]),
        false => Command::new("mmdebstrap"),
    };
    command = command.args(["--variant=minbase", "--format=tar"]);
    if !request.packages.is_empty() {
        command = command.arg(format!("--include={}", request.packages.join(",")));
    }
    // Nothing of a request is taken for an option.
    command = command.arg("--").arg(&request.suite).arg(to);
    if let Some(mirror) = &request.mirror {
        command = command.arg(mirror);
    }
    if let Some(epoch) = request.source_date_epoch {
        command = command.env("SOURCE_DATE_EPOCH", epoch.to_string());
    }
    command.env("LC_ALL", "C.UTF-8").deadline(DEADLINE).on_our_death(OnOurDeath::Terminate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> DebianRequest {
        DebianRequest {
            suite: "trixie".into(),
            packages: vec!["dbus".into(), "etcd-server".into()],
            mirror: None,
            source_date_epoch: None,
        }
    }

    #[test]
    fn the_request_becomes_arguments() {
        let cases = [
            (request(), "mmdebstrap --variant=minbase --format=tar --include=dbus,etcd-server -- trixie out.tar"),
            (
                DebianRequest { mirror: Some("http://mirror.example/archive".into()), ..request() },
                "mmdebstrap --variant=minbase --format=tar --include=dbus,etcd-server -- trixie out.tar \
                 http://mirror.example/archive",
            ),
            (
                DebianRequest { packages: vec![], ..request() },
                "mmdebstrap --variant=minbase --format=tar -- trixie out.tar",
            ),
        ];
        // As root its mounts are its own.
        let namespace = if rustix::process::geteuid().is_root() { "unshare --mount -- " } else { "" };
        for (request, want) in cases {
            assert_eq!(command(&request, Path::new("out.tar")).display(), format!("{namespace}{want}"));
        }
    }

    #[test]
    fn a_failure_ends_with_the_log_and_says_what_was_made() {
        let directory = tempfile::tempdir().unwrap();
        // Refused by mmdebstrap itself, before it asks any mirror.
        let request = DebianRequest { suite: "no such suite".into(), mirror: Some("nonsense".into()), ..request() };
        let failure = make(&request, &directory.path().join("out.tar")).unwrap_err();
        assert!(failure.message.contains("cannot make the base debian no such suite"), "{failure}");
        assert!(failure.message.contains("exited with status"), "{failure}");
        assert!(failure.help.is_some());
    }
}
