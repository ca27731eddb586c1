//! Why etcd would refuse to start with a configuration: its own checks, done before a boot.
//!
//! Sources: `embed/config.go` Validate, checkBindURLs, checkHostURLs; `etcdserver/config.go` VerifyBootstrap and
//! advertiseMatchesCluster; each message was seen with a real etcd.

use std::collections::BTreeMap;

use super::config::{Config, Value};
use super::keys::{Kind, Reading, TRANSPORTS, reading};
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
    let mut all = Vec::new();
    types(config, version, &mut all);
    values(config, version, &mut all);
    urls(config, &mut all);
    cluster(config, &mut all);
    timing(config, &mut all);
    tls(config, &mut all);
    all
}

fn say(all: &mut Vec<Refusal>, line: usize, about: About, message: String) {
    all.push(Refusal { line, about, message });
}

/// A value of another type than its key's.
fn types(config: &Config, version: Version, all: &mut Vec<Refusal>) {
    for entry in &config.entries {
        let Reading::Known(kind) = reading(version, entry.section.as_deref(), &entry.key) else { continue };
        let wanted = match (kind, &entry.value) {
            (_, Value::Null) | (Kind::Any, _) => continue,
            (Kind::Text | Kind::Urls, Value::Text(_) | Value::Whole(_) | Value::Number(_) | Value::Flag(_)) => continue,
            (Kind::Flag, Value::Flag(_)) | (Kind::Texts, Value::List(_)) | (Kind::Section, Value::Section) => continue,
            (Kind::Whole | Kind::Nanoseconds, Value::Whole(number))
                if *number >= 0 || entry.key == "quota-backend-bytes" =>
            {
                continue;
            }
            (Kind::Text, _) => "text",
            (Kind::Urls, _) => "URLs in one text, separated by commas",
            (Kind::Flag, _) => "`true` or `false`",
            (Kind::Whole, _) => "a whole number",
            (Kind::Nanoseconds, _) => "a whole number of nanoseconds (`10m` is for the flag only)",
            (Kind::Texts, _) => "a list of texts",
            (Kind::Section, _) => "a section of keys",
        };
        say(all, entry.line, About::Value, format!("`{}` must be {wanted}", entry.key));
    }
}

/// Keys with a few allowed values.
fn values(config: &Config, version: Version, all: &mut Vec<Refusal>) {
    let loggers: &[&str] = if version < Version::new(3, 5, 0) { &["zap", "capnslog"] } else { &["zap"] };
    let allowed: [(&str, &[&str]); 4] = [
        ("initial-cluster-state", &["new", "existing"]),
        ("auto-compaction-mode", &["periodic", "revision"]),
        ("logger", loggers),
        ("log-level", &["debug", "info", "warn", "error", "panic", "fatal"]),
    ];
    for (key, words) in allowed {
        if let Some(value) = config.text(key).filter(|value| !words.contains(&value.as_str())) {
            let list = words.join("`, `");
            say(all, config.line(None, key), About::Value, format!("`{key}` is `{value}`, not one of `{list}`"));
        }
    }
}

fn urls(config: &Config, all: &mut Vec<Refusal>) {
    let listeners = ["listen-peer-urls", "listen-client-urls", "listen-metrics-urls", "listen-client-http-urls"];
    let advertised = ["initial-advertise-peer-urls", "advertise-client-urls"];
    for key in listeners.iter().chain(&advertised) {
        let list = config.urls(key);
        for (index, text) in list.iter().enumerate() {
            let parsed = Url::parse(text);
            let bound = parsed.and_then(|url| if listeners.contains(key) { url.binds() } else { Ok(()) });
            if let Err(error) = bound {
                say(all, config.line(None, key), About::Url, format!("`{key}` has `{text}`: {error}"));
            }
            if list[..index].contains(text) {
                say(all, config.line(None, key), About::Url, format!("`{key}` has `{text}` twice"));
            }
        }
    }
    // A missing `advertise-client-urls` is refused of flags only: of a file etcd takes its default.
    let clients = config.urls("listen-client-urls");
    for url in config.urls("listen-client-http-urls").iter().filter(|url| clients.contains(url)) {
        let line = config.line(None, "listen-client-http-urls");
        say(all, line, About::Url, format!("`{url}` is in `listen-client-urls` too"));
    }
}

