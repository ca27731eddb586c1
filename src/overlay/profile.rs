//! The plan of one profile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tera::Context;

use super::assemble::{Assembly, Rendered};
use super::claims::{self, Claim, Content};
use super::context::{self, NODE_VARIABLES};
use super::edits::{self, Host};
use super::ledger::{Action, Ledger, Origin, Scope};
use super::owners::Accounts;
use super::plan::{BaseView, wanted};
use super::policy;
use super::removals::Removal;
use super::render::{SUFFIX, Templates};
use super::rules::{BASE_PATH_MISSING, EDIT, KEY_FILE, OWNER_UNKNOWN, PACKAGE_MISSING, REMOVAL_UNMATCHED};
use super::users::{self, Databases, Ids};
use crate::declaration::{Edit, Mesh, Node, Overlay, Profile};
use crate::etcd::birth::{self, Entrance};
use crate::finding::{Failure, Finding, Span};
use crate::pki::Use;
use crate::tree::{Data, Entry, Kind, Tree, TreePath};

/// What is the same for all nodes of a profile.
#[derive(Debug, Clone)]
pub struct ProfilePlan {
    /// Entries to put, by resolved path.
    pub put: BTreeMap<TreePath, (Scope, Entry)>,
    /// Paths of the base that are not in the image.
    pub removed: BTreeSet<TreePath>,
    /// Records of both.
    pub ledger: Ledger,
    pub(super) rendered: BTreeMap<TreePath, Rendered>,
    pub(super) context: Context,
}

impl ProfilePlan {
    /// What is done to every path, also those that are rendered for each node; of these the digest is not known yet.
    pub fn whole_ledger(&self) -> Ledger {
        let mut ledger = self.ledger.clone();
        ledger.records.extend(self.rendered.iter().map(|(path, r)| (path.display(), r.record.clone())));
        ledger
    }

    /// The paths that are rendered for each node.
    pub fn node_paths(&self) -> impl Iterator<Item = &TreePath> {
        self.rendered.keys()
    }
}

/// All that the steps below look at.
pub(super) struct Step<'a> {
    pub(super) mesh: &'a Mesh,
    pub(super) profile: &'a Profile,
    pub(super) overlays: Vec<&'a Overlay>,
    pub(super) base: &'a BaseView<'a>,
    pub(super) templates: &'a Templates,
    pub(super) found: &'a mut Vec<Finding>,
}

/// What the profiles of a mesh have in common.
pub(super) struct Shared<'a> {
    pub(super) templates: &'a Templates,
    /// The announcer's program, when nothing is wrong with it.
    pub(super) agent: Option<&'a Arc<[u8]>>,
}

/// Plans a profile; `None` when no node has it.
pub(super) fn plan_profile(
    mesh: &Mesh,
    profile: &Profile,
    base: &BaseView,
    shared: &Shared<'_>,
    databases: &Databases,
    ids: &BTreeMap<String, Ids>,
    found: &mut Vec<Finding>,
) -> Result<Option<ProfilePlan>, Failure> {
    let nodes: Vec<&Node> = mesh.nodes.values().filter(|node| *node.profile == *profile.name).collect();
    let Some(first) = nodes.first() else { return Ok(None) };
    let templates = shared.templates;
    let overlays = profile.overlays.iter().filter_map(|name| mesh.overlays.get(&name.value)).collect();
    let mut step = Step { mesh, profile, overlays, base, templates, found };
    let has_packages = step.check_base();
    let claims = claims::gather(mesh, profile, base.tree, shared, step.found);
    let spans: BTreeMap<TreePath, Span> =
        claims.iter().map(|(path, claim)| (path.clone(), claim.span.clone())).collect();

    let mut assembly = Assembly::new(base.tree, base.epoch, &mesh.directory);
    step.remove(&mut assembly);
    let accounts = step.edit(&mut assembly, &claims, databases, ids)?;

    let context = context::profile(mesh, profile)?;
    let mut sample = context.clone();
    let pki = context::sample_pki(profile.part.value);
    context::node(&mut sample, mesh, first, &birth::compute(mesh), &Entrance::Born, &pki)?;
    let own_parameters = nodes.iter().any(|node| !node.parameters.is_empty());
    let mut samples = BTreeMap::new();
    for (path, claim) in claims {
        let contexts = Contexts { profile: &context, sample: &sample, own_parameters };
        step.place(&mut assembly, path, claim, &accounts, &contexts, &mut samples);
    }
    // Before the units, since their links are looked for in directories, and again for the links that are made.
    step.found.extend(assembly.make_parents(&spans));
    step.set_units(&mut assembly, &samples, &spans, has_packages)?;
    step.found.extend(assembly.make_parents(&spans));
    let Assembly { put, rendered, removed, ledger, .. } = assembly;
    Ok(Some(ProfilePlan { put, removed, ledger, rendered, context }))
}

