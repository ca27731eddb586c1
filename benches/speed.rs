//! `make bench`: what an image costs, beside the programs that one would use by hand, in the same run.
//!
//! The base is a Debian root file system as a plain tar: `FITOUT_BENCH_BASE`, else made once with mmdebstrap in
//! `target/bench`. `FITOUT_BENCH_NODES` says how many images (20). Works in `target/bench`, on whatever file system
//! that is; run it as root, or the copy by hand lacks owners and devices and is a little faster for it.

#![allow(missing_docs)]
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, File};
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use fitout::image::cache::Cache;
use fitout::image::gzip::End;
use fitout::image::output::{Access, Atomic, Committer};
use fitout::image::parts::{Content, Part, Prefix, compress, shared};
use fitout::image::progress::Silent;
use fitout::image::splice::write_image;
use fitout::tree::digest::identity;
use fitout::tree::read::{ReadAhead, Rest, decompress, read_tar};
use fitout::tree::write::{Links, write_entries};
use fitout::tree::{Entry, Store, Tree, TreePath};

fn main() {
    let work = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    fs::create_dir_all(&work).unwrap();
    let nodes: usize = std::env::var("FITOUT_BENCH_NODES").map_or(20, |n| n.parse().expect("a number of nodes"));
    let threads = std::thread::available_parallelism().unwrap();
    versions(threads);

    let base = base(&work);
    let started = Instant::now();
    let tree = read_base(&base);
    println!("\nbase: {} entries, read and hashed in {}", tree.entries.len(), seconds(started.elapsed()));

    let (prefix, mut links, compression) = first_compression(&work, &tree, threads);
    let (images, splicing) = images(&work, &prefix, &mut links, nodes, threads);
    let copying = copies(&work, &images);
    let by_hand = by_hand(&work, &base) * nodes as u32;
    println!("\n{nodes} images, each with its own files; written, synced and named");
    line("fitout, images only", splicing, "");
    line("fitout, with the first compression", compression + splicing, "");
    line(&format!("cp of {nodes} finished images"), copying, "");
    line(&format!("by hand, one measured, times {nodes}"), by_hand, "");
    let bound = compression + copying.mul_f64(1.2);
    println!("  wanted: at most {} (first compression + 1.2 × cp)", seconds(bound));
    println!(
        "  wanted: 20 × faster than by hand; is {:.0} ×",
        by_hand.as_secs_f64() / (compression + splicing).as_secs_f64()
    );

    reading(&images[0]);
    verifying();
    println!("\npeak memory of this process: {} MiB (wanted: under 150)", peak_memory() >> 10);
    fs::remove_dir_all(work.join("images")).unwrap();
}

fn versions(threads: NonZeroUsize) {
    println!("fitout {}, {threads} threads", env!("CARGO_PKG_VERSION"));
    for program in ["gzip", "tar", "cp"] {
        let output = Command::new(program).arg("--version").output().expect(program);
        println!("{}", String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default());
    }
}

/// The base as a plain tar.
fn base(work: &Path) -> PathBuf {
    if let Some(path) = std::env::var_os("FITOUT_BENCH_BASE") {
        return path.into();
    }
    let path = work.join("base.tar");
    if !path.exists() {
        let packages = "etcd-server,systemd-sysv,dbus,udev,iproute2,systemd-timesyncd,nftables,ca-certificates";
        run(Command::new("mmdebstrap")
            .args(["--variant=minbase", &format!("--include={packages}"), "trixie"])
            .arg(&path));
    }
    path
}

fn read_base(path: &Path) -> Tree {
    let file = File::open(path).unwrap();
    let mut scanned = read_tar(BufReader::new(&file), &|_, _| false, Rest::InTar).unwrap();
    scanned.tree.store = Some(Arc::new(Store { file: File::open(path).unwrap(), path: path.into() }));
    scanned.tree
}

