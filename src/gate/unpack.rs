//! Unpacking an image by GNU tar, the way an administrator would, onto the gate's tmpfs.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::plan::Planned;
use crate::finding::Failure;
use crate::process::{Command, Running};
use crate::tree::Digest;

/// Unpacking a root of some hundred megabytes takes a second or two; a busy host may need longer.
const DEADLINE: Duration = Duration::from_secs(300);

/// Opens an image and compares it with what the index says.
///
/// # Errors
/// When it cannot be read, or is not the one of the index.
pub fn open(image: &Planned) -> Result<File, Failure> {
    let mut file = File::open(&image.path).map_err(|e| Failure::io("open", &image.path, &e))?;
    let Some(want) = &image.sha256 else { return Ok(file) };
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut buffer).map_err(|e| Failure::io("read", &image.path, &e))?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
    }
    let got = Digest(hash.finalize().into());
    if got != *want {
        return Err(Failure::new(format!("{} is not the image that its index.json describes", image.path.display()))
            .help(format!("its sha256 is {got}, the index says {want}: build it again")));
    }
    file.rewind().map_err(|e| Failure::io("read", &image.path, &e))?;
    Ok(file)
}

/// Starts unpacking into an existing directory.
///
/// # Errors
/// When tar cannot be started.
pub fn start(file: File, root: &Path) -> Result<Running, Failure> {
    Command::new("tar")
        .args(["--extract", "--gzip", "--file", "-", "--preserve-permissions", "--same-owner", "--numeric-owner"])
        .args(["--xattrs", "--xattrs-include=*", "--directory"])
        .arg(root)
        .input_file(file)
        .spawn()
}

/// Waits for it.
///
/// # Errors
/// When tar complains or the tmpfs is full.
pub fn finish(image: &Planned, tar: Running) -> Result<(), Failure> {
    let done = tar.wait(DEADLINE)?;
    if done.status.success() {
        return Ok(());
    }
    let failure = Failure::new(format!("tar cannot unpack {}:\n  {}", image.path.display(), done.log.trim()));
    Err(if done.log.contains("No space left") {
        failure.help("all machines are unpacked in memory: give fewer images, or run on a host with more memory")
    } else {
        failure
    })
}
