//! The verdict, step by step.

use std::time::Duration;

use serde_json::{Value, json};

use crate::finding::Finding;

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Its claim holds.
    Passed,
    /// It does not; why.
    Failed(String),
    /// An earlier step failed.
    NotRun,
}

/// One step's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Name of the step.
    pub step: &'static str,
    /// What must be true.
    pub claim: &'static str,
    /// Whether it is.
    pub verdict: Verdict,
    /// How long the step took.
    pub took: Duration,
    /// Measured facts.
    pub notes: Vec<String>,
}

/// Receives what the gate does and finds. How it looks is the command line's business.
pub trait Reporter {
    /// Something long begins.
    fn status(&self, text: &str);
    /// A step is over.
    fn outcome(&self, outcome: &Outcome);
    /// Findings as they count: what the mesh allows is taken out, what is denied is an error.
    fn judge(&self, findings: Vec<Finding>) -> Vec<Finding>;
}

impl Outcome {
    /// One JSON object.
    pub fn to_json(&self) -> Value {
        let (verdict, cause) = match &self.verdict {
            Verdict::Passed => ("passed", None),
            Verdict::Failed(cause) => ("failed", Some(cause)),
            Verdict::NotRun => ("not-run", None),
        };
        json!({
            "type": "step", "step": self.step, "claim": self.claim, "verdict": verdict, "cause": cause,
            "seconds": self.took.as_secs_f64(), "notes": self.notes,
        })
    }

    /// Lines for people.
    pub fn to_text(&self) -> String {
        let word = match self.verdict {
            Verdict::Passed => "ok",
            Verdict::Failed(_) => "FAILED",
            Verdict::NotRun => "not run",
        };
        let time =
            if self.verdict == Verdict::NotRun { String::new() } else { format!("{:.2} s", self.took.as_secs_f64()) };
        let mut text = format!("{word:<8}{time:>8}  {}: {}\n", self.step, self.claim);
        for note in &self.notes {
            text.push_str(&format!("{:18}{note}\n", ""));
        }
        if let Verdict::Failed(cause) = &self.verdict {
            for line in cause.lines() {
                text.push_str(&format!("{:18}{line}\n", ""));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_for_people_and_programs() {
        let outcome = Outcome {
            step: "quorum",
            claim: "three voters form a quorum",
            verdict: Verdict::Failed("lis1: inactive\nsecond line".into()),
            took: Duration::from_millis(3512),
            notes: vec!["a fact".into()],
        };
        assert_eq!(
            outcome.to_text(),
            "FAILED    3.51 s  quorum: three voters form a quorum\n                  a fact\n                  \
             lis1: inactive\n                  second line\n"
        );
        assert_eq!(outcome.to_json()["verdict"], "failed");
        assert_eq!(outcome.to_json()["seconds"], 3.512);
        let outcome = Outcome { verdict: Verdict::NotRun, ..outcome };
        assert!(outcome.to_text().starts_with("not run           quorum: "), "{}", outcome.to_text());
    }
}
