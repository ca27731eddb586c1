//! A client of the first member that can be used: our own handshake first, so that the reason of a refusal is known, then a
//! member that knows a leader.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::client::Client;
use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::handshake::{Kind, Trouble, greet};
use crate::finding::Failure;

/// A member that answers.
#[derive(Debug)]
pub struct Reached {
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// A client of it.
    pub client: Client,
    /// What was shown to it.
    pub credentials: Arc<Credentials>,
}

/// Tries all endpoints at once and takes the first that greets, answers and knows a leader.
///
/// # Errors
/// When there is none within `timeout`: the reason of each endpoint.
pub fn reach(endpoints: &[Endpoint], credentials: Credentials, timeout: Duration) -> Result<Reached, Failure> {
    reach_again(endpoints, &Arc::new(credentials), timeout)
}

/// As [`reach`], by credentials that were shown before.
///
/// # Errors
/// As [`reach`].
pub fn reach_again(
    endpoints: &[Endpoint],
    credentials: &Arc<Credentials>,
    timeout: Duration,
) -> Result<Reached, Failure> {
    let deadline = Instant::now() + timeout;
    let (sender, receiver) = mpsc::channel();
    for (n, endpoint) in endpoints.iter().enumerate() {
        let (sender, endpoint, credentials) = (sender.clone(), endpoint.clone(), credentials.clone());
        // Each ends at the deadline by itself. When another was first nobody listens, and that is no error.
        std::thread::spawn(move || {
            let client = open(&endpoint, &credentials, deadline);
            let _ = sender.send((n, endpoint, client));
        });
    }
    drop(sender);
    let mut troubles: Vec<(usize, Endpoint, Trouble)> = Vec::new();
    while let Ok((n, endpoint, client)) = receiver.recv() {
        match client {
            Ok(client) => return Ok(Reached { endpoint, client, credentials: credentials.clone() }),
            Err(trouble) => troubles.push((n, endpoint, trouble)),
        }
    }
    troubles.sort_by_key(|(n, ..)| *n);
    Err(nobody(&troubles, timeout))
}

fn open(endpoint: &Endpoint, credentials: &Credentials, deadline: Instant) -> Result<Client, Trouble> {
    greet(endpoint, credentials, true, deadline)?;
    let client = Client::new(endpoint, credentials, deadline)?;
    if client.leader(deadline)?.is_none() {
        return Err(Trouble::new(Kind::Request, "it knows no leader: the registry has no quorum there"));
    }
    Ok(client)
}

/// Why none can be used.
fn nobody(troubles: &[(usize, Endpoint, Trouble)], timeout: Duration) -> Failure {
    let lines: Vec<String> = troubles.iter().map(|(_, e, trouble)| format!("\n  {e}: {}", trouble.reason)).collect();
    let kinds = |kind: Kind| troubles.iter().any(|(_, _, trouble)| trouble.kind == kind);
    let help = if kinds(Kind::ClientRefused) {
        "the registry does not take this certificate: it must be of the mesh's client authority and not over; `fitout pki \
         status` shows it"
    } else if troubles.iter().all(|(_, _, trouble)| trouble.kind.is_silence()) {
        "is this host in the mesh's network, and was the registry started? `systemctl enable --now mesh-registry.target` on \
         each voter; etcd says nothing until it has a quorum"
    } else {
        "`fitout check` on an image of the mesh looks closer"
    };
    let text = format!("no member of the registry can be used within {} s:{}", timeout.as_secs_f32(), lines.concat());
    Failure::new(text).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_its_reason() {
        let all = |kinds: &[Kind]| {
            let each = |(n, kind): (usize, &Kind)| {
                (n, format!("10.0.0.{n}").parse().unwrap(), Trouble::new(*kind, format!("why {n}")))
            };
            nobody(&kinds.iter().enumerate().map(each).collect::<Vec<_>>(), Duration::from_secs(5))
        };
        let failure = all(&[Kind::Unreachable, Kind::Silent]);
        assert_eq!(
            failure.message,
            "no member of the registry can be used within 5 s:\n  https://10.0.0.0:2379: why 0\n  https://10.0.0.1:2379: why 1"
        );
        assert!(failure.help.unwrap().starts_with("is this host in the mesh's network"));
        assert!(all(&[Kind::ClientRefused, Kind::Silent]).help.unwrap().contains("does not take this certificate"));
        assert!(all(&[Kind::ServerName]).help.unwrap().contains("looks closer"));
    }
}
