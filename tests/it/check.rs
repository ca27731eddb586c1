//! `fitout check` against a real registry of three members, with the etcd of the images, on loopback addresses in a
//! network namespace of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::{Said, cache, kept_example, run, tool};

const NODES: [(&str, &str); 3] = [("lis1", "127.77.0.11"), ("mad1", "127.77.0.13"), ("por1", "127.77.0.12")];

/// `examples/three-site` on loopback addresses, built once.
fn mesh() -> &'static Path {
    static MESH: OnceLock<PathBuf> = OnceLock::new();
    MESH.get_or_init(|| {
        let mesh = kept_example("three-site", "loopback");
        let file = mesh.join("mesh.toml");
        let text = std::fs::read_to_string(&file).expect("mesh.toml");
        let text = text.replace("10.77.0.0/24", "127.0.0.0/8").replace("10.77.0.", "127.77.0.");
        std::fs::write(&file, text).expect("written");
        run(&mesh, &["pki", "init"]).exits(0);
        run(&mesh, &["build"]).exits(0);
        mesh
    })
}

fn image(node: &str) -> PathBuf {
    mesh().join(format!("dist/{node}.tar.gz"))
}

/// The registry: a network namespace, and per node its configuration, keys, data and process.
struct Registry {
    directory: tempfile::TempDir,
    holder: Child,
    members: BTreeMap<&'static str, Child>,
}

impl Registry {
    fn new() -> Registry {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--", "sleep", "3600"])
            .stdin(Stdio::null())
            .spawn()
            .expect("unshare");
        let mut registry = Registry { directory, holder, members: BTreeMap::new() };
        // `sleep` runs once the namespace is there.
        until("the namespace is there", || {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", registry.holder.id())).unwrap_or_default();
            (comm == "sleep\n").then_some(()).ok_or(comm)
        });
        assert!(registry.within(&["ip", "link", "set", "lo", "up"]).status().expect("ip").success());
        for (node, _) in NODES {
            registry.unpack(node);
        }
        for (node, _) in NODES {
            registry.start(node);
        }
        registry.until_clean();
        registry
    }

    /// A command in the registry's network namespace; it dies with the test.
    fn within(&self, arguments: &[&str]) -> Command {
        let holder = self.holder.id().to_string();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "nsenter", "--target", &holder, "--net", "--"]).args(arguments);
        command.stdin(Stdio::null());
        command
    }

    fn file(&self, node: &str, path: &str) -> PathBuf {
        self.directory.path().join(node).join(path)
    }

    /// Takes etcd and its files out of the image, and moves the paths to where they are now.
    fn unpack(&self, node: &str) {
        let root = self.directory.path().join(node);
        std::fs::create_dir(&root).expect("directory");
        let (image, to) = (image(node), root.to_str().expect("utf-8"));
        tool("tar", &["-xzf", image.to_str().expect("utf-8"), "-C", to, "./etc/etcd", "./etc/mesh", "./usr/bin/etcd"]);
        self.edit(
            node,
            &[("/etc/etcd/pki/", &format!("{to}/etc/etcd/pki/")), ("/var/lib/etcd", &format!("{to}/data"))],
        );
    }

    /// Replaces texts in a member's configuration; each must be there.
    fn edit(&self, node: &str, changes: &[(&str, &str)]) {
        let file = self.file(node, "etc/etcd/etcd.yaml");
        let mut text = std::fs::read_to_string(&file).expect("etcd.yaml");
        for (old, new) in changes {
            assert!(text.contains(old), "{old} is not in {text}");
            text = text.replace(old, new);
        }
        std::fs::write(&file, text).expect("written");
    }

    fn start(&mut self, node: &'static str) {
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

    fn stop(&mut self, node: &str) {
        if let Some(mut child) = self.members.remove(node) {
            child.kill().expect("killed");
            child.wait().expect("waited");
        }
    }

    fn check(&self, node: &str, more: &[&str]) -> Said {
        let image = image(node);
        let program = env!("CARGO_BIN_EXE_fitout");
        let mut command = self.within(&[program, "check", image.to_str().expect("utf-8")]);
        command.args(more).env("FITOUT_CACHE", cache()).env("NO_COLOR", "1");
        command.output().expect("the program starts").into()
    }

    fn until_clean(&self) {
        until("the registry is clean", || {
            let said = self.check("lis1", &[]);
            if said.code == Some(0) { Ok(()) } else { Err(said.all()) }
        });
    }

    fn etcdctl(&self, arguments: &[&str]) -> String {
        let file = |path| self.file("lis1", path).to_str().expect("utf-8").to_owned();
        let output = self
            .within(&["etcdctl", "--endpoints=https://127.77.0.11:2379"])
            .arg(format!("--cacert={}", file("etc/mesh/pki/client-ca.crt")))
            .arg(format!("--cert={}", file("etc/mesh/pki/client.crt")))
            .arg(format!("--key={}", file("etc/mesh/pki/client.key")))
            .args(arguments)
            .env("ETCDCTL_API", "3")
            .output()
            .expect("etcdctl is there: Debian's package etcd-client");
        let said = Said::from(output).exits(0);
        said.stdout
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let nodes: Vec<_> = self.members.keys().copied().collect();
        for node in nodes {
            self.stop(node);
        }
        self.holder.kill().expect("killed");
        self.holder.wait().expect("waited");
    }
}

