//! `examples/loopback` as a user without any privilege runs it, in a network of its own.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Said, base_tar, built, copy, project, tool};

/// What a user has: the program, the example, a base, and a directory to write to. All of it is nobody's.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        std::fs::copy(env!("CARGO_BIN_EXE_fitout"), desk.at("fitout")).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_mesh-agent"), desk.at("mesh-agent")).unwrap();
        copy(&project().join("examples/loopback"), &desk.at("loopback"));
        std::fs::copy(base_tar(built()), desk.at("base.tar")).unwrap();
        std::fs::create_dir(desk.at("tmp")).unwrap();
        tool("chown", &["-R", "65534:65534", desk.0.path().to_str().unwrap()]);
        std::fs::set_permissions(desk.0.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        desk
    }
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    /// The script, as user 65534 without groups and capabilities, with a loopback interface of its own.
    fn script(&self, arguments: &[&Path]) -> Command {
        let inner = "ip link set lo up && exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
                     --inh-caps=-all --bounding-set=-all \"$@\"";
        // A shell cannot trap what was ignored when it began, as SIGINT is in whatever a script runs in its background.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", "unshare", "--net", "sh", "-c", inner, "sh", "sh"])
            .arg(self.at("loopback/run"))
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .env("FITOUT", self.at("fitout"))
            .env("FITOUT_CACHE", self.at("cache"))
            .env("TMPDIR", self.at("tmp"))
            .stdin(Stdio::null());
        command
    }
    /// Fails when a process of the script is left, or a file of it.
    #[track_caller]
    fn left_nothing(&self) {
        let tmp = self.at("tmp").to_str().unwrap().to_owned();
        let start = Instant::now();
        loop {
            let mine = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
                std::fs::read(entry.path().join("cmdline")).is_ok_and(|c| String::from_utf8_lossy(&c).contains(&tmp))
            });
            let left = mine.count();
            if left == 0 {
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{left} processes are left");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0, "files are left in {tmp}");
    }
}

#[test]
fn build_verify_start_and_check_without_root() {
    let desk = Desk::new();
    let said: Said = desk.script(&[&desk.at("base.tar")]).output().unwrap().into();
    let said = said.exits(0).does_not_say("error[").does_not_say("error:");
    for text in ["as declared", "3. three registries", "127.77.0.3", "+ user node:one with the role", "6. stopped"] {
        assert!(said.stdout.contains(text), "`{text}`: {}", said.all());
    }
    desk.left_nothing();

    // What cannot be is said before anything is made: there is no base, and nobody has no subordinate ids.
    let missing: Said = desk.script(&[&desk.at("none.tar")]).output().unwrap().into();
    missing.exits(3).says("there is no file");
    let said: Said = desk.script(&[]).output().unwrap().into();
    said.exits(3).says("give a base that was made elsewhere");
    desk.left_nothing();

    // ^C goes to the whole group of the terminal's foreground; the registries end by it too.
    let mut child = desk
        .script(&[&desk.at("base.tar")])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = lines.by_ref().any(|line| line.unwrap().contains("three: process"));
    assert!(started, "the registries were not started");
    tool("kill", &["-INT", "--", &format!("-{}", child.id())]);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    desk.left_nothing();
}
