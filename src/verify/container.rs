//! Rules of the container: the archive is well-formed, every reader sees the same, nothing leaves the root, and the
//! image says what it is.

use std::collections::BTreeSet;

use super::Image;
use super::scan::{NoManifest, Unread};
use crate::declaration::Target;
use crate::finding::{Finding, Rule, Severity};
use crate::image::manifest::{MANIFEST_PATH, SCHEMA};
use crate::tree::read::{Defect, DefectKind, StreamError};
use crate::tree::{Kind, TreePath};

/// The rules of this family.
pub static RULES: &[&Rule] = &[
    &TRUNCATED,
    &DAMAGED,
    &TRAILING,
    &DUPLICATE,
    &ESCAPE,
    &BELOW,
    &MISREAD,
    &MALFORMED,
    &NAME,
    &IMPLIED,
    &DEVICE,
    &UNREAD,
    &MANIFEST,
    &UNREADABLE,
    &SCHEMA_NEWER,
];

const fn rule(code: &'static str, severity: Severity, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "container", severity, summary, explanation }
}

/// The archive ends too early.
pub static TRUNCATED: Rule = rule(
    "container-truncated",
    Severity::Error,
    "the archive ends too early",
    "An archive ends with two blocks of zeros (POSIX pax, ustar interchange format). Without them a copy that was cut \
     looks like a whole one, and most readers take it without a word. What other rules say of this image is about the \
     part that is there. Copy it again and compare with `sha256` in `dist/index.json`.",
);
/// The compressed stream or a header is damaged.
pub static DAMAGED: Rule = rule(
    "container-damaged",
    Severity::Error,
    "the archive is damaged",
    "The checksum of the compressed stream (gzip's CRC-32, zstd's XXH64) or of a tar header is wrong, or the stream \
     cannot be decompressed. What other rules say of this image is about the part before the damage. Copy it again \
     and compare with `sha256` in `dist/index.json`; when that agrees, check the disk it was built on.",
);
/// Something after the end.
pub static TRAILING: Rule = rule(
    "container-trailing",
    Severity::Error,
    "the archive has something after its end",
    "Readers stop at the end marker and never see what follows; some go on (`tar --ignore-zeros`, `cat` of archives). \
     So two readers may see two images. `fitout build` writes nothing there.",
);
/// A name twice.
pub static DUPLICATE: Rule = rule(
    "container-duplicate",
    Severity::Error,
    "a path is in the archive twice",
    "Programs that unpack let the last entry win; programs that look a name up (`tar -xO`, libraries with an index) \
     take the first. An overlay's file must not depend on that: `fitout build` leaves the base's entry out when it \
     writes another one. Entries were appended afterwards.",
);
/// A name that leaves the root.
pub static ESCAPE: Rule = rule(
    "container-escape",
    Severity::Error,
    "an entry leaves the root",
    "An absolute name, a `..` element, a hard link to such a name, or an entry below a symbolic link that points out of \
     the root: a reader that does not refuse it writes to the machine that unpacks. Nothing of `fitout` makes such an \
     entry; do not unpack this archive.",
);
/// An entry below something that is no directory.
pub static BELOW: Rule = rule(
    "container-below",
    Severity::Error,
    "an entry lies below something that is no directory",
    "Below a symbolic link of the archive: GNU tar replaces the link or follows it depending on its options, bsdtar \
     and Python refuse or follow. Below a file: it cannot be unpacked. Overlays resolve their paths inside the base, \
     so `/lib/systemd/system/x` is stored as `/usr/lib/systemd/system/x` where `/lib` is a link.",
);
/// Readers disagree.
pub static MISREAD: Rule = rule(
    "container-misread",
    Severity::Error,
    "tar readers understand an entry differently",
    "For instance a PAX size that is not the header's, a link with content, a global PAX header, a sparse file, a file \
     whose name ends in `/`: what one reader checks is then not what another one unpacks. `fitout build` writes each \
     entry in the one way that GNU tar, bsdtar, busybox and Python read alike. The archive was written by another \
     program.",
);
/// Not understood.
pub static MALFORMED: Rule = rule(
    "container-malformed",
    Severity::Error,
    "an entry of the archive cannot be understood",
    "A field is no number, an extension header is cut or has no member, a type is unknown, a hard link has nothing to \
     link to, or an attribute is stored in a form that would be lost. The archive was written or changed by another \
     program.",
);
/// A name that is hard to handle.
pub static NAME: Rule = rule(
    "container-name",
    Severity::Warning,
    "a name holds control characters or is not UTF-8",
    "Lists of names are read line by line (`tar -t`, `tar -T`, ledgers, logs), so a line end in a name makes two of it, \
     and an escape sequence may show another name on a terminal. Names that are not UTF-8 are refused by some file \
     systems and shown differently by each reader. Rename the file in the base or remove it by an overlay.",
);
/// A directory that is not listed.
pub static IMPLIED: Rule = rule(
    "container-directory",
    Severity::Error,
    "a directory is not in the archive, though something lies in it",
    "Readers make it with the owner and the umask of whoever unpacks, so the same image gets other modes on other \
     machines. `fitout build` lists every directory, the root as `./`. The archive was packed again with a list of \
     files.",
);
/// A device node.
pub static DEVICE: Rule = rule(
    "container-device",
    Severity::Error,
    "a device node does not belong into this image",
    "An unprivileged container cannot make device nodes: unpacking fails. In other containers only the usual nodes of \
     `/dev` (null, zero, full, random, urandom, tty, console, ptmx) are harmless: any other one gives the container a \
     device of its host. Outside of `/dev` a node opens a device to whoever may read the file.",
);
/// Content that was not looked at.
pub static UNREAD: Rule = rule(
    "container-unread",
    Severity::Warning,
    "a file is too large for the rules to read",
    "Rules read texts of at most 1 MiB each and 48 MiB together, so that verification needs little memory. This one is \
     larger and was not looked at, so a start of etcd in it would not be seen. Unit files, scripts and configuration \
     are not that large; move data elsewhere.",
);
/// No manifest.
pub static MANIFEST: Rule = rule(
    "container-manifest",
    Severity::Error,
    "the image does not say what it is",
    "Every image has `/usr/lib/fitout/image.json` with the node, its site, the birth record and the ledger. Without it \
     nothing can be compared with anything. This is a base, or an image of another tool; `fitout build` makes node \
     images.",
);
/// A manifest that cannot be read.
pub static UNREADABLE: Rule = rule(
    "container-manifest-unreadable",
    Severity::Error,
    "what the image says of itself cannot be read",
    "`/usr/lib/fitout/image.json` is no JSON of the known form: it was edited, or is damaged. Build the image again.",
);
/// A manifest from the future.
pub static SCHEMA_NEWER: Rule = rule(
    "container-manifest-newer",
    Severity::Error,
    "the image was built by a newer fitout",
    "The schema of `/usr/lib/fitout/image.json` is newer than what this program knows, so it cannot judge the image. \
     Verify with the version that built it, or a later one.",
);

