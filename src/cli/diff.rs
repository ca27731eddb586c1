//! `fitout diff A [B]`: what differs between two images, or between an image and what the declaration makes now.

use std::fmt::Write as _;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use rayon::prelude::*;
use serde_json::json;

use super::{Exit, Global, Ui, VerbResult, project};
use crate::finding::record::{Case, Outcome};
use crate::finding::{Failure, Finding, Problem};
use crate::image::manifest::Manifest;
use crate::pki::store::Public;
use crate::tree::Tree;
use crate::tree::compare::Change;
use crate::verify::diff::{self, Attributes, Content, Difference, PathDifference, Side, UnitDifference, UnitState};
use crate::verify::{self, Image};

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = "With one image, the second is what `fitout build` would make of its node now, from the \
    declaration of `-C DIR`.\n\nLike diff(1) it exits with 0 when nothing differs and with 1 when something does. \
    Private keys, \
    password files and what only its owner may read are never shown.")]
pub struct Args {
    /// The first image
    a: PathBuf,
    /// The second image [default: what the declaration makes of the first one's node]
    b: Option<PathBuf>,
    /// Name what differs, without showing how contents differ
    #[arg(long)]
    brief: bool,
}

/// Compares and prints.
///
/// # Errors
/// When an image or the declaration cannot be read.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let files: Vec<&PathBuf> = std::iter::once(&args.a).chain(&args.b).collect();
    let mut images = Vec::new();
    let scanned: Vec<_> = files.par_iter().map(|file| verify::scan::scan(file)).collect();
    for result in scanned {
        let (image, container) = result?;
        if !verify::is_whole(&container) {
            return Err(broken(&image, &container).into());
        }
        images.push(image);
    }
    let mut images = images.into_iter();
    let Some(mut a) = images.next() else { return Ok(Exit::Usage) };
    let (difference, names) = match images.next() {
        Some(mut b) => {
            let wanted = diff::wanted(&a.tree, &b.tree);
            if !args.brief {
                diff::read::fill(&args.a, &mut a.tree, &wanted)?;
                diff::read::fill(files[1], &mut b.tree, &wanted)?;
            }
            let sides = [&a, &b].map(|image| Side { tree: &image.tree, manifest: image.manifest.as_ref() });
            (diff::compare(&sides[0], &sides[1]), [a.name.clone(), b.name.clone()])
        }
        None => {
            let (tree, manifest) = declared(global, ui, &a)?;
            if !args.brief {
                let wanted = diff::wanted(&a.tree, &tree);
                diff::read::fill(&args.a, &mut a.tree, &wanted)?;
            }
            let first = Side { tree: &a.tree, manifest: a.manifest.as_ref() };
            let second = Side { tree: &tree, manifest: Some(&manifest) };
            let name = format!("{}, node {}", global.mesh_directory().join("mesh.toml").display(), manifest.node);
            (diff::compare(&first, &second), [a.name.clone(), name])
        }
    };
    objects(ui, &difference, &names, args.brief);
    ui.write(&Text { colour: ui.color(), brief: args.brief }.render(&difference, &names));
    ui.case(Case {
        suite: names[0].clone(),
        name: format!("is the same as {}", names[1]),
        outcome: if difference.is_empty() { Outcome::Passed } else { Outcome::Failed(summary(&difference)) },
        notes: difference.paths.keys().map(ToString::to_string).collect(),
        seconds: None,
    });
    Ok(if difference.is_empty() { Exit::Clean } else { Exit::Findings })
}

fn broken(image: &Image, container: &[Finding]) -> Failure {
    let why = container.first().map(|f| format!(": {}", f.message)).unwrap_or_default();
    Failure::new(format!("{} cannot be read to its end{why}", image.name))
        .help("`fitout verify` tells what is wrong with it")
}

