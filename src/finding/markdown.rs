//! A summary in Markdown, as GitHub and GitLab show it: verdicts, and a table of the findings, the worst first.

use super::record::{Counts, Outcome, Record};
use super::{Finding, Standing};

/// Bytes that GitHub takes for the summary of a step (1 MiB); one byte more and it shows nothing.
pub const STEP_LIMIT: usize = 1 << 20;

/// The summary, of at most `limit` bytes. Rows that do not fit are counted; the heading is always there when it fits.
pub fn render(record: &Record, limit: usize) -> String {
    let counts = Counts::of(&record.findings);
    let mut text = format!("### fitout {}: {}", cell(&record.verb), counts.words());
    let failures = record.failures.len();
    if failures > 0 {
        text.push_str(&format!(", {failures} not carried out"));
    }
    text.push('\n');
    let mut verdicts = Vec::new();
    for verdict in &record.verdicts {
        let sign = if verdict.good { "✅" } else { "❌" };
        verdicts.push(format!("| {sign} | {} | {} |\n", cell(&verdict.subject), cell(&verdict.text)));
    }
    for case in &record.cases {
        let (sign, words) = match &case.outcome {
            Outcome::Passed => ("✅", "passed".to_owned()),
            Outcome::Failed(cause) => ("❌", cell(cause)),
            Outcome::NotRun(why) => ("⏭️", cell(why)),
        };
        verdicts.push(format!("| {sign} | {}: {} | {words} |\n", cell(&case.suite), cell(&case.name)));
    }
    let failures = record.failures.iter().map(|failure| {
        let help = failure.help.as_ref().map(|h| format!("<br>help: {}", cell(h))).unwrap_or_default();
        format!("- **not carried out**: {}{help}\n", cell(&failure.message))
    });
    let findings = record.by_weight().into_iter().map(row);
    let sections: [(&str, Vec<String>); 3] =
        [(VERDICTS, verdicts), ("\n", failures.collect()), (FINDINGS, findings.collect())];
    let total: usize = sections.iter().map(|(_, rows)| rows.len()).sum();
    let mut written = 0;
    'all: for (head, rows) in &sections {
        for (number, row) in rows.iter().enumerate() {
            let head = if number == 0 { head } else { "" };
            let rest = format!("\n{} more rows did not fit in here; the log has them all\n", total - written);
            if text.len() + head.len() + row.len() + rest.len() > limit {
                if text.len() + rest.len() <= limit {
                    text.push_str(&rest);
                }
                break 'all;
            }
            text.push_str(head);
            text.push_str(row);
            written += 1;
        }
    }
    if text.len() > limit { String::new() } else { text }
}

const VERDICTS: &str = "\n| | what | verdict |\n|---|---|---|\n";
const FINDINGS: &str = "\n| | finding | about | what | what now |\n|---|---|---|---|---|\n";

fn row(finding: &Finding) -> String {
    let sign = match (&finding.standing, finding.severity) {
        (Standing::Allowed { .. }, _) => "➖ allowed".to_owned(),
        (Standing::Denied, _) => "❌ denied".to_owned(),
        (Standing::Counts, severity) => format!("{} {severity}", sign(finding)),
    };
    let mut what = cell(&finding.message);
    if let Standing::Allowed { until, reason } = &finding.standing {
        what.push_str(&format!("<br>allowed until {until}: {}", cell(reason)));
    } else {
        for note in &finding.notes {
            what.push_str(&format!("<br>{}", cell(note)));
        }
    }
    let about = match finding.span.as_ref().filter(|_| finding.image.is_none()) {
        Some(span) => format!("{}<br>{}", cell(&finding.subject), cell(&span.file_line())),
        None => cell(&finding.subject),
    };
    let help = finding.help.as_deref().map(cell).unwrap_or_default();
    format!("| {sign} | {} | {about} | {what} | {help} |\n", cell(finding.code))
}

