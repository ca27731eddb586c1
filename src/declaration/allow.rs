//! `[allow.CODE]`: findings that shall not count, for a reason and until a day.
//!
//! ```toml
//! [allow.etcd-version-known]
//! reason = "Debian's security team has it in the queue: #1234567"
//! until = 2027-03-31     # a date of TOML's; through the end of that day, in UTC
//! nodes = ["por1"]       # may be left out: all
//! ```
//!
//! Which codes there are is known only further down, by the command line: it hands the rules in as a [`Rulebook`].

use time::{Date, Duration};
use toml::de::DeValue;

use super::model::Mesh;
use super::section::{Reports, Section};
use super::table::{Refusal, Table};
use super::values::{self, INVALID_VALUE};
use super::{mesh_file::UNKNOWN_REFERENCE, suggest};
use crate::finding::{Allowance, Rule, Severity};

/// How far ahead an entry may reach.
pub const LONGEST: Duration = Duration::days(400);

/// No rule has the code.
pub static UNKNOWN_CODE: Rule = Rule {
    code: "allow-unknown-code",
    family: "declaration",
    severity: Severity::Error,
    summary: "an entry of `[allow]` names a code that no rule has",
    explanation: "An entry for a code that does not exist would allow nothing, and the finding that was meant would go on \
        failing. `fitout explain --list` prints every code. Mend the name of the table, or remove it.",
};

/// The rule may not be allowed.
pub static REFUSED: Rule = Rule {
    code: "allow-refused",
    family: "declaration",
    severity: Severity::Error,
    summary: "an entry of `[allow]` is for a finding that may not be allowed",
    explanation: "Some findings say that nothing could be proven (an archive that cannot be read to its end, an image \
        without manifest), or that nothing can be made (errors of the declaration, of overlays, of the base, of the \
        certificate store), or that a secret is out. To take them out of the verdict would make the verdict a lie. \
        Mend the cause and remove the entry.",
};

/// The entry is over.
pub static EXPIRED: Rule = Rule {
    code: "allow-expired",
    family: "declaration",
    severity: Severity::Warning,
    summary: "an entry of `[allow]` is over",
    explanation: "An entry holds through the day that `until` names, in UTC. After it the findings count again. Mend what \
        it covered and remove the entry, or give a later day, with a reason that is true today.",
};

/// The entry reaches too far.
pub static TOO_FAR: Rule = Rule {
    code: "allow-too-far",
    family: "declaration",
    severity: Severity::Error,
    summary: "an entry of `[allow]` reaches more than 400 days ahead",
    explanation: "An exception that nobody has to look at again is a rule switched off. A day at most 400 days ahead brings \
        it back once a year.",
};

/// Rules of this file.
pub(super) const RULES: &[&Rule] = &[&UNKNOWN_CODE, &REFUSED, &EXPIRED, &TOO_FAR];

/// What is known of rules and of the day.
#[derive(Debug, Clone)]
pub struct Rulebook {
    /// The day, in UTC.
    pub today: Date,
    /// Every rule of the program, and why it may not be allowed; `None`: it may.
    pub rules: Vec<(&'static Rule, Option<&'static str>)>,
}

impl Mesh {
    /// The entries of `[allow]` that hold on a day.
    pub fn allowed_on(&self, today: Date) -> Vec<Allowance> {
        self.allow.iter().filter(|entry| !entry.is_over(today)).cloned().collect()
    }
}

/// A date of TOML's, without a time.
fn date(value: &DeValue<'_>) -> Result<Date, Refusal> {
    let DeValue::Datetime(given) = value else {
        let help = match value.as_str() {
            Some(text) => format!("write it without quotes: {text}"),
            None => "for instance 2027-03-31".to_owned(),
        };
        return Err(Refusal::wrong_type(value, "a date").help(help));
    };
    let (Some(date), None, None) = (given.date, given.time, given.offset) else {
        return Err(Refusal::new(&INVALID_VALUE, "must be a date without a time")
            .help("give the last day on which it holds, in UTC: 2027-03-31"));
    };
    let month = time::Month::try_from(date.month);
    month
        .and_then(|month| Date::from_calendar_date(i32::from(date.year), month, date.day))
        .map_err(|_| Refusal::new(&INVALID_VALUE, format!("there is no day {given}")))
}

/// Reads the entries; those that cannot be read are reported and left out.
pub(super) fn decode(file: &mut Table<'_>) -> Vec<Allowance> {
    let mut all = Vec::new();
    for (code, mut table) in file.tables("allow", Section::Allow) {
        let reason = table.need("reason", values::line, "\"why it may wait\"");
        let until = table.need("until", date, "2027-03-31");
        let given = table.key_span("nodes");
        let nodes = table.list("nodes", values::label);
        if let (Some(span), true, true) = (given, nodes.is_empty(), table.reports.sound(&[Section::Allow])) {
            let refusal = Refusal::new(&INVALID_VALUE, "names no node, so the entry would allow nothing");
            table.refuse("nodes", &span, refusal.help("name nodes, or leave `nodes` out to mean all"));
        }
        table.finish();
        if let (Some(reason), Some(until)) = (reason, until) {
            all.push(Allowance { code: code.value, span: code.span, reason, until, nodes });
        }
    }
    all
}

/// The rules of this file, and that the nodes exist. Without a rulebook neither codes nor dates are looked at.
pub(super) fn check(mesh: &Mesh, rulebook: Option<&Rulebook>, reports: &Reports) {
    for entry in &mesh.allow {
        let subject = format!("allow.{}", entry.code);
        if reports.sound(&[Section::Nodes]) {
            for node in entry.nodes.iter().filter(|n| !mesh.nodes.contains_key(&n.value)) {
                let known: Vec<&str> = mesh.nodes.keys().map(String::as_str).collect();
                let mut finding =
                    UNKNOWN_REFERENCE.finding(&subject, format!("there is no node `{}`", node.value)).at(&node.span);
                finding.help = suggest::help(&node.value, "node", &known);
                reports.add(finding);
            }
        }
        let Some(rulebook) = rulebook else { continue };
        match rulebook.rules.iter().find(|(rule, _)| rule.code == entry.code) {
            None => {
                let codes = rulebook.rules.iter().map(|(rule, _)| rule.code);
                let help = match suggest::closest(&entry.code, codes) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "`fitout explain --list` prints every code".to_owned(),
                };
                let message = format!("no rule has the code `{}`", entry.code.escape_debug());
                reports.add(UNKNOWN_CODE.finding(&subject, message).at(&entry.span).help(help));
            }
            Some((_, Some(why))) => {
                let message = format!("`{}` may not be allowed: {why}", entry.code);
                let help = format!("remove the entry; `fitout explain {}` says how to mend the cause", entry.code);
                reports.add(REFUSED.finding(&subject, message).at(&entry.span).help(help));
            }
            Some((_, None)) => {}
        }
        let until = entry.until.value;
        if entry.is_over(rulebook.today) {
            reports.add(
                EXPIRED
                    .finding(&subject, format!("the entry is over since the end of {until}: its findings count again"))
                    .at(&entry.span)
                    .related(&entry.until.span, "through this day")
                    .note(format!("its reason was: {}", entry.reason.value))
                    .help("mend what it covered and remove it, or give a later day with a reason that is true today"),
            );
        } else if until - rulebook.today > LONGEST {
            let last = rulebook.today + LONGEST;
            reports.add(
                TOO_FAR
                    .finding(&subject, format!("{until} is more than {} days ahead", LONGEST.whole_days()))
                    .at(&entry.until.span)
                    .help(format!("give a day until {last}; when it comes, look whether the reason still holds")),
            );
        }
    }
}
