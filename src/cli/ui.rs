//! What the verbs print with: findings and results to stdout, progress to stderr, and at the end what is printed as a
//! whole: a JUnit document, annotations, a job summary, the files of `--report`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Global;
use super::report::{self, ReportFormat};
use crate::finding::record::{Case, Counts, Record, Verdict};
use crate::finding::{self, Allowance, Failure, Finding, Policy, Problem, Rule};
use crate::image::progress::{Progress, Step};

/// `--message-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MessageFormat {
    /// For people
    Human,
    /// One JSON object a line: docs/message-format.md
    Json,
    /// For people, with an annotation for each finding, and a job summary in $GITHUB_STEP_SUMMARY
    Github,
    /// One JUnit XML document on stdout; what people read goes to stderr
    Junit,
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Exit status of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Clean.
    Clean = 0,
    /// Findings of severity error.
    Findings = 1,
    /// Bad usage or declaration.
    Usage = 2,
    /// Could not be carried out.
    Failure = 3,
}

/// What a run has said so far.
#[derive(Debug, Default)]
struct State {
    record: Record,
    policy: Policy,
    /// Every JSON line, for `--report json=FILE`.
    lines: Vec<String>,
    /// Another process prints what is printed at the end.
    handed_over: bool,
}

/// The user's terminal or log.
#[derive(Debug)]
pub struct Ui {
    format: MessageFormat,
    color: bool,
    bars: bool,
    quiet: bool,
    reports: Vec<report::ReportTo>,
    state: Mutex<State>,
}