fn sign(finding: &Finding) -> &'static str {
    match finding.severity {
        super::Severity::Error => "❌",
        super::Severity::Warning => "⚠️",
        super::Severity::Notice => "ℹ️",
    }
}

/// Text for a cell: what is between two backticks as code, everything else as it reads. Whatever Markdown or HTML could
/// take for its own is a character reference, which both show as the character and never obey.
fn cell(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks pairs with nothing sure.
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let mut out = String::new();
    for (number, part) in parts.iter().enumerate() {
        let part = escape(part);
        if number.is_multiple_of(2) {
            out.push_str(&part);
        } else {
            out.push_str(&format!("<code>{part}</code>"));
        }
    }
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("<br>"),
            '&' | '<' | '>' | '|' | '`' | '*' | '_' | '[' | ']' | '~' | '\\' | '@' | '#' | '!' | '$' => {
                out.push_str(&format!("&#{};", u32::from(c)));
            }
            c if c.is_control() => out.extend(c.escape_unicode().filter(|c| !matches!(c, '\\'))),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::record::tests::sample;
    use crate::finding::{Rule, Severity};
    use snapbox::{assert_data_eq, str};

    #[test]
    fn a_summary_of_one_of_everything() {
        assert_data_eq!(
            render(&sample(), STEP_LIMIT),
            str![[r#"
### fitout verify: 2 errors, 2 warnings, 1 allowed, 1 not carried out

| | what | verdict |
|---|---|---|
| ❌ | dist/lis1.tar.gz | not self-consistent |
| ✅ | dist/por1.tar.gz | self-consistent |

- **not carried out**: cannot open dist/mad1.tar.gz: no such file<br>help: build it

| | finding | about | what | what now |
|---|---|---|---|---|
| ❌ error | ledger-mode | dist/lis1.tar.gz: /etc/a&#124;b | it is <code>0666</code>, not <code>0644</code> &#60;b&#62;<br>recorded by overlays/mesh/root | build it again,<br>then verify |
| ❌ error | tls-matrix-peer | lis1 → por1 | refused: 100% sure |  |
| ⚠️ warning | unused | site faro<br>mesh.toml:2 | no node is in this site | remove it |
| ⚠️ warning | etcd-old | dist/lis1.tar.gz | an odd <code>&#124;</code> thing |  |
| ➖ allowed | etcd-version-known | dist/lis1.tar.gz: etcd-server | the image has etcd 3.5.16<br>allowed until 2027-03-31: the vendor mends it in spring |  |

"#]]
        );
    }

    #[test]
    fn nothing_in_a_cell_is_obeyed() {
        for (text, want) in [
            ("a|b", "a&#124;b"),
            ("`x|y` z", "<code>x&#124;y</code> z"),
            ("odd ` one", "odd &#96; one"),
            ("<script>&", "&#60;script&#62;&#38;"),
            ("a\nb", "a<br>b"),
            ("*b* _c_ [d](e) @f", "&#42;b&#42; &#95;c&#95; &#91;d&#93;(e) &#64;f"),
        ] {
            assert_eq!(cell(text), want);
        }
    }

    #[test]
    fn it_keeps_within_its_limit_and_says_what_is_missing() {
        static RULE: Rule = Rule { code: "x", family: "x", severity: Severity::Error, summary: "", explanation: "" };
        let findings = (0..100).map(|n| RULE.finding(format!("subject {n}"), "a message")).collect();
        let record = Record { verb: "verify".into(), findings, ..Record::default() };
        let whole = render(&record, STEP_LIMIT);
        assert!(whole.contains("subject 99") && !whole.contains("did not fit"));
        for limit in [0, 10, 60, 200, 1000, 4000] {
            let text = render(&record, limit);
            assert!(text.len() <= limit, "{limit}");
            assert_eq!(text.contains("more rows did not fit"), limit >= 200, "{limit}: {text}");
        }
    }
}
