//! What the images of one run see of the registry's keys: read once, and by each as far as it may.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::check::Options;
use super::client::Client;
use super::credentials::Credentials;
use super::endpoint::Endpoint;
use super::handshake::Trouble;
use super::judge::keys::{Rate, Seen};
use super::keys::{Keys, outside, read, revision};
use crate::etcd::ids::Id;

/// What was read for one image.
#[derive(Debug, Clone)]
pub struct Looked {
    keys: Result<Arc<Keys>, Trouble>,
    node_sees_outside: Option<bool>,
    rate: Option<Rate>,
}

impl Looked {
    /// For the rules.
    pub fn seen<'a>(&'a self, cluster: Id, whose: &'a str, at: i64) -> Seen<'a> {
        let keys = self.keys.as_deref();
        Seen { keys, whose, node_sees_outside: self.node_sees_outside, cluster, rate: self.rate, at }
    }
}

/// What was read for earlier images of a run: the keys are the same for whoever may read them.
#[derive(Debug, Default)]
pub struct Earlier {
    keys: Option<Arc<Keys>>,
    rate: Option<Rate>,
}

impl Earlier {
    /// Reads with the credentials that are shown; `own` are the image's, when those are an operator's.
    pub fn look(
        &mut self,
        endpoint: &Endpoint,
        shown: &Credentials,
        own: Option<&Credentials>,
        options: &Options,
    ) -> Looked {
        let patience = options.timeout;
        let client = |credentials| Client::new(endpoint, credentials, Instant::now() + patience);
        let mut looked = Looked { keys: self.read(client(shown), patience), node_sees_outside: None, rate: None };
        looked.node_sees_outside = match own {
            // That the operator may look there says nothing.
            Some(own) => client(own).and_then(|client| outside(&client, patience)).ok().map(|seen| seen.is_some()),
            None if options.given.is_some() => None,
            None => looked.keys.as_ref().ok().map(|keys| keys.outside.is_some()),
        };
        if let (Ok(keys), false) = (&looked.keys, options.write_rate.is_zero()) {
            let since = (keys.mesh.revision, Instant::now());
            let rate = || client(shown).and_then(|client| rate(&client, since, options.write_rate, patience)).ok();
            self.rate = self.rate.or_else(rate);
            looked.rate = self.rate;
        }
        looked
    }

    /// Another image's user must be let in too, and what it may see elsewhere is its own affair.
    fn read(&mut self, client: Result<Client, Trouble>, patience: Duration) -> Result<Arc<Keys>, Trouble> {
        let client = client?;
        let keys = match &self.keys {
            None => Arc::new(read(&client, patience)?),
            Some(keys) => {
                revision(&client, patience)?;
                let outside = outside(&client, patience)?;
                if outside == keys.outside { keys.clone() } else { Arc::new(Keys { outside, ..(**keys).clone() }) }
            }
        };
        self.keys = Some(keys.clone());
        Ok(keys)
    }
}

/// Revisions over a time that begins with `since`.
fn rate(client: &Client, since: (i64, Instant), time: Duration, patience: Duration) -> Result<Rate, Trouble> {
    std::thread::sleep(time.saturating_sub(since.1.elapsed()));
    let (now, took) = (revision(client, patience)?, since.1.elapsed());
    Ok(Rate { revisions: u64::try_from(now - since.0).unwrap_or_default(), time: took })
}
