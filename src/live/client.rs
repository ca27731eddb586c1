//! etcd's client for one endpoint. The calls are blocking: the runtime is inside.

mod items;

use std::future::Future;
use std::time::{Duration, Instant};

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use tokio::runtime::Runtime;

use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::handshake::{Kind, Trouble};
use super::observe::{Answer, Member};
use crate::etcd::ids::Id;
use crate::finding::Failure;

pub use items::{AT_ONCE, Item, Items};

/// A client of one member.
pub struct Client {
    runtime: Runtime,
    pub(super) inner: etcd_client::Client,
}

impl Client {
    /// Prepares a client. Nothing is sent yet: etcd-client connects at the first call.
    ///
    /// # Errors
    /// When the runtime cannot be made or the certificates are not accepted.
    pub fn new(endpoint: &Endpoint, credentials: &Credentials, deadline: Instant) -> Result<Client, Trouble> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Trouble::new(Kind::Request, format!("no runtime: {e}")))?;
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(&credentials.authority_pem))
            .identity(Identity::from_pem(&credentials.certificate_pem, credentials.key_pem.as_slice()));
        let options = ConnectOptions::new().with_tls(tls).with_connect_timeout(left(deadline));
        let connecting = etcd_client::Client::connect([endpoint.to_string()], Some(options));
        let inner = runtime
            .block_on(async { tokio::time::timeout(left(deadline), connecting).await })
            .map_err(|_| Trouble::new(Kind::Silent, "no answer in time"))?
            .map_err(|e| Trouble::new(Kind::Request, reason(&e)))?;
        Ok(Client { runtime, inner })
    }

    /// What this member says of itself and of the member list; its metrics are not asked for here. Only reads, and only calls that a member
    /// answers alone: `alarm` would go through consensus, so alarms are taken from the status.
    ///
    /// # Errors
    /// When the status is not answered in time. A member list that is not answered (etcd 3.5 asks the leader for it)
    /// is part of the answer.
    pub fn ask(&mut self, deadline: Instant) -> Result<Answer, Trouble> {
        let first = self.status(deadline)?;
        // The first one also opened the connection.
        let second = self.status(deadline)?;
        let (status, round_trip) = (second.0, first.1.min(second.1));
        let header = status.header();
        let mut client = self.inner.clone();
        let members = self.call(deadline, async move { client.member_list().await }).map(|list| {
            let member = |m: &etcd_client::Member| Member {
                id: Id(m.id()),
                name: m.name().to_owned(),
                peer_urls: m.peer_urls().to_vec(),
                client_urls: m.client_urls().to_vec(),
                learner: m.is_learner(),
            };
            list.members().iter().map(member).collect()
        });
        // An alarm does not always name the right member: a corrupt leader blames others, and 3.5 may name none.
        let corrupt = status.errors().iter().any(|error| error.contains("alarm:CORRUPT"));
        let mut client = self.inner.clone();
        let hash = corrupt.then(|| self.call(deadline, async move { client.hash_kv(0).await }));
        Ok(Answer {
            cluster: Id(header.map_or(0, |h| h.cluster_id())),
            member: Id(header.map_or(0, |h| h.member_id())),
            version: status.version().to_owned(),
            leader: (status.leader() != 0).then(|| Id(status.leader())),
            learner: status.is_learner(),
            raft_index: status.raft_index(),
            applied_index: status.raft_applied_index(),
            db_size: u64::try_from(status.db_size()).unwrap_or_default(),
            db_in_use: u64::try_from(status.raft_used_db_size()).unwrap_or_default(),
            errors: status.errors().to_vec(),
            hash: hash.and_then(Result::ok).map(|response| response.hash()),
            members,
            round_trip,
            metrics: Err(Trouble::new(Kind::Request, "not asked for")),
        })
    }

    /// A status, and how long it took.
    fn status(&self, deadline: Instant) -> Result<(etcd_client::StatusResponse, Duration), Trouble> {
        let mut client = self.inner.clone();
        let start = Instant::now();
        let status = self.call(deadline, async move { client.status().await })?;
        Ok((status, start.elapsed()))
    }

    /// The leader that this member knows.
    ///
    /// # Errors
    /// When the status is not answered in time.
    pub fn leader(&self, deadline: Instant) -> Result<Option<Id>, Trouble> {
        let status = self.with(deadline, async |mut client| client.status().await)?;
        Ok((status.leader() != 0).then(|| Id(status.leader())))
    }

    /// Any request of etcd-client's, until a deadline. All of its clones share one connection.
    ///
    /// # Errors
    /// What etcd says, or [`Kind::Silent`] when it says nothing in time.
    pub fn with<T, F>(&self, deadline: Instant, request: F) -> Result<T, Trouble>
    where
        F: AsyncFnOnce(etcd_client::Client) -> Result<T, etcd_client::Error>,
    {
        self.call(deadline, request(self.inner.clone()))
    }

    /// Writes a key.
    ///
    /// # Errors
    /// When it is not done in time.
    pub fn put(&mut self, key: &str, value: &str, deadline: Instant) -> Result<(), Trouble> {
        let mut client = self.inner.clone();
        let (key, value) = (key.to_owned(), value.to_owned());
        self.call(deadline, async move { client.put(key, value, None).await }).map(|_| ())
    }

    /// Reads a key, linearizable; `None` when it is not there.
    ///
    /// # Errors
    /// When it is not answered in time.
    pub fn get(&mut self, key: &str, deadline: Instant) -> Result<Option<String>, Trouble> {
        let mut client = self.inner.clone();
        let key = key.to_owned();
        let response = self.call(deadline, async move { client.get(key, None).await })?;
        Ok(response.kvs().first().map(|kv| String::from_utf8_lossy(kv.value()).into_owned()))
    }

    /// Removes a key and tells whether it was there.
    ///
    /// # Errors
    /// When it is not done in time.
    pub fn delete(&mut self, key: &str, deadline: Instant) -> Result<bool, Trouble> {
        let mut client = self.inner.clone();
        let key = key.to_owned();
        Ok(self.call(deadline, async move { client.delete(key, None).await })?.deleted() > 0)
    }

    /// Runs one request to its end.
    ///
    /// # Errors
    /// When it is not done in time, or etcd refuses it; [`Kind::Denied`] when the user may not.
    pub(super) fn call<T>(
        &self,
        deadline: Instant,
        request: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, Trouble> {
        self.runtime
            .block_on(async { tokio::time::timeout(left(deadline), request).await })
            .map_err(|_| Trouble::new(Kind::Silent, "no answer in time"))?
            .map_err(|e| Trouble::new(kind(&e), reason(&e)))
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Failure {
        Failure::new(trouble.reason)
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// etcd's `ErrGRPCPermissionDenied` is of code 7, and a certificate without user gets `ErrGRPCUserEmpty` or, when only the
/// user is missing, `ErrGRPCUserNotFound` (`api/v3rpc/rpctypes/error.go`).
fn kind(error: &etcd_client::Error) -> Kind {
    const PERMISSION_DENIED: i32 = 7;
    let etcd_client::Error::GRpcStatus(status) = error else { return Kind::Request };
    let text = status.message();
    let unknown = text.contains("user name is empty") || text.contains("user name not found");
    if status.code() as i32 == PERMISSION_DENIED || unknown { Kind::Denied } else { Kind::Request }
}

/// The message of etcd with the causes that gRPC keeps behind it.
pub(super) fn reason(error: &etcd_client::Error) -> String {
    let etcd_client::Error::GRpcStatus(status) = error else { return error.to_string() };
    let mut text = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text = if text.is_empty() { message } else { format!("{text}: {message}") };
        }
        cause = error.source();
    }
    if text.is_empty() { format!("{:?}", status.code()) } else { text }
}
