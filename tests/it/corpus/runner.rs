//! Hands rows to `corpus.sh` and takes what it found.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use fitout::process::Command;
use serde_json::Value;

use super::{Boot, Case, Truth};
use crate::common::{Debian, image_of, project};

/// How long one row may take, on a busy machine.
const A_ROW: Duration = Duration::from_secs(60);

/// A directory that says what is to be done.
pub struct Plan {
    directory: tempfile::TempDir,
    rows: usize,
}

impl Plan {
    /// Writes the plan of some rows.
    pub fn new(cases: &[Case]) -> Plan {
        let mut directory = tempfile::tempdir().expect("temporary directory");
        directory.disable_cleanup(std::env::var_os("FITOUT_CORPUS_KEEP").is_some());
        let plan = Plan { directory, rows: cases.len() };
        for debian in [Debian::Trixie, Debian::Bookworm] {
            if cases.iter().any(|case| case.debian == debian) {
                let base = plan.directory.path().join("base").join(debian.suite());
                fs::create_dir_all(&base).expect("directory");
                for (name, node) in [("image", "lis1"), ("peer", "por1")] {
                    std::os::unix::fs::symlink(image_of(debian, node), base.join(name)).expect("link");
                }
                let authority = crate::common::built_on(debian).join("pki/authority");
                std::os::unix::fs::symlink(authority, base.join("authority")).expect("link");
            }
        }
        for (index, case) in cases.iter().enumerate() {
            let row = plan.row(index);
            fs::create_dir_all(&row).expect("directory");
            let (probes, wait, after) = probes(case);
            let debian = case.debian.suite();
            let files = [("base", debian), ("name", case.row.name), ("change", case.row.change)];
            for (name, text) in files.into_iter().chain([("probes", probes), ("await", wait), ("after", after)]) {
                fs::write(row.join(name), text).expect("written");
            }
        }
        plan
    }

    /// The directory of a row.
    pub fn row(&self, index: usize) -> PathBuf {
        self.directory.path().join("rows").join(index.to_string())
    }

    /// The end of what the row's etcd said.
    pub fn log(&self, index: usize) -> String {
        fs::read_to_string(self.row(index).join("log")).map(|log| format!("\n{log}")).unwrap_or_default()
    }

    /// Finds out what is true of each row.
    pub fn run(&self) -> Vec<Value> {
        let truth = |index: usize| {
            let text = fs::read_to_string(self.row(index).join("truth.json")).expect("what is true of the row");
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
        };
        let script = project().join("tests/it/corpus/corpus.sh");
        let command = Command::new("bash").arg(script).arg("run").arg(self.directory.path());
        let deadline = A_ROW * u32::try_from(self.rows + 2).expect("few");
        command.deadline(deadline).keep(8 << 20).check().unwrap_or_else(|failure| panic!("{failure}"));
        (0..self.rows).map(truth).collect()
    }
}

/// The probes of a row, and for a boot how long to look and what to do inside.
fn probes(case: &Case) -> (&'static str, &'static str, &'static str) {
    let full = case.full;
    match case.row.truth {
        Truth::Boot(boot, _) => {
            let (wait, after) = match boot {
                Boot::Starts => ("start", ""),
                Boot::StartsAfter(text) => ("start", text),
                Boot::StartsAgain => ("again", ""),
                Boot::Stays => ("nothing", ""),
            };
            (if full { "enabled boot" } else { "enabled" }, wait, after)
        }
        Truth::FirstBoot(_) | Truth::Refused => (if full { "boot" } else { "" }, "nothing", ""),
        Truth::Preset(..) => ("enabled preset", "", ""),
        Truth::Key(path, _) => ("key", "", path),
        Truth::Login(user, _) => ("login", "", user),
        Truth::Registry(_) => (if full { "registry" } else { "" }, "", ""),
    }
}
