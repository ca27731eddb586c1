//! A small stopped image in the likeness of Debian's, and what a mutation does to it.

use crate::systemd::testing::{put, tree};
use crate::tree::{Entry, Tree, TreePath};
use crate::verify::{Image, testing};

const ETC: &str = "/etc/systemd/system";
pub(super) const LIB: &str = "/usr/lib/systemd/system";

/// What a mutation does to the image: `+ path text` puts, `- path` removes.
pub(super) type Mutation<'a> = &'a [(&'a str, &'a str)];

/// A small stopped image in the likeness of Debian's: units that matter, links as the base policy leaves them.
fn stopped() -> Tree {
    let mut tree = tree(&[
        ("/lib", "-> usr/lib"),
        ("/bin", "-> usr/bin"),
        ("/usr/bin/etcd", "#!ELF of etcd"),
        ("/usr/bin/true", "#!ELF"),
            ("/usr/bin/sh", "#!ELF"),
        ("/etc/machine-id", ""),
        ("L/default.target", "-> graphical.target"),
        ("L/graphical.target", "[Unit]\nRequires=multi-user.target\nWants=display-manager.service\n"),
        ("L/multi-user.target", "[Unit]\nRequires=basic.target\n"),
        ("L/runlevel3.target", "-> multi-user.target"),
        ("L/rescue.target", "[Unit]\nRequires=sysinit.target\n"),
        ("L/basic.target", "[Unit]\nRequires=sysinit.target\nWants=sockets.target timers.target paths.target slices.target\n"),
        ("L/sysinit.target", "[Unit]\nWants=local-fs.target\n"),
        ("L/local-fs.target", "[Unit]\nOnFailure=emergency.target\n"),
        ("L/emergency.target", "[Unit]\n"),
        ("L/sockets.target", "[Unit]\n"),
        ("L/timers.target", "[Unit]\n"),
        ("L/paths.target", "[Unit]\n"),
        ("L/slices.target", "[Unit]\n"),
        ("L/sockets.target.wants/systemd-udevd-kernel.socket", "-> ../systemd-udevd-kernel.socket"),
        ("L/systemd-udevd-kernel.socket", "[Unit]\nDefaultDependencies=no\n[Socket]\nService=systemd-udevd.service\n"),
        ("L/systemd-udevd.service", "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/true\n"),
        ("L/multi-user.target.wants/dbus.service", "-> ../dbus.service"),
        ("L/dbus.service", "[Service]\nExecStart=/usr/bin/true\n"),
        ("L/dbus.socket", "[Socket]\nListenStream=/run/dbus/system_bus_socket\n"),
        ("L/multi-user.target.wants/a-b.service", "-> ../a-b.service"),
        ("L/a-b.service", "[Service]\nExecStart=/usr/bin/true\n"),
        ("L/rc-local.service", "[Service]\nExecStart=/etc/rc.local start\n"),
        ("L/unreached.target", "[Unit]\n"),
        ("L/unreached.service", "[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"),
        (
            "L/etcd.service",
            "[Unit]\nAfter=network.target\n[Service]\nEnvironment=DAEMON_ARGS=\nEnvironment=ETCD_NAME=%H\n\
             EnvironmentFile=-/etc/default/%p\nType=notify\nExecStart=/usr/bin/etcd $DAEMON_ARGS\n\
             [Install]\nWantedBy=multi-user.target\nAlias=etcd2.service\n",
        ),
        (
            "E/etcd.service.d/10-mesh.conf",
            "[Unit]\nPartOf=mesh-registry.target\nRequires=mesh-preflight.service\nAfter=mesh-preflight.service\n\
             [Service]\nEnvironment=\nEnvironmentFile=\nExecStart=\n\
             ExecStart=/usr/bin/etcd --config-file /etc/etcd/etcd.yaml\nTimeoutStartSec=infinity\n",
        ),
        (
            "L/mesh-registry.target",
            "[Unit]\nDefaultDependencies=no\nConflicts=shutdown.target\nBefore=shutdown.target\n\
             Requires=mesh-preflight.service\nAfter=mesh-preflight.service\nWants=etcd.service\n\
             [Install]\nWantedBy=multi-user.target\n",
        ),
        ("L/mesh-preflight.service", "[Service]\nType=oneshot\nExecStart=/usr/lib/fitout/mesh-preflight\n"),
        ("/usr/lib/fitout/mesh-preflight", "#!/bin/sh\ncommand -v /usr/bin/etcd\n"),
        ("/etc/init.d/etcd", "#!/bin/sh\n"),
        ("/etc/rc2.d/K01etcd", "-> ../init.d/etcd"),
        (
            "/etc/systemd/system-preset/00-fitout.preset",
            "disable etcd.service\ndisable etcd2.service\ndisable mesh-registry.target\ndisable unreached.service\n",
        ),
    ]
    .map(|(path, text)| (where_is(path), text))
    .iter()
    .map(|(path, text)| (path.as_str(), *text))
    .collect::<Vec<_>>());
    tree.insert(TreePath::root(), Entry::directory(0o755));
    tree
}

fn where_is(path: &str) -> String {
    match path.split_at(2) {
        ("E/", rest) => format!("{ETC}/{rest}"),
        ("L/", rest) => format!("{LIB}/{rest}"),
        _ => path.to_owned(),
    }
}

pub(super) fn image(mutation: Mutation) -> Image {
    let mut tree = stopped();
    for (path, text) in mutation {
        match path.strip_prefix("- ") {
            Some(path) => {
                tree.remove(&TreePath::parse(where_is(path)).unwrap());
            }
            None => put(&mut tree, &where_is(path), text),
        }
    }
    Image {
        name: "lis1.tar.gz".into(),
        tree,
        manifest: Some(testing::manifest()),
        private_keys: Vec::new(),
        etcd_builds: Vec::new(),
    }
}
