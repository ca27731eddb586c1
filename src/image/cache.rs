//! The cache: what is costly to make and follows from its inputs alone, kept by the digest of those inputs.
//!
//! A [`Slot`] is the directory of one key, held under an advisory lock (flock(2)) so that two builds at once do not
//! make one thing twice. Files appear in it whole or not at all. Readers do not trust it: who stores something
//! stores also how to prove it, and makes it anew when the proof fails.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Serialize, de::DeserializeOwned};

use super::progress::Progress;
use crate::finding::Failure;
use crate::tree::Digest;

/// Beginning of the name of a file that is not complete.
const UNFINISHED: &str = ".unfinished-";

/// A directory of slots.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens the cache at `directory`, else `$XDG_CACHE_HOME/fitout`, else `~/.cache/fitout`, and makes it if needed.
    ///
    /// # Errors
    /// When none of them is known, or it cannot be made or written.
    pub fn open(directory: Option<&Path>) -> Result<Cache, Failure> {
        let root = match directory {
            Some(directory) => directory.to_path_buf(),
            None => default_root(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")).ok_or_else(|| {
                Failure::new("no place for the cache: neither `XDG_CACHE_HOME` nor `HOME` is set")
                    .help("name a directory with `--cache-dir` or `FITOUT_CACHE`")
            })?,
        };
        fs::create_dir_all(&root).map_err(|e| {
            Failure::io("make the cache directory", &root, &e)
                .help("name another directory with `--cache-dir` or `FITOUT_CACHE`")
        })?;
        Ok(Cache { root })
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Locks the slot of a key, waiting for another process that has it. `kind` is a plain word such as `base`.
    ///
    /// # Errors
    /// When the directory or its lock cannot be made.
    pub fn slot(&self, kind: &str, key: &Digest, progress: &dyn Progress) -> Result<Slot, Failure> {
        let directory = self.root.join(kind).join(key.hex());
        fs::create_dir_all(&directory).map_err(|e| Failure::io("make", &directory, &e))?;
        let path = directory.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|e| Failure::io("open", &path, &e))?;
        let flock = |operation| rustix::io::retry_on_intr(|| rustix::fs::flock(&lock, operation));
        if let Err(error) = flock(FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(Failure::io("lock", &path, &error.into()));
            }
            let _step = progress.start(&format!("waiting for another build that makes the same {kind}"), None);
            flock(FlockOperation::LockExclusive).map_err(|e| Failure::io("lock", &path, &e.into()))?;
        }
        let slot = Slot { directory, _lock: lock };
        slot.sweep()?;
        Ok(slot)
    }
}

fn default_root(xdg: Option<std::ffi::OsString>, home: Option<std::ffi::OsString>) -> Option<PathBuf> {
    // The XDG base directory specification: a relative path is to be ignored.
    let absolute = |value: std::ffi::OsString| Some(PathBuf::from(value)).filter(|p| p.is_absolute());
    xdg.and_then(absolute).or_else(|| Some(home.and_then(absolute)?.join(".cache"))).map(|p| p.join("fitout"))
}

/// The files of one key, ours alone until it is dropped.
#[derive(Debug)]
pub struct Slot {
    directory: PathBuf,
    _lock: File,
}

impl Slot {
    /// Where a file of this slot is, or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Removes what killed builds left unfinished. The lock is ours, so nobody is writing.
    fn sweep(&self) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::io("tidy up", &self.directory, &e);
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes()) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes everything, for instance what turned out to be damaged.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn clear(&self) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::io("clear", &self.directory, &e);
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() != "lock" {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Begins a file; it is gone unless it is published.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(&self) -> Result<Unfinished, Failure> {
        let file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.directory)
            .map_err(|e| Failure::io("make a file in", &self.directory, &e))?;
        Ok(Unfinished { file, directory: self.directory.clone() })
    }

    /// Stores a value as JSON, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_record<T: Serialize>(&self, name: &str, value: &T) -> Result<(), Failure> {
        let unfinished = self.create()?;
        let path = self.path(name);
        let mut out = BufWriter::new(unfinished.file.as_file());
        serde_json::to_writer_pretty(&mut out, value).map_err(|e| Failure::io("write", &path, &e.into()))?;
        out.flush().map_err(|e| Failure::io("write", &path, &e))?;
        drop(out);
        unfinished.publish(name)
    }

    /// Reads a value back. What is missing, damaged, or of another version is `None`: it is made anew.
    pub fn read_record<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.path(name)).ok()?).ok()
    }
}

