//! The gate boots the images of `examples/three-site`, and leaves nothing behind however it ends.
//!
//! These tests need what the gate needs: root, systemd-nspawn, and a kernel that gives namespaces.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::common::{Said, built, built_copy, fitout, tool};

/// One gate at a time: each compares the host before and after.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All of the host that a gate could leave something in; what other tests do meanwhile is left out.
fn host() -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |what: &str, text: String| lines.extend(text.lines().map(|line| format!("{what}: {line}")));
    add(
        "link",
        tool("ip", &["-brief", "link"]).lines().map(|l| l.split(' ').next().unwrap_or("").to_owned() + "\n").collect(),
    );
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    add("mount", mounts.lines().filter(|l| !l.contains("mmdebstrap")).map(|l| format!("{l}\n")).collect());
    add("run", tool("find", &["/run", "-xdev"]));
    add("cgroup", tool("find", &["/sys/fs/cgroup", "-type", "d", "-name", "fitout-gate-*"]));
    add("machines", processes());
    let ours = |name: &str| ["nspawn", "fitout"].iter().any(|word| name.contains(word));
    let temporary = std::fs::read_dir(std::env::temp_dir()).expect("temporary directory");
    let names = temporary.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    add("tmp", names.filter(|n| ours(n)).map(|n| n + "\n").collect());
    lines.sort();
    lines
}

/// In the environment of every process that these tests' gates start.
const MARK: (&str, &str) = ("FITOUT_TEST_GATE", concat!("the gate of ", env!("CARGO_MANIFEST_DIR")));

/// Processes of a gate, by their environment, or of its machines, by their control group.
fn processes() -> String {
    let mark = format!("{}={}", MARK.0, MARK.1);
    let mut found = String::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        // A process may end while it is looked at.
        let read = |name| std::fs::read(entry.path().join(name)).map(|b| String::from_utf8_lossy(&b).into_owned());
        let (Ok(environment), Ok(cgroup)) = (read("environ"), read("cgroup")) else { continue };
        if environment.split('\0').any(|v| v == mark) || cgroup.contains("fitout-gate-") {
            found.push_str(&read("cmdline").unwrap_or_default().replace('\0', " "));
            found.push('\n');
        }
    }
    found
}

