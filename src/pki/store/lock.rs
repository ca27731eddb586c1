//! One process at a time.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::finding::Failure;

/// Holds `pki/lock` until it is dropped. flock(2) ends with the process, so a crash never leaves it held.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code, reason = "held, not read: closing it releases the lock")] File);

impl Lock {
    /// Takes the lock; says so once when it has to wait.
    pub(super) fn take(path: &Path, say: &dyn Fn(&str)) -> Result<Lock, Failure> {
        let file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock(file)),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(Failure::io("lock", path, &error.into())),
        }
        say(&format!("waiting for {}: another fitout uses the certificate store", path.display()));
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Lock(file)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::io("lock", path, &error.into())),
            }
        }
    }
}

/// A store on a read-only file system can be used as long as nothing is issued; flock(2) does not ask for writing.
fn open(path: &Path) -> Result<File, Failure> {
    match File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path) {
        Ok(file) => Ok(file),
        Err(error) => File::open(path).map_err(|_| Failure::io("open", path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_second_waits_says_so_and_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = Lock::take(&path, &|text| panic!("free, but: {text}")).unwrap();
        let (said, heard) = mpsc::channel();
        let second = std::thread::spawn({
            let path = path.clone();
            move || Lock::take(&path, &|text| said.send(text.to_owned()).unwrap()).map(|_| ())
        });
        let text = heard.recv().unwrap();
        assert!(text.starts_with("waiting for ") && text.contains("another fitout"), "{text}");
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap().unwrap();
    }
}
