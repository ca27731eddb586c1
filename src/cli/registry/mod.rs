//! `fitout registry`: what operators do with the living registry. One file per verb; [`access`] is how each gets at it.

pub mod access;
pub mod env;
pub mod members;

use super::{Global, Ui, VerbResult};

/// Arguments of `registry`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: RegistryVerb,
}

#[derive(Debug, clap::Subcommand)]
enum RegistryVerb {
    /// Print etcdctl's variables for an operator's certificate, for the shell's `eval`
    Env(env::Args),
    /// Compare the members with the declaration, and show or take the steps from one to the other
    Members(members::Args),
}

/// Runs `registry`.
///
/// # Errors
/// As the verb.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    match &args.verb {
        RegistryVerb::Env(args) => env::run(args, global, ui),
        RegistryVerb::Members(args) => members::run(args, global, ui),
    }
}
