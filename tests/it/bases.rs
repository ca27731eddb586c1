//! Every way to a common image gives the image that other programs make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use fitout::declaration;
use fitout::finding::Failure;
use fitout::image::base::{self, Base};
use fitout::image::cache::Cache;
use fitout::image::progress::Silent;
use fitout::tree::{Kind, LinkGroup, Tree, TreePath};

use crate::common::{project, run, tool};

/// The example with another base.
fn mesh(directory: &Path, base: &str) {
    let text = std::fs::read_to_string(project().join("examples/three-site/mesh.toml")).unwrap();
    let text = text.replace("debian = \"trixie\"\npackages = [\"nftables\"]", base);
    assert!(text.contains(base));
    std::fs::write(directory.join("mesh.toml"), text).unwrap();
}

/// The base of a mesh, made with an own cache.
fn prepare(directory: &Path, base: &str) -> Base {
    mesh(directory, base);
    let loaded = declaration::load(directory).unwrap();
    let cache = Cache::open(Some(&directory.join("cache"))).unwrap();
    let make = |_: &base::DebianRequest, _: &Path| Err(Failure::new("nothing is made here"));
    base::prepare(&loaded.mesh, &BTreeSet::new(), &cache, &make, &Silent).unwrap()
}

/// As `oci_layouts.py` lists a directory on disk.
fn listing(tree: &Tree) -> String {
    let mut first: BTreeMap<LinkGroup, &TreePath> = BTreeMap::new();
    let mut out = String::new();
    for (path, entry) in tree.entries.iter().filter(|(path, _)| !path.is_root()) {
        let owner = format!("{}:{}", entry.uid, entry.gid);
        let name = String::from_utf8_lossy(path.as_bytes());
        let (mode, kind) = (entry.mode, entry.kind_name());
        match &entry.kind {
            Kind::Symlink(target) => {
                writeln!(out, "/{name} {kind} {owner} {}", String::from_utf8_lossy(target)).unwrap()
            }
            Kind::File(data) => {
                let link = entry.links.map(|group| *first.entry(group).or_insert(path));
                let link =
                    link.map(|p| format!(" link=/{}", String::from_utf8_lossy(p.as_bytes()))).unwrap_or_default();
                writeln!(out, "/{name} {kind} {mode:04o} {owner} {} {}{link}", entry.mtime, data.sha256).unwrap();
            }
            _ => writeln!(out, "/{name} {kind} {mode:04o} {owner}").unwrap(),
        }
    }
    out
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Whiteouts, opaque directories, changes of kind, hard links across layers, links on the way: GNU tar and rm, driven by
/// a script that knows nothing of this program, leave the same directory behind.
#[test]
fn layers_give_what_gnu_tar_and_rm_give() {
    let desk = tempfile::tempdir().unwrap();
    let root = desk.path().to_str().unwrap();
    let script = project().join("tests/it/oci_layouts.py");
    let count = 40;
    // `OCI_SEED` tries other cases; a failure names the seed.
    let seed = std::env::var("OCI_SEED").unwrap_or_else(|_| "20261130".into());
    tool("python3", &[script.to_str().unwrap(), root, &seed, &count.to_string()]);
    let mut entries = 0;
    for i in 0..count {
        let directory = desk.path().join(i.to_string());
        let base = prepare(&directory, "oci = \"layout\"\narchitecture = \"amd64\"");
        let expected = std::fs::read_to_string(directory.join("expected")).unwrap();
        let got = listing(&base.tree);
        assert_eq!(sorted(&got), sorted(&expected), "OCI_SEED={seed}, case {i}");
        entries += expected.lines().count();
        // Contents are readable where the tree says they are.
        for (path, entry) in &base.tree.entries {
            if let Kind::File(data) = &entry.kind {
                assert_eq!(base.tree.content(path).unwrap().len() as u64, data.len, "{path}");
            }
        }
    }
    assert!(entries > 10 * count, "the cases hold little: {entries} entries");
}

/// A real root file system as an image layout, a plain tar and an `.xz` give one base, and images that verify.
#[test]
fn a_real_base_is_the_same_in_every_form() {
    let desk = tempfile::tempdir().unwrap();
    let at = |name: &str| desk.path().join(name).to_str().unwrap().to_owned();
    // What the tests' base was made to, as a plain tar: the cache has it.
    let built = crate::common::built();
    let tar = crate::common::base_tar(built);
    let wanted = tool("sha256sum", &[tar.to_str().unwrap()])[..64].to_owned();
    let tar = tar.to_str().unwrap();

    tool("sh", &["-c", &format!("xz -0 -T2 -c {tar} > {}", at("base.tar.xz"))]);
    let sha256 = tool("sha256sum", &[&at("base.tar.xz")]);
    let from_xz = prepare(desk.path(), &format!("tar = \"base.tar.xz\"\nsha256 = \"{}\"", &sha256[..64]));
    assert_eq!(from_xz.tar_sha256.hex(), wanted);

    // Two layers by GNU tar alone: everything, then a change of one file, one file gone, one directory emptied.
    let script = r#"
set -eu
cd "$1"; tar=$2
mkdir -p upper/etc upper/usr/share/doc layout/blobs/sha256
echo changed > upper/etc/issue
: > upper/etc/.wh.issue.net
: > upper/usr/share/doc/.wh..wh..opq
zstd -q -1 -c "$tar" > one.tar.zst
tar --sort=name --owner=0 --group=0 --mtime=@1000000000 -C upper -czf two.tar.gz etc usr
diff_two=$(gzip -dc two.tar.gz | sha256sum | cut -c1-64)
diff_one=$(sha256sum "$tar" | cut -c1-64)
put() { sum=$(sha256sum "$1" | cut -c1-64); cp "$1" "layout/blobs/sha256/$sum"; printf '"digest":"sha256:%s","size":%s' "$sum" "$(stat -c %s "$1")"; }
one=$(put one.tar.zst); two=$(put two.tar.gz)
printf '{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:%s","sha256:%s"]}}' "$diff_one" "$diff_two" > config
config=$(put config)
L=application/vnd.oci.image.layer.v1.tar
printf '{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json",%s},"layers":[{"mediaType":"%s+zstd",%s},{"mediaType":"%s+gzip",%s}]}' "$config" $L "$one" $L "$two" > manifest
manifest=$(put manifest)
printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",%s,"annotations":{"org.opencontainers.image.ref.name":"v1"}}]}' "$manifest" > layout/index.json
printf '{"imageLayoutVersion":"1.0.0"}' > layout/oci-layout
"#;
    tool("sh", &["-c", script, "sh", &at(""), tar]);
    let base = "oci = \"layout\"\nref = \"v1\"\narchitecture = \"amd64\"";
    let from_oci = prepare(desk.path(), base);
    let path = |text: &str| TreePath::parse(text).unwrap();
    assert_eq!(from_oci.tree.content(&path("/etc/issue")).unwrap(), b"changed\n");
    assert!(
        from_xz.tree.get(&path("/etc/issue.net")).is_some() && from_oci.tree.get(&path("/etc/issue.net")).is_none()
    );
    assert_eq!(from_oci.tree.children(&path("/usr/share/doc")).count(), 0);
    assert_eq!(from_oci.packages, from_xz.packages);
    // Nothing else differs: 0755 of root's at the layer's time for the directories that it lists.
    let listed = ["/etc", "/usr", "/usr/share", "/usr/share/doc", "/etc/issue", "/etc/issue.net"].map(path);
    let rest = |base: &Base| {
        let mut tree = base.tree.clone();
        tree.entries.retain(|p, _| !listed.contains(p) && !p.is_below(&path("/usr/share/doc")));
        listing(&tree)
    };
    assert_eq!(rest(&from_oci), rest(&from_xz));

    // And images of it verify, also as declared; the lock pins it, and a changed layout is told.
    mesh(desk.path(), base);
    run(desk.path(), &["pki", "init"]).exits(0);
    run(desk.path(), &["build"]).exits(0);
    run(desk.path(), &["build", "--locked"]).exits(0);
    run(desk.path(), &["verify", "-C", ".", "dist/lis1.tar.gz"]).exits(0).says("as declared");
    let digest = |file: &str| {
        let index: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(desk.path().join(file)).unwrap()).unwrap();
        index["manifests"][0]["digest"].as_str().unwrap().to_owned()
    };
    let pinned = digest("layout/index.json");
    let manifest = desk.path().join("layout/blobs/sha256").join(&pinned["sha256:".len()..]);
    let text = std::fs::read_to_string(&manifest).unwrap().replace("+zstd", "+gzip");
    std::fs::write(&manifest, text).unwrap();
    run(desk.path(), &["plan"]).exits(2).says("error[base-digest]").says(&pinned);
}

