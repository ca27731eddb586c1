//! Findings for programs: one JSON object a line.
//!
//! A finding is an object with these members, in this order, all always there:
//!
//! | member | value |
//! |---|---|
//! | `type` | `"finding"` |
//! | `code` | code of the rule: `fitout explain CODE` |
//! | `severity` | `"error"`, `"warning"`, `"notice"` |
//! | `subject` | what it is about: a node, an image, a path, a key |
//! | `message` | what is wrong |
//! | `file` | the file at fault, or `null` |
//! | `line`, `column` | first place in it, both from 1, columns in characters; or `null` |
//! | `end-line`, `end-column` | just after the last place; or `null` |
//! | `label` | text for the place; may be empty |
//! | `related` | list of further places: `file`, `line`, `column`, `end-line`, `end-column`, `label` |
//! | `notes` | list of texts: facts, a route, a proof |
//! | `help` | what to do now, or `null` |
//!
//! A failure (exit 3) is an object with `type` `"failure"`, `message` and `help`. Members may be added, never renamed or
//! removed.

use serde_json::{Value, json};

use super::{Failure, Finding, Span};

/// One finding as a JSON object, without a line end.
pub fn render(finding: &Finding) -> String {
    let mut object = json!({
        "type": "finding",
        "code": finding.code,
        "severity": finding.severity,
        "subject": finding.subject,
        "message": finding.message,
    });
    place(&mut object, finding.span.as_ref());
    object["label"] = json!(finding.label);
    let related = finding.related.iter().map(|(span, label)| {
        let mut related = json!({});
        place(&mut related, Some(span));
        related["label"] = json!(label);
        related
    });
    object["related"] = related.collect();
    object["notes"] = json!(finding.notes);
    object["help"] = json!(finding.help);
    object.to_string()
}

/// A failure as a JSON object, without a line end.
pub fn render_failure(failure: &Failure) -> String {
    json!({"type": "failure", "message": failure.message, "help": failure.help}).to_string()
}

/// Puts the members of a place into an object.
fn place(object: &mut Value, span: Option<&Span>) {
    object["file"] = json!(span.map(|s| &s.source.name));
    let start = span.map(|s| s.source.line_column(s.range.start));
    let end = span.map(|s| s.source.line_column(s.range.end.max(s.range.start)));
    object["line"] = json!(start.map(|s| s.0));
    object["column"] = json!(start.map(|s| s.1));
    object["end-line"] = json!(end.map(|e| e.0));
    object["end-column"] = json!(end.map(|e| e.1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Rule, Severity, Source};
    use snapbox::{assert_data_eq, str};

    static RULE: Rule =
        Rule { code: "unknown-key", family: "test", severity: Severity::Error, summary: "", explanation: "" };

    #[test]
    fn every_member_is_there_and_columns_count_characters() {
        let source = Source::new("mesh.toml", "[a]\nö = 1\n");
        let finding = RULE
            .finding("a.ö", "unknown key")
            .at(&Span::new(&source, 9..10))
            .label("here")
            .related(&Span::new(&source, 1..2), "in this table")
            .note("a note")
            .help("remove it");
        assert_data_eq!(
            render(&finding),
            str![[
                r#"{"type":"finding","code":"unknown-key","severity":"error","subject":"a.ö","message":"unknown key","file":"mesh.toml","line":2,"column":5,"end-line":2,"end-column":6,"label":"here","related":[{"file":"mesh.toml","line":1,"column":2,"end-line":1,"end-column":3,"label":"in this table"}],"notes":["a note"],"help":"remove it"}"#
            ]]
        );
        assert_data_eq!(
            render(&RULE.finding("lis1", "no etcd")),
            str![[
                r#"{"type":"finding","code":"unknown-key","severity":"error","subject":"lis1","message":"no etcd","file":null,"line":null,"column":null,"end-line":null,"end-column":null,"label":"","related":[],"notes":[],"help":null}"#
            ]]
        );
    }

    #[test]
    fn a_failure() {
        let failure = Failure::new("no \"x\"").help("y");
        assert_eq!(render_failure(&failure), r#"{"type":"failure","message":"no \"x\"","help":"y"}"#);
    }
}
