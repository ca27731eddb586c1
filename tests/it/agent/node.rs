//! One announcer as a process, beside a registry of built images.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};

use crate::check::registry::Registry;
use crate::common::{tool, until};

/// An announcer with facts of its own, as the image has them but for paths and times.
pub struct Node {
    pub name: &'static str,
    facts: PathBuf,
    metrics: PathBuf,
    log: PathBuf,
    child: Option<Child>,
}

/// Times that a test can wait for: a lease of 3 s, renewed each second, health told at the latest after an hour.
const TIMES: [(&str, &str); 3] =
    [("lease = 30", "lease = 3"), ("renew = 10", "renew = 1"), ("health = 300", "health = 3600")];

impl Node {
    /// The facts of a node's image, with further changes; each must find what it changes.
    pub fn new(registry: &Registry, name: &'static str, changes: &[(&str, &str)]) -> Node {
        let directory = registry.file(name, "agent");
        std::fs::create_dir_all(&directory).expect("directory");
        let node = Node {
            name,
            facts: directory.join("node.toml"),
            metrics: directory.join("mesh.prom"),
            log: directory.join("log"),
            child: None,
        };
        let text = std::fs::read_to_string(registry.file(name, "etc/mesh/node.toml")).expect("node.toml");
        let root = registry.file(name, "etc");
        std::fs::write(&node.facts, text.replace("\"/etc/", &format!("\"{}/", root.display()))).expect("written");
        node.change(&TIMES);
        node.change(changes);
        node
    }

    /// Changes the facts.
    pub fn change(&self, changes: &[(&str, &str)]) {
        let mut text = std::fs::read_to_string(&self.facts).expect("facts");
        for (from, to) in changes {
            assert!(text.contains(from), "{from} is not in {text}");
            text = text.replace(from, to);
        }
        std::fs::write(&self.facts, text).expect("written");
    }

    /// Starts it in the registry's network.
    pub fn start(&mut self, registry: &Registry) {
        let log = std::fs::File::create(&self.log).expect("log");
        let path = |path: &Path| path.to_str().expect("utf-8").to_owned();
        let (facts, metrics) = (path(&self.facts), path(&self.metrics));
        let program = env!("CARGO_BIN_EXE_mesh-agent");
        let mut command = registry.within(&[program, "--facts", &facts, "--metrics", &metrics]);
        command.env_remove("CREDENTIALS_DIRECTORY").env_remove("NOTIFY_SOCKET");
        self.child = Some(command.stderr(log).stdout(Stdio::null()).spawn().expect("it starts"));
    }

    fn id(&self) -> String {
        self.child.as_ref().expect("it runs").id().to_string()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        tool("kill", &[signal, &self.id()]);
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        until("the announcer ends", || child.try_wait().expect("waited").ok_or("it runs".to_owned()))
    }

    /// What it has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has said something.
    #[track_caller]
    pub fn says(&self, text: &str) {
        until(&format!("{} says `{text}`", self.name), || {
            let said = self.said();
            if said.contains(text) { Ok(()) } else { Err(said) }
        });
    }

    /// A sample of its textfile.
    pub fn metric(&self, name: &str) -> Option<i64> {
        let text = std::fs::read_to_string(&self.metrics).ok()?;
        let line = text.lines().find(|line| line.starts_with(name) && line[name.len()..].starts_with([' ', '{']))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Its resident memory in KiB, and how long it has used the processor in ticks (proc(5)).
    pub fn cost(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks = fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime");
        (resident.trim().trim_end_matches(" kB").parse().expect("a number"), ticks)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("killed");
            child.wait().expect("waited");
        }
    }
}
