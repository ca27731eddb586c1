//! Preparing a project from the global options, as several verbs do.

use std::num::NonZeroUsize;

use super::{Global, Ui, rules};
use crate::declaration::{self, Loaded};
use crate::finding::record::DECLARATION;
use crate::finding::{Failure, Finding, Problem, has_errors};
use crate::image::cache::Cache;
use crate::image::manifest::Manifest;
use crate::image::project::{Project, Tools};
use crate::pki::store::Public;
use crate::process;
use crate::tree::Tree;
use crate::verify::{Image, declared};

/// Opens the cache that the options name.
///
/// # Errors
/// When it cannot be made.
pub fn cache(global: &Global) -> Result<Cache, Failure> {
    Cache::open(global.named_cache().as_deref())
}

/// Reads the declaration; its `[allow]` holds for all findings from here on. Prints nothing: the warnings go on with the
/// others.
///
/// # Errors
/// As [`declaration::load_with`]; with `--deny warnings` any warning, before anything is made.
pub fn declared(global: &Global, ui: &Ui) -> Result<Loaded, Problem> {
    let rulebook = rules::rulebook();
    let Loaded { mesh, warnings } = declaration::load_with(&global.mesh_directory(), &rulebook)?;
    ui.allow(mesh.allowed_on(rulebook.today));
    let warnings = ui.judge(warnings);
    if has_errors(&warnings) { Err(warnings.into()) } else { Ok(Loaded { mesh, warnings }) }
}

/// Reads the declaration, gets the base and plans; prints the warnings.
///
/// # Errors
/// As [`declared`] and [`Project::prepare`]; with `--deny warnings` any warning.
pub fn prepare(global: &Global, ui: &Ui, cache: &Cache, locked: bool) -> Result<Project, Problem> {
    let loaded = declared(global, ui)?;
    planned(loaded, ui, cache, locked)
}

/// As [`prepare`], of a declaration that was read.
///
/// # Errors
/// As [`Project::prepare`]; with `--deny warnings` any warning.
pub fn planned(loaded: Loaded, ui: &Ui, cache: &Cache, locked: bool) -> Result<Project, Problem> {
    let epoch = epoch()?;
    let tools = Tools { cache, make: &process::mmdebstrap::make, epoch, progress: ui };
    let mut project = Project::prepare(loaded, &tools, locked)?;
    project.warnings = ui.judge(project.warnings);
    if has_errors(&project.warnings) {
        return Err(project.warnings.into());
    }
    ui.applied(DECLARATION, &rules::of_declaration());
    ui.findings(&project.warnings);
    Ok(project)
}

/// What the declaration makes now of the node that an image says it is of; the inner error is that it has none.
///
/// # Errors
/// When the store cannot be read, or the node cannot be rendered.
pub fn again(
    project: &Project,
    store: &Public,
    global: &Global,
    image: &Image,
    manifest: &Manifest,
) -> Result<Result<(Tree, Manifest), Finding>, Problem> {
    let node = project.mesh.nodes.get(&manifest.node).filter(|_| manifest.mesh == project.mesh.name.value);
    let Some(node) = node else { return Ok(Err(declared::other_mesh(image, manifest, &global.mesh_directory()))) };
    let pki = store.node(&project.mesh, node)?;
    // The living list is not declared: it is the image's word, and the registry's when the node starts.
    let entrance = manifest.entrance();
    let fitted = project.fit(node, &entrance, &pki)?;
    let tree = project.compose(node, &entrance, &fitted)?.tree;
    Ok(Ok((tree, project.manifest(node, &entrance, &fitted))))
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
