//! Values that are none of those that are allowed, or do not go together.

use super::ciphers::SUITES;
use super::{About, Refusals};
use crate::etcd::config::{Config, Value};
use crate::etcd::keys::{TOP, reading};
use crate::etcd::urls::Url;
use crate::etcd::versions::Version;

const V3_6: Version = Version::new(3, 6, 0);
const V3_7: Version = Version::new(3, 7, 0);

/// Applies the checks.
pub(super) fn check(all: &mut Refusals) {
    words(all);
    compaction(all);
    tls_versions(all);
    cipher_suites(all);
    auth_token(all);
    cors(all);
    positive(all);
    leases(all);
    if all.version >= V3_6 {
        feature_gates(all);
    }
    if (V3_6..V3_7).contains(&all.version) {
        both(all);
    }
}

/// Keys with a few allowed values.
fn words(all: &mut Refusals) {
    let allowed: [(&str, &[&str]); 3] = [
        ("initial-cluster-state", &["", "new", "existing"]),
        ("proxy", &["", "off", "on", "readonly"]),
        ("discovery-fallback", &["", "exit", "proxy"]),
    ];
    for (key, words) in allowed {
        if let Some(value) = all.text(key).filter(|value| !words.contains(&value.as_str())) {
            let list: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
            all.key(About::Value, key, format!("`{key}` is `{value}`, not one of `{}`", list.join("`, `")));
        }
    }
}

/// What `auto-compaction-retention` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Retention {
    /// A number without a unit: hours in mode `periodic`, revisions in mode `revision`, nothing without a mode.
    Number(i64),
    /// A duration in seconds, whatever the mode: in mode `revision` its nanoseconds are taken as revisions.
    Seconds(f64),
}

/// Reads `auto-compaction-retention` (`embed/etcd.go` parseCompactionRetention); `None` where etcd cannot.
pub fn retention(text: &str) -> Option<Retention> {
    match text.parse::<i64>() {
        Ok(number) if number >= 0 => Some(Retention::Number(number)),
        _ => go_duration(text).map(Retention::Seconds),
    }
}

/// A duration as Go writes it (`time.ParseDuration`), in seconds.
fn go_duration(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0.0);
    }
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, factor) = units.into_iter().find(|(unit, _)| *unit == &rest[..unit_end])?;
        seconds += number * factor;
        rest = &rest[unit_end..];
    }
    Some(sign * seconds)
}

fn compaction(all: &mut Refusals) {
    let (key, mode_key) = ("auto-compaction-retention", "auto-compaction-mode");
    let mode = all.text(mode_key);
    if let Some(mode) = mode.as_ref().filter(|mode| !["", "periodic", "revision"].contains(&mode.as_str())) {
        let message = format!("`{mode_key}` is `{mode}`, not one of `periodic`, `revision`");
        all.key(About::Value, mode_key, message);
        return;
    }
    if all.version >= V3_6 && mode.as_deref() == Some("") {
        all.key(About::Value, mode_key, format!("`{mode_key}` is empty"));
        return;
    }
    let mode = mode.unwrap_or_else(|| if all.version >= V3_6 { "periodic".into() } else { String::new() });
    let Some(text) = all.text(key).filter(|text| !text.is_empty()) else { return };
    match retention(&text) {
        None => {
            let message = format!("`{key}` is `{text}`, neither a whole number nor a duration such as `1h30m`");
            all.key(About::Value, key, message);
        }
        Some(Retention::Seconds(seconds)) if seconds != 0.0 && mode.is_empty() => {
            let message = format!("`{key}` is `{text}`, and there is no `{mode_key}`");
            all.key(About::Value, key, message);
        }
        Some(Retention::Seconds(seconds)) if seconds < 0.0 && mode == "periodic" => {
            all.key(About::Value, key, format!("`{key}` is `{text}`: it must not be negative"));
        }
        Some(_) => {}
    }
}

fn tls_versions(all: &mut Refusals) {
    let (least_key, most_key) = ("tls-min-version", "tls-max-version");
    for key in [least_key, most_key] {
        if let Some(text) = all.text(key).filter(|text| !["", "TLS1.2", "TLS1.3"].contains(&text.as_str())) {
            all.key(About::Value, key, format!("`{key}` is `{text}`, not one of `TLS1.2`, `TLS1.3`"));
        }
    }
    let (least, most) = (all.text(least_key).unwrap_or_default(), all.text(most_key).unwrap_or_default());
    if least == "TLS1.3" && most == "TLS1.2" {
        all.key(About::Value, most_key, format!("`{most_key}` is below `{least_key}`"));
    }
    if least == "TLS1.3" && !all.texts("cipher-suites").is_empty() {
        let message = format!("`cipher-suites` is for TLS 1.2, and `{least_key}` is `{least}`");
        all.key(About::Value, "cipher-suites", message);
    }
}

fn cipher_suites(all: &mut Refusals) {
    for name in all.texts("cipher-suites") {
        if !SUITES.iter().any(|suite| suite.name == name) {
            all.key(About::Value, "cipher-suites", format!("`cipher-suites` has `{name}`, which is no suite"));
        }
    }
}

