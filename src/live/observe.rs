//! What can be seen of the registry from outside, endpoint by endpoint. Nothing is judged here, and nothing written.

use std::time::{Duration, Instant};

use super::client::Client;
use super::credentials::{Credentials, Shown};
use super::endpoint::Endpoint;
use super::handshake::{Greeting, Kind, Trouble, get, greet};
use super::metrics::{self, Metrics};
use crate::etcd::ids::Id;

/// All that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// One per endpoint, in the order in which they were asked for.
    pub views: Vec<View>,
    /// The client certificate that was shown.
    pub client: Shown,
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
    /// What its server showed; `None` when there was no handshake.
    pub greeting: Option<Greeting>,
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
    /// Index of the last entry that raft has committed here.
    pub raft_index: u64,
    /// Index of the last entry that was applied here.
    pub applied_index: u64,
    /// Bytes of the backend's file.
    pub db_size: u64,
    /// Bytes of it that are in use; the rest is free for new data, and is given back by `defrag`.
    pub db_in_use: u64,
    /// `errors` of its status: `etcdserver: no leader`, and one line per alarm.
    pub errors: Vec<String>,
    /// Hash of all its keys; asked for only when a member is said to be corrupt, and not given to everybody.
    pub hash: Option<u32>,
    /// The member list, or why it was not given.
    pub members: Result<Vec<Member>, Trouble>,
    /// The faster of two status requests over one connection.
    pub round_trip: Duration,
    /// What it measures itself, or why it does not say.
    pub metrics: Result<Metrics, Trouble>,
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

/// What was seen for earlier images of the same run.
#[derive(Debug, Default)]
pub struct Earlier {
    views: Vec<(Vec<u8>, View)>,
}

impl Earlier {
    /// What can be used of it for an endpoint and a client certificate.
    fn of(&self, endpoint: &Endpoint, credentials: &Credentials) -> Known<'_> {
        let key = key(credentials);
        let mut known = Known::Nothing;
        for (shown, view) in self.views.iter().filter(|(_, view)| view.endpoint == *endpoint) {
            match &view.answer {
                _ if *shown == key => return Known::All(view),
                Ok(answer) => known = Known::Answer(answer, view.stranger_let_in),
                // Another certificate does not bring a dead host to life, and each would cost the whole timeout.
                Err(trouble) if trouble.kind.is_silence() => known = Known::Silence(trouble),
                Err(_) => {}
            }
        }
        known
    }
}

/// Whose certificate, and by which authority servers are judged.
fn key(credentials: &Credentials) -> Vec<u8> {
    [credentials.certificate_pem.as_slice(), credentials.authority_pem.as_slice()].concat()
}

enum Known<'a> {
    /// The same was asked.
    All(&'a View),
    /// The member has answered somebody else.
    Answer(&'a Answer, Option<bool>),
    /// Nobody is there.
    Silence(&'a Trouble),
    Nothing,
}

/// Looks at all endpoints at once; each may take `timeout` in all. What earlier images of the run have seen is not
/// asked again; whether the members take this one's certificate is.
pub fn observe(
    endpoints: &[Endpoint],
    credentials: &Credentials,
    timeout: Duration,
    earlier: &mut Earlier,
) -> Observed {
    let deadline = Instant::now() + timeout;
    let before = &*earlier;
    let views: Vec<View> = std::thread::scope(|scope| {
        let look = |endpoint| scope.spawn(move || view(endpoint, credentials, before, deadline));
        let threads: Vec<_> = endpoints.iter().map(|endpoint| (endpoint, look(endpoint))).collect();
        let lost = |endpoint: &Endpoint| {
            of_trouble(endpoint, Trouble::new(Kind::Request, "asking ended by a defect of fitout"))
        };
        threads.into_iter().map(|(e, thread)| thread.join().unwrap_or_else(|_| lost(e))).collect()
    });
    earlier.views.extend(views.iter().map(|view| (key(credentials), view.clone())));
    Observed { views, client: credentials.shown.clone(), at: time::OffsetDateTime::now_utc().unix_timestamp() }
}

/// As [`observe`], of what the members say alone: nobody tries to get in as a stranger, and no metrics are read. For who
/// looks again and again.
pub fn answers(endpoints: &[Endpoint], credentials: &Credentials, timeout: Duration) -> Observed {
    let deadline = Instant::now() + timeout;
    let views = std::thread::scope(|scope| {
        let look = |endpoint: &Endpoint| {
            let greeting = greet(endpoint, credentials, true, deadline);
            let answer = greeting.clone().and_then(|_| Client::new(endpoint, credentials, deadline)?.ask(deadline));
            View { endpoint: endpoint.clone(), answer, greeting: greeting.ok(), stranger_let_in: None }
        };
        let threads: Vec<_> = endpoints.iter().map(|e| (e, scope.spawn(move || look(e)))).collect();
        let lost = |endpoint: &Endpoint| {
            of_trouble(endpoint, Trouble::new(Kind::Request, "asking ended by a defect of fitout"))
        };
        threads.into_iter().map(|(e, thread)| thread.join().unwrap_or_else(|_| lost(e))).collect()
    });
    Observed { views, client: credentials.shown.clone(), at: time::OffsetDateTime::now_utc().unix_timestamp() }
}

fn of_trouble(endpoint: &Endpoint, trouble: Trouble) -> View {
    View { endpoint: endpoint.clone(), answer: Err(trouble), greeting: None, stranger_let_in: None }
}

fn view(endpoint: &Endpoint, credentials: &Credentials, earlier: &Earlier, deadline: Instant) -> View {
    let known = earlier.of(endpoint, credentials);
    match known {
        Known::All(view) => return view.clone(),
        Known::Silence(trouble) => return of_trouble(endpoint, trouble.clone()),
        Known::Answer(..) | Known::Nothing => {}
    }
    let greeting = match greet(endpoint, credentials, true, deadline) {
        Ok(greeting) => Some(greeting),
        Err(trouble) => return of_trouble(endpoint, trouble),
    };
    if let Known::Answer(answer, stranger_let_in) = known {
        return View { endpoint: endpoint.clone(), answer: Ok(answer.clone()), greeting, stranger_let_in };
    }
    let answer = ask(endpoint, credentials, deadline);
    // Only worth asking where the server's own side of TLS is in order.
    let stranger_let_in = answer.is_ok().then(|| greet(endpoint, credentials, false, deadline));
    let stranger_let_in = stranger_let_in.and_then(|greeting| match greeting {
        Ok(_) => Some(true),
        Err(Trouble { kind: Kind::ClientRefused, .. }) => Some(false),
        Err(_) => None,
    });
    View { endpoint: endpoint.clone(), answer, greeting, stranger_let_in }
}

fn ask(endpoint: &Endpoint, credentials: &Credentials, deadline: Instant) -> Result<Answer, Trouble> {
    let mut answer = Client::new(endpoint, credentials, deadline)?.ask(deadline)?;
    answer.metrics = get(endpoint, credentials, "/metrics", metrics::LIMIT, deadline).map(|text| metrics::parse(&text));
    Ok(answer)
}
