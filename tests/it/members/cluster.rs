//! A mesh on loopback addresses in a network namespace of its own, whose declaration may change: each node runs the etcd
//! and the configuration out of its own image, with the paths moved to where it was unpacked. Nothing else is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::common::{Debian, Said, cache, path_with_fitout, tool, until};

/// A node: its name, and the last byte of its address.
pub type Node = (&'static str, u8);

/// The mesh and its processes.
pub struct Cluster {
    directory: tempfile::TempDir,
    suite: &'static str,
    holder: Child,
    running: BTreeMap<String, Child>,
}

impl Cluster {
    /// Declares, makes the store with an operator, and opens a namespace. Nothing is built or started.
    pub fn new(debian: Debian, nodes: &[Node]) -> Cluster {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--", "sleep", "3600"])
            .stdin(Stdio::null())
            .spawn()
            .expect("unshare");
        let cluster = Cluster { directory, suite: debian.suite(), holder, running: BTreeMap::new() };
        until("the namespace is there", || {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", cluster.holder.id())).unwrap_or_default();
            (comm == "sleep\n").then_some(()).ok_or(comm)
        });
        assert!(cluster.within("ip", &["link", "set", "lo", "up"]).status().expect("ip").success());
        std::fs::create_dir(cluster.mesh()).expect("directory");
        cluster.declare(nodes);
        cluster.fitout(&["pki", "init"]).exits(0);
        cluster.fitout(&["pki", "issue", "--operator", "anna"]).exits(0);
        cluster
    }

    /// The mesh's directory.
    pub fn mesh(&self) -> PathBuf {
        self.directory.path().join("mesh")
    }

    /// Writes mesh.toml, with the base of `examples/three-site`: one node is a control plane, more are voters in a site each; and a client beside them.
    pub fn declare(&self, nodes: &[Node]) {
        let (topology, profile) = if nodes.len() == 1 { ("single", "control-plane") } else { ("quorum", "voter") };
        let mut text = format!(
            "[mesh]\nname = \"loop\"\ntopology = \"{topology}\"\ndomain = \"loop.mesh\"\nnetwork = \"127.78.0.0/24\"\n\
             time-to-rebuild = \"1h\"\n[image]\nbase = \"common\"\nversion = \"1\"\n[base.common]\ndebian = \"{}\"\n\
             packages = [\"nftables\"]\n[registry]\nround-trip = \"1ms\"\n",
            self.suite
        );
        for (name, byte) in nodes {
            text += &format!(
                "[site.s-{name}]\n[node.{name}]\nsite = \"s-{name}\"\naddress = \"127.78.0.{byte}\"\nprofile = \"{profile}\"\n"
            );
        }
        let site = nodes[0].0;
        text += &format!("[node.edge]\nsite = \"s-{site}\"\naddress = \"127.78.0.200\"\nprofile = \"client\"\n");
        std::fs::write(self.mesh().join("mesh.toml"), text).expect("mesh.toml");
    }

    /// A command in the namespace and the mesh's directory; it dies with the test.
    pub fn within(&self, program: &str, arguments: &[&str]) -> Command {
        let holder = self.holder.id().to_string();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "nsenter", "--target", &holder, "--net", "--", program]);
        command.args(arguments).stdin(Stdio::null()).env("FITOUT_CACHE", cache()).env("NO_COLOR", "1");
        for variable in ["FITOUT_PKI", "FITOUT_PASSPHRASE", "SOURCE_DATE_EPOCH", "CREDENTIALS_DIRECTORY"] {
            command.env_remove(variable);
        }
        if self.mesh().exists() {
            command.current_dir(self.mesh());
        }
        command
    }

    pub fn fitout(&self, arguments: &[&str]) -> Said {
        self.within(env!("CARGO_BIN_EXE_fitout"), arguments).output().expect("the program starts").into()
    }

    /// `fitout registry members`.
    pub fn members(&self, more: &[&str]) -> Said {
        self.fitout(&[&["registry", "members", "--timeout", "2"], more].concat())
    }

    /// The objects of one type that `fitout registry members` says to programs.
    pub fn objects(&self, kind: &str, more: &[&str]) -> Vec<serde_json::Value> {
        let said = self.members(&[more, &["--message-format", "json"]].concat());
        let lines = said.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.filter(|object| object["type"] == kind).collect()
    }

    fn file(&self, node: &str, path: &str) -> PathBuf {
        self.directory.path().join("nodes").join(node).join(path)
    }

    pub fn image(&self, node: &str) -> PathBuf {
        self.mesh().join(format!("dist/{node}.tar.gz"))
    }

    /// Takes etcd and its files out of the image; data that is there stays.
    pub fn unpack(&self, node: &str) {
        let root = self.file(node, "");
        std::fs::create_dir_all(&root).expect("directory");
        let (image, to) = (self.image(node), root.to_str().expect("utf-8").trim_end_matches('/').to_owned());
        tool("tar", &["-xzf", image.to_str().expect("utf-8"), "-C", &to, "./etc/etcd", "./usr/bin/etcd"]);
        let file = self.file(node, "etc/etcd/etcd.yaml");
        let text = std::fs::read_to_string(&file).expect("etcd.yaml");
        let moved = text.replace("/etc/etcd/pki/", &format!("{to}/etc/etcd/pki/"));
        let moved = moved.replace("/var/lib/etcd", &format!("{to}/data"));
        assert_ne!(moved, text);
        std::fs::write(file, moved).expect("written");
    }

    /// Starts a node, as `systemctl start mesh-registry.target` does.
    pub fn start(&mut self, node: &str) {
        let (etcd, config) = (self.file(node, "usr/bin/etcd"), self.file(node, "etc/etcd/etcd.yaml"));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.file(node, "log")).expect("log");
        let child = self
            .within(etcd.to_str().expect("utf-8"), &["--config-file", config.to_str().expect("utf-8")])
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .expect("etcd");
        self.running.insert(node.to_owned(), child);
    }

    /// Kills a node, as a power failure does.
    pub fn kill(&mut self, node: &str) {
        let mut child = self.running.remove(node).expect("it runs");
        child.kill().expect("killed");
        child.wait().expect("waited");
    }

    /// True while a node's etcd runs.
    pub fn runs(&mut self, node: &str) -> bool {
        self.running.get_mut(node).is_some_and(|child| child.try_wait().expect("waited").is_none())
    }

    /// Removes a node's data, as a lost disk does.
    pub fn lose(&self, node: &str) {
        std::fs::remove_dir_all(self.file(node, "data")).expect("its data is gone");
    }

    /// etcdctl with the operator's certificate, at one node.
    pub fn etcdctl(&self, byte: u8, arguments: &[&str]) -> Said {
        let (endpoint, pki) = (format!("--endpoints=https://127.78.0.{byte}:2379"), self.mesh().join("pki"));
        let file = |option: &str, path: &str| format!("--{option}={}", pki.join(path).display());
        let files = [
            file("cacert", "authority/client.crt"),
            file("cert", "operators/anna.crt"),
            file("key", "operators/anna.key"),
        ];
        let mut command = self.within("etcdctl", &[&endpoint]);
        command.args(files).args(arguments).env("ETCDCTL_API", "3");
        command.output().expect("etcdctl is there: Debian's package etcd-client").into()
    }

    /// Waits until a node takes a write.
    pub fn writes(&self, byte: u8, key: &str, value: &str) {
        until("a write is taken", || {
            let said = self.etcdctl(byte, &["--command-timeout=3s", "put", key, value]);
            if said.code == Some(0) { Ok(()) } else { Err(format!("{}\n{}", said.all(), self.logs())) }
        });
    }

    /// All keys below a prefix with their values, as one node has them.
    pub fn keys(&self, byte: u8, prefix: &str) -> BTreeSet<String> {
        let said = self.etcdctl(byte, &["get", "--prefix", "--keys-only", prefix]).exits(0);
        said.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Writes ten keys a second, from a process of its own.
    pub fn writer(&self, bytes: &[u8]) -> Writer {
        let acked = self.directory.path().join("acked");
        let endpoints: Vec<String> = bytes.iter().map(|b| format!("https://127.78.0.{b}:2379")).collect();
        let script = "n=0; while :; do n=$((n+1)); etcdctl --command-timeout=3s put w/$n $n >/dev/null 2>&1 && \
                      echo w/$n >> \"$ACKED\"; sleep 0.1; done";
        let pki = self.mesh().join("pki");
        let child = self
            .within("sh", &["-c", script])
            .env("ACKED", &acked)
            .env("ETCDCTL_API", "3")
            .env("ETCDCTL_ENDPOINTS", endpoints.join(","))
            .env("ETCDCTL_CACERT", pki.join("authority/client.crt"))
            .env("ETCDCTL_CERT", pki.join("operators/anna.crt"))
            .env("ETCDCTL_KEY", pki.join("operators/anna.key"))
            .spawn()
            .expect("sh");
        Writer { child, acked }
    }

    /// The ends of the nodes' logs.
    pub fn logs(&self) -> String {
        let tail = |node: &String| {
            let text = std::fs::read_to_string(self.file(node, "log")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {node}\n{}\n", lines[lines.len().saturating_sub(6)..].join("\n"))
        };
        self.running.keys().map(tail).collect()
    }

    /// What a person does who reads a step: a command of this host in a shell, with `registry env`; one on a node there.
    pub fn paste(&mut self, step: &str) {
        let (head, command) = step.split_once('`').expect("a command");
        let command = command.strip_suffix('`').expect("nothing after it");
        if head.is_empty() {
            let script = format!("eval \"$(fitout registry env)\"\n{command}");
            // etcd changes no members until all have been connected for five seconds.
            until(step, || {
                let said = Said::from(
                    self.within("bash", &["-euc", &script]).env("PATH", path_with_fitout()).output().expect("bash"),
                );
                let wait = said.stderr.contains("unhealthy cluster");
                assert!(said.code == Some(0) || wait, "{step}\n{}\n{}", said.all(), self.logs());
                if wait { Err(said.all()) } else { Ok(()) }
            });
            return;
        }
        let node = head.strip_prefix("on ").and_then(|h| h.split([',', ':']).next()).expect("a node").to_owned();
        match command {
            "systemctl enable --now mesh-registry.target" => {
                self.unpack(&node);
                self.start(&node);
            }
            "systemctl stop mesh-registry.target" => {
                if self.runs(&node) {
                    self.kill(&node);
                }
            }
            other => {
                let here = other.replace("/var/lib/etcd", self.file(&node, "data").to_str().expect("utf-8"));
                assert_ne!(here, other, "what is this: {other}");
                tool("bash", &["-euc", &here]);
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            child.kill().expect("killed");
            child.wait().expect("waited");
        }
        self.holder.kill().expect("killed");
        self.holder.wait().expect("waited");
    }
}

/// Writes that go on while members change.
pub struct Writer {
    child: Child,
    acked: PathBuf,
}

impl Writer {
    /// Ends it, and gives the keys whose writes were acknowledged.
    pub fn end(mut self) -> BTreeSet<String> {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
        std::fs::read_to_string(&self.acked).expect("writes were acknowledged").lines().map(str::to_owned).collect()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After `end` there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
