//! What is collected while a declaration is read: all findings, and which sections they leave unsound.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::finding::Finding;

/// A part of the declaration that a rule may need whole.
///
/// A value that could not be read is replaced by a stand-in so that reading goes on, and its section is marked as
/// broken: rules that look at it would only repeat or contradict the first message, and are not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Mesh,
    Image,
    Base,
    Registry,
    Pki,
    Sites,
    Nodes,
    Allow,
    Profiles,
    Overlays,
    /// References between nodes, profiles, overlays, sites.
    References,
}

impl Section {
    /// All sections of `mesh.toml`.
    pub const OF_MESH_FILE: [Section; 8] = [
        Section::Mesh,
        Section::Image,
        Section::Base,
        Section::Registry,
        Section::Pki,
        Section::Sites,
        Section::Nodes,
        Section::Allow,
    ];
}

/// Findings and broken sections.
#[derive(Debug, Default)]
pub(super) struct Reports {
    findings: RefCell<Vec<Finding>>,
    broken: RefCell<BTreeSet<Section>>,
    /// Keys that the decoder knows, by the shape of their table.
    #[cfg(test)]
    keys: RefCell<std::collections::BTreeMap<String, BTreeSet<&'static str>>>,
}

impl Reports {
    /// Adds a finding that leaves all values sound.
    pub fn add(&self, finding: Finding) {
        self.findings.borrow_mut().push(finding);
    }
    /// Remembers the keys that the decoder of a table knows, for the test of the JSON Schemas.
    #[cfg(test)]
    pub fn decoded<'a>(&self, shape: &str, keys: impl Iterator<Item = &'a &'static str>) {
        self.keys.borrow_mut().entry(shape.to_owned()).or_default().extend(keys);
    }
    /// The keys that the decoder knows, by the shape of their table.
    #[cfg(test)]
    pub fn keys(&self) -> std::collections::BTreeMap<String, BTreeSet<&'static str>> {
        self.keys.borrow().clone()
    }
    /// Adds a finding about a value that could not be read.
    pub fn broken(&self, section: Section, finding: Finding) {
        self.mark(section);
        self.add(finding);
    }
    /// Marks a section as broken.
    pub fn mark(&self, section: Section) {
        self.broken.borrow_mut().insert(section);
    }
    /// True when nothing in these sections is broken.
    pub fn sound(&self, sections: &[Section]) -> bool {
        let broken = self.broken.borrow();
        sections.iter().all(|s| !broken.contains(s))
    }
    /// Number of findings so far.
    pub fn len(&self) -> usize {
        self.findings.borrow().len()
    }
    /// Keeps of the findings from `start` on only those that `keep` accepts.
    pub fn retain_from(&self, start: usize, keep: impl Fn(&Finding) -> bool) {
        let mut findings = self.findings.borrow_mut();
        let mut tail = findings.split_off(start);
        tail.retain(keep);
        findings.append(&mut tail);
    }
    /// All findings by file and place; what holds for several nodes of one group is said once. The flag is true when
    /// nothing is broken.
    pub fn finish(self) -> (Vec<Finding>, bool) {
        let mut findings = self.findings.into_inner();
        findings.sort_by(|a, b| key(a).cmp(&key(b)));
        let mut once: Vec<Finding> = Vec::new();
        let mut more = 0;
        for finding in findings {
            match once.last_mut() {
                Some(last)
                    if last.code == finding.code
                        && last.span.is_some()
                        && last.span == finding.span
                        && last.message == finding.message =>
                {
                    if last.subject != finding.subject {
                        more += 1;
                        if more > 1 {
                            last.notes.pop();
                        }
                        last.notes.push(format!("the same holds for {more} more declared here"));
                    }
                }
                _ => {
                    more = 0;
                    once.push(finding);
                }
            }
        }
        (once, self.broken.into_inner().is_empty())
    }
}

fn key(finding: &Finding) -> (&str, usize, usize, &str) {
    match &finding.span {
        Some(span) => (&span.source.name, span.range.start, span.range.end, finding.code),
        None => ("", 0, 0, finding.code),
    }
}
