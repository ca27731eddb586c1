//! Opening of input files that never waits: a named pipe without a writer would block for ever.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file for reading, links followed. Directories are opened too: what reads them says so itself.
///
/// # Errors
/// As of open(2); and in words for a named pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Not opened at all: to open a device may do something (a tape rewinds), and a socket cannot be.
    is_regular(&std::fs::metadata(path)?)?;
    // It may have been exchanged since.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    is_regular(&file.metadata()?)?;
    Ok(file)
}

/// The content of a regular file.
///
/// # Errors
/// As of [`open`], and when it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file.
///
/// # Errors
/// As of [`read`], and when it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

fn is_regular(metadata: &Metadata) -> io::Result<()> {
    match other(metadata.file_type()) {
        None => Ok(()),
        Some(what) => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file"))),
    }
}

/// What is neither a file nor a directory, in words.
fn other(kind: FileType) -> Option<&'static str> {
    match () {
        () if kind.is_fifo() => Some("a named pipe"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "content").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        std::os::unix::fs::symlink("pipe", path("link-to-pipe")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0)
            .unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        let cases = [
            (path("file"), Ok("content")),
            (path("link"), Ok("content")),
            (path("pipe"), Err("it is a named pipe, not a regular file")),
            (path("link-to-pipe"), Err("it is a named pipe, not a regular file")),
            (path("socket"), Err("it is a socket, not a regular file")),
            ("/dev/zero".into(), Err("it is a device, not a regular file")),
            (path("none"), Err("No such file or directory (os error 2)")),
        ];
        for (path, want) in cases {
            let (sender, receiver) = mpsc::channel();
            let file = path.clone();
            std::thread::spawn(move || sender.send(read(&file).map_err(|e| e.to_string())));
            let got = receiver.recv_timeout(Duration::from_secs(20)).expect("it waits for the other end");
            assert_eq!(got, want.map(|text| text.as_bytes().to_vec()).map_err(str::to_owned), "{}", path.display());
        }
    }
}
