//! Declarations that lie on a disk: links, names that no overlay can hold, pipes.

use super::super::testing::QUORUM;
use super::super::*;

/// What a checkout or a user's directory holds: links are content below `root/`, modes never count.
#[test]
fn a_users_directory_is_read_with_its_links() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(MESH_FILE, &QUORUM.replace("profile = \"client\"", "profile = \"app\""));
    write("profiles/app.toml", "description = 'a'\npart = 'client'\noverlays = ['mesh', 'app']");
    write("overlays/app/overlay.toml", "description = 'app'");
    write("overlays/app/README.md", "about");
    write("overlays/app/root/etc/app.conf", "x");
    std::os::unix::fs::symlink("/nowhere", directory.path().join("overlays/app/root/etc/link")).unwrap();
    std::fs::create_dir_all(directory.path().join("overlays/app/root/srv/empty")).unwrap();

    let mesh = load(directory.path()).unwrap().mesh;
    let shown: Vec<String> = mesh.overlays["app"]
        .files
        .iter()
        .map(|(path, file)| match &file.content {
            LibraryContent::File(bytes) => format!("{path}: {} bytes", bytes.len()),
            LibraryContent::Link(target) => format!("{path} -> {target}"),
            LibraryContent::Directory => format!("{path}/"),
        })
        .collect();
    assert_eq!(shown, ["etc/app.conf: 1 bytes", "etc/link -> /nowhere", "srv/empty/"]);
}

/// What no overlay can hold is told with all else, and nothing of it is taken.
#[test]
fn what_no_overlay_can_hold_is_told() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(MESH_FILE), QUORUM.replace("name = \"harbour\"", "name = 1")).unwrap();
    let app = directory.path().join("overlays/app");
    std::fs::create_dir_all(app.join("root/etc")).unwrap();
    std::fs::write(app.join("overlay.toml"), "description = 'app'").unwrap();
    let odd = |name: &[u8]| app.join("root/etc").join(std::ffi::OsStr::from_bytes(name));
    std::fs::write(odd(b"x\xff"), "x").unwrap();
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(b"y\xff"), odd(b"link")).unwrap();
    std::os::unix::net::UnixListener::bind(odd(b"socket")).unwrap();
    let linked = directory.path().join("overlays/linked");
    std::fs::create_dir(&linked).unwrap();
    std::fs::write(linked.join("overlay.toml"), "description = 'linked'").unwrap();
    std::os::unix::fs::symlink("/etc", linked.join("root")).unwrap();

    let Err(Problem::Findings(findings)) = load(directory.path()) else { panic!("no findings") };
    let said: Vec<String> = findings.iter().map(|f| format!("{} {}", f.code, f.message)).collect();
    for want in [
        "wrong-type",
        "overlay-layout has a name that is not UTF-8",
        "overlay-layout is a link with a target that is not UTF-8",
        "overlay-layout is neither a file, nor a directory, nor a symbolic link",
        "overlay-layout `root` is no directory",
    ] {
        assert_eq!(said.iter().filter(|s| s.starts_with(want)).count(), 1, "{want}: {said:#?}");
    }
}

/// A pipe without a writer would be waited for without end.
#[test]
fn a_named_pipe_is_no_declaration() {
    let directory = tempfile::tempdir().unwrap();
    let mesh = directory.path().join(MESH_FILE);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &mesh, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let place = directory.path().to_owned();
    std::thread::spawn(move || sender.send(load(&place).map(|_| ())));
    let said = receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for the other end");
    let Err(Problem::Failure(failure)) = said else { panic!("{said:?}") };
    assert!(failure.message.ends_with("mesh.toml: it is a named pipe, not a regular file"), "{failure}");
}
