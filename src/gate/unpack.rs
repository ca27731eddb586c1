//! Unpacking an image by GNU tar, the way an administrator would, onto the gate's tmpfs.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
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
    let mut file = crate::regular::open(&image.path).map_err(|e| Failure::io("open", &image.path, &e))?;
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

/// tar's option for what a file begins with; tar cannot look ahead in its standard input.
fn decompression(magic: [u8; 4]) -> Option<&'static str> {
    match magic {
        [0x1f, 0x8b, ..] => Some("--gzip"),
        [0x28, 0xb5, 0x2f, 0xfd] => Some("--zstd"),
        _ => None,
    }
}

/// Starts unpacking into an existing directory.
///
/// # Errors
/// When the file cannot be read, or tar cannot be started.
pub fn start(file: File, root: &Path) -> Result<Running, Failure> {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0).map_err(|e| Failure::new(format!("cannot read an image: {e}")))?;
    Command::new("tar")
        .args(["--extract", "--file", "-"])
        .args(decompression(magic))
        .args(["--preserve-permissions", "--same-owner", "--numeric-owner"])
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_image_is_unpacked_as_it_is_and_only_if_it_is_the_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lis1.tar.gz");
        let sh = format!(
            "cd {0} && mkdir in out && echo hi >in/f && tar -C in -cf - . | gzip >{1}",
            directory.path().display(),
            path.display()
        );
        Command::new("sh").args(["-c", &sh]).check().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut planned = Planned { path: path.clone(), sha256: Some(Digest::of(&bytes)) };
        let root = directory.path().join("out");
        finish(&planned, start(open(&planned).unwrap(), &root).unwrap()).unwrap();
        assert_eq!(std::fs::read(root.join("f")).unwrap(), b"hi\n");

        File::options().append(true).open(&path).unwrap().write_all(b"x").unwrap();
        let failure = open(&planned).unwrap_err();
        assert!(failure.message.ends_with("is not the image that its index.json describes"), "{failure}");

        planned.sha256 = None;
        std::fs::write(&path, &bytes[..bytes.len() - 12]).unwrap();
        let failure = finish(&planned, start(open(&planned).unwrap(), &root).unwrap()).unwrap_err();
        assert!(failure.message.starts_with("tar cannot unpack"), "{failure}");
    }
}
