//! URLs of the listeners, and `initial-cluster` with what must agree with it.

use std::collections::BTreeMap;

use super::{About, Refusals};
use crate::etcd::config::Value;
use crate::etcd::keys::reading;
use crate::etcd::urls::Url;
use crate::etcd::versions::Version;

/// First version whose URLs may be paths of sockets (CHANGELOG-3.5).
const SOCKETS: Version = Version::new(3, 5, 13);

/// Keys of listeners; then of what others are told.
const LISTENERS: [&str; 4] =
    ["listen-peer-urls", "listen-client-urls", "listen-metrics-urls", "listen-client-http-urls"];
const ADVERTISED: [&str; 2] = ["initial-advertise-peer-urls", "advertise-client-urls"];

/// Applies the checks.
pub(super) fn check(all: &mut Refusals) {
    urls(all);
    listeners(all);
    cluster(all);
}

/// The URLs of a key as they stand, empty ones too; none where this version does not read the key.
fn parts(all: &Refusals, key: &str) -> Vec<String> {
    match all.config.entry(None, key).map(|entry| &entry.value) {
        Some(Value::Text(text)) if !text.is_empty() && reading(all.version, None, key).kind().is_some() => {
            text.split(',').map(|part| part.trim().to_owned()).collect()
        }
        _ => Vec::new(),
    }
}

/// Sockets in the file system may have any path from 3.5.13 on, and before only the form `unix://name:number`.
fn is_socket(all: &Refusals, text: &str) -> bool {
    let Some(rest) = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unixs://")) else { return false };
    all.version >= SOCKETS || Url::parse(&format!("http://{rest}")).is_ok()
}

fn urls(all: &mut Refusals) {
    for key in LISTENERS.iter().chain(&ADVERTISED) {
        for text in parts(all, key) {
            if is_socket(all, &text) {
                continue;
            }
            let parsed = Url::parse(&text);
            let bound = parsed.and_then(|url| if LISTENERS.contains(key) { url.binds() } else { Ok(()) });
            if let Err(error) = bound {
                all.key(About::Url, key, format!("`{key}` has `{text}`: {error}"));
            }
        }
    }
    // A missing `advertise-client-urls` is refused of flags only: of a file etcd takes its default. Of clients' URLs a
    // second one does no harm.
    for key in ["listen-peer-urls", "initial-advertise-peer-urls"] {
        let list = parts(all, key);
        for (index, text) in list.iter().enumerate() {
            if list[..index].contains(text) {
                all.key(About::Url, key, format!("`{key}` has `{text}` twice"));
            }
        }
    }
}

/// No two listeners have one address and port.
fn listeners(all: &mut Refusals) {
    let mut bound: BTreeMap<(String, u16), &str> = BTreeMap::new();
    for key in LISTENERS {
        for text in parts(all, key) {
            let Ok(url) = Url::parse(&text) else { continue };
            match bound.get(&(url.host.clone(), url.port)) {
                Some(other) if *other != key => {
                    all.key(About::Url, key, format!("`{text}` is in `{other}` too"));
                }
                Some(_) => {}
                None => {
                    bound.insert((url.host, url.port), key);
                }
            }
        }
    }
}

fn cluster(all: &mut Refusals) {
    let config = all.config;
    let ways = ["discovery", "discovery-srv", "initial-cluster"];
    let given: Vec<&str> = ways.into_iter().filter(|key| all.text(key).is_some_and(|text| !text.is_empty())).collect();
    if given.len() > 1 {
        all.key(About::Cluster, given[1], format!("only one of `{}` may be given", given.join("`, `")));
    }
    // etcd's default name; it warns of it only.
    let name = all.text("name").unwrap_or_else(|| "default".to_owned());
    if name.is_empty() {
        all.key(About::Cluster, "name", "`name` is empty");
    }
    let members = config.initial_cluster();
    if members.is_empty() {
        if config.entry(None, "initial-cluster").is_some_and(|entry| entry.value == Value::Text(String::new())) {
            all.key(About::Cluster, "initial-cluster", "`initial-cluster` is empty");
        }
        return;
    }
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (index, (name, url)) in members.iter().enumerate() {
        if let Err(error) = Url::parse(url)
            && !is_socket(all, url)
        {
            let message = format!("`initial-cluster` has `{name}={url}`: {error}");
            all.key(About::Cluster, "initial-cluster", message);
        }
        if members[..index].iter().any(|(_, other)| other == url) {
            all.key(About::Cluster, "initial-cluster", format!("`initial-cluster` has the URL `{url}` twice"));
        }
        by_name.entry(name).or_default().push(url);
    }
    let mut own = by_name.get(name.as_str()).cloned().unwrap_or_default();
    if own.is_empty() {
        let message = format!("`initial-cluster` has no member with this node's `name: {name}`");
        all.key(About::Cluster, "initial-cluster", message);
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
        all.key(About::Cluster, "initial-advertise-peer-urls", message);
    }
}
