use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Duration;

use super::*;
use crate::finding::{Finding, Source as Text, Spanned};
use crate::image::progress::Silent;
use crate::tree::read::raw::{Fields, Raw};
use crate::tree::{Entry, Place};

/// A mesh directory and a cache.
struct Desk {
    mesh: tempfile::TempDir,
    cache: tempfile::TempDir,
    target: Target,
}

impl Desk {
    fn new() -> Desk {
        Desk { mesh: tempfile::tempdir().unwrap(), cache: tempfile::tempdir().unwrap(), target: Target::Machine }
    }
    fn put(&self, name: &str, bytes: &[u8]) -> BaseSource {
        fs::write(self.mesh.path().join(name), bytes).unwrap();
        tar(name, &Digest::of(bytes).hex())
    }
    fn prepare_with(
        &self,
        source: BaseSource,
        packages: &[&str],
        make: &dyn Fn(&DebianRequest, &Path) -> Result<(), Failure>,
    ) -> Result<Base, Problem> {
        let cache = Cache::open(Some(self.cache.path())).unwrap();
        let base = declaration::Base { name: at("common".into()), source, packages: vec![at("nftables".into())] };
        let work =
            Work { base: &base, directory: self.mesh.path(), target: self.target, cache: &cache, progress: &Silent };
        work.prepare(&packages.iter().map(|p| p.to_string()).collect(), make)
    }
    fn prepare(&self, source: BaseSource) -> Result<Base, Problem> {
        self.prepare_with(source, &[], &|_, _| Err(Failure::new("nothing is made here")))
    }
    /// The tars in the cache.
    fn cached(&self) -> Vec<PathBuf> {
        let slots = fs::read_dir(self.cache.path().join(SLOT)).unwrap();
        slots.map(|slot| slot.unwrap().path().join(TAR)).filter(|tar| tar.exists()).collect()
    }
}

fn at<T>(value: T) -> Spanned<T> {
    let text = "debian = \"trixie\"";
    Spanned::new(value, Span::new(&Text::new("mesh.toml", text), 0..6))
}

fn tar(path: &str, sha256: &str) -> BaseSource {
    BaseSource::Tar { path: at(path.into()), sha256: at(sha256.into()) }
}

fn debian() -> BaseSource {
    BaseSource::Debian { suite: at("trixie".into()), mirror: None }
}

fn directory(path: &Path) -> BaseSource {
    BaseSource::Dir { path: at(path.into()) }
}

fn paths(base: &Base) -> Vec<String> {
    base.tree.entries.keys().map(TreePath::display).collect()
}

fn path(path: &str) -> TreePath {
    TreePath::parse(path).unwrap()
}

fn findings(result: Result<Base, Problem>) -> Vec<Finding> {
    match result {
        Err(Problem::Findings(findings)) => findings,
        other => panic!("no findings: {other:?}"),
    }
}

/// A small root with something of everything.
fn root() -> Raw {
    let status = b"Package: dash\nStatus: install ok installed\nVersion: 0.5\n";
    Raw::new()
        .directory("./etc/")
        .file("./etc/hostname", b"# made here\nbuildhost\n")
        .file("./etc/resolv.conf", b"nameserver 192.0.2.1\n")
        .header(&Fields { name: b"./usr", flag: b'5', mode: 0o755, mtime: 99, ..Fields::default() })
        .header(&Fields { name: b"./usr/su", mode: 0o4755, size: 3, mtime: 50, ..Fields::default() })
        .data(b"su!")
        .hard_link("./usr/sudo", "./usr/su")
        .symlink("./bin", "usr/bin")
        .device("./dev/null", b'3', (1, 3))
        .file("./var/lib/dpkg/status", status)
}

