//! `fitout registry show --watch`: over a lost connection and compacted history.

use std::process::Child;

use super::claims::HERE;
use super::solo::Solo;
use crate::common::{tool, until};

struct Watching<'a> {
    solo: &'a Solo,
    child: Child,
}

impl Watching<'_> {
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.solo.path("watched")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits for a line with this text after the first `from` lines; gives how many there are up to it.
    #[track_caller]
    fn says(&self, from: usize, text: &str) -> usize {
        until(text, || {
            let lines = self.lines();
            let found = lines.iter().enumerate().skip(from).find(|(_, line)| line.contains(text));
            found.map(|(n, _)| n + 1).ok_or_else(|| lines.join("\n"))
        })
    }

    fn signal(&self, name: &str) {
        // setpriv became nsenter, which became fitout: one id.
        tool("kill", &[name, &self.child.id().to_string()]);
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
    }
}

fn watch(solo: &Solo) -> Watching<'_> {
    let file = std::fs::File::create(solo.path("watched")).expect("a file");
    let child = solo
        .command(&["registry", "show", "--watch", "--timeout", "2"])
        .stdout(file.try_clone().expect("a file"))
        .stderr(file)
        .spawn()
        .expect("it starts");
    Watching { solo, child }
}

pub fn every_change_is_told(solo: &Solo) {
    let health = |state: &str, minute: u32| {
        format!(r#"{{"v":1,"state":"{state}","checks":{{}},"at":"2026-11-30T10:{minute:02}:00Z"}}"#)
    };
    let watching = watch(solo);
    let at = watching.says(0, "DATA SET");
    solo.etcdctl("a1", &["put", "/mesh/live/a1/here", HERE]).exits(0);
    let at = watching.says(at, "+ /mesh/live/a1/here: boot_id 6f1c2f0e-8d3b-4f7a-9c55-0a1b2c3d4e5f, generation 1");
    solo.etcdctl("a1", &["put", "/mesh/live/a1/health", &health("ok", 1)]).exits(0);
    let at = watching.says(at, "+ /mesh/live/a1/health: state ok");
    solo.etcdctl("a1", &["put", "/mesh/live/a1/health", &health("ok", 6)]).exits(0);
    solo.etcdctl("a1", &["put", "/mesh/live/a1/health", &health("bad", 7)]).exits(0);
    let next = watching.says(at, "~ /mesh/live/a1/health: state bad instead of ok");
    assert_eq!(next, at + 1, "that it was looked at again is no news");

    // While it sleeps the member is another process, and the history that it has not seen is gone.
    watching.signal("-STOP");
    restart_and_forget(solo);
    watching.signal("-CONT");
    let at = watching.says(next, "the registry is back: https://127.78.0.1:2379");
    let at = watching.says(at, "history was compacted: all keys were read again");
    let at = watching.says(at, "+ /mesh/ops/a1/cert/client: x");
    watching.says(at, "- /mesh/live/a1/here");
    drop(watching);

    // And without anything in between.
    let watching = watch(solo);
    let at = watching.says(0, "DATA SET");
    let at = at.max(watching.lines().len());
    solo.etcdctl("a1", &["del", "--prefix", "/mesh/ops/a1/"]).exits(0);
    watching.says(at, "- /mesh/ops/a1/cert/client");
    solo.etcdctl("a1", &["del", "--prefix", "/mesh/live/a1/"]).exits(0);
    watching.says(at, "- /mesh/live/a1/health");
}

/// Restarts etcd, changes two keys and forgets how.
fn restart_and_forget(solo: &Solo) {
    solo.restart();
    solo.etcdctl("a1", &["put", "/mesh/ops/a1/cert/client", "x"]).exits(0);
    solo.etcdctl("a1", &["del", "/mesh/live/a1/here"]).exits(0);
    solo.etcdctl("anna", &["compact", &solo.new_revision()]).exits(0);
}
