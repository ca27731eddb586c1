//! A registry of three members from built images: the etcd of the images, on loopback addresses, in a network namespace
//! of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use crate::common::{Said, cache, kept_example, path_with_fitout, run, tool, until};

pub const NODES: [(&str, &str); 3] = [("lis1", "127.77.0.11"), ("mad1", "127.77.0.13"), ("por1", "127.77.0.12")];

/// `examples/three-site` on loopback addresses, built once per suite.
pub fn mesh(suite: &str) -> PathBuf {
    static MESHES: OnceLock<Mutex<BTreeMap<String, PathBuf>>> = OnceLock::new();
    let mut meshes = MESHES.get_or_init(Mutex::default).lock().expect("no test fails while it builds");
    let build = || {
        let mesh = kept_example("three-site", &format!("loopback-{suite}"));
        let file = mesh.join("mesh.toml");
        let text = std::fs::read_to_string(&file).expect("mesh.toml");
        let text = text.replace("10.77.0.0/24", "127.0.0.0/8").replace("10.77.0.", "127.77.0.");
        let text = text.replace("debian = \"trixie\"", &format!("debian = \"{suite}\""));
        std::fs::write(&file, text).expect("written");
        run(&mesh, &["pki", "init"]).exits(0);
        run(&mesh, &["build"]).exits(0);
        mesh
    };
    meshes.entry(suite.to_owned()).or_insert_with(build).clone()
}

/// Per node its configuration, keys, data and process.
pub struct Registry {
    pub mesh: PathBuf,
    directory: tempfile::TempDir,
    holder: Child,
    members: BTreeMap<&'static str, Child>,
    others: Vec<Child>,
}

impl Registry {
    /// A namespace with the unpacked nodes, nothing started.
    pub fn new(suite: &str) -> Registry {
        let mesh = mesh(suite);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--", "sleep", "3600"])
            .stdin(Stdio::null())
            .spawn()
            .expect("unshare");
        let registry = Registry { mesh, directory, holder, members: BTreeMap::new(), others: Vec::new() };
        // `sleep` runs once the namespace is there.
        until("the namespace is there", || {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", registry.holder.id())).unwrap_or_default();
            (comm == "sleep\n").then_some(()).ok_or(comm)
        });
        registry.ip("link set lo up");
        for (node, _) in NODES {
            registry.unpack(node);
            // So that members compare their data each second (etcd's file wants nanoseconds), and a difference is an alarm.
            registry.edit(
                node,
                &[("metrics: \"basic\"", "metrics: \"basic\"\nexperimental-corrupt-check-time: 1000000000")],
            );
        }
        registry
    }

    pub fn start_all(&mut self) {
        for (node, _) in NODES {
            self.start(node);
        }
    }

