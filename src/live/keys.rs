//! The registry's keys, read in pages at one revision.

use std::time::{Duration, Instant};

use etcd_client::{GetOptions, GetResponse, KeyValue};

use super::client::Client;
use super::handshake::{Kind, Trouble};
use crate::layout::contents::Entry;
use crate::layout::keys::{ROOT, end_of};

/// Keys of one page. A page of the largest values that schema 1 allows would exceed what a client takes at once, so a
/// page that is too large is asked for in halves.
const PAGE: i64 = 10_000;
/// Largest answer that is taken, bytes: 2 000 of the largest keys that schema 1 allows.
const LARGEST_ANSWER: usize = 16 << 20;
/// So many keys outside of `/mesh/` are named.
const NAMED: i64 = 5;

/// What a registry holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The revision at which all of it was read.
    pub revision: i64,
    /// What is below `/mesh/`, in byte order of the keys.
    pub entries: Vec<Entry>,
    /// What is elsewhere; `None` when the user may not look there, as it should be for a node.
    pub outside: Option<Outside>,
}

/// Keys outside of `/mesh/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Vec<u8>>,
}

/// Reads everything that the client's user may read. Each request may take `patience`.
///
/// # Errors
/// When `/mesh/` cannot be read to its end; [`Kind::Denied`] when the user may not.
pub fn read(client: &Client, patience: Duration) -> Result<Keys, Trouble> {
    let (revision, entries) = mesh(client, patience)?;
    Ok(Keys { revision, entries, outside: outside(client, patience)? })
}

fn mesh(client: &Client, patience: Duration) -> Result<(i64, Vec<Entry>), Trouble> {
    let end = end_of(ROOT);
    let (mut revision, mut entries, mut limit) = (0, Vec::new(), PAGE);
    let mut from = ROOT.as_bytes().to_vec();
    loop {
        let options = GetOptions::new().with_range(end.as_bytes()).with_limit(limit).with_revision(revision);
        let mut page = match get(client, from.clone(), options, patience) {
            Ok(page) => page,
            Err(trouble) if limit > 1 && too_large(&trouble) => {
                limit /= 2;
                continue;
            }
            Err(trouble) => return Err(trouble),
        };
        if revision == 0 {
            revision = page.header().map_or(0, |header| header.revision());
        }
        let more = page.more();
        entries.extend(page.take_kvs().into_iter().map(entry));
        match entries.last() {
            Some(last) if more => {
                from = last.key.clone();
                from.push(0);
            }
            _ => return Ok((revision, entries)),
        }
    }
}

/// tonic's `DecodedMessageTooLarge`: `Error, decoded message length too large: found …`, code OutOfRange.
fn too_large(trouble: &Trouble) -> bool {
    trouble.reason.contains("message length too large")
}

fn entry(kv: KeyValue) -> Entry {
    let (lease, mod_revision) = (kv.lease(), kv.mod_revision());
    let (key, value) = kv.into_key_value();
    Entry { key, value, lease, mod_revision }
}

/// What is outside of `/mesh/`; `None` when the user may not look there.
///
/// # Errors
/// When it is not answered in time.
pub fn outside(client: &Client, patience: Duration) -> Result<Option<Outside>, Trouble> {
    let mut outside = Outside::default();
    // From the first key to `/mesh/`, and from what follows it to the last: etcd's range end `\0` is "to the end".
    for (from, end) in [(vec![0], ROOT.as_bytes().to_vec()), (end_of(ROOT).into_bytes(), vec![0])] {
        let options = GetOptions::new().with_range(end).with_limit(NAMED).with_keys_only();
        let page = match get(client, from, options, patience) {
            Ok(page) => page,
            Err(trouble) if trouble.kind == Kind::Denied => return Ok(None),
            Err(trouble) => return Err(trouble),
        };
        outside.count += u64::try_from(page.count()).unwrap_or_default();
        outside.first.extend(page.kvs().iter().map(|kv| kv.key().to_vec()));
    }
    outside.first.truncate(usize::try_from(NAMED).unwrap_or_default());
    Ok(Some(outside))
}

fn get(client: &Client, from: Vec<u8>, options: GetOptions, patience: Duration) -> Result<GetResponse, Trouble> {
    let mut kv = client.inner.kv_client().max_decoding_message_size(LARGEST_ANSWER);
    client.call(Instant::now() + patience, async move { kv.get(from, Some(options)).await })
}

/// The registry's revision now.
///
/// # Errors
/// When it is not answered in time, or not for this user.
pub fn revision(client: &Client, patience: Duration) -> Result<i64, Trouble> {
    let page =
        get(client, ROOT.as_bytes().to_vec(), GetOptions::new().with_range(end_of(ROOT)).with_count_only(), patience)?;
    Ok(page.header().map_or(0, |header| header.revision()))
}
