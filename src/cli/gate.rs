//! `fitout gate`: boots the built images on a bridge of this host and judges what they do.

use std::path::PathBuf;

use super::ui::MessageFormat;
use super::{Exit, Global, Ui, VerbResult};
use crate::finding::Failure;
use crate::gate::report::{Outcome, Reporter};
use crate::gate::{NotCarriedOut, Options, Plan, inside, janitor, run as run_gate};

/// Arguments of `gate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Images to boot [default: all of dist/ by its index.json]
    #[arg(value_name = "IMAGE")]
    images: Vec<PathBuf>,
    /// Directory with the images and their index.json [default: dist/ beside mesh.toml]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep journals and consoles in gate/ beside mesh.toml also when all steps pass
    #[arg(long)]
    keep_logs: bool,
    /// The gate starts itself in namespaces of its own
    #[arg(long, value_enum, hide = true)]
    stage: Option<Stage>,
    #[arg(long, hide = true)]
    plan: Option<String>,
}

/// Processes of the gate.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Stage {
    Janitor,
    Inside,
    Sweep,
}

struct Printer<'a>(&'a Ui);

impl Reporter for Printer<'_> {
    fn status(&self, text: &str) {
        self.0.status(text);
    }
    fn outcome(&self, outcome: &Outcome) {
        self.0.object(&outcome.to_json());
        if !self.0.json() {
            self.0.write(&outcome.to_text());
        }
    }
}

/// Runs the gate, or one of its processes.
///
/// # Errors
/// When it could not be carried out.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let pass_on = pass_on(global);
    if let Some(stage) = args.stage {
        std::process::exit(staged(stage, args.plan.as_deref().unwrap_or_default(), &pass_on, ui));
    }
    let directory = global.mesh_directory();
    let options = Options {
        images: args.images.clone(),
        dist: args.out.clone().unwrap_or_else(|| directory.join("dist")),
        directory,
        keep_logs: args.keep_logs,
        pass_on,
    };
    match run_gate(&options) {
        Ok(true) => Ok(Exit::Clean),
        Ok(false) => Ok(Exit::Findings),
        Err(NotCarriedOut::Said) => Ok(Exit::Failure),
        Err(NotCarriedOut::Because(failure)) => Err(failure.into()),
    }
}

/// One of the gate's own processes: its exit status is for the gate, not for the user.
fn staged(stage: Stage, plan: &str, pass_on: &[String], ui: &Ui) -> i32 {
    let result = match stage {
        Stage::Janitor => Plan::from_argument(plan).and_then(|plan| janitor::run(plan, pass_on)),
        Stage::Sweep => plan
            .parse()
            .map_err(|_| Failure::new(format!("`{plan}` is no process id")))
            .and_then(janitor::sweep)
            .map(|()| janitor::PASSED),
        Stage::Inside => Plan::from_argument(plan)
            .and_then(|plan| inside::run(&plan, &Printer(ui)))
            .map(|passed| if passed { janitor::PASSED } else { janitor::FAILED }),
    };
    result.unwrap_or_else(|failure| {
        ui.failure(&failure);
        janitor::NOT_CARRIED_OUT
    })
}

/// What the other processes need to print alike.
fn pass_on(global: &Global) -> Vec<String> {
    let mut options = Vec::new();
    if global.message_format == MessageFormat::Json {
        options.extend(["--message-format".to_owned(), "json".to_owned()]);
    }
    if global.quiet {
        options.push("--quiet".to_owned());
    }
    options
}
