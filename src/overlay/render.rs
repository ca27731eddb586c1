//! Templates: strict, without access to environment, files or network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tera::{Context, ErrorKind, Tera};

use super::rules::{TEMPLATE_RENDER, TEMPLATE_SYNTAX};
use crate::declaration::{LibraryContent, LibraryFile, Mesh};
use crate::finding::{Finding, Rule, Source, Span};

/// Ending of template files; it is not part of the target's name.
pub const SUFFIX: &str = ".tera";

/// The parsed templates of a mesh: those of `templates/` by their name, those of overlays by [`LibraryFile::name`].
#[derive(Debug, Clone)]
pub struct Templates {
    tera: Tera,
    sources: BTreeMap<String, Arc<Source>>,
}

impl Templates {
    /// Parses the library's templates and those of some overlays, with more from the tool itself (name, text). What
    /// cannot be parsed is found, and is then unknown.
    pub fn parse(mesh: &Mesh, overlays: &BTreeSet<&str>, more: &[(&str, &str)], found: &mut Vec<Finding>) -> Templates {
        let mut tera = Tera::new();
        // The outputs are no HTML, whatever their names end in.
        tera.autoescape_on(Vec::<&str>::new());
        super::filters::register(&mut tera);
        let mut all = Templates { tera, sources: BTreeMap::new() };

        let library = mesh.templates.iter().map(|(name, file)| (name.as_str(), file));
        all.add(library.collect(), found);
        let overlays = overlays.iter().filter_map(|name| mesh.overlays.get(*name)).flat_map(|o| &o.files);
        let overlays = overlays.filter(|(path, _)| path.ends_with(SUFFIX)).map(|(_, file)| (file.name.as_str(), file));
        all.add(overlays.collect(), found);
        for (name, text) in more {
            all.add_one(name, Source::new(*name, *text)).unwrap_or_else(|problems| found.extend(problems));
        }
        all
    }

    /// Adds files that may include each other in any order.
    fn add(&mut self, mut files: Vec<(&str, &LibraryFile)>, found: &mut Vec<Finding>) {
        loop {
            let before = files.len();
            let mut problems = Vec::new();
            files.retain(|(name, file)| {
                let result = match text_of(file) {
                    Ok(None) => Ok(()),
                    Ok(Some(source)) => self.add_one(name, source),
                    Err(finding) => Err(vec![*finding]),
                };
                result.map_err(|more| problems.extend(more)).is_err()
            });
            if files.is_empty() || files.len() == before {
                found.extend(problems);
                return;
            }
        }
    }

    fn add_one(&mut self, name: &str, source: Arc<Source>) -> Result<(), Vec<Finding>> {
        self.sources.insert(name.to_owned(), source.clone());
        self.tera.add_raw_template(name, &source.text).map_err(|error| {
            let found = self.findings(&TEMPLATE_SYNTAX, &error, name);
            self.sources.remove(name);
            found
        })
    }

    /// True when a template of this name was parsed.
    pub fn contains(&self, name: &str) -> bool {
        self.sources.contains_key(name)
    }

    /// Where a template begins, for messages.
    pub fn start(&self, name: &str) -> Option<Span> {
        self.sources.get(name).map(|source| Span::new(source, 0..0))
    }

    /// The top-level variables that a template, or one that it includes, may use.
    pub fn variables(&self, name: &str) -> BTreeSet<String> {
        let variables = self.tera.get_template_variables(name).unwrap_or_default();
        variables.into_iter().map(str::to_owned).collect()
    }

    /// Renders a template.
    ///
    /// # Errors
    /// A finding of [`TEMPLATE_RENDER`] with file, line and column: an undefined variable, a wrong type.
    pub fn render(&self, name: &str, context: &Context) -> Result<String, Vec<Finding>> {
        self.tera.render(name, context).map_err(|error| self.findings(&TEMPLATE_RENDER, &error, name))
    }

    fn findings(&self, rule: &Rule, error: &tera::Error, name: &str) -> Vec<Finding> {
        let one = |file: &str, range: std::ops::Range<usize>, message: &str| {
            let source = self.sources.get(file).or_else(|| self.sources.get(name));
            let (message, help) = split_message(message);
            let subject = source.map_or(name, |s| s.name.as_str());
            let mut finding = rule.finding(subject, message);
            finding.help = help;
            finding.span = source.map(|source| Span::new(source, range));
            finding
        };
        match error.kind() {
            ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => {
                vec![one(report.filename(), report.span().range.clone(), report.message())]
            }
            ErrorKind::Msg(text) => {
                let reports: Vec<Finding> = text
                    .split("\n\n")
                    .filter_map(|report| self.locate(report))
                    .map(|(file, at, message)| one(&file, at..at + 1, &message))
                    .collect();
                if reports.is_empty() { vec![one(name, 0..0, text)] } else { reports }
            }
            other => vec![one(name, 0..0, &other.to_string())],
        }
    }

