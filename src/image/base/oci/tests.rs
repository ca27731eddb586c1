//! Layers one upon the other, the choice of an image, and what is wrong with a layout.

use std::fs;
use std::path::Path;

use super::*;
use crate::declaration::{self, BaseSource, Target};
use crate::finding::{Source as Text, Span};
use crate::image::cache::Cache;
use crate::image::progress::Silent;
use crate::tree::Kind;
use crate::tree::read::raw::{Fields, Raw};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A layout under construction.
struct Layout(tempfile::TempDir, tempfile::TempDir);

impl Layout {
    fn new() -> Layout {
        let layout = Layout(tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(layout.0.path().join("blobs/sha256")).unwrap();
        fs::write(layout.0.path().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        layout
    }
    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }
    /// Stores a blob; its descriptor, with further members.
    fn blob(&self, kind: &str, bytes: &[u8], more: &str) -> String {
        let digest = Digest::of(bytes);
        fs::write(self.path("blobs/sha256").join(digest.hex()), bytes).unwrap();
        format!(r#"{{"mediaType":"{kind}","digest":"sha256:{digest}","size":{}{more}}}"#, bytes.len())
    }
    fn image(&self, architecture: &str, layers: &[Vec<u8>], more: &str) -> String {
        let ids: Vec<String> = layers.iter().map(|l| format!("\"sha256:{}\"", Digest::of(l))).collect();
        let config = format!(
            r#"{{"architecture":"{architecture}","os":"linux","rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
            ids.join(",")
        );
        let config = self.blob(CONFIG, config.as_bytes(), "");
        let layers: Vec<String> = layers.iter().map(|l| self.blob(LAYER, l, "")).collect();
        self.manifest(&config, &layers, more)
    }
    fn manifest(&self, config: &str, layers: &[String], more: &str) -> String {
        let manifest = format!(r#"{{"schemaVersion":2,"config":{config},"layers":[{}]}}"#, layers.join(","));
        self.blob(MANIFEST, manifest.as_bytes(), more)
    }
    fn index(&self, manifests: &[String]) {
        let index = format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, manifests.join(","));
        fs::write(self.path("index.json"), index).unwrap();
    }
    fn prepare(&self, choice: OciChoice) -> Result<Base, Problem> {
        let cache = Cache::open(Some(self.1.path())).unwrap();
        let source = BaseSource::Oci { path: at(self.0.path().to_owned()), choice };
        let base = declaration::Base { name: at("common".into()), source, packages: Vec::new() };
        let directory = Path::new("/");
        let work = Work { base: &base, directory, target: Target::Machine, cache: &cache, progress: &Silent };
        work.prepare(&std::collections::BTreeSet::new(), &|_, _| Err(Failure::new("nothing is made here")))
    }
    /// The one image there is.
    fn amd64(&self) -> Result<Base, Problem> {
        self.prepare(OciChoice { architecture: Some(at("amd64".into())), ..OciChoice::default() })
    }
}

fn at<T>(value: T) -> Spanned<T> {
    Spanned::new(value, Span::new(&Text::new("mesh.toml", "oci = \"layout\""), 0..3))
}

/// Findings as `code message`, or the paths of the tree, each with kind, mode and content or target.
fn told(result: Result<Base, Problem>) -> String {
    match result {
        Ok(base) => listing(&base.tree),
        Err(Problem::Findings(all)) => {
            assert!(all.iter().all(|f| f.span.is_some()));
            all.iter().map(|f| format!("{} {}", f.code, f.message)).collect::<Vec<_>>().join("; ")
        }
        Err(Problem::Failure(failure)) => panic!("{failure}"),
    }
}

fn listing(tree: &Tree) -> String {
    let one = |(path, entry): (&TreePath, &Entry)| match &entry.kind {
        Kind::File(data) => {
            let link = entry.links.map(|_| "+").unwrap_or_default();
            format!("{path}={}{link}", String::from_utf8_lossy(&tree.read(data).unwrap()))
        }
        Kind::Symlink(target) => format!("{path}->{}", String::from_utf8_lossy(target)),
        Kind::Directory => format!("{path}/{:o}", entry.mode),
        _ => format!("{path} {}", entry.kind_name()),
    };
    tree.entries.iter().filter(|(path, _)| !path.is_root()).map(one).collect::<Vec<_>>().join(" ")
}

/// Two layers, and what the image is.
#[test]
fn a_layer_changes_what_is_below_it() {
    let new = Raw::new;
    let dir = |raw: Raw, name: &str, mode: u32| {
        raw.header(&Fields { name: name.as_bytes(), flag: b'5', mode, ..Fields::default() })
    };
    let cases: Vec<(&str, Raw, Raw, &str)> = vec![
        ("a file is replaced", new().file("a", b"1"), new().file("a", b"2"), "/a=2"),
        ("a whiteout removes", new().file("a", b"1").file("b", b"1"), new().file(".wh.a", b""), "/b=1"),
        ("a directory with all below", new().file("d/e/f", b"1"), new().file("d/.wh.e", b""), "/d/755"),
        ("a whiteout of nothing", new().file("a", b"1"), new().file(".wh.b", b"").file("x/.wh.y", b""), "/a=1"),
        (
            "it hides lower layers only, whatever the order",
            new().file("a", b"1").file("b/x", b"1"),
            new().file("a", b"2").file(".wh.a", b"").file(".wh.b", b"").file("b/y", b"2"),
            "/a=2 /b/755 /b/y=2",
        ),
        (
            "opaque: the lower children go, the layer's stay, the directory's attributes too",
            dir(new(), "d/", 0o700).file("d/x", b"1").file("d/s/y", b"1"),
            new().file("d/n", b"2").file("d/.wh..wh..opq", b""),
            "/d/700 /d/n=2",
        ),
        ("opaque root", new().file("a", b"1"), new().file(".wh..wh..opq", b"").file("b", b"2"), "/b=2"),
        (
            "attributes change, children stay",
            dir(new(), "d/", 0o700).file("d/x", b"1"),
            dir(new(), "d/", 0o711),
            "/d/711 /d/x=1",
        ),
        ("implied directories change nothing", dir(new(), "d/", 0o700), new().file("d/x", b"2"), "/d/700 /d/x=2"),
        ("a file over a directory", new().file("d/x", b"1"), new().file("d", b"2"), "/d=2"),
        ("a directory over a file", new().file("d", b"1"), dir(new(), "d/", 0o755).file("d/x", b"2"), "/d/755 /d/x=2"),
        ("a link over a directory", new().file("d/x", b"1"), new().symlink("d", "e"), "/d->e"),
        (
            "through a link of a lower layer",
            new().file("usr/lib/a", b"1").symlink("lib", "usr/lib"),
            new().file("lib/b", b"2").file("lib/.wh.a", b""),
            "/lib->usr/lib /usr/755 /usr/lib/755 /usr/lib/b=2",
        ),
        (
            "through an absolute link, in the root",
            new().file("usr/lib/a", b"1").symlink("lib", "/usr/lib"),
            new().file("lib/sub/b", b"2"),
            "/lib->/usr/lib /usr/755 /usr/lib/755 /usr/lib/a=1 /usr/lib/sub/755 /usr/lib/sub/b=2",
        ),
        (
            "a listed directory takes the link's place and hides nothing behind it",
            new().file("usr/lib/a", b"1").symlink("lib", "usr/lib"),
            dir(new(), "lib/", 0o755).file("lib/.wh.a", b"").file("lib/b", b"2"),
            "/lib/755 /lib/b=2 /usr/755 /usr/lib/755 /usr/lib/a=1",
        ),
        ("a hard link into a lower layer", new().file("a", b"1"), new().hard_link("b", "a"), "/a=1+ /b=1+"),
        ("links of links", new().file("a", b"1"), new().hard_link("b", "a").hard_link("c", "b"), "/a=1+ /b=1+ /c=1+"),
        (
            "a link to what is then replaced keeps the lower content",
            new().file("a", b"1"),
            new().hard_link("b", "a").file("a", b"2"),
            "/a=2 /b=1",
        ),
        (
            "replacing one name leaves the others",
            new().file("a", b"1").hard_link("b", "a").hard_link("c", "a"),
            new().file("a", b"2").file("x", b"3").hard_link("y", "x"),
            "/a=2 /b=1+ /c=1+ /x=3+ /y=3+",
        ),
        (
            "AUFS's own names mean nothing",
            new().file("a", b"1"),
            dir(new(), ".wh..wh.plnk/", 0o700).file(".wh..wh.plnk/1.2", b"x").file(".wh..wh.aufs", b""),
            "/a=1",
        ),
    ];
    for (what, lower, upper, want) in cases {
        let layout = Layout::new();
        layout.index(&[layout.image("amd64", &[lower.end(), upper.end()], "")]);
        assert_eq!(told(layout.amd64()), want, "{what}");
    }
}

/// Layers that no two programs would apply alike, or none could.
#[test]
fn layers_that_are_refused() {
    let new = Raw::new;
    let cases: Vec<(Raw, Raw, &str)> = vec![
        (new(), new().file(".wh.", b""), "`/.wh.` is a whiteout of no name"),
        (new().file("d/x", b""), new().file("d/.wh...", b""), "`/d/.wh...` is a whiteout of no name"),
        (new(), new().file(".wh.a/b", b""), "`/.wh.a/b` lies below a whiteout"),
        (new().file("a", b"1"), new().file("a/b", b""), "needed as a directory, and /a is a file of a lower layer"),
        (new().symlink("a", "b").symlink("b", "a"), new().file("a/b", b""), "too many levels of symbolic links"),
        (new().file("a", b"1").symlink("l", "a"), new().file("l/b", b""), "and /a is a file of a lower layer"),
        (
            new(),
            new().hard_link("b", "a"),
            "is a hard link to `a`, which is not there before it (at byte 0) (nor in a lower layer)",
        ),
        (new().file("a", b""), new().file(".wh.a", b"").hard_link("b", "a"), "(nor in a lower layer)"),
        (new().file("d/x", b""), new().hard_link("b", "d"), "(it is a directory of a lower layer)"),
        (new().file("a", b""), new().hard_link("b", "a").file("b", b""), "(and the name is there twice)"),
        (new(), new().file("a", b"").file("a", b""), "`a` is there twice"),
        (new(), new().file("/etc/x", b""), "`/etc/x` is an absolute name"),
    ];
    for (lower, upper, want) in cases {
        let layout = Layout::new();
        layout.index(&[layout.image("amd64", &[lower.file("z", b"").end(), upper.file("zz", b"").end()], "")]);
        let got = told(layout.amd64());
        assert!(got.starts_with("base-unsound layer 2 of 2 (sha256:") && got.contains(want), "{got}\n{want}");
    }
}

#[test]
fn the_image_that_is_meant_is_taken() {
    let layout = Layout::new();
    let layer = |text: &[u8]| vec![Raw::new().file("a", text).end()];
    let name = |name: &str| format!(r#","annotations":{{"org.opencontainers.image.ref.name":"{name}"}}"#);
    let platform =
        |arch: &str, variant: &str| format!(r#","platform":{{"os":"linux","architecture":"{arch}"{variant}}}"#);
    let v7 = layout.image("arm\",\"variant\":\"v7", &layer(b"v7"), &platform("arm", r#","variant":"v7""#));
    let v6 = layout.image("arm\",\"variant\":\"v6", &layer(b"v6"), &platform("arm", r#","variant":"v6""#));
    let amd64 = layout.image("amd64", &layer(b"amd64"), &platform("amd64", ""));
    // Of another platform, and not in the layout: `docker save` leaves it so.
    let absent = format!(
        r#"{{"mediaType":"{MANIFEST}","digest":"sha256:{}","size":9{}}}"#,
        "ab".repeat(32),
        platform("s390x", "")
    );
    let attestation = layout.blob(MANIFEST, b"{}", r#","platform":{"os":"unknown","architecture":"unknown"}"#);
    let many = [&v7, &v6, &amd64, &absent, &attestation].map(String::as_str).join(",");
    let many = layout.blob(INDEX, format!(r#"{{"manifests":[{many}]}}"#).as_bytes(), &name("many"));
    let old = layout.image("amd64", &layer(b"old"), &name("old"));
    let other = layout.blob("application/spdx+json", b"{}", "");
    layout.index(&[many.clone(), old.clone(), other]);
    let digest = |descriptor: &str| descriptor.split('"').find(|w| w.starts_with("sha256:")).unwrap().to_owned();

    let none = String::new();
    let nowhere = format!("sha256:{}", "cd".repeat(32));
    let cases = [
        (&none, "amd64", none.clone(), "base-oci-choice 2 images of the layout are for linux/amd64"),
        (&"many".to_owned(), "amd64", none.clone(), "/a=amd64"),
        (&"old".to_owned(), "amd64", none.clone(), "/a=old"),
        (&none, "amd64", digest(&many), "/a=amd64"),
        (&none, "amd64", digest(&old), "/a=old"),
        (&none, "arm/v7", none.clone(), "/a=v7"),
        (&none, "arm", none.clone(), "base-oci-choice 2 images of the layout are for linux/arm"),
        (&none, "riscv64", none.clone(), "base-oci-choice the layout has no image for linux/riscv64"),
        (&none, "s390x", none.clone(), "base-oci .* lacks blobs/sha256/abab"),
        (&"new".to_owned(), "amd64", none.clone(), "base-oci-choice the layout has no image with the ref `new`"),
        (&none, "amd64", nowhere, "base-oci-choice the layout has no manifest or index sha256:cdcd"),
        (&"old".to_owned(), "amd64", digest(&amd64), "base-oci-choice the layout has no manifest or index"),
    ];
    for (reference, architecture, digest, want) in cases {
        let given = |text: &str| (!text.is_empty()).then(|| at(text.to_owned()));
        let choice =
            OciChoice { reference: given(reference), architecture: given(architecture), digest: given(&digest) };
        let got = told(layout.prepare(choice));
        let (start, rest) = want.split_once(" .* ").unwrap_or((want, ""));
        assert!(got.starts_with(start) && got.contains(rest), "{reference} {architecture} {digest}: {got}");
    }
    // What there is is listed.
    let Err(Problem::Findings(findings)) =
        layout.prepare(OciChoice { reference: Some(at("new".into())), ..OciChoice::default() })
    else {
        panic!("no findings")
    };
    assert_eq!(findings[0].notes.len(), 5);
    assert_eq!(findings[0].notes[4], format!("there is {} (unknown platform, ref `old`)", digest(&old)));
}

/// An image for other machines is refused, and the way out named.
#[test]
fn an_image_for_other_machines() {
    let layout = Layout::new();
    layout.index(&[layout.image("m68k", &[Raw::new().file("a", b"").end()], "")]);
    let Err(Problem::Findings(findings)) = layout.prepare(OciChoice::default()) else { panic!("no findings") };
    assert!(findings[0].message.ends_with(", the build host's architecture"), "{}", findings[0].message);
    assert_eq!(findings[0].help.as_deref(), Some("if the nodes are of that kind, declare `architecture = \"m68k\"`"));
}

#[test]
fn what_is_wrong_with_a_layout_is_told() {
    let plain = || Raw::new().file("a", b"").end();
    type Spoil = fn(&Layout);
    let cases: Vec<(&str, Spoil, &str)> = vec![
        (
            "none",
            |l| fs::remove_file(l.path("oci-layout")).unwrap(),
            "base-oci .* is no OCI image layout: it has no file `oci-layout`",
        ),
        (
            "version",
            |l| fs::write(l.path("oci-layout"), r#"{"imageLayoutVersion":"2.0"}"#).unwrap(),
            "base-oci .* is of the layout version `2.0`",
        ),
        (
            "index",
            |l| fs::remove_file(l.path("index.json")).unwrap(),
            "base-oci .* lacks index.json: was it copied as a whole?",
        ),
        (
            "json",
            |l| fs::write(l.path("index.json"), "{").unwrap(),
            "base-oci .* has index.json, which cannot be understood: EOF",
        ),
        ("nothing", |l| l.index(&[]), "base-oci-choice the layout has no image for linux/amd64"),
        (
            "digest",
            |l| l.index(&[format!(r#"{{"mediaType":"{MANIFEST}","digest":"sha256:../../x","size":1}}"#)]),
            "base-oci .* names a blob by `sha256:../../x`, which is no digest",
        ),
        (
            "sha512",
            |l| l.index(&[format!(r#"{{"mediaType":"{MANIFEST}","digest":"sha512:{}","size":1}}"#, "0".repeat(128))]),
            "base-oci .* names a blob by SHA-512",
        ),
        (
            "size",
            |l| l.index(&[l.image("amd64", &[], "").replace("\"size\":", "\"size\":1")]),
            "base-digest .* bytes, its descriptor says 1",
        ),
        (
            "artefact",
            |l| l.index(&[l.manifest(&l.blob("application/vnd.oci.empty.v1+json", b"{}", ""), &[], "")]),
            "base-oci .* no image but something of the type `application/vnd.oci.empty.v1+json`",
        ),
        (
            "deep",
            |l| {
                let mut at = l.blob(INDEX, b"{}", "");
                for _ in 0..5 {
                    at = l.blob(INDEX, format!(r#"{{"manifests":[{at}]}}"#).as_bytes(), "");
                }
                l.index(&[at]);
            },
            "base-oci .* has indexes within indexes more than 4 deep",
        ),
        (
            "all layers at once",
            |l| {
                let ids = format!("\"sha256:{}\"", Digest::of(b"x"));
                let config =
                    format!(r#"{{"architecture":"amd64","os":"linux","rootfs":{{"diff_ids":[{ids},{ids},{ids}]}}}}"#);
                let config = l.blob(CONFIG, config.as_bytes(), "");
                let layers = [
                    l.blob("application/vnd.oci.image.layer.v1.tar+gzip+encrypted", b"x", ""),
                    l.blob("text/plain", b"x", ""),
                    l.blob(LAYER, b"gone", ""),
                ];
                fs::remove_file(l.path("blobs/sha256").join(Digest::of(b"gone").hex())).unwrap();
                l.index(&[l.manifest(&config, &layers, "")]);
            },
            "base-oci .* has an encrypted layer",
        ),
        (
            "no tar",
            |l| l.index(&[l.image("amd64", &[b"<html>".repeat(200)], "")]),
            "base-not-a-tar layer 1 of 1 (sha256: .* is not a tar: it looks like a page of HTML",
        ),
        (
            "diff_ids",
            |l| {
                let layer = Raw::new().file("a", b"").end();
                let config = format!(
                    r#"{{"architecture":"amd64","os":"linux","rootfs":{{"diff_ids":["sha256:{}"]}}}}"#,
                    Digest::of(b"other")
                );
                let config = l.blob(CONFIG, config.as_bytes(), "");
                l.index(&[l.manifest(&config, &[l.blob(LAYER, &layer, "")], "")]);
            },
            "base-digest layer 1 of 1 .* uncompressed, the image's configuration says sha256:",
        ),
    ];
    for (what, spoil, want) in cases {
        let layout = Layout::new();
        layout.index(&[layout.image("amd64", &[plain()], "")]);
        assert_eq!(told(layout.amd64()), "/a=");
        spoil(&layout);
        let got = told(layout.amd64());
        let (start, rest) = want.split_once(" .* ").unwrap_or((want, ""));
        assert!(got.starts_with(start) && got.contains(rest), "{what}: {got}");
        if what == "all layers at once" {
            assert_eq!(got.matches("base-oci ").count(), 3, "{got}");
        }
    }
    // A damaged blob, and a layout that is still a file.
    let layout = Layout::new();
    let layer = plain();
    layout.index(&[layout.image("amd64", std::slice::from_ref(&layer), "")]);
    let mut bad = layer.clone();
    bad[0] ^= 1;
    fs::write(layout.path("blobs/sha256").join(Digest::of(&layer).hex()), bad).unwrap();
    assert!(told(layout.amd64()).starts_with("base-digest "));
    let file = Layout::new();
    fs::remove_dir_all(file.0.path()).unwrap();
    assert!(told(file.amd64()).starts_with("base-missing "));
    fs::write(file.0.path(), "tar").unwrap();
    assert!(told(file.amd64()).contains("is a file, not an OCI image layout on disk"));
    fs::remove_file(file.0.path()).unwrap();
}

/// The base follows from the manifest: it is made once, and another name for it costs nothing.
#[test]
fn the_second_time_it_comes_from_the_cache() {
    let layout = Layout::new();
    let layer = Raw::new().file("a", b"1").end();
    layout.index(&[layout.image("amd64", std::slice::from_ref(&layer), "")]);
    let first = layout.amd64().unwrap();
    fs::remove_file(layout.path("blobs/sha256").join(Digest::of(&layer).hex())).unwrap();
    assert_eq!(layout.amd64().unwrap().digest, first.digest);
}
