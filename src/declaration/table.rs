//! Reading TOML tables: every fault becomes a finding with its place, and reading goes on.

use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::section::{Reports, Section};
use super::suggest;
use crate::finding::{Finding, Rule, Severity, Source, Span, Spanned};

/// A file of the declaration is not TOML.
pub static TOML_SYNTAX: Rule = Rule {
    code: "toml-syntax",
    family: "declaration",
    severity: Severity::Error,
    summary: "a file of the declaration is not TOML",
    explanation: "The file could not be read as TOML (https://toml.io). Only the first fault of each line is shown; \
        what follows on it is often a consequence. Values elsewhere in the file are still checked, but keys and rules \
        only when the syntax is right.",
};

/// A file of the declaration is not UTF-8 text.
pub static NOT_TEXT: Rule = Rule {
    code: "not-text",
    family: "declaration",
    severity: Severity::Error,
    summary: "a file of the declaration is not UTF-8 text",
    explanation: "TOML files are UTF-8. Convert the file, for instance with `iconv -t utf-8`.",
};

/// A key that fitout does not know.
pub static UNKNOWN_KEY: Rule = Rule {
    code: "unknown-key",
    family: "declaration",
    severity: Severity::Error,
    summary: "a key that fitout does not know",
    explanation: "Unknown keys are errors, since a misspelt key that is ignored leaves its default in force without a \
        word. Keys are in kebab-case (`round-trip`, not `round_trip`).",
};

/// A key without default is not given.
pub static MISSING_KEY: Rule = Rule {
    code: "missing-key",
    family: "declaration",
    severity: Severity::Error,
    summary: "a key without default is not given",
    explanation: "Some facts of a mesh cannot be guessed: its name, its network, a node's site and address. \
        `fitout init DIR` writes a commented file that has them all.",
};

/// A value of another type than its key wants.
pub static WRONG_TYPE: Rule = Rule {
    code: "wrong-type",
    family: "declaration",
    severity: Severity::Error,
    summary: "a value of another type than its key wants",
    explanation: "For instance a number where a text is wanted, or a text where a list is wanted.",
};

/// Rules of this file.
pub(super) const RULES: &[&Rule] = &[&TOML_SYNTAX, &NOT_TEXT, &UNKNOWN_KEY, &MISSING_KEY, &WRONG_TYPE];

/// Why a value was refused.
#[derive(Debug)]
pub(super) struct Refusal {
    pub rule: &'static Rule,
    pub message: String,
    pub label: String,
    pub note: Option<String>,
    pub help: Option<String>,
}

impl Refusal {
    /// A refusal by a rule.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Refusal {
        Refusal { rule, message: message.into(), label: String::new(), note: None, help: None }
    }
    /// Sets the text at the marker.
    pub fn label(mut self, label: impl Into<String>) -> Refusal {
        self.label = label.into();
        self
    }
    /// Sets a line of fact.
    pub fn note(mut self, note: impl Into<String>) -> Refusal {
        self.note = Some(note.into());
        self
    }
    /// Sets what to do now.
    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
    /// As a finding.
    pub fn finding(self, subject: &str, span: &Span) -> Finding {
        let mut finding = self.rule.finding(subject, self.message).at(span).label(self.label);
        finding.notes.extend(self.note);
        finding.help = self.help;
        finding
    }
    /// The value is of another type; `wanted` has its article: `a text`.
    pub fn wrong_type(value: &DeValue<'_>, wanted: &str) -> Refusal {
        Refusal::new(&WRONG_TYPE, format!("must be {wanted}, not {}", type_with_article(value)))
            .label(format!("expected {wanted}"))
    }
}

/// The type of a value in words.
pub(super) fn type_with_article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Turns a value into what it means.
pub(super) type Read<T> = fn(&DeValue<'_>) -> Result<T, Refusal>;

/// A table under way: asks for keys one by one; [`Table::finish`] reports those that nobody asked for.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub reports: &'a Reports,
    pub section: Section,
    source: &'a Arc<Source>,
    /// Dotted path of the table; empty for the file.
    path: String,
    header: Range<usize>,
    entries: &'a DeTable<'a>,
    known: Vec<&'static str>,
    /// The path with `*` for names: `node.*.service.*`; the schema's test compares keys by it.
    #[cfg(test)]
    shape: String,
    /// Keys whose feature is not there yet.
    #[cfg(test)]
    later: Vec<&'static str>,
}

