//! One control plane of a real etcd on loopback, in a network namespace of its own, with the certificates that `fitout pki`
//! issues.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Debian, Said, cache, image_of, tool, until};

/// A mesh in which `a1` and `a10` hold a data set each in their own sites, and `b1` sits in `a1`'s.
pub const MESH: &str = r#"
[mesh]
name = "solo"
topology = "single"
domain = "solo.mesh"
network = "127.0.0.0/8"
time-to-rebuild = "4h"
[image]
base = "common"
version = "1"
[base.common]
debian = "trixie"
[site.home]
[site.away]
[node.hub]
site = "home"
address = "127.78.0.1"
profile = "control-plane"
[node.a1]
site = "home"
address = "127.78.0.2"
profile = "client"
service.postgres = { port = 5432, data-set = "orders" }
[node.a10]
site = "away"
address = "127.78.0.3"
profile = "client"
service.postgres = { port = 5432, data-set = "orders" }
[node.b1]
site = "home"
address = "127.78.0.4"
profile = "client"
[nodes.edge]
count = 80
site = "away"
addresses = "127.78.1.1-127.78.1.250"
profile = "client"
"#;

/// A registry.
pub struct Solo {
    directory: tempfile::TempDir,
    holder: Child,
    etcd: std::cell::RefCell<Option<Child>>,
}

