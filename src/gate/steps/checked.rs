//! `fitout check` of every image against the registry that they made.

use super::{Stage, Step, Stop};
use crate::finding::{Finding, Severity, Standing};
use crate::live::check::{Options, Session};

/// Every image.
pub const STEP: Step = Step { name: "check", claim: "`fitout check` of every image is clean", run };

fn run(stage: &mut Stage<'_>, notes: &mut Vec<String>) -> Result<(), Stop> {
    let mut wrong = Vec::new();
    let mut session = Session::new(Options::default());
    for image in stage.images {
        let findings = session.check(image).map_err(|f| Stop::Broken(format!("{}: {f}", image.name)))?;
        let node = image.manifest.as_ref().map(|m| m.node.clone()).unwrap_or_default();
        let located = findings.into_iter().map(Finding::located);
        let findings = (stage.judge)(located.map(|f| if f.nodes.is_empty() { f.of_node(&node) } else { f }).collect());
        for finding in &findings {
            let mut text = format!("{}[{}] {}: {}", finding.severity, finding.code, finding.subject, finding.message);
            if let Standing::Allowed { until, reason } = &finding.standing {
                text.push_str(&format!(" (allowed until {until}: {reason})"));
            }
            match finding.severity {
                Severity::Error if finding.is_allowed() => notes.push(format!("{}: {text}", image.name)),
                Severity::Error => wrong.push(format!("{}: {text}", image.name)),
                // Most are about the registry, and the same for every image.
                Severity::Warning if !notes.contains(&text) => notes.push(text),
                Severity::Warning | Severity::Notice => {}
            }
        }
    }
    notes.push(format!("{} images looked at", stage.images.len()));
    if wrong.is_empty() { Ok(()) } else { Err(Stop::Broken(wrong.join("\n"))) }
}
