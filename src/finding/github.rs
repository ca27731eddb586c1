//! GitHub Actions: a workflow command for each finding, which GitHub shows at its line of the change.
//!
//! Facts of GitHub's: `%`, CR and LF are escaped in data, and `:` and `,` in properties too (actions/toolkit,
//! `packages/core/src/command.ts`); a step shows at most ten annotations of each kind, and leaves out the rest without a
//! word; a column is heeded only when a single line is meant; paths are relative to the root of the repository.

use std::path::{Component, Path, PathBuf};

use super::{Failure, Finding, Severity};

/// Annotations of each kind that GitHub shows for one step.
pub const PER_KIND: usize = 10;

/// Where the program runs, to name files as GitHub knows them.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// The working directory, absolute.
    pub current: PathBuf,
    /// `$GITHUB_WORKSPACE`: the root of the checkout.
    pub root: Option<PathBuf>,
}

impl Workspace {
    /// A file's path below the root of the checkout; as it is when it lies elsewhere.
    fn relative(&self, file: &str) -> String {
        let absolute = normal(&self.current.join(file));
        let root = self.root.as_deref().unwrap_or(&self.current);
        match absolute.strip_prefix(normal(root)) {
            Ok(below) => below.display().to_string(),
            Err(_) => file.to_owned(),
        }
    }
}

/// A path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// The commands for what is shown, one a line, by weight; and how many of each kind were left out.
pub fn render(findings: &[&Finding], failures: &[Failure], workspace: &Workspace) -> String {
    let mut text = String::new();
    let mut errors = 0;
    let mut left_out = Vec::new();
    for failure in failures {
        errors += 1;
        if errors <= PER_KIND {
            let help = failure.help.as_ref().map(|h| format!("\nhelp: {h}")).unwrap_or_default();
            text.push_str(&command(
                "error",
                &[("title", "fitout: not carried out")],
                &(failure.message.clone() + &help),
            ));
        }
    }
    for (severity, kind) in [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Notice, "notice")] {
        let mut shown = if severity == Severity::Error { errors } else { 0 };
        for finding in findings.iter().filter(|f| f.severity == severity && !f.is_allowed()) {
            shown += 1;
            if shown <= PER_KIND {
                text.push_str(&annotation(finding, kind, workspace));
            }
        }
        if shown > PER_KIND {
            left_out.push(format!("{} more of kind {kind}", shown - PER_KIND));
        }
    }
    if !left_out.is_empty() {
        text.push_str(&format!(
            "GitHub shows {PER_KIND} annotations of each kind for a step; without one: {}. All findings are in this log and in the job summary\n",
            left_out.join(", ")
        ));
    }
    text
}

fn annotation(finding: &Finding, kind: &str, workspace: &Workspace) -> String {
    let mut properties: Vec<(&str, String)> = Vec::new();
    // A span inside an image, or in the built-in library, is in no file of the repository.
    let place = finding.span.as_ref().filter(|s| finding.image.is_none() && !s.source.name.starts_with('<'));
    if let Some(span) = place {
        let (line, column) = span.source.line_column(span.range.start);
        let (end_line, end_column) = span.source.line_column(span.range.end.max(span.range.start));
        properties.push(("file", workspace.relative(&span.source.name)));
        properties.push(("line", line.to_string()));
        properties.push(("endLine", end_line.to_string()));
        if line == end_line {
            properties.push(("col", column.to_string()));
            properties.push(("endColumn", end_column.to_string()));
        }
    }
    properties.push(("title", format!("fitout: {}", finding.code)));
    let mut data = match finding.subject.as_str() {
        "" => finding.message.clone(),
        subject => format!("{subject}: {}", finding.message),
    };
    for note in &finding.notes {
        data.push_str(&format!("\nnote: {note}"));
    }
    if let Some(help) = &finding.help {
        data.push_str(&format!("\nhelp: {help}"));
    }
    let properties: Vec<(&str, &str)> = properties.iter().map(|(k, v)| (*k, v.as_str())).collect();
    command(kind, &properties, &data)
}

fn command(kind: &str, properties: &[(&str, &str)], data: &str) -> String {
    let properties: Vec<String> = properties.iter().map(|(k, v)| format!("{k}={}", property(v))).collect();
    format!("::{kind} {}::{}\n", properties.join(","), escape(data))
}

/// Escapes the data of a command.
fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}

