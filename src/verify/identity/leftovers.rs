//! What a machine makes once for itself, and what the machine that built the base left behind.

use super::{file_len, files_below, put_by_overlay, rule, text};
use crate::finding::{Finding, Rule, Severity};
use crate::systemd::search::follow;
use crate::tree::TreePath;
use crate::verify::Image;

/// D-Bus's copy.
pub static DBUS_ID: Rule = rule(
    "dbus-machine-id",
    Severity::Error,
    "D-Bus has a machine id of its own",
    "\
`/var/lib/dbus/machine-id` is where D-Bus kept the machine's id before `/etc/machine-id` (dbus-uuidgen(1)). With an id in it all
machines of the image share it, and systemd takes it over as the machine's id at the first boot when its own is empty
(machine-id(5), Initialization). The file must be missing, or a link to `/etc/machine-id`.",
);

/// Random seed.
pub static RANDOM_SEED: Rule = rule(
    "random-seed",
    Severity::Error,
    "the image has a random seed that all its machines would share",
    "\
The seed is kept from one boot to the next to make the first random numbers good (systemd-random-seed.service(8), for boot loaders
systemd-boot(7)). In an image it is the same for every machine, and known to everybody who has the image; systemd's documentation asks
for its removal from images that are booted more than once (Building Images Safely).",
);

/// Credential secret.
pub static CREDENTIAL_SECRET: Rule = rule(
    "credential-secret",
    Severity::Error,
    "the image has the secret with which a machine encrypts its credentials",
    "\
`/var/lib/systemd/credential.secret` is made by `systemd-creds setup` or at the first encryption, and opens every credential that was
encrypted with it (systemd-creds(1)). In an image each machine could open those of all others. systemd's documentation asks for its
removal from images (Building Images Safely).",
);

/// Others.
pub static LEFTOVER: Rule = rule(
    "host-leftover",
    Severity::Warning,
    "the image has something that belongs to one machine only, and no overlay put it there",
    "\
Packages make such files in their postinst or when they first run: names in storage networks, secrets of a network manager, DHCP
leases and identifiers, rules with addresses of network cards, state of cloud-init, histories of a shell. Every machine of the
image would have the same. Remove them from the base, or by `remove` in an overlay; what an overlay puts there is taken as meant.",
);

/// Files with the seed, for the system and for boot loaders.
const SEEDS: [&str; 6] = [
    "/var/lib/systemd/random-seed",
    "/var/lib/urandom/random-seed",
    "/var/lib/random-seed",
    "/boot/loader/random-seed",
    "/boot/efi/loader/random-seed",
    "/efi/loader/random-seed",
];

/// Files, or directories with a final slash, and what they are.
const LEFTOVERS: [(&str, &str); 33] = [
    ("/.dockerenv", "the mark of a Docker container, by which programs take the machine for one"),
    ("/etc/dhcpcd.duid", "the DHCP identifier of a machine (dhcpcd(8))"),
    ("/etc/hostid", "the id of a machine for ZFS (zgenhostid(8))"),
    ("/etc/krb5.keytab", "a machine's keys for Kerberos"),
    ("/etc/munge/munge.key", "the secret of MUNGE, made by the package's postinst"),
    ("/etc/bind/rndc.key", "the secret of `rndc`, made by the package's postinst"),
    ("/etc/nvme/hostid", "a machine's id in NVMe fabrics, made by the package's postinst"),
    ("/etc/nvme/hostnqn", "a machine's name in NVMe fabrics, made by the package's postinst"),
    ("/etc/udev/rules.d/70-persistent-net.rules", "names of network cards by their addresses"),
    ("/root/.bash_history", "what somebody typed"),
    ("/root/.lesshst", "what somebody looked for"),
    ("/root/.python_history", "what somebody typed"),
    ("/root/.ssh/known_hosts", "machines to which somebody connected"),
    ("/root/.viminfo", "files that somebody edited"),
    ("/root/.wget-hsts", "machines from which somebody fetched"),
    ("/root/.zsh_history", "what somebody typed"),
    ("/var/lib/NetworkManager/secret_key", "NetworkManager's secret, from which addresses and identifiers follow"),
    ("/var/lib/NetworkManager/timestamps", "when a machine's connections were up"),
    ("/var/lib/cloud/data/", "a machine's state of cloud-init"),
    ("/var/lib/cloud/instances/", "a machine's state of cloud-init"),
    ("/var/lib/dhcp/", "DHCP leases of a machine"),
    ("/var/lib/dhcpcd/", "DHCP leases and the identifier of a machine"),
    ("/var/lib/dhcpcd5/", "DHCP leases and the identifier of a machine"),
    ("/var/lib/private/systemd/journal-upload/", "how far a machine's journal was sent"),
    ("/var/lib/samba/private/secrets.tdb", "the secrets of a machine in a domain"),
    ("/var/lib/sss/secrets/", "secrets of a machine's sssd"),
    ("/var/lib/systemd/network/", "state of a machine's network"),
    ("/var/lib/systemd/pcrlock.json", "what a machine's TPM must measure (systemd-pcrlock(8))"),
    ("/var/lib/systemd/tpm2-srk-public-key.pem", "the root key of a machine's TPM (systemd-tpm2-setup.service(8))"),
    ("/var/lib/systemd/tpm2-srk-public-key.tpm2b_public", "the root key of a machine's TPM"),
    ("/var/lib/tailscale/tailscaled.state", "the identity of a machine in a Tailscale network"),
    ("/var/lib/zerotier-one/identity.secret", "the identity of a machine in a ZeroTier network"),
    ("/var/log/journal/", "the journal of a machine"),
];

