//! The gate's control group. Each machine's systemd makes groups below its own; they are the one thing that does not
//! die with a namespace, so the janitor removes them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::wait;
use crate::finding::Failure;
use crate::process::Command;

/// Where the unified hierarchy is mounted, for us alone.
pub const MOUNT: &str = "/sys/fs/cgroup";

const PREFIX: &str = "fitout-gate-";

/// Mounts the unified hierarchy over `/sys/fs/cgroup` in our own mount namespace. Hybrid and legacy hosts get
/// the same view so as modern ones, which is also what the images' systemd expects.
///
/// # Errors
/// When it cannot be mounted.
pub fn mount() -> Result<(), Failure> {
    // The kernel refuses to mount it over itself (EBUSY), and a modern host has it there already.
    if Path::new(MOUNT).join("cgroup.controllers").exists() {
        return Ok(());
    }
    Command::new("mount").args(["-t", "cgroup2", "cgroup2", MOUNT]).check().map(|_| ())
}

/// The path below [`MOUNT`] of the group of the janitor with this process id: beside it, in the group that we are in.
///
/// # Errors
/// When we are in none.
pub fn of(janitor: u32) -> Result<PathBuf, Failure> {
    let file = Path::new("/proc/self/cgroup");
    let text = std::fs::read_to_string(file).map_err(|e| Failure::io("read", file, &e))?;
    let ours = unified(&text).ok_or_else(|| Failure::new("this process is in no unified control group"))?;
    Ok(Path::new(ours).join(format!("{PREFIX}{janitor}")))
}

/// Makes that group.
///
/// # Errors
/// When it cannot be made, for instance where the hierarchy is read-only.
pub fn create(janitor: u32) -> Result<PathBuf, Failure> {
    let group = of(janitor)?;
    let path = Path::new(MOUNT).join(&group);
    sweep(path.parent().unwrap_or(Path::new(MOUNT)));
    std::fs::create_dir(&path).map_err(|e| {
        Failure::io("make the control group", &path, &e)
            .help("the gate needs a control group of its own: run it as root on a host or in a virtual machine")
    })?;
    Ok(group)
}

/// The path of the unified hierarchy in `/proc/PID/cgroup`, relative.
fn unified(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::/"))
}

/// Puts the calling process into a group.
///
/// # Errors
/// When the kernel refuses.
pub fn enter(group: &Path) -> Result<(), Failure> {
    let file = Path::new(MOUNT).join(group).join("cgroup.procs");
    std::fs::write(&file, "0").map_err(|e| Failure::io("enter the control group by", &file, &e))
}

/// Kills what is in a group, and removes it with all groups below.
///
/// # Errors
/// When it is still there after some seconds.
pub fn remove(group: &Path) -> Result<(), Failure> {
    let group = Path::new(MOUNT).join(group);
    // Linux 5.14; older kernels lack it, and the PID namespace has taken everything with it already.
    let _ = std::fs::write(group.join("cgroup.kill"), "1");
    wait::until(Duration::from_secs(10), "the control group is gone", || {
        remove_below(&group).map_err(|e| format!("{}: {e}", group.display()))
    })
    .map_err(|late| Failure::new(late.to_string()))
}

/// Removes empty groups, innermost first. A dead process leaves its group a moment after it was waited for.
fn remove_below(group: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_below(&entry.path())?;
        }
    }
    match std::fs::remove_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes groups of gates of which all processes were killed at once, the janitor with the one that watched it. A group that is in use refuses.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Somebody else's leftovers: what cannot be removed does not hinder us.
            let _ = remove_below(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_group_is_found_on_all_kinds_of_hosts() {
        let cases = [
            ("0::/user.slice/user-0.slice/session-1.scope\n", Some("user.slice/user-0.slice/session-1.scope")),
            ("9:name=systemd:/x\n4:memory:/y\n0::/\n", Some("")),
            ("9:name=systemd:/x\n", None),
        ];
        for (text, want) in cases {
            assert_eq!(unified(text), want, "{text}");
        }
    }

    #[test]
    fn empty_groups_are_removed_innermost_first() {
        let directory = tempfile::tempdir().unwrap();
        let group = directory.path().join("g");
        std::fs::create_dir_all(group.join("payload/system.slice/x.service")).unwrap();
        std::fs::create_dir_all(group.join("supervisor")).unwrap();
        remove_below(&group).unwrap();
        assert!(!group.exists());
        remove_below(&group).unwrap();
    }
}
