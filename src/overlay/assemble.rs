//! Puts together what one profile changes in the base, and writes the ledger as it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::ledger::{Action, Ledger, Origin, Record, Scope, describe};
use super::rules::{BELOW_NO_DIRECTORY, TYPE_CHANGE};
use crate::finding::{Finding, Span};
use crate::pki::Use;
use crate::tree::{Entry, Tree, TreePath};

/// A file that is rendered for each node.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// Template.
    pub template: String,
    /// The private key that it holds, and nothing else.
    pub key: Option<Use>,
    /// Mode and owner, on an empty file.
    pub entry: Entry,
    /// Its record without content.
    pub record: Record,
}

/// What a profile changes so far.
#[derive(Debug)]
pub struct Assembly<'a> {
    base: &'a Tree,
    epoch: i64,
    directory: &'a Path,
    /// Entries that are the same for all nodes of the profile.
    pub put: BTreeMap<TreePath, (Scope, Entry)>,
    /// Files that differ from node to node.
    pub rendered: BTreeMap<TreePath, Rendered>,
    /// Paths of the base that go, subtrees listed.
    pub removed: BTreeSet<TreePath>,
    /// Records of `put` and `removed`.
    pub ledger: Ledger,
}

impl<'a> Assembly<'a> {
    /// Nothing changed yet; `epoch` is the time of new entries. The ledger names files relative to `directory`: the same
    /// mesh gives the same bytes wherever it lies.
    pub fn new(base: &'a Tree, epoch: i64, directory: &'a Path) -> Assembly<'a> {
        Assembly {
            base,
            epoch,
            directory,
            put: BTreeMap::new(),
            rendered: BTreeMap::new(),
            removed: BTreeSet::new(),
            ledger: Ledger::default(),
        }
    }

    /// The base's entry, unless it was removed.
    pub fn base_entry(&self, path: &TreePath) -> Option<&'a Entry> {
        self.base.get(path).filter(|_| !self.removed.contains(path))
    }

    /// Removes an entry of the base and what lies below it.
    pub fn remove(&mut self, path: &TreePath, origin: &Origin) {
        let below = self.base.below(path).map(|(path, _)| path);
        for path in std::iter::once(path).chain(below) {
            let Some(entry) = self.base_entry(path) else { continue };
            let record = Record::of(Action::Removed, entry, Scope::Profile, &self.relative(origin), Some(entry));
            self.ledger.records.insert(path.display(), Record { sha256: None, target: None, ..record });
            self.removed.insert(path.clone());
        }
    }

    /// Checks that an entry may take the place of the base's. With `replace`, what is in the way goes.
    ///
    /// # Errors
    /// A change of type that is not declared.
    pub fn clear(
        &mut self,
        path: &TreePath,
        kind: &str,
        replace: bool,
        span: &Span,
        origin: &Origin,
    ) -> Result<(), Box<Finding>> {
        let Some(entry) = self.base_entry(path) else { return Ok(()) };
        if entry.kind_name() == kind {
            return Ok(());
        }
        if !replace {
            let finding = TYPE_CHANGE
                .finding(path.display(), format!("a {kind} would take the place of the base's {}", describe(entry)))
                .at(span)
                .note(format!("in the base: {path} {}", describe(entry)))
                .help("give another path, or say `replace = true` in the `[path]` table of this path");
            return Err(Box::new(finding));
        }
        self.remove(path, origin);
        Ok(())
    }

    /// Puts an entry that is the same for all nodes.
    pub fn put(&mut self, path: TreePath, entry: Entry, action: Option<Action>, origin: &Origin) {
        let entry = entry.dated(self.epoch);
        let record = self.record(&path, &entry, action, Scope::Profile, origin);
        self.ledger.records.insert(path.display(), record);
        self.removed.remove(&path);
        self.put.insert(path, (Scope::Profile, entry));
    }

    /// Promises a file that is rendered for each node.
    pub fn promise(&mut self, path: TreePath, template: String, key: Option<Use>, entry: Entry, origin: &Origin) {
        let entry = entry.dated(self.epoch);
        let record = self.record(&path, &entry, None, Scope::Node, origin);
        self.ledger.records.remove(&path.display());
        self.removed.remove(&path);
        self.rendered.insert(path, Rendered { template, key, entry, record: Record { sha256: None, ..record } });
    }

    fn record(&self, path: &TreePath, entry: &Entry, action: Option<Action>, scope: Scope, origin: &Origin) -> Record {
        let before = self.base.get(path);
        let action = action.unwrap_or(if before.is_some() { Action::Replaced } else { Action::Added });
        Record::of(action, entry, scope, &self.relative(origin), before)
    }

    fn relative(&self, origin: &Origin) -> Origin {
        let file = Path::new(&origin.file).strip_prefix(self.directory).ok().and_then(Path::to_str);
        Origin { file: file.unwrap_or(&origin.file).to_owned(), ..origin.clone() }
    }

    /// What is at a path now: the word for its kind.
    fn kind_at(&self, path: &TreePath) -> Option<&'static str> {
        if self.rendered.contains_key(path) {
            return Some("file");
        }
        self.put.get(path).map(|(_, entry)| entry).or_else(|| self.base_entry(path)).map(Entry::kind_name)
    }

    /// Makes the directories that are missing above what was put.
    ///
    /// # Errors
    /// All paths that lie below something that is no directory.
    pub fn make_parents(&mut self, spans: &BTreeMap<TreePath, Span>) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut missing: BTreeMap<TreePath, Origin> = BTreeMap::new();
        let rendered = self.rendered.iter().map(|(path, r)| (path, r.record.origin.clone()));
        let put = self.put.keys().filter_map(|path| Some((path, self.ledger.get(path)?.origin.clone())));
        for (path, origin) in put.chain(rendered) {
            for directory in path.ancestors().into_iter().filter(|d| !d.is_root()) {
                match self.kind_at(&directory) {
                    Some("directory") => {}
                    Some(kind) => {
                        let finding = BELOW_NO_DIRECTORY.finding(path.display(), format!("{directory} is a {kind}"));
                        found.push(match spans.get(path) {
                            Some(span) => finding.at(span),
                            None => finding,
                        });
                    }
                    None => {
                        let by = format!("directory of {path}");
                        missing.entry(directory).or_insert(Origin { by, ..origin.clone() });
                    }
                }
            }
        }
        for (path, origin) in missing {
            self.put(path, Entry::directory(0o755), None, &origin);
        }
        found
    }

    /// The base with what is put and promised; files of nodes are as `sample` has them.
    pub fn tree(&self, sample: &BTreeMap<TreePath, Vec<u8>>) -> Tree {
        let mut tree = self.base.clone();
        for path in &self.removed {
            tree.entries.remove(path);
        }
        tree.entries.extend(self.put.iter().map(|(path, (_, entry))| (path.clone(), entry.clone())));
        for (path, bytes) in sample {
            tree.insert(path.clone(), Entry::file(bytes.as_slice(), 0o644));
        }
        tree
    }
}