impl<'a> Table<'a> {
    /// The whole file.
    pub fn of_file(reports: &'a Reports, section: Section, source: &'a Arc<Source>, entries: &'a DeTable<'a>) -> Self {
        Table {
            reports,
            section,
            source,
            path: String::new(),
            header: 0..0,
            entries,
            known: Vec::new(),
            #[cfg(test)]
            shape: String::new(),
            #[cfg(test)]
            later: Vec::new(),
        }
    }

    /// The place of the table's name.
    pub fn span(&self) -> Span {
        Span::new(self.source, self.header.clone())
    }

    /// A value that was not given, placed at the table's name.
    pub fn implied<T>(&self, value: T) -> Spanned<T> {
        Spanned::new(value, self.span())
    }

    /// Dotted path of a key of this table.
    pub fn path_of(&self, key: &str) -> String {
        let quoted = if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            format!("{key:?}")
        } else {
            key.to_owned()
        };
        if self.path.is_empty() { quoted } else { format!("{}.{quoted}", self.path) }
    }

    fn entry(&mut self, key: &'static str) -> Option<(Range<usize>, Range<usize>, &'a DeValue<'a>)> {
        // A key that must be given is looked for first, and then read.
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let (k, v) = self.entries.iter().find(|(k, _)| k.get_ref() == key)?;
        Some((k.span(), v.span(), v.get_ref()))
    }

    /// The place of a key, when it is given.
    pub fn key_span(&self, key: &str) -> Option<Span> {
        self.entries.iter().find(|(k, _)| k.get_ref() == key).map(|(k, _)| Span::new(self.source, k.span()))
    }

    /// Reports a value of this table as unreadable.
    pub fn refuse(&self, key: &str, span: &Span, refusal: Refusal) {
        self.reports.broken(self.section, refusal.finding(&self.path_of(key), span));
    }

    /// A value that may be absent.
    pub fn get<T>(&mut self, key: &'static str, read: Read<T>) -> Option<Spanned<T>> {
        let (_, range, value) = self.entry(key)?;
        let span = Span::new(self.source, range);
        match read(value) {
            Ok(value) => Some(Spanned::new(value, span)),
            Err(refusal) => {
                self.refuse(key, &span, refusal);
                None
            }
        }
    }

    /// A value with a default. A value that cannot be read is reported and the default stands in for it.
    pub fn get_or<T>(&mut self, key: &'static str, read: Read<T>, default: T) -> Spanned<T> {
        self.get(key, read).unwrap_or_else(|| self.implied(default))
    }

    /// A value that must be given. `None` when it is missing or wrong, which is reported.
    pub fn need<T>(&mut self, key: &'static str, read: Read<T>, example: &str) -> Option<Spanned<T>> {
        if self.entry(key).is_none() {
            self.missing(key, &format!("add `{key} = {example}`"));
            return None;
        }
        self.get(key, read)
    }

    /// Reports a key as missing.
    pub fn missing(&self, key: &str, help: &str) {
        let refusal = Refusal::new(&MISSING_KEY, format!("`{key}` is missing"));
        let label = if self.path.is_empty() { String::new() } else { format!("`{key}` is missing here") };
        self.refuse(key, &self.span(), refusal.label(label).help(help));
    }

    /// A list; each element is read and reported on its own. Empty when absent.
    pub fn list<T>(&mut self, key: &'static str, read: Read<T>) -> Vec<Spanned<T>> {
        let Some((_, range, value)) = self.entry(key) else { return Vec::new() };
        let DeValue::Array(elements) = value else {
            let span = Span::new(self.source, range);
            self.refuse(key, &span, Refusal::wrong_type(value, "a list").help("put it in brackets: `[…]`"));
            return Vec::new();
        };
        let mut all = Vec::new();
        for element in elements.iter() {
            let span = Span::new(self.source, element.span());
            match read(element.get_ref()) {
                Ok(value) => all.push(Spanned::new(value, span)),
                Err(refusal) => self.refuse(key, &span, refusal),
            }
        }
        all
    }

    /// A table that may be absent.
    pub fn table(&mut self, key: &'static str, section: Section) -> Option<Table<'a>> {
        let (name, range, value) = self.entry(key)?;
        self.child(key, name, range, value, section)
    }

    /// The tables in a table, by name: `[node.*]`, in the order of the file.
    pub fn tables(&mut self, key: &'static str, section: Section) -> Vec<(Spanned<String>, Table<'a>)> {
        let Some(parent) = self.table(key, section) else { return Vec::new() };
        parent.all_tables()
    }

    /// All entries as tables.
    pub fn all_tables(self) -> Vec<(Spanned<String>, Table<'a>)> {
        let mut all = Vec::new();
        for (k, v) in self.in_order() {
            if let Some(table) = self.child(k.get_ref(), k.span(), v.span(), v.get_ref(), self.section) {
                #[cfg(test)]
                let table = Table { shape: format!("{}.*", self.shape), ..table };
                all.push((Spanned::new(k.get_ref().to_string(), table.span()), table));
            }
        }
        all
    }

    /// All entries as values, by name: `[parameters]`, in the order of the file.
    pub fn all_values<T>(self, read: Read<T>) -> Vec<(Spanned<String>, Spanned<T>)> {
        let mut all = Vec::new();
        for (k, v) in self.in_order() {
            let span = Span::new(self.source, v.span());
            match read(v.get_ref()) {
                Ok(value) => all.push((
                    Spanned::new(k.get_ref().to_string(), Span::new(self.source, k.span())),
                    Spanned::new(value, span),
                )),
                Err(refusal) => self.refuse(k.get_ref(), &span, refusal),
            }
        }
        all
    }

    fn in_order(&self) -> Vec<(&'a toml::Spanned<toml::de::DeString<'a>>, &'a toml::Spanned<DeValue<'a>>)> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(k, _)| k.span().start);
        all
    }

    fn child(
        &self,
        key: &str,
        name: Range<usize>,
        range: Range<usize>,
        value: &'a DeValue<'a>,
        section: Section,
    ) -> Option<Table<'a>> {
        let DeValue::Table(entries) = value else {
            let span = Span::new(self.source, range);
            self.reports.broken(section, Refusal::wrong_type(value, "a table").finding(&self.path_of(key), &span));
            return None;
        };
        let path = self.path_of(key);
        Some(Table {
            reports: self.reports,
            section,
            source: self.source,
            path,
            header: name,
            entries,
            known: Vec::new(),
            #[cfg(test)]
            shape: if self.shape.is_empty() { key.to_owned() } else { format!("{}.{key}", self.shape) },
            #[cfg(test)]
            later: Vec::new(),
        })
    }

    /// Takes a key whose feature is not built yet: it is refused as such when it is given.
    pub fn later(&mut self, key: &'static str, what: &str) {
        #[cfg(test)]
        self.later.push(key);
        if let Some((name, _, _)) = self.entry(key) {
            let span = Span::new(self.source, name);
            self.refuse(key, &span, super::values::not_there_yet(what));
        }
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        #[cfg(test)]
        self.reports.decoded(&self.shape, self.known.iter().filter(|key| !self.later.contains(key)));
        for (k, _) in self.in_order() {
            let key: &str = k.get_ref();
            if self.known.contains(&key) {
                continue;
            }
            let span = Span::new(self.source, k.span());
            let place =
                if self.path.is_empty() { "at the top level".to_owned() } else { format!("in `{}`", self.path) };
            let mut known = self.known.clone();
            known.sort_unstable();
            let mut finding = UNKNOWN_KEY
                .finding(self.path_of(key), format!("unknown key `{key}` {place}"))
                .at(&span)
                .label("nothing reads this");
            finding.help = suggest::help(key, "key", &known);
            // The values that were read stay sound.
            self.reports.add(finding);
        }
    }
}

