//! As declared: the image is what the declaration makes of the base, to the last attribute.
//!
//! The node is rendered again from the declaration, the base and the public side of the certificate store, and every
//! path is compared. A private key cannot be rendered without its passphrase: it is compared by its public key, which
//! the ledger's rules have matched with the key in the image.

use std::collections::BTreeMap;

use crate::finding::{Finding, Rule, Severity};
use crate::image::manifest::{MANIFEST_PATH, Manifest};
use crate::overlay::ledger::Ledger;
use crate::tree::compare::{Change, changes};
use crate::tree::{Entry, Kind, Tree, TreePath};

use super::Image;

/// The rules of this file.
pub static RULES: &[&Rule] = &[&OTHER_MESH, &NOT_AS_DECLARED, &PATH_DIFFERS];

/// So many paths are shown, the rest is counted.
const SHOWN: usize = 20;

/// Not an image of this mesh at all.
pub static OTHER_MESH: Rule = Rule {
    code: "declared-other-mesh",
    family: "declared",
    severity: Severity::Error,
    summary: "the image belongs to another mesh, or to a node that is not declared",
    explanation: "`fitout verify -C DIR` compares an image with the declaration in DIR. The image names its mesh and its node \
        in /usr/lib/fitout/image.json; DIR declares no such node. Name the right directory, or verify without `-C`, \
        which proves that the image is consistent in itself.",
};

/// The manifest says something else than the declaration.
pub static NOT_AS_DECLARED: Rule = Rule {
    code: "declared-manifest",
    family: "declared",
    severity: Severity::Error,
    summary: "the image says of itself what the declaration does not",
    explanation: "The image was rendered again from the declaration and the base, and the manifest that followed is another \
        one: the declaration, an overlay, the base, or a certificate has changed since the image was built. Build it \
        again, or take the declaration that it was built from.",
};

/// The tree is another one.
pub static PATH_DIFFERS: Rule = Rule {
    code: "declared-path",
    family: "declared",
    severity: Severity::Error,
    summary: "a path of the image is not what the declaration makes of the base",
    explanation: "Every path of the image was compared with the same node rendered again: kind, mode, owner, attributes, time \
        and content. This one differs, is missing, or is too much. If no overlay has put it there (`fitout why NODE \
        PATH`), the image was changed after it was built, or the base is another one.",
};

/// The image's mesh or node is not declared in a directory.
pub fn other_mesh(image: &Image, manifest: &Manifest, directory: &std::path::Path) -> Finding {
    let message = format!(
        "it is node `{}` of mesh `{}`, which {} does not declare",
        manifest.node,
        manifest.mesh,
        directory.join("mesh.toml").display()
    );
    OTHER_MESH.finding(&image.name, message).help("name the directory of its own mesh with `-C`")
}

/// Compares an image with what the declaration makes of its node.
pub fn check(image: &Image, manifest: &Manifest, expected: &Manifest, tree: &Tree, out: &mut Vec<Finding>) {
    let differences = manifest_differences(manifest, expected);
    if !differences.is_empty() {
        let mut finding = NOT_AS_DECLARED.finding(&expected.node, "the image is not what the declaration makes today");
        finding.notes = shortened(differences);
        out.push(finding.help("build the image again, or take the declaration that it was built from"));
    }
    let (differences, times) = tree_differences(&image.tree, tree, &expected.ledger);
    let more = differences.len().saturating_sub(SHOWN);
    for (path, what) in differences.into_iter().take(SHOWN) {
        let finding = PATH_DIFFERS.finding(path.display(), what);
        // `why` answers only for what the declaration makes.
        out.push(match tree.get(&path) {
            Some(_) => finding.help(format!("`fitout why {} {path}` says what puts it there", expected.node)),
            None => finding.help("it was put there after the build, or the base is another one: build the image again"),
        });
    }
    let all = "`fitout diff -C DIR IMAGE` shows all";
    if more > 0 {
        out.push(PATH_DIFFERS.finding("further paths", format!("{more} more paths differ")).help(all));
    }
    if let Some(first) = times.first() {
        let mut finding = PATH_DIFFERS.finding("times", format!("{} paths differ only in their time", times.len()));
        finding.notes = shortened(times.iter().map(ToString::to_string).collect());
        let is = image.tree.get(first).zip(tree.get(first)).map(|(is, want)| in_words(Change::Time, is, want));
        out.push(finding.note(format!("{first}: {}", is.unwrap_or_default())).help(
            "was it built with another `SOURCE_DATE_EPOCH`, or from a base that was made again? `fitout diff -C DIR IMAGE` shows all",
        ));
    }
}

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

/// One line per field and per ledger path.
fn manifest_differences(image: &Manifest, expected: &Manifest) -> Vec<String> {
    let json = |m: &Manifest| {
        let value = serde_json::to_value(Manifest { ledger: Ledger::default(), ..m.clone() });
        value.ok().and_then(|v| v.as_object().cloned()).unwrap_or_default()
    };
    let (mine, theirs) = (json(image), json(expected));
    let mut lines = Vec::new();
    for (key, want) in &theirs {
        match mine.get(key) {
            Some(is) if is == want => {}
            Some(is) => lines.push(format!("{key}: {is} in the image, {want} declared")),
            None => lines.push(format!("{key}: missing in the image, {want} declared")),
        }
    }
    for (path, want) in &expected.ledger.records {
        match image.ledger.records.get(path) {
            Some(is) if is == want => {}
            Some(_) => lines.push(format!("ledger: {path} is recorded differently")),
            None => lines.push(format!("ledger: {path} is declared and not recorded")),
        }
    }
    for path in image.ledger.records.keys().filter(|p| !expected.ledger.records.contains_key(*p)) {
        lines.push(format!("ledger: {path} is recorded and not declared"));
    }
    lines
}

