//! Keys, and accounts that let anybody in: the truth is what openssl and ssh-keygen read from the file, and whether `su`
//! of the image makes a stranger that user.

use super::{On, Row, Truth};

/// What openssl or ssh-keygen find at a path: `none`, `foreign`, `own`, `other` (a voter's), `encrypted`, `container`.
const fn key(
    name: &'static str,
    change: &'static str,
    path: &'static str,
    found: &'static str,
    codes: &'static [&'static str],
) -> Row {
    Row { name, change, on: On::Both, truth: Truth::Key(path, found), codes, says: "" }
}

/// Whether nobody becomes a user by `su` without a password.
/// The ledger records the account files, to which the mesh's overlay adds users: that they were changed is said of each.
const fn login(
    name: &'static str,
    change: &'static str,
    user: &'static str,
    enters: bool,
    codes: &'static [&'static str],
) -> Row {
    Row { name, change, on: On::Both, truth: Truth::Login(user, enters), codes, says: "" }
}

const FOREIGN: &[&str] = &["private-key-foreign"];
const NOTHING: &[&str] = &[];

/// The rows.
pub const ROWS: &[Row] = &[
    key("key: PKCS#8", "openssl genpkey -algorithm ED25519 >root/x", "root/x", "foreign", FOREIGN),
    key("key: PKCS#1", "openssl genrsa -traditional 1024 2>/dev/null >opt/x.txt", "opt/x.txt", "foreign", FOREIGN),
    key("key: SEC1", "openssl ecparam -name prime256v1 -genkey -noout >srv/x", "srv/x", "foreign", FOREIGN),
    key("key: DER", "openssl genpkey -algorithm ED25519 -outform DER >usr/share/x", "usr/share/x", "foreign", FOREIGN),
    key("key: OpenSSH", "ssh-keygen -q -t ed25519 -N '' -f root/id", "root/id", "foreign", FOREIGN),
    key(
        "key: a host's",
        "mkdir -p etc/ssh; ssh-keygen -q -t ed25519 -N '' -f etc/ssh/ssh_host_ed25519_key",
        "etc/ssh/ssh_host_ed25519_key",
        "foreign",
        &["ssh-host-key"],
    ),
    key(
        "key: encrypted",
        "openssl genpkey -algorithm ED25519 -aes256 -pass pass:x >root/x",
        "root/x",
        "encrypted",
        FOREIGN,
    ),
    key(
        "key: behind a long text",
        "{ seq 400000; openssl genpkey -algorithm ED25519; } >usr/share/x",
        "usr/share/x",
        "foreign",
        FOREIGN,
    ),
    key(
        "key: with ends of line of another system",
        "openssl genpkey -algorithm ED25519 | sed 's/$/\\r/' >opt/x",
        "opt/x",
        "foreign",
        FOREIGN,
    ),
    key("key: of the other voter", "peer_file $PKI/peer.key >root/other.pem", "root/other.pem", "other", FOREIGN),
    key(
        "key: its own, copied",
        "cp $PKI/peer.key var/backups/etcd.key",
        "var/backups/etcd.key",
        "own",
        &["private-key-copy"],
    ),
    key(
        "key: PKCS#12",
        "openssl pkcs12 -export -inkey $PKI/peer.key -in $PKI/peer.crt -passout pass:x -out opt/x.p12",
        "opt/x.p12",
        "container",
        &["private-key-container"],
    ),
    key("key: only a public one", "openssl pkey -in $PKI/peer.key -pubout >root/x", "root/x", "none", NOTHING),
    key("key: only a certificate", "cp $PKI/peer.crt root/x", "root/x", "none", NOTHING),
    key(
        "key: only its headline",
        "put usr/share/doc/x 'A key begins with' '-----BEGIN PRIVATE ''KEY-----' 'and ends so.'",
        "usr/share/doc/x",
        "none",
        NOTHING,
    ),
    key("key: only one line of it", "sed -n 2p $PKI/peer.key >root/x", "root/x", "none", NOTHING),
    key("key: a request", "openssl req -new -key $PKI/peer.key -subj /CN=x >root/x", "root/x", "none", NOTHING),
    login(
        "login: root needs no password",
        "sed -i 's/^root:[^:]*:/root::/' etc/shadow",
        "root",
        true,
        &["ledger-content", "password-none"],
    ),
    login(
        "login: another user needs no password",
        "sed -i 's/^backup:[^:]*:/backup::/; ' etc/shadow; sed -i '/^backup:/ s#:[^:]*$#:/bin/sh#' etc/passwd",
        "backup",
        true,
        &["ledger-content", "password-none"],
    ),
    login(
        "login: a second root",
        "echo toor::0:0::/root:/bin/sh >>etc/passwd",
        "toor",
        true,
        &["ledger-content", "password-none", "root-twice"],
    ),
    login(
        "login: a second root that is locked",
        "echo toor:x:0:0::/root:/bin/sh >>etc/passwd; echo 'toor:!:1::::::' >>etc/shadow",
        "toor",
        false,
        &["ledger-content", "root-twice"],
    ),
    login(
        "login: a hash",
        "sed -i \"s#^backup:[^:]*:#backup:$(openssl passwd -6 -salt x y):#\" etc/shadow",
        "backup",
        false,
        &["ledger-content", "password-shared"],
    ),
    login(
        "login: locked in another way",
        "sed -i 's/^backup:[^:]*:/backup:!!:/' etc/shadow",
        "backup",
        false,
        &["ledger-content"],
    ),
];