fn cluster(config: &Config, all: &mut Vec<Refusal>) {
    let line = |key: &str| config.line(None, key);
    let ways = ["discovery", "discovery-srv", "initial-cluster"];
    let given: Vec<&str> = ways.into_iter().filter(|key| config.text(key).is_some()).collect();
    if given.len() > 1 {
        say(all, line(given[1]), About::Cluster, format!("only one of `{}` may be given", given.join("`, `")));
    }
    let members = config.initial_cluster();
    if members.is_empty() {
        return;
    }
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (index, (name, url)) in members.iter().enumerate() {
        if let Err(error) = Url::parse(url) {
            say(all, line("initial-cluster"), About::Cluster, format!("`initial-cluster` has `{name}={url}`: {error}"));
        }
        if members[..index].iter().any(|(_, other)| other == url) {
            say(all, line("initial-cluster"), About::Cluster, format!("`initial-cluster` has the URL `{url}` twice"));
        }
        by_name.entry(name).or_default().push(url);
    }
    // etcd's default name; it warns of it only.
    let name = config.text("name").unwrap_or_else(|| "default".to_owned());
    let mut own = by_name.get(name.as_str()).cloned().unwrap_or_default();
    if own.is_empty() {
        say(
            all,
            line("initial-cluster"),
            About::Cluster,
            format!("`initial-cluster` has no member with this node's `name: {name}`"),
        );
        return;
    }
    let advertised = config.urls("initial-advertise-peer-urls");
    let mut advertised: Vec<&str> = advertised.iter().map(String::as_str).collect();
    own.sort_unstable();
    advertised.sort_unstable();
    if own != advertised {
        let (own, advertised) = (own.join(","), advertised.join(","));
        let message =
            format!("`initial-cluster` has `{name}={own}`, and `initial-advertise-peer-urls` is `{advertised}`");
        say(all, line("initial-advertise-peer-urls"), About::Cluster, message);
    }
}

fn timing(config: &Config, all: &mut Vec<Refusal>) {
    let heartbeat = config.whole("heartbeat-interval").unwrap_or(DEFAULT_HEARTBEAT_MS);
    let election = config.whole("election-timeout").unwrap_or(DEFAULT_ELECTION_MS);
    let mut line = |key: &str, message: String| say(all, config.line(None, key), About::Timing, message);
    if heartbeat == 0 {
        line("heartbeat-interval", "`heartbeat-interval` is 0".to_owned());
    }
    if election < LEAST_HEARTBEATS * heartbeat {
        let message =
            format!("`election-timeout` {election} ms is less than {LEAST_HEARTBEATS} heartbeats of {heartbeat} ms");
        line("election-timeout", message);
    }
    if election > LONGEST_ELECTION_MS {
        line("election-timeout", format!("`election-timeout` {election} ms is more than {LONGEST_ELECTION_MS} ms"));
    }
}

