//! Which contents of an image are kept: what rules read, and private keys.

use super::super::image::PrivateKey;
use super::build_info;
use super::pem::Search;
use crate::etcd::versions::Version;
use crate::image::manifest::MANIFEST_PATH;
use crate::pki::found::{self, Found};
use crate::tree::read::Contents;
use crate::tree::{Place, TreePath};

/// Largest file that is kept, in bytes. The largest text that rules read on Debian is some 200 KiB
/// (`ca-certificates.crt`).
const LARGEST: u64 = 1 << 20;

/// Largest manifest and package list: they grow with the image.
const LARGEST_LIST: u64 = 16 << 20;

/// Largest file with a private key whose bytes are kept wherever it lies; larger than any key in DER.
const LARGEST_KEY: u64 = 64 << 10;

/// First byte of a key in DER: a SEQUENCE.
const SEQUENCE: u8 = 0x30;

/// Most that is kept of one image, in bytes.
const BUDGET: u64 = 48 << 20;

/// A file with a NUL byte this early is no text.
const HEAD: usize = 1024;

/// Directories whose files decide what starts or what etcd does: kept whatever they hold, and told when they are not.
/// Below `/usr/lib`, `/lib` alike.
const STRICT: &[&str] = &[
    "etc/cron.d",
    "etc/dbus-1",
    "etc/etcd",
    "etc/mesh",
    "etc/systemd",
    "etc/udev/rules.d",
    "run",
    "usr/lib/fitout",
    "usr/lib/systemd/system",
    "usr/lib/systemd/system-preset",
    "usr/lib/udev/rules.d",
    "usr/local/lib/systemd",
    "usr/local/lib/udev",
    "usr/local/share/dbus-1",
    "usr/share/dbus-1/system-services",
    "usr/lib/dbus-1",
    "var/lib/systemd/deb-systemd-helper-enabled",
    "var/lib/systemd/deb-systemd-helper-masked",
    "var/spool/cron",
];

/// Directories where rules read texts (configuration, scripts) and pass over the rest.
const TEXTS: &[&str] = &[
    "etc",
    "home",
    "opt",
    "root",
    "srv",
    "usr/lib/environment.d",
    "usr/lib/os-release",
    "usr/lib/systemd",
    "usr/lib/sysusers.d",
    "usr/lib/tmpfiles.d",
    "usr/libexec",
    "usr/local",
    "var/lib/dbus",
    "var/lib/dhcp",
    "var/lib/misc",
];

/// Why a file that rules read was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The file.
    pub path: TreePath,
    /// Its length in bytes.
    pub len: u64,
    /// True when the file alone is too large, false when all kept files together are.
    pub alone: bool,
}

/// How much a file's content matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interest {
    Strict,
    Text,
    None,
}

/// Keeps contents, and finds private keys in all of them.
#[derive(Debug, Default)]
pub struct Keeper {
    /// The private keys that were found, in archive order.
    pub private_keys: Vec<PrivateKey>,
    /// Files of the name `etcd` with the version that they were built of.
    pub etcd_builds: Vec<(TreePath, Version)>,
    /// Files that rules read and that are too large.
    pub unread: Vec<Unread>,
    spent: u64,
    path: TreePath,
    len: u64,
    largest: u64,
    interest: Option<Interest>,
    head_is_text: bool,
    started: bool,
    kept: Vec<u8>,
    search: Search,
    build: build_info::Search,
}

impl Keeper {
    fn is_etcd(&self) -> bool {
        self.path.file_name() == b"etcd"
    }

    fn buffers(&self) -> bool {
        let wanted = self.interest != Some(Interest::None) && self.len <= self.largest;
        wanted || self.len <= LARGEST_KEY
    }
}

impl Contents for Keeper {
    fn begin(&mut self, path: &TreePath, len: u64) {
        self.path = path.clone();
        self.len = len;
        (self.interest, self.largest) = (Some(interest(path)), largest(path));
        (self.head_is_text, self.started) = (true, false);
        self.kept.clear();
    }