#[test]
fn a_tar_is_the_same_base_however_it_is_compressed() {
    let desk = Desk::new();
    let plain = root().end();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut gz, &plain).unwrap();
    let zst = zstd::encode_all(&*plain, 1).unwrap();
    // Names say nothing about content.
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    io::Write::write_all(&mut xz, &plain).unwrap();
    let files = [
        ("base.tar.zst", plain.clone()),
        ("base.tar", gz.finish().unwrap()),
        ("base", zst),
        ("base.tar.xz", xz.finish().unwrap()),
    ];
    let bases = files.map(|(name, bytes)| desk.prepare(desk.put(name, &bytes)).unwrap());
    for base in &bases {
        assert_eq!((base.digest, base.tar_sha256), (bases[0].digest, Digest::of(&plain)));
        assert_eq!((base.hostname.as_str(), base.newest), ("buildhost", 99));
        assert_eq!(base.packages.clone().into_iter().collect::<Vec<_>>(), [("dash".into(), "0.5".into())]);
        assert_eq!(base.tree.content(&path("/usr/sudo")), Ok(b"su!".to_vec()));
        assert!(base.tree.get(&path("/etc/resolv.conf")).is_some(), "a given base is the user's own");
        // What is not listed has the newest time, not 1970.
        assert_eq!(base.tree.get(&path("/var/lib")), Some(&Entry::directory(0o755).dated(99)));
        let su = base.tree.get(&path("/usr/su")).unwrap();
        assert_eq!((su.mode, su.mtime), (0o4755, 50));
        assert!(matches!(&su.kind, Kind::File(data) if matches!(data.place, Place::Base { .. })));
    }
}

#[test]
fn the_second_time_it_comes_from_the_cache_and_damage_there_is_mended() {
    let desk = Desk::new();
    let source = desk.put("base.tar", &root().end());
    let first = desk.prepare(source.clone()).unwrap();
    let cached = desk.cached().remove(0);
    let inode = fs::metadata(&cached).unwrap().ino();
    assert_eq!(desk.prepare(source.clone()).unwrap().digest, first.digest);
    assert_eq!(fs::metadata(&cached).unwrap().ino(), inode, "made again");

    let good = fs::read(&cached).unwrap();
    let content = good.windows(3).position(|w| w == b"su!").unwrap();
    let (mut content_flipped, mut mode_flipped) = (good.clone(), good.clone());
    content_flipped[content] = b'S';
    mode_flipped[101] ^= 1;
    for (i, damaged) in [content_flipped, mode_flipped, good[..2000].to_vec(), vec![]].iter().enumerate() {
        fs::write(&cached, damaged).unwrap();
        let base = desk.prepare(source.clone()).unwrap();
        assert_eq!((base.digest, base.tree.content(&path("/usr/su"))), (first.digest, Ok(b"su!".to_vec())), "{i}");
        assert_eq!(fs::read(&cached).unwrap(), good, "{i}");
    }
    // A damaged or missing record, and a missing tar.
    for name in [RECORD, TAR] {
        let file = cached.with_file_name(name);
        fs::remove_file(&file).unwrap();
        assert_eq!(desk.prepare(source.clone()).unwrap().digest, first.digest);
        assert!(file.exists());
    }
}

#[test]
fn what_is_wrong_with_a_tar_is_told() {
    let desk = Desk::new();
    let new = Raw::new;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut gz, &root().end()).unwrap();
    let gz = gz.finish().unwrap();
    let flipped = {
        let mut bytes = gz.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        bytes
    };
    let cases: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("empty", vec![], "base-not-a-tar", "it is empty"),
        ("html", b"<!DOCTYPE html>".repeat(99), "base-not-a-tar", "it looks like a page of HTML"),
        ("bzip2", b"BZh9rest".repeat(99), "base-not-a-tar", "bzip2, which is not supported"),
        ("xz", b"\xfd7zXZ\0rest".repeat(99), "base-unsound", "is damaged: "),
        ("gz and more", [&gz[..], b"x"].concat(), "base-unsound", "that is no further gzip stream"),
        ("cut", root().end()[..2000].to_vec(), "base-unsound", "truncated"),
        ("cut gz", gz[..gz.len() - 20].to_vec(), "base-unsound", "is truncated: "),
        ("flipped gz", flipped, "base-unsound", "is damaged: "),
        ("no end", root().0, "base-unsound", "no end marker"),
        ("parent", new().file("../x", b"").end(), "base-unsound", "`../x` has a `..` element"),
        ("absolute", new().file("/x", b"").end(), "base-unsound", "`/x` is an absolute name"),
        (
            "below a link",
            new().symlink("a", "/etc").file("a/x", b"").end(),
            "base-unsound",
            "leads out of the root, to `/etc/x`",
        ),
        ("twice", new().file("a", b"").file("a", b"").end(), "base-unsound", "is there twice"),
        (
            "size",
            new().pax(b'x', &[("size", b"1")]).file("a", b"ab").end(),
            "base-unsound",
            "PAX size of 1 bytes and 2",
        ),
        ("sparse", new().pax(b'x', &[("GNU.sparse.major", b"1")]).file("a", b"").end(), "base-unsound", "sparse"),
    ];
    for (name, bytes, code, text) in cases {
        let findings = findings(desk.prepare(desk.put(name, &bytes)));
        assert_eq!(findings.len(), 1, "{name}: {findings:?}");
        assert_eq!(findings[0].code, code, "{name}");
        assert!(findings[0].message.contains(text), "{name}: {}", findings[0].message);
        assert!(findings[0].span.is_some(), "{name}");
        assert!(desk.cached().is_empty(), "{name}: kept in the cache");
    }
    // All of them at once.
    let bytes = new().file("/a", b"").file("../b", b"").file("c", b"").file("./c", b"").end();
    assert_eq!(findings(desk.prepare(desk.put("several", &bytes))).len(), 3);
    let many: Raw = (0..100).fold(new(), |raw, i| raw.file(&format!("/{i}"), b""));
    let all = findings(desk.prepare(desk.put("many", &many.end())));
    assert_eq!((all.len(), all[20].message.as_str()), (21, "and 80 more"));
}

