//! Usage, help and exit codes.

use crate::common::{project, run};

#[test]
fn help_and_version_are_clean() {
    run(project(), &["--help"]).exits(0).says("Usage: fitout");
    run(project(), &["--version"]).exits(0).says("fitout 0");
}

#[test]
fn bad_usage_is_exit_2() {
    run(project(), &[]).exits(2);
    run(project(), &["no-such-verb"]).exits(2);
    run(project(), &["explain", "no-such-code"]).exits(2).says("no rule has this code");
}

#[test]
fn a_report_that_cannot_be_written_is_not_clean() {
    let to = |file: &str| {
        let script = format!("exec \"$0\" explain --list {file}");
        let status = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_fitout")])
            .stderr(std::process::Stdio::null())
            .status();
        status.expect("starts").code()
    };
    assert_eq!(to(">/dev/full"), Some(3));
    assert_eq!(to(">/dev/null"), Some(0));
    let piped = crate::common::tool(
        "bash",
        &["-c", "\"$0\" explain --list | head -1; exit ${PIPESTATUS[0]}", env!("CARGO_BIN_EXE_fitout")],
    );
    assert_eq!(piped.lines().count(), 1);
}