    fn chunk(&mut self, bytes: &[u8]) {
        if !self.started {
            self.started = true;
            self.head_is_text = !bytes.iter().take(HEAD).any(|b| *b == 0);
        }
        self.search.feed(bytes);
        if self.is_etcd() {
            self.build.feed(bytes);
        }
        if self.buffers() {
            self.kept.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, _offset: u64) -> Place {
        let der = self.kept.first() == Some(&SEQUENCE) && self.kept.len() as u64 == self.len;
        let found = keys(self.search.finish(), der.then_some(&self.kept));
        let key = !found.is_empty();
        self.etcd_builds.extend(self.build.finish().map(|version| (self.path.clone(), version)));
        self.private_keys.extend(found.into_iter().map(|key| PrivateKey { path: self.path.clone(), key }));
        let wanted = match self.interest {
            Some(Interest::Strict) => true,
            Some(Interest::Text) => self.head_is_text,
            _ => false,
        };
        let fits = self.len <= self.largest;
        let kept = (wanted && fits) || (key && self.len <= LARGEST_KEY);
        if !kept {
            if wanted {
                self.unread.push(Unread { path: self.path.clone(), len: self.len, alone: true });
            }
            return Place::Dropped;
        }
        if self.spent + self.len > BUDGET {
            self.unread.push(Unread { path: self.path.clone(), len: self.len, alone: false });
            return Place::Dropped;
        }
        self.spent += self.len;
        Place::Memory(self.kept.as_slice().into())
    }
}

/// The private keys of a file: in its PEM sections, or the whole of it.
pub(super) fn keys(sections: Vec<Vec<u8>>, der: Option<&Vec<u8>>) -> Vec<Found> {
    let pem = sections.iter().filter_map(|section| found::from_pem(section));
    pem.chain(der.and_then(|bytes| found::from_der(bytes))).collect()
}

fn largest(path: &TreePath) -> u64 {
    let list = [MANIFEST_PATH.as_bytes(), b"var/lib/dpkg/status"].contains(&path.as_bytes());
    if list { LARGEST_LIST } else { LARGEST }
}

fn interest(path: &TreePath) -> Interest {
    let name = path.as_bytes();
    // What packages shipped is told apart from what was made on the build host.
    let sums = name.strip_prefix(b"var/lib/dpkg/info/").is_some_and(|file| file.ends_with(b".md5sums"));
    if name == b"var/lib/dpkg/status" || sums {
        return Interest::Text;
    }
    let within = |directories: &[&str]| {
        directories.iter().any(|directory| {
            let usr_merged = directory.strip_prefix("usr/").filter(|d| d.starts_with("lib"));
            is_within(name, directory) || usr_merged.is_some_and(|directory| is_within(name, directory))
        })
    };
    if within(STRICT) {
        Interest::Strict
    } else if within(TEXTS) {
        Interest::Text
    } else {
        Interest::None
    }
}

/// Equal to a path or below it.
fn is_within(name: &[u8], path: &str) -> bool {
    name.strip_prefix(path.as_bytes()).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_read_is_of_interest() {
        let cases = [
            ("/etc/etcd/etcd.yaml", Interest::Strict),
            ("/etc/hosts", Interest::Text),
            ("/etc/systemd/system/a.service", Interest::Strict),
            ("/usr/lib/systemd/system/a.service", Interest::Strict),
            ("/lib/systemd/system/a.service", Interest::Strict),
            ("/usr/lib/systemd/systemd", Interest::Text),
            ("/usr/lib/systemd/systemd-logind", Interest::Text),
            ("/usr/lib/os-release", Interest::Text),
            ("/usr/lib/fitout/image.json", Interest::Strict),
            ("/usr/local/bin/x", Interest::Text),
            ("/var/lib/dpkg/status", Interest::Text),
            ("/var/lib/dpkg/info/etcd-server.md5sums", Interest::Text),
            ("/var/lib/dpkg/info/etcd-server.list", Interest::None),
            ("/var/spool/cron/crontabs/root", Interest::Strict),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", Interest::None),
            ("/usr/bin/etcd", Interest::None),
            ("/etcetera/x", Interest::None),
        ];
        for (path, want) in cases {
            assert_eq!(interest(&TreePath::parse(path).unwrap()), want, "{path}");
        }
    }

    fn place(keeper: &mut Keeper, path: &str, content: &[u8]) -> Place {
        keeper.begin(&TreePath::parse(path).unwrap(), content.len() as u64);
        content.chunks(1000).for_each(|chunk| keeper.chunk(chunk));
        keeper.end(0)
    }

    #[test]
    fn bounds_hold_and_are_told() {
        let kept = |bytes: &[u8]| Place::Memory(bytes.into());
        let text = vec![b'x'; LARGEST as usize];
        let large = [&text[..], b"x"].concat();
        let binary = [&[0], &text[..100]].concat();
        let mut keeper = Keeper::default();
        let cases: [(&str, &[u8], Place); 9] = [
            ("/etc/a", &text, kept(&text)),
            ("/etc/large", &large, Place::Dropped),
            ("/etc/large.bin", &[&[0], &large[..]].concat(), Place::Dropped),
            ("/etc/a.bin", &binary, Place::Dropped),
            ("/etc/systemd/system/a.service", &binary, kept(&binary)),
            ("/etc/systemd/system/large.service", &large, Place::Dropped),
            ("/var/lib/dpkg/status", &large, kept(&large)),
            ("/usr/bin/a", &text[..10], Place::Dropped),
            ("/etc/empty", b"", kept(b"")),
        ];
        for (path, content, want) in cases {
            assert_eq!(place(&mut keeper, path, content), want, "{path}");
        }
        let unread: Vec<String> = keeper.unread.iter().map(|u| format!("{} {}", u.path, u.alone)).collect();
        assert_eq!(unread, ["/etc/large true", "/etc/systemd/system/large.service true"]);

        let mut keeper = Keeper::default();
        for i in 0..BUDGET / LARGEST {
            assert_ne!(place(&mut keeper, &format!("/etc/{i}"), &text), Place::Dropped);
        }
        assert_eq!(place(&mut keeper, "/etc/more", b"x"), Place::Dropped);
        assert_eq!(keeper.unread, [Unread { path: TreePath::parse("/etc/more").unwrap(), len: 1, alone: false }]);
    }
}
