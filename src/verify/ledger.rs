//! Rules of the ledger: each path that an overlay put into the image is there as recorded, what was removed is gone,
//! and nothing else lies in the directories that overlays made.
//!
//! The ledger is inside the image, so these rules prove that the image agrees with itself.

use std::collections::BTreeSet;

use super::Image;
use crate::finding::{Finding, Rule, Severity};
use crate::image::manifest::MANIFEST_PATH;
use crate::overlay::ledger::{Action, Origin, Record};
use crate::pki::key::public_key_digest;
use crate::tree::{Entry, Kind, Tree, TreePath};

/// The rules of this family.
pub static RULES: &[&Rule] = &[&RECORD, &MISSING, &KIND, &MODE, &OWNER, &CONTENT, &TARGET, &KEY, &REMOVED, &EXTRA];

const fn rule(code: &'static str, summary: &'static str, explanation: &'static str) -> Rule {
    Rule { code, family: "ledger", severity: Severity::Error, summary, explanation }
}

/// A record that says nothing that could be checked.
pub static RECORD: Rule = rule(
    "ledger-record",
    "a record of the ledger cannot be understood",
    "The ledger in `/usr/lib/fitout/image.json` has, for every path that an overlay put there, its kind, its mode as \
     four octal digits, its owner, and what its content must be: the SHA-256 of a file, the public key of a private \
     key, the target of a link. A record that lacks this proves nothing, and `fitout build` never writes one: the \
     manifest was changed afterwards, or by hand. Build the image again.",
);
/// A recorded path that is not in the image.
pub static MISSING: Rule = rule(
    "ledger-missing",
    "a path that an overlay put into the image is not there",
    "The ledger says that an overlay put this path into the image, and the image has no such entry. A file was lost \
     after the build: the archive was unpacked and packed again with an exclusion, or it is cut. Build it again; \
     `fitout why NODE PATH` tells where the path comes from.",
);
/// Another kind of entry than recorded.
pub static KIND: Rule = rule(
    "ledger-kind",
    "a path of an overlay is another kind of entry than recorded",
    "The image has, for instance, a file where the ledger has a link. Packing programs do this when they follow links \
     (`tar --dereference`), and a unit that is masked by a link to `/dev/null` is then no longer masked. Build the \
     image again and do not pack it again.",
);
/// Another mode than recorded.
pub static MODE: Rule = rule(
    "ledger-mode",
    "a path of an overlay has another mode than recorded",
    "Modes are declared in the overlay's manifest and never taken from a checkout or the umask. When an image is \
     unpacked and packed again without `--same-permissions`, the umask takes its part, and private keys may be \
     readable for others, or not readable for etcd. Build the image again.",
);
/// Another owner than recorded.
pub static OWNER: Rule = rule(
    "ledger-owner",
    "a path of an overlay has another owner than recorded",
    "Owners in an image are numeric and were looked up in the image's own `/etc/passwd` and `/etc/group`. A program \
     that unpacks as an ordinary user, or that maps names of the build host, changes them; etcd then cannot read its \
     keys or write its data. Build the image again, and unpack with `--numeric-owner`.",
);
/// Other content than recorded.
pub static CONTENT: Rule = rule(
    "ledger-content",
    "a file of an overlay has other content than recorded",
    "The SHA-256 of the file in the image is not the one that the ledger recorded when the file was rendered. Somebody \
     edited the image. A change belongs into the declaration or an overlay: then every later build has it too. \
     `fitout diff` shows two images beside each other.",
);
/// Another link target than recorded.
pub static TARGET: Rule = rule(
    "ledger-target",
    "a link of an overlay points elsewhere than recorded",
    "Links decide what systemd starts and what it masks, so a changed target can start etcd at boot or point \
     `/etc/resolv.conf` elsewhere. Build the image again.",
);
/// Another private key than recorded.
pub static KEY: Rule = rule(
    "ledger-key",
    "a private key of the image is not the recorded one",
    "For private keys the ledger holds the SHA-256 of the public key (SubjectPublicKeyInfo, RFC 5280 4.1.2.7) and not \
     of the file, so that the manifest tells nothing about the key. The key in the image belongs to another public \
     key, or cannot be read as PKCS#8: the node could not prove who it is. Build the image again from the store.",
);
/// A removed path that is there.
pub static REMOVED: Rule = rule(
    "ledger-removed",
    "a path that was removed from the base is in the image",
    "An overlay removes this path of the base, and it is there nevertheless. The base policy removes every start of \
     etcd that Debian's package made; what comes back may start it at boot. Build the image again.",
);
/// A path in an overlay's directory that nobody recorded.
pub static EXTRA: Rule = rule(
    "ledger-extra",
    "a directory that an overlay made holds something that the ledger does not know",
    "Directories such as `/etc/etcd/pki` exist only because an overlay made them, so each path in them has a record. A \
     path without one was added after the build: a forgotten editor's backup, or a key that belongs to another node. \
     Put it into an overlay, or build the image again.",
);

