//! Findings for programs: one JSON object a line.
//!
//! Every object begins with `v`, the [`VERSION`] of the format, and `type`. `docs/message-format.md` says what each type
//! holds, and `schemas/message.schema.json` says it to programs. Members may be added, never renamed or removed, without
//! another version.

use serde_json::{Value, json};

use super::{Failure, Finding, Span, Standing};

/// Version of the format.
pub const VERSION: u32 = 1;

/// Any object of the program's, with the format's version in front.
pub fn versioned(value: &Value) -> Value {
    let mut all = serde_json::Map::new();
    all.insert("v".to_owned(), VERSION.into());
    if let Value::Object(members) = value {
        all.extend(members.clone());
    }
    Value::Object(all)
}

/// One finding as a JSON object, without a line end.
pub fn render(finding: &Finding) -> String {
    let mut object = json!({
        "v": VERSION,
        "type": "finding",
        "code": finding.code,
        "family": finding.family,
        "severity": finding.severity,
        "denied": finding.standing == Standing::Denied,
        "allowed": allowed(&finding.standing),
        "subject": finding.subject,
        "image": finding.image,
        "nodes": finding.nodes,
        "path": finding.path,
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
    json!({"v": VERSION, "type": "failure", "message": failure.message, "help": failure.help}).to_string()
}

fn allowed(standing: &Standing) -> Option<Value> {
    match standing {
        Standing::Allowed { until, reason } => Some(json!({"until": until.to_string(), "reason": reason})),
        Standing::Counts | Standing::Denied => None,
    }
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
                r#"{"v":1,"type":"finding","code":"unknown-key","family":"test","severity":"error","denied":false,"allowed":null,"subject":"a.ö","image":null,"nodes":[],"path":null,"message":"unknown key","file":"mesh.toml","line":2,"column":5,"end-line":2,"end-column":6,"label":"here","related":[{"file":"mesh.toml","line":1,"column":2,"end-line":1,"end-column":3,"label":"in this table"}],"notes":["a note"],"help":"remove it"}"#
            ]]
        );
        assert_data_eq!(
            render(&RULE.finding("lis1:/etc/x", "no etcd").of_image("a.tar.gz").located()),
            str![[
                r#"{"v":1,"type":"finding","code":"unknown-key","family":"test","severity":"error","denied":false,"allowed":null,"subject":"lis1:/etc/x","image":"a.tar.gz","nodes":["lis1"],"path":"/etc/x","message":"no etcd","file":null,"line":null,"column":null,"end-line":null,"end-column":null,"label":"","related":[],"notes":[],"help":null}"#
            ]]
        );
    }

    #[test]
    fn what_the_user_said_of_it() {
        let mut finding = RULE.finding("x", "m");
        finding.standing = Standing::Denied;
        let value: Value = serde_json::from_str(&render(&finding)).unwrap();
        assert_eq!((&value["denied"], &value["allowed"]), (&json!(true), &json!(null)));
        finding.standing = Standing::Allowed { until: time::macros::date!(2027 - 03 - 31), reason: "r".into() };
        let value: Value = serde_json::from_str(&render(&finding)).unwrap();
        let want = json!({"until": "2027-03-31", "reason": "r"});
        assert_eq!((&value["denied"], &value["allowed"]), (&json!(false), &want));
    }

    #[test]
    fn a_failure() {
        let failure = Failure::new("no \"x\"").help("y");
        assert_eq!(render_failure(&failure), r#"{"v":1,"type":"failure","message":"no \"x\"","help":"y"}"#);
    }
}
