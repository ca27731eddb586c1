//! `fitout pki`: make the certificate store, issue, and show how the certificates stand.

use std::path::PathBuf;

use rayon::prelude::*;
use time::OffsetDateTime;

use super::{Exit, Global, Ui, VerbResult, project, rules};
use crate::declaration::{self, Mesh, Node};
use crate::finding::record::{DECLARATION, STORE};
use crate::finding::{Finding, Problem, has_errors};
use crate::image::rules::unknown_node;
use crate::pki::inspect::date;
use crate::pki::passphrase::Source;
use crate::pki::profiles::AuthorityName;
use crate::pki::store::{Access, Issue, Issued, Public, Row, State, Store, status};

/// Arguments of `pki`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: PkiVerb,
}

#[derive(Debug, clap::Subcommand)]
enum PkiVerb {
    /// Make a certificate store with the mesh's two authorities
    Init {
        /// Encrypt every private key of the store (PKCS#8, scrypt, AES-256); asks for a passphrase
        #[arg(long)]
        encrypt: bool,
        #[command(flatten)]
        unlock: Unlock,
    },
    /// Issue what is missing, changed or due: all nodes, or those named
    Issue {
        /// Only this node
        #[arg(long = "node", value_name = "NODE")]
        nodes: Vec<String>,
        /// A client certificate for a person or for CI, who may do everything in the registry
        #[arg(long = "operator", value_name = "NAME")]
        operators: Vec<String>,
        #[command(flatten)]
        unlock: Unlock,
    },
    /// Show every certificate, its end and how it stands; needs no key and no passphrase
    Status,
}

/// How a command gets at encrypted private keys; for every verb that opens the store.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Unlock {
    /// File whose first line is the passphrase of the store [default: systemd credential `fitout-passphrase`, then
    /// $FITOUT_PASSPHRASE, then the terminal]
    #[arg(long, value_name = "FILE")]
    pub passphrase_file: Option<PathBuf>,
}

impl Unlock {
    /// The places to look for a passphrase.
    pub fn source(&self) -> Source<'static> {
        Source::of_process(self.passphrase_file.as_deref())
    }

    /// Opens the store; says so on stderr when another process holds it.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(&self, global: &Global, ui: &Ui) -> Result<Store, Problem> {
        let source = self.source();
        Store::open(&global.pki_directory(), &Access { passphrase: &source, say: &|text| ui.status(text) })
    }
}

/// Runs `pki`.
///
/// # Errors
/// When the declaration or the store is wrong, or it cannot be carried out.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let loaded = project::declared(global, ui)?;
    ui.applied(DECLARATION, declaration::RULES);
    ui.findings(&loaded.warnings);
    let (mesh, now) = (&loaded.mesh, OffsetDateTime::now_utc());
    match &args.verb {
        PkiVerb::Init { encrypt, unlock } => init(*encrypt, unlock, mesh, now, global, ui),
        PkiVerb::Issue { nodes, operators, unlock } => {
            let store = unlock.open(global, ui)?;
            issue(&store, mesh, &chosen(mesh, nodes, operators)?, operators, now, ui)
        }
        PkiVerb::Status => show(mesh, now, global, ui),
    }
}

fn init(encrypt: bool, unlock: &Unlock, mesh: &Mesh, now: OffsetDateTime, global: &Global, ui: &Ui) -> VerbResult {
    let directory = global.pki_directory();
    // Said before a passphrase is asked for.
    Store::may_init(&directory)?;
    let passphrase = if encrypt { Some(unlock.source().chosen()?) } else { None };
    let store = Store::init(&directory, mesh, now, passphrase.as_ref())?;
    for name in AuthorityName::ALL {
        let certificate = store.authority_certificate(name);
        ui.object(&serde_json::json!({
            "type": "authority", "name": name, "serial": certificate.serial_hex(), "not-after": date(certificate.not_after),
        }));
        if !ui.json() {
            ui.line(format!("authority {name}: until {}", date(certificate.not_after)));
        }
    }
    ui.status(format!("the certificate store is {}", directory.display()));
    ui.status(if encrypt {
        "its private keys are encrypted: it may be committed; without the passphrase nothing can be issued or built"
    } else {
        "its private keys are plain: keep a copy in a safe place, and out of version control"
    });
    Ok(Exit::Clean)
}

/// The nodes that are meant: those named; without any name, all; with operators alone, none.
fn chosen<'a>(mesh: &'a Mesh, names: &[String], operators: &[String]) -> Result<Vec<&'a Node>, Vec<Finding>> {
    if names.is_empty() && operators.is_empty() {
        return Ok(mesh.nodes.values().collect());
    }
    let (mut nodes, mut findings) = (Vec::new(), Vec::new());
    for name in names {
        match mesh.nodes.get(name) {
            Some(node) => nodes.push(node),
            None => findings.push(unknown_node(name, mesh.nodes.keys())),
        }
    }
    if findings.is_empty() { Ok(nodes) } else { Err(findings) }
}