#[test]
fn a_tar_that_is_not_what_was_declared() {
    let desk = Desk::new();
    let bytes = root().end();
    let source = desk.put("base.tar", &bytes);
    let other = "0".repeat(64);
    let cases = [
        (tar("missing.tar", &other), "base-missing", "cannot open"),
        (tar(".", &other), "base-missing", "is a directory"),
        (tar("base.tar", &other), "base-digest", "declared is 000"),
        (tar("base.tar", "abc"), "base-digest", "declared is abc"),
        (directory(Path::new("missing")), "base-missing", "cannot open"),
        (directory(Path::new("base.tar")), "base-missing", "not a directory"),
    ];
    for (source, code, text) in cases {
        let findings = findings(desk.prepare(source));
        assert_eq!(findings[0].code, code);
        assert!(findings[0].message.contains(text), "{}", findings[0].message);
    }
    // The cache does not hide that the file is now another one.
    desk.prepare(source.clone()).unwrap();
    desk.put("base.tar", &Raw::new().end());
    assert_eq!(findings(desk.prepare(source))[0].code, "base-digest");
    let upper = Digest::of(&Raw::new().end()).hex().to_uppercase();
    assert!(desk.prepare(tar("base.tar", &upper)).is_ok());
}

#[test]
fn a_debian_base_is_made_once_for_a_request_and_leaves_nothing_of_the_host() {
    let desk = Desk::new();
    let requests = RefCell::new(Vec::new());
    let make = |request: &DebianRequest, to: &Path| {
        requests.borrow_mut().push(request.clone());
        fs::write(to, root().end()).map_err(|e| Failure::io("write", to, &e))
    };
    let base = desk.prepare_with(debian(), &["etcd-server", "dbus"], &make).unwrap();
    assert_eq!(base.hostname, "buildhost");
    assert_eq!(
        paths(&base),
        [
            "/",
            "/bin",
            "/dev",
            "/dev/null",
            "/etc",
            "/usr",
            "/usr/su",
            "/usr/sudo",
            "/var",
            "/var/lib",
            "/var/lib/dpkg",
            "/var/lib/dpkg/status"
        ]
    );
    assert_eq!(base.digest, digest::identity(&base.tree));
    assert_eq!(desk.prepare_with(debian(), &["dbus", "etcd-server"], &make).unwrap().digest, base.digest);
    assert_eq!(requests.borrow().len(), 1);
    assert_eq!(requests.borrow()[0].packages, ["dbus", "etcd-server", "nftables"]);
    desk.prepare_with(debian(), &["dbus"], &make).unwrap();
    assert_eq!(requests.borrow().len(), 2);
}

#[test]
fn a_base_that_cannot_be_made_leaves_nothing() {
    let desk = Desk::new();
    let make = |_: &DebianRequest, to: &Path| {
        fs::write(to, b"half").map_err(|e| Failure::io("write", to, &e))?;
        Err(Failure::new("no mirror answers"))
    };
    let error = desk.prepare_with(debian(), &[], &make).unwrap_err();
    assert_eq!(error, Problem::Failure(Failure::new("no mirror answers")));
    assert!(desk.cached().is_empty());
    let make = |_: &DebianRequest, to: &Path| fs::write(to, b"").map_err(|e| Failure::io("write", to, &e));
    assert_eq!(findings(desk.prepare_with(debian(), &[], &make))[0].code, "base-not-a-tar");
}

