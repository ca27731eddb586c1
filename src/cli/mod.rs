//! The command line: one file per verb, each parses its arguments, calls one function and prints.

pub mod build;
pub mod check;
pub mod diff;
pub mod document;
pub mod explain;
pub mod gate;
pub mod init;
pub mod pki;
pub mod plan;
pub mod project;
pub mod registry;
pub mod render;
pub mod report;
pub mod rules;
pub mod schema;
pub mod ui;
pub mod usage;
pub mod verify;
pub mod why;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use report::ReportTo;
use ui::{Color, MessageFormat};
pub use ui::{Exit, Ui};

use crate::finding::Problem;

/// Builds, proves and boots one image per node of a small mesh of Debian appliances
#[derive(Debug, Parser)]
#[command(name = "fitout", version, max_term_width = 100)]
pub struct Cli {
    /// What every verb knows.
    #[command(flatten)]
    pub global: Global,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options of all verbs.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// Directory that holds mesh.toml
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// How findings and results are printed
    #[arg(long, value_enum, default_value = "human", global = true)]
    pub message_format: MessageFormat,
    /// Write a report to a file as well: json, junit or markdown; may be given several times
    #[arg(long, value_name = "FORMAT=FILE", global = true)]
    pub report: Vec<ReportTo>,
    /// Count warnings as errors
    #[arg(long, value_enum, value_name = "WHAT", global = true)]
    pub deny: Vec<Deny>,
    /// When to use colour
    #[arg(long, value_enum, default_value = "auto", global = true)]
    pub color: Color,
    /// No progress and no status lines
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Where bases and compressed parts are kept [default: $FITOUT_CACHE, else $XDG_CACHE_HOME/fitout or ~/.cache/fitout]
    #[arg(long, value_name = "DIR", global = true)]
    pub cache_dir: Option<PathBuf>,
    /// Directory of the certificate store [default: $FITOUT_PKI, else pki/ beside mesh.toml]
    #[arg(long, value_name = "DIR", global = true)]
    pub pki: Option<PathBuf>,
}

/// What `--deny` can deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Deny {
    /// Findings of severity warning.
    Warnings,
}

impl Global {
    /// The mesh's directory: `-C`, else the current one.
    pub fn mesh_directory(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| PathBuf::from("."))
    }
    /// The certificate store.
    pub fn pki_directory(&self) -> PathBuf {
        self.named_pki().unwrap_or_else(|| self.mesh_directory().join("pki"))
    }
    /// The certificate store, when an option or the environment names it.
    pub fn named_pki(&self) -> Option<PathBuf> {
        self.pki.clone().or_else(|| from_environment("FITOUT_PKI"))
    }
    /// The cache, when an option or the environment names it.
    pub fn named_cache(&self) -> Option<PathBuf> {
        self.cache_dir.clone().or_else(|| from_environment("FITOUT_CACHE"))
    }
}

/// A directory that a variable names. (Read here and not by clap, which counts such an option as given and puts it into
/// every usage line.)
fn from_environment(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Write a mesh to start from
    Init(init::Args),
    /// Show what will be in each image
    Plan(plan::Args),
    /// Make one image per node
    Build(build::Args),
    /// Write only what the overlays put, as files
    Render(render::Args),
    /// Prove finished images, alone or as declared
    Verify(verify::Args),
    /// Compare images with the living registry; it only reads
    Check(check::Args),
    /// Boot the built images on a bridge of this host and judge what they do
    Gate(gate::Args),
    /// Show what put a path into a node's image
    Why(why::Args),
    /// Show what differs between two images, or an image and the declaration
    Diff(diff::Args),
    /// Explain a finding's code
    Explain(explain::Args),
    /// Print a JSON Schema: of mesh.toml, profiles, overlay manifests, or of JSON messages
    Schema(schema::Args),
    /// Make the certificate store, issue certificates, show how they stand
    Pki(pki::Args),
    /// Work with the living registry: bootstrap it, look at it, its claims and its members
    Registry(registry::Args),
}

impl Verb {
    /// The verb as it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Verb::Init(_) => "init",
            Verb::Plan(_) => "plan",
            Verb::Build(_) => "build",
            Verb::Render(_) => "render",
            Verb::Verify(_) => "verify",
            Verb::Check(_) => "check",
            Verb::Gate(_) => "gate",
            Verb::Diff(_) => "diff",
            Verb::Why(_) => "why",
            Verb::Explain(_) => "explain",
            Verb::Schema(_) => "schema",
            Verb::Pki(_) => "pki",
            Verb::Registry(_) => "registry",
        }
    }
}

/// What every verb returns.
pub type VerbResult = Result<Exit, Problem>;

/// Runs the program with the process's arguments and returns its exit status.
pub fn main() -> i32 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let status = if error.use_stderr() { Exit::Usage } else { Exit::Clean };
            // A closed stream leaves nothing to say.
            let _ = error.print();
            return status as i32;
        }
    };
    let ui = Ui::new(&cli.global, cli.verb.name());
    let global = &cli.global;
    let result = match &cli.verb {
        Verb::Init(args) => init::run(args, global, &ui),
        Verb::Plan(args) => plan::run(args, global, &ui),
        Verb::Build(args) => build::run(args, global, &ui),
        Verb::Render(args) => render::run(args, global, &ui),
        Verb::Verify(args) => verify::run(args, global, &ui),
        Verb::Check(args) => check::run(args, global, &ui),
        Verb::Gate(args) => gate::run(args, global, &ui),
        Verb::Why(args) => why::run(args, global, &ui),
        Verb::Diff(args) => diff::run(args, global, &ui),
        Verb::Explain(args) => explain::run(args, global, &ui),
        Verb::Schema(args) => schema::run(args, global, &ui),
        Verb::Pki(args) => pki::run(args, global, &ui),
        Verb::Registry(args) => registry::run(args, global, &ui),
    };
    let exit = match result {
        Ok(exit) => exit,
        Err(problem) => ui.problem(&problem),
    };
    ui.finish(exit) as i32
}
