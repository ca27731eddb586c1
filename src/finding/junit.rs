//! JUnit XML: a suite for each image (or the declaration), a case for each rule that was applied.
//!
//! A case passes when its rule found nothing; warnings and notices are in its `system-out`. What counts is a `failure`,
//! what `[allow]` takes out is `skipped`, what could not be carried out is an `error`. Names of cases hold the suite,
//! since GitLab tells cases apart by class and name alone.
//!
//! There are no times and no identifiers of the run in it, so the same input gives the same bytes.

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::record::{Case, Outcome, Record, Suite};
use super::{Failure, Finding, Rule, Standing, human};

/// The suite of what could not be carried out.
const CARRIED_OUT: &str = "carried out";

/// The whole document, with its final line end.
///
/// # Errors
/// When it cannot be written as XML.
pub fn render(record: &Record) -> Result<String, Failure> {
    let mut report = Report::new(format!("fitout {}", record.verb));
    for suite in record.suites() {
        report.add_test_suite(of_suite(&suite, record));
    }
    if !record.failures.is_empty() {
        let mut suite = TestSuite::new(CARRIED_OUT);
        suite.add_test_cases(record.failures.iter().map(of_failure));
        report.add_test_suite(suite);
    }
    let text = report.to_string().map_err(|e| Failure::new(format!("cannot write the report as XML: {e}")))?;
    Ok(format!("{}\n", text.trim_end()))
}

fn of_suite(suite: &Suite<'_>, record: &Record) -> TestSuite {
    let mut out = TestSuite::new(plain(&suite.name));
    for verdict in record.verdicts.iter().filter(|v| v.subject == suite.name) {
        out.add_property(Property::new("verdict", plain(&verdict.text)));
    }
    for rule in &suite.rules {
        let found: Vec<&Finding> = suite.findings.iter().copied().filter(|f| f.code == rule.code).collect();
        out.add_test_case(of_rule(suite, rule.family, rule.code, Some(rule), &found));
    }
    // Rules that nobody said were applied: only their findings are known.
    let mut seen: Vec<&str> = suite.rules.iter().map(|r| r.code).collect();
    for finding in &suite.findings {
        if !seen.contains(&finding.code) {
            seen.push(finding.code);
            let found: Vec<&Finding> = suite.findings.iter().copied().filter(|f| f.code == finding.code).collect();
            out.add_test_case(of_rule(suite, finding.family, finding.code, None, &found));
        }
    }
    out.add_test_cases(suite.cases.iter().map(|case| of_case(case)));
    out
}

fn of_rule(suite: &Suite<'_>, family: &str, code: &str, rule: Option<&Rule>, found: &[&Finding]) -> TestCase {
    let text = || plain(found.iter().map(|f| human::render(f, false)).collect::<String>().trim_end());
    let failing: Vec<&&Finding> = found.iter().filter(|f| f.fails()).collect();
    let allowed = found.iter().find_map(|f| match &f.standing {
        Standing::Allowed { until, reason } => Some(format!("allowed until {until}: {reason}")),
        Standing::Counts | Standing::Denied => None,
    });
    let mut told = false;
    let status = if let Some(first) = failing.first() {
        told = true;
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let more = if failing.len() > 1 { format!(" (and {} more)", failing.len() - 1) } else { String::new() };
        status.set_message(plain(&format!("{}: {}{more}", first.subject, first.message)));
        let denied = first.standing == Standing::Denied;
        status.set_type(if denied { "denied warning" } else { "error" }).set_description(text());
        status
    } else if let Some(allowed) = allowed {
        let mut status = TestCaseStatus::skipped();
        status.set_message(plain(&allowed));
        status
    } else {
        TestCaseStatus::success()
    };
    let mut case = TestCase::new(plain(&format!("{code} ({})", suite.name)), status);
    case.set_classname(format!("fitout.{family}"));
    let place = found.iter().filter(|f| f.image.is_none()).find_map(|f| f.span.as_ref());
    if let Some(span) = place {
        case.extra.insert("file".into(), plain(&span.source.name).into());
        case.extra.insert("line".into(), span.source.line_column(span.range.start).0.to_string().into());
    }
    if !told && !found.is_empty() {
        case.set_system_out(text());
    } else if let (true, Some(rule)) = (found.is_empty(), rule) {
        // What a pass means: the rule's claim did not hold anywhere.
        case.set_system_out(plain(&format!("not found: {}", rule.summary)));
    }
    case
}

fn of_case(case: &Case) -> TestCase {
    let status = match &case.outcome {
        Outcome::Passed => TestCaseStatus::success(),
        Outcome::Failed(cause) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(plain(cause.lines().next().unwrap_or_default()));
            status.set_type("error").set_description(plain(cause));
            status
        }
        Outcome::NotRun(why) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(plain(why));
            status
        }
    };
    let mut out = TestCase::new(plain(&case.name), status);
    out.set_classname(format!("fitout.{}", case.suite));
    if let Some(seconds) = case.seconds.filter(|s| s.is_finite() && *s >= 0.0) {
        out.set_time(std::time::Duration::from_secs_f64(seconds));
    }
    if !case.notes.is_empty() {
        out.set_system_out(plain(&case.notes.join("\n")));
    }
    out
}