/// The tests' base without the package etcd-server, but with its binary in /usr/local/bin and a unit that somebody wrote.
const OWN_ETCD: &str = r#"
import io, re, sys, tarfile
source, out = tarfile.open(sys.argv[1]), tarfile.open(sys.argv[2], "w", format=tarfile.PAX_FORMAT)
gone = set(source.extractfile("./var/lib/dpkg/info/etcd-server.list").read().decode().split("\n"))
def put(name, data, mode, like=None):
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), mode, 1000000000
    if like:
        member.uid, member.gid = like.uid, like.gid
    out.addfile(member, io.BytesIO(data))
for member in source:
    name = member.name[1:] or "/"
    if member.isdir() and not name.startswith("/var/lib/etcd"):
        out.addfile(member)
    elif name == "/usr/bin/etcd":
        binary = source.extractfile(member).read()
    elif name in gone or "etcd" in name.rsplit("/", 1)[-1] or "etcd-server." in name or name.startswith("/var/lib/etcd"):
        pass
    elif name == "/var/lib/dpkg/status":
        text = source.extractfile(member).read().decode()
        put(member.name, re.sub(r"Package: etcd-server\n(.+\n)+\n", "", text).encode(), 0o644)
    elif re.fullmatch("/etc/(passwd|group|shadow|gshadow)-?", name):
        text = source.extractfile(member).read().decode()
        put(member.name, "".join(l for l in text.splitlines(True) if not l.startswith("etcd:")).encode(), member.mode, member)
    elif member.isreg():
        out.addfile(member, source.extractfile(member))
    else:
        out.addfile(member)
