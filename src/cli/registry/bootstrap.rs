//! `fitout registry bootstrap`: the registry as the declaration wants it, with access control.

use time::OffsetDateTime;

use super::access::{Access, Registry};
use crate::cli::{Exit, Global, Ui, VerbResult};
use crate::etcd::birth;
use crate::finding::{Failure, Problem};
use crate::image::lock::Lock;
use crate::layout::{Time, Uuid};
use crate::live::bootstrap::plan::plan;
use crate::live::bootstrap::{Change, RULES, apply, read, wanted};
use crate::live::credentials::given::pairs;

/// Changes of one kind that are shown in full before the rest is only counted.
const SHOWN: usize = 10;

/// Arguments of `registry bootstrap`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Once the voters run, and after every change of mesh.toml:\n\n    \
    fitout pki issue --operator admin\n    fitout registry bootstrap          # the plan\n    \
    fitout registry bootstrap --yes    # and it is done\n\n\
    It writes the registry's identity once, its schema and all of /mesh/want/, a role and a user for each node by the common \
    name of its certificate, and turns authentication on. A second run shows and applies only what differs, and removes \
    what the declaration has no more; claims and what nodes announce are left alone. A run that was interrupted is finished by \
    the next. docs/registry.md says what stands where, and what etcd does not protect.")]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// Carry the plan out
    #[arg(long)]
    yes: bool,
    /// Show every change, also where there are many of one kind
    #[arg(long)]
    all: bool,
}

/// Plans, and with `--yes` applies.
///
/// # Errors
/// Findings when the registry must not be written; failures when it cannot.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let registry = args.access.open(global, ui)?;
    let operators = operators(global);
    let wanted = wanted::of(&registry.mesh, &given(&registry, operators)?)
        .map_err(|error| Failure::new(format!("the declaration: {error}")))?;
    let Registry { reached, timeout, .. } = &registry;
    let current = read::read(&reached.client, *timeout, ui)?;
    ui.applied("the registry", RULES);
    let plan = match plan(&wanted, &current) {
        Ok(plan) => plan,
        Err(findings) => {
            ui.findings(&findings);
            return Ok(Exit::Findings);
        }
    };
    ui.findings(&plan.warnings);
    show(&plan.changes, args.all, ui);
    if plan.changes.is_empty() {
        ui.line("the registry is as declared: nothing to do");
        return Ok(Exit::Clean);
    }
    if !args.yes {
        ui.line("nothing was written: carry it out with `--yes`");
        return Ok(Exit::Clean);
    }
    apply::apply(&plan.changes, &current, &reached.client, *timeout, ui)?;
    ui.object(&serde_json::json!({"type": "bootstrapped", "changes": plan.changes.len()}));
    ui.line("done: the registry is as declared");
    Ok(Exit::Clean)
}

/// Names of the operators whose certificates the store has; `None` when there is no store.
fn operators(global: &Global) -> Option<Vec<String>> {
    let store = global.pki_directory();
    store.join("store.toml").exists().then(|| pairs(&store.join("operators")))
}

fn given(registry: &Registry, operators: Option<Vec<String>>) -> Result<wanted::Given, Problem> {
    let computed = birth::compute(&registry.mesh);
    // The registry keeps the ids that it was born with, also when voters are declared later.
    let birth = Lock::load(&registry.mesh.directory)?.births.remove(&computed.generation).unwrap_or(computed);
    let mut random = [0; 16];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut random).map_err(|_| Failure::new("the system gives no random numbers"))?;
    Ok(wanted::Given {
        birth,
        uuid: Uuid::of_random(random),
        now: Time::of(OffsetDateTime::now_utc()),
        operators,
        own: registry.reached.credentials.shown.user.clone(),
    })
}

/// Prints the changes: all of them for programs, the first of each kind for people.
fn show(changes: &[Change], all: bool, ui: &Ui) {
    changes.iter().for_each(|change| ui.object(&change.to_json()));
    let alike = |change: &Change| (change.sign(), change.kind());
    for group in changes.chunk_by(|a, b| alike(a) == alike(b)) {
        // One more line would be as long as saying that there is one more.
        let shown = if all || group.len() <= SHOWN + 1 { group.len() } else { SHOWN };
        group[..shown].iter().for_each(|change| ui.line(change.to_string()));
        if shown < group.len() {
            let (sign, kind) = alike(&group[0]);
            ui.line(format!("{sign} … {} more of {kind}; `--all` shows them", group.len() - shown));
        }
    }
}
