//! Why etcd would refuse to start with a configuration: its own checks, done before a boot.
//!
//! Sources: `embed/config.go` Validate, checkBindURLs, checkHostURLs; `embed/config_logging.go`; `etcdserver/config.go`
//! VerifyBootstrap and advertiseMatchesCluster. What 3.4 and 3.5 do was tried with 3.4.23, 3.5.0, 3.5.1, 3.5.16 and
//! 3.5.30; what 3.6 and 3.7 do is from their sources.

mod ciphers;
mod cluster;
mod logs;
mod types;
mod values;

#[cfg(test)]
mod tests;

pub use ciphers::{SUITES, Suite, With};
pub use values::{Retention, retention};

use super::config::{Config, Value};
use super::keys::{TRANSPORTS, reading};
use super::urls::Url;
use super::versions::Version;

/// Longest election timeout, in milliseconds (`maxElectionMs`).
pub const LONGEST_ELECTION_MS: i64 = 50_000;
/// The election timeout must be at least this many heartbeats.
pub const LEAST_HEARTBEATS: i64 = 5;
/// Defaults, in milliseconds.
const DEFAULT_HEARTBEAT_MS: i64 = 100;
const DEFAULT_ELECTION_MS: i64 = 1000;

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// A value of the wrong type, or none of those that are allowed.
    Value,
    /// A URL.
    Url,
    /// `initial-cluster` and what must agree with it.
    Cluster,
    /// Heartbeat and election timeout.
    Timing,
    /// Certificates.
    Tls,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Line of the file.
    pub line: usize,
    /// What it is about.
    pub about: About,
    /// The reason.
    pub message: String,
}

/// Every reason for which this version would not start.
pub fn refusals(config: &Config, version: Version) -> Vec<Refusal> {
    let mut all = Refusals { config, version, all: Vec::new() };
    types::check(&mut all);
    values::check(&mut all);
    logs::check(&mut all);
    cluster::check(&mut all);
    timing(&mut all);
    tls(&mut all);
    all.all
}

/// What is collected, with what it is about.
struct Refusals<'a> {
    config: &'a Config,
    version: Version,
    all: Vec<Refusal>,
}

impl Refusals<'_> {
    fn say(&mut self, line: usize, about: About, message: impl Into<String>) {
        self.all.push(Refusal { line, about, message: message.into() });
    }

    /// About a key of the top level.
    fn key(&mut self, about: About, key: &str, message: impl Into<String>) {
        self.say(self.config.line(None, key), about, message);
    }

    /// A key of the top level as text, where this version reads it; `Some("")` when it is there and empty.
    fn text(&self, key: &str) -> Option<String> {
        let entry = self.config.entry(None, key)?;
        reading(self.version, None, key).kind()?;
        match entry.value {
            Value::Text(_) => Some(entry.text().unwrap_or_default()),
            _ => None,
        }
    }

    /// A whole number of the top level, where this version reads it.
    fn whole(&self, key: &str) -> Option<i64> {
        reading(self.version, None, key).kind()?;
        self.config.whole(key)
    }

    /// A flag of the top level, where this version reads it.
    fn flag(&self, key: &str) -> bool {
        reading(self.version, None, key).kind().is_some() && self.config.flag(None, key) == Some(true)
    }

    /// The texts of a list.
    fn texts(&self, key: &str) -> Vec<String> {
        let value = self.config.entry(None, key).map(|entry| &entry.value);
        let Some(Value::List(items)) = value else { return Vec::new() };
        items.iter().filter_map(|item| if let Value::Text(text) = item { Some(text.clone()) } else { None }).collect()
    }
}

fn timing(all: &mut Refusals) {
    let config = all.config;
    let heartbeat = config.whole("heartbeat-interval").unwrap_or(DEFAULT_HEARTBEAT_MS);
    let election = config.whole("election-timeout").unwrap_or(DEFAULT_ELECTION_MS);
    let mut line = |key: &str, message: String| all.key(About::Timing, key, message);
    if heartbeat == 0 {
        line("heartbeat-interval", "`heartbeat-interval` is 0".to_owned());
    }
    if election == 0 {
        line("election-timeout", "`election-timeout` is 0".to_owned());
    } else if election < LEAST_HEARTBEATS * heartbeat {
        let message =
            format!("`election-timeout` {election} ms is less than {LEAST_HEARTBEATS} heartbeats of {heartbeat} ms");
        line("election-timeout", message);
    }
    if election > LONGEST_ELECTION_MS {
        line("election-timeout", format!("`election-timeout` {election} ms is more than {LONGEST_ELECTION_MS} ms"));
    }
}

fn tls(all: &mut Refusals) {
    let config = all.config;
    let listeners =
        [["listen-client-urls", "advertise-client-urls"], ["listen-peer-urls", "initial-advertise-peer-urls"]];
    for (section, keys) in TRANSPORTS.iter().zip(listeners) {
        let version = all.version;
        let has =
            |key: &str| reading(version, Some(section), key).kind().is_some() && config.text_in(section, key).is_some();
        for pair in [["cert-file", "key-file"], ["client-cert-file", "client-key-file"]] {
            for (have, lacks) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                if has(have) && !has(lacks) {
                    let line = config.line(Some(section), have);
                    all.say(line, About::Tls, format!("`{section}` has a `{have}` and no `{lacks}`"));
                }
            }
        }
        let (certificate, key) = (has("cert-file"), has("key-file"));
        let https = |text: &String| Url::parse(text).is_ok_and(|url| url.tls);
        let wants = keys.iter().find(|key| config.urls(key).iter().any(https));
        if let Some(key) = wants.filter(|_| !certificate && !key) {
            if config.flag(Some(section), "auto-tls") != Some(true) {
                all.key(About::Tls, key, format!("`{key}` is https, and `{section}` has no certificate"));
            } else if all.version == Version::new(3, 5, 0) {
                // Its default of 0 years is refused, and the file has no key for another.
                let line = config.line(Some(section), "auto-tls");
                all.say(line, About::Tls, "`auto-tls` does not work from a file in 3.5.0");
            }
        }
    }
}
