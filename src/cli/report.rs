//! `--report FORMAT=FILE`, and the job summary of GitHub's.

use std::path::{Path, PathBuf};

use crate::finding::github::Workspace;
use crate::finding::record::Record;
use crate::finding::{Failure, junit, markdown};
use crate::image::output::{self, Access};

/// What a report can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// One JSON object a line.
    Json,
    /// A JUnit XML document.
    Junit,
    /// A summary for people.
    Markdown,
}

/// One `--report FORMAT=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportTo {
    /// What.
    pub format: ReportFormat,
    /// Where to.
    pub file: PathBuf,
}

impl std::str::FromStr for ReportTo {
    type Err = String;

    fn from_str(text: &str) -> Result<ReportTo, String> {
        let wanted = "give `json=FILE`, `junit=FILE` or `markdown=FILE`";
        let (format, file) = text.split_once('=').ok_or_else(|| wanted.to_owned())?;
        let format = <ReportFormat as clap::ValueEnum>::from_str(format, false)
            .map_err(|_| format!("`{format}` is no format of a report: {wanted}"))?;
        if file.is_empty() {
            return Err(format!("the file is missing: {wanted}"));
        }
        Ok(ReportTo { format, file: file.into() })
    }
}

impl std::fmt::Display for ReportTo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let format = match self.format {
            ReportFormat::Json => "json",
            ReportFormat::Junit => "junit",
            ReportFormat::Markdown => "markdown",
        };
        write!(f, "{format}={}", self.file.display())
    }
}

/// Writes one report, whole or not at all. `lines` are the JSON lines of the run.
///
/// # Errors
/// When it cannot be written.
pub fn write(to: &ReportTo, record: &Record, lines: &[String]) -> Result<(), Failure> {
    let text = match to.format {
        ReportFormat::Json => lines.iter().map(|line| format!("{line}\n")).collect(),
        ReportFormat::Junit => junit::render(record)?,
        ReportFormat::Markdown => markdown::render(record, usize::MAX),
    };
    // A pipe or device (`/dev/stderr`) is written to, not replaced.
    if std::fs::metadata(&to.file).is_ok_and(|meta| !meta.is_file()) {
        let file = std::fs::OpenOptions::new().write(true).open(&to.file);
        let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        return written.map_err(|e| Failure::io("write", &to.file, &e));
    }
    if let Some(parent) = to.file.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(|e| Failure::io("make the directory", parent, &e))?;
    }
    output::write(&to.file, Access::Everyone, text.as_bytes())
}

/// Appends the summary to what the step has so far, within GitHub's limit for the whole of it.
///
/// # Errors
/// When it cannot be written.
pub fn append_summary(file: &Path, record: &Record) -> Result<(), Failure> {
    use std::io::Write;
    let failed = |e: std::io::Error| Failure::io("append the job summary to", file, &e);
    let mut out = std::fs::OpenOptions::new().append(true).create(true).open(file).map_err(failed)?;
    let there = usize::try_from(out.metadata().map_err(failed)?.len()).unwrap_or(usize::MAX);
    let text = markdown::render(record, markdown::STEP_LIMIT.saturating_sub(there));
    out.write_all(text.as_bytes()).map_err(failed)
}

/// Where the program runs, for annotations.
///
/// # Errors
/// When there is no working directory.
pub fn workspace() -> Result<Workspace, Failure> {
    let current =
        std::env::current_dir().map_err(|e| Failure::new(format!("cannot find the working directory: {e}")))?;
    let root = std::env::var_os("GITHUB_WORKSPACE").filter(|root| !root.is_empty()).map(PathBuf::from);
    Ok(Workspace { current, root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_a_format_and_a_file() {
        for text in ["junit=a.xml", "json=x/y=z.jsonl", "markdown=a.md"] {
            assert_eq!(text.parse::<ReportTo>().unwrap().to_string(), text);
        }
        for text in ["junit", "junit=", "xml=a", "=a", ""] {
            assert!(text.parse::<ReportTo>().unwrap_err().contains("give `json=FILE`"), "{text}");
        }
    }

    #[test]
    fn a_summary_is_appended_within_the_limit_of_the_step() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("summary.md");
        let record = crate::finding::record::tests::sample();
        std::fs::write(&file, "before\n").unwrap();
        append_summary(&file, &record).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("before\n### fitout verify"), "{text}");
        std::fs::write(&file, vec![b'x'; markdown::STEP_LIMIT - 10]).unwrap();
        append_summary(&file, &record).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().len(), markdown::STEP_LIMIT as u64 - 10);
    }
}
