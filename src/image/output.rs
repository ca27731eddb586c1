//! Files that appear whole or not at all.
//!
//! A file is written without a name (open(2), `O_TMPFILE`) in the target's file system, forced to the disk, and then takes
//! its final name: a run that is interrupted or killed leaves nothing. Where the file system cannot do that, it is
//! written under a temporary name; a living run holds a lock on it, and [`sweep`] removes what killed ones left at the
//! next start.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat};
use tempfile::NamedTempFile;

use crate::finding::Failure;

/// What the names of temporary files begin and end with.
const PREFIX: &str = ".fitout-";
const SUFFIX: &str = ".partial";

/// Who may read the file. Never the umask's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// `0600`: it holds private keys.
    Owner,
    /// `0644`.
    Everyone,
}

/// A file that is being written. Dropping it removes it.
#[derive(Debug)]
pub struct Atomic {
    file: Pending,
    target: PathBuf,
}

/// A file that has not its final name yet.
#[derive(Debug)]
enum Pending {
    Unnamed(File),
    Named(NamedTempFile),
}

impl Pending {
    fn file(&self) -> &File {
        match self {
            Pending::Unnamed(file) => file,
            Pending::Named(file) => file.as_file(),
        }
    }

    /// A file without a name that can be given one later. `O_EXCL` would forbid that, so tempfile's own will not do.
    fn unnamed(directory: &Path) -> io::Result<Pending> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?);
        std::fs::symlink_metadata(by_descriptor(&file))?;
        Ok(Pending::Unnamed(file))
    }

    fn named(directory: &Path) -> io::Result<Pending> {
        loop {
            let file = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempfile_in(directory)?;
            // Another run may sweep between the two calls: it then has the lock, or has removed the file. Where a
            // file system knows no locks nobody can sweep either.
            let swept = flock(file.as_file(), FlockOperation::NonBlockingLockExclusive)
                .is_err_and(|e| e == rustix::io::Errno::WOULDBLOCK)
                || file.as_file().metadata()?.nlink() == 0;
            if !swept {
                return Ok(Pending::Named(file));
            }
        }
    }

    /// Gives it its final name, replacing what was there.
    fn persist(self, target: &Path) -> io::Result<()> {
        match self {
            Pending::Named(file) => file.persist(target).map(drop).map_err(|e| e.error),
            Pending::Unnamed(file) => {
                // A link cannot replace a file, a rename can; the name in between lives for a moment.
                let from = by_descriptor(&file);
                let link = |to: &Path| Ok(linkat(CWD, &from, CWD, to, AtFlags::SYMLINK_FOLLOW)?);
                let name =
                    tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).make_in(directory_of(target), link)?;
                name.into_temp_path().persist(target).map_err(|e| e.error)
            }
        }
    }
}

/// The path of an open file (proc(5), `/proc/self/fd`).
fn by_descriptor(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

impl Atomic {
    /// Begins to write `target`, whose directory must exist.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn create(target: &Path, access: Access) -> Result<Atomic, Failure> {
        Self::begin(target, access).map_err(|e| Self::failure("write", target, &e))
    }

    fn begin(target: &Path, access: Access) -> io::Result<Atomic> {
        let directory = directory_of(target);
        Self::with(Pending::unnamed(directory).or_else(|_| Pending::named(directory))?, target, access)
    }

    fn with(file: Pending, target: &Path, access: Access) -> io::Result<Atomic> {
        let mode = match access {
            Access::Owner => 0o600,
            Access::Everyone => 0o644,
        };
        file.file().set_permissions(Permissions::from_mode(mode))?;
        Ok(Atomic { file, target: target.to_owned() })
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        match &mut self.file {
            Pending::Unnamed(file) => file,
            Pending::Named(file) => file.as_file_mut(),
        }
    }

    /// The final name.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Forces the file to the disk and gives it its final name, replacing what was there.
    ///
    /// # Errors
    /// When it cannot be stored; nothing then has the final name, or what had it before still has.
    pub fn commit(self) -> Result<(), Failure> {
        let target = self.store()?;
        sync_directory(directory_of(&target))
    }

    /// As [`Atomic::commit`], but the new name is not yet forced to the disk.
    fn store(self) -> Result<PathBuf, Failure> {
        let Atomic { file, target } = self;
        let store = || -> io::Result<()> {
            file.file().sync_all()?;
            file.persist(&target)
        };
        store().map_err(|e| Self::failure("store", &target, &e))?;
        Ok(target)
    }

    /// A failure to write `target`, with help when the disk is full.
    pub fn failure(what: &str, target: &Path, error: &io::Error) -> Failure {
        let failure = Failure::io(what, target, error);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => failure.help(format!(
                "make room on the file system of {}; nothing was left under the final name",
                directory_of(target).display()
            )),
            _ => failure,
        }
    }
}

