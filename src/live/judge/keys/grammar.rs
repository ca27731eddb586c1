//! Each key by itself: its name, its value, its lease.

use super::Few;
use crate::finding::{Finding, Rule, Severity};
use crate::layout::contents::{Fault, Item};
use crate::layout::keys::{Key, KeyError, Writer};
use crate::live::judge::rule;

/// No key of the schema.
pub static KEY: Rule = rule(
    "live-key-unknown",
    Severity::Error,
    "a key below `/mesh/` is none of schema 1",
    "Readers skip it, so whatever wrote it says it to nobody; often it is a mistyped name. docs/registry.md has the \
     grammar: labels as in host names (RFC 1123), times in UTC, ids of 16 hex digits. Tested on every key.",
);
/// A bad value.
pub static VALUE: Rule = rule(
    "live-value-bad",
    Severity::Error,
    "a key's value is not what schema 1 says",
    "Values are JSON objects in UTF-8 of at most 8 KiB with `\"v\": 1` and the fields of their kind (docs/registry.md, \
     schemas/registry). Readers skip what they cannot read: a node, a service or a claim is then not there for them. \
     Tested by reading every value as its readers do.",
);
/// A lease that is missing, or one too many.
pub static LEASE: Rule = rule(
    "live-key-lease",
    Severity::Error,
    "a key ends with nobody, or ends with somebody",
    "Keys of `live/` hang on their node's lease, so that they end with it: without one a dead node stays announced for ever. \
     All other keys have none: with one they would be gone when it ends. Tested on every key.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&KEY, &VALUE, &LEASE];

pub(super) fn judge(entries: &[Item], faults: &[(usize, Fault)], out: &mut Vec<Finding>) {
    let of = |wanted: fn(&Fault) -> bool| faults.iter().filter(move |(_, fault)| wanted(fault));
    let mut few = Few::new(out);
    for (n, fault) in of(|fault| matches!(fault, Fault::Key(_))) {
        let Fault::Key(error) = fault else { continue };
        few.push(|| {
            let finding = KEY.finding(name(&entries[*n]), error.to_string());
            match error {
                KeyError::Part(_) => {
                    finding.help("write it under its right name, and delete this one with `etcdctl del`")
                }
                _ => {
                    finding.help("delete it with `etcdctl del`; what is no news of the mesh belongs into another store")
                }
            }
        });
    }
    drop(few);
    let mut few = Few::new(out);
    for (n, fault) in of(|fault| matches!(fault, Fault::Value(_))) {
        let Fault::Value(error) = fault else { continue };
        few.push(|| VALUE.finding(name(&entries[*n]), error.to_string()).help(again(&entries[*n])));
    }
    drop(few);
    let mut few = Few::new(out);
    for (n, fault) in of(|fault| matches!(fault, Fault::LeaseMissing | Fault::LeaseGiven)) {
        few.push(|| {
            let text = match fault {
                Fault::LeaseMissing => "has no lease, so it stays when its node is gone".to_owned(),
                _ => format!("has lease {:016x}, and is gone when that ends", entries[*n].lease),
            };
            LEASE.finding(name(&entries[*n]), text).help(again(&entries[*n]))
        });
    }
}

/// A key as it can be printed.
fn name(entry: &Item) -> String {
    const LONGEST: usize = 200;
    let text = entry.key.escape_ascii().to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], entry.key.len()),
        None => text,
    }
}

/// Who writes it, and how it is written anew.
fn again(entry: &Item) -> String {
    match Key::parse(&entry.key).as_ref().map(Key::writer) {
        Ok(Writer::Operator) => "`fitout registry bootstrap` writes it anew from the declaration".to_owned(),
        Ok(Writer::Node(node)) => {
            format!("delete it with `etcdctl del` and start the agent on {node} again: `systemctl restart mesh-agent`")
        }
        Ok(Writer::Claimant) => "`fitout registry claim release` and let the node claim it anew".to_owned(),
        Err(_) => "delete it with `etcdctl del`".to_owned(),
    }
}