put("./usr/local/bin/etcd", binary, 0o755)
put("./etc/systemd/system/etcd.service", b"[Service]\nExecStart=/usr/local/bin/etcd --data-dir /srv/etcd\n[Install]\nWantedBy=multi-user.target\n", 0o644)
member = tarfile.TarInfo("./etc/systemd/system/multi-user.target.wants/etcd.service")
member.type, member.linkname = tarfile.SYMTYPE, "/etc/systemd/system/etcd.service"
out.addfile(member)
out.close()
"#;

/// The overlay `etcd-binary` brings unit, user and paths; without it the error says so.
#[test]
fn an_etcd_that_is_no_package() {
    let desk = tempfile::tempdir().unwrap();
    let at = |name: &str| desk.path().join(name).to_str().unwrap().to_owned();
    tool(
        "python3",
        &["-c", OWN_ETCD, crate::common::base_tar(crate::common::built()).to_str().unwrap(), &at("base.tar")],
    );
    let sha256 = tool("sha256sum", &[&at("base.tar")])[..64].to_owned();
    mesh(desk.path(), &format!("tar = \"base.tar\"\nsha256 = \"{sha256}\""));

    run(desk.path(), &["plan"]).exits(2).says("error[overlay-package-missing]").says(
        "the base has an etcd at /usr/local/bin/etcd: name the overlay `etcd-binary` before `etcd` in the profile",
    );

    std::fs::create_dir(desk.path().join("profiles")).unwrap();
    let profile = "description = \"votes\"\npart = \"voter\"\noverlays = [\"mesh\", \"etcd-binary\", \"etcd\"]\n";
    std::fs::write(desk.path().join("profiles/voter.toml"), profile).unwrap();
    run(desk.path(), &["plan"]).exits(2).says("error[missing-parameter]").says("`etcd-version`");
    let profile = format!("{profile}[parameters]\netcd-version = \"3.5.16\"\n");
    std::fs::write(desk.path().join("profiles/voter.toml"), profile).unwrap();

    run(desk.path(), &["pki", "init"]).exits(0);
    run(desk.path(), &["build"]).exits(0);
    run(desk.path(), &["verify", "-C", ".", "dist/lis1.tar.gz", "dist/por1.tar.gz", "dist/mad1.tar.gz"])
        .exits(0)
        .does_not_say("error[")
        .says("the image has etcd 3.5.16");
    run(desk.path(), &["gate"]).exits(0).does_not_say("error[");
}