/// Debian's package of the registry.
const ETCD_SERVER: &str = "etcd-server";

/// True when an overlay brings what another one wants of the base.
fn puts(overlay: &Overlay, path: &str) -> bool {
    let made = overlay
        .manifest
        .paths
        .get(path)
        .is_some_and(|rule| rule.directory || rule.link.is_some() || rule.program.is_some());
    let path = path.trim_start_matches('/');
    made || overlay.files.keys().any(|file| file.strip_suffix(SUFFIX).unwrap_or(file) == path)
}

struct Contexts<'a> {
    profile: &'a Context,
    sample: &'a Context,
    /// A node of the profile has parameters of its own.
    own_parameters: bool,
}

impl Step<'_> {
    /// Packages and paths that the base must have. True when it has all packages.
    fn check_base(&mut self) -> bool {
        let mut complete = true;
        let manifest_of = |name: &str| self.overlays.iter().find(|o| o.name == name).map(|o| &o.manifest.source);
        let policy = policy::packages(self.mesh).into_iter().map(|package| {
            let span = manifest_of(policy::OVERLAY).map(|source| Span::new(source, 0..0));
            (policy::OVERLAY, package.to_owned(), span)
        });
        let declared = self.overlays.iter().flat_map(|overlay| {
            let packages = overlay.manifest.packages.iter();
            packages.map(|package| (overlay.name.as_str(), package.value.clone(), Some(package.span.clone())))
        });
        let provides = self.overlays.iter().flat_map(|overlay| &overlay.manifest.provides);
        let provided: BTreeSet<&str> = provides.map(|package| package.value.as_str()).collect();
        let mut lacking: BTreeSet<String> = BTreeSet::new();
        for (overlay, package, span) in declared.chain(policy).collect::<Vec<_>>() {
            if self.base.packages.contains_key(&package) || provided.contains(package.as_str()) {
                continue;
            }
            complete = false;
            lacking.insert(overlay.to_owned());
            let mut finding = PACKAGE_MISSING
                .finding(
                    &self.mesh.base.name.value,
                    format!("the base has no package `{package}`, which the overlay `{overlay}` needs"),
                )
                .help("install it in the base, or make the base with `debian = …`: then it is installed by itself");
            if package == ETCD_SERVER {
                finding.notes.extend(self.own_etcd());
            }
            finding.span = span;
            self.found.push(finding);
        }
        for overlay in &self.overlays {
            if lacking.contains(&overlay.name) {
                continue;
            }
            for needed in &overlay.manifest.base_paths {
                let path = TreePath::parse(needed.value.as_bytes()).ok();
                let path = path.and_then(|path| self.base.tree.resolve_fully(&path).ok());
                let put = self.overlays.iter().any(|other| other.name != overlay.name && puts(other, &needed.value));
                if !put && path.and_then(|path| self.base.tree.get(&path)).is_none() {
                    self.found.push(
                        BASE_PATH_MISSING
                            .finding(
                                &needed.value,
                                format!("the base has no such path, which the overlay `{}` needs", overlay.name),
                            )
                            .at(&needed.span)
                            .help("use a base that has it"),
                    );
                }
            }
        }
        complete
    }

    /// What to do about a base whose etcd is there, but not as Debian's package.
    fn own_etcd(&self) -> Option<String> {
        let binary = ["/usr/local/bin/etcd", "/usr/bin/etcd", "/opt/etcd/etcd", "/usr/local/sbin/etcd"];
        let there = binary.into_iter().find(|path| {
            let path = TreePath::parse(path).ok().and_then(|path| self.base.tree.resolve_fully(&path).ok());
            path.is_some_and(|path| self.base.tree.get(&path).is_some())
        })?;
        Some(match there {
            "/usr/local/bin/etcd" => format!(
                "the base has an etcd at {there}: name the overlay `etcd-binary` before `etcd` in the profile, which brings the \
                 unit and the user for it"
            ),
            _ => format!(
                "the base has an etcd at {there}: put it at /usr/local/bin/etcd, and name the overlay `etcd-binary` before \
                 `etcd` in the profile"
            ),
        })
    }

    fn remove(&mut self, assembly: &mut Assembly) {
        for overlay in &self.overlays {
            for entry in &overlay.manifest.removals {
                let removal = Removal::parse(&entry.value);
                let origin = Origin {
                    overlay: overlay.name.clone(),
                    file: entry.span.file_line(),
                    by: format!("remove {}", removal.glob),
                };
                let problem = match removal.matches(self.base.tree) {
                    Ok(paths) if paths.is_empty() && !removal.optional => {
                        Some("matches nothing in the base".to_owned())
                    }
                    Ok(paths) => {
                        paths.iter().for_each(|path| assembly.remove(path, &origin));
                        None
                    }
                    // A path below a file of the base is a path that the base lacks.
                    Err(_) if removal.optional => None,
                    Err(reason) => Some(reason),
                };
                if let Some(problem) = problem {
                    self.found.push(
                        REMOVAL_UNMATCHED
                            .finding(removal.glob, problem)
                            .at(&entry.span)
                            .help(format!("correct it, or write `?{}` when the base may lack it", removal.glob)),
                    );
                }
            }
        }
    }

    /// Makes the edits that overlays ask for, and returns the accounts that result.
    fn edit(
        &mut self,
        assembly: &mut Assembly,
        claims: &BTreeMap<TreePath, Claim>,
        databases: &Databases,
        ids: &BTreeMap<String, Ids>,
    ) -> Result<Accounts, Failure> {
        let mut asked: BTreeMap<Edit, (&str, Span)> = BTreeMap::new();
        for overlay in &self.overlays {
            for edit in &overlay.manifest.edits {
                asked.entry(edit.value).or_insert((&overlay.name, edit.span.clone()));
            }
            if let Some(user) = overlay.manifest.users.values().next() {
                asked.entry(Edit::Users).or_insert((&overlay.name, user.name.span.clone()));
            }
        }
        let mut accounts = Accounts::parse(&databases.passwd, &databases.group);
        for (edit, (overlay, span)) in asked {
            let (word, results) = match edit {
                Edit::OsRelease => ("os-release", self.edit_os_release(&span)?),
                Edit::Hosts => ("hosts", self.edit_hosts()?),
                Edit::Users => {
                    let wanted = self.overlays.iter().flat_map(|overlay| wanted(overlay)).collect();
                    // What cannot be is found once, for all profiles together.
                    let Ok((after, _)) = users::add(databases, &wanted, ids) else { continue };
                    accounts = Accounts::parse(&after.passwd, &after.group);
                    let changed = [
                        ("/etc/passwd", Some(after.passwd)),
                        ("/etc/group", Some(after.group)),
                        ("/etc/shadow", after.shadow),
                        ("/etc/gshadow", after.gshadow),
                    ];
                    ("users", changed.into_iter().filter_map(|(path, bytes)| Some((path, bytes?))).collect())
                }
            };
            let origin = Origin { overlay: overlay.to_owned(), file: span.file_line(), by: format!("edit {word}") };
            for (path, bytes) in results {
                self.put_edited(assembly, claims, path, bytes, &span, &origin)?;
            }
        }
        Ok(accounts)
    }

    fn edit_os_release(&mut self, span: &Span) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
        let id = context::image_id(self.mesh, &self.profile.name);
        // The link's target first: /etc/os-release is a link on Debian, and a file on bases that are flattened.
        for path in ["/usr/lib/os-release", "/etc/os-release"] {
            if let Some(bytes) = read(self.base.tree, path)? {
                return Ok(vec![(path, edits::os_release(&bytes, &id, &self.mesh.image.version))]);
            }
        }
        self.found.push(EDIT.finding("/usr/lib/os-release", "the base has no such file").at(span));
        Ok(Vec::new())
    }

    fn edit_hosts(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
        let host =
            |node: &Node| Host { address: *node.address, fqdn: self.mesh.fqdn(node), name: node.name.value.clone() };
        let nodes: Vec<Host> = self.mesh.nodes.values().map(host).collect();
        let base = read(self.base.tree, "/etc/hosts")?;
        Ok(vec![("/etc/hosts", edits::hosts(base.as_deref(), self.base.hostname, &nodes))])
    }

    fn put_edited(
        &mut self,
        assembly: &mut Assembly,
        claims: &BTreeMap<TreePath, Claim>,
        path: &str,
        bytes: Vec<u8>,
        span: &Span,
        origin: &Origin,
    ) -> Result<(), Failure> {
        let path =
            TreePath::parse(path).ok().and_then(|path| self.base.tree.resolve_fully(&path).ok()).unwrap_or_default();
        if let Some(claim) = claims.get(&path) {
            self.found.push(
                EDIT.finding(
                    path.display(),
                    format!("is edited, and the overlay `{}` gives it as a whole", claim.overlay),
                )
                .at(&claim.span)
                .related(span, "edited here")
                .help("take the file out of the overlay"),
            );
            return Ok(());
        }
        let data = Data::memory(bytes);
        match self.base.tree.get(&path) {
            Some(Entry { kind: Kind::File(before), .. }) if before.sha256 == data.sha256 => {}
            Some(entry @ Entry { kind: Kind::File(_), .. }) => {
                // Owner, mode and attributes stay; other names of a hard-linked file keep the base's content.
                let entry = Entry { kind: Kind::File(data), links: None, ..entry.clone() };
                assembly.put(path, entry, Some(Action::Edited), origin);
            }
            Some(other) => {
                let message = format!("is a {} in the base and cannot be edited", other.kind_name());
                self.found.push(EDIT.finding(path.display(), message).at(span));
            }
            None => assembly.put(path, Entry::new(Kind::File(data), 0o644), Some(Action::Added), origin),
        }
        Ok(())
    }

    fn place(
        &mut self,
        assembly: &mut Assembly,
        path: TreePath,
        claim: Claim,
        accounts: &Accounts,
        contexts: &Contexts,
        samples: &mut BTreeMap<TreePath, Vec<u8>>,
    ) {
        let origin = Origin { overlay: claim.overlay.clone(), file: claim.file.clone(), by: claim.by.clone() };
        let Some((uid, gid)) = self.owner(&path, &claim, accounts) else { return };
        if let Err(finding) = assembly.clear(&path, claim.content.kind_name(), claim.replace, &claim.span, &origin) {
            self.found.push(*finding);
            return;
        }
        let entry = |kind| Entry::new(kind, claim.mode()).owned(uid, gid);
        match &claim.content {
            Content::Directory => {
                let before = assembly.base_entry(&path);
                let entry = match before {
                    Some(_) if claim.is_plain() => return,
                    Some(before) => Entry {
                        mode: claim.mode.unwrap_or(before.mode),
                        uid: if claim.user.is_some() { uid } else { before.uid },
                        gid: if claim.group.is_some() { gid } else { before.gid },
                        ..before.clone()
                    },
                    None => entry(Kind::Directory),
                };
                if before.is_none_or(|before| !before.same_as(&entry)) {
                    assembly.put(path, entry, None, &origin);
                }
            }
            Content::Link(target) => assembly.put(path, entry(Kind::Symlink(target.clone())), None, &origin),
            Content::Bytes(bytes) => assembly.put(path, entry(Kind::File(Data::memory(bytes.clone()))), None, &origin),
            Content::Template(template) => {
                let variables = self.templates.variables(template);
                let is_own = NODE_VARIABLES.iter().any(|name| variables.contains(*name))
                    || (contexts.own_parameters && variables.contains("parameters"));
                let context = if is_own { contexts.sample } else { contexts.profile };
                let text = match self.templates.render(template, context) {
                    Ok(text) => text,
                    Err(findings) => return self.found.extend(findings),
                };
                if !is_own {
                    return assembly.put(path, entry(Kind::File(Data::memory(text.into_bytes()))), None, &origin);
                }
                let key = self.key_in(&path, &claim, &text);
                samples.insert(path.clone(), text.into_bytes());
                assembly.promise(path, template.clone(), key, entry(Kind::File(Data::memory([]))), &origin);
            }
        }
    }

    fn owner(&mut self, path: &TreePath, claim: &Claim, accounts: &Accounts) -> Option<Ids> {
        let user = claim.user.as_deref().unwrap_or("root");
        let group = claim.group.as_deref().unwrap_or("root");
        let uid = if user == "root" { Some(0) } else { accounts.user(user) };
        let gid = if group == "root" { Some(0) } else { accounts.group(group) };
        for (kind, name, id) in [("user", user, uid), ("group", group, gid)] {
            if id.is_none() {
                self.found.push(
                    OWNER_UNKNOWN
                        .finding(path.display(), format!("there is no {kind} `{name}` in the image"))
                        .at(&claim.span)
                        .help(format!("add a table `[user.{name}]` to the overlay, or a package that makes it")),
                );
            }
        }
        Some((uid?, gid?))
    }

    /// The private key that a rendered sample holds.
    fn key_in(&mut self, path: &TreePath, claim: &Claim, text: &str) -> Option<Use> {
        let sample = |purpose: &Use| context::sample_key(*purpose);
        let keys: Vec<Use> =
            [Use::Client, Use::Server, Use::Peer].into_iter().filter(|p| text.contains(sample(p).trim())).collect();
        let key = *keys.first()?;
        let problem = if keys.len() > 1 || text.trim() != sample(&key).trim() {
            "holds a private key and something else"
        } else if claim.mode() & 0o077 != 0 {
            "holds a private key and is open to group or others"
        } else {
            return Some(key);
        };
        self.found.push(
            KEY_FILE
                .finding(path.display(), format!("{problem} (mode {:04o})", claim.mode()))
                .at(&claim.span)
                .help("give the key a file of its own with `mode = \"0600\"`"),
        );
        None
    }
}

fn read(tree: &Tree, path: &str) -> Result<Option<Vec<u8>>, Failure> {
    let path = TreePath::parse(path).ok().and_then(|path| tree.resolve_fully(&path).ok());
    match path {
        Some(path) if matches!(tree.get(&path).map(|e| &e.kind), Some(Kind::File(_))) => tree.content(&path).map(Some),
        _ => Ok(None),
    }
}
