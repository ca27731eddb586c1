//! `fitout registry claim`: which node holds which data set in which site, and taking it away by hand.

use std::time::Instant;

use time::OffsetDateTime;

use super::access::{Access, Registry};
use crate::cli::{Exit, Global, Ui, VerbResult};
use crate::finding::{Failure, Finding, Problem};
use crate::layout::keys::ROOT;
use crate::layout::{Label, Time};
use crate::live::claims::{self, Step};
use crate::live::client::Items;
use crate::live::overview::{self, Overview};

/// Arguments of `registry claim`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A node claims the data set of its services by itself, in its own site, and holds the claim until an \
    operator takes it away: also while it is down, since it still has the data. To replace a node that is lost:\n\n    \
    fitout registry claim list\n    fitout registry claim transfer orders lisbon lis2"
)]
pub struct Args {
    #[command(subcommand)]
    verb: ClaimVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ClaimVerb {
    /// Show every data set and site: who holds the claim, and who may
    List {
        #[command(flatten)]
        access: Access,
    },
    /// Take a claim from its node; the next node that may have it takes it by itself
    Release {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        access: Access,
    },
    /// Give a claim to another node of the site
    Transfer {
        #[command(flatten)]
        place: Place,
        /// The node that gets it
        #[arg(value_name = "NODE", value_parser = label)]
        to: Label,
        #[command(flatten)]
        access: Access,
    },
}

/// Which claim.
#[derive(Debug, Clone, clap::Args)]
struct Place {
    /// The data set
    #[arg(value_name = "SET", value_parser = label)]
    set: Label,
    /// The site
    #[arg(value_name = "SITE", value_parser = label)]
    site: Label,
    /// Also when the node that holds it is there
    #[arg(long)]
    force: bool,
}

fn label(text: &str) -> Result<Label, String> {
    text.parse().map_err(|error: crate::layout::TextError| error.to_string())
}

/// Lists, releases or transfers.
///
/// # Errors
/// When the registry cannot be read or written.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let (ClaimVerb::List { access } | ClaimVerb::Release { access, .. } | ClaimVerb::Transfer { access, .. }) =
        &args.verb;
    let registry = access.open(global, ui)?;
    let items = registry.items()?;
    let (all, now) = (Overview::of(&items.items), Time::of(OffsetDateTime::now_utc()));
    let step = match &args.verb {
        ClaimVerb::List { .. } => {
            overview::claims(&all, now).iter().for_each(|object| ui.object(object));
            let table = overview::claim_table(&all, now);
            ui.write(if table.is_empty() { "no data set is declared, and nothing is claimed\n" } else { &table });
            return Ok(Exit::Clean);
        }
        ClaimVerb::Release { place, .. } => claims::release(&all, &place.set, &place.site, now, place.force),
        ClaimVerb::Transfer { place, to, .. } => claims::transfer(&all, &place.set, &place.site, to, now, place.force),
    };
    ui.applied("the registry", claims::RULES);
    match step {
        Ok(step) => carry_out(&registry, &items, &step, ui),
        Err(finding) => refused(*finding, ui),
    }
}

fn refused(finding: Finding, ui: &Ui) -> VerbResult {
    ui.findings(&[finding]);
    Ok(Exit::Findings)
}

fn carry_out(registry: &Registry, items: &Items, step: &Step, ui: &Ui) -> VerbResult {
    let deadline = Instant::now() + registry.timeout;
    let done = claims::carry_out(&registry.reached.client, items, step, deadline)
        .map_err(|trouble| Failure::new(format!("{} was not written: {}", step.key, trouble.reason)))?;
    if !done {
        let text = format!("{} was not written: somebody has changed it meanwhile, or its node came back", step.key);
        return Err(Problem::from(Failure::new(text).help("look again: `fitout registry claim list`")));
    }
    let to = step.value.as_ref().map(|claim| claim.node.to_string());
    ui.object(&serde_json::json!({"type": "claim-moved", "key": step.key.to_string(), "from": step.holder.as_str(), "to": to}));
    ui.line(match to {
        Some(to) => format!("{}: {to} holds it, no more {}", step.key, step.holder),
        None => format!("{}: released by {}", step.key, step.holder),
    });
    Ok(Exit::Clean)
}

impl Registry {
    /// Every key below `/mesh/`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn items(&self) -> Result<Items, Failure> {
        self.reached
            .client
            .items(ROOT, self.timeout)
            .map_err(|t| Failure::new(format!("cannot read {ROOT} from {}: {}", self.reached.endpoint, t.reason)))
    }
}
