//! What can be seen of the registry from outside, endpoint by endpoint. Nothing is judged here, and nothing written.

use std::time::{Duration, Instant};

use super::client::Client;
use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::handshake::{Kind, Trouble, greet};
use crate::etcd::ids::Id;

/// All that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// One per endpoint, in the order in which they were asked for.
    pub views: Vec<View>,
    /// Life of the client certificate that was shown: not before, not after, seconds since 1970.
    pub client_validity: (i64, i64),
    /// When, seconds since 1970.
    pub at: i64,
}

/// What was seen at one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// What the member said, or why it said nothing.
    pub answer: Result<Answer, Trouble>,
    /// Whether a client without certificate is let in; `None` when that could not be found out.
    pub stranger_let_in: Option<bool>,
}

/// What a member says of itself and its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Cluster id.
    pub cluster: Id,
    /// Its own member id.
    pub member: Id,
    /// Version of etcd.
    pub version: String,
    /// The leader it knows of.
    pub leader: Option<Id>,
    /// It is a learner.
    pub learner: bool,
    /// `errors` of its status: `etcdserver: no leader`, and one line per alarm.
    pub errors: Vec<String>,
    /// The member list, or why it was not given.
    pub members: Result<Vec<Member>, Trouble>,
}

/// One member of the member list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Member id.
    pub id: Id,
    /// Name; empty until an added member starts for the first time.
    pub name: String,
    /// Peer URLs.
    pub peer_urls: Vec<String>,
    /// Client URLs; empty until it has been started.
    pub client_urls: Vec<String>,
    /// It does not vote.
    pub learner: bool,
}

/// Looks at all endpoints at once; each may take `timeout` in all.
pub fn observe(endpoints: &[Endpoint], credentials: &Credentials, timeout: Duration) -> Observed {
    let deadline = Instant::now() + timeout;
    let views = std::thread::scope(|scope| {
        let threads: Vec<_> =
            endpoints.iter().map(|e| (e, scope.spawn(move || view(e, credentials, deadline)))).collect();
        let lost = |endpoint: &Endpoint| View {
            endpoint: endpoint.clone(),
            answer: Err(Trouble::new(Kind::Request, "asking ended by a defect of fitout")),
            stranger_let_in: None,
        };
        threads.into_iter().map(|(e, thread)| thread.join().unwrap_or_else(|_| lost(e))).collect()
    });
    Observed { views, client_validity: credentials.validity, at: time::OffsetDateTime::now_utc().unix_timestamp() }
}

fn view(endpoint: &Endpoint, credentials: &Credentials, deadline: Instant) -> View {
    let answer = greet(endpoint, credentials, true, deadline)
        .and_then(|()| Client::new(endpoint, credentials, deadline)?.ask(deadline));
    // Only worth asking where the server's own side of TLS is in order.
    let stranger_let_in = answer.is_ok().then(|| greet(endpoint, credentials, false, deadline));
    let stranger_let_in = stranger_let_in.and_then(|greeting| match greeting {
        Ok(()) => Some(true),
        Err(Trouble { kind: Kind::ClientRefused, .. }) => Some(false),
        Err(_) => None,
    });
    View { endpoint: endpoint.clone(), answer, stranger_let_in }
}
