//! What can be given on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::version;

const HELP: &str = "\
Says in the mesh registry that this node is there, how it is and what it offers.

usage: mesh-agent [--facts FILE] [--metrics FILE]
       mesh-agent --check [--facts FILE]

  --facts FILE    what this node is [default: /etc/mesh/node.toml]
  --metrics FILE  Prometheus textfile to write, when it has a directory to lie in
                  [default: mesh.prom in $RUNTIME_DIRECTORY, when systemd gives one]
  --check         read the facts and the certificates, say what is wrong with them, and end
  --version       print the version
  --help          print this

It runs until SIGTERM, and then gives up its lease, so that what it announced is gone at once. SIGHUP lets it read the facts
and the certificates again. Without the registry it goes on and tries again; it never stops a service.

exit status: 0 ended as asked, 2 bad usage, 3 the facts cannot be used
";

/// Where things lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `node.toml`.
    pub facts: PathBuf,
    /// The Prometheus textfile.
    pub metrics: Option<PathBuf>,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Print this and end.
    Print(String),
    /// Look at the facts and end.
    Check(Options),
    /// Announce.
    Run(Options),
}

/// Reads the arguments.
///
/// # Errors
/// In words.
pub fn read(arguments: impl Iterator<Item = OsString>) -> Result<Wish, String> {
    let directory = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    let mut options = Options {
        facts: "/etc/mesh/node.toml".into(),
        metrics: directory.map(|directory| directory.join("mesh.prom")),
    };
    let mut check = false;
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut path = |of: &str| arguments.next().map(PathBuf::from).ok_or(format!("`{of}` wants a path after it"));
        match argument.to_string_lossy().as_ref() {
            "--help" | "-h" => return Ok(Wish::Print(HELP.to_owned())),
            "--version" | "-V" => return Ok(Wish::Print(format!("{}\n", version::name()))),
            "--check" => check = true,
            "--facts" => options.facts = path("--facts")?,
            "--metrics" => options.metrics = Some(path("--metrics")?),
            other => return Err(format!("`{other}` is not known")),
        }
    }
    Ok(if check { Wish::Check(options) } else { Wish::Run(options) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let said = |arguments: &[&str]| read(arguments.iter().map(OsString::from));
        let Ok(Wish::Run(options)) = said(&["--facts", "/x", "--metrics", "/y"]) else { panic!() };
        assert_eq!((options.facts, options.metrics), ("/x".into(), Some("/y".into())));
        assert!(matches!(said(&["--check"]), Ok(Wish::Check(_))));
        assert_eq!(said(&["--version"]), Ok(Wish::Print(format!("mesh-agent {}\n", version::VERSION))));
        assert!(matches!(said(&["--check", "--help"]), Ok(Wish::Print(_))));
        assert_eq!(said(&["--facts"]), Err("`--facts` wants a path after it".to_owned()));
        assert_eq!(said(&["--fact", "x"]), Err("`--fact` is not known".to_owned()));
    }
}
