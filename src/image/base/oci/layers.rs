//! Layers of an OCI image, one upon the other (image-spec, `layer.md`: "Representing Changes").
//!
//! Pure: a tree and what was read of a layer give the next tree. What the specification leaves open is done as
//! containerd and Docker do it: a directory that a layer lists replaces a link of that name, one that it only implies
//! follows it; `.wh..wh.` names other than the opaque one are AUFS's own and mean nothing.

use std::collections::BTreeMap;

use crate::tree::read::Scanned;
use crate::tree::{Entry, Kind, LinkGroup, Place, Tree, TreePath};

const WHITEOUT: &[u8] = b".wh.";
const AUFS: &[u8] = b".wh..wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Applies a layer. Its contents began at byte `start` of the store that the tree refers to. Gives what is wrong with
/// it, in words; then the tree is of no use.
pub(super) fn apply(tree: &mut Tree, layer: Scanned, start: u64) -> Vec<String> {
    let defects = layer.defects.iter().filter(|d| !d.kind.is_only_ambiguous_elsewhere());
    // A hard link may name what a lower layer has.
    let outward = |defect: &&_| !layer.outward.values().any(|(_, own)| own == *defect);
    let mut wrong: Vec<String> = defects.filter(outward).map(ToString::to_string).collect();
    if !wrong.is_empty() {
        return wrong;
    }
    hide(tree, &layer, &mut wrong);
    let links = resolve_links(tree, &layer, &mut wrong);
    let newest = layer.tree.entries.iter().filter(|(path, _)| !layer.implied.contains(*path));
    let newest = newest.map(|(_, entry)| entry.mtime).max().unwrap_or(0);
    let mut landing = Landing { tree, places: BTreeMap::new(), newest };
    let first_group = free_group(landing.tree);
    for (path, entry) in &layer.tree.entries {
        // What the layer only implies is made where something needs it, and keeps its attributes where it is.
        if is_whiteout(path) || layer.implied.contains(path) {
            continue;
        }
        let mut entry = entry.clone();
        if let Kind::File(data) = &mut entry.kind
            && let Place::Base { offset } = &mut data.place
        {
            *offset += start;
        }
        entry.links = entry.links.map(|LinkGroup(group)| LinkGroup(first_group + group));
        landing.put(path, entry).unwrap_or_else(|text| wrong.push(text));
    }
    for (path, entry) in links {
        landing.put(&path, entry).unwrap_or_else(|text| wrong.push(text));
    }
    wrong
}

fn free_group(tree: &Tree) -> u32 {
    tree.entries.values().filter_map(|entry| entry.links).map(|group| group.0 + 1).max().unwrap_or(0)
}

/// True for whiteouts and for what lies below one (AUFS keeps a directory of that form).
fn is_whiteout(path: &TreePath) -> bool {
    path.elements().any(|element| element.starts_with(WHITEOUT))
}

/// Hides what the layer's whiteouts name: in lower layers only, whatever else the layer holds and in whatever order.
fn hide(tree: &mut Tree, layer: &Scanned, wrong: &mut Vec<String>) {
    let mut gone = Vec::new();
    let names = layer.tree.entries.keys().chain(layer.outward.keys());
    for path in names.filter(|path| is_whiteout(path)) {
        let Some(parent) = path.parent() else { continue };
        let name = path.file_name();
        if is_whiteout(&parent) || (name.starts_with(AUFS) && name != OPAQUE) {
            let aufs = path.elements().find(|e| e.starts_with(WHITEOUT)).is_some_and(|e| e.starts_with(AUFS));
            if !aufs {
                wrong.push(format!("`{path}` lies below a whiteout"));
            }
            continue;
        }
        let hidden = &name[WHITEOUT.len()..];
        if matches!(hidden, b"" | b"." | b"..") {
            wrong.push(format!("`{path}` is a whiteout of no name"));
            continue;
        }
        let Some(directory) = lower_directory(tree, layer, &parent) else { continue };
        if name == OPAQUE {
            gone.extend(tree.children(&directory).map(|(path, _)| path.clone()));
        } else {
            gone.push(directory.join(hidden));
        }
    }
    for path in gone {
        tree.remove(&path);
    }
}

