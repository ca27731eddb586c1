//! Tells the service manager how it stands (sd_notify(3)).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The manager's socket, where there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    status: String,
}

impl Notifier {
    /// The socket of `$NOTIFY_SOCKET`.
    pub fn of_process() -> Notifier {
        std::env::var_os("NOTIFY_SOCKET").map_or_else(Notifier::default, |name| Notifier::at(&name))
    }

    /// A socket by its name: a path, or `@` and an abstract name.
    pub fn at(name: &OsStr) -> Notifier {
        let address = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
            _ => SocketAddr::from_pathname(name),
        };
        Notifier { socket: UnixDatagram::unbound().ok().zip(address.ok()), status: String::new() }
    }

    /// It runs.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// It still gets on (`WatchdogSec=`).
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// It ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// How it stands, in words; true when that is new.
    pub fn status(&mut self, text: &str) -> bool {
        if self.status == text {
            return false;
        }
        text.clone_into(&mut self.status);
        self.send(&format!("STATUS={}", text.replace('\n', " ")));
        true
    }

    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen is no reason to stop: the watchdog then ends us, as it must.
            drop(socket.send_to_addr(text.as_bytes(), address));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_it_and_each_status_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let mut notifier = Notifier::at(path.as_os_str());
        notifier.ready();
        assert!(notifier.status("waits\nfor it"));
        assert!(!notifier.status("waits\nfor it"));
        notifier.alive();
        let mut heard = Vec::new();
        manager.set_nonblocking(true).unwrap();
        let mut buffer = [0; 256];
        while let Ok(length) = manager.recv(&mut buffer) {
            heard.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        assert_eq!(heard, ["READY=1", "STATUS=waits for it", "WATCHDOG=1"]);
        Notifier::default().ready();
        Notifier::at(OsStr::new("@nobody-listens-here")).ready();
    }
}
