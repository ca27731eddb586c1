//! Preparing a project from the global options, as several verbs do.

use std::num::NonZeroUsize;

use super::{Global, Ui};
use crate::finding::{Failure, Problem};
use crate::image::cache::Cache;
use crate::image::project::{Project, Tools};
use crate::process;

/// Opens the cache that the options name.
///
/// # Errors
/// When it cannot be made.
pub fn cache(global: &Global) -> Result<Cache, Failure> {
    Cache::open(global.cache_dir.as_deref())
}

/// Reads the declaration, gets the base and plans; prints the warnings.
///
/// # Errors
/// As [`Project::prepare`].
pub fn prepare(global: &Global, ui: &Ui, cache: &Cache, locked: bool) -> Result<Project, Problem> {
    let epoch = epoch()?;
    let tools = Tools { cache, make: &process::mmdebstrap::make, epoch, progress: ui };
    let project = Project::prepare(&global.mesh_directory(), &tools, locked)?;
    ui.findings(&project.warnings);
    Ok(project)
}

/// `SOURCE_DATE_EPOCH`, when set.
fn epoch() -> Result<Option<i64>, Failure> {
    let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") else { return Ok(None) };
    match text.parse::<i64>() {
        Ok(epoch) if epoch >= 0 => Ok(Some(epoch)),
        _ => Err(Failure::new(format!("SOURCE_DATE_EPOCH is `{text}`, not a number of seconds since 1970"))
            .help("set it with `SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)`, or unset it")),
    }
}

/// `--jobs`, else one thread per processor.
pub fn jobs(asked: Option<NonZeroUsize>) -> NonZeroUsize {
    asked.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
