//! Readers that we did not write read an image whole, and agree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{built, tool};

/// `mode uid/gid size name -> target`, the size of links left out, hard links as `-`.
fn line(mode: &str, owner: &str, size: &str, name: &str) -> String {
    let mode = mode.replacen('h', "-", usize::from(mode.starts_with('h')));
    let name = name.replace(" link to ", " -> ");
    let size = if name.contains(" -> ") { "" } else { size };
    format!("{mode} {owner} {} {name}", size.replace(',', ":"))
}

/// Splits off `count` white-space separated fields; the rest is the name.
fn fields(text: &str, count: usize) -> (Vec<&str>, &str) {
    let mut rest = text;
    let mut fields = Vec::new();
    for _ in 0..count {
        rest = rest.trim_start();
        let end = rest.find(' ').unwrap_or(rest.len());
        fields.push(&rest[..end]);
        rest = &rest[end..];
    }
    (fields, rest.strip_prefix(' ').unwrap_or(rest))
}

fn slash_style(listing: &str, count: usize, pick: impl Fn(&[&str]) -> (String, String, String)) -> Vec<String> {
    listing
        .lines()
        .map(|text| {
            let (fields, name) = fields(text, count);
            let (mode, owner, size) = pick(&fields);
            line(&mode, &owner, &size, name)
        })
        .collect()
}

fn gnu(image: &str) -> Vec<String> {
    let listing = tool("tar", &["--numeric-owner", "--quoting-style=literal", "-tvzf", image]);
    slash_style(&listing, 5, |f| (f[0].into(), f[1].into(), f[2].into()))
}

fn busybox(image: &str) -> Vec<String> {
    let listing = tool("busybox", &["tar", "-tvzf", image]);
    slash_style(&listing, 5, |f| (f[0].into(), f[1].into(), f[2].into()))
}

fn bsd(image: &str) -> Vec<String> {
    let listing = tool("bsdtar", &["--numeric-owner", "-tvzf", image]);
    slash_style(&listing, 8, |f| (f[0].into(), format!("{}/{}", f[2], f[3]), f[4].into()))
}

fn python(image: &str, mode: &str) -> Vec<String> {
    let script = r#"
import stat, sys, tarfile
kinds = {tarfile.DIRTYPE: stat.S_IFDIR, tarfile.SYMTYPE: stat.S_IFLNK, tarfile.CHRTYPE: stat.S_IFCHR,
         tarfile.BLKTYPE: stat.S_IFBLK, tarfile.FIFOTYPE: stat.S_IFIFO}
for m in tarfile.open(sys.argv[1], sys.argv[2]):
    kind = kinds.get(m.type, stat.S_IFREG)
    size = f"{m.devmajor},{m.devminor}" if m.ischr() or m.isblk() else m.size
    name = m.name + ("/" if m.isdir() else "") + (f" -> {m.linkname}" if m.issym() or m.islnk() else "")
    print(stat.filemode(kind | m.mode), f"{m.uid}/{m.gid}", size, name)
"#;
    let listing = tool("python3", &["-c", script, image, mode]);
    slash_style(&listing, 3, |f| (f[0].into(), f[1].into(), f[2].into()))
}

/// `crw-rw-rw- 0/0 1:3 ./dev/null` with 0 in place of `1:3`.
fn without_device_numbers(line: &str) -> String {
    let (fields, name) = fields(line, 3);
    let size = if line.starts_with(['b', 'c']) { "0" } else { fields[2] };
    if fields[2].starts_with("./") { line.to_owned() } else { format!("{} {} {size} {name}", fields[0], fields[1]) }
}

fn images() -> Vec<PathBuf> {
    let mut images: Vec<PathBuf> = std::fs::read_dir(built().join("dist"))
        .expect("dist")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "gz"))
        .collect();
    images.sort();
    images
}

#[track_caller]
fn agree(reader: &str, mut got: Vec<String>, want: &[String]) {
    let mut want = want.to_vec();
    got.sort();
    want.sort();
    let (a, b): (BTreeSet<_>, BTreeSet<_>) = (got.iter().collect(), want.iter().collect());
    let only: Vec<_> = a.symmetric_difference(&b).take(10).collect();
    assert!(got == want, "{reader} reads {} entries, GNU tar {}; they differ in {only:#?}", got.len(), want.len());
}

#[test]
fn every_reader_reads_an_image_whole_and_the_same() {
    let images = images();
    assert_eq!(images.len(), 3);
    for image in &images {
        let image = image.to_str().expect("utf-8");
        tool("gzip", &["-t", image]);
        let want = gnu(image);
        assert!(want.len() > 5000, "GNU tar lists {} entries", want.len());
        let names: BTreeSet<_> = want.iter().collect();
        assert_eq!(names.len(), want.len(), "a name is there twice");
        agree("bsdtar", bsd(image), &want);
        // busybox lists no device numbers.
        let numberless: Vec<_> = want.iter().map(|line| without_device_numbers(line)).collect();
        agree("busybox tar", busybox(image), &numberless);
        agree("tarfile r:gz", python(image, "r:gz"), &want);
        agree("tarfile r|gz", python(image, "r|gz"), &want);
    }
}

#[test]
fn the_size_that_gzip_lists_is_the_tars() {
    let image = images().remove(0);
    let listed = tool("gzip", &["-l", image.to_str().expect("utf-8")]);
    let size: u64 =
        listed.lines().nth(1).and_then(|l| l.split_whitespace().nth(1)).expect("size").parse().expect("number");
    let counted = tool("sh", &["-c", "gzip -dc \"$0\" | wc -c", image.to_str().expect("utf-8")]);
    assert_eq!(counted.trim().parse::<u64>().expect("number"), size);
}

#[test]
fn images_that_hold_keys_are_for_their_owner_only() {
    use std::os::unix::fs::MetadataExt;
    for image in images() {
        assert_eq!(Path::new(&image).metadata().expect("metadata").mode() & 0o777, 0o600, "{}", image.display());
    }
}
