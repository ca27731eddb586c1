//! Unit states of a profile: who wants which, and the links and preset that come of it.

use std::collections::{BTreeMap, BTreeSet};

use super::assemble::Assembly;
use super::ledger::Origin;
use super::policy;
use super::profile::Step;
use super::rules::{CONFLICT, UNIT_INSTALL, UNIT_MISSING, UNIT_STATES};
use super::units;
use crate::declaration::{Part, UnitState};
use crate::finding::{Failure, Span};
use crate::systemd::search;
use crate::tree::{Entry, Kind, TreePath};

impl Step<'_> {
    /// Makes the links, masks, K links and preset lines that the states of all units ask for.
    pub(super) fn set_units(
        &mut self,
        assembly: &mut Assembly,
        samples: &BTreeMap<TreePath, Vec<u8>>,
        spans: &BTreeMap<TreePath, Span>,
        has_packages: bool,
    ) -> Result<(), Failure> {
        let wishes = self.unit_wishes(self.profile.part.value);
        let states = wishes.iter().map(|(unit, (state, ..))| (unit.clone(), *state)).collect();
        let changes = units::changes(&assembly.tree(samples), &states)?;
        let origin_of = |unit: &str| {
            let origin = wishes.get(unit).map(|(_, origin, _)| origin.clone());
            origin.unwrap_or_else(|| Origin {
                overlay: "fitout".into(),
                file: unit.to_owned(),
                by: format!("unit {unit}"),
            })
        };
        let is_put = |assembly: &Assembly, path: &TreePath| {
            assembly.put.contains_key(path) || assembly.rendered.contains_key(path)
        };
        for (path, unit) in &changes.remove {
            if is_put(assembly, path) {
                self.unit_conflict(path, &origin_of(unit), spans);
            } else {
                assembly.remove(path, &origin_of(unit));
            }
        }
        for (path, (target, unit)) in &changes.links {
            let origin = origin_of(unit);
            if is_put(assembly, path) {
                self.unit_conflict(path, &origin, spans);
                continue;
            }
            if assembly.base_entry(path).is_some_and(|entry| !matches!(entry.kind, Kind::Symlink(_))) {
                assembly.remove(path, &origin);
            }
            assembly.put(path.clone(), Entry::symlink(target.clone()), None, &origin);
        }
        for unit in changes.missing.iter().filter(|_| has_packages) {
            let mut finding = UNIT_MISSING.finding(unit, "is to be enabled and is not in the image");
            finding.span = wishes.get(unit).and_then(|(.., span)| span.clone());
            self.found.push(finding.help("add the package or overlay that brings it"));
        }
        for (unit, reason) in &changes.no_install {
            let mut finding = UNIT_INSTALL.finding(unit, format!("is to be enabled, but {reason}"));
            finding.span = wishes.get(unit).and_then(|(.., span)| span.clone());
            self.found.push(finding.help("correct its `[Install]` section, or pull it in by another unit's file"));
        }
        self.put_preset(assembly, &changes.preset, spans);
        Ok(())
    }

    fn put_preset(&mut self, assembly: &mut Assembly, lines: &BTreeSet<String>, spans: &BTreeMap<TreePath, Span>) {
        let origin = Origin { overlay: policy::OVERLAY.into(), file: "base policy".into(), by: "unit states".into() };
        let preset = search::path(units::PRESET);
        let path = self.base.tree.resolve(&preset).unwrap_or(preset);
        if assembly.put.contains_key(&path) || assembly.rendered.contains_key(&path) {
            return self.unit_conflict(&path, &origin, spans);
        }
        let mut text =
            "# The unit states that overlays and profile declare. The first matching line of all presets counts.\n"
                .to_owned();
        text.extend(lines.iter().map(|line| format!("{line}\n")));
        assembly.put(path, Entry::file(text.into_bytes(), 0o644), None, &origin);
    }

    fn unit_conflict(&mut self, path: &TreePath, origin: &Origin, spans: &BTreeMap<TreePath, Span>) {
        let mut finding = CONFLICT
            .finding(
                path.display(),
                format!("an overlay puts it, and `{}` of {} decides about it too", origin.by, origin.file),
            )
            .help("take it out of the overlay: unit states make the links");
        finding.span = spans.get(path).cloned();
        self.found.push(finding);
    }

    /// The state of each unit: the base policy, over it the overlays, over them the profile.
    fn unit_wishes(&mut self, part: Part) -> BTreeMap<String, (UnitState, Origin, Option<Span>)> {
        let word = |state: UnitState| match state {
            UnitState::Stopped => "stopped",
            UnitState::Enabled => "enabled",
            UnitState::Masked => "masked",
        };
        let mut wishes = BTreeMap::new();
        for (unit, state, reason) in policy::units(self.mesh, part) {
            let by = format!("unit {unit} {}: {reason}", word(state));
            let origin = Origin { overlay: policy::OVERLAY.into(), file: "base policy".into(), by };
            wishes.insert(unit.to_owned(), (state, origin, None));
        }
        let mut declared: BTreeMap<&str, (&str, UnitState, &Span)> = BTreeMap::new();
        for overlay in &self.overlays {
            for (unit, state) in &overlay.manifest.units {
                let by = format!("unit {unit} {}", word(state.value));
                let origin = Origin { overlay: overlay.name.clone(), file: state.span.file_line(), by };
                wishes.insert(unit.clone(), (state.value, origin, Some(state.span.clone())));
                let earlier = declared.insert(unit, (&overlay.name, state.value, &state.span));
                if let Some((other, before, span)) = earlier
                    && before != state.value
                    && !self.profile.units.contains_key(unit)
                {
                    self.found.push(
                        UNIT_STATES
                            .finding(
                                unit,
                                format!(
                                    "`{other}` wants it {}, `{}` wants it {}",
                                    word(before),
                                    overlay.name,
                                    word(state.value)
                                ),
                            )
                            .at(&state.span)
                            .related(span, format!("`{other}` says so here"))
                            .help(format!("set it in `[units]` of profile `{}`", *self.profile.name)),
                    );
                }
            }
        }
        for (unit, state) in &self.profile.units {
            let by = format!("unit {unit} {}", word(state.value));
            let origin =
                Origin { overlay: format!("profile {}", *self.profile.name), file: state.span.file_line(), by };
            wishes.insert(unit.clone(), (state.value, origin, Some(state.span.clone())));
        }
        for unit in policy::STOPPED_ALWAYS {
            if let Some((UnitState::Enabled, _, Some(span))) = wishes.get(unit) {
                self.found.push(
                    UNIT_STATES
                        .finding(unit, "is to be enabled, and the registry is stopped in every image")
                        .at(span)
                        .help("start it on the node: `systemctl enable --now mesh-registry.target`"),
                );
            }
        }
        wishes
    }
}