/// A file on its way into a slot.
#[derive(Debug)]
pub struct Unfinished {
    file: tempfile::NamedTempFile,
    directory: PathBuf,
}

impl Unfinished {
    /// The open file.
    pub fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }
    /// Where it is while it is being made.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
    /// Makes it durable and gives it its name.
    ///
    /// # Errors
    /// When it cannot be synced or renamed.
    pub fn publish(self, name: &str) -> Result<(), Failure> {
        let path = self.directory.join(name);
        self.file.as_file().sync_all().map_err(|e| Failure::io("write", &path, &e))?;
        self.file.persist(&path).map_err(|e| Failure::io("write", &path, &e.error))?;
        // The name itself is durable only with its directory.
        File::open(&self.directory).and_then(|d| d.sync_all()).map_err(|e| Failure::io("write", &self.directory, &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::progress::Silent;

    #[test]
    fn place_of_the_cache() {
        let cases = [
            (Some("/xdg"), Some("/home/a"), Some("/xdg/fitout")),
            (Some("relative"), Some("/home/a"), Some("/home/a/.cache/fitout")),
            (Some(""), Some("/home/a"), Some("/home/a/.cache/fitout")),
            (None, Some("/home/a"), Some("/home/a/.cache/fitout")),
            (None, Some(""), None),
            (None, None, None),
        ];
        for (xdg, home, want) in cases {
            let got = default_root(xdg.map(Into::into), home.map(Into::into));
            assert_eq!(got, want.map(PathBuf::from), "{xdg:?} {home:?}");
        }
    }

    #[test]
    fn files_appear_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(&directory.path().join("new/cache"))).unwrap();
        let key = Digest::of(b"key");
        let slot = cache.slot("base", &key, &Silent).unwrap();
        let mut dropped = slot.create().unwrap();
        dropped.file().write_all(b"half").unwrap();
        let path = dropped.path().to_path_buf();
        assert!(path.exists() && !slot.path("a").exists());
        drop(dropped);
        assert!(!path.exists());
        let mut kept = slot.create().unwrap();
        kept.file().write_all(b"whole").unwrap();
        kept.publish("a").unwrap();
        assert_eq!(fs::read(slot.path("a")).unwrap(), b"whole");

        // What a killed build left is swept when the slot is next locked.
        let orphan = slot.path(".unfinished-x");
        fs::write(&orphan, b"half").unwrap();
        drop(slot);
        let slot = cache.slot("base", &key, &Silent).unwrap();
        assert!(!orphan.exists() && slot.path("a").exists());
        slot.clear().unwrap();
        assert!(!slot.path("a").exists());
    }

    #[test]
    fn damaged_records_are_as_good_as_none() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(directory.path())).unwrap();
        let slot = cache.slot("base", &Digest::of(b"key"), &Silent).unwrap();
        assert_eq!(slot.read_record::<u32>("r"), None);
        slot.write_record("r", &7u32).unwrap();
        assert_eq!(slot.read_record::<u32>("r"), Some(7));
        fs::write(slot.path("r"), b"{").unwrap();
        assert_eq!(slot.read_record::<u32>("r"), None);
    }

    #[test]
    fn one_key_is_had_by_one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(directory.path())).unwrap();
        let key = Digest::of(b"key");
        let slot = cache.slot("base", &key, &Silent).unwrap();
        // Another key is free.
        drop(cache.slot("base", &Digest::of(b"other"), &Silent).unwrap());
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let second = cache.slot("base", &key, &Silent).unwrap();
                send.send(second.path("made").exists()).unwrap();
            });
            assert!(receive.recv_timeout(std::time::Duration::from_millis(200)).is_err(), "it does not wait");
            slot.create().unwrap().publish("made").unwrap();
            drop(slot);
            assert!(receive.recv().unwrap(), "the second sees what the first made");
        });
    }

    #[test]
    fn a_place_that_cannot_be_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = Cache::open(Some(&file.path().join("cache"))).unwrap_err();
        assert!(failure.message.starts_with("cannot make the cache directory"), "{failure}");
    }
}
