//! The registry's keys, read in pages at one revision.

use std::time::{Duration, Instant};

use etcd_client::{GetOptions, GetResponse};

use super::client::{Client, Items};
use super::handshake::{Kind, Trouble};
use crate::layout::keys::{ROOT, end_of};

/// So many keys outside of `/mesh/` are named.
const NAMED: i64 = 5;

/// What a registry holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// What is below `/mesh/`.
    pub mesh: Items,
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
    let mesh = client.items(ROOT, patience)?;
    Ok(Keys { mesh, outside: outside(client, patience)? })
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
    client.with(Instant::now() + patience, async |mut client| client.get(from, Some(options)).await)
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
