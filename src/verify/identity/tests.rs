//! Images with one thing too many, each with the codes that it must give.

use super::*;
use crate::overlay::ledger::Scope;
use crate::pki::key::public_key_digest;
use crate::pki::testing::begin;
use crate::systemd::testing::{put, tree};
use crate::verify::scan::private_keys;
use crate::verify::testing::{self, record};
use crate::verify::units;

/// A node's image: its name, a key of its own, and a Debian package that ships a key.
struct Set {
    own: String,
    other: String,
    foreign: String,
    authority: String,
}

fn key() -> String {
    rcgen::KeyPair::generate().unwrap().serialize_pem()
}

impl Set {
    fn new() -> Set {
        Set { own: key(), other: key(), foreign: key(), authority: key() }
    }

    fn image(&self, node: &str, key: &str) -> Image {
        let tree = tree(&[
            ("/etc/hostname", &format!("{node}\n")),
            ("/etc/hosts", "127.0.0.1 localhost\n# vm was here\n"),
            ("/etc/machine-id", ""),
            ("/etc/shadow", "root:*:20787:0:99999:7:::\netcd:!:20787::::::\n"),
            ("/etc/mesh/pki/client.key", key),
            ("/usr/lib/libtest.so", &self.foreign),
            ("/var/lib/dpkg/info/libtest.md5sums", "0123456789abcdef0123456789abcdef  usr/lib/libtest.so\n"),
            ("/usr/lib/systemd/system/default.target", "[Unit]\n"),
            ("/usr/lib/systemd/system/ssh.service", "[Service]\nExecStart=/usr/sbin/sshd -D\n"),
            (
                "/usr/lib/systemd/system/sshd-keygen.service",
                "[Unit]\nConditionFirstBoot=yes\n[Service]\nType=oneshot\nExecStart=ssh-keygen -A\n",
            ),
        ]);
        let mut manifest = testing::manifest();
        manifest.node = node.to_owned();
        manifest.base_hostname = "vm".to_owned();
        let mut image = Image {
            name: format!("{node}.tar.gz"),
            tree,
            manifest: Some(manifest),
            private_keys: vec![],
            etcd_builds: vec![],
        };
        let mut record = record(Action::Added, Scope::Node);
        (record.sha256, record.public_key) = (None, public_key_digest(key).ok());
        put_record(&mut image, "/etc/mesh/pki/client.key", record);
        image
    }

