//! The plan of a whole mesh over one base.

use std::collections::{BTreeMap, BTreeSet};

use super::policy;
use super::profile::{ProfilePlan, Shared, plan_profile};
use super::program;
use super::render::Templates;
use super::rules::{EDIT, USER_IDS};
use super::users::{self, Databases, Ids, Wanted};
use crate::declaration::{Mesh, Profile};
use crate::finding::{Failure, Finding, Problem, has_errors};
use crate::tree::{LinkGroup, Tree, TreePath};

/// What the plan needs to know of a base.
#[derive(Debug, Clone, Copy)]
pub struct BaseView<'a> {
    /// Its tree, with contents that can be read.
    pub tree: &'a Tree,
    /// Installed packages and their versions.
    pub packages: &'a BTreeMap<String, String>,
    /// Its own hostname, which may not reach an image; empty when it has none.
    pub hostname: &'a str,
    /// Time of the entries that are put, seconds since 1970.
    pub epoch: i64,
    /// The announcer's program that was found for its architecture, when an overlay puts one.
    pub agent: Option<&'a program::Found>,
}

/// What is the same for all nodes of each profile, and what is wrong nowhere.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Findings below the severity of an error.
    pub warnings: Vec<Finding>,
    /// Ids of the system users that overlays declare, for the lock file.
    pub users: BTreeMap<String, Ids>,
    pub(super) profiles: BTreeMap<String, ProfilePlan>,
    pub(super) templates: Templates,
    touched: BTreeSet<TreePath>,
}

impl Plan {
    /// Paths of the base that some profile overrides or removes: they are not in the part that all images share. All
    /// names of a hard-linked file are among them when one is.
    pub fn touched(&self) -> &BTreeSet<TreePath> {
        &self.touched
    }

    /// The plan of a profile.
    pub fn profile(&self, name: &str) -> Option<&ProfilePlan> {
        self.profiles.get(name)
    }
}

/// The profiles that nodes use.
fn used_profiles(mesh: &Mesh) -> BTreeMap<&str, &Profile> {
    let names = mesh.nodes.values().map(|node| node.profile.value.as_str());
    names.filter_map(|name| Some((name, mesh.profiles.get(name)?))).collect()
}

/// Debian packages that the overlays of all used profiles ask of the base, without those that another overlay of the same
/// profile provides.
pub fn packages(mesh: &Mesh) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = policy::packages(mesh).into_iter().map(str::to_owned).collect();
    for profile in used_profiles(mesh).into_values() {
        let overlays = || profile.overlays.iter().filter_map(|name| mesh.overlays.get(&name.value));
        let provided: BTreeSet<&str> =
            overlays().flat_map(|o| &o.manifest.provides).map(|package| package.value.as_str()).collect();
        let asked = overlays().flat_map(|o| &o.manifest.packages).map(|package| &package.value);
        all.extend(asked.filter(|package| !provided.contains(package.as_str())).cloned());
    }
    all
}

/// Plans all profiles over a base. `locked` holds the ids of system users that the lock file fixes.
///
/// # Errors
/// All findings of all profiles when one is an error: conflicts, changes of type, owners and packages that are missing,
/// undefined variables, … A failure when the base cannot be read.
pub fn plan(mesh: &Mesh, base: &BaseView, locked: &BTreeMap<String, Ids>) -> Result<Plan, Problem> {
    let mut found = Vec::new();
    let used = used_profiles(mesh);
    let names: BTreeSet<&str> =
        used.values().flat_map(|profile| &profile.overlays).map(|name| name.value.as_str()).collect();
    let templates = Templates::parse(mesh, &names, &policy::TEMPLATES, &mut found);

    let databases = databases(base.tree, &mut found)?;
    let wanted = names.iter().filter_map(|name| mesh.overlays.get(*name)).flat_map(wanted).collect();
    let users =
        match users::add(&databases, &wanted, locked) {
            Ok((_, ids)) => ids,
            Err(errors) => {
                found.extend(errors.iter().map(|e| {
                    USER_IDS.finding("fitout.lock", e.to_string()).help("see `fitout explain overlay-user-ids`")
                }));
                BTreeMap::new()
            }
        };

    let agent = program::judge(base.agent, base.tree, &mut found);
    let mut profiles = BTreeMap::new();
    for (name, profile) in used {
        let planned = plan_profile(
            mesh,
            profile,
            base,
            &Shared { templates: &templates, agent: agent.as_ref() },
            &databases,
            &users,
            &mut found,
        )?;
        profiles.extend(planned.map(|planned| (name.to_owned(), planned)));
    }
    let mut distinct: Vec<Finding> = Vec::new();
    for finding in found {
        if !distinct.contains(&finding) {
            distinct.push(finding);
        }
    }
    if has_errors(&distinct) {
        return Err(distinct.into());
    }
    let touched = touched(base.tree, &profiles);
    Ok(Plan { warnings: distinct, users, profiles, templates, touched })
}

/// The system users of an overlay.
pub(super) fn wanted(overlay: &crate::declaration::Overlay) -> impl Iterator<Item = (String, Wanted)> {
    overlay.manifest.users.values().map(|user| {
        let name = user.name.value.clone();
        (name.clone(), Wanted { name, home: user.home.clone(), description: user.description.clone() })
    })
}

fn databases(tree: &Tree, found: &mut Vec<Finding>) -> Result<Databases, Failure> {
    let read = |path: &str| {
        let path = TreePath::parse(path).ok().and_then(|path| tree.resolve_fully(&path).ok()).unwrap_or_default();
        tree.get(&path).map(|_| tree.content(&path)).transpose()
    };
    let mut need = |path: &str| -> Result<Vec<u8>, Failure> {
        let bytes = read(path)?;
        if bytes.is_none() {
            found.push(EDIT.finding(path, "the base has no such file").help("is the base a whole root file system?"));
        }
        Ok(bytes.unwrap_or_default())
    };
    Ok(Databases {
        passwd: need("/etc/passwd")?,
        group: need("/etc/group")?,
        shadow: read("/etc/shadow")?,
        gshadow: read("/etc/gshadow")?,
    })
}

fn touched(base: &Tree, profiles: &BTreeMap<String, ProfilePlan>) -> BTreeSet<TreePath> {
    let changed = |plan: &ProfilePlan| {
        let put = plan.put.keys().chain(plan.rendered.keys()).filter(|path| base.get(path).is_some());
        put.chain(&plan.removed).cloned().collect::<Vec<_>>()
    };
    let mut touched: BTreeSet<TreePath> = profiles.values().flat_map(changed).collect();
    let groups: BTreeSet<LinkGroup> = touched.iter().filter_map(|path| base.get(path)?.links).collect();
    if !groups.is_empty() {
        let names = base.entries.iter().filter(|(_, entry)| entry.links.is_some_and(|group| groups.contains(&group)));
        touched.extend(names.map(|(path, _)| path.clone()));
    }
    touched
}