/// Every path that differs, with what is different; and those that differ only in their time.
fn tree_differences(image: &Tree, expected: &Tree, ledger: &Ledger) -> (BTreeMap<TreePath, String>, Vec<TreePath>) {
    let mut differences = BTreeMap::new();
    let mut times = Vec::new();
    for (path, want) in &expected.entries {
        let is_key = ledger.get(path).is_some_and(|r| r.public_key.is_some());
        // What the manifest holds is compared field by field above.
        let skip_content = is_key || path.as_bytes() == MANIFEST_PATH.as_bytes();
        match image.get(path) {
            None => {
                differences.insert(path.clone(), format!("is missing; declared is a {}", want.kind_name()));
            }
            Some(is) => {
                let mut all = changes(is, want);
                all.retain(|change| !(skip_content && *change == Change::Content));
                match all.as_slice() {
                    [] => {}
                    [Change::Time] => times.push(path.clone()),
                    _ => drop(differences.insert(path.clone(), all_in_words(&all, is, want))),
                }
            }
        }
    }
    for (path, entry) in &image.entries {
        if expected.get(path).is_none() {
            differences.insert(path.clone(), format!("is a {} that neither base nor overlay has", entry.kind_name()));
        }
    }
    (differences, times)
}

fn all_in_words(all: &[Change], is: &Entry, want: &Entry) -> String {
    if all.contains(&Change::Kind) {
        return format!("is a {}, declared is a {}", is.kind_name(), want.kind_name());
    }
    all.iter().map(|change| in_words(*change, is, want)).collect::<Vec<_>>().join(", ")
}

fn in_words(change: Change, is: &Entry, want: &Entry) -> String {
    match (change, &is.kind, &want.kind) {
        (Change::Content, Kind::File(a), Kind::File(b)) => {
            format!("content {} instead of {}", &a.sha256.hex()[..16], &b.sha256.hex()[..16])
        }
        (Change::Target, Kind::Symlink(a), Kind::Symlink(b)) => {
            format!("leads to {} instead of {}", String::from_utf8_lossy(a), String::from_utf8_lossy(b))
        }
        (Change::Mode, ..) => format!("mode {:04o} instead of {:04o}", is.mode, want.mode),
        (Change::Owner, ..) => format!("owner {}:{} instead of {}:{}", is.uid, is.gid, want.uid, want.gid),
        (Change::Attributes, ..) => "extended attributes differ".to_owned(),
        (Change::Time, ..) => format!("time {} instead of {}", is.mtime, want.mtime),
        (Change::Device, ..) => "device numbers differ".to_owned(),
        (Change::Kind | Change::Content | Change::Target, ..) => "is of another kind".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::manifest::tests::sample;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.insert(path("/etc"), Entry::directory(0o755));
        tree.insert(path("/etc/x"), Entry::file(*b"x", 0o644));
        tree.insert(path("/etc/l"), Entry::symlink("x"));
        tree
    }

    #[test]
    fn what_is_different_is_said() {
        type Mutation = fn(&mut Tree);
        let table: &[(&str, Mutation, &str)] = &[
            ("nothing", |_| {}, ""),
            ("content", |t| drop(t.insert(path("/etc/x"), Entry::file(*b"y", 0o644))), "/etc/x: content"),
            (
                "mode",
                |t| drop(t.insert(path("/etc/x"), Entry::file(*b"x", 0o600))),
                "/etc/x: mode 0600 instead of 0644",
            ),
            ("owner", |t| drop(t.insert(path("/etc/x"), Entry::file(*b"x", 0o644).owned(1, 2))), "owner 1:2"),
            (
                "time",
                |t| drop(t.insert(path("/etc/x"), Entry::file(*b"x", 0o644).dated(7))),
                "times: 1 paths differ only in their time",
            ),
            (
                "time and mode",
                |t| drop(t.insert(path("/etc/x"), Entry::file(*b"x", 0o600).dated(7))),
                "/etc/x: mode 0600 instead of 0644, time 7 instead of 0",
            ),
            ("link", |t| drop(t.insert(path("/etc/l"), Entry::symlink("y"))), "/etc/l: leads to y"),
            ("kind", |t| drop(t.insert(path("/etc/l"), Entry::directory(0o755))), "/etc/l: is a directory"),
            ("missing", |t| drop(t.remove(&path("/etc/x"))), "/etc/x: is missing"),
            (
                "too much",
                |t| drop(t.insert(path("/etc/z"), Entry::file(*b"", 0o644))),
                "/etc/z: is a file that neither",
            ),
        ];
        for (name, mutate, says) in table {
            let mut changed = tree();
            mutate(&mut changed);
            let image = Image { tree: changed, ..crate::verify::scan::from_tree("a", tree()) };
            let mut out = Vec::new();
            check(&image, &sample(), &sample(), &tree(), &mut out);
            let said: Vec<_> = out.iter().map(|f| format!("{}: {}", f.subject, f.message)).collect();
            assert!(said.is_empty() == says.is_empty() && said.join("\n").contains(says), "{name}: {said:?}");
            assert!(out.iter().all(|f| f.code == PATH_DIFFERS.code));
        }
    }

    #[test]
    fn another_manifest_is_said() {
        let mut other = sample();
        other.version = "2".into();
        let mut out = Vec::new();
        check(&crate::verify::scan::from_tree("a", tree()), &other, &sample(), &tree(), &mut out);
        assert_eq!(out[0].code, NOT_AS_DECLARED.code);
        assert_eq!(out[0].notes, ["version: \"2\" in the image, \"1\" declared"]);
    }
}