/// One node that cannot have its certificates does not keep the others from theirs.
fn issue(
    store: &Store,
    mesh: &Mesh,
    nodes: &[&Node],
    operators: &[String],
    now: OffsetDateTime,
    ui: &Ui,
) -> VerbResult {
    let mut problems: Vec<Problem> =
        nodes.par_iter().filter_map(|node| store.node(mesh, node, now, Issue::Allowed).err()).collect();
    problems.extend(operators.iter().filter_map(|name| store.operator(mesh, name, now, Issue::Allowed).err()));
    let mut issued = store.issued();
    issued.sort_by(|a, b| a.title.cmp(&b.title));
    for one in &issued {
        report(one, ui);
    }
    if !ui.json() {
        if issued.is_empty() && problems.is_empty() {
            ui.line("nothing to issue: every certificate is there, as declared, and not due");
        }
        for name in operators {
            let (certificate, key) = store.operator_paths(name);
            if certificate.exists() {
                ui.line(format!("operator {name}: {} and {}", certificate.display(), key.display()));
            }
        }
    }
    finish(problems)
}

fn report(issued: &Issued, ui: &Ui) {
    ui.object(&serde_json::json!({
        "type": "issued", "certificate": issued.title, "serial": issued.serial, "not-after": date(issued.not_after),
        "reason": issued.reason.to_string(),
    }));
    if !ui.json() {
        ui.line(format!("issued the {}, until {}: {}", issued.title, date(issued.not_after), issued.reason));
    }
}

/// All findings together; a failure alone comes first, since it kept something from being done.
fn finish(problems: Vec<Problem>) -> VerbResult {
    let mut findings = Vec::new();
    for problem in problems {
        match problem {
            Problem::Findings(more) => findings.extend(more),
            failure => return Err(failure),
        }
    }
    if findings.is_empty() { Ok(Exit::Clean) } else { Err(findings.into()) }
}

/// Exit 1 when something is expired; due, missing and changed ones are what `issue` is for.
fn show(mesh: &Mesh, now: OffsetDateTime, global: &Global, ui: &Ui) -> VerbResult {
    let store = Public::open(&global.pki_directory())?;
    let (rows, findings) = status(&store, mesh, now)?;
    rows.iter().for_each(|row| ui.object(&object(row, now)));
    ui.write(&table(&rows, now));
    ui.line("");
    let findings = ui.judge(findings);
    ui.applied(STORE, &rules::of_status());
    ui.findings(&findings);
    Ok(if has_errors(&findings) { Exit::Findings } else { Exit::Clean })
}

fn days(row: &Row, now: OffsetDateTime) -> Option<i64> {
    row.not_after.map(|end| (end - now).whole_days())
}

fn object(row: &Row, now: OffsetDateTime) -> serde_json::Value {
    let why = match &row.state {
        State::Changed(why) => Some(why.as_str()),
        _ => None,
    };
    serde_json::json!({
        "type": "certificate", "who": row.who, "use": row.purpose, "serial": row.serial,
        "not-after": row.not_after.map(date), "days": days(row, now), "state": row.state.word(), "why": why,
    })
}

/// Columns as wide as what stands in them.
fn table(rows: &[Row], now: OffsetDateTime) -> String {
    let mut lines = vec![["WHO", "USE", "SERIAL", "NOT AFTER", "DAYS", "STATE"].map(str::to_owned)];
    for row in rows {
        let serial = row.serial.as_deref().map_or("-".to_owned(), |serial| serial.chars().take(16).collect());
        let end = row.not_after.map_or("-".to_owned(), date);
        let days = days(row, now).map_or("-".to_owned(), |days| days.to_string());
        let state = match &row.state {
            State::Changed(why) => format!("{}: {why}", row.state.word()),
            state => state.word().to_owned(),
        };
        lines.push([row.who.clone(), row.purpose.clone(), serial, end, days, state]);
    }
    let mut widths = [0; 6];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .enumerate()
            .map(
                |(column, (cell, width))| {
                    if column == 4 { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
                },
            )
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn the_table_lines_up() {
        let now = datetime!(2026-11-30 12:00:00 UTC);
        let row = |who: &str, purpose: &str, serial: Option<&str>, days: Option<i64>, state| Row {
            who: who.into(),
            purpose: purpose.into(),
            serial: serial.map(str::to_owned),
            not_after: days.map(|days| now + time::Duration::days(days)),
            state,
        };
        let rows = [
            row("authority peer", "authority", Some("4f00112233445566778899aabbccddeeff0011"), Some(3650), State::Good),
            row("node lis1", "server", Some("4f0011"), Some(-3), State::Expired),
            row("node por1", "client", None, None, State::Missing),
        ];
        assert_eq!(
            table(&rows, now),
            "WHO             USE        SERIAL            NOT AFTER             DAYS  STATE\n\
             authority peer  authority  4f00112233445566  2036-11-27T12:00:00Z  3650  good\n\
             node lis1       server     4f0011            2026-11-27T12:00:00Z    -3  expired\n\
             node por1       client     -                 -                        -  missing\n"
        );
        assert_eq!(
            object(&rows[1], now).to_string(),
            r#"{"type":"certificate","who":"node lis1","use":"server","serial":"4f0011","not-after":"2026-11-27T12:00:00Z","days":-3,"state":"expired","why":null}"#
        );
    }
}