#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(value) => return value,
            Err(reason) => assert!(start.elapsed() < Duration::from_secs(60), "{what}: {reason}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_living_registry_and_what_can_be_wrong_with_it() {
    let mut registry = Registry::new();

    // All is well, for every node.
    for (node, _) in NODES {
        registry.check(node, &[]).exits(0).says("is already a member").says("clean").does_not_say("error[");
    }

    // The check writes nothing: the revision stays.
    let revision =
        |text: &str| text.split("\"revision\":").nth(1).map(|t| t.split([',', '}']).next().map(str::to_owned));
    let before = revision(&registry.etcdctl(&["endpoint", "status", "--write-out=json"]));
    registry.check("lis1", &[]).exits(0);
    assert_eq!(revision(&registry.etcdctl(&["endpoint", "status", "--write-out=json"])), before);

    // One certificate swapped; etcd reads it again at each handshake.
    let swap = |names: [&str; 2]| {
        for name in names {
            let (own, kept) = (registry.file("por1", name), registry.file("por1", "kept").join(name));
            std::fs::create_dir_all(kept.parent().expect("a parent")).expect("directory");
            std::fs::copy(&own, kept).expect("kept");
            std::fs::copy(registry.file("lis1", name), own).expect("swapped");
        }
    };
    let server = ["etc/etcd/pki/server.crt", "etc/etcd/pki/server.key"];
    swap(server);
    registry.check("lis1", &[]).exits(1).says("live-server-name").says("`127.77.0.12` is not among its names: ");
    for name in server {
        std::fs::copy(registry.file("por1", "kept").join(name), registry.file("por1", name)).expect("back");
    }
    registry.check("lis1", &[]).exits(0);

    // One voter more.
    let added = registry.etcdctl(&["member", "add", "extra", "--peer-urls=https://127.77.0.99:2380"]);
    let id = added.split_whitespace().nth(1).expect("an id").to_owned();
    registry.check("lis1", &[]).exits(1).says("live-member-extra").says(&format!("etcdctl member remove {id}"));
    registry.etcdctl(&["member", "remove", &id]);
    registry.until_clean();

    // One name changed.
    registry.stop("por1");
    registry
        .check("lis1", &[])
        .exits(1)
        .says("live-unreachable")
        .says("connection refused")
        .does_not_say("live-member");
    registry.edit("por1", &[("name: \"por1\"", "name: \"porto\""), (",por1=", ",porto=")]);
    registry.start("por1");
    until("the new name is published", || {
        let said = registry.check("lis1", &[]);
        if said.stdout.contains("live-member-renamed") { Ok(()) } else { Err(said.all()) }
    });
    registry.check("por1", &[]).exits(1).says("calls itself `porto`");

    // Open to everybody.
    registry.stop("por1");
    registry.edit("por1", &[("name: \"porto\"", "name: \"por1\""), (",porto=", ",por1=")]);
    let file = registry.file("por1", "etc/etcd/etcd.yaml");
    let whole = std::fs::read_to_string(&file).expect("etcd.yaml");
    let (before_client, client) = whole.split_once("client-transport-security:").expect("a section");
    let (client, peer) = client.split_once("peer-transport-security:").expect("a section");
    let open: String = client.lines().filter(|l| !l.contains("trusted-ca")).map(|l| l.to_owned() + "\n").collect();
    let open = open.replace("client-cert-auth: true", "client-cert-auth: false");
    std::fs::write(&file, format!("{before_client}client-transport-security:{open}peer-transport-security:{peer}"))
        .expect("written");
    registry.start("por1");
    until("the open listener is told", || {
        let said = registry.check("lis1", &[]);
        if said.stdout.contains("live-stranger-let-in") { Ok(()) } else { Err(said.all()) }
    });
    registry.stop("por1");
    std::fs::write(&file, &whole).expect("written");

    // A member started alone with etcd's defaults, behind the right certificate; and one with another token.
    let defaults = [
        (
            "initial-advertise-peer-urls: \"https://127.77.0.12:2380\"",
            "initial-advertise-peer-urls: \"http://localhost:2380\"",
        ),
        ("listen-peer-urls: \"https://127.77.0.12:2380\"", "listen-peer-urls: \"http://127.0.0.1:2380\""),
    ];
    let cluster = whole.lines().find(|l| l.starts_with("initial-cluster: ")).expect("initial-cluster").to_owned();
    for (token, members, code) in [
        ("etcd-cluster", "initial-cluster: \"por1=http://localhost:2380\"", "live-cluster-lone-default"),
        ("harbour-g2", "initial-cluster: \"por1=http://localhost:2380\"", "live-cluster-foreign"),
    ] {
        std::fs::remove_dir_all(registry.file("por1", "data")).expect("emptied");
        registry.edit("por1", &defaults);
        registry.edit("por1", &[("\"harbour-g1\"", &format!("\"{token}\"")), (&cluster, members)]);
        registry.start("por1");
        until(code, || {
            let said = registry.check("lis1", &[]);
            if said.stdout.contains(code) { Ok(()) } else { Err(said.all()) }
        });
        registry.check("lis1", &[]).exits(1).says("live-cluster-split");
        registry.stop("por1");
        std::fs::write(&file, &whole).expect("written");
    }

    // No quorum: the last one says so.
    registry.stop("mad1");
    // Not at once: a leader goes on calling itself one until an election timeout has passed without a majority.
    until("the last voter knows of no leader", || {
        let said = registry.check("lis1", &["--timeout", "3"]);
        if said.stdout.contains("live-no-leader") { Ok(()) } else { Err(said.all()) }
    });
    registry.check("lis1", &["--timeout", "3"]).exits(1).says("live-unreachable").says("live-no-leader");

    // Nobody.
    registry.stop("lis1");
    registry.check("lis1", &[]).exits(3).says("no endpoint of the registry answers").says("https://127.77.0.13:2379");

    // Another endpoint than the declared ones; and none.
    registry.check("lis1", &["--endpoint", "http://127.77.0.11:2379"]).exits(1).says("live-plain-http");
    registry.check("lis1", &["--endpoint", "ftp://x"]).exits(2).says("is no endpoint");
}
