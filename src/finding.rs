//! Findings, the rules that make them, source spans, and failures.
//!
//! Two things can go wrong and they are never mixed:
//! - a [`Finding`]: a rule looked at something and says what is wrong with it (exit 1, or 2 for a declaration);
//! - a [`Failure`]: the work could not be carried out (missing program, I/O, unreachable; exit 3).
//!
//! Only types and renderers live here. Each family of rules exports its own `RULES` list.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub mod github;
pub mod human;
pub mod json;
pub mod junit;
pub mod markdown;
mod place;
pub mod policy;
pub mod record;
pub mod words;

pub use policy::{Allowance, Policy};

/// How much a finding matters. Only [`Severity::Error`] makes a command exit 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing to do.
    Notice,
    /// Works today, and will surprise somebody.
    Warning,
    /// Wrong.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Notice => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One rule: what `--list` and `explain CODE` print, and what a [`Finding`] refers to.
#[derive(Debug)]
pub struct Rule {
    /// Stable kebab-case code, unique over all families.
    pub code: &'static str,
    /// Family, for instance `declaration`, `units`, `tls`.
    pub family: &'static str,
    /// Severity of the findings of this rule.
    pub severity: Severity,
    /// One line without a final stop.
    pub summary: &'static str,
    /// What it means, why it matters (with the source of the fact), and how to mend it.
    pub explanation: &'static str,
}

impl Rule {
    /// Starts a finding of this rule about `subject` (a node, a path, a key).
    pub fn finding(&self, subject: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding {
            code: self.code,
            family: self.family,
            severity: self.severity,
            standing: Standing::Counts,
            subject: subject.into(),
            image: None,
            nodes: Vec::new(),
            path: None,
            message: message.into(),
            span: None,
            label: String::new(),
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }
}

/// Whether a finding counts, by what the user said of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Standing {
    /// As its severity says.
    #[default]
    Counts,
    /// A warning that `--deny warnings` has made an error.
    Denied,
    /// An entry of `[allow]` takes it out of the verdict for a time.
    Allowed {
        /// Last day on which it is allowed.
        until: time::Date,
        /// Why.
        reason: String,
    },
}

/// One result of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Code of the rule.
    pub code: &'static str,
    /// Family of the rule.
    pub family: &'static str,
    /// Severity of this finding; an error when it is denied.
    pub severity: Severity,
    /// Whether it counts.
    pub standing: Standing,
    /// What it is about, in words: a node, an image, a path, a key.
    pub subject: String,
    /// The image it is about, as the user named it, where known.
    pub image: Option<String>,
    /// The nodes it is about, where known; two for a finding about a pair.
    pub nodes: Vec<String>,
    /// The path inside the image, where known.
    pub path: Option<String>,
    /// What is wrong, in one sentence without a final stop.
    pub message: String,
    /// Where, when a file of the user's is the cause.
    pub span: Option<Span>,
    /// Text at the marker under the source line; may be empty.
    pub label: String,
    /// Further places, each with its text.
    pub related: Vec<(Span, String)>,
    /// Facts, a route or a proof, one line each.
    pub notes: Vec<String>,
    /// What to do now.
    pub help: Option<String>,
}

impl Finding {
    /// True when it makes a command exit 1 (or 2): an error that is not allowed.
    pub fn fails(&self) -> bool {
        self.severity == Severity::Error && !self.is_allowed()
    }
    /// True when an entry of `[allow]` takes it out of the verdict.
    pub fn is_allowed(&self) -> bool {
        matches!(self.standing, Standing::Allowed { .. })
    }
    /// Says which node it is about.
    pub fn of_node(mut self, node: impl Into<String>) -> Self {
        self.nodes = vec![node.into()];
        self
    }
    /// Says which image it is about, as the user named it.
    pub fn of_image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }
    /// Sets the place.
    pub fn at(mut self, span: &Span) -> Self {
        self.span = Some(span.clone());
        self
    }
    /// Sets the text at the marker.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
    /// Adds another place with its text.
    pub fn related(mut self, span: &Span, text: impl Into<String>) -> Self {
        self.related.push((span.clone(), text.into()));
        self
    }
    /// Adds a line of fact, route or proof.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
    /// Sets what to do now.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A text file that spans point into.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Path as the user knows it, or `<built-in>/overlays/…` for the embedded library.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// Makes a shared source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into() })
    }
    /// Line and column (both from 1, column in characters) of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

/// A byte range of a [`Source`].
#[derive(Clone, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub source: Arc<Source>,
    /// Byte range; clamped to the text by the renderers.
    pub range: Range<usize>,
}

impl Span {
    /// Makes a span.
    pub fn new(source: &Arc<Source>, range: Range<usize>) -> Span {
        Span { source: source.clone(), range }
    }
    /// `file:line` of the start.
    pub fn file_line(&self) -> String {
        format!("{}:{}", self.source.name, self.source.line_column(self.range.start).0)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{:?}", self.file_line(), self.range)
    }
}

/// A value with the place where it was declared. Dereferences to the value.
#[derive(Debug, Clone)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Pairs a value with its place.
    pub fn new(value: T, span: Span) -> Self {
        Spanned { value, span }
    }
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// Why something could not be carried out. Exit 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was being done and why it failed, outermost first.
    pub message: String,
    /// What to do now.
    pub help: Option<String>,
}

impl Failure {
    /// A failure with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), help: None }
    }
    /// A failure of an operation on a file: `cannot <what> <path>: <reason>`.
    pub fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Failure::new(format!("cannot {what} {}: {error}", path.display()))
    }
    /// Adds what to do now.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Why an operation gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The declaration, an overlay or a store is wrong: all findings, collected. Exit 2.
    Findings(Vec<Finding>),
    /// It could not be carried out. Exit 3.
    Failure(Failure),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Problem::Failure(failure)
    }
}

impl From<Finding> for Problem {
    fn from(finding: Finding) -> Self {
        Problem::Findings(vec![finding])
    }
}

impl From<Vec<Finding>> for Problem {
    fn from(findings: Vec<Finding>) -> Self {
        Problem::Findings(findings)
    }
}

/// True when any finding is of severity error and not allowed.
pub fn has_errors(findings: &[Finding]) -> bool {
    findings.iter().any(Finding::fails)
}
