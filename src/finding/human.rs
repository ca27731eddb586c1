//! Findings for people: the source line with a marker, notes and help, in the look of rustc.

use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{Annotation, AnnotationKind, Element, Level, Origin, Renderer, Snippet};

use super::{Failure, Finding, Severity, Source, Span, Standing};

/// Longest line that the renderer may lay out; longer messages are not wrapped, only source lines are cut.
const WIDTH: usize = 120;

/// Renders one finding, with a final blank line. One that is allowed is shortened to what it says and why it is allowed.
pub fn render(finding: &Finding, color: bool) -> String {
    if let Standing::Allowed { until, reason } = &finding.standing {
        return format!(
            "allowed[{}]: {}\n  = allowed until {until}: {}\n\n",
            finding.code,
            headline(finding),
            clean(reason)
        );
    }
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        // rustc's word for the least level would be `note`; ours is a word of the contract.
        Severity::Notice => Level::INFO.with_name("notice"),
    };
    let title = headline(finding);
    let label = clean(&finding.label);
    let related: Vec<(&Span, String)> = finding.related.iter().map(|(span, text)| (span, clean(text))).collect();
    let notes: Vec<String> = finding.notes.iter().map(|n| clean(n)).collect();
    let help = finding.help.as_deref().map(clean);

    let mut group = level.primary_title(title).id(finding.code).elements(places(finding, &label, &related));
    for note in &notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    if finding.standing == Standing::Denied {
        group = group.element(Level::NOTE.message(DENIED));
    }
    let text = renderer(color).render(&[group]);
    format!("{}\n\n", text.trim_end())
}

/// What a denied warning says of itself.
const DENIED: &str = "denied: a warning, which `--deny warnings` counts as an error";

/// `lis1: the image has no etcd`.
fn headline(finding: &Finding) -> String {
    let subject = if finding.subject.is_empty() { String::new() } else { format!("{}: ", clean(&finding.subject)) };
    format!("{subject}{}", clean(&finding.message))
}

/// Renders a failure, with a line end.
pub fn render_failure(failure: &Failure, color: bool) -> String {
    let message = clean(&failure.message);
    let help = failure.help.as_deref().map(clean);
    let mut group = annotate_snippets::Group::with_title(Level::ERROR.primary_title(message));
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    format!("{}\n", renderer(color).render(&[group]).trim_end())
}

fn renderer(color: bool) -> Renderer {
    if color { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH)
}

