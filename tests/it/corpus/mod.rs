//! The corpus: mutations of real images, each with what `verify` must say of it and what is true of it.
//!
//! A row changes the tree of a built image. The truth is found by programs that are not ours, on the very same tree: a
//! boot by systemd-nspawn, the image's own `systemctl`, two real etcds on a wire of their own, the kernel's access
//! checks, and tar readers. No row may be said to be sound that is not, and none may be called unsound that is sound:
//! rows that give nothing count as much as the others.
//!
//! Every row is judged by every test run, on one image or the other, and every cheap truth is found; of the boots and
//! the etcds there is a sample.
//! `make corpus` is the same code with the sample *all* (`FITOUT_CORPUS=all`). `FITOUT_CORPUS_ONLY=TEXT` runs the rows
//! whose names hold the text, with all of their truths.

mod boots;
mod machine_ids;
mod presets;
mod readers;
mod registry;
mod runner;
mod secrets;
mod verdict;

use serde_json::Value;

use crate::common::{Debian, image_of};
use runner::Plan;
use verdict::Verdict;

/// Which images a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Both, alike.
    Both,
    /// Only that with systemd 257 and etcd 3.5.16, because the other differs.
    Trixie,
    /// Only that with systemd 252 and etcd 3.4.23, because the other differs.
    Bookworm,
}

/// What a boot does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boot {
    /// etcd is started: the unit, or the program by whatever else.
    Starts,
    /// The boot ends without a start; etcd is started when this is run inside.
    StartsAfter(&'static str),
    /// The boot ends without a start; the one after that starts etcd.
    StartsAgain,
    /// etcd is not started.
    Stays,
}

/// What is true of a row.
#[derive(Debug, Clone, Copy)]
pub enum Truth {
    /// What a boot does, and what the image's own `is-enabled` says of etcd before it.
    Boot(Boot, &'static str),
    /// Whether a boot enables units that were not, with no start of etcd.
    FirstBoot(bool),
    /// systemd-nspawn refuses to boot it.
    Refused,
    /// What `is-enabled` says of etcd before and after `systemctl preset`, by the image's own.
    Preset(&'static str, &'static str),
    /// What openssl and ssh-keygen find at a path: `none`, or whose private key it is.
    Key(&'static str, &'static str),
    /// Whether a stranger becomes this user by `su` without a password.
    Login(&'static str, bool),
    /// What two etcds, the kernel and a client say.
    Registry(Registry),
}

/// What becomes of an etcd of the tree, beside one of another voter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registry {
    /// Its user cannot read these of the files that the preflight lists.
    pub unreadable: &'static str,
    /// Anybody can read these keys.
    pub open: &'static str,
    /// It starts and listens.
    pub listens: bool,
    /// The two form a quorum. It is enough for that when one may dial the other.
    pub quorum: bool,
    /// One refuses the other's certificate; asked where there is a quorum.
    pub refused: bool,
    /// The other node's client is served; asked where there is a quorum.
    pub client: bool,
}

/// A mutation.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    /// Shell text with the helpers of `corpus.sh`, run in the root of the tree.
    pub change: &'static str,
    pub on: On,
    pub truth: Truth,
    /// All codes of errors and warnings that the sound image does not give, sorted, each once.
    pub codes: &'static [&'static str],
    /// Said in the message or the notes of one of these findings; may be empty.
    pub says: &'static str,
}

/// A row on one of the two images.
#[derive(Debug, Clone, Copy)]
struct Case {
    row: &'static Row,
    debian: Debian,
    /// Whether its boot or its etcds belong to this run.
    full: bool,
}

fn all() -> impl Iterator<Item = &'static Row> {
    [boots::ROWS, machine_ids::ROWS, presets::ROWS, registry::ROWS, secrets::ROWS].into_iter().flatten()
}

/// The rows of this run: each on one of its two images by turns, on both in the whole. Of the costly truths every
/// [`STRIDE`]th is sought.
fn cases() -> Vec<Case> {
    let whole = std::env::var_os("FITOUT_CORPUS").is_some_and(|v| v == "all");
    let only = std::env::var("FITOUT_CORPUS_ONLY").ok();
    let rows = all().filter(|row| only.as_ref().is_none_or(|text| row.name.contains(text.as_str()))).enumerate();
    let all = whole || only.is_some();
    let mut cases = Vec::new();
    for (index, row) in rows {
        let on: &[Debian] = match row.on {
            On::Both if all => &[Debian::Trixie, Debian::Bookworm],
            On::Both if index % 2 == 0 => &[Debian::Trixie],
            On::Both => &[Debian::Bookworm],
            On::Trixie => &[Debian::Trixie],
            On::Bookworm => &[Debian::Bookworm],
        };
        let full = all || index % STRIDE == 0;
        cases.extend(on.iter().map(|&debian| Case { row, debian, full }));
    }
    cases
}

/// Of so many rows one is booted, or run with etcd, by `make test`. Odd, so that both images have their turns.
const STRIDE: usize = 7;

#[test]
#[allow(clippy::print_stderr)] // How much was looked at: `make corpus` shows it.
fn what_verify_says_of_a_mutation_is_true() {
    let cases = cases();
    let plan = Plan::new(&cases);
    let truths = plan.run();
    let verdicts = verdict::all(&plan, &cases);
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let (verdict, truth) = (&verdicts[index], &truths[index]);
        let found = disagreements(case, verdict, truth);
        if !found.is_empty() {
            let name = case.row.name;
            let lines: Vec<String> = found.iter().map(|line| format!("  {line}")).collect();
            wrong.push(format!("{name} ({:?}): {truth}\n{}{}", case.debian, lines.join("\n"), plan.log(index)));
        }
    }
    let full = cases.iter().filter(|case| case.full).count();
    eprintln!("{} rows on images, {full} of them with a boot or etcds", cases.len());
    assert!(wrong.is_empty(), "{} of {} are wrong\n\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
}

