//! `fitout gate`: boots the built images on a bridge of this host and judges what they do.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::{Exit, Global, Ui, VerbResult, project};
use crate::declaration::MESH_FILE;
use crate::finding::{Failure, Finding, record};
use crate::gate::report::{Outcome, Reporter, Verdict};
use crate::gate::{NotCarriedOut, Options, Plan, inside, janitor, plan, run as run_gate};

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
        self.0.write(&outcome.to_text());
        let (became, seconds) = match &outcome.verdict {
            Verdict::Passed => (record::Outcome::Passed, Some(outcome.took.as_secs_f64())),
            Verdict::Failed(cause) => (record::Outcome::Failed(cause.clone()), Some(outcome.took.as_secs_f64())),
            Verdict::NotRun => (record::Outcome::NotRun("an earlier step failed".to_owned()), None),
        };
        self.0.case(record::Case {
            suite: "gate".to_owned(),
            name: format!("{}: {}", outcome.step, outcome.claim),
            outcome: became,
            notes: outcome.notes.clone(),
            seconds,
        });
    }
    fn judge(&self, findings: Vec<Finding>) -> Vec<Finding> {
        self.0.judge(findings)
    }
}

/// Runs the gate, or one of its processes.
///
/// # Errors
/// When it could not be carried out.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let directory = global.mesh_directory();
    // Images can be booted where there is no mesh; `[allow]` is obeyed where there is one.
    let with_mesh = directory.join(MESH_FILE).exists();
    if let Some(stage) = args.stage {
        let pass_on = pass_on(global, with_mesh.then_some(directory.as_path()));
        std::process::exit(staged(stage, args.plan.as_deref().unwrap_or_default(), &pass_on, global, ui));
    }
    let mut own = None;
    if with_mesh {
        ui.findings(&project::declared(global, ui)?.warnings);
        own = Some(plan::absolute(&directory)?);
    }
    let pass_on = pass_on(global, own.as_deref());
    let options = Options {
        images: args.images.clone(),
        dist: args.out.clone().unwrap_or_else(|| directory.join("dist")),
        directory,
        keep_logs: args.keep_logs,
        pass_on,
    };
    let result = run_gate(&options);
    if !matches!(result, Err(NotCarriedOut::Because(_))) {
        // The inside has printed all of it, the whole at the end too.
        ui.hand_over();
    }
    match result {
        Ok(true) => Ok(Exit::Clean),
        Ok(false) => Ok(Exit::Findings),
        Err(NotCarriedOut::Said) => Ok(Exit::Failure),
        Err(NotCarriedOut::Because(failure)) => Err(failure.into()),
    }
}

/// One of the gate's own processes: its exit status is for the gate, not for the user.
fn staged(stage: Stage, plan: &str, pass_on: &[String], global: &Global, ui: &Ui) -> i32 {
    let result = match stage {
        Stage::Janitor => Plan::from_argument(plan).and_then(|plan| janitor::run(plan, pass_on)),
        Stage::Sweep => plan
            .parse()
            .map_err(|_| Failure::new(format!("`{plan}` is no process id")))
            .and_then(janitor::sweep)
            .map(|()| janitor::PASSED),
        Stage::Inside => {
            if global.directory.is_some()
                && let Err(problem) = project::declared(global, ui)
            {
                // It was right when the gate began.
                ui.problem(&problem);
                return finish(ui, janitor::NOT_CARRIED_OUT);
            }
            let passed = Plan::from_argument(plan).and_then(|plan| inside::run(&plan, &Printer(ui)));
            passed.map(|passed| finish(ui, if passed { janitor::PASSED } else { janitor::FAILED }))
        }
    };
    result.unwrap_or_else(|failure| {
        ui.failure(&failure);
        finish(ui, janitor::NOT_CARRIED_OUT)
    })
}

/// Prints what is printed at the end, and gives the status that tells the gate of it.
fn finish(ui: &Ui, status: i32) -> i32 {
    let exit = match status {
        janitor::PASSED => Exit::Clean,
        janitor::FAILED => Exit::Findings,
        _ => Exit::Failure,
    };
    match ui.finish(exit) {
        Exit::Failure => janitor::NOT_CARRIED_OUT,
        Exit::Clean => janitor::PASSED,
        Exit::Findings | Exit::Usage => janitor::FAILED,
    }
}

/// What the other processes need to print alike.
fn pass_on(global: &Global, directory: Option<&Path>) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(name) = global.message_format.to_possible_value() {
        options.extend(["--message-format".to_owned(), name.get_name().to_owned()]);
    }
    options.extend(global.report.iter().flat_map(|report| ["--report".to_owned(), report.to_string()]));
    if !global.deny.is_empty() {
        options.extend(["--deny".to_owned(), "warnings".to_owned()]);
    }
    if let Some(directory) = directory {
        options.extend(["-C".to_owned(), directory.display().to_string()]);
    }
    if global.quiet {
        options.push("--quiet".to_owned());
    }
    options
}
