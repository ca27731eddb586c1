//! `fitout verify` on finished images, and on images changed by hand.

use std::path::{Path, PathBuf};

use crate::common::{Said, built, run, tool};

/// Writes a copy of an image with changed members, as a plain tar. `script` sees `members`, a dictionary from
/// name to `[TarInfo, bytes or None]`, and `other(name)`, the bytes of a member of the second image.
fn changed(image: &Path, other: &Path, script: &str) -> tempfile::NamedTempFile {
    let program = format!(
        r#"
import io, sys, tarfile
source = tarfile.open(sys.argv[1])
members = {{}}
for m in source:
    members[m.name] = [m, source.extractfile(m).read() if m.isreg() else None]
def other(name):
    t = tarfile.open(sys.argv[2])
    return t.extractfile(name).read()
def edit(name, old, new):
    data = members[name][1]
    assert old in data, (name, old)
    members[name][1] = data.replace(old, new)
def put(name, data, mode=0o644):
    m = tarfile.TarInfo(name)
    m.mode = mode
    members[name] = [m, data]
def link(name, target):
    m = tarfile.TarInfo(name)
    m.type = tarfile.SYMTYPE
    m.linkname = target
    members[name] = [m, None]
extra = []
{script}
with tarfile.open(sys.argv[3], 'w', format=tarfile.PAX_FORMAT) as out:
    for m, data in list(members.values()) + extra:
        if data is not None:
            m.size = len(data)
        out.addfile(m, io.BytesIO(data) if data is not None else None)
"#
    );
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    let path = |p: &Path| p.to_str().expect("utf-8").to_owned();
    tool("python3", &["-c", &program, &path(image), &path(other), &path(file.path())]);
    file
}

fn image(node: usize) -> PathBuf {
    let mut images: Vec<PathBuf> = std::fs::read_dir(built().join("dist"))
        .expect("dist")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "gz"))
        .collect();
    images.sort();
    images.swap_remove(node)
}

fn verify(arguments: &[&str], images: &[&Path]) -> Said {
    let mut all = vec!["verify", "--message-format", "json"];
    all.extend(arguments);
    all.extend(images.iter().map(|p| p.to_str().expect("utf-8")));
    run(built(), &all)
}

/// Codes of the findings of severity error and warning.
fn codes(said: &Said) -> Vec<String> {
    said.stdout
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).expect("one JSON object a line"))
        .filter(|o| o["type"] == "finding" && o["severity"] != "notice")
        .map(|o| o["code"].as_str().expect("code").to_owned())
        .collect()
}

#[test]
fn fresh_images_are_clean_alone_together_and_as_declared() {
    let images = [image(0), image(1), image(2)];
    let paths: Vec<&Path> = images.iter().map(PathBuf::as_path).collect();
    for one in &paths {
        let said = verify(&[], &[one]).exits(0);
        assert_eq!(codes(&said), Vec::<String>::new(), "{}", said.all());
    }
    let said = verify(&["-C", "."], &paths).exits(0);
    assert_eq!(codes(&said), Vec::<String>::new(), "{}", said.all());
    let human = run(built(), &["verify", paths[0].to_str().expect("utf-8")]).exits(0);
    human.says("self-consistent");
    let human = run(built(), &["verify", "-C", ".", paths[0].to_str().expect("utf-8")]).exits(0);
    human.says("as declared").says("does not start at boot");
}