/// What the reader saw of an image.
#[derive(Debug)]
pub struct Seen<'a> {
    /// The image.
    pub image: &'a Image,
    /// What is wrong with the archive.
    pub defects: &'a [Defect],
    /// Directories that are not listed.
    pub implied: &'a BTreeSet<TreePath>,
    /// Files that rules read and that were not kept.
    pub unread: &'a [Unread],
    /// Why the image has no manifest.
    pub manifest: Option<NoManifest>,
}

/// Largest id that the seven octal digits of a header hold (ustar); a larger one is in a PAX record or in base 256.
const LARGEST_OWNER: u32 = 0o777_7777;

/// Checks the container.
pub fn check(seen: &Seen, out: &mut Vec<Finding>) {
    let image = &seen.image.name;
    for defect in seen.defects {
        let subject = if defect.name.is_empty() { image.clone() } else { format!("{image}:{}", defect.name) };
        out.push(rule_of(&defect.kind).finding(subject, defect.to_string()));
    }
    for path in seen.image.tree.entries.keys() {
        let bytes = path.as_bytes();
        let why = match std::str::from_utf8(bytes) {
            Err(_) => "its name is not UTF-8",
            Ok(name) if name.chars().any(char::is_control) => "its name holds a control character",
            Ok(_) => continue,
        };
        out.push(NAME.finding(format!("{image}:{path}"), why));
    }
    for (path, entry) in &seen.image.tree.entries {
        let large = [("user", entry.uid), ("group", entry.gid)].into_iter().find(|(_, id)| *id > LARGEST_OWNER);
        if let Some((what, id)) = large {
            let message =
                format!("{what} {id} does not fit into a tar header: busybox tar reads it as 0, which is root");
            out.push(MISREAD.finding(format!("{image}:{path}"), message).help("give it an id of at most 2097151"));
        }
    }
    for path in seen.implied {
        let message = "something lies in this directory, and the archive does not list it";
        out.push(IMPLIED.finding(format!("{image}:{path}"), message));
    }
    for Unread { path, len, alone } in seen.unread {
        let message = match alone {
            true => format!("it has {len} bytes and was not looked at"),
            false => format!("it was not looked at: with its {len} bytes, what rules read is too much together"),
        };
        out.push(UNREAD.finding(format!("{image}:{path}"), message));
    }
    devices(seen.image, out);
    manifest(seen, out);
}

