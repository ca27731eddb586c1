//! Reads again what differs: the first pass keeps only what rules read.

use std::collections::BTreeSet;
use std::path::Path;

use super::content::is_shown;
use crate::finding::Failure;
use crate::tree::read::{self, Rest};
use crate::tree::{Kind, Place, Tree, TreePath};

/// Most that is read for showing it, in bytes; what does not fit is told by digest.
const BUDGET: u64 = 64 << 20;

/// Fills in the contents of these paths where they were dropped and can be shown.
///
/// # Errors
/// When the file cannot be read again.
pub fn fill(file: &Path, tree: &mut Tree, paths: &[TreePath]) -> Result<(), Failure> {
    let mut left = BUDGET;
    let mut missing = BTreeSet::new();
    for path in paths {
        if let Some(Kind::File(data)) = tree.get(path).map(|entry| &entry.kind)
            && data.place == Place::Dropped
            && is_shown(data.len)
            && data.len <= left
        {
            left -= data.len;
            missing.insert(path.clone());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let input = crate::regular::open(file).map_err(|e| Failure::io("open", file, &e))?;
    let again = read::decompress(input)
        .and_then(|(_, plain)| read::read_tar(plain, &|path, _| missing.contains(path), Rest::Dropped))
        .map_err(|e| Failure::new(format!("cannot read {} again: {e}", file.display())))?;
    for path in &missing {
        let (Some(entry), Some(found)) = (tree.entries.get_mut(path), again.tree.get(path)) else { continue };
        if let (Kind::File(data), Kind::File(found)) = (&mut entry.kind, &found.kind)
            && data.sha256 == found.sha256
        {
            data.place = found.place.clone();
        }
    }
    Ok(())
}
