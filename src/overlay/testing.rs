//! A mesh, a small Debian-like base and certificates for the tests of this module.

use std::collections::BTreeMap;

use super::*;
use crate::declaration::{Files, MESH_FILE, Mesh};
use crate::etcd::birth::{self, Entrance};
use crate::finding::{Finding, Problem};
use crate::pki::{Leaf, NodePki, Use};
use crate::systemd::testing::put;
use crate::tree::{Digest, Tree};

/// Three voters (one of them the arbiter) and a client.
pub const MESH: &str = r#"
[mesh]
name = "harbour"
topology = "quorum"
network = "10.77.0.0/24"
[image]
version = "2026.11.0"
[base.common]
debian = "trixie"
[site.lisbon]
[site.porto]
[site.madrid]
[node.lis1]
site = "lisbon"
address = "10.77.0.11"
profile = "voter"
service.postgres = { port = 5432, data-set = "orders" }
[node.por1]
site = "porto"
address = "10.77.0.12"
profile = "voter"
service.web = { port = 443 }
[node.mad1]
site = "madrid"
address = "10.77.0.13"
profile = "arbiter"
[node.edge1]
site = "porto"
address = "10.77.0.21"
profile = "client"
"#;

/// Seconds since 1970 of what overlays put.
pub const EPOCH: i64 = 1_700_000_000;

/// What a Debian base with etcd-server looks like where it matters here.
pub fn base() -> Tree {
    let mut tree = Tree::default();
    for (path, text) in [
        ("usr/lib/systemd/system", "/"),
        ("lib", "-> usr/lib"),
        ("root", "/"),
        ("etc/hostname", "vm\n"),
        ("etc/machine-id", ""),
        ("etc/resolv.conf", "nameserver 192.0.2.1\n"),
        ("etc/os-release", "-> ../usr/lib/os-release"),
        ("usr/lib/os-release", "NAME=\"Debian GNU/Linux\"\nID=debian\n"),
        ("etc/passwd", "root:x:0:0:root:/root:/bin/bash\netcd:x:100:101::/var/lib/etcd/:/usr/sbin/nologin\n"),
        ("etc/group", "root:x:0:\nshadow:x:42:\netcd:x:101:\n"),
        ("etc/shadow", "root:*:20787:0:99999:7:::\netcd:!:20787::::::\n"),
        ("etc/gshadow", "root:*::\netcd:!::\n"),
        ("etc/ssh/ssh_host_ed25519_key", "key\n"),
        ("etc/init.d/etcd", "#!/bin/sh\n"),
        ("etc/rc0.d/K01etcd", "-> ../init.d/etcd"),
        ("etc/rc2.d/S01etcd", "-> ../init.d/etcd"),
        ("etc/rc2.d/S01dbus", "-> ../init.d/dbus"),
        ("etc/systemd/system/etcd2.service", "-> /usr/lib/systemd/system/etcd.service"),
        ("etc/systemd/system/multi-user.target.wants/etcd.service", "-> /usr/lib/systemd/system/etcd.service"),
        ("usr/bin/etcd", "#!elf\n"),
        ("usr/bin/setpriv", "#!elf\n"),
        ("usr/bin/systemctl", AGENT),
        (
            "usr/lib/systemd/system/etcd.service",
            "[Service]\n[Install]\nWantedBy=multi-user.target\nAlias=etcd2.service\n",
        ),
        ("usr/lib/systemd/system/systemd-timesyncd.service", "[Install]\nWantedBy=sysinit.target\n"),
        ("usr/lib/systemd/system/systemd-time-wait-sync.service", "[Install]\nWantedBy=sysinit.target\n"),
        ("var/lib/etcd", "/"),
    ] {
        put(&mut tree, path, text);
    }
    tree
}

/// What a program of the base, or the announcer, looks like where it matters here: the header, the version.
pub const AGENT: &str = concat!(
    "\x7fELF\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x3e\0",
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    "fitout mesh-agent version ",
    env!("CARGO_PKG_VERSION"),
    ";"
);

/// The announcer that was found beside fitout.
pub fn agent(content: &[u8]) -> program::Found {
    program::Found { path: "/usr/bin/mesh-agent".into(), declared: None, content: Ok(content.into()) }
}

/// Packages of that base.
pub fn base_packages() -> BTreeMap<String, String> {
    let names = ["systemd-sysv", "dbus", "iproute2", "udev", "systemd-timesyncd", "etcd-server"];
    names.map(|name| (name.to_owned(), "1".to_owned())).into()
}

/// The mesh that files declare over [`MESH`].
pub fn mesh_with(files: &[(&str, &str)]) -> Mesh {
    let start = Files::builtin().with(MESH_FILE, MESH);
    let files = files.iter().fold(start, |files, (path, text)| files.with(path, text));
    match crate::declaration::parse(&files) {
        Ok(loaded) => loaded.mesh,
        Err(findings) => panic!("{findings:#?}"),
    }
}

/// Plans over a base.
pub fn plan_over(mesh: &Mesh, base: &Tree, packages: &BTreeMap<String, String>) -> Result<Plan, Vec<Finding>> {
    plan_with(mesh, base, packages, &agent(AGENT.as_bytes()))
}

/// As [`plan_over`], with another announcer.
pub fn plan_with(
    mesh: &Mesh,
    base: &Tree,
    packages: &BTreeMap<String, String>,
    agent: &program::Found,
) -> Result<Plan, Vec<Finding>> {
    let view = BaseView { tree: base, packages, hostname: "vm", epoch: EPOCH, agent: Some(agent) };
    plan(mesh, &view, &BTreeMap::new()).map_err(|problem| match problem {
        Problem::Findings(findings) => findings,
        Problem::Failure(failure) => panic!("{failure}"),
    })
}

/// Fits a node of the mesh out.
pub fn fit_node(plan: &Plan, mesh: &Mesh, name: &str, keys: bool) -> Result<Fitted, Vec<Finding>> {
    let node = &mesh.nodes[name];
    let pki = pki(mesh.part_of(node).runs_registry(), keys);
    fit(plan, mesh, node, &birth::compute(mesh), &Entrance::Born, &pki).map_err(|problem| match problem {
        Problem::Findings(findings) => findings,
        Problem::Failure(failure) => panic!("{failure}"),
    })
}

/// Certificates: a real one in DER, plain words in PEM's place.
pub fn pki(registry: bool, keys: bool) -> NodePki {
    let leaf = |purpose: Use| Leaf {
        purpose,
        certificate_pem: format!("certificate for {purpose:?}\n"),
        certificate_der: include_bytes!("testdata/leaf.der").to_vec(),
        public_key: Digest::of(format!("{purpose:?}").as_bytes()),
        key_pem: keys.then(|| format!("key for {purpose:?}\n").into()),
    };
    NodePki {
        peer_authority_pem: "authority for peers\n".into(),
        client_authority_pem: "authority for clients\n".into(),
        client: leaf(Use::Client),
        server: registry.then(|| leaf(Use::Server)),
        peer: registry.then(|| leaf(Use::Peer)),
    }
}