fn of_failure(failure: &Failure) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    let first = failure.message.lines().next().unwrap_or_default();
    status
        .set_message(plain(first))
        .set_type("failure")
        .set_description(plain(human::render_failure(failure, false).trim_end()));
    let mut case = TestCase::new(plain(first), status);
    case.set_classname("fitout.failure");
    case
}

/// Text that XML 1.0 can hold (section 2.2): other control characters, and the two that are none, are shown escaped.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let good = matches!(c, '\t' | '\n' | '\r') || (!c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'));
        if good { out.push(c) } else { out.extend(c.escape_unicode()) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::record::tests::sample;
    use snapbox::{assert_data_eq, str};

    #[test]
    fn a_document_of_one_of_everything() {
        let mut record = sample();
        for (name, outcome, seconds) in [
            ("boots-stopped", Outcome::Passed, Some(3.5)),
            ("quorum", Outcome::Failed("lis1: inactive\nsecond".into()), Some(1.0)),
            ("check", Outcome::NotRun("an earlier step failed".into()), None),
        ] {
            let notes = vec!["a fact".to_owned()];
            record.cases.push(Case { suite: "gate".into(), name: name.into(), outcome, notes, seconds });
        }
        assert_data_eq!(
            render(&record).unwrap(),
            str![[r#"
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="fitout verify" tests="12" skipped="2" failures="3" errors="1">
    <testsuite name="dist/lis1.tar.gz" tests="4" skipped="1" errors="0" failures="1">
        <properties>
            <property name="verdict" value="not self-consistent"/>
        </properties>
        <testcase name="ledger-mode (dist/lis1.tar.gz)" classname="fitout.ledger">
            <failure message="dist/lis1.tar.gz: /etc/a|b: it is `0666`, not `0644` &lt;b&gt;" type="error">error[ledger-mode]: dist/lis1.tar.gz: /etc/a|b: it is `0666`, not `0644` &lt;b&gt;
 |
 = note: recorded by overlays/mesh/root
 = help: build it again,
         then verify</failure>
        </testcase>
        <testcase name="ledger-owner (dist/lis1.tar.gz)" classname="fitout.ledger">
            <system-out>not found: a summary</system-out>
        </testcase>
        <testcase name="etcd-version-known (dist/lis1.tar.gz)" classname="fitout.etcd">
            <skipped message="allowed until 2027-03-31: the vendor mends it in spring"/>
            <system-out>allowed[etcd-version-known]: dist/lis1.tar.gz: etcd-server: the image has etcd 3.5.16
  = allowed until 2027-03-31: the vendor mends it in spring</system-out>
        </testcase>
        <testcase name="etcd-old (dist/lis1.tar.gz)" classname="fitout.etcd">
            <system-out>warning[etcd-old]: dist/lis1.tar.gz: an odd `|` thing</system-out>
        </testcase>
    </testsuite>
    <testsuite name="dist/por1.tar.gz" tests="2" skipped="0" errors="0" failures="0">
        <properties>
            <property name="verdict" value="self-consistent"/>
        </properties>
        <testcase name="ledger-mode (dist/por1.tar.gz)" classname="fitout.ledger">
            <system-out>not found: a summary</system-out>
        </testcase>
        <testcase name="ledger-owner (dist/por1.tar.gz)" classname="fitout.ledger">
            <system-out>not found: a summary</system-out>
        </testcase>
    </testsuite>
    <testsuite name="gate" tests="3" skipped="1" errors="0" failures="1">
        <testcase name="boots-stopped" classname="fitout.gate" time="3.500">
            <system-out>a fact</system-out>
        </testcase>
        <testcase name="quorum" classname="fitout.gate" time="1.000">
            <failure message="lis1: inactive" type="error">lis1: inactive
second</failure>
            <system-out>a fact</system-out>
        </testcase>
        <testcase name="check" classname="fitout.gate">
            <skipped message="an earlier step failed"/>
            <system-out>a fact</system-out>
        </testcase>
    </testsuite>
    <testsuite name="declaration" tests="1" skipped="0" errors="0" failures="0">
        <testcase name="unused (declaration)" classname="fitout.declaration" file="mesh.toml" line="2">
            <system-out>warning[unused]: site faro: no node is in this site
 --&gt; mesh.toml:2:7
  |
2 | [site.faro]
  |       ^^^^
  |
  = help: remove it</system-out>
        </testcase>
    </testsuite>
    <testsuite name="images together" tests="1" skipped="0" errors="0" failures="1">
        <testcase name="tls-matrix-peer (images together)" classname="fitout.tls">
            <failure message="lis1 → por1: refused: 100% sure" type="error">error[tls-matrix-peer]: lis1 → por1: refused: 100% sure</failure>
        </testcase>
    </testsuite>
    <testsuite name="carried out" tests="1" skipped="0" errors="1" failures="0">
        <testcase name="cannot open dist/mad1.tar.gz: no such file" classname="fitout.failure">
            <error message="cannot open dist/mad1.tar.gz: no such file" type="failure">error: cannot open dist/mad1.tar.gz: no such file
 |
 = help: build it</error>
        </testcase>
    </testsuite>
</testsuites>

"#]]
        );
    }

    #[test]
    fn what_xml_cannot_hold_is_shown_escaped() {
        assert_eq!(plain("a\u{1b}[31m\u{0}\tb\u{fffe}ö"), "a\\u{1b}[31m\\u{0}\tb\\u{fffe}ö");
    }
}
