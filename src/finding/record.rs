//! What a run of the program has found, for the renderers that print a whole: a job summary, a JUnit report.

use std::collections::BTreeMap;

use super::{Failure, Finding, Rule, Severity, Standing};

/// The suite of findings that are about no single image.
pub const DECLARATION: &str = "declaration";
/// The suite of findings about two images or more.
pub const TOGETHER: &str = "images together";
/// The suite of the certificate store.
pub const STORE: &str = "certificate store";
/// The suite of what is wrong with the command line.
pub const USAGE: &str = "usage";

/// All that a run has found and done.
#[derive(Debug, Default)]
pub struct Record {
    /// The verb with its name: `verify`, `pki status`.
    pub verb: String,
    /// Rules that were applied, by suite (an image, or one of the constants), in the order of the run.
    pub applied: Vec<(String, Vec<&'static Rule>)>,
    /// All findings, in the order of the run.
    pub findings: Vec<Finding>,
    /// What could not be carried out.
    pub failures: Vec<Failure>,
    /// Verdicts in words, by what they are about.
    pub verdicts: Vec<Verdict>,
    /// Steps with an outcome of their own.
    pub cases: Vec<Case>,
}

/// A verdict on one image, or on a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What it is about.
    pub subject: String,
    /// In words: `self-consistent`.
    pub text: String,
    /// Whether it is a good one.
    pub good: bool,
}

/// A step that passes or not, such as those of the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Suite.
    pub suite: String,
    /// Name of the step.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Facts, one a line.
    pub notes: Vec<String>,
    /// How long it took, when it ran.
    pub seconds: Option<f64>,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its claim holds.
    Passed,
    /// It does not; why.
    Failed(String),
    /// It was not run; why.
    NotRun(String),
}

/// How many findings of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Errors that count, denied warnings among them.
    pub errors: usize,
    /// Warnings that count as such.
    pub warnings: usize,
    /// Notices.
    pub notices: usize,
    /// Findings that an entry of `[allow]` takes out.
    pub allowed: usize,
    /// Warnings that `--deny warnings` counts as errors.
    pub denied: usize,
}

impl Counts {
    /// Counts findings.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Counts {
        let mut counts = Counts::default();
        for finding in findings {
            counts.denied += usize::from(finding.standing == Standing::Denied);
            match finding.severity {
                _ if finding.is_allowed() => counts.allowed += 1,
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Notice => counts.notices += 1,
            }
        }
        counts
    }

    /// `2 errors (1 denied), 1 warning, 1 allowed`: errors and warnings always, the others when there are any.
    pub fn words(&self) -> String {
        let noun = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let mut text = noun(self.errors, "error");
        if self.denied > 0 {
            text.push_str(&format!(" ({} denied)", self.denied));
        }
        text.push_str(&format!(", {}", noun(self.warnings, "warning")));
        if self.allowed > 0 {
            text.push_str(&format!(", {} allowed", self.allowed));
        }
        text
    }
}

impl Record {
    /// The findings by suite: first the suites whose rules were applied, then the others in the order of the run.
    pub fn suites(&self) -> Vec<Suite<'_>> {
        let mut suites: Vec<Suite<'_>> = Vec::new();
        let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
        let mut index = |name: &str, suites: &mut Vec<Suite<'_>>| {
            *by_name.entry(name.to_owned()).or_insert_with(|| {
                suites.push(Suite { name: name.to_owned(), ..Suite::default() });
                suites.len() - 1
            })
        };
        for (name, rules) in &self.applied {
            let at = index(name, &mut suites);
            for rule in rules {
                if !suites[at].rules.iter().any(|r| r.code == rule.code) {
                    suites[at].rules.push(rule);
                }
            }
        }
        for case in &self.cases {
            let at = index(&case.suite, &mut suites);
            suites[at].cases.push(case);
        }
        for finding in &self.findings {
            let at = index(suite_of(finding), &mut suites);
            suites[at].findings.push(finding);
        }
        suites
    }

    /// The findings by what matters most: errors, warnings, notices, then what is allowed; each in the order of the run.
    pub fn by_weight(&self) -> Vec<&Finding> {
        let mut all: Vec<&Finding> = self.findings.iter().collect();
        all.sort_by_key(|f| (f.is_allowed(), std::cmp::Reverse(f.severity)));
        all
    }
}