impl Solo {
    /// Issues what is needed and starts etcd.
    pub fn start(debian: Debian) -> Solo {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("mesh.toml"), MESH).expect("mesh.toml");
        let to = directory.path().to_str().expect("UTF-8");
        let image = image_of(debian, "lis1");
        tool("tar", &["-C", to, "-xzf", image.to_str().expect("UTF-8"), "./usr/bin/etcd"]);
        // Each dies with the thread of its test.
        let holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--", "sleep", "3600"])
            .stdin(Stdio::null())
            .spawn()
            .expect("unshare");
        let solo = Solo { directory, holder, etcd: std::cell::RefCell::new(None) };
        until("the namespace is there", || {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", solo.holder.id())).unwrap_or_default();
            (comm == "sleep\n").then_some(()).ok_or(comm)
        });
        assert!(solo.within("ip").args(["link", "set", "lo", "up"]).status().expect("ip").success());
        solo.fitout(&["pki", "init"]).exits(0);
        let nodes = ["--node", "hub", "--node", "a1", "--node", "a10", "--node", "b1"];
        solo.fitout(&[&["pki", "issue", "--operator", "anna"], &nodes[..]].concat()).exits(0);
        solo.run_etcd();
        solo
    }

    fn run_etcd(&self) {
        let file = |path: &str| self.path(path).to_str().expect("UTF-8").to_owned();
        let (client, peer) = ("https://127.78.0.1:2379", "https://127.78.0.1:2380");
        let log = std::fs::File::create(self.path("log")).expect("log");
        let child = self
            .within(&file("usr/bin/etcd"))
            .args(["--name", "hub", "--data-dir", &file("data"), "--initial-cluster-token", "solo-g1"])
            .args(["--initial-cluster", &format!("hub={peer}"), "--initial-advertise-peer-urls", peer])
            .args(["--listen-peer-urls", peer, "--listen-client-urls", client, "--advertise-client-urls", client])
            .args(["--client-cert-auth", "--trusted-ca-file", &file("pki/authority/client.crt")])
            .args(["--cert-file", &file("pki/nodes/hub/server.crt"), "--key-file", &file("pki/nodes/hub/server.key")])
            .args(["--peer-client-cert-auth", "--peer-trusted-ca-file", &file("pki/authority/peer.crt")])
            .args(["--peer-cert-file", &file("pki/nodes/hub/peer.crt")])
            .args(["--peer-key-file", &file("pki/nodes/hub/peer.key")])
            .args(["--enable-grpc-gateway=false", "--logger", "zap"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("etcd");
        *self.etcd.borrow_mut() = Some(child);
        until("etcd answers", || {
            let said = self.etcdctl("anna", &["endpoint", "status"]);
            if said.code == Some(0) { Ok(()) } else { Err(format!("{}\n{}", said.all(), self.log())) }
        });
    }

    /// Kills etcd and starts it again with its data.
    pub fn restart(&self) {
        self.stop();
        self.run_etcd();
    }

    /// Kills etcd.
    pub fn stop(&self) {
        if let Some(mut etcd) = self.etcd.borrow_mut().take() {
            etcd.kill().expect("killed");
            etcd.wait().expect("waited");
        }
    }

    /// A file of the mesh's directory.
    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// A program in the registry's network namespace; it dies with the test.
    pub fn within(&self, program: &str) -> Command {
        let holder = self.holder.id().to_string();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "nsenter", "--target", &holder, "--net", "--", program]);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    /// `fitout`, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.within(env!("CARGO_BIN_EXE_fitout"));
        command.args(arguments).env("FITOUT_CACHE", cache()).env("NO_COLOR", "1");
        for variable in ["FITOUT_PKI", "FITOUT_PASSPHRASE", "CREDENTIALS_DIRECTORY"] {
            command.env_remove(variable);
        }
        command
    }

    /// `fitout` in the mesh's directory.
    pub fn fitout(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().expect("the program starts").into()
    }

    /// The JSON objects that `fitout` prints.
    pub fn objects(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let said = self.fitout(&[arguments, &["--message-format", "json"]].concat());
        said.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// etcdctl by the certificate of a node or an operator.
    pub fn etcdctl(&self, who: &str, arguments: &[&str]) -> Said {
        self.etcdctl_with(who, arguments, Stdio::null())
    }

    /// `etcdctl txn`: comparisons, what follows when they hold, and what when not.
    pub fn txn(&self, who: &str, compare: &str, then: &str, otherwise: &str) -> Said {
        let file = self.path("txn");
        std::fs::write(&file, format!("{compare}\n\n{then}\n\n{otherwise}\n\n")).expect("written");
        self.etcdctl_with(who, &["txn"], std::fs::File::open(&file).expect("open").into())
    }

    /// Puts a value of any bytes under a key of any bytes.
    pub fn put_by_stdin(&self, who: &str, key: impl AsRef<OsStr>, value: &[u8]) {
        let file = self.path("value");
        std::fs::write(&file, value).expect("written");
        let stdin = std::fs::File::open(&file).expect("open");
        self.etcdctl_with(who, &["put".as_ref(), key.as_ref()], stdin.into()).exits(0);
    }

    /// etcdctl with words of any bytes; it must succeed.
    pub fn etcdctl_os(&self, who: &str, arguments: &[&OsStr]) {
        self.etcdctl_with(who, arguments, Stdio::null()).exits(0);
    }

    /// etcd sleeps; its sockets take connections.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// And goes on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let etcd = self.etcd.borrow();
        // setpriv became nsenter, which became etcd: one id.
        tool("kill", &[name, &etcd.as_ref().expect("it runs").id().to_string()]);
    }

    fn etcdctl_with(&self, who: &str, arguments: &[impl AsRef<OsStr>], stdin: Stdio) -> Said {
        let node = format!("pki/nodes/{who}/client");
        let stem = if self.path(&format!("{node}.crt")).exists() { node } else { format!("pki/operators/{who}") };
        let output = self
            .within("etcdctl")
            .args(["--endpoints=https://127.78.0.1:2379", "--cacert=pki/authority/client.crt"])
            .args([format!("--cert={stem}.crt"), format!("--key={stem}.key")])
            .args(arguments)
            .env("ETCDCTL_API", "3")
            .stdin(stdin)
            .output()
            .expect("etcdctl is there: Debian's package etcd-client");
        output.into()
    }

    /// Changes the declaration; each text must be there.
    pub fn declare(&self, changes: &[(&str, &str)]) {
        let mut text = std::fs::read_to_string(self.path("mesh.toml")).expect("mesh.toml");
        for (old, new) in changes {
            assert!(text.contains(old), "{old} is not in {text}");
            text = text.replace(old, new);
        }
        std::fs::write(self.path("mesh.toml"), text).expect("mesh.toml");
    }

    /// The revision of a write that was just made.
    pub fn new_revision(&self) -> String {
        let said = self.etcdctl("anna", &["put", "/mesh/live/hub/x", "x", "--write-out=json"]).exits(0).stdout;
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        said["header"]["revision"].to_string()
    }

    /// A lease of somebody's; its id.
    pub fn lease(&self, who: &str) -> String {
        let said = self.etcdctl(who, &["lease", "grant", "600"]).exits(0);
        said.stdout.split(' ').nth(1).expect("an id").to_owned()
    }
}

impl Drop for Solo {
    fn drop(&mut self) {
        self.stop();
        self.holder.kill().expect("killed");
        self.holder.wait().expect("waited");
    }
}

/// Compares a part of a document with what the tests know, or writes it (`UPDATE_GOLDEN=1`).
#[track_caller]
pub fn held(file: &Path, begin: &str, end: &str, want: &str) {
    let text = std::fs::read_to_string(file).expect("the document");
    let (head, rest) = text.split_once(begin).expect("where it begins");
    let (is, tail) = rest.split_once(end).expect("where it ends");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, format!("{head}{begin}{want}{end}{tail}")).expect("written");
    } else {
        assert_eq!(is, want, "{}: `UPDATE_GOLDEN=1 cargo test --test it registry::`", file.display());
    }
}
