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
