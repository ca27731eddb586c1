//! `fitout registry env`: the variables by which `etcdctl` gets at the registry.

use super::access::Access;
use crate::cli::{Exit, Global, Ui, VerbResult};
use crate::process::command::quote;

/// Arguments of `registry env`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For instance:\n\n    eval \"$(fitout registry env)\"\n    etcdctl endpoint status --cluster -w table\n\n\
    etcdctl cannot read an encrypted key: make a plain copy first, and name it with --credentials."
)]
pub struct Args {
    #[command(flatten)]
    access: Access,
}

/// Prints them. Nothing is asked of the registry.
///
/// # Errors
/// When there is no operator's certificate, or its key is encrypted.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let place = args.access.place(global, ui)?;
    let endpoints: Vec<String> = place.endpoints.iter().map(ToString::to_string).collect();
    let files = place.files_for_etcdctl()?;
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let variables = [
        ("ETCDCTL_API", "3".to_owned()),
        ("ETCDCTL_ENDPOINTS", endpoints.join(",")),
        ("ETCDCTL_CACERT", path(&files.authority)),
        ("ETCDCTL_CERT", path(&files.certificate)),
        ("ETCDCTL_KEY", path(&files.key)),
    ];
    if ui.json() {
        let all: serde_json::Map<String, serde_json::Value> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        ui.object(&serde_json::json!({"type": "environment", "variables": all}));
    } else {
        ui.document(&variables.map(|(name, value)| format!("export {name}={}\n", quote(&value))).concat());
    }
    Ok(Exit::Clean)
}
