//! Bad input: a clear error, exit 2 or 3, nothing half-written, nothing lost.

use std::path::Path;

use crate::common::{Said, built_copy, example, fitout, run, tool};

/// A mesh whose base is the tar at `base.tar`, made by a Python program that writes it.
fn mesh_with_tar(script: &str) -> tempfile::TempDir {
    let mesh = example("three-site");
    let prelude = r#"
import gzip, io, sys, tarfile
out = sys.argv[1]
def member(t, name, data=b"", **kw):
    m = tarfile.TarInfo(name)
    m.size = len(data)
    for k, v in kw.items(): setattr(m, k, v)
    t.addfile(m, io.BytesIO(data))
"#;
    let tar = mesh.path().join("base.tar");
    tool("python3", &["-c", &format!("{prelude}\n{script}"), tar.to_str().expect("utf-8")]);
    use_tar(mesh.path());
    mesh
}

/// Makes `mesh.toml` use `base.tar` with its true digest.
fn use_tar(mesh: &Path) {
    let digest = tool("sha256sum", &[mesh.join("base.tar").to_str().expect("utf-8")]);
    let digest = digest.split_whitespace().next().expect("digest");
    set_base(mesh, &format!("tar = \"base.tar\"\nsha256 = \"{digest}\""));
}

/// Replaces the lines of `[base.common]`.
fn set_base(mesh: &Path, lines: &str) {
    let path = mesh.join("mesh.toml");
    let text = std::fs::read_to_string(&path).expect("mesh.toml");
    let start = text.find("[base.common]").expect("base") + "[base.common]\n".len();
    let end = text[start..].find("\n[").map_or(text.len(), |e| start + e);
    std::fs::write(&path, format!("{}{lines}\n{}", &text[..start], &text[end..])).expect("written");
}

#[track_caller]
fn nothing_made(mesh: &Path) {
    let dist = mesh.join("dist");
    let names: Vec<_> = match std::fs::read_dir(&dist) {
        Ok(entries) => entries.map(|e| e.expect("entry").file_name().into_string().expect("utf-8")).collect(),
        Err(_) => Vec::new(),
    };
    assert!(names.iter().all(|n| n.starts_with('.')), "{names:?}");
}

#[test]
fn base_tars_that_are_refused() {
    let cases: &[(&str, &str, &str)] = &[
        ("not a tar", "open(out, 'wb').write(b'<html>no</html>' * 100)", "not a tar"),
        ("parent", "t = tarfile.open(out, 'w'); member(t, './etc/../../x', b'x'); t.close()", "`..`"),
        ("absolute", "t = tarfile.open(out, 'w'); member(t, '/etc/x', b'x'); t.close()", "absolute"),
        (
            "below a link that leaves the root",
            "t = tarfile.open(out, 'w'); member(t, './out', type=tarfile.SYMTYPE, linkname='../../..'); \
             member(t, './out/x', b'x'); t.close()",
            "/out",
        ),
        (
            "duplicates",
            "t = tarfile.open(out, 'w'); member(t, './etc/x', b'1'); member(t, 'etc/x', b'2'); t.close()",
            "`etc/x` is there twice",
        ),
        (
            "PAX size that disagrees",
            "t = tarfile.open(out, 'w', format=tarfile.PAX_FORMAT); \
             member(t, './x', b'12345', pax_headers={'size': '3'}); t.close()",
            "size",
        ),
        (
            "PAX sparse",
            "t = tarfile.open(out, 'w', format=tarfile.PAX_FORMAT); \
             member(t, './x', b'12345', pax_headers={'GNU.sparse.major': '1', 'GNU.sparse.minor': '0'}); t.close()",
            "sparse",
        ),
        (
            "truncated",
            "t = tarfile.open(out, 'w'); member(t, './x', b'y' * 100000); t.close(); \
             d = open(out, 'rb').read(); open(out, 'wb').write(d[:50000])",
            "truncated",
        ),
        (
            "truncated gzip",
            "b = io.BytesIO(); t = tarfile.open(fileobj=b, mode='w'); \
             member(t, './x', bytes(i * 7 % 251 for i in range(100000))); t.close(); \
             d = gzip.compress(b.getvalue()); open(out, 'wb').write(d[:len(d) // 2])",
            "truncated",
        ),
        (
            "flipped byte in the compressed stream",
            "import random; random.seed(1); \
             b = io.BytesIO(); t = tarfile.open(fileobj=b, mode='w'); \
             member(t, './x', random.randbytes(100000)); t.close(); \
             d = bytearray(gzip.compress(b.getvalue())); d[50000] ^= 1; open(out, 'wb').write(d)",
            "damaged",
        ),
        ("without etcd", "t = tarfile.open(out, 'w'); member(t, './etc/x', b'1'); t.close()", "etcd-server"),
    ];
    for (name, script, says) in cases {
        let mesh = mesh_with_tar(script);
        run(mesh.path(), &["pki", "init"]).exits(0);
        let said = run(mesh.path(), &["build"]);
        assert!(matches!(said.code, Some(2 | 3)), "{name}: {}", said.all());
        assert!(
            format!("{}{}", said.stdout, said.stderr).contains(says),
            "{name}: `{says}` is not said\n{}",
            said.all()
        );
        assert!(!said.stderr.contains("panicked"), "{name}: {}", said.all());
        nothing_made(mesh.path());
    }
}

