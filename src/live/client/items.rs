//! Reading keys: one, or all below a prefix in pages at one revision; and many requests at a time.

use std::future::Future;
use std::time::{Duration, Instant};

use etcd_client::GetOptions;
use tokio::task::JoinSet;

use super::{Client, left, reason};
pub use crate::layout::contents::Item;
use crate::live::handshake::{Kind, Trouble};

/// How many requests are under way at once, where there are many: etcd writes the log once for several of them.
pub const AT_ONCE: usize = 32;

/// Keys of a page. etcd counts what is left of a range with each page (`mvcc/index.go`, Revisions), so pages are large.
const PAGE: i64 = 10_000;

/// Largest answer that is taken, bytes: that page with values of 1.6 KiB, and the layout's are of some hundred bytes. A page
/// that is larger is asked for in smaller ones.
const LARGEST: usize = 16 << 20;

/// What tonic says of an answer that is larger than it takes.
const TOO_LARGE: &str = "message length too large";

/// Keys as they were at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Items {
    /// In the order of the keys.
    pub items: Vec<Item>,
    /// The revision.
    pub revision: i64,
}

impl From<&etcd_client::KeyValue> for Item {
    fn from(kv: &etcd_client::KeyValue) -> Item {
        Item { key: kv.key().to_vec(), value: kv.value().to_vec(), revision: kv.mod_revision(), lease: kv.lease() }
    }
}

impl Client {
    /// One key, linearizable; `None` when it is not there.
    ///
    /// # Errors
    /// When it is not answered in time.
    pub fn item(&self, key: &str, deadline: Instant) -> Result<Option<Item>, Trouble> {
        let answer = self.with(deadline, async |mut client| client.get(key, None).await)?;
        Ok(answer.kvs().first().map(Item::from))
    }

    /// All keys that begin with a prefix, page by page, all at the revision of the first page. Each page may take `timeout`.
    ///
    /// # Errors
    /// When a page is not answered in time, or the revision was compacted meanwhile.
    pub fn items(&self, prefix: &str, timeout: Duration) -> Result<Items, Trouble> {
        let end = crate::layout::keys::end_of(prefix);
        let mut all = Items::default();
        let mut from = prefix.as_bytes().to_vec();
        let mut limit = PAGE;
        loop {
            let options = GetOptions::new().with_range(end.as_bytes()).with_limit(limit).with_revision(all.revision);
            let start = from.clone();
            let page = self.with(Instant::now() + timeout, async |client| {
                client.kv_client().max_decoding_message_size(LARGEST).get(start, Some(options)).await
            });
            let page = match page {
                // Values that are far too large for the layout: one of them always fits, etcd takes none above 1.5 MiB.
                Err(trouble) if trouble.reason.contains(TOO_LARGE) && limit > 1 => {
                    limit = (limit / 8).max(1);
                    continue;
                }
                page => page?,
            };
            if all.revision == 0 {
                all.revision = page.header().map_or(0, |header| header.revision());
            }
            all.items.extend(page.kvs().iter().map(Item::from));
            match all.items.last() {
                // The next possible key.
                Some(last) if page.more() => from = [last.key.as_slice(), b"\0"].concat(),
                _ => return Ok(all),
            }
        }
    }

    /// One request for each of many things, some at a time; each may take `timeout`. `done` is called after each. The
    /// answers are in the order in which they came.
    ///
    /// # Errors
    /// The first trouble; what is under way then is given up.
    pub fn each<I, T, F>(
        &self,
        things: impl IntoIterator<Item = I>,
        timeout: Duration,
        mut done: impl FnMut(),
        request: impl Fn(etcd_client::Client, I) -> F,
    ) -> Result<Vec<T>, Trouble>
    where
        F: Future<Output = Result<T, etcd_client::Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.runtime.block_on(async {
            let mut things = things.into_iter();
            let mut under_way = JoinSet::new();
            let mut answers = Vec::new();
            loop {
                while under_way.len() < AT_ONCE {
                    let Some(thing) = things.next() else { break };
                    under_way.spawn(tokio::time::timeout(timeout, request(self.inner.clone(), thing)));
                }
                let Some(joined) = under_way.join_next().await else { return Ok(answers) };
                let ended = |_| Trouble::new(Kind::Request, "the request was given up");
                let answer = joined.map_err(ended)?.map_err(|_| Trouble::new(Kind::Silent, "no answer in time"))?;
                answers.push(answer.map_err(|error| Trouble::new(Kind::Request, reason(&error)))?);
                done();
            }
        })
    }

    /// Runs something of its own on this client's runtime until a deadline; for streams.
    ///
    /// # Errors
    /// [`Kind::Silent`] when the deadline passes first.
    pub fn until<T>(&self, deadline: Instant, work: impl Future<Output = T>) -> Result<T, Trouble> {
        let timed = async { tokio::time::timeout(left(deadline), work).await };
        self.runtime.block_on(timed).map_err(|_| Trouble::new(Kind::Silent, "nothing in time"))
    }
}