/// Parses a file and hands its top table to `decode`; syntax errors are reported, at most one a line.
///
/// Values of a file with syntax errors are still checked, but nothing that the broken syntax may itself have caused
/// (a missing or unknown key) is said, and the sections are marked as broken.
pub(super) fn parse<T>(
    reports: &Reports,
    source: &Arc<Source>,
    sections: &[Section],
    decode: impl FnOnce(Table<'_>) -> T,
) -> T {
    let first = sections.first().copied().unwrap_or(Section::Mesh);
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let mut lines = Vec::new();
    for error in &errors {
        let range = error.span().unwrap_or(0..0);
        let line = source.line_column(range.start).0;
        if lines.contains(&line) {
            continue;
        }
        lines.push(line);
        sections.iter().for_each(|s| reports.mark(*s));
        let span = Span::new(source, range);
        reports.add(TOML_SYNTAX.finding(source.name.clone(), error.message().replace('\n', ", ")).at(&span));
    }
    let start = reports.len();
    let value = decode(Table::of_file(reports, first, source, table.get_ref()));
    if !errors.is_empty() {
        reports.retain_from(start, |f| {
            let on_faulty_line =
                f.span.as_ref().is_some_and(|s| lines.contains(&s.source.line_column(s.range.start).0));
            !on_faulty_line && f.code != MISSING_KEY.code && f.code != UNKNOWN_KEY.code
        });
    }
    value
}