/// Commits files in the background, in the order in which they come, so that the disk is busy while more are made.
///
/// A file that is forced to the disk where it was made keeps its maker waiting, and on ext4 each such wait ends a
/// transaction of the journal that drags along what others are writing.
#[derive(Debug)]
pub struct Committer {
    queue: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<BTreeSet<PathBuf>>>,
}

/// A file to commit, and where to say how it went.
type Order = (Atomic, SyncSender<Result<(), Failure>>);

/// A file that is on its way to its final name.
#[derive(Debug)]
pub struct Committed(Receiver<Result<(), Failure>>);

/// How many files wait to be committed before the next one has to; each holds a file descriptor.
const QUEUE: usize = 8;

impl Committer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start() -> Result<Committer, Failure> {
        let (queue, files) = sync_channel::<Order>(QUEUE);
        let work = move || {
            let mut directories = BTreeSet::new();
            for (file, reply) in files {
                let stored = file.store().map(|target| {
                    directories.insert(directory_of(&target).to_owned());
                });
                // Who does not wait for it does not want to know.
                let _ = reply.send(stored);
            }
            directories
        };
        let thread = std::thread::Builder::new().name("commit".into()).spawn(work);
        let thread = thread.map_err(|e| Failure::new(format!("cannot start a thread: {e}")))?;
        Ok(Committer { queue: Some(queue), thread: Some(thread) })
    }

    /// Hands a file over; waits only when many others wait too.
    pub fn commit(&self, file: Atomic) -> Committed {
        let (reply, stored) = sync_channel(1);
        if let Some(queue) = &self.queue {
            // When the thread is gone, waiting for the file says so.
            let _ = queue.send((file, reply));
        }
        Committed(stored)
    }

    /// Waits for all, and forces their names to the disk.
    ///
    /// # Errors
    /// When a directory cannot be synced.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.queue = None;
        let directories = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(directories)) => directories,
            _ => return Err(Failure::new("the thread that stores files ended early")),
        };
        directories.iter().try_for_each(|d| sync_directory(d))
    }
}

impl Committed {
    /// Waits until the file has its final name.
    ///
    /// # Errors
    /// As [`Atomic::commit`].
    pub fn wait(self) -> Result<(), Failure> {
        self.0.recv().unwrap_or_else(|_| Err(Failure::new("the thread that stores files ended early")))
    }
}

/// Forces names in a directory to the disk.
fn sync_directory(directory: &Path) -> Result<(), Failure> {
    File::open(directory).and_then(|d| d.sync_all()).map_err(|e| Failure::io("sync", directory, &e))
}

/// Writes a whole small file.
///
/// # Errors
/// As [`Atomic::create`] and [`Atomic::commit`].
pub fn write(target: &Path, access: Access, bytes: &[u8]) -> Result<(), Failure> {
    let mut atomic = Atomic::create(target, access)?;
    atomic.file().write_all(bytes).map_err(|e| Atomic::failure("write", target, &e))?;
    atomic.commit()
}

/// Removes the temporary files that killed runs left in a directory, and returns how many. Those of living runs stay.
///
/// # Errors
/// When the directory cannot be read or a file cannot be removed.
pub fn sweep(directory: &Path) -> Result<usize, Failure> {
    let mut removed = 0;
    for entry in std::fs::read_dir(directory).map_err(|e| Failure::io("read", directory, &e))? {
        let entry = entry.map_err(|e| Failure::io("read", directory, &e))?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if !name.starts_with(PREFIX.as_bytes()) || !name.ends_with(SUFFIX.as_bytes()) {
            continue;
        }
        let remove = || -> io::Result<bool> {
            let file = File::open(entry.path())?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Ok(false);
            }
            std::fs::remove_file(entry.path())?;
            Ok(true)
        };
        match remove() {
            Ok(gone) => removed += usize::from(gone),
            // It was renamed or removed in the meantime.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Failure::io("remove", &entry.path(), &e)),
        }
    }
    Ok(removed)
}

