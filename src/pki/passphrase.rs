//! Where the passphrase of a store's private keys comes from.
//!
//! In this order: the file named on the command line, the systemd credential `fitout-passphrase`
//! (`$CREDENTIALS_DIRECTORY`, systemd.exec(5) `LoadCredential=`), the variable `FITOUT_PASSPHRASE`, the terminal.

use std::ffi::OsString;
use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::rules;
use crate::finding::{Failure, Problem};

/// Name of the environment variable.
pub const VARIABLE: &str = "FITOUT_PASSPHRASE";
/// Name of the systemd credential.
pub const CREDENTIAL: &str = "fitout-passphrase";

/// A passphrase; wiped when dropped and never printed.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// Takes a passphrase; `None` when it is empty.
    pub fn new(text: impl AsRef<[u8]>) -> Option<Passphrase> {
        let text = text.as_ref();
        (!text.is_empty()).then(|| Passphrase(Zeroizing::new(text.to_vec())))
    }
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// The first line of a file's content, as openssl's `file:` reads it.
    fn first_line(content: &[u8]) -> Option<Passphrase> {
        let line = content.split(|b| *b == b'\n').next().unwrap_or_default();
        Passphrase::new(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

/// Looks a variable of the environment up.
type Lookup<'a> = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync + 'a>;
/// Asks on the terminal; `None` when there is none.
type Ask<'a> = Box<dyn Fn(&str) -> std::io::Result<Option<Zeroizing<String>>> + Send + Sync + 'a>;

/// The places to look for a passphrase.
pub struct Source<'a> {
    file: Option<PathBuf>,
    variable: Lookup<'a>,
    ask: Ask<'a>,
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Source<'static> {
    /// The process's own environment and terminal, with the file of `--passphrase-file`.
    pub fn of_process(file: Option<&Path>) -> Source<'static> {
        Source { file: file.map(Path::to_owned), variable: Box::new(|name| std::env::var_os(name)), ask: Box::new(ask) }
    }
    /// No place at all: a plain store opens, an encrypted one says what it needs.
    pub fn none() -> Source<'static> {
        Source { file: None, variable: Box::new(|_| None), ask: Box::new(|_| Ok(None)) }
    }
}

impl<'a> Source<'a> {
    /// Given places, for tests and embedders.
    pub fn new(file: Option<&Path>, variable: Lookup<'a>, ask: Ask<'a>) -> Source<'a> {
        Source { file: file.map(Path::to_owned), variable, ask }
    }

    /// The passphrase of an existing store.
    ///
    /// # Errors
    /// When a named file cannot be read, the passphrase is empty, or there is none anywhere.
    pub fn existing(&self) -> Result<Passphrase, Problem> {
        match self.quiet()? {
            Some(passphrase) => Ok(passphrase),
            None => self.prompt("passphrase of the certificate store: ")?.ok_or_else(|| none().into()),
        }
    }

    /// The passphrase for a new store; on a terminal it is asked twice.
    ///
    /// # Errors
    /// As [`Source::existing`], or when the two do not agree.
    pub fn chosen(&self) -> Result<Passphrase, Problem> {
        if let Some(passphrase) = self.quiet()? {
            return Ok(passphrase);
        }
        let first = self.prompt("new passphrase of the certificate store: ")?.ok_or_else(none)?;
        let second = self.prompt("the same again: ")?.ok_or_else(none)?;
        if first.as_bytes() != second.as_bytes() {
            return Err(rules::PASSPHRASE.finding("passphrase", "the two passphrases are not the same").into());
        }
        Ok(first)
    }

    fn quiet(&self) -> Result<Option<Passphrase>, Problem> {
        if let Some(path) = &self.file {
            return self.read(path).map(Some);
        }
        if let Some(directory) = (self.variable)("CREDENTIALS_DIRECTORY") {
            let path = Path::new(&directory).join(CREDENTIAL);
            if path.exists() {
                return self.read(&path).map(Some);
            }
        }
        match (self.variable)(VARIABLE) {
            Some(value) => {
                use std::os::unix::ffi::OsStrExt;
                Passphrase::new(value.as_bytes()).map(Some).ok_or_else(|| empty(VARIABLE).into())
            }
            None => Ok(None),
        }
    }

    fn read(&self, path: &Path) -> Result<Passphrase, Problem> {
        let content = Zeroizing::new(std::fs::read(path).map_err(|e| Failure::io("read", path, &e))?);
        Passphrase::first_line(&content).ok_or_else(|| empty(&path.display().to_string()).into())
    }

    fn prompt(&self, text: &str) -> Result<Option<Passphrase>, Problem> {
        let answer = (self.ask)(text).map_err(|e| Failure::new(format!("cannot ask for the passphrase: {e}")))?;
        answer.map(|text| Passphrase::new(text.as_bytes()).ok_or_else(|| empty("passphrase").into())).transpose()
    }
}

