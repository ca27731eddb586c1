//! `mesh-agent`: says in the mesh registry that this node is there, how it is and what it offers.
//!
//! It never stops a service, whatever the registry says or does not say. `docs/agent.md` is for those who run it.

mod agent;
mod announce;
mod arguments;
mod backoff;
mod certificates;
mod claims;
mod clock;
mod etcd_health;
mod facts;
mod health;
mod metrics;
mod notify;
mod ports;
mod session;
mod sources;
mod units;
mod version;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let result = match arguments::read(arguments) {
        Ok(arguments::Wish::Print(text)) => std::io::stdout().write_all(text.as_bytes()).map_err(|e| e.to_string()),
        Ok(arguments::Wish::Check(options)) => facts::load(&options.facts).map(drop),
        Ok(arguments::Wish::Run(options)) => agent::run(&options),
        Err(wrong) => {
            say(&format!("{wrong}\nhelp: `mesh-agent --help` shows what can be given"));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::from(3)
        }
    }
}

/// A line for the journal.
fn say(line: &str) {
    // Nobody is left to tell when standard error is closed.
    drop(writeln!(std::io::stderr(), "mesh-agent: {line}"));
}
