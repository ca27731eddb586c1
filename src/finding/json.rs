//! Findings for programs: one JSON object a line.

use super::{Failure, Finding};

/// One finding as a JSON object, without a line end.
pub fn render(finding: &Finding) -> String {
    serde_json::json!({"type": "finding", "code": finding.code, "severity": finding.severity,
        "subject": finding.subject, "message": finding.message})
    .to_string()
}

/// A failure as a JSON object, without a line end.
pub fn render_failure(failure: &Failure) -> String {
    serde_json::json!({"type": "failure", "message": failure.message, "help": failure.help}).to_string()
}