impl Ui {
    /// Decides colour and bars once, from the options and the terminal. `verb` is what reports call the run.
    pub fn new(global: &Global, verb: &str) -> Ui {
        let format = global.message_format;
        let human = format == MessageFormat::Human;
        let color = human
            && match global.color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => {
                    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::io::stdout().is_terminal()
                }
            };
        let state = State {
            record: Record { verb: verb.to_owned(), ..Record::default() },
            policy: Policy { deny_warnings: !global.deny.is_empty(), allowed: Vec::new() },
            ..State::default()
        };
        Ui {
            format,
            color,
            bars: human && !global.quiet && std::io::stderr().is_terminal(),
            quiet: global.quiet,
            reports: global.report.clone(),
            state: Mutex::new(state),
        }
    }

    /// Nothing here leaves the state half changed, so a panic elsewhere is no reason to stop.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when the output is for programs: results are then JSON objects, one a line.
    pub fn json(&self) -> bool {
        self.format == MessageFormat::Json
    }

    /// True when ANSI colour may be used on stdout.
    pub fn color(&self) -> bool {
        self.color
    }

    /// Entries of `[allow]` that hold today: findings from here on are measured by them.
    pub fn allow(&self, allowed: Vec<Allowance>) {
        self.state().policy.allowed = allowed;
    }

    /// Findings as they count: allowed ones taken out, denied warnings made errors. A verb that counts or decides by
    /// findings does it with these; printing them again changes nothing.
    pub fn judge(&self, findings: Vec<Finding>) -> Vec<Finding> {
        self.state().policy.apply(findings)
    }

    /// Says that these rules were applied to an image, or to another suite of [`finding::record`]: a JUnit report shows
    /// those that found nothing as passed.
    pub fn applied(&self, suite: &str, rules: &[&'static Rule]) {
        self.state().record.applied.push((suite.to_owned(), rules.to_vec()));
    }

    /// A verdict for the summary; a verb prints its own line.
    pub fn verdict(&self, subject: &str, text: &str, good: bool) {
        let verdict = Verdict { subject: subject.to_owned(), text: text.to_owned(), good };
        self.state().record.verdicts.push(verdict);
    }

    /// A step for reports; a verb prints its own line.
    pub fn case(&self, case: Case) {
        self.state().record.cases.push(case);
    }

    /// True when a person reads stdout, and nothing keeps the findings for a report.
    pub fn for_people(&self) -> bool {
        self.format == MessageFormat::Human
    }

    /// A line of result for people on stdout; silent with json. When the reader has gone (`head`) nothing more
    /// is printed.
    pub fn line(&self, text: impl AsRef<str>) {
        self.write(&format!("{}\n", text.as_ref()));
    }

    /// Text for people on stdout: as it is, in a log of GitHub's without commands, on stderr when stdout is for a
    /// document; silent with json.
    pub fn write(&self, text: &str) {
        match self.format {
            MessageFormat::Human => to_stdout(text),
            MessageFormat::Json => {}
            MessageFormat::Github => to_stdout(&finding::github::inert(text)),
            MessageFormat::Junit if self.quiet => {}
            MessageFormat::Junit => to_stderr(text),
        }
    }

    /// A document that a verb was asked for, on stdout in every format; nothing else is printed there.
    pub fn document(&self, text: &str) {
        self.hand_over();
        to_stdout(text);
    }

    /// A result for programs: one line with `--message-format json`, and in the file of `--report json=FILE`.
    pub fn object(&self, value: &serde_json::Value) {
        self.json_line(finding::json::versioned(value).to_string());
    }

    fn json_line(&self, line: String) {
        if self.json() {
            to_stdout(&format!("{line}\n"));
        }
        if self.reports.iter().any(|r| r.format == ReportFormat::Json) {
            self.state().lines.push(line);
        }
    }

    /// A line for people on stderr about what is being done; silent with `--quiet` and json.
    pub fn status(&self, text: impl AsRef<str>) {
        if !self.quiet && !self.json() {
            self.log(&format!("{}\n", text.as_ref()));
        }
    }

    /// Text for people on stderr.
    fn log(&self, text: &str) {
        // GitHub's runner reads commands from both streams.
        if self.format == MessageFormat::Github {
            to_stderr(&finding::github::inert(text));
        } else {
            to_stderr(text);
        }
    }

    /// Prints findings in the chosen format.
    pub fn findings(&self, findings: &[Finding]) {
        for finding in self.judge(findings.to_vec()) {
            self.json_line(finding::json::render(&finding));
            if !self.json() {
                self.write(&finding::human::render(&finding, self.color));
            }
            self.state().record.findings.push(finding);
        }
    }

    /// Prints a failure.
    pub fn failure(&self, failure: &Failure) {
        self.json_line(finding::json::render_failure(failure));
        if !self.json() {
            self.log(&finding::human::render_failure(failure, self.color));
        }
        self.state().record.failures.push(failure.clone());
    }

    /// Prints a problem and gives the exit status of a declaration's problem: 2 for findings, 3 for a failure.
    pub fn problem(&self, problem: &Problem) -> Exit {
        match problem {
            Problem::Findings(findings) => {
                self.findings(findings);
                Exit::Usage
            }
            Problem::Failure(failure) => {
                self.failure(failure);
                Exit::Failure
            }
        }
    }

    /// Another process of the same run prints what is printed at the end.
    pub fn hand_over(&self) {
        self.state().handed_over = true;
    }

    /// Prints what is printed as a whole, writes the reports, and gives the exit status: never clean when a denied
    /// warning was printed.
    pub fn finish(&self, exit: Exit) -> Exit {
        if self.state().handed_over {
            return exit;
        }
        let counts = Counts::of(&self.state().record.findings);
        let exit = if exit == Exit::Clean && counts.denied > 0 { Exit::Findings } else { exit };
        self.object(&serde_json::json!({"type": "end", "exit": exit as i32, "errors": counts.errors,
            "warnings": counts.warnings, "notices": counts.notices, "allowed": counts.allowed, "denied": counts.denied}));
        match self.documents() {
            Ok(()) => exit,
            Err(failure) => {
                to_stderr(&finding::human::render_failure(&failure, false));
                Exit::Failure
            }
        }
    }

    fn documents(&self) -> Result<(), Failure> {
        let state = self.state();
        match self.format {
            MessageFormat::Human | MessageFormat::Json => {}
            MessageFormat::Junit => to_stdout(&finding::junit::render(&state.record)?),
            MessageFormat::Github => {
                let workspace = report::workspace()?;
                let findings = state.record.by_weight();
                to_stdout(&finding::github::render(&findings, &state.record.failures, &workspace));
                if let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|f| !f.is_empty()) {
                    report::append_summary(&PathBuf::from(file), &state.record)?;
                }
            }
        }
        for to in &self.reports {
            report::write(to, &state.record, &state.lines)?;
        }
        Ok(())
    }
}

/// Text on stdout. What cannot be written ends the program with exit 3: a report that is cut short must not pass for a
/// clean one.
fn to_stdout(text: &str) {
    /// The reader has gone: nothing more is printed, but the verdict and the reports stand.
    static CLOSED: AtomicBool = AtomicBool::new(false);
    if CLOSED.load(Ordering::Relaxed) {
        return;
    }
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            CLOSED.store(true, Ordering::Relaxed);
            return;
        }
        to_stderr(&format!("error: cannot write to stdout: {error}\n"));
        std::process::exit(Exit::Failure as i32);
    }
}

/// Text on stderr. A closed stderr is no reason to stop the work; with both streams gone the exit status says it.
fn to_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

impl Progress for Ui {
    fn start(&self, what: &str, total: Option<u64>) -> Box<dyn Step> {
        if !self.bars {
            self.status(what);
            return Box::new(crate::image::progress::Silent);
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let template =
            if total.is_some() { "{msg} [{bar:30}] {percent:>3}% {elapsed}" } else { "{spinner} {msg} {elapsed}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        if total.is_none() {
            bar.enable_steady_tick(std::time::Duration::from_millis(120));
        }
        Box::new(Bar(bar))
    }
}

struct Bar(ProgressBar);

impl Step for Bar {
    fn advance(&self, by: u64) {
        self.0.inc(by);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