#[test]
fn base_with_another_digest_is_refused() {
    let mesh = mesh_with_tar("t = tarfile.open(out, 'w'); member(t, './etc/x', b'1'); t.close()");
    let wrong = "0".repeat(64);
    set_base(mesh.path(), &format!("tar = \"base.tar\"\nsha256 = \"{wrong}\""));
    let said = run(mesh.path(), &["plan"]).says(&wrong);
    assert!(matches!(said.code, Some(2 | 3)), "{}", said.all());
}

#[test]
fn build_without_authority_names_the_way_out() {
    let mesh = example("three-site");
    run(mesh.path(), &["build"]).exits(2).says("fitout pki init");
    nothing_made(mesh.path());
}

/// What is asked for and is nowhere is told with what there is.
#[test]
fn names_and_paths_that_are_nowhere() {
    let mesh = built_copy();
    run(mesh.path(), &["build", "--node", "lis2"]).exits(2).says("error[unknown-node]").says("lis1");
    run(mesh.path(), &["why", "lis1", "/etc/nowhere"]).exits(2).says("error[path-unknown]");
    let other = example("single");
    let image = mesh.path().join("dist/lis1.tar.gz");
    run(other.path(), &["pki", "init"]).exits(0);
    let said = run(other.path(), &["verify", "-C", ".", image.to_str().expect("utf-8")]);
    assert!(matches!(said.code, Some(1 | 2)), "{}", said.all());
    said.says("error[declared-other-mesh]");
}

#[test]
fn template_with_an_undefined_variable() {
    let mesh = built_copy();
    user_overlay(mesh.path(), "root/etc/x.conf.tera", "first\nname = {{ no_such_thing }}\n", "");
    run(mesh.path(), &["plan"]).exits(2).says("no_such_thing").says("x.conf.tera:2");
}

#[test]
fn overlay_that_turns_lib_into_a_directory() {
    let mesh = built_copy();
    user_overlay(mesh.path(), "root/etc/x", "x", "[path.\"/lib\"]\ndirectory = true\n");
    run(mesh.path(), &["plan"]).exits(2).says("/lib").says("usr/lib");
}

#[test]
fn locked_refuses_a_change() {
    let mesh = built_copy();
    let lock = std::fs::read_to_string(mesh.path().join("fitout.lock")).expect("lock");
    let text = std::fs::read_to_string(mesh.path().join("mesh.toml")).expect("mesh.toml");
    // Another package is another base.
    let changed = text.replacen("packages = [", "packages = [\"less\", ", 1);
    assert_ne!(changed, text, "examples/three-site names packages");
    std::fs::write(mesh.path().join("mesh.toml"), changed).expect("written");
    run(mesh.path(), &["build", "--locked"]).exits(2).says("fitout.lock");
    assert_eq!(std::fs::read_to_string(mesh.path().join("fitout.lock")).expect("lock"), lock);
}

#[test]
fn locked_never_issues_a_certificate() {
    let mesh = example("three-site");
    std::fs::copy(crate::common::built().join("fitout.lock"), mesh.path().join("fitout.lock")).expect("lock");
    run(mesh.path(), &["pki", "init"]).exits(0);
    run(mesh.path(), &["build", "--locked"]).exits(2).says("--locked");
    nothing_made(mesh.path());
}

#[test]
fn key_that_does_not_match_its_certificate() {
    let mesh = built_copy();
    let nodes = mesh.path().join("pki/nodes");
    let mut keys: Vec<_> = walkdir::WalkDir::new(&nodes)
        .into_iter()
        .filter_map(Result::ok)
        .map(|e| e.into_path())
        .filter(|p| p.ends_with("peer.key"))
        .collect();
    keys.sort();
    std::fs::copy(&keys[1], &keys[0]).expect("swapped");
    let said = run(mesh.path(), &["build"]).says("peer.key");
    assert!(matches!(said.code, Some(2 | 3)), "{}", said.all());
}