/// What is known of one image, or of the declaration.
#[derive(Debug, Default)]
pub struct Suite<'a> {
    /// Name.
    pub name: String,
    /// Rules that were applied.
    pub rules: Vec<&'static Rule>,
    /// Findings.
    pub findings: Vec<&'a Finding>,
    /// Steps.
    pub cases: Vec<&'a Case>,
}

/// The suite to which a finding belongs.
pub fn suite_of(finding: &Finding) -> &str {
    match (&finding.image, finding.family) {
        (Some(image), _) => image,
        (None, "pki") => STORE,
        (None, "usage") => USAGE,
        (None, "declaration" | "overlay" | "base" | "lock" | "image") => DECLARATION,
        (None, _) => TOGETHER,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::finding::{Source, Span};

    const fn rule(code: &'static str, family: &'static str, severity: Severity) -> Rule {
        Rule { code, family, severity, summary: "a summary", explanation: "" }
    }
    static UNUSED: Rule = rule("unused", "declaration", Severity::Warning);
    static MODE: Rule = rule("ledger-mode", "ledger", Severity::Error);
    static QUIET: Rule = rule("ledger-owner", "ledger", Severity::Error);
    static KNOWN: Rule = rule("etcd-version-known", "etcd", Severity::Warning);
    static OLD: Rule = rule("etcd-old", "etcd", Severity::Warning);
    static PAIR: Rule = rule("tls-matrix-peer", "tls", Severity::Error);

    /// A run of `verify` with one of everything.
    pub(crate) fn sample() -> Record {
        let mesh = Source::new("mesh.toml", "[site.lisbon]\n[site.faro]\n");
        let policy = crate::finding::Policy {
            deny_warnings: false,
            allowed: vec![crate::finding::policy::tests::allowance("etcd-version-known", &[])],
        };
        let image = "dist/lis1.tar.gz";
        let findings = vec![
            UNUSED.finding("site faro", "no node is in this site").at(&Span::new(&mesh, 20..24)).help("remove it"),
            MODE.finding(format!("{image}: /etc/a|b"), "it is `0666`, not `0644` <b>")
                .of_image(image)
                .note("recorded by overlays/mesh/root")
                .help("build it again,\nthen verify"),
            KNOWN.finding(format!("{image}: etcd-server"), "the image has etcd 3.5.16").of_image(image),
            OLD.finding(image, "an odd `|` thing").of_image(image),
            PAIR.finding("lis1 → por1", "refused: 100% sure"),
        ];
        let mut record = Record {
            verb: "verify".into(),
            applied: vec![
                (image.to_owned(), vec![&MODE, &QUIET, &KNOWN, &OLD]),
                ("dist/por1.tar.gz".to_owned(), vec![&MODE, &QUIET]),
            ],
            findings: policy.apply(findings),
            failures: vec![Failure::new("cannot open dist/mad1.tar.gz: no such file").help("build it")],
            ..Record::default()
        };
        for (subject, text, good) in
            [(image, "not self-consistent", false), ("dist/por1.tar.gz", "self-consistent", true)]
        {
            record.verdicts.push(Verdict { subject: subject.into(), text: text.into(), good });
        }
        record
    }

    #[test]
    fn findings_go_to_their_suites() {
        let record = sample();
        let suites: Vec<_> =
            record.suites().iter().map(|s| (s.name.clone(), s.rules.len(), s.findings.len())).collect();
        let want = [("dist/lis1.tar.gz", 4, 3), ("dist/por1.tar.gz", 2, 0), (DECLARATION, 0, 1), (TOGETHER, 0, 1)];
        assert_eq!(suites, want.map(|(name, rules, findings)| (name.to_owned(), rules, findings)));
    }

    #[test]
    fn errors_come_first_and_are_counted() {
        let record = sample();
        let codes: Vec<_> = record.by_weight().iter().map(|f| f.code).collect();
        assert_eq!(codes, ["ledger-mode", "tls-matrix-peer", "unused", "etcd-old", "etcd-version-known"]);
        let counts = Counts::of(&record.findings);
        assert_eq!(counts.words(), "2 errors, 2 warnings, 1 allowed");
        let denied = Counts { errors: 1, denied: 1, ..Counts::default() };
        assert_eq!(denied.words(), "1 error (1 denied), 0 warnings");
    }
}
