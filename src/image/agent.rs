//! Looks for the announcer's program on the build host.

use std::path::{Path, PathBuf};

use crate::declaration::Mesh;
use crate::overlay::program::{self, Found, MESH_AGENT};
use crate::regular;
use crate::tree::Tree;

/// The program for the architecture of a base: the one that the declaration names for it, else the one beside the running
/// program. `None` when no overlay wants it.
pub fn find(mesh: &Mesh, base: &Tree) -> Option<Found> {
    if !program::is_wanted(mesh) {
        return None;
    }
    let named = program::architecture(base).and_then(|architecture| mesh.agent.binaries.get(architecture));
    Some(match named {
        Some(path) => {
            let file = mesh.directory.join(&path.value);
            Found { content: read(&file), path: file, declared: Some(path.span.clone()) }
        }
        None => match beside() {
            Ok(path) => Found { content: read(&path), path, declared: None },
            Err(why) => Found { path: PathBuf::from(MESH_AGENT), declared: None, content: Err(why) },
        },
    })
}

/// Where the running program lies, links followed.
fn beside() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("it is not known where fitout lies: {e}"))?;
    Ok(own.with_file_name(MESH_AGENT))
}

fn read(path: &Path) -> Result<std::sync::Arc<[u8]>, String> {
    regular::read(path).map(Into::into).map_err(|e| e.to_string())
}
