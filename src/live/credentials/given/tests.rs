//! Directories of every kind of wrong.

use std::time::Duration;

use time::OffsetDateTime;

use super::*;
use crate::pki::Use;
use crate::pki::authority::{self, Signer};
use crate::pki::passphrase::Passphrase;
use crate::pki::profiles::AuthorityName;
use crate::pki::request::Request;
use crate::tree::{Entry, Tree, TreePath};

const DAY: Duration = Duration::from_secs(86_400);

struct Made {
    authority: String,
    certificate: String,
    plain: String,
    encrypted: String,
}

fn made() -> Made {
    let now = OffsetDateTime::now_utc();
    let pair = authority::create(AuthorityName::Client, "harbour", now, 300 * DAY).unwrap();
    let signer = Signer::new(Certificate::from_pem(&pair.certificate_pem).unwrap(), &pair.key_der).unwrap();
    let request = Request {
        who: "operator anna".into(),
        purpose: Use::Client,
        common_name: "operator:anna".into(),
        sans: vec![],
        lifetime: 200 * DAY,
        renew_before: DAY,
        order: None,
    };
    let leaf = authority::sign(&signer, &request, now).unwrap();
    let passphrase = Passphrase::new("open").unwrap();
    Made {
        authority: pair.certificate_pem,
        certificate: leaf.certificate_pem,
        plain: key::to_pem(&leaf.key_der, None).unwrap().to_string(),
        encrypted: key::to_pem(&leaf.key_der, Some(&passphrase)).unwrap().to_string(),
    }
}

fn image(authority: &str) -> Image {
    let mut tree = Tree::default();
    tree.insert(TreePath::parse(AUTHORITY).unwrap(), Entry::file(authority.as_bytes(), 0o644));
    Image { name: "lis1.tar.gz".into(), tree, manifest: None, private_keys: vec![], etcd_builds: vec![] }
}

fn opens_with(place: &Path, passphrase: Option<&str>) -> Result<Given, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let source = match passphrase {
        None => Source::none(),
        Some(text) => {
            std::fs::write(file.path(), text).unwrap();
            Source::new(Some(file.path()), Box::new(|_| None), Box::new(|_| Ok(None)))
        }
    };
    Given::open(place, &source).map_err(|problem| match problem {
        Problem::Failure(failure) => format!("{} / {}", failure.message, failure.help.unwrap_or_default()),
        Problem::Findings(all) => format!("{} / {}", all[0].message, all[0].help.clone().unwrap_or_default()),
    })
}

#[test]
fn each_way_to_name_a_pair_and_each_way_to_fail() {
    let (made, other) = (made(), made());
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let files = [
        ("pki/authority/client.crt", &made.authority),
        ("pki/operators/anna.crt", &made.certificate),
        ("pki/operators/anna.key", &made.plain),
        ("many/anna.crt", &made.certificate),
        ("many/anna.key", &made.plain),
        ("many/bert.crt", &made.certificate),
        ("many/bert.key", &made.plain),
        ("node/client.crt", &made.certificate),
        ("node/client.key", &made.plain),
        ("node/peer.crt", &made.certificate),
        ("node/peer.key", &made.plain),
        ("no-key/anna.crt", &made.certificate),
        ("no-certificate/anna.key", &made.plain),
        ("nothing/readme", &String::new()),
        ("mixed/anna.crt", &made.certificate),
        ("mixed/anna.key", &other.plain),
        ("broken/anna.crt", &"-----BEGIN".to_owned()),
        ("broken/anna.key", &made.plain),
        ("broken-key/anna.crt", &made.certificate),
        ("broken-key/anna.key", &String::new()),
        ("closed/anna.crt", &made.certificate),
        ("closed/anna.key", &made.encrypted),
    ];
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    //           place                      passphrase     what is said; empty: it opens
    let cases: &[(&str, Option<&str>, &str)] = &[
        ("pki/operators", None, ""),
        ("pki/operators/anna", None, ""),
        ("pki/operators/anna.crt", None, ""),
        ("many/bert", None, ""),
        ("node", None, ""),
        ("many", None, "holds 2 certificates with keys / name one: `--credentials "),
        ("no-key", None, "no-key/anna.key is missing beside "),
        ("no-certificate", None, "no-certificate/anna.crt is missing beside "),
        ("nothing", None, "nothing holds no certificate with its key / `fitout pki issue --operator NAME`"),
        ("nowhere", None, "there is no directory "),
        ("mixed", None, "mixed/anna.key is not the key of "),
        ("broken", None, "broken/anna.crt holds "),
        ("broken-key", None, "broken-key/anna.key "),
        ("closed", Some("open"), ""),
        ("closed", Some("wrong"), "closed/anna.key "),
        ("closed", None, "the private keys of the store are encrypted and there is no passphrase"),
    ];
    for (place, passphrase, want) in cases {
        match opens_with(&root.join(place), *passphrase) {
            Ok(_) => assert_eq!(*want, "", "{place} opens"),
            Err(text) => assert!(!want.is_empty() && text.contains(want), "{place}: {text}"),
        }
    }
    let beside = |place: &str| opens_with(&root.join(place), None).unwrap().files.authority.is_some();
    assert!(beside("pki/operators") && !beside("node"));
}

#[test]
fn the_image_says_which_authority_counts() {
    let (made, other) = (made(), made());
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("anna.crt"), &made.certificate).unwrap();
    std::fs::write(directory.path().join("anna.key"), &made.plain).unwrap();
    let given = opens_with(directory.path(), None).unwrap();
    let ours = given.for_image(&image(&made.authority)).unwrap();
    assert!(ours.shown.of_the_mesh && ours.shown.for_clients, "{:?}", ours.shown);
    assert_eq!(ours.shown.user.as_deref(), Some("operator:anna"));
    assert!(!given.for_image(&image(&other.authority)).unwrap().shown.of_the_mesh);
    let failure = given.for_image(&image("")).unwrap_err();
    assert_eq!(failure.message, "lis1.tar.gz: /etc/mesh/pki/client-ca.crt holds no PEM certificate");
}
