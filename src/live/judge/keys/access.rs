//! Who may read what.

use super::{Seen, few};
use crate::finding::{Finding, Rule, Severity};
use crate::live::handshake::Kind;
use crate::live::judge::rule;
use crate::live::keys::Keys;

/// The client may not read.
pub static DENIED: Rule = rule(
    "live-keys-denied",
    Severity::Error,
    "the client certificate may not read `/mesh/`",
    "etcd takes the common name of a client certificate as its user. The user is not there, or its role does not open \
     `/mesh/` for reading, so the node could neither read nor announce anything. `fitout registry bootstrap` makes a user \
     and a role for each declared node. Tested by reading.",
);
/// Keys that cannot be read.
pub static UNREAD: Rule = rule(
    "live-keys-unread",
    Severity::Error,
    "the keys of `/mesh/` could not be read to their end",
    "The member answered other questions and then not this one, or not in time (`--timeout` holds for each page of ten \
     thousand keys). Nothing is said of the keys. Tested by reading.",
);
/// Access control is off.
pub static OPEN: Rule = rule(
    "live-access-open",
    Severity::Error,
    "a node's certificate opens more than the mesh's keys",
    "With access control off every node may write and delete every key, also those of others. Either it was never turned \
     on, or the node's role opens more than the layout gives it. `fitout registry bootstrap` turns it on and sets the \
     roles right. Tested by asking for keys outside of `/mesh/` with the image's own certificate: the layout's roles do not \
     open them.",
);
/// Foreign keys.
pub static FOREIGN: Rule = rule(
    "live-foreign-keys",
    Severity::Warning,
    "the registry holds keys outside of `/mesh/`",
    "The registry is the mesh's control plane and never holds application data: another program's writes share its quota, \
     its disk's latency and its elections. Seen only with a certificate that may look there, an operator's \
     (`--credentials`), or while access control is off.",
);

/// The rules of this file.
pub static RULES: &[&Rule] = &[&DENIED, &UNREAD, &OPEN, &FOREIGN];

/// Gives the keys when there are any to judge.
pub(super) fn judge<'a>(seen: &Seen<'a>, out: &mut Vec<Finding>) -> Option<&'a Keys> {
    let keys = match seen.keys {
        Ok(keys) => keys,
        Err(trouble) if trouble.kind == Kind::Denied => {
            let finding = DENIED.finding("/mesh/", format!("{} may not read it: {}", seen.whose, trouble.reason));
            out.push(finding.help("`fitout registry bootstrap` shows what is missing, and `--yes` mends it"));
            return None;
        }
        Err(trouble) => {
            let finding = UNREAD.finding("/mesh/", format!("cannot be read to its end: {}", trouble.reason));
            out.push(finding.help("try again with a longer `--timeout`; on the nodes: `journalctl -u etcd -e`"));
            return None;
        }
    };
    // Before the first bootstrap that is as it must be.
    if seen.node_sees_outside == Some(true) && !keys.mesh.items.is_empty() {
        let finding =
            OPEN.finding("/", "the node's own certificate may read outside of `/mesh/`: access control is off");
        out.push(finding.help("`fitout registry bootstrap` shows the plan, and `--yes` turns access control on"));
    }
    if let Some(outside) = keys.outside.as_ref().filter(|outside| outside.count > 0) {
        let names: Vec<String> = outside.first.iter().map(|key| key.escape_ascii().to_string()).collect();
        let first = few(names.iter().map(String::as_str));
        out.push(
            FOREIGN
                .finding(
                    "/",
                    format!(
                        "{} outside of `/mesh/`: {first}",
                        super::count(usize::try_from(outside.count).unwrap_or(usize::MAX), "key", "keys")
                    ),
                )
                .help("give that program a store of its own, and delete its keys here with `etcdctl del`"),
        );
    }
    Some(keys)
}