#[test]
fn one_bad_node_does_not_stop_the_others() {
    let mesh = built_copy();
    let before = std::fs::read_dir(mesh.path().join("dist")).expect("dist").count();
    let nodes = mesh.path().join("pki/nodes");
    let mut names: Vec<_> = std::fs::read_dir(&nodes).expect("nodes").map(|e| e.expect("entry").file_name()).collect();
    names.sort();
    let bad = names[0].to_str().expect("utf-8");
    std::fs::write(nodes.join(bad).join("client.key"), "not a key\n").expect("written");
    std::fs::remove_dir_all(mesh.path().join("dist")).expect("removed");
    let said = run(mesh.path(), &["build"]).says(bad);
    assert!(matches!(said.code, Some(2 | 3)), "{}", said.all());
    assert_eq!(std::fs::read_dir(mesh.path().join("dist")).expect("dist").count(), before - 1, "{}", said.all());
}

#[test]
fn disk_full_leaves_no_image() {
    // A file size limit stands for the full disk: write(2) fails with EFBIG instead of ENOSPC.
    let mesh = built_copy();
    std::fs::remove_dir_all(mesh.path().join("dist")).expect("removed");
    let script = "trap '' XFSZ; ulimit -f 20000; exec \"$0\" build";
    let said: Said = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_fitout")])
        .current_dir(mesh.path())
        .env("FITOUT_CACHE", crate::common::cache())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("starts")
        .into();
    let said = said.exits(3);
    assert!(said.stderr.contains("dist") && !said.stderr.contains("panicked"), "{}", said.all());
    nothing_made(mesh.path());
}

#[test]
fn interrupt_leaves_no_image() {
    let mesh = built_copy();
    std::fs::remove_dir_all(mesh.path().join("dist")).expect("removed");
    // An own cache without compressed parts makes the build long enough to interrupt.
    let mut child = fitout(mesh.path()).args(["build", "--out", "dist"]).spawn().expect("starts");
    std::thread::sleep(std::time::Duration::from_millis(300));
    tool("kill", &["-INT", &child.id().to_string()]);
    let status = child.wait().expect("ended");
    if !status.success() {
        // What was finished before is whole; nothing else is there under a final name.
        for entry in std::fs::read_dir(mesh.path().join("dist")).into_iter().flatten().filter_map(Result::ok) {
            if entry.path().extension().is_some_and(|e| e == "gz") {
                tool("gzip", &["-t", entry.path().to_str().expect("utf-8")]);
            }
        }
    }
    run(mesh.path(), &["build"]).exits(0);
    let leftovers: Vec<_> = std::fs::read_dir(mesh.path().join("dist"))
        .expect("dist")
        .map(|e| e.expect("entry").file_name().into_string().expect("utf-8"))
        .filter(|n| n.starts_with('.'))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
}

#[test]
fn two_builds_at_once_on_one_store() {
    let mesh = example("three-site");
    std::fs::copy(crate::common::built().join("fitout.lock"), mesh.path().join("fitout.lock")).expect("lock");
    run(mesh.path(), &["pki", "init"]).exits(0);
    let start = |out: &str| fitout(mesh.path()).args(["build", "--out", out]).spawn().expect("starts");
    let (mut a, mut b) = (start("dist"), start("other"));
    assert!(a.wait().expect("ended").success());
    assert!(b.wait().expect("ended").success());
    // One issued, the other took the same certificates.
    for entry in std::fs::read_dir(mesh.path().join("dist")).expect("dist").map(|e| e.expect("entry").path()) {
        let other = mesh.path().join("other").join(entry.file_name().expect("name"));
        tool("cmp", &[entry.to_str().expect("utf-8"), other.to_str().expect("utf-8")]);
    }
}

/// Gives the mesh an overlay `mine` with one file, and a voter profile that uses it.
fn user_overlay(mesh: &Path, file: &str, text: &str, manifest: &str) {
    let overlay = mesh.join("overlays/mine");
    let path = overlay.join(file);
    std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
    std::fs::write(path, text).expect("file");
    std::fs::write(overlay.join("overlay.toml"), format!("description = \"mine\"\n{manifest}")).expect("manifest");
    std::fs::create_dir_all(mesh.join("profiles")).expect("directory");
    let profile = "description = \"mine\"\npart = \"voter\"\noverlays = [\"mesh\", \"etcd\", \"mine\"]\n";
    std::fs::write(mesh.join("profiles/voter.toml"), profile).expect("profile");
}