    /// The codes of the first node's image, sorted, each once.
    fn codes(&self, change: impl Fn(&mut Image, &Set)) -> Vec<&'static str> {
        let mut image = self.image("lis1", &self.own);
        change(&mut image, self);
        image.private_keys = private_keys(&image.tree);
        let other = self.image("por1", &self.other);
        let mut known = Known::new([&image, &other].into_iter());
        known.authorities.insert(public_key_digest(&self.authority).unwrap());
        let facts = units::Facts::new(&image);
        let mut out = Vec::new();
        check(&image, &facts, &known, &mut out);
        let mut codes: Vec<&str> = out.iter().map(|f| f.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

fn put_record(image: &mut Image, path: &str, record: Record) {
    image.manifest.as_mut().unwrap().ledger.records.insert(path.into(), record);
}

/// Files that are put; a leading `- ` takes one away, and `+ ` says that an overlay put it for the profile.
type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);

const AUTHORIZED: &str = "/root/.ssh/authorized_keys";
const HOST_KEY: &str = "/etc/ssh/ssh_host_ed25519_key";
const PROXY: &str = "Acquire::http::Proxy \"http://10.0.0.1:3128\";\n";

const CASES: &[Case] = &[
    (&[], &[]),
    (&[("/etc/hostname", "por1\n")], &["hostname"]),
    (&[("- /etc/hostname", "")], &["hostname"]),
    (&[("/etc/hostname", "# the name\nlis1\n")], &[]),
    (&[("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 vm.example vm\n")], &["base-hostname"]),
    (&[("/etc/hosts", "127.0.0.1 localhost\n192.0.2.1 vmx\n")], &[]),
    (
        &[(
            "/etc/hosts",
            "# begin of the mesh's nodes, written by fitout\n10.77.0.9 vm.harbour.mesh vm\n# end of the mesh's nodes\n",
        )],
        &[],
    ),
    (&[("/etc/mailname", "vm\n")], &["base-hostname"]),
    (&[("/var/lib/dbus/machine-id", "0123456789abcdef0123456789abcdef\n")], &["dbus-machine-id"]),
    (&[("/var/lib/dbus/machine-id", "-> /etc/machine-id")], &[]),
    (&[("/var/lib/dbus/machine-id", "")], &[]),
    (&[("/var/lib/systemd/random-seed", "seed")], &["random-seed"]),
    (&[("/boot/efi/loader/random-seed", "seed")], &["random-seed"]),
    (&[("/var/lib/systemd/credential.secret", "secret")], &["credential-secret"]),
    (&[("/etc/iscsi/initiatorname.iscsi", "InitiatorName=iqn.1993-08.org.debian:01:1\n")], &["host-leftover"]),
    (&[("/etc/iscsi/initiatorname.iscsi", "GenerateName=yes\n")], &[]),
    (&[("/var/lib/NetworkManager/secret_key", "x")], &["host-leftover"]),
    (&[("/var/lib/dhcp/dhclient.leases", "lease {}\n"), ("/var/lib/dhcp/x", "x")], &["host-leftover"]),
    (&[("/var/lib/dhcp", "/")], &[]),
    (&[("/.dockerenv", "")], &["host-leftover"]),
    (&[("/root/.bash_history", "ls\n")], &["host-leftover"]),
    (&[("/root/.bash_history", "")], &[]),
    (&[("+ /etc/hostid", "x")], &[]),
    (&[("/etc/resolv.conf", "nameserver 192.0.2.53\n")], &["host-leftover"]),
    (&[("/etc/resolv.conf", "nameserver 127.0.0.53\n")], &[]),
    (&[("/etc/resolv.conf", "-> /run/systemd/resolve/stub-resolv.conf")], &[]),
    (&[("+ /etc/resolv.conf", "nameserver 192.0.2.53\n")], &[]),
    (&[(HOST_KEY, "key")], &["ssh-host-key"]),
    (&[("+ /etc/ssh/ssh_host_ed25519_key", "key")], &["ssh-host-key"]),
    (&[("/etc/ssh/ssh_host_ed25519_key.pub", "key")], &[]),
    (
        &[("/etc/systemd/system/default.target.wants/ssh.service", "-> /usr/lib/systemd/system/ssh.service")],
        &["ssh-host-keys-none"],
    ),
    (
        &[
            ("/etc/systemd/system/default.target.wants/ssh.service", "-> /usr/lib/systemd/system/ssh.service"),
            (
                "/etc/systemd/system/ssh.service.wants/sshd-keygen.service",
                "-> /usr/lib/systemd/system/sshd-keygen.service",
            ),
        ],
        &["ssh-host-keys-none"],
    ),
    (
        &[
            ("/etc/systemd/system/default.target.wants/ssh.service", "-> /usr/lib/systemd/system/ssh.service"),
            (
                "/etc/systemd/system/ssh.service.wants/sshd-keygen.service",
                "-> /usr/lib/systemd/system/sshd-keygen.service",
            ),
            ("/etc/systemd/system/sshd-keygen.service.d/10-always.conf", "[Unit]\nConditionFirstBoot=\n"),
        ],
        &[],
    ),
    (
        &[
            ("/etc/systemd/system/default.target.wants/ssh.service", "-> /usr/lib/systemd/system/ssh.service"),
            ("/etc/systemd/system/ssh.service.d/keys.conf", "[Service]\nExecStartPre=/usr/bin/ssh-keygen -A\n"),
        ],
        &[],
    ),
    (
        &[
            ("/etc/systemd/system/default.target.wants/ssh.service", "-> /usr/lib/systemd/system/ssh.service"),
            ("/etc/ssh/sshd_config.d/keys.conf", "HostKey /var/lib/keys/ed25519\n"),
        ],
        &[],
    ),
    (&[("/etc/apt/apt.conf.d/99proxy", PROXY)], &["build-proxy"]),
    (&[("+ /etc/apt/apt.conf.d/99proxy", PROXY)], &[]),
    (&[("/etc/environment", "http_proxy=http://10.0.0.1:3128\n")], &["build-proxy"]),
    (&[("/etc/environment", "PATH=/bin\nno_proxy=localhost\n")], &[]),
    (&[("/etc/shadow", "root:$y$j9T$x:20787:0:99999:7:::\n")], &["password-shared"]),
    (&[("/etc/shadow", "root::20787:0:99999:7:::\n")], &["password-none"]),
    (&[("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\netcd:*:100:101::/:/bin/false\n")], &[]),
    (&[("/etc/passwd", "root::0:0:root:/root:/bin/bash\n")], &["password-none"]),
    (&[("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nold::900:900::/:/bin/sh\n")], &["password-none"]),
    (&[("/etc/passwd", "root:$y$j9T$x:0:0:root:/root:/bin/bash\n")], &["password-shared"]),
    (&[("/etc/passwd", "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\n")], &["root-twice"]),
    (&[("/etc/passwd", "root:x:0:0::/root:/bin/sh\ntoor::00:0::/root:/bin/sh\n")], &["password-none", "root-twice"]),
    (&[("/etc/passwd", "root:x:0:0::/root:/bin/sh\n+::::::\n")], &[]),
    (&[(AUTHORIZED, "ssh-ed25519 AAAA me\n")], &["authorized-keys-unrecorded"]),
    (&[("/root/.ssh/authorized_keys2", "ssh-ed25519 AAAA me\n")], &["authorized-keys-unrecorded"]),
    (&[("/var/lib/backup/.ssh/authorized_keys", "ssh-rsa AAAA\n")], &["authorized-keys-unrecorded"]),
    (&[(AUTHORIZED, "-> /etc/keys"), ("/etc/keys", "ssh-rsa AAAA\n")], &["authorized-keys-unrecorded"]),
    (&[(AUTHORIZED, "# none yet\n\n")], &[]),
    (&[("+ /root/.ssh/authorized_keys", "ssh-ed25519 AAAA me\n")], &[]),
    (&[("/usr/share/doc/x.ssh/authorized_keys", "ssh-rsa AAAA\n")], &[]),
];

#[test]
fn each_image_gives_its_codes() {
    let set = Set::new();
    for (files, want) in CASES {
        let codes = set.codes(|image, _| {
            for (path, content) in *files {
                match path.split_at(2) {
                    ("- ", path) => drop(image.tree.remove(&TreePath::parse(path).unwrap())),
                    ("+ ", path) => {
                        put(&mut image.tree, path, content);
                        put_record(image, path, record(Action::Added, Scope::Profile));
                    }
                    _ => put(&mut image.tree, path, content),
                }
            }
        });
        assert_eq!(codes, *want, "{files:?}");
    }
}

type KeyCase = (&'static str, fn(&mut Image, &Set), &'static [&'static str]);

const KEYS: &[KeyCase] = &[
    ("a key of the base", |i, s| put(&mut i.tree, "/srv/app/tls.key", &s.foreign), &["private-key-foreign"]),
    (
        "deep in a text",
        |i, s| put(&mut i.tree, "/usr/share/x", &format!("{}{}", "x".repeat(99_999), s.foreign)),
        &["private-key-foreign"],
    ),
    (
        "in JSON",
        |i, s| put(&mut i.tree, "/srv/x.json", &format!("{{\"key\": \"{}\"}}", s.foreign.trim().replace('\n', "\\n"))),
        &["private-key-foreign"],
    ),
    (
        "of an overlay",
        |i, s| {
            put(&mut i.tree, "/etc/app/tls.key", &s.foreign);
            put_record(i, "/etc/app/tls.key", record(Action::Added, Scope::Profile));
        },
        &["private-key-foreign"],
    ),
    (
        "over what a package ships",
        |i, s| {
            put(&mut i.tree, "/usr/lib/libtest.so", &s.foreign);
            put_record(i, "/usr/lib/libtest.so", record(Action::Replaced, Scope::Profile));
        },
        &["private-key-foreign"],
    ),
    ("of another node", |i, s| put(&mut i.tree, "/root/backup.pem", &s.other), &["private-key-other-node"]),
    ("the node's own, again", |i, s| put(&mut i.tree, "/root/backup.pem", &s.own), &["private-key-copy"]),
    ("an authority's, which TLS's rules name", |i, s| put(&mut i.tree, "/root/ca.pem", &s.authority), &[]),
    (
        "only words",
        |i, _| {
            put(
                &mut i.tree,
                "/usr/share/doc/x",
                &format!("{}\nMIIEowIBAAKCAQEAyourkeygoeshere0123456789\n", begin("PRIVATE KEY")),
            )
        },
        &[],
    ),
    (
        "an encrypted one",
        |i, s| {
            let der = crate::pki::key::from_pem(s.foreign.as_bytes(), None).unwrap();
            let phrase = crate::pki::Passphrase::new("correct horse").unwrap();
            put(&mut i.tree, "/srv/x.pem", &crate::pki::key::to_pem(&der, Some(&phrase)).unwrap());
        },
        &["private-key-foreign"],
    ),
    (
        "a container",
        |i, _| {
            // PFX: version 3, content of type id-data.
            let bytes = b"\x30\x10\x02\x01\x03\x30\x0b\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
            let path = TreePath::parse("/srv/x.p12").unwrap();
            i.tree.insert(path, crate::tree::Entry::file(*bytes, 0o600));
        },
        &["private-key-container"],
    ),
    (
        "no manifest, which the container's rules name",
        |i, s| {
            put(&mut i.tree, "/srv/x.pem", &s.foreign);
            i.manifest = None;
        },
        &[],
    ),
];

#[test]
fn each_key_gives_its_code() {
    let set = Set::new();
    for (name, change, want) in KEYS {
        assert_eq!(set.codes(change), *want, "{name}");
    }
}

#[test]
fn every_rule_is_fired_by_a_fixture() {
    let all: Vec<&str> = CASES.iter().flat_map(|c| c.1).chain(KEYS.iter().flat_map(|c| c.2)).copied().collect();
    for rule in RULES {
        assert!(all.contains(&rule.code), "no fixture fires {}", rule.code);
        assert_eq!(rule.family, "identity");
    }
    for code in all {
        assert!(RULES.iter().any(|rule| rule.code == code), "{code} is in no rule");
    }
}
