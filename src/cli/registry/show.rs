//! `fitout registry show`: the registry by site, node, service and data set; with `--watch` every change from then on.

use time::OffsetDateTime;

use super::access::{Access, Registry};
use crate::cli::{Exit, Global, Ui, VerbResult};
use crate::layout::{Key, Time, Value};
use crate::live::overview::{Overview, objects, render};
use crate::live::watch::{Change, Follow, Told};
use crate::live::words::{difference, fields, text};

/// Arguments of `registry show`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "States of a node: `ok`, `warn` and `bad` as it says itself; `stuck`: its lease lives, and it has not \
    said for 15 minutes how it is; `old-generation`: what is there is from before a restore; `away`: it does not announce \
    itself.\n\nExit 0 whatever the states are: `fitout check` judges."
)]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// Go on with a line for every change, until interrupted; with json one object each
    #[arg(long)]
    watch: bool,
}

/// Shows, and follows.
///
/// # Errors
/// When the registry cannot be read.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let registry = args.access.open(global, ui)?;
    let items = registry.items()?;
    let now = now();
    let all = Overview::of(&items.items);
    objects(&all, now, items.revision).iter().for_each(|object| ui.object(object));
    ui.write(&render(&all, now));
    if !args.watch {
        return Ok(Exit::Clean);
    }
    let Registry { reached, endpoints, timeout, .. } = registry;
    let follow = Follow { endpoints, credentials: reached.credentials, timeout };
    follow.run(reached.client, items, &mut |told| tell(told, ui))
}

fn now() -> Time {
    Time::of(OffsetDateTime::now_utc())
}

fn tell(told: Told<'_>, ui: &Ui) {
    match told {
        Told::Changed(change) => changed(change, ui),
        Told::Lost(reason) => ui.status(format!("{} the registry is lost: {reason}; trying again", now())),
        Told::Back(endpoint) => ui.status(format!("{} the registry is back: {endpoint}", now())),
        Told::Compacted => ui.status(format!("{} history was compacted: all keys were read again", now())),
    }
}

fn changed(change: &Change, ui: &Ui) {
    let parsed = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    ui.object(&serde_json::json!({
        "type": "registry-change", "key": text(&change.key), "action": change.action(), "revision": change.revision,
        "value": change.new.as_deref().and_then(parsed), "was": change.old.as_deref().and_then(parsed),
    }));
    if let Some(line) = line(change) {
        ui.line(format!("{} {line}", now()));
    }
}

/// A change in words; `None` for a health that says only that it was looked at again.
fn line(change: &Change) -> Option<String> {
    let key = text(&change.key);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match (&change.old, &change.new) {
        (Some(old), Some(new)) if same_health(&change.key, old, new) => return None,
        (Some(old), Some(new)) if old == new => format!("~ {key}: written again"),
        (Some(old), Some(new)) => format!("~ {key}: {}", difference(&shown(old), &shown(new))),
        (None, Some(new)) => format!("+ {key}: {}", fields(&shown(new))),
        (_, None) => format!("- {key}"),
    })
}

fn same_health(key: &[u8], old: &[u8], new: &[u8]) -> bool {
    let health = |bytes: &[u8]| match Key::parse(key).ok().and_then(|key| Value::decode(&key, bytes).ok()) {
        Some(Value::Health(health)) => Some((health.state, health.checks)),
        _ => None,
    };
    health(old).is_some_and(|old| health(new) == Some(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_in_words() {
        let health = |state: &str, at: &str| {
            format!(r#"{{"v":1,"state":"{state}","checks":{{}},"at":"2026-11-30T10:{at}:00Z"}}"#)
        };
        let key = "/mesh/live/a1/health";
        let cases = [
            (
                key,
                None,
                Some(health("ok", "00")),
                Some("+ /mesh/live/a1/health: state ok, checks none, at 2026-11-30T10:00:00Z"),
            ),
            (key, Some(health("ok", "00")), Some(health("ok", "05")), None),
            (
                key,
                Some(health("ok", "00")),
                Some(health("bad", "00")),
                Some("~ /mesh/live/a1/health: state bad instead of ok"),
            ),
            (key, Some(health("ok", "00")), None, Some("- /mesh/live/a1/health")),
            ("/mesh/x\u{1b}", Some("a".into()), Some("a".into()), Some("~ /mesh/x\\u{1b}: written again")),
            ("/mesh/x", Some("a".into()), Some("b".into()), Some("~ /mesh/x: b (it was `a`)")),
        ];
        for (key, old, new, says) in cases {
            let bytes = |value: Option<String>| value.map(String::into_bytes);
            let change = Change { key: key.into(), old: bytes(old), new: bytes(new), revision: 7 };
            assert_eq!(line(&change).as_deref(), says);
        }
    }
}
