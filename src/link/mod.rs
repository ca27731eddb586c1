//! One connection to one member of the registry, asynchronous: what the announcer needs of etcd and nothing else.
//!
//! Every call has a deadline. Which member is asked, and when again, is the caller's business: etcd-client would try several
//! by itself, and it would not be known which of them does not answer.

mod trouble;

use std::future::Future;
use std::time::Duration;

use etcd_client::{
    Certificate, Client, Compare, CompareOp, ConnectOptions, EventType, GetOptions, Identity, LeaseKeepAliveStream,
    LeaseKeeper, PutOptions, SortOrder, SortTarget, TlsOptions, Txn, TxnOp, WatchOptions, WatchStream,
};

pub use trouble::Trouble;

/// PEM texts with which the connection is made.
#[derive(Clone)]
pub struct Credentials {
    /// The authority that the servers must be of.
    pub authority: Vec<u8>,
    /// Client certificate.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

/// A key as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Key.
    pub key: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
    /// Lease, 0 when it has none.
    pub lease: i64,
    /// Revision of its last change.
    pub changed: i64,
}

/// Keys of one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// In the order that was asked for.
    pub keys: Vec<Stored>,
    /// Revision of the registry at which they were read.
    pub revision: i64,
}

/// One change of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Put this value, under this lease (0: none).
    Put(String, String, i64),
    /// Delete this key.
    Delete(String),
}

/// What a transaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// All of it, at this revision.
    At(i64),
    /// Nothing: what it was made for was no longer so.
    NotSo,
}

/// What a transaction is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The key was last changed at this revision; 0: it is not there.
    Changed(String, i64),
}

/// A change that a watch tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Key.
    pub key: Vec<u8>,
    /// Revision of the change.
    pub revision: i64,
    /// True when the key is gone.
    pub deleted: bool,
}

/// What a watch says next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Changes, in order.
    Events(Vec<Event>),
    /// It cannot go on from where it was (the history was compacted, the member lost its leader, …): read again.
    Over(String),
}

/// What is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// One key.
    Key(String),
    /// All keys that begin so.
    Prefix(String),
}

/// A connection.
pub struct Link {
    client: Client,
    patience: Duration,
}