/// All of the base as the shared part, and `gzip -6` on the very same bytes.
fn first_compression(work: &Path, tree: &Tree, threads: NonZeroUsize) -> (Prefix, Links, Duration) {
    let plain = work.join("same.tar");
    let mut out = File::create(&plain).unwrap();
    write_entries(&mut out, &tree.entries, tree.store.as_deref(), &mut Links::default()).unwrap();
    out.sync_all().unwrap();

    let started = Instant::now();
    run(Command::new("gzip").args(["-6", "-n", "-c"]).arg(&plain).stdout(File::create(work.join("same.gz")).unwrap()));
    let gzip = started.elapsed();
    let gzip_size = work.join("same.gz").metadata().unwrap().len();

    let directory = work.join("cache");
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    let cache = Cache::open(Some(&directory)).unwrap();
    let entries: Vec<(&TreePath, &Entry)> = tree.entries.iter().collect();
    let content = Content { entries: &entries, store: tree.store.as_deref() };
    let started = Instant::now();
    let (prefix, links) = shared(content, &cache, threads, &Silent).unwrap();
    let ours = started.elapsed();
    let started = Instant::now();
    shared(content, &cache, threads, &Silent).unwrap();
    let cached = started.elapsed();

    println!("\nfirst compression of the base, {} MB of tar", prefix.facts.raw_length / 1_000_000);
    line("gzip -6", gzip, &format!("{gzip_size} bytes"));
    line("fitout", ours, &format!("{} bytes", prefix.facts.length));
    line("fitout, from the cache", cached, "");
    println!(
        "  wanted: at most 0.6 × the time, is {:.2}; at most 1.03 × the size, is {:.3}",
        ours.as_secs_f64() / gzip.as_secs_f64(),
        prefix.facts.length as f64 / gzip_size as f64
    );
    (prefix, links, ours)
}

/// Small files as an overlay has them.
fn overlay(prefix: &str, count: usize) -> Vec<(TreePath, Entry)> {
    (0..count)
        .map(|i| {
            let text = format!("# {prefix} {i}\n").repeat(60);
            (TreePath::parse(format!("/etc/bench/{prefix}-{i:03}")).unwrap(), Entry::file(text.into_bytes(), 0o600))
        })
        .collect()
}

fn part(overlay: &[(TreePath, Entry)], end: End, links: &mut Links) -> Part {
    let entries: Vec<(&TreePath, &Entry)> = overlay.iter().map(|(path, entry)| (path, entry)).collect();
    compress(Content { entries: &entries, store: None }, end, links, NonZeroUsize::MIN).unwrap()
}

fn images(
    work: &Path,
    prefix: &Prefix,
    links: &mut Links,
    nodes: usize,
    threads: NonZeroUsize,
) -> (Vec<PathBuf>, Duration) {
    let directory = work.join("images");
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    fs::create_dir_all(&directory).unwrap();
    run(&mut Command::new("sync"));
    let started = Instant::now();
    let profile = part(&overlay("profile", 20), End::Open, links);
    let paths: Vec<PathBuf> = (0..nodes).map(|n| directory.join(format!("node-{n:03}.tar.gz"))).collect();
    let next = AtomicUsize::new(0);
    let committer = Committer::start().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            let mut links = links.clone();
            let (paths, profile, next, committer) = (&paths, &profile, &next, &committer);
            let mut committed = Vec::new();
            scope.spawn(move || {
                while let Some((number, path)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, paths.get(n)?)))
                {
                    let node = part(&overlay(&format!("node-{number}"), 10), End::Final, &mut links);
                    let mut out = Atomic::create(path, Access::Owner).unwrap();
                    write_image(prefix, profile, &node, &mut out).unwrap();
                    committed.push(committer.commit(out));
                }
                committed.into_iter().for_each(|file| file.wait().unwrap());
            });
        }
    });
    committer.finish().unwrap();
    (paths, started.elapsed())
}

fn copies(work: &Path, images: &[PathBuf]) -> Duration {
    let directory = work.join("copies");
    fs::create_dir_all(&directory).unwrap();
    run(&mut Command::new("sync"));
    let started = Instant::now();
    run(Command::new("cp").args(images).arg(&directory));
    let copying = started.elapsed();
    fs::remove_dir_all(&directory).unwrap();
    copying
}

