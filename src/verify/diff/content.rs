//! How the contents of two files differ, in words that can be shown.

use std::time::Duration;

use memchr::memmem;
use serde::Serialize;
use similar::{Algorithm, TextDiff};

use super::Side;
use crate::pki::inspect::{Certificate, date};
use crate::tree::{Data, Entry, Kind, Tree, TreePath};

/// Largest file whose content is shown, in bytes.
pub const LARGEST: u64 = 1 << 20;

/// After this time a diff is finished coarsely.
const PATIENCE: Duration = Duration::from_secs(2);

/// Files whose contents nobody but root reads, beside private keys.
const SECRETS: &[&str] = &["etc/shadow", "etc/shadow-", "etc/gshadow", "etc/gshadow-"];

/// How two contents differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// A unified diff of two texts, without the two lines of names.
    Text(String),
    /// A unified diff of what the certificates say.
    Certificates(String),
    /// Known by digest only: no texts, or too large.
    Binary,
    /// A secret: it is not shown.
    Secret,
}

/// True when the content of a file of this length may be shown, so that a reader must keep it.
pub fn is_shown(len: u64) -> bool {
    len <= LARGEST
}

/// Compares a path whose content differs.
pub fn compare(path: &TreePath, a: &Side<'_>, b: &Side<'_>) -> Content {
    let sides = [a, b].map(|side| side.tree.get(path).map(|entry| (entry, side.tree)));
    let [Some((from, a_tree)), Some((to, b_tree))] = sides else { return Content::Binary };
    let known = [a, b].iter().any(|side| super::public_key(path, side).is_some());
    if known || is_secret(path, from, a_tree) || is_secret(path, to, b_tree) {
        return Content::Secret;
    }
    let (Some(from), Some(to)) = (bytes(from, a_tree), bytes(to, b_tree)) else { return Content::Binary };
    if let (Some(from), Some(to)) = (certificates(&from), certificates(&to)) {
        return Content::Certificates(unified(&from, &to));
    }
    match (text(&from), text(&to)) {
        (Some(from), Some(to)) => Content::Text(unified(from, to)),
        _ => Content::Binary,
    }
}

/// True for what must not be printed: password files, whatever holds a private key, and what nobody but its owner may
/// read: keys of WireGuard, passwords of services and the like have no form of their own.
pub fn is_secret(path: &TreePath, entry: &Entry, tree: &Tree) -> bool {
    if matches!(entry.kind, Kind::File(_)) && entry.mode & 0o077 == 0 {
        return true;
    }
    let named = SECRETS.iter().any(|name| path.as_bytes() == name.as_bytes());
    // The marker is enough: rather one text too many than one key.
    named || bytes(entry, tree).is_some_and(|bytes| memmem::find(&bytes, b"PRIVATE KEY-----").is_some())
}

fn bytes(entry: &Entry, tree: &Tree) -> Option<Vec<u8>> {
    match &entry.kind {
        Kind::File(data @ Data { len, .. }) if is_shown(*len) => tree.read(data).ok(),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// What the certificates of a file say, when it holds nothing else.
fn certificates(bytes: &[u8]) -> Option<String> {
    let all = if bytes.starts_with(b"-----BEGIN CERTIFICATE-----") {
        Certificate::bundle(bytes).ok()?
    } else {
        return None;
    };
    let mut text = String::new();
    for certificate in &all {
        for line in lines(certificate) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    (!all.is_empty()).then_some(text)
}

fn lines(certificate: &Certificate) -> Vec<String> {
    let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let usages: Vec<String> = certificate.extended.iter().flatten().map(ToString::to_string).collect();
    vec![
        format!("subject      {}", certificate.subject),
        format!("issuer       {}", certificate.issuer),
        format!("serial       {}", certificate.serial_hex()),
        format!("not before   {}", date(certificate.not_before)),
        format!("not after    {}", date(certificate.not_after)),
        format!("names        {}", certificate.names()),
        format!("used for     {}", if certificate.is_ca { "authority".to_owned() } else { list(&usages) }),
        format!("key          {}, sha256 of the public key {}", certificate.key_kind, certificate.public_key.hex()),
        format!("signed with  {}", certificate.signature_algorithm),
        format!("sha256       {}", crate::tree::Digest::of(&certificate.der).hex()),
    ]
}

fn unified(from: &str, to: &str) -> String {
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(PATIENCE).diff_lines(from, to);
    diff.unified_diff().context_radius(3).to_string()
}

/// Text without control characters, tabs aside: an image's content must not move the terminal's cursor.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
