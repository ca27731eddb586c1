//! `fitout registry members`: who is a member, what the declaration wants, and the steps from one to the other.

mod print;

use std::time::Duration;

use super::access::{Access, Place};
use crate::cli::{Exit, Global, Ui, VerbResult};
use crate::declaration::Mesh;
use crate::etcd::birth::{self, Birth};
use crate::finding::{Failure, Problem};
use crate::image::lock::Lock;
use crate::image::project::select;
use crate::live::credentials::Credentials;
use crate::live::credentials::given::Given;
use crate::live::members::Living;
use crate::live::members::apply::{Event, Outcome, apply};
use crate::live::members::look::Registry;
use crate::live::members::plan::{Options, Step, Wanted, plan};

/// Arguments of `registry members`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --apply nothing is changed. Exit: 0 the members are as declared, 1 they are not, 3 it could not be carried \
    out.\n\nA member of which nothing is heard is not taken for dead: start it again with its data, or say that the data is \
    lost with --replace. Growing and shrinking is declaring: change mesh.toml and look here again.\n\nThe walk-throughs are in \
    docs/members.md."
)]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// The data of this node is lost or given up: remove its member and add it anew; may be given several times
    #[arg(long, value_name = "NODE")]
    replace: Vec<String>,
    /// Add voters as voters at once, not as learners first (see the warning about promotions on etcd 3.5.1 to 3.5.19)
    #[arg(long)]
    no_learner: bool,
    /// Take the steps, one at a time; each is waited for, and the member list is read again before the next
    #[arg(long)]
    apply: bool,
    /// How long --apply waits for each thing that you do, such as starting a node, in seconds; 0: stop there
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = whole_seconds)]
    wait: Duration,
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) if seconds <= 86_400 => Ok(Duration::from_secs(seconds)),
        _ => Err("must be a whole number of seconds, at most 86400".to_owned()),
    }
}

/// Looks, plans, prints; with `--apply` carries it out.
///
/// # Errors
/// When the registry cannot be looked at, or a step is refused.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let place = args.access.place(global, ui)?;
    let credentials = credentials(&args.access, &place)?;
    let birth = birth(&place.mesh)?;
    let wanted = Wanted::of(&place.mesh);
    let registry = Registry {
        wanted: wanted.clone(),
        birth: birth.clone(),
        endpoints: place.endpoints,
        credentials: &credentials,
        timeout: args.access.timeout,
    };
    // Names that are no node's, before anything is asked.
    select(&place.mesh.nodes, &args.replace)?;
    let look = registry.look()?;
    let replace = look.to_replace(&wanted, &args.replace)?;
    let born = birth.member_ids.iter().filter_map(|(node, id)| Some((node.clone(), id.parse().ok()?))).collect();
    let options = Options { learner: !args.no_learner, replace, born };
    let shown = plan(&wanted, &look.seen, &options);
    let printer = print::Printer { ui, wanted: &wanted, fitout: print::fitout(global) };
    printer.members(&look);
    printer.wanted();
    printer.plan(&shown, args.apply);
    if shown.is_done() || !args.apply || shown.steps.is_empty() {
        printer.end(&shown);
        return Ok(if shown.is_done() { Exit::Clean } else { Exit::Findings });
    }
    let mut living = Living::new(registry);
    let mut tell = |event: Event<'_>| printer.event(&event);
    let outcome = apply(&mut living, (&wanted, &options), &shown, args.wait, &mut tell)?;
    let now = living.into_registry().look()?;
    ui.line("");
    printer.members(&now);
    let left = plan(&wanted, &now.seen, &Options { replace: Default::default(), ..options });
    printer.end(&left);
    match outcome {
        Outcome::AsDeclared => Ok(Exit::Clean),
        Outcome::Blocked(blocked) => Err(Failure::new(format!("stopped: {}", blocked.why)).help(blocked.help).into()),
        outcome => Err(stopped(outcome, args.wait).into()),
    }
}

/// Why `--apply` has ended before the list was as declared.
fn stopped(outcome: Outcome, wait: Duration) -> Failure {
    let again = "what is done stays done: run the command again to go on from here";
    match outcome {
        Outcome::Changed(step) => Failure::new(format!(
            "stopped: somebody else has changed the registry, and the next step would be one that was not shown: {step}"
        ))
        .help("look again without `--apply`, and begin anew"),
        Outcome::NotStarted(step @ Step::Start { .. }) => {
            Failure::new(format!("stopped after {} s of waiting: {step}", wait.as_secs())).help(again)
        }
        Outcome::NotStarted(step) => Failure::new(format!("stopped: this is for you: {step}")).help(again),
        Outcome::Refused(step, why) => {
            Failure::new(format!("stopped: etcd goes on refusing to {step}: {why}")).help(again)
        }
        Outcome::AsDeclared | Outcome::Blocked(_) => Failure::new("stopped"),
    }
}

/// The operator's credentials, with the mesh's authority.
///
/// # Errors
/// When the key cannot be opened, or the authority cannot be read.
fn credentials(access: &Access, place: &Place) -> Result<Credentials, Problem> {
    let given = Given::open(&place.files.certificate, &access.unlock.source())?;
    let authority = std::fs::read(&place.authority).map_err(|e| Failure::io("read", &place.authority, &e))?;
    Ok(given.with_authority(&place.authority.display().to_string(), authority)?)
}

/// The pinned birth record; of a mesh that was never built, what it would be.
///
/// # Errors
/// When fitout.lock cannot be read.
pub fn birth(mesh: &Mesh) -> Result<Birth, Problem> {
    let mut lock = Lock::load(&mesh.directory)?;
    Ok(lock.births.remove(&mesh.registry.generation.value).unwrap_or_else(|| birth::compute(mesh)))
}