#[test]
fn unprivileged_containers_get_no_device_nodes() {
    let mut desk = Desk::new();
    let source = desk.put("base.tar", &root().end());
    assert!(paths(&desk.prepare(source.clone()).unwrap()).contains(&"/dev/null".into()));
    desk.target = Target::UnprivilegedContainer;
    assert!(!paths(&desk.prepare(source).unwrap()).contains(&"/dev/null".into()));
}

#[test]
fn a_directory_is_taken_as_it_is_on_disk() {
    let desk = Desk::new();
    let root = desk.mesh.path().join("root");
    fs::create_dir_all(root.join("etc/empty")).unwrap();
    fs::write(root.join("etc/a"), b"content").unwrap();
    fs::set_permissions(root.join("etc/a"), fs::Permissions::from_mode(0o4711)).unwrap();
    fs::hard_link(root.join("etc/a"), root.join("b")).unwrap();
    fs::hard_link(root.join("etc/a"), desk.mesh.path().join("outside")).unwrap();
    fs::write(root.join("single"), b"").unwrap();
    fs::hard_link(root.join("single"), desk.mesh.path().join("outside-too")).unwrap();
    symlink("etc/nowhere", root.join("link")).unwrap();
    fs::set_permissions(root.join("etc/empty"), fs::Permissions::from_mode(0o1777)).unwrap();
    let old = rustix::fs::Timespec { tv_sec: 1000, tv_nsec: 5 };
    let times = rustix::fs::Timestamps { last_access: old, last_modification: old };
    rustix::fs::utimensat(rustix::fs::CWD, root.join("etc/a"), &times, rustix::fs::AtFlags::empty()).unwrap();

    let base = desk.prepare(directory(Path::new("root"))).unwrap();
    assert_eq!(paths(&base), ["/", "/b", "/etc", "/etc/a", "/etc/empty", "/link", "/single"]);
    let entry = |at: &str| base.tree.get(&path(at)).unwrap();
    let owner = fs::metadata(root.join("etc/a")).unwrap();
    let a = entry("/etc/a");
    assert_eq!((a.mode, a.mtime, a.uid, a.gid), (0o4711, 1000, owner.uid(), owner.gid()));
    assert_eq!(base.tree.content(&path("/b")), Ok(b"content".to_vec()));
    assert!(a.links.is_some() && a.links == entry("/b").links);
    assert_eq!(entry("/single").links, None, "the other name is not in the root");
    assert_eq!(entry("/link").kind, Kind::Symlink(b"etc/nowhere".to_vec()));
    assert_eq!(entry("/etc/empty").mode, 0o1777);

    // What changed is seen, also when it changed within a tick of the clock.
    fs::write(root.join("etc/a"), b"changed").unwrap();
    let changed = desk.prepare(directory(Path::new("root"))).unwrap();
    assert_eq!(changed.tree.content(&path("/b")), Ok(b"changed".to_vec()));
    assert_ne!(changed.digest, base.digest);

    std::os::unix::net::UnixListener::bind(root.join("etc/socket")).unwrap();
    let findings = findings(desk.prepare(directory(Path::new("root"))));
    assert_eq!((findings[0].code, findings[0].message.as_str()), ("base-kind", "/etc/socket is a socket"));
}

#[test]
fn a_directory_at_rest_is_packed_once() {
    let desk = Desk::new();
    let root = desk.mesh.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), b"a").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    let first = desk.prepare(directory(&root)).unwrap();
    let inode = fs::metadata(&desk.cached()[0]).unwrap().ino();
    assert_eq!(desk.prepare(directory(&root)).unwrap().digest, first.digest);
    assert_eq!(fs::metadata(&desk.cached()[0]).unwrap().ino(), inode);
}

#[test]
fn every_rule_of_the_family_is_fired() {
    // By the tests above and those of `oci`; this holds the list together with them.
    let fired =
        ["base-missing", "base-digest", "base-not-a-tar", "base-unsound", "base-kind", "base-oci", "base-oci-choice"];
    let rules: Vec<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(rules, fired);
}