/// Which directory of the lower layers a directory of this layer is; `None` when there is none.
fn lower_directory(tree: &Tree, layer: &Scanned, directory: &TreePath) -> Option<TreePath> {
    let (mut at, mut written) = (TreePath::root(), TreePath::root());
    for element in directory.elements() {
        (at, written) = (at.join(element), written.join(element));
        match tree.get(&at)?.kind {
            Kind::Directory => {}
            // A directory that the layer lists takes the link's place, and has nothing of the lower ones.
            Kind::Symlink(_) if !is_listed(layer, &written) => {
                at = tree.resolve_fully(&at).ok().filter(|at| tree.get(at).is_some_and(Entry::is_directory))?;
            }
            _ => return None,
        }
    }
    Some(at)
}

fn is_listed(layer: &Scanned, path: &TreePath) -> bool {
    layer.tree.get(path).is_some() && !layer.implied.contains(path)
}

/// The hard links of a layer to names of the lower ones: each with the entry that it becomes. What such a name was
/// before this layer counts, as for a reader that goes through the archive: the link stands before whatever replaces it.
fn resolve_links(tree: &mut Tree, layer: &Scanned, wrong: &mut Vec<String>) -> Vec<(TreePath, Entry)> {
    let mut found: BTreeMap<TreePath, Entry> = BTreeMap::new();
    let mut group = free_group(tree);
    for path in layer.outward.keys().filter(|path| !is_whiteout(path)) {
        let defect = |text: &str| format!("{} ({text})", layer.outward[path].1);
        if layer.tree.get(path).is_some() {
            wrong.push(defect("and the name is there twice"));
            continue;
        }
        // A link to a link of this kind: at most as many steps as there are links.
        let mut target = &layer.outward[path].0;
        for _ in 0..layer.outward.len() {
            match layer.outward.get(target) {
                Some((next, _)) => target = next,
                None => break,
            }
        }
        let resolved = tree.resolve(target).ok().filter(|at| tree.get(at).is_some());
        let Some(resolved) = resolved else {
            wrong.push(defect("nor in a lower layer"));
            continue;
        };
        let Some(entry) = tree.entries.get_mut(&resolved) else { continue };
        if entry.is_directory() {
            wrong.push(defect("it is a directory of a lower layer"));
            continue;
        }
        entry.links.get_or_insert_with(|| {
            group += 1;
            LinkGroup(group)
        });
        found.insert(path.clone(), entry.clone());
    }
    found.into_iter().collect()
}

/// Where the entries of a layer land in the tree.
struct Landing<'a> {
    tree: &'a mut Tree,
    /// Directories of the layer, as written, to those of the tree.
    places: BTreeMap<TreePath, TreePath>,
    /// Time of directories that no layer lists.
    newest: i64,
}

impl Landing<'_> {
    fn put(&mut self, path: &TreePath, entry: Entry) -> Result<(), String> {
        let here = match path.parent() {
            Some(parent) => self.directory(&parent)?.join(path.file_name()),
            None => TreePath::root(),
        };
        let is_directory = entry.is_directory();
        if !(is_directory && self.tree.get(&here).is_some_and(Entry::is_directory)) {
            self.tree.remove(&here);
        }
        self.tree.insert(here.clone(), entry);
        if is_directory {
            self.places.insert(path.clone(), here);
        }
        Ok(())
    }

    /// The directory of the tree for one of the layer; made when it is nowhere.
    fn directory(&mut self, path: &TreePath) -> Result<TreePath, String> {
        if let Some(place) = self.places.get(path) {
            return Ok(place.clone());
        }
        let Some(parent) = path.parent() else { return Ok(TreePath::root()) };
        let here = self.directory(&parent)?.join(path.file_name());
        // Where this is a link of a lower layer, the layer means what it leads to.
        let place = self.tree.resolve_fully(&here).map_err(|e| format!("`{path}` is needed as a directory: {e}"))?;
        for directory in place.ancestors().into_iter().chain([place.clone()]) {
            match self.tree.get(&directory) {
                Some(entry) if entry.is_directory() => {}
                Some(entry) => {
                    let kind = entry.kind_name();
                    return Err(format!(
                        "`{path}` is needed as a directory, and {directory} is a {kind} of a lower layer"
                    ));
                }
                None => {
                    self.tree.insert(directory, Entry::directory(0o755).dated(self.newest));
                }
            }
        }
        self.places.insert(path.clone(), place.clone());
        Ok(place)
    }
}