impl Link {
    /// Prepares a connection; it is made by the first call. `patience` is how long each call may take.
    ///
    /// # Errors
    /// When the endpoint or the certificates cannot be used.
    pub async fn open(endpoint: &str, credentials: &Credentials, patience: Duration) -> Result<Link, Trouble> {
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(&credentials.authority))
            .identity(Identity::from_pem(&credentials.certificate, &credentials.key));
        let options = ConnectOptions::new()
            .with_connect_timeout(patience)
            // A cut line says nothing: without these a watch would wait on it for ever.
            .with_keep_alive(patience, patience)
            .with_keep_alive_while_idle(true)
            .with_require_leader(true);
        let options = if endpoint.starts_with("http://") { options } else { options.with_tls(tls) };
        let client = within(patience, Client::connect([endpoint], Some(options))).await?;
        Ok(Link { client, patience })
    }

    /// Id of the member of this name; `None` when no member has it (one that has not started yet has no name).
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn member(&mut self, name: &str) -> Result<Option<u64>, Trouble> {
        let list = within(self.patience, self.client.member_list()).await?;
        Ok(list.members().iter().find(|member| member.name() == name).map(|member| member.id()))
    }

    /// Reads one key.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn get(&mut self, key: &str) -> Result<Read, Trouble> {
        self.read(key, GetOptions::new()).await
    }

    /// Reads all keys that begin so.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn below(&mut self, prefix: &str) -> Result<Read, Trouble> {
        self.read(prefix, GetOptions::new().with_prefix()).await
    }

    /// Reads the last of the keys that begin so, without its value.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn last(&mut self, prefix: &str) -> Result<Option<Vec<u8>>, Trouble> {
        let options = GetOptions::new().with_prefix().with_keys_only().with_limit(1);
        let read = self.read(prefix, options.with_sort(SortTarget::Key, SortOrder::Descend)).await?;
        Ok(read.keys.into_iter().next().map(|stored| stored.key))
    }

    async fn read(&mut self, key: &str, options: GetOptions) -> Result<Read, Trouble> {
        let response = within(self.patience, self.client.get(key, Some(options))).await?;
        let stored = |kv: &etcd_client::KeyValue| Stored {
            key: kv.key().to_vec(),
            value: kv.value().to_vec(),
            lease: kv.lease(),
            changed: kv.mod_revision(),
        };
        Ok(Read {
            keys: response.kvs().iter().map(stored).collect(),
            revision: response.header().map_or(0, |header| header.revision()),
        })
    }

    /// Makes all changes in one transaction, if all guards hold.
    ///
    /// # Errors
    /// When it is not answered, or refused. When it was not answered it may have been done.
    pub async fn commit(&mut self, guards: &[Guard], changes: &[Change]) -> Result<Done, Trouble> {
        let compare = |guard: &Guard| {
            let Guard::Changed(key, revision) = guard;
            Compare::mod_revision(key.as_str(), CompareOp::Equal, *revision)
        };
        let operation = |change: &Change| match change {
            Change::Put(key, value, 0) => TxnOp::put(key.as_str(), value.as_str(), None),
            Change::Put(key, value, lease) => {
                TxnOp::put(key.as_str(), value.as_str(), Some(PutOptions::new().with_lease(*lease)))
            }
            Change::Delete(key) => TxnOp::delete(key.as_str(), None),
        };
        let txn = Txn::new()
            .when(guards.iter().map(compare).collect::<Vec<_>>())
            .and_then(changes.iter().map(operation).collect::<Vec<_>>());
        let response = within(self.patience, self.client.txn(txn)).await?;
        let revision = response.header().map_or(0, |header| header.revision());
        Ok(if response.succeeded() { Done::At(revision) } else { Done::NotSo })
    }

    /// Grants a lease; gives its id.
    ///
    /// # Errors
    /// When it is not answered, or refused.
    pub async fn grant(&mut self, ttl: Duration) -> Result<i64, Trouble> {
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        Ok(within(self.patience, self.client.lease_grant(seconds, None)).await?.id())
    }

    /// Ends a lease, and with it all keys that are under it.
    ///
    /// # Errors
    /// When it is not answered, or refused.
    pub async fn revoke(&mut self, lease: i64) -> Result<(), Trouble> {
        within(self.patience, self.client.lease_revoke(lease)).await.map(|_| ())
    }

    /// Begins to keep a lease alive; `None` when there is no such lease any more.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn keep(&mut self, lease: i64) -> Result<Option<Keeper>, Trouble> {
        match within(self.patience, self.client.lease_keep_alive(lease)).await {
            Ok((keeper, stream)) => Ok(Some(Keeper { keeper, stream, patience: self.patience })),
            Err(trouble) if trouble.lease_is_gone() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Watches from a revision on.
    ///
    /// # Errors
    /// When it cannot be begun.
    pub async fn watch(&mut self, what: &[Watched], from: i64) -> Result<Watch, Trouble> {
        let options = |watched: &Watched| {
            let options = WatchOptions::new().with_start_revision(from);
            match watched {
                Watched::Key(key) => (key.clone(), options),
                Watched::Prefix(prefix) => (prefix.clone(), options.with_prefix()),
            }
        };
        let mut all = what.iter().map(options);
        let Some((first, one)) = all.next() else { return Err(Trouble::new("nothing to watch")) };
        let mut stream = within(self.patience, self.client.watch(first, Some(one))).await?;
        for (key, one) in all {
            within(self.patience, stream.watch(key, Some(one))).await?;
        }
        Ok(Watch { stream })
    }
}

/// Keeps one lease alive.
pub struct Keeper {
    keeper: LeaseKeeper,
    stream: LeaseKeepAliveStream,
    patience: Duration,
}

impl Keeper {
    /// Keeps it alive once more; false when it is gone.
    ///
    /// # Errors
    /// When it is not answered.
    pub async fn once_more(&mut self) -> Result<bool, Trouble> {
        let (keeper, stream) = (&mut self.keeper, &mut self.stream);
        let answer = within(self.patience, async move {
            keeper.keep_alive().await?;
            stream.message().await
        });
        match answer.await? {
            Some(response) => Ok(response.ttl() > 0),
            None => Err(Trouble::new("the member ended the stream of renewals")),
        }
    }
}

/// A watch that was begun.
pub struct Watch {
    stream: WatchStream,
}

impl Watch {
    /// Waits for what it says next. May be dropped while it waits.
    pub async fn next(&mut self) -> Told {
        match self.stream.message().await {
            Ok(Some(response)) if response.canceled() => {
                let reason = match (response.compact_revision(), response.cancel_reason()) {
                    (0, "") => "it was ended".to_owned(),
                    (0, reason) => reason.to_owned(),
                    (revision, _) => format!("the history was compacted at revision {revision}"),
                };
                Told::Over(reason)
            }
            Ok(Some(response)) => {
                let event = |event: &etcd_client::Event| {
                    let kv = event.kv()?;
                    let deleted = event.event_type() == EventType::Delete;
                    Some(Event { key: kv.key().to_vec(), revision: kv.mod_revision(), deleted })
                };
                Told::Events(response.events().iter().filter_map(event).collect())
            }
            Ok(None) => Told::Over("the member ended it".to_owned()),
            Err(error) => Told::Over(Trouble::from(error).to_string()),
        }
    }
}

async fn within<T>(
    patience: Duration,
    call: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(patience, call).await {
        Ok(result) => result.map_err(Trouble::from),
        Err(_) => Err(Trouble::new(format!("no answer within {} s", patience.as_secs_f32()))),
    }
}
