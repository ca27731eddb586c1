//! The etcd family: the rendered configuration is read by the etcd in the image, agrees with what the image says of
//! itself, and the data directory is fresh.

mod data;
mod file;
mod values;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::Image;
use crate::etcd::config::{Config, ConfigError};
use crate::etcd::versions::Version;
use crate::finding::{Finding, Rule, Severity, Source, Span};
use crate::image::base::packages;
use crate::image::manifest::Manifest;
use crate::systemd::search::follow;
use crate::tree::TreePath;

/// Where the configuration is.
pub const CONFIG: &str = "/etc/etcd/etcd.yaml";
/// Where the data is.
pub const DATA: &str = "/var/lib/etcd";
/// User and group that etcd runs as.
pub const USER: &str = "etcd";
/// Debian's package of the server.
pub const PACKAGE: &str = "etcd-server";
/// Where the overlay `etcd-binary` puts the version that the declaration gives.
const DECLARED_VERSION: &str = "/usr/lib/fitout/etcd-version";
/// The program: Debian's, or a link to the base's own.
const PROGRAM: &str = "/usr/bin/etcd";
/// The version whose keys are used where the image does not say its own.
const NEWEST: Version = Version::new(3, 7, 0);

/// All rules of the family.
pub static RULES: &[&Rule] = &[
    &file::MISSING,
    &file::SYNTAX,
    &file::UNKNOWN_KEY,
    &file::OLD_KEY,
    &file::REFUSES,
    &file::TIMING,
    &values::NAME,
    &values::CLUSTER,
    &values::IDS,
    &values::ADDRESS,
    &values::TLS_OFF,
    &values::CLIENT_AUTH,
    &values::FILES,
    &values::METRICS,
    &values::QUOTA,
    &values::GATEWAY,
    &values::DEFAULTS,
    &values::UNSAFE,
    &values::COMPACTION,
    &values::CIPHERS,
    &values::PROXY,
    &data::DIRECTORY,
    &data::BAD_VERSION,
    &data::KNOWN_VERSION,
    &data::NO_VERSION,
    &data::OTHER_VERSION,
];

/// What the rules look at.
struct Facts<'a> {
    image: &'a Image,
    manifest: &'a Manifest,
    config: &'a Config,
    source: &'a Arc<Source>,
    /// Version of the etcd in the image; [`NEWEST`] when it does not say.
    version: Version,
}

impl Facts<'_> {
    /// A finding at a line of the configuration.
    fn finding(&self, rule: &Rule, line: usize, message: impl Into<String>) -> Finding {
        rule.finding(CONFIG, message).at(&line_span(self.source, line))
    }

    /// A finding at a key.
    fn at_key(&self, rule: &Rule, section: Option<&str>, key: &str, message: impl Into<String>) -> Finding {
        self.finding(rule, self.config.line(section, key), message)
    }
}

fn line_span(source: &Arc<Source>, line: usize) -> Span {
    let start: usize = source.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let text = source.text[start..].lines().next().unwrap_or("");
    let indent = text.len() - text.trim_start().len();
    Span::new(source, start + indent..start + text.trim_end().len().max(indent))
}

/// Applies every rule of the family to an image; images without a part in the registry have nothing to check.
pub fn check(image: &Image, out: &mut Vec<Finding>) {
    let Some(manifest) = image.manifest.as_ref().filter(|m| m.part.runs_registry()) else { return };
    let version = version(image, out);
    data::versions(version, out);
    data::directory(image, out);
    values::ids_of_birth(manifest, out);
    let Some(text) = read(image, out) else { return };
    let source = Source::new(CONFIG, text);
    let config = match Config::parse(&source.text) {
        Ok(config) => config,
        Err(error) => {
            let line = if let ConfigError::Yaml { line, .. } = &error { *line } else { 1 };
            let message = format!("{CONFIG} cannot be read: {error}");
            out.push(file::SYNTAX.finding(CONFIG, message).at(&line_span(&source, line)));
            return;
        }
    };
    let facts = Facts { image, manifest, config: &config, source: &source, version: version.unwrap_or(NEWEST) };
    file::check(&facts, out);
    values::check(&facts, out);
}

/// The version of the package, else what a binary of the base's own says or was declared for it; `None` when the image has
/// neither, or its version is none that we can read.
fn version(image: &Image, out: &mut Vec<Finding>) -> Option<Version> {
    match packages::installed(&image.tree) {
        Ok(packages) => match packages.get(PACKAGE) {
            Some(text) => Version::from_debian(text),
            None => data::of_binary(declared(image), built(image), out),
        },
        Err(failure) => {
            out.push(data::NO_VERSION.finding(PACKAGE, failure.message));
            None
        }
    }
}

/// The version that the declaration gives.
fn declared(image: &Image) -> Option<Version> {
    let text = image.tree.content(&TreePath::parse(DECLARED_VERSION).ok()?).ok()?;
    Version::from_debian(String::from_utf8_lossy(&text).trim())
}

/// The version that the program says of itself.
fn built(image: &Image) -> Option<Version> {
    let program = follow(&image.tree, &TreePath::parse(PROGRAM).ok()?)?;
    image.etcd_builds.iter().find(|(path, _)| *path == program).map(|(_, version)| *version)
}

fn read(image: &Image, out: &mut Vec<Finding>) -> Option<String> {
    let mut missing = |message: String| {
        out.push(file::MISSING.finding(CONFIG, message).help("build the image with the overlay `etcd`"));
        None
    };
    let path = TreePath::parse(CONFIG).map(|p| image.tree.resolve_fully(&p).unwrap_or(p)).unwrap_or_default();
    if image.tree.get(&path).is_none() {
        return missing(format!("there is no {CONFIG}"));
    }
    match image.tree.content(&path).map(String::from_utf8) {
        Ok(Ok(text)) => Some(text),
        Ok(Err(_)) => missing(format!("{CONFIG} is not UTF-8")),
        Err(failure) => missing(failure.message),
    }
}

const fn rule(code: &'static str, severity: Severity, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "etcd", severity, summary, explanation }
}
