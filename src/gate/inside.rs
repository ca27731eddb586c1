//! Inside the namespaces: unpacks, boots, runs the steps.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::machine::Machine;
use super::plan::{Plan, Planned};
use super::report::{Outcome, Reporter, Verdict};
use super::steps::{self, Stage, Step, Stop};
use super::{bridge, cgroup, logs, unpack};
use crate::etcd::birth::ClusterState;
use crate::finding::Failure;
use crate::image::manifest::Manifest;
use crate::live::check::manifest;
use crate::live::endpoint::Endpoint;
use crate::process::Command;
use crate::verify::image::Image;
use crate::verify::scan::scan;

/// Where the machines' roots lie, on the gate's own tmpfs.
const WORK: &str = "/run/fitout-gate";

/// Runs the gate and says whether every step passed.
///
/// # Errors
/// When it could not be carried out.
pub fn run(plan: &Plan, reporter: &dyn Reporter) -> Result<bool, Failure> {
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return Err(Failure::new("this stage of the gate is started by the gate itself").help("run `fitout gate`"));
    }
    cgroup::enter(&plan.cgroup)?;
    reporter.status("reading the images");
    let (images, files) = read(&plan.images)?;
    fit_together(&images)?;
    cover_run()?;
    let machines = boot(plan, &images, files, reporter)?;
    let judge = |findings| reporter.judge(findings);
    let mut stage = Stage { machines, images: &images, judge: &judge };
    let passed = play(&mut stage, reporter);
    if !passed.as_ref().is_ok_and(|passed| *passed && !plan.keep_logs) {
        match logs::keep(&plan.logs, &stage.machines) {
            Ok(directory) => reporter.status(&format!("journals and consoles are in {}", directory.display())),
            // The verdict is what counts: logs that cannot be kept do not replace it.
            Err(failure) => reporter.status(&format!("the logs could not be kept: {failure}")),
        }
    }
    passed
}

/// Reads all images at once: what they say of themselves, and the open files to unpack from.
fn read(planned: &[Planned]) -> Result<(Vec<Image>, Vec<File>), Failure> {
    std::thread::scope(|scope| {
        let one = |planned: &Planned| Ok((scan(&planned.path)?.0, unpack::open(planned)?));
        let threads: Vec<_> = planned.iter().map(|planned| scope.spawn(move || one(planned))).collect();
        let lost = || Err(Failure::new("reading an image ended by a defect of fitout"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    })
}

/// systemd-nspawn refuses a `/run` on a disk, and leaves its locks in any other: it gets one of our own. The
/// machines' roots lie there too, so that they need no cleaning up.
fn cover_run() -> Result<(), Failure> {
    Command::new("mount").args(["-t", "tmpfs", "-o", "mode=0755,size=75%", "tmpfs", "/run"]).check()?;
    std::fs::create_dir(WORK).map_err(|e| Failure::io("make", Path::new(WORK), &e))
}

/// Images of one mesh, one generation, each node once, and all that the registry was born with.
fn fit_together(images: &[Image]) -> Result<(), Failure> {
    let manifests: Vec<&Manifest> = images.iter().map(manifest).collect::<Result<_, _>>()?;
    let Some(first) = manifests.first() else { return Err(Failure::new("no image is given")) };
    let rebuild = "build all nodes of one mesh and boot them together";
    for other in &manifests[1..] {
        if (&other.mesh, &other.birth, &other.network) != (&first.mesh, &first.birth, &first.network) {
            let text = format!("the images of {} and {} do not belong to one registry", first.node, other.node);
            return Err(Failure::new(text).help(rebuild));
        }
    }
    let nodes: Vec<&str> = manifests.iter().map(|m| m.node.as_str()).collect();
    if let Some(twice) = nodes.iter().enumerate().find(|(n, node)| nodes[..*n].contains(node)) {
        return Err(Failure::new(format!("node {} is given twice", twice.1)).help(rebuild));
    }
    if let Some(joins) = manifests.iter().find(|m| m.cluster_state == ClusterState::Existing) {
        let text = format!("the image of {} was built with `--join`: it joins a registry that lives", joins.node);
        return Err(Failure::new(text)
            .help("the gate founds a registry of its own: name the images of the voters that were born with it"));
    }
    let absent: Vec<&str> = first.birth.peers.keys().map(String::as_str).filter(|n| !nodes.contains(n)).collect();
    if !absent.is_empty() {
        return Err(
            Failure::new(format!("no image of {}: the registry is born with it", absent.join(", "))).help(rebuild)
        );
    }
    Ok(())
}

/// Unpacks all images at once, plugs each machine into the bridge, and powers all on.
fn boot(plan: &Plan, images: &[Image], files: Vec<File>, reporter: &dyn Reporter) -> Result<Vec<Machine>, Failure> {
    reporter.status(&format!("unpacking {} images", images.len()));
    let manifests: Vec<&Manifest> = images.iter().map(manifest).collect::<Result<_, _>>()?;
    let mut taken: Vec<std::net::IpAddr> = manifests.iter().map(|m| m.address).collect();
    let mut unpacking: Vec<(&Planned, _)> = Vec::new();
    let mut roots = Vec::new();
    for ((planned, manifest), file) in plan.images.iter().zip(&manifests).zip(files) {
        let root: PathBuf = Path::new(WORK).join(&manifest.node);
        std::fs::create_dir(&root).map_err(|e| Failure::io("make", &root, &e))?;
        unpacking.push((planned, unpack::start(file, &root)?));
        roots.push(root);
    }
    for (planned, tar) in unpacking {
        unpack::finish(planned, tar)?;
    }
    if let Some(first) = manifests.first() {
        let peers = first.birth.peers.values().filter_map(|url| Endpoint::of_peer_url(url).ok()?.address());
        taken.extend(peers);
        bridge::create(bridge::free_address(&first.network, &taken)?, &first.network)?;
    }
    reporter.status(&format!("booting {} machines", images.len()));
    let mut machines = Vec::new();
    for (number, (manifest, root)) in manifests.iter().zip(roots).enumerate() {
        let namespace = bridge::plug(number, manifest.address, &manifest.network)?;
        let group = plan.cgroup.join(&manifest.node);
        let who = (manifest.node.clone(), manifest.part, manifest.address);
        let mut machine = Machine::new(who, root, group, namespace)?;
        machine.start()?;
        machines.push(machine);
    }
    Ok(machines)
}

/// Runs the steps one after the other until one fails.
fn play(stage: &mut Stage<'_>, reporter: &dyn Reporter) -> Result<bool, Failure> {
    let topology = stage.manifest()?.topology;
    let mut passed = true;
    for Step { name, claim, run } in steps::of(topology) {
        let mut outcome =
            Outcome { step: name, claim, verdict: Verdict::NotRun, took: Default::default(), notes: Vec::new() };
        if passed {
            let start = Instant::now();
            let result = run(stage, &mut outcome.notes);
            outcome.took = start.elapsed();
            outcome.verdict = match result {
                Ok(()) => Verdict::Passed,
                Err(Stop::Broken(cause)) => Verdict::Failed(cause),
                Err(Stop::Failure(failure)) => return Err(failure),
            };
            passed = outcome.verdict == Verdict::Passed;
        }
        reporter.outcome(&outcome);
    }
    Ok(passed)
}
