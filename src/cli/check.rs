//! `fitout check IMAGE…`: images against the living registry.

use std::path::PathBuf;
use std::time::Duration;

use super::{Exit, Global, Ui, VerbResult};
use crate::finding::has_errors;
use crate::live::check::{Options, check};
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
pub fn run(args: &Args, _global: &Global, ui: &Ui) -> VerbResult {
    let options = Options { endpoints: args.endpoints.clone(), timeout: args.timeout };
    let mut failed = None;
    let mut wrong = false;
    for path in &args.images {
        let result = scan(path).and_then(|(image, _)| check(&image, &options));
        match result {
            Ok(findings) => {
                let errors = has_errors(&findings);
                wrong |= errors;
                ui.findings(&findings);
                ui.object(&serde_json::json!({"image": path, "clean": !errors}));
                if !ui.json() {
                    ui.line(format!("{}: {}", path.display(), if errors { "not clean" } else { "clean" }));
                }
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