/// What the declaration makes of an image's node now.
fn declared(global: &Global, ui: &Ui, image: &Image) -> Result<(Tree, Manifest), Problem> {
    let Some(manifest) = &image.manifest else {
        let failure = Failure::new(format!("{}: no readable /usr/lib/fitout/image.json in it", image.name));
        return Err(failure.help("only images made by `fitout build` name their node; give a second image").into());
    };
    let cache = project::cache(global)?;
    let project = project::prepare(global, ui, &cache, false)?;
    let store = Public::open(&global.pki_directory())?;
    Ok(project::again(&project, &store, global, image, manifest)??)
}

fn objects(ui: &Ui, difference: &Difference, names: &[String; 2], brief: bool) {
    for (field, from, to) in &difference.manifest {
        ui.object(&json!({"type": "manifest-difference", "field": field, "from": from, "to": to}));
    }
    for (path, entry) in &difference.paths {
        let content = entry.content.as_ref().filter(|_| !brief);
        let (kind, text) = match content {
            None => (None, None),
            Some(Content::Text(text)) => (Some("text"), Some(text)),
            Some(Content::Certificates(text)) => (Some("certificates"), Some(text)),
            Some(Content::Binary) => (Some("binary"), None),
            Some(Content::Secret) => (Some("secret"), None),
        };
        ui.object(&json!({"type": "path-difference", "path": path.display(), "from": entry.from, "to": entry.to,
            "changes": entry.changes, "content": kind, "diff": text}));
    }
    for path in &difference.times {
        ui.object(&json!({"type": "time-difference", "path": path.display()}));
    }
    for unit in &difference.units {
        ui.object(&json!({"type": "unit-difference", "unit": unit.unit, "from": unit.from, "to": unit.to}));
    }
    ui.object(&json!({"type": "difference", "from": names[0], "to": names[1], "paths": difference.paths.len(),
        "times": difference.times.len(), "units": difference.units.len(), "same": difference.same}));
}

/// The form for people.
struct Text {
    colour: bool,
    brief: bool,
}

const REMOVED: Style = AnsiColor::Red.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();
const NAME: Style = Style::new().bold();

impl Text {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn render(&self, difference: &Difference, names: &[String; 2]) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        line(self.paint(REMOVED, &format!("--- {}", names[0])));
        line(self.paint(ADDED, &format!("+++ {}", names[1])));
        for (field, from, to) in &difference.manifest {
            line(format!("manifest {field}: {from} → {to}"));
        }
        for (path, entry) in &difference.paths {
            self.path(&path.display(), entry, &mut line);
        }
        if !difference.units.is_empty() {
            line(self.paint(NAME, "units"));
        }
        for unit in &difference.units {
            self.unit(unit, &mut line);
        }
        line(summary(difference));
        out
    }

    fn path(&self, path: &str, entry: &PathDifference, line: &mut impl FnMut(String)) {
        match (&entry.from, &entry.to) {
            (Some(from), None) => line(self.paint(REMOVED, &format!("- {path}: {}", words(from)))),
            (None, Some(to)) => line(self.paint(ADDED, &format!("+ {path}: {}", words(to)))),
            (Some(from), Some(to)) => {
                line(format!("{} {}", self.paint(NAME, &format!("~ {path}:")), changes(entry, from, to)));
            }
            (None, None) => {}
        }
        let Some(Content::Text(text) | Content::Certificates(text)) = &entry.content else { return };
        if self.brief {
            return;
        }
        for text in text.lines() {
            let text = diff::escaped(text);
            let style = match text.as_bytes().first() {
                Some(b'-') => REMOVED,
                Some(b'+') => ADDED,
                Some(b'@') => PLACE,
                _ => Style::new(),
            };
            line(format!("    {}", self.paint(style, &text)));
        }
    }

    fn unit(&self, unit: &UnitDifference, line: &mut impl FnMut(String)) {
        let words = |state: &Option<UnitState>| state.as_ref().map_or("not there".to_owned(), UnitState::words);
        line(format!("  {}: {} → {}", unit.unit, words(&unit.from), words(&unit.to)));
        let starts = |state: &Option<UnitState>| state.as_ref().is_some_and(|s| s.starts.is_some());
        if let (false, true, Some(to)) = (starts(&unit.from), starts(&unit.to), &unit.to) {
            to.route.iter().for_each(|step| line(format!("    {step}")));
        }
    }
}

