//! Makes a Debian root file system by mmdebstrap(1).

use std::path::Path;
use std::time::Duration;

use super::{Command, OnOurDeath};
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
    command(request, to).check().map(|_| ()).map_err(|failure| {
        Failure::new(format!("cannot make the base debian {}: {}", request.suite, failure.message))
            .help(failure.help.unwrap_or_else(|| HELP.into()))
    })
}

const HELP: &str = "see the log above: mostly a name of a package or suite is wrong, or the mirror cannot be reached";

fn command(request: &DebianRequest, to: &Path) -> Command {
    let mut command = Command::new("mmdebstrap").args(["--variant=minbase", "--format=tar"]);
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
        for (request, want) in cases {
            assert_eq!(command(&request, Path::new("out.tar")).display(), want);
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