/// The in-memory verdict on a change is what the program says of the image as a file.
#[test]
fn the_program_says_the_same_of_the_file() {
    // One of dependencies, one of commands, one of presets, one of access.
    let rows: Vec<&Row> = all().filter(|row| row.on != On::Bookworm).step_by(47).collect();
    let cases: Vec<Case> = rows.iter().map(|row| Case { row, debian: Debian::Trixie, full: false }).collect();
    let plan = Plan::new(&cases);
    plan.run();
    let verdicts = verdict::all(&plan, &cases);
    let image = image_of(Debian::Trixie, "lis1");
    let sound = verdict::codes_by_the_program(&image);
    for (index, case) in cases.iter().enumerate() {
        let said = verdict::by_the_program(&plan, index, &image, &sound);
        assert_eq!(said, verdicts[index].codes(), "{}", case.row.name);
    }
}

#[test]
fn names_of_rows_are_unique_and_there_are_enough() {
    let mut names: Vec<&str> = all().map(|row| row.name).chain(readers::ROWS.iter().map(|row| row.name)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 60, "{count}");
}

/// Codes of the claim *does not start at boot*: one of them is given exactly where etcd is started.
const STARTS: &[&str] = &[
    "boot-program",
    "first-boot-enables",
    "generator-names-unit",
    "tmpfiles-starts",
    "unit-activated",
    "unit-search-path",
    "unit-start-command",
    "unit-starts-at-boot",
];

/// In what the truth, `verify` and the table differ.
fn disagreements(case: &Case, verdict: &Verdict, truth: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut wants = |what: bool, text: String| {
        if !what {
            wrong.push(text);
        }
    };
    let row = case.row;
    wants(truth["row"] == "ran", "its truth could not be found".to_owned());
    let codes = verdict.codes();
    wants(codes == row.codes, format!("`verify` says {codes:?} instead of {:?}: {verdict}", row.codes));
    wants(verdict.says(row.says), format!("`{}` is not said: {verdict}", row.says));
    let has = |codes: &[&str]| row.codes.iter().any(|code| codes.contains(code));
    match row.truth {
        Truth::Boot(boot, enabled) => {
            wants(truth["own"] == enabled, format!("`is-enabled` says {} instead of {enabled}", truth["own"]));
            let counts = ["enabled", "alias", "indirect"].contains(&enabled);
            wants(!counts || !row.codes.is_empty(), "the table is silent of what counts as enabled".to_owned());
            let starts = boot != Boot::Stays;
            wants(has(STARTS) == starts, format!("the table says {:?} of what {boot:?}", row.codes));
            if case.full {
                booted(boot, truth, &mut wants);
            }
        }
        Truth::FirstBoot(enables) => {
            wants(has(&["machine-id"]) || !enables, "the table lets a first boot pass".to_owned());
            if case.full {
                booted(Boot::Stays, truth, &mut wants);
                wants((truth["made"] != 0) == enables, format!("the boot made {} links", truth["made"]));
            }
        }
        Truth::Refused => {
            wants(!row.codes.is_empty(), "the table lets pass what does not boot".to_owned());
            wants(!case.full || truth["state"] == "refused", "it was not refused".to_owned());
        }
        Truth::Preset(before, after) => {
            let is = (&truth["own"], &truth["preset"]);
            wants(*is.0 == before && *is.1 == after, format!("`is-enabled` says {is:?}, not {:?}", (before, after)));
            let enables = after == "enabled" && before != after;
            wants(has(&["preset-enables"]) == enables, format!("the table says {:?}", row.codes));
        }
        Truth::Key(_, found) => {
            wants(truth["key"] == found, format!("what is read there is {}", truth["key"]));
            let alarm = row.codes.iter().any(|code| code.starts_with("private-key-") || *code == "ssh-host-key");
            wants(alarm == (found != "none"), format!("the table says {:?}", row.codes));
        }
        Truth::Login(_, enters) => {
            wants(truth["enters"] == enters, format!("`su` enters: {}", truth["enters"]));
            wants(has(&["password-none"]) == enters, format!("the table says {:?}", row.codes));
        }
        Truth::Registry(want) => {
            let sound = !want.refused
                && want.listens
                && want.quorum
                && want.client
                && want.unreadable.is_empty()
                && want.open.is_empty();
            let family = |code: &&str| code.starts_with("etcd-") || code.starts_with("tls-");
            let alarm = row.codes.iter().any(family);
            wants(alarm || sound, format!("the table says {:?} of what does not work", row.codes));
            if case.full {
                let is = |key: &str| truth[key] == true;
                let same = truth["unreadable"] == want.unreadable
                    && truth["open"] == want.open
                    && is("listens") == want.listens
                    && is("quorum") == want.quorum
                    && (!want.quorum || (is("client"), is("refused")) == (want.client, want.refused));
                wants(same, format!("it is not {want:?}"));
            }
        }
    }
    wrong
}

fn booted(boot: Boot, truth: &Value, wants: &mut impl FnMut(bool, String)) {
    let (started, stopped) = (truth["started"] == true, truth["stopped"] == true);
    match boot {
        Boot::Starts => wants(started, "etcd was not started".to_owned()),
        Boot::StartsAfter(_) => {
            wants(stopped, "etcd was started before anything was done".to_owned());
            wants(started, "etcd was not started afterwards".to_owned());
        }
        Boot::StartsAgain => wants(started, "the second boot did not start etcd".to_owned()),
        Boot::Stays => {
            wants(!started && stopped, "etcd was started, or the boot did not end".to_owned());
            wants(truth["active"] == "inactive", "etcd is active".to_owned());
        }
    }
}
