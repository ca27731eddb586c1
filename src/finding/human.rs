//! Findings for people: the source line with a marker, notes and help.

use super::{Failure, Finding};

/// Renders one finding, with a final blank line.
pub fn render(finding: &Finding, _color: bool) -> String {
    let place = finding.span.as_ref().map(|s| format!("\n  --> {}", s.file_line())).unwrap_or_default();
    let notes: String = finding.notes.iter().map(|n| format!("\n  = note: {n}")).collect();
    let help = finding.help.as_ref().map(|h| format!("\n  = help: {h}")).unwrap_or_default();
    format!("{}[{}]: {}: {}{place}{notes}{help}\n\n", finding.severity, finding.code, finding.subject, finding.message)
}

/// Renders a failure.
pub fn render_failure(failure: &Failure, _color: bool) -> String {
    let help = failure.help.as_ref().map(|h| format!("\n  = help: {h}")).unwrap_or_default();
    format!("error: {}{help}\n", failure.message)
}
