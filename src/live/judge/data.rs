//! Rules about the data: how full the backend is, and whether all members have them.

use super::quorum::{Change, commands};
use super::{Declared, ours, rule};
use crate::finding::{Finding, Rule, Severity};
use crate::live::etcdctl::Step;
use crate::live::observe::Observed;

/// How full a backend may be, in per cent of its quota.
const FULL: u64 = 80;
/// How many entries a member may be behind. A registry writes a few a minute, and all members are asked at once.
const BEHIND: u64 = 100;

/// Near the quota.
pub static QUOTA: Rule = rule(
    "live-quota-near",
    Severity::Warning,
    "a member's backend is near its quota",
    "At `quota-backend-bytes` the whole cluster stops taking writes (`live-alarm-nospace`). Compaction frees space inside \
     the file, `defrag` makes the file smaller; it blocks the member, so one after the other. Tested by the size in \
     each member's status against the quota that it runs with, or the declared one: more than 80 % is told.",
);
/// Behind.
pub static LAGS: Rule = rule(
    "live-member-lags",
    Severity::Warning,
    "a member is behind the others",
    "Its raft log or what it has applied ends more than 100 entries before the others' do: it is cut off, its disk is \
     slow, or it is catching up after a start. It does not help to survive the loss of another one meanwhile. \
     Tested by the indexes in the members' status; all are asked at once.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&QUOTA, &LAGS];

/// Judges sizes and indexes.
pub fn judge(declared: &Declared, observed: &Observed, out: &mut Vec<Finding>) {
    for (endpoint, answer) in ours(declared, observed) {
        let running = answer.metrics.as_ref().ok().and_then(|metrics| metrics.quota);
        let quota = running.filter(|quota| *quota > 0).unwrap_or(declared.limits.quota);
        // The alarm says it all.
        let told = answer.errors.iter().any(|error| error.contains("NOSPACE"));
        if !told && answer.db_size.saturating_mul(100) > quota.saturating_mul(FULL) {
            let text = format!("its backend has {} of {}", megabytes(answer.db_size), megabytes(quota));
            let finding = QUOTA
                .finding(&endpoint, text)
                .note(format!("{} of it are in use; the rest is free for new data", megabytes(answer.db_in_use)))
                .help("defragment it; if what is in use grows, raise `[registry] quota` and build anew");
            let steps = vec![Step::here("etcdctl --command-timeout=60s defrag")];
            out.push(commands(declared, observed, finding, Change::Any, steps));
        }
    }
    let newest = ours(declared, observed).map(|(_, answer)| answer.raft_index).max().unwrap_or_default();
    for (endpoint, answer) in ours(declared, observed) {
        let behind = newest.saturating_sub(answer.applied_index.min(answer.raft_index));
        if behind > BEHIND {
            out.push(
                LAGS.finding(&endpoint, format!("member {} is {behind} entries behind", answer.member))
                    .note(format!(
                        "raft index {}, applied {}; the newest of all is {newest}",
                        answer.raft_index, answer.applied_index
                    ))
                    .help("if it stays so: `journalctl -u etcd -e` on that node, and look at its disk and its routes"),
            );
        }
    }
}

/// `1.5 MB`.
fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
