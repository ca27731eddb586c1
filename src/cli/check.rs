//! `fitout check IMAGE…`: images against the living registry.

use std::path::PathBuf;
use std::time::Duration;

use super::{Exit, Global, Ui, VerbResult, project};
use crate::finding::has_errors;
use crate::live::check::{Options, RULES, check, manifest};
use crate::live::endpoint::Endpoint;
use crate::verify::scan::scan;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Images made by `fitout build`
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    /// Client URL of a member [default: those of the image's birth record]
    #[arg(long = "endpoint", value_name = "URL")]
    endpoints: Vec<Endpoint>,
    /// How long to wait for the registry, in seconds; all endpoints are asked at once
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be between 0.1 and 3600 seconds".to_owned())
    }
}

/// Checks each image with its own client certificate.
///
/// # Errors
/// When an image cannot be read, or no endpoint answers.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    if global.directory.is_some() {
        let loaded = project::declared(global, ui)?;
        ui.findings(&loaded.warnings);
    }
    let options = Options { endpoints: args.endpoints.clone(), timeout: args.timeout };
    let mut failed = None;
    let mut wrong = false;
    for path in &args.images {
        let result = scan(path).and_then(|(image, _)| {
            let node = manifest(&image)?.node.clone();
            Ok((node, check(&image, &options)?))
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
                ui.findings(&findings);
                let word = if errors { "not clean" } else { "clean" };
                ui.object(&serde_json::json!({"type": "check", "image": path, "node": node, "clean": !errors}));
                ui.verdict(&name, word, !errors);
                ui.line(format!("{name}: {word}"));
            }
            // The other images are still looked at: one that cannot be asked for does not hide their findings.
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