/// Waits until the host is as before; the dead take a moment to be gone.
#[track_caller]
fn left_nothing(before: &[String]) {
    let start = Instant::now();
    loop {
        let now = host();
        let more: Vec<_> = now.iter().filter(|line| !before.contains(line)).collect();
        let less: Vec<_> = before.iter().filter(|line| !now.contains(line)).collect();
        if more.is_empty() && less.is_empty() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "left behind: {more:#?}, gone: {less:#?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn gate(directory: &Path, arguments: &[&str]) -> Said {
    let mut command = fitout(directory);
    command.args(["gate", "--message-format", "json"]).args(arguments).env(MARK.0, MARK.1);
    command.output().expect("the program starts").into()
}

/// The verdict of each step, by name.
fn verdicts(said: &Said) -> Vec<(String, String)> {
    let lines = said.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a JSON line"));
    let text = |v: &serde_json::Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    lines.filter(|v| v["step"].is_string()).map(|v| (text(&v, "step"), text(&v, "verdict"))).collect()
}

#[test]
fn the_images_pass_and_nothing_is_left() {
    let _alone = alone();
    let before = host();
    let said = gate(built(), &[]).exits(0);
    let steps = ["boots-stopped", "one-voter-alone", "quorum", "identity", "check", "announces", "writes-go-on"];
    let want: Vec<_> = steps.iter().map(|step| (step.to_string(), "passed".to_string())).collect();
    assert_eq!(verdicts(&said), want, "{}", said.all());
    left_nothing(&before);
    assert!(!built().join("gate").exists(), "logs of a passed run are not kept");
}

#[test]
fn a_failed_step_says_why_keeps_the_logs_and_leaves_nothing_else() {
    let _alone = alone();
    let mesh = built_copy();
    let images = mesh.path().join("dist");
    // A voter that shows another's certificates: its peers do not take it for what its address says.
    let swapped = crate::verify::changed(
        &images.join("por1.tar.gz"),
        &images.join("lis1.tar.gz"),
        "for f in ('peer.crt', 'peer.key'):\n    members['./etc/etcd/pki/' + f][1] = other('./etc/etcd/pki/' + f)",
    );
    let before = host();
    let path = |p: PathBuf| p.to_str().expect("utf-8").to_owned();
    let all = [path(images.join("lis1.tar.gz")), path(images.join("mad1.tar.gz")), path(swapped.path().to_owned())];
    let said = gate(mesh.path(), &[&all[0], &all[1], &all[2]]).exits(1);
    let verdicts = verdicts(&said);
    let of = |step: &str| verdicts.iter().find(|(name, _)| name == step).map(|(_, verdict)| verdict.as_str());
    assert_eq!((of("boots-stopped"), of("quorum"), of("check")), (Some("passed"), Some("failed"), Some("not-run")));
    let said = said.says("por1: `systemctl is-active etcd.service` says active: not within");
    left_nothing(&before);
    let logs = std::fs::read_dir(mesh.path().join("gate")).unwrap_or_else(|e| panic!("{e}\n{}", said.all()));
    let logs = logs.flatten().next().expect("one run").path();
    for node in ["lis1", "mad1", "por1"] {
        let journal = std::fs::read_to_string(logs.join(format!("{node}.journal"))).expect("journal");
        assert!(journal.contains("etcd"), "{node}: {journal}");
        assert!(logs.join(format!("{node}.console")).exists());
    }
}

#[test]
fn interrupted_or_killed_it_leaves_nothing() {
    let _alone = alone();
    built();
    let before = host();
    for signal in ["INT", "TERM", "KILL"] {
        let mut child = start();
        tool("kill", &[&format!("-{signal}"), &child.id().to_string()]);
        let status = child.wait().expect("it ends");
        let want = if signal == "KILL" { None } else { Some(3) };
        assert_eq!(status.code(), want, "{signal}");
        left_nothing(&before);
    }
}

/// Starts a gate and returns when its machines are up.
fn start() -> Child {
    let mut command = fitout(built());
    let mut child = command
        .arg("gate")
        .env(MARK.0, MARK.1)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a first step").expect("readable");
    assert!(first.contains("boots-stopped") && first.starts_with("ok"), "{first}");
    // The pipe stays open, or the gate would end for want of a reader.
    std::mem::forget(lines);
    child
}

#[test]
fn what_cannot_be_booted_is_refused_before_anything_is_made() {
    let _alone = alone();
    let before = host();
    let empty = tempfile::tempdir().expect("a temporary directory");
    gate(empty.path(), &[]).exits(3).says("there are no images to boot").says("fitout build");

    let mesh = built_copy();
    let image = mesh.path().join("dist/lis1.tar.gz");
    let mut bytes = std::fs::read(&image).expect("image");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&image, bytes).expect("written");
    gate(mesh.path(), &[]).exits(3).says("is not the image that its index.json describes");

    let one = built().join("dist/lis1.tar.gz");
    let one = one.to_str().expect("utf-8");
    gate(built(), &[one]).exits(3).says("no image of mad1, por1");
    gate(built(), &[one, one]).exits(3).says("is given twice");
    left_nothing(&before);
}

#[test]
fn without_root_it_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("mode");
    let program = directory.path().join("fitout");
    std::fs::copy(env!("CARGO_BIN_EXE_fitout"), &program).expect("copied");
    let program = program.to_str().expect("utf-8");
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", program, "gate"])
        .current_dir(directory.path())
        .output()
        .expect("setpriv");
    Said::from(output).exits(3).says("it must run as root").says("sudo fitout gate");
}
