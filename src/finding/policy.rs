//! What the user says of findings: `--deny warnings`, and the entries of `[allow]` in `mesh.toml`.

use time::Date;

use super::{Finding, Severity, Span, Spanned, Standing};

/// An entry of `[allow]`: findings of one code do not count, for a reason and until a day.
#[derive(Debug, Clone)]
pub struct Allowance {
    /// Code of the rule.
    pub code: String,
    /// Where the entry stands.
    pub span: Span,
    /// Why; one line.
    pub reason: Spanned<String>,
    /// The last day on which it holds, in UTC.
    pub until: Spanned<Date>,
    /// Only findings that are about these nodes; empty: all.
    pub nodes: Vec<Spanned<String>>,
}

impl Allowance {
    /// True when the entry no longer holds on this day.
    pub fn is_over(&self, today: Date) -> bool {
        self.until.value < today
    }

    /// True when it is meant for this finding. A finding about two nodes must have both named; one that is about no
    /// node at all is not meant by an entry that names nodes.
    fn covers(&self, finding: &Finding) -> bool {
        let named = |node: &String| self.nodes.iter().any(|n| n.value == *node);
        self.code == finding.code
            && (self.nodes.is_empty() || (!finding.nodes.is_empty() && finding.nodes.iter().all(named)))
    }
}

/// How findings are taken.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `--deny warnings`.
    pub deny_warnings: bool,
    /// Entries of `[allow]` that hold today.
    pub allowed: Vec<Allowance>,
}

impl Policy {
    /// Splits subjects into their parts, takes out what is allowed, and makes errors of warnings that are denied.
    /// Applying it a second time changes nothing.
    pub fn apply(&self, findings: Vec<Finding>) -> Vec<Finding> {
        findings.into_iter().map(|finding| self.one(finding.located())).collect()
    }

    fn one(&self, mut finding: Finding) -> Finding {
        if finding.standing != Standing::Counts {
            return finding;
        }
        if let Some(allowance) = self.allowed.iter().find(|a| a.covers(&finding)) {
            finding.standing =
                Standing::Allowed { until: allowance.until.value, reason: allowance.reason.value.clone() };
        } else if self.deny_warnings && finding.severity == Severity::Warning {
            finding.severity = Severity::Error;
            finding.standing = Standing::Denied;
        }
        finding
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::finding::{Rule, Source, has_errors};
    use time::macros::date;

    static OLD: Rule = Rule { code: "old", family: "x", severity: Severity::Warning, summary: "", explanation: "" };
    static BAD: Rule = Rule { code: "bad", family: "x", severity: Severity::Error, summary: "", explanation: "" };

    /// An entry until the last day of March 2027.
    pub(crate) fn allowance(code: &str, nodes: &[&str]) -> Allowance {
        let span = Span::new(&Source::new("mesh.toml", "[allow]\n"), 0..7);
        Allowance {
            code: code.to_owned(),
            reason: Spanned::new("the vendor mends it in spring".to_owned(), span.clone()),
            until: Spanned::new(date!(2027 - 03 - 31), span.clone()),
            nodes: nodes.iter().map(|n| Spanned::new((*n).to_owned(), span.clone())).collect(),
            span,
        }
    }

    /// Of each finding its severity and standing, and whether the whole fails.
    fn taken(policy: &Policy, findings: &[Finding]) -> (Vec<String>, bool) {
        let once = policy.apply(findings.to_vec());
        assert_eq!(policy.apply(once.clone()), once, "a second time changes nothing");
        let words = once.iter().map(|f| match &f.standing {
            Standing::Counts => f.severity.to_string(),
            Standing::Denied => format!("{} denied", f.severity),
            Standing::Allowed { .. } => format!("{} allowed", f.severity),
        });
        (words.collect(), has_errors(&once))
    }

    #[test]
    fn denied_and_allowed() {
        let all = [OLD.finding("node lis1", "m"), BAD.finding("node por1", "m"), BAD.finding("lis1 → por1", "m")];
        let policy = |deny_warnings, allowed: &[(&str, &[&str])]| Policy {
            deny_warnings,
            allowed: allowed.iter().map(|(code, nodes)| allowance(code, nodes)).collect(),
        };
        type Case = (Policy, [&'static str; 3], bool);
        let cases: Vec<Case> = vec![
            (policy(false, &[]), ["warning", "error", "error"], true),
            (policy(true, &[]), ["error denied", "error", "error"], true),
            (policy(true, &[("old", &[]), ("bad", &[])]), ["warning allowed", "error allowed", "error allowed"], false),
            (policy(false, &[("bad", &["por1"])]), ["warning", "error allowed", "error"], true),
            (policy(false, &[("bad", &["por1", "lis1"])]), ["warning", "error allowed", "error allowed"], false),
            (policy(true, &[("old", &["por1"])]), ["error denied", "error", "error"], true),
        ];
        for (policy, want, fails) in cases {
            let (got, failed) = taken(&policy, &all);
            assert_eq!((got.as_slice(), failed), (want.map(str::to_owned).as_slice(), fails), "{policy:?}");
        }
        let nobody = [BAD.finding("the registry", "m")];
        assert_eq!(taken(&policy(false, &[("bad", &["lis1"])]), &nobody), (vec!["error".to_owned()], true));
    }

    #[test]
    fn it_holds_through_its_last_day() {
        let entry = allowance("bad", &[]);
        assert!(!entry.is_over(date!(2027 - 03 - 31)) && entry.is_over(date!(2027 - 04 - 01)));
    }
}