    /// tera gives what it finds after parsing (an unknown filter) as text only: `error: …\n --> file:line:column`.
    fn locate(&self, report: &str) -> Option<(String, usize, String)> {
        let mut lines = report.lines();
        let message = lines.next()?.strip_prefix("error: ")?.to_owned();
        let place = lines.next()?.trim_start().strip_prefix("--> ")?;
        let mut parts = place.rsplitn(3, ':');
        let column: usize = parts.next()?.parse().ok()?;
        let line: usize = parts.next()?.parse().ok()?;
        let file = parts.next()?.to_owned();
        let text = &self.sources.get(&file)?.text;
        let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
        let within = text[start..].chars().take(column.checked_sub(1)?).map(char::len_utf8).sum::<usize>();
        Some((file, start + within, message))
    }
}

/// The text of a template; `None` for links and directories, which are not rendered.
fn text_of(file: &LibraryFile) -> Result<Option<Arc<Source>>, Box<Finding>> {
    let LibraryContent::File(bytes) = &file.content else { return Ok(None) };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(Source::new(file.name.clone(), text))),
        Err(_) => Err(Box::new(
            TEMPLATE_SYNTAX
                .finding(&file.name, "the template is not UTF-8")
                .help(format!("take the `{SUFFIX}` off its name to copy it as it is")),
        )),
    }
}

/// `Variable `x` is not defined. Available variables: a, b` in our style: message and help.
fn split_message(message: &str) -> (String, Option<String>) {
    let (message, available) = match message.split_once(" Available ") {
        Some((message, available)) => (message, Some(available)),
        None => (message, None),
    };
    let message = message.trim().trim_end_matches('.');
    let mut chars = message.chars();
    let message = chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default();
    (message, available.map(|a| format!("available {a}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates(files: &[(&str, &str)]) -> (Templates, Vec<Finding>) {
        let mut tera = Tera::new();
        tera.autoescape_on(Vec::<&str>::new());
        super::super::filters::register(&mut tera);
        let mut all = Templates { tera, sources: BTreeMap::new() };
        let files: Vec<(String, LibraryFile)> = files
            .iter()
            .map(|(name, text)| {
                let content = LibraryContent::File(text.as_bytes().into());
                ((*name).to_owned(), LibraryFile { name: format!("templates/{name}"), content })
            })
            .collect();
        let mut found = Vec::new();
        all.add(files.iter().map(|(n, f)| (n.as_str(), f)).collect(), &mut found);
        (all, found)
    }

    fn show(found: &[Finding]) -> Vec<String> {
        let place = |f: &Finding| f.span.as_ref().map(|s| s.source.line_column(s.range.start));
        found.iter().map(|f| format!("{} {} {:?} {}", f.code, f.subject, place(f), f.message)).collect()
    }

    #[test]
    fn every_error_of_every_template_has_its_place() {
        let (_, found) = templates(&[
            ("a", "{% include \"b\" %}"),
            ("b", "fine"),
            ("c", "x\n  {{ y | nofilter }} {{ z | other }}\n"),
            ("d", "{% if %}"),
        ]);
        assert_eq!(
            show(&found),
            [
                "overlay-template-syntax templates/c Some((2, 10)) unknown filter `nofilter`",
                "overlay-template-syntax templates/c Some((2, 29)) unknown filter `other`",
                "overlay-template-syntax templates/d Some((1, 7)) found `%}` but expected one of: integer, float, string, bool, ident, \
                 `-`, `not`, `<`, `{`, `[` or `(`",
            ]
        );
    }

    #[test]
    fn an_undefined_variable_or_field_is_an_error_with_its_place() {
        let (all, found) = templates(&[("inner", "\n{{ node.nmae }}"), ("outer", "{% include \"inner\" %}{{ nope }}")]);
        assert!(found.is_empty());
        let mut context = Context::new();
        context.insert("node", &BTreeMap::from([("name", "lis1")]));
        let undefined = show(&all.render("outer", &context).unwrap_err());
        assert_eq!(undefined, ["overlay-template-render templates/inner Some((2, 9)) field `nmae` is not defined"]);
        let help = all.render("outer", &context).unwrap_err()[0].help.clone();
        assert_eq!(help.as_deref(), Some("available fields: name"));
        assert_eq!(all.variables("outer"), BTreeSet::from(["node".to_owned(), "nope".to_owned()]));
    }

    #[test]
    fn nothing_is_escaped_as_html() {
        let (all, _) = templates(&[("x.html", "{{ v }}")]);
        let mut context = Context::new();
        context.insert("v", "<a>&");
        assert_eq!(all.render("x.html", &context).unwrap(), "<a>&");
    }
}