fn rule_of(kind: &DefectKind) -> &'static Rule {
    use DefectKind as D;
    match kind {
        D::TruncatedMember | D::Truncated | D::TruncatedStream | D::NotClosed => &TRUNCATED,
        D::Damaged(_) | D::Header => &DAMAGED,
        D::TrailingData | D::LoneZeroBlock | D::Stream(StreamError::Trailing(..)) => &TRAILING,
        D::Duplicate => &DUPLICATE,
        D::Absolute | D::Parent | D::HardlinkEscapes(..) | D::BelowSymlink { leaves: true, .. } => &ESCAPE,
        D::BelowSymlink { .. } | D::BelowFile(..) | D::ReplacesDirectory(_) => &BELOW,
        D::SlashedFile
        | D::SizeOfKind(..)
        | D::PaxSize { .. }
        | D::Sparse(_)
        | D::MixedNames
        | D::TwoExtensions(_)
        | D::Global(_)
        | D::GlobalAttribute(_) => &MISREAD,
        D::Name(_)
        | D::HardlinkMissing(_)
        | D::HardlinkTarget(..)
        | D::NoTarget
        | D::Pax(_)
        | D::Lost(_)
        | D::UnknownType(_)
        | D::Number(_)
        | D::Dangling
        | D::LargeExtension(_)
        | D::Stream(StreamError::Memory) => &MALFORMED,
    }
}

/// Nodes that every container has (OCI runtime specification, default devices; console is a terminal of its own).
const USUAL: &[(u32, u32)] = &[(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2)];

fn devices(image: &Image, out: &mut Vec<Finding>) {
    let target = image.manifest.as_ref().map_or(Target::Machine, |m| m.target);
    for (path, entry) in &image.tree.entries {
        let (major, minor, block) = match entry.kind {
            Kind::Character { major, minor } => (major, minor, false),
            Kind::Block { major, minor } => (major, minor, true),
            _ => continue,
        };
        let usual = !block && USUAL.contains(&(major, minor));
        let why = match target {
            _ if !path.as_bytes().starts_with(b"dev/") => "lies outside of `/dev`",
            Target::UnprivilegedContainer => "cannot be made in an unprivileged container",
            Target::Container if !usual => "would give the container a device of its host",
            _ => continue,
        };
        let message = format!("the {} {major}:{minor} {why}", entry.kind_name());
        out.push(DEVICE.finding(format!("{}:{path}", image.name), message).help("remove it from the base"));
    }
}

fn manifest(seen: &Seen, out: &mut Vec<Finding>) {
    let subject = format!("{}:/{MANIFEST_PATH}", seen.image.name);
    out.push(match &seen.manifest {
        None => return,
        Some(NoManifest::Missing) => MANIFEST.finding(subject, "the image has no manifest"),
        Some(NoManifest::Unreadable(why)) => UNREADABLE.finding(subject, format!("the manifest cannot be read: {why}")),
        Some(NoManifest::Newer(schema)) => {
            SCHEMA_NEWER.finding(subject, format!("the manifest has schema {schema}, this program knows {SCHEMA}"))
        }
    });
}
