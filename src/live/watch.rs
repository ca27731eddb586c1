//! Following every change of `/mesh/`: over lost connections, other members, and compacted history.
//!
//! A watch goes on from the revision after the last one that was seen. When that was compacted all keys are read again, and
//! what differs is told as changes. A watch that is silent is asked for its progress; when no answer comes, or the member
//! has no quorum, another member is looked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_client::{EventType, WatchOptions};

use super::client::{Client, Item, Items};
use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::handshake::{Kind, Trouble};
use super::reach::reach_again;
use crate::layout::keys::{ROOT, end_of};

/// A watch that has said nothing for so long is asked whether it is still there.
const SILENT: Duration = Duration::from_secs(10);

/// First and longest pause between two attempts to get back.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));

/// One change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Vec<u8>,
    /// What stood there; `None` when nothing did.
    pub old: Option<Vec<u8>>,
    /// What stands there; `None` when it is gone.
    pub new: Option<Vec<u8>>,
    /// Revision in which it was changed; of a compacted one, in which it was seen.
    pub revision: i64,
}

impl Change {
    /// `put` or `delete`.
    pub fn action(&self) -> &'static str {
        if self.new.is_some() { "put" } else { "delete" }
    }
}

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told<'a> {
    /// A key has changed.
    Changed(&'a Change),
    /// No member answers any more, for this reason.
    Lost(&'a str),
    /// A member answers again.
    Back(&'a Endpoint),
    /// History was compacted: what follows is the difference.
    Compacted,
}

/// How to get at the registry again.
#[derive(Debug)]
pub struct Follow {
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// What is shown to them.
    pub credentials: Arc<Credentials>,
    /// How long each call may take.
    pub timeout: Duration,
}

/// Keys as they were last seen.
#[derive(Debug, Default)]
struct Seen {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    revision: i64,
}

/// Why a watch is over.
enum End {
    Compacted,
    Lost(Trouble),
}

impl Follow {
    /// Tells every change after `items`, for ever.
    pub fn run<T>(&self, mut client: Client, items: Items, tell: &mut dyn FnMut(Told<'_>)) -> T {
        let mut seen = Seen::default();
        seen.read_again(items);
        let mut pause = PAUSES.0;
        loop {
            let before = seen.revision;
            let end = watch(&client, &mut seen, self.timeout, tell);
            let end = match end {
                End::Compacted => match client.items(ROOT, self.timeout) {
                    Ok(items) => {
                        tell(Told::Compacted);
                        seen.read_again(items).iter().for_each(|change| tell(Told::Changed(change)));
                        continue;
                    }
                    Err(trouble) => trouble,
                },
                End::Lost(trouble) => trouble,
            };
            tell(Told::Lost(&end.reason));
            // What is lost again and again without a word in between is not asked at full speed.
            pause = if seen.revision > before { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
            std::thread::sleep(pause);
            client = self.back(tell);
        }
    }

    /// Looks for a member until there is one.
    fn back(&self, tell: &mut dyn FnMut(Told<'_>)) -> Client {
        let mut pause = PAUSES.0;
        loop {
            match reach_again(&self.endpoints, &self.credentials, self.timeout) {
                Ok(reached) => {
                    tell(Told::Back(&reached.endpoint));
                    return reached.client;
                }
                Err(_) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }
}

impl Seen {
    /// All keys as they are now; gives what differs.
    fn read_again(&mut self, items: Items) -> Vec<Change> {
        let mut before = std::mem::take(&mut self.values);
        self.revision = items.revision;
        let mut changes = Vec::new();
        for Item { key, value, revision, .. } in items.items {
            let old = before.remove(&key);
            if old.as_ref() != Some(&value) {
                changes.push(Change { key: key.clone(), old, new: Some(value.clone()), revision });
            }
            self.values.insert(key, value);
        }
        let gone = |(key, old)| Change { key, old: Some(old), new: None, revision: items.revision };
        changes.extend(before.into_iter().map(gone));
        changes
    }

    fn event(&mut self, key: &[u8], value: Option<&[u8]>, revision: i64) -> Change {
        let new = value.map(<[u8]>::to_vec);
        let old = match &new {
            Some(value) => self.values.insert(key.to_vec(), value.clone()),
            None => self.values.remove(key),
        };
        Change { key: key.to_vec(), old, new, revision }
    }
}

/// Watches until it ends.
fn watch(client: &Client, seen: &mut Seen, timeout: Duration, tell: &mut dyn FnMut(Told<'_>)) -> End {
    let lost = |error: &etcd_client::Error| End::Lost(Trouble::new(Kind::Request, super::client::reason(error)));
    // In fragments: several large values at once would be more than gRPC takes.
    let options = WatchOptions::new().with_range(end_of(ROOT)).with_start_revision(seen.revision + 1).with_fragment();
    let opened = client.with(Instant::now() + timeout, async |mut c| c.watch(ROOT, Some(options)).await);
    let mut stream = match opened {
        Ok(stream) => stream,
        Err(trouble) => return End::Lost(trouble),
    };
    let mut asked = false;
    loop {
        let wait = if asked { timeout } else { SILENT };
        let message = match client.until(Instant::now() + wait, stream.message()) {
            Ok(Ok(Some(message))) => message,
            Ok(Ok(None)) => return End::Lost(Trouble::new(Kind::Request, "the member ended the watch")),
            Ok(Err(error)) => return lost(&error),
            Err(trouble) if asked => return End::Lost(trouble),
            Err(_) => {
                // Silent: does the watch still live, and has the member a quorum?
                if let Err(trouble) = client.item("/mesh/identity", Instant::now() + timeout) {
                    return End::Lost(trouble);
                }
                match client.until(Instant::now() + timeout, stream.request_progress()) {
                    Ok(Ok(())) => asked = true,
                    Ok(Err(error)) => return lost(&error),
                    Err(trouble) => return End::Lost(trouble),
                }
                continue;
            }
        };
        asked = false;
        if message.compact_revision() > 0 {
            return End::Compacted;
        }
        if message.canceled() {
            return End::Lost(Trouble::new(
                Kind::Request,
                format!("the watch was cancelled: {}", message.cancel_reason()),
            ));
        }
        for event in message.events() {
            let Some(kv) = event.kv() else { continue };
            let value = (event.event_type() == EventType::Put).then(|| kv.value());
            let change = seen.event(kv.key(), value, kv.mod_revision());
            seen.revision = seen.revision.max(kv.mod_revision());
            tell(Told::Changed(&change));
        }
        // Of a message without events: all up to its revision was told (etcd's progress notification).
        if message.events().is_empty() && !message.created() {
            seen.revision = seen.revision.max(message.header().map_or(0, |header| header.revision()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(revision: i64, pairs: &[(&str, &str)]) -> Items {
        let item =
            |(key, value): &(&str, &str)| Item { key: (*key).into(), value: (*value).into(), revision, lease: 0 };
        Items { items: pairs.iter().map(item).collect(), revision }
    }

    #[test]
    fn reading_again_tells_what_differs() {
        let mut seen = Seen::default();
        assert_eq!(seen.read_again(items(5, &[("a", "1"), ("b", "1"), ("c", "1")])).len(), 3);
        let change = seen.event(b"b", Some(b"2"), 6);
        assert_eq!(
            (change.old.as_deref(), change.new.as_deref(), change.action()),
            (Some(&b"1"[..]), Some(&b"2"[..]), "put")
        );
        assert_eq!(seen.event(b"c", None, 7).action(), "delete");
        assert_eq!(seen.event(b"c", None, 8).old, None, "gone already");
        let changes = seen.read_again(items(20, &[("b", "2"), ("d", "1")]));
        let told: Vec<_> = changes.iter().map(|c| (c.key.as_slice(), c.action(), c.revision)).collect();
        assert_eq!(told, [(&b"d"[..], "put", 20), (&b"a"[..], "delete", 20)]);
        assert_eq!(seen.revision, 20);
    }
}