/// Checks an image against its own ledger. An image without a manifest has none: the container family says so.
pub fn check(image: &Image, out: &mut Vec<Finding>) {
    let Some(manifest) = &image.manifest else { return };
    let mut known = BTreeSet::from([TreePath::from_normal(MANIFEST_PATH.into())]);
    let mut made = BTreeSet::new();
    for (name, record) in &manifest.ledger.records {
        let mut faults = Vec::new();
        match path_of(name, &image.tree) {
            None => faults.push((&RECORD, "the path of the record is not absolute and in normal form".to_owned())),
            Some(path) => {
                check_record(&image.tree, &path, record, &mut faults);
                if record.action == Action::Added && record.kind == "directory" {
                    made.insert(path.clone());
                }
                known.insert(path);
            }
        }
        let subject = format!("{}:{name}", image.name);
        out.extend(
            faults
                .into_iter()
                .map(|(rule, message)| rule.finding(&subject, message).note(format!("recorded by {}", origin(record)))),
        );
    }
    for (path, entry) in &image.tree.entries {
        if let Some(directory) = path.ancestors().into_iter().find(|d| made.contains(d) && !known.contains(path)) {
            let message =
                format!("this {} is in {directory}, which an overlay made, and is not recorded", entry.kind_name());
            out.push(EXTRA.finding(format!("{}:{path}", image.name), message));
        }
    }
}

