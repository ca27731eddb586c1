//! The logs of a failed run: each machine's journal and console.

use std::path::{Path, PathBuf};

use super::machine::Machine;
use crate::finding::Failure;

/// Writes them to a directory of their own below `logs`, which belongs to the owner of the mesh's directory, and
/// gives its path.
///
/// # Errors
/// When a file cannot be written.
pub fn keep(logs: &Path, machines: &[Machine]) -> Result<PathBuf, Failure> {
    let directory = logs.join(stamp());
    std::fs::create_dir_all(&directory).map_err(|e| Failure::io("make", &directory, &e))?;
    let mut written = vec![logs.to_owned(), directory.clone()];
    for machine in machines {
        // A machine that is down has no journal to ask for; its console says why.
        let journal = match machine.run(&["journalctl", "--no-pager", "--output=short-precise"]) {
            Ok(done) => String::from_utf8_lossy(&done.stdout).into_owned(),
            Err(failure) => format!("no journal: {failure}\n"),
        };
        for (kind, text) in [("journal", journal), ("console", machine.console())] {
            let path = directory.join(format!("{}.{kind}", machine.node));
            std::fs::write(&path, text).map_err(|e| Failure::io("write", &path, &e))?;
            written.push(path);
        }
    }
    give_to_owner(logs, &written)?;
    Ok(directory)
}

/// The gate runs as root, the mesh's directory mostly is a user's.
fn give_to_owner(logs: &Path, written: &[PathBuf]) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let mesh = logs.parent().unwrap_or(logs);
    let owner = std::fs::metadata(mesh).map_err(|e| Failure::io("look at", mesh, &e))?;
    for path in written {
        std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid()))
            .map_err(|e| Failure::io("give away", path, &e))?;
    }
    Ok(())
}

/// `2026-11-30T10-53-00Z`.
fn stamp() -> String {
    let t = time::OffsetDateTime::now_utc();
    format!("{}T{:02}-{:02}-{:02}Z", t.date(), t.hour(), t.minute(), t.second())
}
