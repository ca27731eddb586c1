//! What can be wrong with a declared base.

use std::path::Path;

use crate::finding::{Failure, Problem, Rule, Severity, Span};
use crate::tree::read::{Defect, ReadError};

/// Findings of one base that are shown; more are counted.
const SHOWN: usize = 20;

/// The family.
pub static RULES: &[&Rule] = &[&MISSING, &DIGEST, &NOT_A_TAR, &UNSOUND, &KIND, &OCI, &OCI_CHOICE];

/// The file or directory is not there.
pub static MISSING: Rule = Rule {
    code: "base-missing",
    family: "base",
    severity: Severity::Error,
    summary: "the declared base is not there",
    explanation: "\
`[base.NAME] tar`, `dir` or `oci` names a file or directory that does not exist or is of the other kind. Relative paths \
start at the directory of `mesh.toml`.",
};

/// Another digest.
pub static DIGEST: Rule = Rule {
    code: "base-digest",
    family: "base",
    severity: Severity::Error,
    summary: "the base's tar, or a blob of its image, has another SHA-256 than declared",
    explanation: "\
`sha256` pins the bytes of the file that `tar` names, compressed as it is. A difference means another version, a \
damaged download, or somebody's change. Where the new file is what you want, declare its digest; every image will \
then have another identity. In an OCI image layout each blob is named by its SHA-256, and the image's configuration lists \
that of each layer uncompressed: a difference there is damage or somebody's change.",
};

/// No OCI image layout that can be read.
pub static OCI: Rule = Rule {
    code: "base-oci",
    family: "base",
    severity: Severity::Error,
    summary: "the base is no OCI image layout that can be read",
    explanation: "\
`[base.NAME] oci` names a directory with `oci-layout`, `index.json` and `blobs/sha256/` (OCI image-spec, \
image-layout.md), as `skopeo copy SOURCE oci:DIR:TAG`, `podman save --format oci-dir`, `docker save` (unpacked) and \
`umoci` write it. Something of that is missing or not understood: a blob that its index leads to, a document that is \
no JSON, a manifest of something other than an image, an encrypted layer.",
};

/// None or several images fit.
pub static OCI_CHOICE: Rule = Rule {
    code: "base-oci-choice",
    family: "base",
    severity: Severity::Error,
    summary: "no image of the OCI layout is the declared one, or more than one is",
    explanation: "\
A layout may hold several images: by name (`ref`, the annotation org.opencontainers.image.ref.name), by platform, or \
both. The one for the build host's architecture is taken, or for `architecture`; where several are left, `ref` or \
`digest` says which. `digest` also pins it: a layout that was changed is then refused.",
};

/// No tar.
pub static NOT_A_TAR: Rule = Rule {
    code: "base-not-a-tar",
    family: "base",
    severity: Severity::Error,
    summary: "the base is no tar that can be read",
    explanation: "\
Plain tar, gzip, xz and zstd are read, told by their content and not by their name. Others are named and refused: \
recompress the file, for instance with `bzip2 -dc base.tar.bz2 | zstd > base.tar.zst`.",
};

/// A defect of the reader.
pub static UNSOUND: Rule = Rule {
    code: "base-unsound",
    family: "base",
    severity: Severity::Error,
    summary: "the base's tar is damaged, or tar readers disagree about it",
    explanation: "\
All images come from the base, so it is read strictly: nothing may be truncated or damaged, no name may come twice \
or leave the root (absolute, `..`, below a symbolic link), and nothing may be written in a way that tar readers \
understand differently (PAX size against header size, sparse files, content of links). Make the archive again from \
the unpacked root, for instance with `tar --numeric-owner --xattrs --format=posix -C ROOT -cf base.tar .`",
};

/// Something that a tar cannot hold.
pub static KIND: Rule = Rule {
    code: "base-kind",
    family: "base",
    severity: Severity::Error,
    summary: "the base's directory holds what no image can",
    explanation: "\
Sockets have no form in a tar and mean nothing without the process that listens. One in a base directory says that \
something runs in it or that it was copied from a running system.",
};

/// All defects as findings.
pub(super) fn check(defects: &[Defect], name: &str, span: &Span) -> Result<(), Problem> {
    let help = "make the archive again from the unpacked root; `fitout explain base-unsound` says how";
    unsound(defects.iter().map(ToString::to_string), name, span, help)
}

/// Everything that makes a base unsound, as findings; the last one says what to do.
pub(super) fn unsound(
    defects: impl ExactSizeIterator<Item = String>,
    name: &str,
    span: &Span,
    help: &str,
) -> Result<(), Problem> {
    let all = defects.len();
    let finding = |text: String| UNSOUND.finding(name, text).at(span);
    let mut findings: Vec<_> = defects.take(SHOWN).map(finding).collect();
    if all > SHOWN {
        findings.push(finding(format!("and {} more", all - SHOWN)));
    }
    if let Some(last) = findings.last_mut() {
        last.help = Some(help.into());
    }
    if findings.is_empty() { Ok(()) } else { Err(Problem::Findings(findings)) }
}

/// An input that gave nothing.
pub(super) fn unreadable(error: ReadError, path: &Path, name: &str, span: &Span) -> Problem {
    match error {
        ReadError::Io(error) => Failure::io("read", path, &error).into(),
        error => NOT_A_TAR.finding(name, format!("it is {error}")).at(span).into(),
    }
}

/// A path that cannot be opened: told as a finding when it is the declaration that is wrong.
pub(super) fn unopened(error: &std::io::Error, path: &Path, name: &str, span: &Span) -> Problem {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            MISSING.finding(name, format!("cannot open {}: {error}", path.display())).at(span).into()
        }
        _ => Failure::io("open", path, error).into(),
    }
}