fn tls(config: &Config, all: &mut Vec<Refusal>) {
    let listeners =
        [["listen-client-urls", "advertise-client-urls"], ["listen-peer-urls", "initial-advertise-peer-urls"]];
    for (section, keys) in TRANSPORTS.iter().zip(listeners) {
        let files = ["cert-file", "key-file"].map(|key| config.text_in(section, key));
        let automatic = config.flag(Some(section), "auto-tls") == Some(true);
        let https = |text: &String| Url::parse(text).is_ok_and(|url| url.tls);
        let wants = keys.iter().find(|key| config.urls(key).iter().any(https));
        match (files, wants) {
            ([Some(_), None], _) => {
                say(
                    all,
                    config.line(Some(section), "cert-file"),
                    About::Tls,
                    format!("`{section}` has a `cert-file` and no `key-file`"),
                );
            }
            ([None, Some(_)], _) => {
                say(
                    all,
                    config.line(Some(section), "key-file"),
                    About::Tls,
                    format!("`{section}` has a `key-file` and no `cert-file`"),
                );
            }
            ([None, None], Some(key)) if !automatic => {
                say(
                    all,
                    config.line(None, key),
                    About::Tls,
                    format!("`{key}` is https, and `{section}` has no certificate"),
                );
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
name: n1
data-dir: /var/lib/etcd
listen-peer-urls: https://10.0.0.1:2380
listen-client-urls: https://10.0.0.1:2379,https://127.0.0.1:2379
listen-metrics-urls: http://127.0.0.1:2381
initial-advertise-peer-urls: https://10.0.0.1:2380
advertise-client-urls: https://10.0.0.1:2379
initial-cluster: n1=https://10.0.0.1:2380,n2=https://10.0.0.2:2380
initial-cluster-token: m-g1
initial-cluster-state: new
heartbeat-interval: 100
election-timeout: 1000
quota-backend-bytes: 2147483648
auto-compaction-mode: periodic
logger: zap
client-transport-security:
  cert-file: /c
  key-file: /k
peer-transport-security:
  cert-file: /c
  key-file: /k
";

    fn reasons(text: &str) -> Vec<String> {
        let config = Config::parse(text).unwrap();
        refusals(&config, Version::new(3, 5, 16)).iter().map(|r| format!("{}: {}", r.line, r.message)).collect()
    }

    #[test]
    fn each_mistake_is_refused_with_its_line() {
        assert_eq!(reasons(GOOD), [] as [&str; 0]);
        let table: &[(&str, &str, &str)] = &[
            (
                "heartbeat-interval: 100",
                "heartbeat-interval: \"100\"",
                "11: `heartbeat-interval` must be a whole number",
            ),
            (
                "heartbeat-interval: 100",
                "heartbeat-interval: 300",
                "12: `election-timeout` 1000 ms is less than 5 heartbeats of 300 ms",
            ),
            (
                "election-timeout: 1000",
                "election-timeout: 60000",
                "12: `election-timeout` 60000 ms is more than 50000 ms",
            ),
            ("logger: zap", "logger: capnslog", "15: `logger` is `capnslog`, not one of `zap`"),
            (
                "cluster-state: new",
                "cluster-state: old",
                "10: `initial-cluster-state` is `old`, not one of `new`, `existing`",
            ),
            (
                "logger: zap",
                "grpc-keepalive-timeout: 10s",
                "15: `grpc-keepalive-timeout` must be a whole number of nanoseconds (`10m` is for the flag only)",
            ),
            ("logger: zap", "log-outputs: stderr", "15: `log-outputs` must be a list of texts"),
            ("logger: zap", "pre-vote: 1", "15: `pre-vote` must be `true` or `false`"),
            (
                "listen-peer-urls: https://10.0.0.1:2380",
                "listen-peer-urls: https://n1.mesh:2380",
                "3: `listen-peer-urls` has `https://n1.mesh:2380`: a listener needs an IP address, `n1.mesh` is a name",
            ),
            (
                "listen-peer-urls: https://10.0.0.1:2380",
                "listen-peer-urls: [https://10.0.0.1:2380]",
                "3: `listen-peer-urls` must be URLs in one text, separated by commas",
            ),
            ("name: n1", "name: n3", "8: `initial-cluster` has no member with this node's `name: n3`"),
            (
                "peer-urls: https://10.0.0.1:2380\nadvertise",
                "peer-urls: https://10.0.0.9:2380\nadvertise",
                "6: `initial-cluster` has `n1=https://10.0.0.1:2380`, and `initial-advertise-peer-urls` is `https://10.0.0.9:2380`",
            ),
            (
                "n2=https://10.0.0.2:2380",
                "n2=https://10.0.0.1:2380",
                "8: `initial-cluster` has the URL `https://10.0.0.1:2380` twice",
            ),
            ("logger: zap", "discovery-srv: mesh", "8: only one of `discovery-srv`, `initial-cluster` may be given"),
            (
                "client-transport-security:\n  cert-file: /c\n  key-file: /k\n",
                "",
                "4: `listen-client-urls` is https, and `client-transport-security` has no certificate",
            ),
            (
                "peer-transport-security:\n  cert-file: /c\n",
                "peer-transport-security:\n",
                "20: `peer-transport-security` has a `key-file` and no `cert-file`",
            ),
        ];
        for (from, to, want) in table {
            assert!(GOOD.contains(from), "{from}");
            assert_eq!(reasons(&GOOD.replacen(from, to, 1)), [*want], "{to}");
        }
    }
}