/// A rule that a record breaks, and how.
type Fault = (&'static Rule, String);

fn check_record(tree: &Tree, path: &TreePath, record: &Record, faults: &mut Vec<Fault>) {
    let entry = tree.get(path);
    if record.action == Action::Removed {
        if let Some(entry) = entry {
            faults.push((&REMOVED, format!("this {} was removed from the base and is there", entry.kind_name())));
        }
        return;
    }
    let Some(entry) = entry else {
        faults.push((&MISSING, format!("the {} is not there", record.kind)));
        return;
    };
    if entry.kind_name() != record.kind {
        faults.push((&KIND, format!("is a {} where a {} is recorded", entry.kind_name(), record.kind)));
        return;
    }
    if (entry.uid, entry.gid) != (record.uid, record.gid) {
        let message = format!("belongs to {}:{} where {}:{} is recorded", entry.uid, entry.gid, record.uid, record.gid);
        faults.push((&OWNER, message));
    }
    let is_link = matches!(entry.kind, Kind::Symlink(_));
    match u16::from_str_radix(&record.mode, 8) {
        Ok(mode) if record.mode.len() == 4 && mode <= 0o7777 => {
            // Linux ignores the mode of a link (symlink(7)), and packing programs write different ones.
            if entry.mode != mode && !is_link {
                faults.push((&MODE, format!("has mode {:04o} where {mode:04o} is recorded", entry.mode)));
            }
        }
        _ => faults.push((&RECORD, format!("`{}` is no mode of four octal digits", record.mode))),
    }
    check_content(tree, path, entry, record, faults);
}

fn check_content(tree: &Tree, path: &TreePath, entry: &Entry, record: &Record, faults: &mut Vec<Fault>) {
    match (&entry.kind, &record.sha256, &record.public_key, &record.target) {
        (Kind::File(data), Some(sha256), None, None) if data.sha256 == *sha256 => {}
        (Kind::File(data), Some(sha256), None, None) => {
            faults.push((&CONTENT, format!("its SHA-256 is {} where {sha256} is recorded", data.sha256)));
        }
        (Kind::File(_), None, Some(recorded), None) => {
            let found = tree.content(path).map_err(|e| e.to_string());
            match found.and_then(|pem| public_key_digest(pem).map_err(|e| e.to_string())) {
                Ok(found) if found == *recorded => {}
                Ok(found) => {
                    faults.push((&KEY, format!("it belongs to the public key {found} where {recorded} is recorded")));
                }
                Err(why) => faults.push((&KEY, format!("the key cannot be read: {why}"))),
            }
        }
        (Kind::Symlink(target), None, None, Some(recorded)) if target == recorded.as_bytes() => {}
        (Kind::Symlink(target), None, None, Some(recorded)) => {
            let target = String::from_utf8_lossy(target);
            faults.push((&TARGET, format!("points to `{target}` where `{recorded}` is recorded")));
        }
        (Kind::File(_) | Kind::Symlink(_), ..) => {
            faults.push((&RECORD, format!("the record does not say what the {} must hold", entry.kind_name())));
        }
        _ => {}
    }
}

/// The path that a record is about, or `None` when it is not in normal form. Odd bytes are escaped in the ledger, and
/// a backslash is not: the tree tells which is meant.
fn path_of(recorded: &str, tree: &Tree) -> Option<TreePath> {
    let path = TreePath::parse(recorded).ok()?;
    if path.display() != recorded {
        return None;
    }
    if recorded.contains("\\x") && tree.get(&path).is_none() {
        let escaped = tree.entries.keys().find(|p| p.display() == recorded);
        return Some(escaped.cloned().unwrap_or(path));
    }
    Some(path)
}

fn origin(record: &Record) -> String {
    let Origin { overlay, file, by } = &record.origin;
    let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
    format!("overlay `{overlay}`, {file}{by}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::manifest::Manifest;
    use crate::overlay::ledger::{Ledger, Scope};
    use crate::tree::{Data, Digest, Place};

    const KEY_PATH: &str = "/etc/app/app.key";

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    fn key_pair() -> (String, Digest) {
        let pair = rcgen::KeyPair::generate().unwrap();
        let pem = pair.serialize_pem();
        let digest = public_key_digest(&pem).unwrap();
        (pem, digest)
    }

    fn record(entry: &Entry, action: Action) -> Record {
        let origin = Origin { overlay: "app".into(), file: "overlays/app/overlay.toml:3".into(), by: String::new() };
        Record::of(action, entry, Scope::Profile, &origin, None)
    }

    /// A sound image: a directory made by an overlay, a file, a key, a link, an edited file, and a removed one.
    fn image() -> Image {
        let (pem, public_key) = key_pair();
        let entries = [
            ("/etc", None, Entry::directory(0o755)),
            ("/etc/app", Some(Action::Added), Entry::directory(0o750).owned(0, 100)),
            ("/etc/app/app.conf", Some(Action::Added), Entry::file(*b"x=1\n", 0o644)),
            (KEY_PATH, Some(Action::Added), Entry::file(pem.as_bytes(), 0o600).owned(100, 100)),
            ("/etc/app/link", Some(Action::Replaced), Entry::symlink(*b"/dev/null")),
            ("/etc/hosts", Some(Action::Edited), Entry::file(*b"::1 localhost\n", 0o644)),
            ("/etc/odd\\x01", Some(Action::Added), Entry::file(*b"", 0o644)),
            ("/usr/bin/base", None, Entry::file(*b"elf", 0o755)),
        ];
        let mut tree = Tree::default();
        let mut ledger = Ledger::default();
        for (name, action, entry) in entries {
            if let Some(action) = action {
                ledger.records.insert(name.into(), record(&entry, action));
            }
            tree.insert(path(name), entry);
        }
        let key = ledger.records.get_mut(KEY_PATH).unwrap();
        (key.sha256, key.public_key) = (None, Some(public_key));
        ledger.records.insert("/etc/gone".into(), record(&Entry::file(*b"", 0o644), Action::Removed));
        Image { name: "lis1".into(), tree, manifest: Some(manifest(ledger)), private_keys: vec![], etcd_builds: vec![] }
    }

    fn manifest(ledger: Ledger) -> Manifest {
        let json = serde_json::json!({
            "schema": 1, "tool": "0.1.0", "mesh": "harbour", "domain": "harbour.mesh", "topology": "quorum",
            "node": "lis1", "site": "lisbon", "address": "10.77.0.11", "network": "10.77.0.0/24",
            "profile": "voter", "part": "voter", "target": "machine", "version": "1",
            "birth": { "generation": 1, "token": "harbour-g1", "peers": {}, "cluster_id": "", "member_ids": {} },
            "cluster_state": "new", "base": "", "base_hostname": "", "sites": [], "ledger": ledger,
        });
        serde_json::from_value(json).unwrap()
    }

    fn findings(image: &Image) -> Vec<(&'static str, String)> {
        let mut out = Vec::new();
        check(image, &mut out);
        out.into_iter().map(|f| (f.code, format!("{}: {}", f.subject, f.message))).collect()
    }

    #[test]
    fn a_sound_image_has_no_findings() {
        assert_eq!(findings(&image()), []);
    }

    type Damage = fn(&mut Image);

    fn with_entry(image: &mut Image, name: &str, change: impl FnOnce(&mut Entry)) {
        change(image.tree.entries.get_mut(&path(name)).unwrap());
    }
    fn with_record(image: &mut Image, name: &str, change: impl FnOnce(&mut Record)) {
        change(image.manifest.as_mut().unwrap().ledger.records.get_mut(name).unwrap());
    }

    /// What is done to the sound image, the rule that must say so, and how its message begins.
    const DAMAGES: &[(&Rule, &str, Damage)] = &[
        (&MISSING, "lis1:/etc/app/app.conf: the file is not there", |i| {
            i.tree.remove(&path("/etc/app/app.conf"));
        }),
        (&KIND, "lis1:/etc/app/link: is a file where a symlink is recorded", |i| {
            i.tree.insert(path("/etc/app/link"), Entry::file(*b"", 0o644));
        }),
        (&MODE, "lis1:/etc/app/app.key: has mode 0644 where 0600 is recorded", |i| {
            with_entry(i, KEY_PATH, |e| e.mode = 0o644);
        }),
        (&MODE, "lis1:/etc/app: has mode 0755 where 0750 is recorded", |i| {
            with_entry(i, "/etc/app", |e| e.mode = 0o755);
        }),
        (&OWNER, "lis1:/etc/app/app.key: belongs to 0:100 where 100:100 is recorded", |i| {
            with_entry(i, KEY_PATH, |e| e.uid = 0);
        }),
        (&CONTENT, "lis1:/etc/hosts: its SHA-256 is ", |i| {
            with_entry(i, "/etc/hosts", |e| e.kind = Kind::File(Data::memory(*b"::1 elsewhere\n")));
        }),
        (&TARGET, "lis1:/etc/app/link: points to `/dev/zero` where `/dev/null` is recorded", |i| {
            with_entry(i, "/etc/app/link", |e| e.kind = Kind::Symlink(b"/dev/zero".to_vec()));
        }),
        (&KEY, "lis1:/etc/app/app.key: it belongs to the public key ", |i| {
            with_entry(i, KEY_PATH, |e| e.kind = Kind::File(Data::memory(key_pair().0.as_bytes())));
        }),
        (&KEY, "lis1:/etc/app/app.key: the key cannot be read: ", |i| {
            with_entry(i, KEY_PATH, |e| e.kind = Kind::File(Data::memory(*b"no key")));
        }),
        (&KEY, "lis1:/etc/app/app.key: the key cannot be read: /etc/app/app.key: the content was not kept", |i| {
            with_entry(i, KEY_PATH, |e| {
                e.kind = Kind::File(Data { len: 1, sha256: Digest([0; 32]), place: Place::Dropped });
            });
        }),
        (&REMOVED, "lis1:/etc/gone: this symlink was removed from the base and is there", |i| {
            i.tree.insert(path("/etc/gone"), Entry::symlink(*b"x"));
        }),
        (
            &EXTRA,
            "lis1:/etc/app/deep/stray: this file is in /etc/app, which an overlay made, and is not recorded",
            |i| {
                i.tree.insert(path("/etc/app/deep/stray"), Entry::file(*b"", 0o644));
            },
        ),
        (&RECORD, "lis1:/etc/app/app.conf: `644` is no mode of four octal digits", |i| {
            with_record(i, "/etc/app/app.conf", |r| r.mode = "644".into());
        }),
        (&RECORD, "lis1:/etc/app/app.conf: the record does not say what the file must hold", |i| {
            with_record(i, "/etc/app/app.conf", |r| r.sha256 = None);
        }),
        (&RECORD, "lis1:etc/../x: the path of the record is not absolute and in normal form", |i| {
            let records = &mut i.manifest.as_mut().unwrap().ledger.records;
            let record = records["/etc/gone"].clone();
            records.insert("etc/../x".into(), record);
        }),
    ];

    #[test]
    fn each_damage_is_said_by_its_rule_alone() {
        for (rule, message, damage) in DAMAGES {
            let mut image = image();
            damage(&mut image);
            let found = findings(&image);
            assert_eq!(found.len(), 1, "{message}: {found:?}");
            assert_eq!(found[0].0, rule.code, "{message}");
            assert!(found[0].1.starts_with(message), "{message}: {}", found[0].1);
        }
    }

    #[test]
    fn every_rule_has_a_damage_that_it_says() {
        for rule in RULES {
            assert!(DAMAGES.iter().any(|(r, ..)| r.code == rule.code), "{}", rule.code);
        }
    }

    #[test]
    fn all_faults_of_one_path_are_said() {
        let mut image = image();
        with_entry(&mut image, "/etc/hosts", |e| {
            (e.mode, e.uid, e.kind) = (0o666, 7, Kind::File(Data::memory(*b"")));
        });
        let codes: Vec<&str> = findings(&image).into_iter().map(|f| f.0).collect();
        assert_eq!(codes, ["ledger-owner", "ledger-mode", "ledger-content"]);
    }

    #[test]
    fn the_manifest_itself_is_no_stray_and_odd_names_are_found() {
        let mut image = image();
        image.tree.insert(path("/usr/lib/fitout"), Entry::directory(0o755));
        let made = record(&Entry::directory(0o755), Action::Added);
        let odd = image.manifest.as_mut().unwrap();
        odd.ledger.records.insert("/usr/lib/fitout".into(), made);
        image.tree.insert(path(MANIFEST_PATH), Entry::file(*b"{}", 0o644));
        let bytes = image.tree.entries.remove(&path("/etc/odd\\x01")).unwrap();
        image.tree.insert(TreePath::parse(b"/etc/odd\x01").unwrap(), bytes);
        assert_eq!(findings(&image), []);
    }
}
