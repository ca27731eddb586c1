//! Same inputs, same bytes: whatever the umask, directory, locale, time zone, thread count or order of readdir.

use std::path::Path;

use crate::common::{Said, cache, copy, example, fitout, run, tool};

/// Copies a directory's files in reverse order, so that readdir gives another one.
fn copy_shuffled(from: &Path, to: &Path) {
    let mut entries: Vec<_> = walkdir::WalkDir::new(from).into_iter().map(|e| e.expect("readable")).collect();
    entries.sort_by_key(|e| std::cmp::Reverse(e.path().to_owned()));
    for entry in entries.iter().filter(|e| e.file_type().is_file()) {
        let target = to.join(entry.path().strip_prefix(from).expect("below"));
        std::fs::create_dir_all(target.parent().expect("parent")).expect("directory");
        std::fs::copy(entry.path(), target).expect("copy");
    }
}

#[test]
fn a_second_build_elsewhere_gives_the_same_bytes() {
    // An overlay and a profile of the user's own, so that directories are read from disk too.
    let first = example("three-site");
    let overlay = first.path().join("overlays/extra");
    for (name, text) in [("a", "1"), ("b", "2"), ("c/d", "3"), ("c/e", "4")] {
        let path = overlay.join("root/opt/extra").join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        std::fs::write(path, text).expect("file");
    }
    std::fs::write(overlay.join("overlay.toml"), "description = \"a few files\"\n").expect("manifest");
    let profile = "description = \"a voter with more\"\npart = \"voter\"\noverlays = [\"mesh\", \"etcd\", \"extra\"]\n";
    std::fs::create_dir_all(first.path().join("profiles")).expect("directory");
    std::fs::write(first.path().join("profiles/voter.toml"), profile).expect("profile");
    run(first.path(), &["pki", "init"]).exits(0);
    run(first.path(), &["build", "--jobs", "2"]).exits(0);

    // The other machine: its own directory, an empty cache that knows only the base, one thread.
    let second = tempfile::tempdir().expect("directory");
    let elsewhere = second.path().join("some where/else");
    copy_shuffled(first.path(), &elsewhere);
    std::fs::remove_dir_all(elsewhere.join("dist")).expect("no images there yet");
    let other_cache = second.path().join("cache");
    copy(&cache(), &other_cache);
    for part in walkdir::WalkDir::new(&other_cache).into_iter().filter_map(Result::ok) {
        if part.file_type().is_file() && part.path().components().any(|c| c.as_os_str() == "parts") {
            std::fs::remove_file(part.path()).expect("removed");
        }
    }
    let shell = "umask 077; exec \"$0\" build --jobs 1 --locked";
    let said: Said = std::process::Command::new("sh")
        .args(["-c", shell, env!("CARGO_BIN_EXE_fitout")])
        .current_dir(&elsewhere)
        .env("FITOUT_CACHE", &other_cache)
        .env("TZ", "Pacific/Kiritimati")
        .env("LC_ALL", "tr_TR.UTF-8")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("starts")
        .into();
    said.exits(0);

    for entry in std::fs::read_dir(first.path().join("dist")).expect("dist") {
        let name = entry.expect("entry").file_name();
        let (a, b) = (first.path().join("dist").join(&name), elsewhere.join("dist").join(&name));
        tool("cmp", &[a.to_str().expect("utf-8"), b.to_str().expect("utf-8")]);
    }
}

#[test]
fn a_build_again_changes_nothing() {
    let mesh = crate::common::built_copy();
    let index = std::fs::read(mesh.path().join("dist/index.json")).expect("index");
    let lock = std::fs::read(mesh.path().join("fitout.lock")).expect("lock");
    run(mesh.path(), &["build", "--locked"]).exits(0);
    assert_eq!(std::fs::read(mesh.path().join("dist/index.json")).expect("index"), index);
    assert_eq!(std::fs::read(mesh.path().join("fitout.lock")).expect("lock"), lock);
    // One node alone gives the same image as all together, and keeps the others in the index.
    std::fs::remove_file(mesh.path().join("dist").join(first_image(mesh.path()))).expect("removed");
    let node = first_image(mesh.path()).replace(".tar.gz", "");
    run(mesh.path(), &["build", "--node", &node]).exits(0);
    assert_eq!(std::fs::read(mesh.path().join("dist/index.json")).expect("index"), index);
}

/// File name of the first image of the index.
fn first_image(mesh: &Path) -> String {
    let index: serde_json::Value =
        serde_json::from_slice(&std::fs::read(mesh.join("dist/index.json")).expect("index")).expect("json");
    let images = index["images"].as_object().expect("images");
    images.values().next().expect("one")["file"].as_str().expect("file").to_owned()
}

#[test]
fn epoch_is_obeyed() {
    let mesh = crate::common::built_copy();
    let said: Said =
        fitout(mesh.path()).arg("build").env("SOURCE_DATE_EPOCH", "1000000000").output().expect("starts").into();
    said.exits(0);
    let image = mesh.path().join("dist").join(first_image(mesh.path()));
    let script = "import sys,tarfile; print(max(m.mtime for m in tarfile.open(sys.argv[1])))";
    assert_eq!(tool("python3", &["-c", script, image.to_str().expect("utf-8")]).trim(), "1000000000");
}
