//! Tars that other programs write are read as they are meant: a base may come from any of them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use fitout::tree::read::{Rest, Scanned, decompress, read_tar};
use fitout::tree::{Kind, TreePath};

use crate::common::tool;

/// A root with what tars are known to get wrong.
fn root(at: &Path) {
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(150));
    fs::create_dir_all(at.join("d".repeat(120))).unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    fs::write(at.join(&long), "long").unwrap();
    fs::write(at.join("größe"), vec![b'x'; 1000]).unwrap();
    fs::write(at.join("su"), "su").unwrap();
    fs::set_permissions(at.join("su"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::hard_link(at.join("su"), at.join("sudo")).unwrap();
    symlink("t".repeat(180), at.join("long-link")).unwrap();
    symlink("su", at.join("link")).unwrap();
}

fn read(tar: &Path) -> Scanned {
    let (_, plain) = decompress(fs::File::open(tar).unwrap()).unwrap();
    read_tar(plain, &|_, _| true, Rest::Dropped).unwrap()
}

/// Path, kind, mode, owner, time, content or target, and whether it has other names.
fn listing(scanned: &Scanned) -> Vec<String> {
    let line = |path: &TreePath| {
        let e = scanned.tree.get(path).unwrap();
        let content = match &e.kind {
            Kind::File(data) => data.sha256.hex(),
            Kind::Symlink(target) => String::from_utf8_lossy(target).into_owned(),
            _ => String::new(),
        };
        // busybox does not store the time of links and directories as others do; files' times are what matters.
        let time = if matches!(e.kind, Kind::File(_)) { e.mtime } else { 0 };
        let (kind, linked) = (e.kind_name(), e.links.is_some());
        format!("{path} {kind} {:04o} {}:{} {time} {content} {linked}", e.mode, e.uid, e.gid)
    };
    scanned.tree.entries.keys().map(line).collect()
}

#[test]
fn every_writer_is_read_alike() {
    let desk = tempfile::tempdir().unwrap();
    let source = desk.path().join("root");
    fs::create_dir(&source).unwrap();
    root(&source);
    let from = source.to_str().unwrap();
    let out = |name: &str| desk.path().join(name);
    let gnu = |format: &str| {
        let tar = out(&format!("gnu-{format}.tar"));
        tool("tar", &["--numeric-owner", &format!("--format={format}"), "-C", from, "-cf", tar.to_str().unwrap(), "."]);
        tar
    };
    let bsd = |format: &str| {
        let tar = out(&format!("bsd-{format}.tar"));
        tool("bsdtar", &["--format", format, "-C", from, "-cf", tar.to_str().unwrap(), "."]);
        tar
    };
    let busybox = out("busybox.tar");
    tool("busybox", &["tar", "-C", from, "-cf", busybox.to_str().unwrap(), "."]);
    let python = |format: &str| {
        let tar = out(&format!("python-{format}.tar.gz"));
        let script = format!(
            "import sys, tarfile\nwith tarfile.open(sys.argv[1], 'w:gz', format=tarfile.{format}_FORMAT) as t: \
             t.add(sys.argv[2], '.')"
        );
        tool("python3", &["-c", &script, tar.to_str().unwrap(), from]);
        tar
    };
    let tars =
        [gnu("gnu"), gnu("oldgnu"), gnu("posix"), bsd("pax"), bsd("gnutar"), busybox, python("PAX"), python("GNU")];
    let want = listing(&read(&tars[0]));
    assert_eq!(want.len(), 9, "{want:#?}");
    let owner = fs::metadata(source.join("su")).unwrap();
    let su = format!("/su file 4755 {}:{} {} ", owner.uid(), owner.gid(), owner.mtime());
    assert!(want.iter().any(|line| line.starts_with(&su) && line.ends_with("true")), "{su}: {want:#?}");
    for tar in &tars {
        let scanned = read(tar);
        let defects: Vec<String> = scanned.defects.iter().map(ToString::to_string).collect();
        assert_eq!(defects, Vec::<String>::new(), "{}", tar.display());
        assert_eq!(listing(&scanned), want, "{}", tar.display());
    }
}

#[test]
fn sparse_files_are_refused_in_every_form() {
    let desk = tempfile::tempdir().unwrap();
    let disk = desk.path().join("disk");
    let file = fs::File::create(&disk).unwrap();
    file.set_len(4 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"data", 2 << 20).unwrap();
    let forms: [&[&str]; 4] = [
        &["--format=gnu"],
        &["--format=posix", "--sparse-version=0.0"],
        &["--format=posix", "--sparse-version=0.1"],
        &["--format=posix", "--sparse-version=1.0"],
    ];
    for form in forms {
        let tar = desk.path().join("sparse.tar");
        let from = desk.path().to_str().unwrap();
        let mut arguments = vec!["--sparse", "-C", from, "-cf", tar.to_str().unwrap()];
        arguments.extend(form);
        arguments.push("disk");
        tool("tar", &arguments);
        let scanned = read(&tar);
        let defects: Vec<String> = scanned.defects.iter().map(ToString::to_string).collect();
        assert_eq!(defects.len(), 1, "{form:?}: {defects:?}");
        assert!(defects[0].contains("stored as a sparse file"), "{form:?}: {defects:?}");
    }
}

#[test]
fn attributes_of_gnu_tar_keep_their_names_and_bytes() {
    let desk = tempfile::tempdir().unwrap();
    let file = desk.path().join("f");
    fs::write(&file, "x").unwrap();
    let value = b"\x01\0\n=%\xff";
    for name in ["user.plain", "user.a=b%c"] {
        rustix::fs::setxattr(&file, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    }
    let tar = desk.path().join("x.tar");
    let from = desk.path().to_str().unwrap();
    tool("tar", &["--xattrs", "--format=posix", "-C", from, "-cf", tar.to_str().unwrap(), "f"]);
    let scanned = read(&tar);
    let entry = scanned.tree.get(&TreePath::parse("f").unwrap()).unwrap();
    for name in ["user.plain", "user.a=b%c"] {
        assert_eq!(entry.xattrs.get(name.as_bytes()).map(Vec::as_slice), Some(&value[..]), "{name}");
    }
}