/// `simple`, or `jwt` with its method and keys (`auth/store.go` decomposeOpts, `auth/jwt.go`).
fn auth_token(all: &mut Refusals) {
    let Some(text) = all.text("auth-token") else { return };
    let mut parts = text.split(',');
    let provider = parts.next().unwrap_or_default();
    let options: Vec<&str> = parts.collect();
    let has = |name: &str| options.iter().any(|option| option.split_once('=').is_some_and(|(key, _)| key == name));
    let message = match provider {
        "" | "simple" => return,
        "jwt" if has("sign-method") && (has("pub-key") || has("priv-key")) => return,
        "jwt" => "`auth-token` is `jwt` without `sign-method` and `pub-key` or `priv-key`".to_owned(),
        other => format!("`auth-token` is `{other}`, not one of `simple`, `jwt`"),
    };
    all.key(About::Value, "auth-token", message);
}

/// etcd panics at what is neither `*` alone nor URLs.
fn cors(all: &mut Refusals) {
    let Some(text) = all.text("cors").filter(|text| !text.is_empty() && text != "*") else { return };
    for part in text.split(',').map(str::trim) {
        if Url::parse(part).is_err() {
            all.key(About::Value, "cors", format!("`cors` has `{part}`, which is no URL with a port"));
        }
    }
}

fn positive(all: &mut Refusals) {
    for key in ["compact-hash-check-time", "experimental-compact-hash-check-time"] {
        if all.whole(key).is_some_and(|number| number <= 0) {
            all.key(About::Value, key, format!("`{key}` must be more than 0"));
        }
    }
    for prefix in ["", "experimental-"] {
        let (on, rate) =
            (format!("{prefix}enable-distributed-tracing"), format!("{prefix}distributed-tracing-sampling-rate"));
        if all.flag(&on) && all.whole(&rate).is_some_and(|rate| !(0..=1_000_000).contains(&rate)) {
            all.key(About::Value, &rate, format!("`{rate}` is per million"));
        }
    }
}

fn leases(all: &mut Refusals) {
    let (persist, checkpoint) =
        ("experimental-enable-lease-checkpoint-persist", "experimental-enable-lease-checkpoint");
    if all.version < V3_6 && all.flag(persist) && !all.flag(checkpoint) {
        all.key(About::Value, persist, format!("`{persist}` needs `{checkpoint}`"));
    }
}

/// Names of the feature gates of 3.6 (`server/features/etcd_features.go`), with what turns all of a kind on.
const GATES: [&str; 9] = [
    "AllAlpha",
    "AllBeta",
    "CompactHashCheck",
    "InitialCorruptCheck",
    "LeaseCheckpoint",
    "LeaseCheckpointPersist",
    "SetMemberLocalAddr",
    "StopGRPCServiceOnDefrag",
    "TxnModeWriteWithSharedBuffer",
];

/// Gates and their values, in order.
fn gates(config: &Config) -> Vec<(String, String)> {
    let text = config.text("feature-gates").unwrap_or_default();
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pairs = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

fn feature_gates(all: &mut Refusals) {
    let key = "feature-gates";
    let gates = gates(all.config);
    for (name, value) in &gates {
        if !["1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"].contains(&value.as_str())
        {
            all.key(About::Value, key, format!("`{key}` has `{name}` with `{value}`, not `true` or `false`"));
        }
        // What later versions have besides is not known here.
        if all.version < V3_7 && !GATES.contains(&name.as_str()) {
            all.key(About::Value, key, format!("`{key}` has `{name}`, which is no feature gate of 3.6"));
        }
    }
    let old = |name: &str| all.flag(name);
    let on = |name: &str| {
        gates
            .iter()
            .any(|(gate, value)| (gate == name || gate == "AllAlpha") && value.to_lowercase().starts_with(['1', 't']))
    };
    let persist = on("LeaseCheckpointPersist") || old("experimental-enable-lease-checkpoint-persist");
    if persist && !(on("LeaseCheckpoint") || old("experimental-enable-lease-checkpoint")) {
        all.key(About::Value, key, "`LeaseCheckpointPersist` needs `LeaseCheckpoint`");
    }
}

/// 3.6 takes an old key or its new one, not both (`experimentalFlagMigrationMap`, SetFeatureGatesFromExperimentalFlags).
fn both(all: &mut Refusals) {
    let gates = gates(all.config);
    for key in TOP.iter().filter(|key| key.name.starts_with("experimental-")) {
        let given = all.config.entry(None, key.name).is_some_and(|entry| entry.value != Value::Null);
        if !given || reading(all.version, None, key.name).kind().is_none() {
            continue;
        }
        let instead = key.instead.trim_matches('`');
        if all.config.entry(None, instead).is_some() {
            all.key(About::Value, key.name, format!("`{}` and `{instead}` are both given", key.name));
        }
        let Some(wanted) = instead.strip_prefix("feature-gates: ") else { continue };
        let gate = wanted.rsplit(',').next().and_then(|gate| gate.split('=').next()).unwrap_or_default();
        if gates.iter().any(|(name, _)| name == gate) {
            all.key(About::Value, key.name, format!("`{}` and the feature gate `{gate}` are both given", key.name));
        }
    }
}