/// `file 0644 0:0, 12 bytes, sha256 0123…`.
fn words(entry: &Attributes) -> String {
    let mut text = format!("{} {} {}:{}", entry.kind, entry.mode, entry.uid, entry.gid);
    // Writing to a string cannot fail.
    if let Some(target) = &entry.target {
        let _ = write!(text, " → {target}");
    }
    if let Some(len) = entry.len {
        let _ = write!(text, ", {len} bytes");
    }
    if let Some(sha256) = &entry.sha256 {
        let _ = write!(text, ", sha256 {}", &sha256[..16]);
    }
    if let Some(key) = &entry.public_key {
        let _ = write!(text, ", private key of the public key {}", &key[..16]);
    }
    if let Some((major, minor)) = entry.device {
        let _ = write!(text, " {major}:{minor}");
    }
    for (name, value) in &entry.xattrs {
        let _ = write!(text, ", {name}={value}");
    }
    text
}

fn changes(entry: &PathDifference, from: &Attributes, to: &Attributes) -> String {
    let short = |text: &Option<String>| text.as_deref().map_or("none", |t| &t[..t.len().min(16)]).to_owned();
    let part = |change: &Change| match change {
        Change::Kind => format!("{} → {}", words(from), words(to)),
        Change::Content => match &entry.content {
            Some(Content::Secret) if from.public_key != to.public_key => {
                format!("another private key: public key {} → {}", short(&from.public_key), short(&to.public_key))
            }
            Some(Content::Secret) => {
                "content differs, and is not shown: a key, a password file, or readable by its owner only".to_owned()
            }
            Some(Content::Binary) => format!(
                "sha256 {} → {}, {} → {} bytes",
                short(&from.sha256),
                short(&to.sha256),
                from.len.unwrap_or_default(),
                to.len.unwrap_or_default()
            ),
            _ => "content".to_owned(),
        },
        Change::Target => format!(
            "target {} → {}",
            from.target.as_deref().unwrap_or_default(),
            to.target.as_deref().unwrap_or_default()
        ),
        Change::Device => format!("device {:?} → {:?}", from.device.unwrap_or_default(), to.device.unwrap_or_default()),
        Change::Mode => format!("mode {} → {}", from.mode, to.mode),
        Change::Owner => format!("owner {}:{} → {}:{}", from.uid, from.gid, to.uid, to.gid),
        Change::Attributes => {
            let names: std::collections::BTreeSet<&String> = from.xattrs.keys().chain(to.xattrs.keys()).collect();
            let value = |side: &Attributes, name: &String| side.xattrs.get(name).cloned().unwrap_or("none".to_owned());
            let differing = names.into_iter().filter(|name| from.xattrs.get(*name) != to.xattrs.get(*name));
            let each = differing.map(|name| format!("{name} {} → {}", value(from, name), value(to, name)));
            each.collect::<Vec<_>>().join(", ")
        }
        Change::Time => format!("time {} → {}", from.mtime, to.mtime),
    };
    // What a kind says covers the rest.
    let all: Vec<String> = match entry.changes.contains(&Change::Kind) {
        true => vec![part(&Change::Kind)],
        false => entry.changes.iter().map(part).collect(),
    };
    all.join(", ")
}

fn summary(difference: &Difference) -> String {
    if difference.is_empty() {
        return format!("no difference in {} paths", difference.same);
    }
    let count = |wanted: fn(&PathDifference) -> bool| difference.paths.values().filter(|d| wanted(d)).count();
    let mut text = format!(
        "{} added, {} removed, {} changed, {} the same",
        count(|d| d.from.is_none()),
        count(|d| d.to.is_none()),
        count(|d| d.from.is_some() && d.to.is_some()),
        difference.same
    );
    if !difference.times.is_empty() {
        let _ = write!(text, ", {} differ only in their time", difference.times.len());
    }
    if !difference.units.is_empty() {
        let _ = write!(text, "; {} units behave differently", difference.units.len());
    }
    text
}