    /// A command in the registry's network namespace; it dies with the test.
    pub fn within(&self, arguments: &[&str]) -> Command {
        let holder = self.holder.id().to_string();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "nsenter", "--target", &holder, "--net", "--"]).args(arguments);
        command.current_dir(&self.mesh).stdin(Stdio::null());
        command
    }

    /// Starts something that runs until the end of the test.
    pub fn beside(&mut self, arguments: &[&str]) {
        let child = self.within(arguments).spawn().expect("it starts");
        self.others.push(child);
    }

    /// Ends what [`Registry::beside`] started.
    pub fn end_others(&mut self) {
        for mut child in self.others.drain(..) {
            child.kill().expect("killed");
            child.wait().expect("waited");
        }
    }

    /// `ip` in the namespace.
    pub fn ip(&self, arguments: &str) {
        let words: Vec<&str> = std::iter::once("ip").chain(arguments.split(' ')).collect();
        assert!(self.within(&words).status().expect("ip").success(), "ip {arguments}");
    }

    pub fn file(&self, node: &str, path: &str) -> PathBuf {
        self.directory.path().join(node).join(path)
    }

    pub fn image(&self, node: &str) -> PathBuf {
        self.mesh.join(format!("dist/{node}.tar.gz"))
    }

    /// Takes etcd and its files out of the image, and moves the paths to where they are now.
    fn unpack(&self, node: &str) {
        let root = self.directory.path().join(node);
        std::fs::create_dir(&root).expect("directory");
        let (image, to) = (self.image(node), root.to_str().expect("utf-8"));
        tool("tar", &["-xzf", image.to_str().expect("utf-8"), "-C", to, "./etc/etcd", "./etc/mesh", "./usr/bin/etcd"]);
        let (from, pki) = ("/etc/etcd/pki/", format!("{to}/etc/etcd/pki/"));
        self.edit(node, &[(from, &pki), ("/var/lib/etcd", &format!("{to}/data"))]);
    }

    /// Replaces texts in a member's configuration; each must be there.
    pub fn edit(&self, node: &str, changes: &[(&str, &str)]) {
        let mut text = self.configuration(node);
        for (old, new) in changes {
            assert!(text.contains(old), "{old} is not in {text}");
            text = text.replace(old, new);
        }
        self.configure(node, &text);
    }

    pub fn configuration(&self, node: &str) -> String {
        std::fs::read_to_string(self.file(node, "etc/etcd/etcd.yaml")).expect("etcd.yaml")
    }

    pub fn configure(&self, node: &str, text: &str) {
        std::fs::write(self.file(node, "etc/etcd/etcd.yaml"), text).expect("written");
    }

    pub fn start(&mut self, node: &'static str) {
        let etcd = self.file(node, "usr/bin/etcd");
        let config = self.file(node, "etc/etcd/etcd.yaml");
        let log = std::fs::File::create(self.file(node, "log")).expect("log");
        let child = self
            .within(&[etcd.to_str().expect("utf-8"), "--config-file", config.to_str().expect("utf-8")])
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .expect("etcd");
        self.members.insert(node, child);
    }

    pub fn stop(&mut self, node: &str) {
        if let Some(mut child) = self.members.remove(node) {
            child.kill().expect("killed");
            child.wait().expect("waited");
        }
    }

    /// Lets it end by itself, with all data written.
    pub fn end(&mut self, node: &str) {
        let mut child = self.members.remove(node).expect("it runs");
        signal("-TERM", &child);
        until("it ends", || child.try_wait().expect("waited").map(|_| ()).ok_or("it runs".to_owned()));
    }

    pub fn freeze(&self, node: &str) {
        signal("-STOP", &self.members[node]);
    }

    pub fn thaw(&self, node: &str) {
        signal("-CONT", &self.members[node]);
    }

    pub fn empty(&self, node: &str) {
        std::fs::remove_dir_all(self.file(node, "data")).expect("emptied");
    }

    /// `fitout check` of one node's image, in the mesh's directory.
    pub fn check(&self, node: &str, more: &[&str]) -> Said {
        let image = self.image(node);
        let mut command = self.within(&[env!("CARGO_BIN_EXE_fitout"), "check", image.to_str().expect("utf-8")]);
        command.args(more).env("FITOUT_CACHE", cache()).env("NO_COLOR", "1");
        for variable in ["FITOUT_PKI", "FITOUT_PASSPHRASE", "CREDENTIALS_DIRECTORY"] {
            command.env_remove(variable);
        }
        command.output().expect("the program starts").into()
    }

    /// The findings of a check.
    pub fn findings(&self, node: &str, more: &[&str]) -> Result<Vec<Found>, String> {
        let said = self.check(node, &[more, &["--message-format", "json"]].concat());
        if !matches!(said.code, Some(0 | 1)) {
            return Err(said.all());
        }
        let lines = said.stdout.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
        Ok(lines.filter(|object| object["type"] == "finding").map(|object| Found::of(&object)).collect())
    }

    /// Waits until a check finds these and nothing else but what is always told; gives all.
    #[track_caller]
    pub fn finds(&self, what: &str, node: &str, more: &[&str], want: &[(&str, &str)]) -> Vec<Found> {
        until(what, || {
            let found = self.findings(node, more).map_err(|said| format!("{said}\n{}", self.logs()))?;
            let mut codes: Vec<&str> = found.iter().map(|f| f.code.as_str()).collect();
            codes.retain(|code| !ALWAYS.contains(code) || want.iter().any(|(want, _)| want == code));
            let mut wanted: Vec<&str> = want.iter().map(|(code, _)| *code).collect();
            codes.sort_unstable();
            codes.dedup();
            wanted.sort_unstable();
            wanted.dedup();
            let said = |(code, text): &(&str, &str)| found.iter().any(|f| f.code == *code && f.text.contains(text));
            let missing = want.iter().find(|want| !said(want));
            if codes == wanted && missing.is_none() {
                return Ok(found);
            }
            Err(format!("wanted {wanted:?}, not said: {missing:?}, found {found:#?}\n{}", self.logs()))
        })
    }

    /// Waits until a check finds nothing that is wrong.
    #[track_caller]
    pub fn mended(&self, what: &str) {
        self.finds(&format!("after `{what}` all is well"), "lis1", &[], &[]);
    }

    /// The ends of the members' logs.
    pub fn logs(&self) -> String {
        let tail = |node: &str| {
            let text = std::fs::read_to_string(self.file(node, "log")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {node}\n{}\n", lines[lines.len().saturating_sub(8)..].join("\n"))
        };
        NODES.iter().map(|(node, _)| tail(node)).collect()
    }

    /// etcdctl with a node's certificate, at the first member.
    pub fn etcdctl(&self, arguments: &[&str]) -> String {
        self.etcdctl_at("127.77.0.11", arguments).exits(0).stdout
    }

    pub fn etcdctl_at(&self, address: &str, arguments: &[&str]) -> Said {
        let file = |path| self.file("lis1", path).to_str().expect("utf-8").to_owned();
        let output = self
            .within(&["etcdctl", &format!("--endpoints=https://{address}:2379")])
            .arg(format!("--cacert={}", file("etc/mesh/pki/client-ca.crt")))
            .arg(format!("--cert={}", file("etc/mesh/pki/client.crt")))
            .arg(format!("--key={}", file("etc/mesh/pki/client.key")))
            .args(arguments)
            .env("ETCDCTL_API", "3")
            .output()
            .expect("etcdctl is there: Debian's package etcd-client");
        output.into()
    }

    /// Runs the numbered steps of a finding, as a person would paste them: those on a node there, those of this host in one
    /// shell. `take` says how many; gives how many there were.
    #[track_caller]
    pub fn paste(&mut self, finding: &Found, take: usize) -> usize {
        let steps: Vec<&String> =
            finding.notes.iter().filter(|n| n.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert!(!steps.is_empty(), "{finding:#?}");
        let mut shell = String::new();
        for step in steps.iter().take(take) {
            let (head, command) = step.split_once('`').expect("a command");
            let command = command.strip_suffix('`').expect("nothing after it");
            match head.split_once(". on ") {
                None if command.starts_with("export ") => shell = format!("{command}\n"),
                None => {
                    let script = format!("{shell}{command}");
                    // etcd changes no members until all have been connected for five seconds.
                    until(step, || {
                        let mut bash = self.within(&["bash", "-euc", &script]);
                        bash.env("PATH", path_with_fitout()).env("FITOUT_CACHE", cache());
                        let said = Said::from(bash.output().expect("bash"));
                        let wait = said.stderr.contains("unhealthy cluster");
                        assert!(said.code == Some(0) || wait, "{step}\n{}\n{}", said.all(), self.logs());
                        if wait { Err(said.all()) } else { Ok(()) }
                    });
                }
                Some((_, place)) => {
                    let name = place.split([',', ':']).next().expect("a node");
                    let node = NODES.iter().find(|(n, _)| *n == name).expect("a node of ours").0;
                    self.on(node, command);
                }
            }
        }
        steps.len()
    }

    /// A command on a node: systemd's part is ours here, and the paths are where the node was unpacked.
    fn on(&mut self, node: &'static str, command: &str) {
        match command {
            "systemctl stop mesh-registry.target" => self.stop(node),
            "systemctl enable --now mesh-registry.target" => self.start(node),
            other => {
                let here = other
                    .replace("/var/lib/etcd", self.file(node, "data").to_str().expect("utf-8"))
                    .replace("/etc/etcd/etcd.yaml", self.file(node, "etc/etcd/etcd.yaml").to_str().expect("utf-8"));
                assert_ne!(here, other, "what is this: {other}");
                tool("bash", &["-euc", &here]);
            }
        }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let nodes: Vec<_> = self.members.keys().copied().collect();
        for node in nodes {
            self.stop(node);
        }
        self.end_others();
        self.holder.kill().expect("killed");
        self.holder.wait().expect("waited");
    }
}

/// Told about every registry of these tests: which votes are left, what is next, that both versions have defects, that
/// nobody has bootstrapped it, and that the test's own keys are foreign; keys have a test of their own. How long a status
/// takes is told on a busy machine.
const ALWAYS: &[&str] = &[
    "live-votes",
    "live-next-step",
    "live-version-bad",
    "live-round-trip",
    "live-member-rejoined",
    "live-not-bootstrapped",
    "live-foreign-keys",
];

/// A finding as the program printed it.
#[derive(Debug, Clone)]
pub struct Found {
    pub code: String,
    pub notes: Vec<String>,
    /// All of its texts.
    pub text: String,
}

impl Found {
    fn of(object: &serde_json::Value) -> Found {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let notes: Vec<String> = object["notes"].as_array().into_iter().flatten().map(text).collect();
        let all =
            [text(&object["severity"]), text(&object["subject"]), text(&object["message"]), text(&object["help"])];
        Found { code: text(&object["code"]), text: [&all[..], &notes].concat().join("\n"), notes }
    }
}

/// The one with this code.
#[track_caller]
pub fn the(found: &[Found], code: &str) -> Found {
    found.iter().find(|f| f.code == code).unwrap_or_else(|| panic!("{code} is not in {found:#?}")).clone()
}

fn signal(name: &str, child: &Child) {
    // Its first process is setpriv, which became nsenter, which became etcd: one and the same id.
    tool("kill", &[name, &child.id().to_string()]);
}