fn empty(subject: &str) -> crate::finding::Finding {
    rules::PASSPHRASE.finding(subject, "the passphrase is empty")
}

fn none() -> crate::finding::Finding {
    rules::PASSPHRASE.finding("passphrase", "the private keys of the store are encrypted and there is no passphrase").help(
        format!(
            "give it with `--passphrase-file FILE`, as systemd credential `{CREDENTIAL}`, in `{VARIABLE}`, or on a terminal"
        ),
    )
}

/// Asks on the controlling terminal, when standard input is one (a pipe means that nobody is there).
fn ask(text: &str) -> std::io::Result<Option<Zeroizing<String>>> {
    if !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    rpassword::prompt_password(text).map(|answer| Some(Zeroizing::new(answer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn text(result: Result<Passphrase, Problem>) -> String {
        match result {
            Ok(passphrase) => String::from_utf8_lossy(passphrase.as_bytes()).into_owned(),
            Err(Problem::Findings(findings)) => findings[0].message.clone(),
            Err(Problem::Failure(failure)) => failure.message,
        }
    }

    #[test]
    fn file_credential_variable_and_terminal_in_this_order() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "from file\r\nsecond line\n").unwrap();
        let credentials = directory.path().join("credentials");
        std::fs::create_dir(&credentials).unwrap();
        std::fs::write(credentials.join(CREDENTIAL), "from credential").unwrap();
        let nothing = directory.path().join("nothing");

        let source =
            |file: Option<&Path>, credentials: Option<&Path>, variable: Option<&str>, terminal: Option<&str>| {
                let credentials = credentials.map(|p| p.as_os_str().to_owned());
                let (variable, terminal) = (variable.map(OsString::from), terminal.map(str::to_owned));
                Source::new(
                    file,
                    Box::new(move |name| if name == VARIABLE { variable.clone() } else { credentials.clone() }),
                    Box::new(move |_| Ok(terminal.clone().map(Zeroizing::new))),
                )
            };
        let all = source(Some(&file), Some(&credentials), Some("from variable"), Some("from terminal"));
        assert_eq!(text(all.existing()), "from file");
        let cases = [
            (source(None, Some(&credentials), Some("v"), Some("t")), "from credential"),
            (source(None, Some(&nothing), Some("v"), Some("t")), "v"),
            (source(None, None, None, Some("t")), "t"),
            (source(None, None, None, None), "the private keys of the store are encrypted and there is no passphrase"),
            (source(None, None, Some(""), None), "the passphrase is empty"),
            (source(None, None, None, Some("")), "the passphrase is empty"),
        ];
        for (source, want) in cases {
            assert_eq!(text(source.existing()), want);
            assert_eq!(text(source.chosen()), want);
        }
        let missing = source(Some(&nothing), None, Some("v"), None);
        assert!(text(missing.existing()).starts_with("cannot read "), "a named file is never passed over");
    }

    #[test]
    fn a_new_passphrase_is_asked_twice() {
        let count = AtomicUsize::new(0);
        let source = Source::new(
            None,
            Box::new(|_| None),
            Box::new(|_| Ok(Some(Zeroizing::new(format!("try {}", count.fetch_add(1, Ordering::Relaxed)))))),
        );
        assert_eq!(text(source.chosen()), "the two passphrases are not the same");
    }

    #[test]
    fn it_is_never_printed() {
        assert_eq!(format!("{:?}", Passphrase::new("secret")), "Some(Passphrase(…))");
    }
}
