//! `fitout explain CODE`: what a finding means, why it matters, how to mend it.

use super::usage::UNKNOWN_CODE;
use super::{Exit, Global, Ui, VerbResult, rules};
use crate::declaration::suggest;
use crate::finding::{Problem, Rule};

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Code of a finding, as printed in brackets
    #[arg(required_unless_present = "list")]
    code: Option<String>,
    /// List every code with its family, severity and summary
    #[arg(long)]
    list: bool,
}

/// Prints one explanation, or the list.
///
/// # Errors
/// When no rule has the code.
pub fn run(args: &Args, _global: &Global, ui: &Ui) -> VerbResult {
    let all = rules::all();
    let Some(code) = args.code.as_deref().filter(|_| !args.list) else {
        list(ui, &all);
        return Ok(Exit::Clean);
    };
    let Some(rule) = all.iter().find(|r| r.code == code) else {
        let help = match suggest::closest(code, all.iter().map(|r| r.code)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`fitout explain --list` prints every code".into(),
        };
        return Err(Problem::from(UNKNOWN_CODE.finding(code, "no rule has this code").help(help)));
    };
    ui.object(&to_json(rule));
    if !ui.json() {
        ui.line(format!("{}[{}] ({})", rule.severity, rule.code, rule.family));
        ui.line(rule.summary);
        ui.line("");
        ui.line(wrap(rule.explanation, 96));
    }
    Ok(Exit::Clean)
}

/// One line per rule.
pub fn list(ui: &Ui, rules: &[&'static Rule]) {
    for rule in rules {
        ui.object(&to_json(rule));
        if !ui.json() {
            ui.line(format!("{:<12} {:<8} {:<34} {}", rule.family, rule.severity.to_string(), rule.code, rule.summary));
        }
    }
}

fn to_json(rule: &Rule) -> serde_json::Value {
    serde_json::json!({"type": "rule", "code": rule.code, "family": rule.family, "severity": rule.severity,
        "summary": rule.summary, "explanation": rule.explanation})
}

/// Fills paragraphs (separated by empty lines) to a width.
fn wrap(text: &str, width: usize) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let mut lines = vec![String::new()];
        for word in paragraph.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.join("\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn paragraphs_are_filled() {
        assert_eq!(wrap("aa bb  cc\ndd\n\nee", 5), "aa bb\ncc dd\n\nee");
    }
}