/// The directory in which a file lies or will lie.
fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Both ways of writing, on a file system that can do both.
    const WAYS: [fn(&Path) -> io::Result<Pending>; 2] = [Pending::unnamed, Pending::named];

    #[test]
    fn a_file_appears_whole_with_its_mode() {
        for (way, (access, mode)) in
            WAYS.iter().flat_map(|w| [(w, (Access::Owner, 0o600)), (w, (Access::Everyone, 0o644))])
        {
            let directory = tempfile::tempdir().unwrap();
            let target = directory.path().join("image");
            for content in [&b"whole"[..], b"another"] {
                let mut atomic = Atomic::with(way(directory.path()).unwrap(), &target, access).unwrap();
                assert_eq!(atomic.target(), target);
                atomic.file().write_all(content).unwrap();
                assert!(!target.exists() || std::fs::read(&target).unwrap() == b"whole");
                atomic.commit().unwrap();
                assert_eq!(std::fs::read(&target).unwrap(), content);
                assert_eq!(target.metadata().unwrap().mode() & 0o7777, mode);
                assert_eq!(names(directory.path()), ["image"]);
            }
        }
    }

    #[test]
    fn what_was_there_stays_when_the_new_one_is_given_up() {
        for (way, under_way) in WAYS.iter().zip([1, 2]) {
            let directory = tempfile::tempdir().unwrap();
            let target = directory.path().join("image");
            write(&target, Access::Owner, b"old").unwrap();
            let mut atomic = Atomic::with(way(directory.path()).unwrap(), &target, Access::Owner).unwrap();
            atomic.file().write_all(b"new").unwrap();
            assert_eq!(names(directory.path()).len(), under_way);
            drop(atomic);
            assert_eq!((names(directory.path()).len(), std::fs::read(&target).unwrap()), (1, b"old".to_vec()));
        }
    }

    #[test]
    fn files_are_committed_in_the_background() {
        let directory = tempfile::tempdir().unwrap();
        let committer = Committer::start().unwrap();
        let files: Vec<_> = (0..3 * QUEUE)
            .map(|n| {
                let mut file = Atomic::create(&directory.path().join(format!("{n:02}")), Access::Owner).unwrap();
                write!(file.file(), "{n}").unwrap();
                committer.commit(file)
            })
            .collect();
        // One whose final name is taken by a directory cannot be stored; the others are.
        let taken = directory.path().join("taken");
        std::fs::create_dir_all(taken.join("x")).unwrap();
        let bad = committer.commit(Atomic::create(&taken, Access::Owner).unwrap());
        assert!(bad.wait().unwrap_err().message.starts_with("cannot store "));
        for file in files {
            file.wait().unwrap();
        }
        committer.finish().unwrap();
        let names = names(directory.path());
        assert_eq!(names.len(), 3 * QUEUE + 1, "{names:?}");
        assert_eq!(std::fs::read(directory.path().join("23")).unwrap(), b"23");
    }

    #[test]
    fn leftovers_of_killed_runs_are_swept_and_files_under_way_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let leftover = format!("{PREFIX}abc123{SUFFIX}");
        for name in [leftover.as_str(), ".fitout-cache", "other.partial", "image"] {
            std::fs::write(directory.path().join(name), b"").unwrap();
        }
        let named = Pending::named(directory.path()).unwrap();
        let under_way = Atomic::with(named, &directory.path().join("image"), Access::Owner).unwrap();
        assert_eq!(sweep(directory.path()), Ok(1));
        let left = names(directory.path());
        assert!(!left.contains(&leftover) && left.len() == 4, "{left:?}");
        under_way.commit().unwrap();
        assert_eq!(names(directory.path()), [".fitout-cache", "image", "other.partial"]);
    }

    #[test]
    fn a_missing_directory_and_a_full_disk_are_said() {
        let failure = Atomic::create(Path::new("/nonexistent/dist/image"), Access::Owner).map(|_| ()).unwrap_err();
        assert!(failure.message.starts_with("cannot write /nonexistent/dist/image: No such file"), "{failure}");
        let full = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        let failure = Atomic::failure("write", Path::new("dist/image"), &full);
        assert_eq!(
            failure.help.as_deref(),
            Some("make room on the file system of dist; nothing was left under the final name")
        );
    }
}