/// Applies the rules.
pub(super) fn check(image: &Image, out: &mut Vec<Finding>) {
    dbus_id(image, out);
    let sized = |path: &str| file_len(image, path).map(|len| format!("{path} is there, with {len} bytes"));
    for path in SEEDS {
        out.extend(sized(path).map(|message| RANDOM_SEED.finding(path, message).help("remove it from the base")));
    }
    let secret = "/var/lib/systemd/credential.secret";
    out.extend(sized(secret).map(|m| CREDENTIAL_SECRET.finding(secret, m).help("remove it from the base")));
    for (place, what) in LEFTOVERS {
        let paths: Vec<TreePath> = match place.strip_suffix('/') {
            Some(directory) => files_below(image, directory).map(|(path, _)| path.clone()).collect(),
            None => file_or_mark(image, place).into_iter().collect(),
        };
        let mut paths = paths.into_iter().filter(|path| put_by_overlay(image, path).is_none());
        if let Some(first) = paths.next() {
            let more = paths.count();
            let others = if more > 0 { format!(", and {more} more below {place}") } else { String::new() };
            say(&first.display(), format!("it is {what}{others}"), out);
        }
    }
    let path = "/etc/iscsi/initiatorname.iscsi";
    let name = text(image, path)
        .and_then(|text| text.lines().find_map(|line| line.trim().strip_prefix("InitiatorName=").map(str::to_owned)));
    if let Some(name) = name.filter(|_| put(image, path).is_none()) {
        say(path, format!("it has `{name}`, a machine's name in storage networks"), out);
    }
    resolv_conf(image, out);
}

fn say(subject: &str, message: String, out: &mut Vec<Finding>) {
    out.push(LEFTOVER.finding(subject, message).help("remove it from the base, or by `remove` in an overlay"));
}

fn put(image: &Image, path: &str) -> Option<()> {
    put_by_overlay(image, &TreePath::parse(path).ok()?).map(|_| ())
}

/// A file that holds something; of a mark that is only there, any.
fn file_or_mark(image: &Image, place: &str) -> Option<TreePath> {
    let path = TreePath::parse(place).ok()?;
    let there = if place == "/.dockerenv" { image.tree.get(&path).is_some() } else { file_len(image, place).is_some() };
    there.then_some(path)
}

fn dbus_id(image: &Image, out: &mut Vec<Finding>) {
    let path = "/var/lib/dbus/machine-id";
    let end = TreePath::parse(path).ok().and_then(|path| follow(&image.tree, &path));
    // A link to the machine's own id is what it should be.
    if end.is_none_or(|end| end.display() != path) {
        return;
    }
    if text(image, path).is_some_and(|text| !text.trim().is_empty()) {
        out.push(DBUS_ID.finding(path, format!("{path} holds an id")).help("remove it from the base"));
    }
}

/// Name servers of the build host: mmdebstrap and container programs copy its file.
fn resolv_conf(image: &Image, out: &mut Vec<Finding>) {
    let path = "/etc/resolv.conf";
    if file_len(image, path).is_none() || put(image, path).is_some() {
        return;
    }
    let text = text(image, path).unwrap_or_default();
    let server = text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let server = (words.next() == Some("nameserver")).then(|| words.next())??;
        let local = server.starts_with("127.") || server == "::1";
        (!local).then(|| server.to_owned())
    });
    if let Some(server) = server {
        say(path, format!("it has the name server `{server}`, mostly that of the machine that made the base"), out);
    }
}
