//! Private keys: only the node's own, each at its place.

use std::collections::{BTreeMap, BTreeSet};

use super::rule;
use crate::finding::{Finding, Rule, Severity};
use crate::pki::found::Form;
use crate::pki::inspect::Certificate;
use crate::tree::{Digest, TreePath};
use crate::verify::Image;

/// A key of nobody we know.
pub static FOREIGN: Rule = rule(
    "private-key-foreign",
    Severity::Error,
    "the image has a private key that is not one of the node's own",
    "\
Every key that the store issued to the node is in the image's ledger by its public key. Any other was in the base, was put
there after the build, or an overlay put it there for every node of a profile: who has one image has it, and all machines share it. Keys were looked for in all files,
whatever their names and sizes, as PEM (PKCS#8, PKCS#1, SEC1, OpenSSH), and as DER where a file is nothing else. Keys that a Debian
package ships are known to everybody and secret to nobody, and are passed over: libraries carry them for self-tests. Those that a
postinst makes (`ssl-cert`'s `ssl-cert-snakeoil.key`) are not.",
);

/// A key of another node.
pub static OTHER_NODE: Rule = rule(
    "private-key-other-node",
    Severity::Error,
    "the image has the private key of another node",
    "\
It belongs to a certificate of another node among the images given. Who holds this machine could pass for the other one. Only
keys that the store issued to the node itself go into its image; build both again, and issue new keys when an image has left the
build host.",
);

/// A copy.
pub static COPY: Rule = rule(
    "private-key-copy",
    Severity::Warning,
    "one of the node's own private keys lies at a second place",
    "\
Modes and owners are proven for the key's own place. A copy in a backup, a bundle or a script is forgotten when keys are renewed,
and may be readable for others. Remove it.",
);

/// A container.
pub static CONTAINER: Rule = rule(
    "private-key-container",
    Severity::Warning,
    "the image has a container of keys (PKCS#12) into which nobody can look without its passphrase",
    "\
Such a file mostly holds a private key, and its passphrase mostly lies beside it. Whose key it is cannot be proven. Let the store
issue the key, or give it to the machine as a credential (systemd.exec(5), LoadCredential=).",
);

/// Whose keys are known, over all images that are verified together.
#[derive(Debug, Default)]
pub struct Known {
    /// Node by public key.
    nodes: BTreeMap<Digest, String>,
    /// Public keys of authorities: their private keys have a rule of their own.
    pub(super) authorities: BTreeSet<Digest>,
}

impl Known {
    /// Reads ledgers and trusted authorities.
    pub fn new<'a>(images: impl Iterator<Item = &'a Image>) -> Known {
        let mut known = Known::default();
        for image in images {
            let Some(manifest) = &image.manifest else { continue };
            for (path, record) in &manifest.ledger.records {
                if let Some(public) = record.public_key {
                    known.nodes.entry(public).or_insert_with(|| manifest.node.clone());
                }
                if record.kind == "file" && path.ends_with(".crt") {
                    let content = TreePath::parse(path).ok().and_then(|path| image.tree.content(&path).ok());
                    let bundle = content.and_then(|pem| Certificate::bundle(pem).ok()).unwrap_or_default();
                    known.authorities.extend(bundle.iter().filter(|c| c.is_ca).map(|c| c.public_key));
                }
            }
        }
        known
    }
}

/// Applies the rules. Without a manifest nothing is known of the node, which the container family says.
pub(super) fn check(image: &Image, known: &Known, out: &mut Vec<Finding>) {
    let Some(manifest) = &image.manifest else { return };
    let mut own: BTreeMap<Digest, Vec<&str>> = BTreeMap::new();
    for (path, record) in &manifest.ledger.records {
        if let Some(public) = record.public_key {
            own.entry(public).or_default().push(path);
        }
    }
    let mut shipped = None;
    for found in &image.private_keys {
        let (path, form) = (&found.path, found.key.form);
        let is_authority = found.key.public.is_some_and(|public| known.authorities.contains(&public));
        // Both have rules of their own.
        if is_authority || path.as_bytes().starts_with(b"etc/ssh/ssh_host_") {
            continue;
        }
        if let Some(places) = found.key.public.and_then(|public| own.get(&public)) {
            if !places.contains(&path.display().as_str()) {
                let message = format!("it is the node's own key, whose place is {}", places.join(", "));
                out.push(COPY.finding(path.display(), message).help("remove it"));
            }
            continue;
        }
        let other = found.key.public.and_then(|public| known.nodes.get(&public));
        if let Some(node) = other.filter(|node| **node != manifest.node) {
            let message = format!("it is {form} of node `{node}`");
            out.push(OTHER_NODE.finding(path.display(), message).help("build both images again from one store"));
            continue;
        }
        let record = super::put_by_overlay(image, path);
        if record.is_none() && shipped.get_or_insert_with(|| Shipped::new(image)).has(path) {
            continue;
        }
        let whose = match record {
            Some(record) => format!("overlay `{}` puts it there", record.origin.overlay),
            None if path.as_bytes().ends_with(b"ssl-cert-snakeoil.key") => {
                "the postinst of `ssl-cert` made it, and every image of the base has the same".to_owned()
            }
            None => "it was in the base, or was put there after the build".to_owned(),
        };
        let rule = if form == Form::Container { &CONTAINER } else { &FOREIGN };
        let message = format!("it is {form} that the store did not issue to `{}`; {whose}", manifest.node);
        let help = "remove it from the base or the overlay; what the machine needs it can make at its first boot, or \
                    get as a credential";
        out.push(rule.finding(path.display(), message).help(help));
    }
}

/// Paths that packages ship, by dpkg's own record of their contents. What a postinst makes is not among them.
struct Shipped<'a> {
    lists: Vec<String>,
    image: &'a Image,
}

impl<'a> Shipped<'a> {
    fn new(image: &'a Image) -> Shipped<'a> {
        let directory = TreePath::parse("/var/lib/dpkg/info").unwrap_or_default();
        let sums = image.tree.children(&directory).filter(|(path, _)| path.as_bytes().ends_with(b".md5sums"));
        let lists = sums.filter_map(|(path, _)| String::from_utf8(image.tree.content(path).ok()?).ok()).collect();
        Shipped { lists, image }
    }

    fn has(&self, path: &TreePath) -> bool {
        // dpkg's paths may be from before `/lib` became a link into `/usr`.
        let name = path.display();
        let plain = |path: &str| {
            let path = path.trim_start_matches(['.', '/']);
            path.strip_prefix("usr/").unwrap_or(path).to_owned()
        };
        let wanted = plain(&name);
        let is_it = |line: &str| line.split_once("  ").is_some_and(|(_, listed)| plain(listed) == wanted);
        self.image.tree.get(path).is_some() && self.lists.iter().any(|list| list.lines().any(is_it))
    }
}
