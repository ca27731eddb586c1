//! What the verbs print with: findings and results to stdout, progress to stderr.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::finding::{self, Failure, Finding, Problem};
use crate::image::progress::{Progress, Step};

/// `--message-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MessageFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
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

/// The user's terminal or log.
#[derive(Debug)]
pub struct Ui {
    format: MessageFormat,
    color: bool,
    bars: bool,
    quiet: bool,
}

impl Ui {
    /// Decides colour and bars once, from the options and the terminal.
    pub fn new(format: MessageFormat, color: Color, quiet: bool) -> Ui {
        let human = format == MessageFormat::Human;
        let color = human
            && match color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => {
                    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::io::stdout().is_terminal()
                }
            };
        Ui { format, color, bars: human && !quiet && std::io::stderr().is_terminal(), quiet }
    }

    /// True when the output is for programs: results are then JSON objects, one a line.
    pub fn json(&self) -> bool {
        self.format == MessageFormat::Json
    }

    /// True when ANSI colour may be used on stdout.
    pub fn color(&self) -> bool {
        self.color
    }

    /// A line of result on stdout. A closed pipe ends the program quietly, as `head` expects.
    pub fn line(&self, text: impl AsRef<str>) {
        self.write(&format!("{}\n", text.as_ref()));
    }

    /// Text on stdout as it is. What cannot be written ends the program with exit 3: a report that is cut short must
    /// not pass for a clean one.
    pub fn write(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                std::process::exit(Exit::Clean as i32);
            }
            let mut err = std::io::stderr().lock();
            // With both streams gone the exit status says it.
            let _ = writeln!(err, "error: cannot write to stdout: {error}");
            std::process::exit(Exit::Failure as i32);
        }
    }

    /// A result for programs: one line, only with `--message-format json`.
    pub fn object(&self, value: &serde_json::Value) {
        if self.json() {
            self.line(value.to_string());
        }
    }

    /// A line for people on stderr about what is being done; silent with `--quiet` and json.
    pub fn status(&self, text: impl AsRef<str>) {
        if !self.quiet && !self.json() {
            let mut err = std::io::stderr().lock();
            // A closed stderr is no reason to stop the work.
            let _ = writeln!(err, "{}", text.as_ref());
        }
    }

    /// Prints findings in the chosen format.
    pub fn findings(&self, findings: &[Finding]) {
        for finding in findings {
            match self.format {
                MessageFormat::Human => self.write(&finding::human::render(finding, self.color)),
                MessageFormat::Json => self.line(finding::json::render(finding)),
            }
        }
    }

    /// Prints a failure.
    pub fn failure(&self, failure: &Failure) {
        match self.format {
            MessageFormat::Human => {
                let mut err = std::io::stderr().lock();
                let _ = write!(err, "{}", finding::human::render_failure(failure, self.color));
            }
            MessageFormat::Json => self.line(finding::json::render_failure(failure)),
        }
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
