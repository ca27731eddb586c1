//! `fitout render`: only what the overlays put, as files.

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::{Exit, Global, Ui, VerbResult, project};
use crate::etcd::birth::Entrance;
use crate::finding::Failure;
use crate::image::project::Project;
use crate::overlay::Fitted;
use crate::pki::passphrase::Source;
use crate::pki::store::{Access, Issue, Store};
use crate::tree::{Entry, Kind};

/// Arguments of `render`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Render only this node; may be given several times
    #[arg(long = "node", value_name = "NODE")]
    nodes: Vec<String>,
    /// Directory to write to, one directory per node below it; must be new or empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Refuse any change of fitout.lock, and any issuing of certificates
    #[arg(long)]
    locked: bool,
    /// File that holds the passphrase of the store's keys
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// Writes the overlays' files. Owners are those of the caller: they are in the ledger and in the image.
///
/// # Errors
/// Findings of the declaration, or when something cannot be written.
pub fn run(args: &Args, global: &Global, ui: &Ui) -> VerbResult {
    let cache = project::cache(global)?;
    let loaded = project::declared(global, ui)?;
    let passphrase = Source::of_process(args.passphrase_file.as_deref());
    let say = |line: &str| ui.status(line);
    let store = Store::open(&global.pki_directory(), &Access { passphrase: &passphrase, say: &say })?;
    let project = project::planned(loaded, ui, &cache, args.locked)?;
    let nodes = project.nodes(&args.nodes)?;
    if std::fs::read_dir(&args.out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::new(format!("{} is not empty", args.out.display()))
            .help("name a new directory with `--out`; nothing is overwritten")
            .into());
    }
    let issue = if args.locked { Issue::Refused } else { Issue::Allowed };
    let now = OffsetDateTime::now_utc();
    // All nodes first, so that a finding in the last one leaves nothing behind.
    let mut all = Vec::new();
    for node in nodes {
        let pki = store.node(&project.mesh, node, now, issue)?;
        all.push(project.fit(node, &Entrance::Born, &pki)?);
    }
    for fitted in &all {
        let root = args.out.join(&fitted.node);
        write(&project, fitted, &root)?;
        ui.object(&serde_json::json!({"type": "rendered", "node": fitted.node, "directory": root,
            "paths": fitted.put.len()}));
        if !ui.json() {
            ui.line(format!("{}  {} paths", root.display(), fitted.put.len()));
        }
    }
    Ok(Exit::Clean)
}

fn write(project: &Project, fitted: &Fitted, root: &Path) -> Result<(), Failure> {
    make_directory(root)?;
    for (path, (_, entry)) in &fitted.put {
        let target = path.elements().fold(root.to_path_buf(), |at, element| {
            use std::os::unix::ffi::OsStrExt;
            at.join(std::ffi::OsStr::from_bytes(element))
        });
        if let Some(parent) = target.parent() {
            make_directory(parent)?;
        }
        write_entry(project, entry, &target)?;
    }
    // Directories last, so that a mode without write permission does not stop what goes into them.
    for (path, (_, entry)) in fitted.put.iter().rev().filter(|(_, (_, e))| e.is_directory()) {
        let target = root.join(path.display().trim_start_matches('/'));
        set_mode(&target, entry.mode)?;
    }
    Ok(())
}

fn write_entry(project: &Project, entry: &Entry, target: &Path) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::io("write", target, &e);
    match &entry.kind {
        Kind::Directory => make_directory(target),
        Kind::Symlink(to) => {
            use std::os::unix::ffi::OsStrExt;
            symlink(std::ffi::OsStr::from_bytes(to), target).map_err(failed)
        }
        Kind::File(data) => {
            use std::io::Write;
            let bytes = project.base.tree.read(data)?;
            // Never readable by others, not even while it is written.
            let mut file =
                std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(target).map_err(failed)?;
            file.write_all(&bytes).map_err(failed)?;
            set_mode(target, entry.mode)
        }
        Kind::Character { .. } | Kind::Block { .. } | Kind::Fifo => {
            Err(Failure::new(format!("{}: a {} cannot be rendered as a file", target.display(), entry.kind_name())))
        }
    }
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(|e| Failure::io("make", path, &e))
}

fn set_mode(path: &Path, mode: u16) -> Result<(), Failure> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode.into()))
        .map_err(|e| Failure::io("set the mode of", path, &e))
}
