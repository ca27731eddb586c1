//! Real processes: how they end, and that none is left.

use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::*;

fn sh(script: &str) -> Command {
    Command::new("sh").arg("-c").arg(script)
}

#[test]
fn a_program_runs_to_its_end() {
    let done = sh("cat; echo err >&2; exit 3").input(*b"in").run().unwrap();
    assert_eq!((done.status.code(), done.text().as_str(), done.log.as_str()), (Some(3), "in", "err\n"));
}

#[test]
fn the_passphrase_stays_with_us() {
    let name = crate::pki::passphrase::VARIABLE;
    assert!(SECRETS.contains(&name));
    let spawned = sh("true").env(name, "secret").prepared().unwrap();
    let kept = spawned.get_envs().find(|(key, _)| *key == name);
    assert_eq!(kept, Some((OsStr::new(name), None)), "removed, whatever else was asked for");
}

#[test]
fn a_bad_end_says_the_last_lines() {
    let failure = sh("echo first; echo 'the cause' >&2; exit 2").check().unwrap_err();
    assert!(failure.message.ends_with("exited with status 2; its last lines:\n  the cause"), "{failure}");
    let failure = sh("kill -9 $$").check().unwrap_err();
    assert!(failure.message.ends_with("was killed by signal 9"), "{failure}");
    assert!(failure.message.starts_with("`sh -c 'kill -9 $$'`"), "{failure}");
}

#[test]
fn a_missing_program_is_a_failure() {
    let failure = Command::new("no-such-program").run().unwrap_err();
    assert_eq!(failure.message, "`no-such-program` is not installed");
}

#[test]
fn a_deadline_ends_the_whole_group() {
    // The grandchild holds the pipe open; without killing the group this would take 100 s.
    let start = Instant::now();
    let failure = sh("echo waiting >&2; sleep 100 & sleep 100").deadline(Duration::from_millis(300)).run().unwrap_err();
    assert!(failure.message.contains("was not done after 0.3 s and was stopped"), "{failure}");
    assert!(failure.message.ends_with("waiting"), "{failure}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn what_a_program_leaves_in_its_group_ends_with_it() {
    let start = Instant::now();
    let done = sh("sleep 100 & echo $!").run().unwrap();
    assert!(start.elapsed() < Duration::from_secs(4));
    let left = format!("/proc/{}/stat", done.text().trim());
    let dead = |path: &str| std::fs::read_to_string(path).map_or(true, |stat| stat.contains(") Z "));
    while !dead(&left) {
        assert!(start.elapsed() < Duration::from_secs(8), "{left} lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_dies_with_the_one_that_started_it() {
    // PR_SET_PDEATHSIG counts from the starting thread: its end is our death in small.
    let pid = std::thread::spawn(|| {
        let running = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = running.id();
        // setpriv must have set the signal before this thread ends.
        while !std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().starts_with("sleep") {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::mem::forget(running);
        pid
    })
    .join()
    .unwrap();
    let start = Instant::now();
    let id = Pid::from_raw(pid as i32).unwrap();
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while rustix::process::waitid(WaitId::Pid(id), options).unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(5), "it survived");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn stop_asks_first() {
    let running = sh("trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done").spawn().unwrap();
    let start = Instant::now();
    while running.output() != "ready\n" {
        assert!(start.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!running.ended());
    let done = running.stop().unwrap();
    assert_eq!((done.status.code(), done.text().as_str()), (Some(0), "ready\ntidy\n"));
}

#[test]
fn input_from_a_file_and_a_clean_environment() {
    let file = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
    let done = sh("head -n 1; env").clean_environment().env("A", "b").input_file(file).check().unwrap();
    assert!(done.text().starts_with("[package]\n"), "{}", done.text());
    assert!(done.text().contains("\nA=b\n") && !done.text().contains("CARGO"), "{}", done.text());
}

#[test]
fn long_output_is_bounded() {
    let done = sh("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done").keep(64).run().unwrap();
    assert_eq!(done.stdout.len(), 64);
    assert!(done.text().ends_with("line 1999\n"));
}
