//! `fitout registry`: what operators do with the living registry. One file per verb; [`access`] is how each gets at it.

pub mod access;
pub mod bootstrap;
pub mod claim;
pub mod env;
pub mod members;
pub mod show;

use super::{Global, Ui, VerbResult};

/// Arguments of `registry`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: RegistryVerb,
}

#[derive(Debug, clap::Subcommand)]
enum RegistryVerb {
    /// Write identity, what the declaration wants, roles and users, and turn authentication on; shows a plan first
    Bootstrap(bootstrap::Args),
    /// Show sites, nodes, services, claims, certificates and backups; follow changes with --watch
    Show(show::Args),
    /// Show which node holds which data set in which site; release or transfer a claim
    Claim(claim::Args),
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
        RegistryVerb::Bootstrap(args) => bootstrap::run(args, global, ui),
        RegistryVerb::Show(args) => show::run(args, global, ui),
        RegistryVerb::Claim(args) => claim::run(args, global, ui),
        RegistryVerb::Env(args) => env::run(args, global, ui),
        RegistryVerb::Members(args) => members::run(args, global, ui),
    }
}