/// Text for the log in which no line is a command: names in an image are not ours, and the runner obeys any line that
/// begins with `::`, and `##[` anywhere (actions/runner, `ActionCommand.cs`).
pub fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let line = line.replace("##[", "## [");
        let body = line.trim_start();
        if let Some(command) = body.strip_prefix("::") {
            out.push_str(&line[..line.len() - body.len()]);
            out.push_str(": :");
            out.push_str(command);
        } else {
            out.push_str(&line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::record::tests::sample;
    use crate::finding::{Rule, Source, Span};
    use snapbox::{assert_data_eq, str};

    static RULE: Rule = Rule { code: "unused", family: "x", severity: Severity::Warning, summary: "", explanation: "" };

    fn workspace() -> Workspace {
        Workspace { current: "/repo/meshes/a".into(), root: Some("/repo".into()) }
    }

    #[test]
    fn commands_of_one_of_everything() {
        let record = sample();
        assert_data_eq!(
            render(&record.by_weight(), &record.failures, &workspace()),
            str![[r#"
::error title=fitout%3A not carried out::cannot open dist/mad1.tar.gz: no such file%0Ahelp: build it
::error title=fitout%3A ledger-mode::dist/lis1.tar.gz: /etc/a|b: it is `0666`, not `0644` <b>%0Anote: recorded by overlays/mesh/root%0Ahelp: build it again,%0Athen verify
::error title=fitout%3A tls-matrix-peer::lis1 → por1: refused: 100%25 sure
::warning file=meshes/a/mesh.toml,line=2,endLine=2,col=7,endColumn=11,title=fitout%3A unused::site faro: no node is in this site%0Ahelp: remove it
::warning title=fitout%3A etcd-old::dist/lis1.tar.gz: an odd `|` thing

"#]]
        );
    }

    #[test]
    fn files_are_named_from_the_root_of_the_checkout() {
        for (file, want) in [
            ("mesh.toml", "meshes/a/mesh.toml"),
            ("./mesh.toml", "meshes/a/mesh.toml"),
            ("../b/mesh.toml", "meshes/b/mesh.toml"),
            ("/repo/mesh.toml", "mesh.toml"),
            ("/elsewhere/mesh.toml", "/elsewhere/mesh.toml"),
        ] {
            assert_eq!(workspace().relative(file), want);
        }
        let alone = Workspace { current: "/work".into(), root: None };
        assert_eq!(alone.relative("x/mesh.toml"), "x/mesh.toml");
    }

    #[test]
    fn a_place_of_several_lines_has_no_column_and_properties_are_escaped() {
        let source = Source::new("a,b:c%.toml", "one\ntwo\n");
        let finding = RULE.finding("", "m\r\n100%").at(&Span::new(&source, 0..6));
        let text = render(&[&finding], &[], &Workspace { current: "/w".into(), root: None });
        assert_eq!(text, "::warning file=a%2Cb%3Ac%25.toml,line=1,endLine=2,title=fitout%3A unused::m%0D%0A100%25\n");
        let built_in = Source::new("<built-in>/profiles/voter.toml", "x");
        let text = render(&[&RULE.finding("s", "m").at(&Span::new(&built_in, 0..1))], &[], &workspace());
        assert_eq!(text, "::warning title=fitout%3A unused::s: m\n");
        let inside = RULE.finding("s", "m").at(&Span::new(&source, 0..1)).of_image("a.tar.gz");
        assert_eq!(render(&[&inside], &[], &workspace()), text);
    }

    #[test]
    fn ten_of_each_kind_and_the_rest_is_said() {
        let all: Vec<Finding> = (0..12).map(|n| RULE.finding(format!("s{n}"), "m")).collect();
        let text = render(&all.iter().collect::<Vec<_>>(), &[], &workspace());
        assert_eq!(text.lines().filter(|l| l.starts_with("::warning ")).count(), 10);
        assert!(text.lines().last().unwrap().contains("2 more of kind warning"), "{text}");
    }

    #[test]
    fn no_line_of_the_log_is_a_command() {
        let cases = [
            ("::error::x\n", ": :error::x\n"),
            ("a\n  ::stop-commands::x", "a\n  : :stop-commands::x"),
            ("a ::b\n", "a ::b\n"),
            ("x ##[error]y", "x ## [error]y"),
        ];
        for (text, want) in cases {
            assert_eq!(inert(text), want);
        }
    }
}