/// One element for each file, the finding's own first. A file without text is only named.
fn places<'a>(finding: &'a Finding, label: &'a str, related: &'a [(&'a Span, String)]) -> Vec<Element<'a>> {
    let mut files: Vec<(&'a Arc<Source>, Vec<Annotation<'a>>)> = Vec::new();
    let primary = finding.span.iter().map(|span| (span, label, AnnotationKind::Primary));
    let context = related.iter().map(|(span, text)| (*span, text.as_str(), AnnotationKind::Context));
    for (span, text, kind) in primary.chain(context) {
        let annotation = kind.span(clamp(&span.source.text, &span.range));
        let annotation = if text.is_empty() { annotation } else { annotation.label(text) };
        match files.iter_mut().find(|(source, _)| *source == &span.source) {
            Some((_, annotations)) => annotations.push(annotation),
            None => files.push((&span.source, vec![annotation])),
        }
    }
    let element = |(source, annotations): (&'a Arc<Source>, Vec<Annotation<'a>>)| {
        if source.text.is_empty() {
            return Origin::path(source.name.as_str()).into();
        }
        Snippet::source(source.text.as_str()).path(source.name.as_str()).annotations(annotations).into()
    };
    files.into_iter().map(element).collect()
}

/// The range within the text and between characters: the renderer panics on any other.
fn clamp(text: &str, range: &Range<usize>) -> Range<usize> {
    let within = |mut offset: usize| {
        offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    };
    let start = within(range.start);
    start..within(range.end).max(start)
}

/// Text without control characters that a terminal would obey; line ends stay.
fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Rule, Severity};
    use snapbox::{assert_data_eq, str};

    static RULE: Rule =
        Rule { code: "unknown-key", family: "test", severity: Severity::Error, summary: "", explanation: "" };

    fn source() -> Arc<Source> {
        Source::new("mesh.toml", "[node.lis1]\nadress = \"10.77.0.11\"\n\n[site.ö]\n")
    }

    #[test]
    fn a_finding_shows_its_line_further_places_notes_and_help() {
        let (mesh, other) = (source(), Source::new("overlays/app/overlay.toml", "requires = ['mesh']\n"));
        let finding = RULE
            .finding("node.lis1.adress", "unknown key `adress`")
            .at(&Span::new(&mesh, 12..18))
            .label("nothing reads this")
            .related(&Span::new(&mesh, 1..10), "in this table")
            .related(&Span::new(&other, 12..18), "asked for here")
            .note("keys are in kebab-case")
            .help("did you mean `address`?");
        assert_data_eq!(
            render(&finding, false),
            str![[r#"
error[unknown-key]: node.lis1.adress: unknown key `adress`
 --> mesh.toml:2:1
  |
1 | [node.lis1]
  |  --------- in this table
2 | adress = "10.77.0.11"
  | ^^^^^^ nothing reads this
  |
 ::: overlays/app/overlay.toml:1:13
  |
1 | requires = ['mesh']
  |             ------ asked for here
  |
  = note: keys are in kebab-case
  = help: did you mean `address`?


"#]]
        );
    }

    #[test]
    fn a_finding_without_a_place_shows_only_its_help() {
        let mut finding = RULE.finding("lis1", "the image has no etcd").help("install it");
        finding.severity = Severity::Notice;
        assert_data_eq!(
            render(&finding, false),
            str![[r#"
notice[unknown-key]: lis1: the image has no etcd
 |
 = help: install it


"#]]
        );
    }

    #[test]
    fn what_is_denied_says_so_and_what_is_allowed_is_short() {
        let mut finding = RULE.finding("lis1", "the image has no etcd").note("a note").help("install it");
        finding.standing = Standing::Denied;
        assert_data_eq!(
            render(&finding, false),
            str![[r#"
error[unknown-key]: lis1: the image has no etcd
 |
 = note: a note
 = help: install it
 = note: denied: a warning, which `--deny warnings` counts as an error


"#]]
        );
        let until = time::macros::date!(2027 - 03 - 31);
        finding.standing = Standing::Allowed { until, reason: "it comes in\u{1b}[31m spring".into() };
        assert_data_eq!(
            render(&finding, true),
            str![[r#"
allowed[unknown-key]: lis1: the image has no etcd
  = allowed until 2027-03-31: it comes in/u{1b}[31m spring


"#]]
        );
    }

    #[test]
    fn a_failure_says_what_to_do_now() {
        let failure = Failure::new("cannot run mmdebstrap").help("apt install mmdebstrap");
        assert_data_eq!(
            render_failure(&failure, false),
            str![[r#"
error: cannot run mmdebstrap
 |
 = help: apt install mmdebstrap

"#]]
        );
    }

    #[test]
    fn no_span_makes_it_panic() {
        for text in ["", "\n", "a", "ö", "a\nb", "a\r\n\tö\n"] {
            let source = Source::new("x.toml", text);
            for start in 0..8 {
                for end in 0..9 {
                    let finding = RULE
                        .finding("x", "y")
                        .at(&Span::new(&source, start..end))
                        .related(&Span::new(&source, end..start), "z");
                    assert!(render(&finding, false).contains("x.toml"), "{text:?} {start}..{end}");
                }
            }
        }
    }

    #[test]
    fn colour_is_only_there_when_wanted_and_nothing_reaches_the_terminal_raw() {
        let finding = RULE.finding("a\u{1b}[31m", "b\u{7}").note("c\u{1b}]0;d").help("e\u{9b}");
        assert!(render(&finding, true).contains('\u{1b}'));
        let plain = render(&finding, false);
        assert!(!plain.chars().any(|c| c.is_control() && c != '\n'), "{plain:?}");
    }
}
