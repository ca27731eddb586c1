//! `fitout check IMAGE…`: images against the living registry.

use std::path::PathBuf;
use std::time::Duration;

use super::pki::Unlock;
use super::{Exit, Global, Ui, VerbResult, project};
use crate::finding::{Failure, Finding, has_errors};
use crate::live::check::{Options, RULES, Session, manifest, open};
use crate::live::credentials::given::Given;
use crate::live::endpoint::Endpoint;
use crate::live::etcdctl::Etcdctl;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Images made by `fitout build`
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    /// Client URL of a member [default: those of the declared voters, as the image has them]
    #[arg(long = "endpoint", value_name = "URL")]
    endpoints: Vec<Endpoint>,
    /// Show an operator's certificate instead of the image's own: a directory with NAME.crt and NAME.key, or DIR/NAME
    #[arg(long, value_name = "DIR")]
    credentials: Option<PathBuf>,
    #[command(flatten)]
    unlock: Unlock,
    /// Print the commands that replace each image's node, also while it runs
    #[arg(long)]
    replace: bool,
    /// Count the registry's writes for so many seconds; more than a quiet mesh makes is a warning
    #[arg(long, value_name = "SECONDS", default_value = "0", hide_default_value = true, value_parser = interval)]
    write_rate: Duration,
    /// How long to wait for the registry, in seconds; all endpoints are asked at once, and then each page of keys
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = super::registry::access::seconds)]
    timeout: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(0) => Ok(Duration::ZERO),
        Ok(seconds @ 10..=3600) => Ok(Duration::from_secs(seconds)),
        _ => Err("must be 10 to 3600 whole seconds: a shorter time holds too few writes to tell".to_owned()),
    }
}

/// Checks each image. What is said of the registry alone is the same for every image, and is printed once.
///
/// # Errors
/// When the credentials or an image cannot be read, or no endpoint answers.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    if global.directory.is_some() {
        let loaded = project::declared(global, ui)?;
        ui.findings(&loaded.warnings);
    }
    let given = match &args.credentials {
        Some(place) => Some(Given::open(place, &args.unlock.source())?),
        None => None,
    };
    let etcdctl = match &given {
        Some(given) => Etcdctl::with(given.files.clone()),
        None => Etcdctl::of_store(&global.pki_directory(), &store_options(global)),
    };
    let endpoints = args.endpoints.clone();
    let options = Options {
        endpoints,
        timeout: args.timeout,
        given,
        etcdctl,
        replace: args.replace,
        write_rate: args.write_rate,
    };
    let mut session = Session::new(options);
    let mut failed: Option<Failure> = None;
    let mut wrong = false;
    let mut printed: Vec<Finding> = Vec::new();
    for path in &args.images {
        let result = open(path).and_then(|image| {
            let node = manifest(&image)?.node.clone();
            Ok((node, session.check(&image)?))
        });
        match result {
            Ok((node, findings)) => {
                let name = path.display().to_string();
                let located = findings.into_iter().map(|f| f.of_image(&name).located());
                // What is about no other node is about this image's.
                let findings = located.map(|f| if f.nodes.is_empty() { f.of_node(&node) } else { f }).collect();
                let findings = ui.judge(findings);
                let errors = has_errors(&findings);
                wrong |= errors;
                ui.applied(&name, &RULES);
                ui.findings(&new(findings, &mut printed, ui));
                let word = if errors { "not clean" } else { "clean" };
                ui.object(&serde_json::json!({"type": "check", "image": path, "node": node, "clean": !errors}));
                ui.verdict(&name, word, !errors);
                ui.line(format!("{name}: {word}"));
            }
            // The other images are still looked at: one that cannot be asked for does not hide their findings.
            // What stopped several of them in the same way is said once.
            Err(failure) if failed.as_ref() == Some(&failure) => {}
            Err(failure) => {
                if let Some(before) = failed.replace(failure) {
                    ui.failure(&before);
                }
            }
        }
    }
    match failed {
        Some(failure) => Err(failure.into()),
        None if wrong => Ok(Exit::Findings),
        None => Ok(Exit::Clean),
    }
}

/// Without what a person has read already for an earlier image. Programs and reports get all of each image's.
fn new(mut findings: Vec<Finding>, printed: &mut Vec<Finding>, ui: &Ui) -> Vec<Finding> {
    if ui.for_people() {
        findings.retain(|finding| {
            let bare = Finding { image: None, nodes: Vec::new(), ..finding.clone() };
            let new = !printed.contains(&bare);
            if new {
                printed.push(bare);
            }
            new
        });
    }
    findings
}

/// The options by which a printed `fitout` command finds the same store.
fn store_options(global: &Global) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(directory) = &global.directory {
        options.extend(["-C".to_owned(), directory.display().to_string()]);
    }
    if let Some(store) = &global.named_pki() {
        options.extend(["--pki".to_owned(), store.display().to_string()]);
    }
    options
}
