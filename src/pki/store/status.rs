//! How every certificate of a store stands.

use time::OffsetDateTime;

use super::Public;
use super::files::{key_path, list};
use crate::declaration::Mesh;
use crate::finding::{Finding, Problem};
use crate::pki::inspect::{Certificate, Dates};
use crate::pki::profiles::AuthorityName;
use crate::pki::request::{self, Reason, Request};
use crate::pki::rules;

/// How one certificate stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// In order.
    Good,
    /// Ends within the renewal window.
    Due,
    /// Has ended.
    Expired,
    /// Begins later.
    NotYet,
    /// Declared and not issued.
    Missing,
    /// There is a certificate, and no key beside it: no image can be built with it.
    KeyMissing,
    /// Will be issued again: why.
    Changed(String),
    /// Not declared any more.
    Undeclared,
}

impl State {
    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            State::Good => "good",
            State::Due => "due",
            State::Expired => "expired",
            State::NotYet => "not yet valid",
            State::Missing => "missing",
            State::KeyMissing => "no key",
            State::Changed(_) => "changed",
            State::Undeclared => "undeclared",
        }
    }
}

/// One certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `node lis1`, `operator anna`, `authority peer`.
    pub who: String,
    /// `server`, `client`, `peer` or `authority`.
    pub purpose: String,
    /// Serial number in hex, when there is a certificate.
    pub serial: Option<String>,
    /// Its end.
    pub not_after: Option<OffsetDateTime>,
    /// How it stands.
    pub state: State,
}

/// All certificates: authorities, then nodes, then operators, each by name; with what is wrong with them. Problems with
/// single files are findings, so that one damaged file does not hide the rest.
///
/// # Errors
/// When the store belongs to another mesh or cannot be read.
pub fn status(store: &Public, mesh: &Mesh, now: OffsetDateTime) -> Result<(Vec<Row>, Vec<Finding>), Problem> {
    store.meta.check_mesh(&store.files, &mesh.name.value)?;
    let mut rows = Vec::new();
    let mut findings = Vec::new();
    for (name, (_, certificate)) in [(AuthorityName::Peer, &store.peer), (AuthorityName::Client, &store.client)] {
        let state = dates(certificate, mesh.pki.renew_before.value, now);
        rows.push(row(format!("authority {name}"), "authority", Some(certificate), state));
    }
    for node in mesh.nodes.values() {
        match request::of_node(mesh, node) {
            Ok(requests) => {
                for request in &requests {
                    let stem = store.files.node(&node.name.value).join(request.purpose.as_str());
                    one(store, request, &stem, now, &mut rows, &mut findings)?;
                }
            }
            Err(more) => findings.extend(more),
        }
    }
    for directory in list(&store.files.nodes())? {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if directory.is_dir() && !mesh.nodes.contains_key(&name) {
            rows.push(row(format!("node {name}"), "", None, State::Undeclared));
        }
    }
    for path in list(&store.files.operators())? {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".crt") else { continue };
        match request::of_operator(mesh, name) {
            Ok(request) => one(store, &request, &store.files.operator(name), now, &mut rows, &mut findings)?,
            Err(more) => findings.extend(more),
        }
    }
    findings.extend(summary(&rows));
    Ok((rows, findings))
}

fn one(
    store: &Public,
    request: &Request,
    stem: &std::path::Path,
    now: OffsetDateTime,
    rows: &mut Vec<Row>,
    findings: &mut Vec<Finding>,
) -> Result<(), Problem> {
    match store.files.certificate(stem) {
        Ok(found) => {
            let authority = store.authority(request.purpose);
            let is_node = stem.starts_with(store.files.nodes());
            let state = match &found {
                None => State::Missing,
                Some((_, certificate)) => match request::differs(request, certificate, authority) {
                    Some(Reason::Missing) => State::Missing,
                    Some(reason) => State::Changed(reason.to_string()),
                    // An operator takes the key away; a node's stays, for the next build.
                    None if is_node && !key_path(stem).exists() => State::KeyMissing,
                    None => dates(certificate, request.renew_before, now),
                },
            };
            rows.push(row(request.who.clone(), request.purpose.as_str(), found.as_ref().map(|(_, c)| c), state));
        }
        Err(Problem::Findings(more)) => findings.extend(more),
        Err(failure) => return Err(failure),
    }
    Ok(())
}

fn row(who: String, purpose: &str, certificate: Option<&Certificate>, state: State) -> Row {
    Row {
        who,
        purpose: purpose.to_owned(),
        serial: certificate.map(Certificate::serial_hex),
        not_after: certificate.map(|c| c.not_after),
        state,
    }
}

fn dates(certificate: &Certificate, renew_before: std::time::Duration, now: OffsetDateTime) -> State {
    match certificate.at(now) {
        Dates::NotYet => State::NotYet,
        Dates::Expired => State::Expired,
        Dates::Valid if certificate.not_after - now < renew_before => State::Due,
        Dates::Valid => State::Good,
    }
}

/// One finding per state that asks for something, not one per certificate: a fleet of one age comes due on one day.
fn summary(rows: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let cases = [
        (State::Expired, &rules::EXPIRED, "expired", "run `fitout pki issue`, build and ship the images"),
        (
            State::KeyMissing,
            &rules::DAMAGED,
            "without a key",
            "restore the key from a copy, or remove the certificate and run `fitout pki issue`",
        ),
        (State::NotYet, &rules::NOT_YET_VALID, "not yet valid", "set the clock of this machine"),
        (State::Due, &rules::DUE, "due for renewal", "run `fitout pki issue`, build and ship the images"),
    ];
    for (state, rule, words, help) in cases {
        let who: Vec<String> =
            rows.iter().filter(|r| r.state == state).map(|r| format!("{} {}", r.who, r.purpose)).collect();
        let Some(first) = who.first() else { continue };
        let message = match who.len() {
            1 => format!("the certificate is {words}"),
            many => format!("{many} certificates are {words}, this one among them"),
        };
        let mut finding = rule.finding(first, message).help(help);
        for more in who.iter().skip(1).take(9) {
            finding = finding.note(more.clone());
        }
        if who.len() > 10 {
            finding = finding.note(format!("and {} more; the table names them all", who.len() - 10));
        }
        findings.push(finding);
    }
    findings
}
