//! How much is written.

use std::time::Duration;

use super::count;
use crate::finding::{Finding, Rule, Severity};
use crate::layout::contents::Contents;
use crate::live::judge::rule;

/// Too many writes.
pub static RATE: Rule = rule(
    "live-write-rate",
    Severity::Warning,
    "the registry is written to more than a quiet mesh writes",
    "A mesh writes a few keys a minute: each node its health every five minutes and what changes; keep-alives of leases are \
     not writes. Much more is a service that flaps, an agent that is started over and over, or application data. Each \
     write is a turn of the whole quorum over the line between the sites. Looked at only with `--write-rate SECONDS`: \
     revisions over that time, against 10 a minute and two in five minutes for each node.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&RATE];

/// Revisions over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many revisions.
    pub revisions: u64,
    /// In which time.
    pub time: Duration,
}

/// Writes a minute that any mesh may make.
const QUIET: f64 = 10.0;
/// And for each node: twice one health in five minutes.
const A_NODE: f64 = 0.4;

pub(super) fn judge(rate: Option<Rate>, contents: &Contents, out: &mut Vec<Finding>) {
    let Some(rate) = rate.filter(|rate| !rate.time.is_zero()) else { return };
    let minutes = rate.time.as_secs_f64() / 60.0;
    let (nodes, writes) = (contents.nodes.len(), u32::try_from(rate.revisions).unwrap_or(u32::MAX));
    let allowed = QUIET + A_NODE * f64::from(u32::try_from(nodes).unwrap_or(u32::MAX));
    let measured = f64::from(writes) / minutes;
    // One write at the edge of a short interval is no rate.
    if f64::from(writes) > (allowed * minutes).max(2.0) {
        let text = format!(
            "{} in {} s, {measured:.0} a minute; a quiet mesh of {} writes at most {allowed:.0}",
            count(usize::try_from(rate.revisions).unwrap_or(usize::MAX), "write", "writes"),
            rate.time.as_secs(),
            count(nodes, "node", "nodes"),
        );
        out.push(RATE.finding("/", text).help("`etcdctl watch --prefix /` shows who writes what"));
    }
}