/// One image by hand: copy the root, copy the overlay over it, pack it.
fn by_hand(work: &Path, base: &Path) -> Duration {
    let [root, overlay_, node] = ["root", "overlay", "node"].map(|name| work.join(name));
    for directory in [&root, &overlay_, &node] {
        if directory.exists() {
            fs::remove_dir_all(directory).unwrap();
        }
    }
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(overlay_.join("etc/bench")).unwrap();
    run(Command::new("tar").arg("-xf").arg(base).arg("-C").arg(&root));
    for (path, entry) in overlay("node", 30) {
        let fitout::tree::Kind::File(data) = &entry.kind else { continue };
        let bytes = Tree::default().read(data).unwrap();
        fs::write(overlay_.join(path.display().trim_start_matches('/')), bytes).unwrap();
    }
    run(&mut Command::new("sync"));
    let started = Instant::now();
    run(Command::new("cp").arg("-a").arg(&root).arg(&node));
    run(Command::new("cp").arg("-a").arg(format!("{}/.", overlay_.display())).arg(&node));
    run(Command::new("tar")
        .args(["--sort=name", "-czf"])
        .arg(work.join("by-hand.tar.gz"))
        .arg("-C")
        .arg(&node)
        .arg("."));
    let by_hand = started.elapsed();
    for directory in [&root, &overlay_, &node] {
        fs::remove_dir_all(directory).unwrap();
    }
    by_hand
}

/// Reading an image whole, each content hashed, beside `gzip -dc | tar t`.
fn reading(image: &Path) {
    let started = Instant::now();
    let mut gzip = Command::new("gzip").arg("-dc").arg(image).stdout(Stdio::piped()).spawn().unwrap();
    run(Command::new("tar").arg("t").stdin(gzip.stdout.take().unwrap()).stdout(Stdio::null()));
    assert!(gzip.wait().unwrap().success());
    let theirs = started.elapsed();

    let started = Instant::now();
    let (_, plain) = decompress(File::open(image).unwrap()).unwrap();
    let scanned = read_tar(ReadAhead::new(plain).unwrap(), &|_, _| false, Rest::Dropped).unwrap();
    let identity = identity(&scanned.tree);
    let ours = started.elapsed();
    println!("\nreading one image (identity {identity}, {} defects)", scanned.defects.len());
    line("gzip -dc | tar t", theirs, "");
    line("fitout, every content hashed", ours, "");
    println!("  wanted: not slower; is {:.2} × the time", ours.as_secs_f64() / theirs.as_secs_f64());
}

/// Verify of three images together, all families, beside one. `FITOUT_BENCH_MESH` names a directory with three images of
/// a mesh, as `fitout build` makes them.
fn verifying() {
    let Some(directory) = std::env::var_os("FITOUT_BENCH_MESH") else { return };
    let mut images: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    images.retain(|path| path.extension().is_some_and(|end| end == "gz"));
    images.sort();
    images.truncate(3);
    let now = time::OffsetDateTime::now_utc();
    let of = |images: &[PathBuf]| {
        let started = Instant::now();
        let scanned: Vec<_> = images.par_iter().map(|image| fitout::verify::scan::scan(image).unwrap()).collect();
        let (findings, _) = fitout::verify::verify(&scanned, now);
        (started.elapsed(), findings.len())
    };
    of(&images[..1]);
    let (one, _) = of(&images[..1]);
    let (three, findings) = of(&images);
    println!("\nverify, all families ({findings} findings)");
    line("one image", one, "");
    line(&format!("{} images together", images.len()), three, "");
    println!("  wanted: at most 3.3 × one; is {:.2} ×", three.as_secs_f64() / one.as_secs_f64());
}

/// Peak resident memory in KiB (proc(5), VmHWM).
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn line(what: &str, time: Duration, more: &str) {
    println!("  {what:<38} {:>9}  {more}", seconds(time));
}
