//! Offline rules over a finished image, one file per family. A rule takes the scanned image and returns findings.

pub mod container;
pub mod declared;
pub mod diff;
pub mod etcd;
pub mod identity;
pub mod image;
pub mod ledger;
mod locate;
pub mod mesh;
pub mod scan;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod units;

use rayon::prelude::*;
use time::OffsetDateTime;

pub use image::{Image, PrivateKey};
pub use locate::locate;

use crate::finding::{Finding, Rule};
use tls::Matrix;

/// The rules of all families.
pub fn rules() -> Vec<&'static Rule> {
    let families = [
        container::RULES,
        ledger::RULES,
        units::RULES,
        etcd::RULES,
        tls::RULES,
        identity::RULES,
        mesh::RULES,
        declared::RULES,
    ];
    families.concat()
}

/// Applies every family that needs nothing but the images; `images` come with the container's findings. Gives the
/// findings, each about an image or a pair of nodes, and the matrix of who accepts whom.
///
/// Of an archive that could not be read to its end nothing more is said: what a rule would miss may be what is lost.
pub fn verify(images: &[(Image, Vec<Finding>)], now: OffsetDateTime) -> (Vec<Finding>, Matrix) {
    let whole: Vec<&Image> = images.iter().filter(|(_, found)| is_whole(found)).map(|(image, _)| image).collect();
    let known = identity::Known::new(whole.iter().copied());
    let each: Vec<Vec<Finding>> = images
        .par_iter()
        .map(|(image, container)| {
            let mut found = container.clone();
            if is_whole(container) {
                ledger::check(image, &mut found);
                let facts = units::check(image, &mut found);
                etcd::check(image, &mut found);
                identity::check(image, &facts, &known, &mut found);
            } else {
                found.retain(cuts_short);
            }
            about(&image.name, found)
        })
        .collect();
    let mut findings = each.concat();
    let matrix = tls::check(&whole, now, &mut findings);
    mesh::check(&whole, &mut findings);
    (findings, matrix)
}

/// True when the archive was read to its end.
pub fn is_whole(container: &[Finding]) -> bool {
    !container.iter().any(cuts_short)
}

fn cuts_short(finding: &Finding) -> bool {
    [container::TRUNCATED.code, container::DAMAGED.code].contains(&finding.code)
}

/// Puts an image's name in front of the subjects of findings.
pub fn about(image: &str, findings: Vec<Finding>) -> Vec<Finding> {
    findings
        .into_iter()
        .map(|mut finding| {
            // Some families know the image's name, some only paths.
            let rest = finding.subject.strip_prefix(image).map(|rest| rest.trim_start_matches([':', ' ']));
            finding.subject = match rest {
                Some("") => image.to_owned(),
                Some(rest) => format!("{image}: {rest}"),
                None => format!("{image}: {}", finding.subject),
            };
            finding.image = Some(image.to_owned());
            finding
        })
        .collect()
}

/// True when a finding is about this image: it says so; or it is about a pair or several nodes, one of them is the image's,
/// and of `images`, all that are given, no other is of that node, which may be the cause.
pub fn concerns(finding: &Finding, image: &Image, images: &[&Image]) -> bool {
    if is_of(finding, image) {
        return true;
    }
    let node = |image: &Image| image.manifest.as_ref().map(|m| (m.mesh.clone(), m.node.clone()));
    let Some(own) = node(image) else { return false };
    let of_one = images.iter().filter(|other| node(other).as_ref() == Some(&own)).count() < 2;
    let of_another = images.iter().any(|other| other.name != image.name && is_of(finding, other));
    let mut words = finding.subject.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    // A pair's finding names the image of the side that is given twice; the other side takes part in it all the same.
    let is_pair = finding.subject.contains(" → ");
    of_one && (is_pair || !of_another) && words.any(|word| word == own.1)
}

/// True when a finding is said of this image, or its subject is the image's file or something in it.
fn is_of(finding: &Finding, image: &Image) -> bool {
    let named = finding.subject.strip_prefix(&image.name).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "));
    named || finding.image.as_deref() == Some(image.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use crate::image::manifest::tests::sample;
    use crate::tree::Tree;

    static RULE: Rule =
        Rule { code: "x", family: "x", severity: Severity::Error, summary: "x", explanation: "x of a test" };

    #[test]
    fn findings_concern_the_image_they_name() {
        let mut image = scan::from_tree("dist/a.tar.gz", Tree::default());
        image.manifest = Some(sample());
        let cases = [
            ("dist/a.tar.gz: /etc/x", true),
            ("dist/b.tar.gz: /etc/x", false),
            ("a → b", true),
            ("b → a", true),
            ("ab → b", false),
            ("a-1: /etc/x", false),
        ];
        for (subject, want) in cases {
            assert_eq!(concerns(&RULE.finding(subject, "m"), &image, &[&image]), want, "{subject}");
        }
        // Of two images of one node, only what is said of it.
        let mut again = scan::from_tree("dist/again.tar.gz", Tree::default());
        again.manifest = Some(sample());
        let mut other = scan::from_tree("dist/b.tar.gz", Tree::default());
        other.manifest = Some(crate::image::manifest::Manifest { node: "b".into(), ..sample() });
        let all = [&image, &again, &other];
        let concerned = |finding: Finding| all.map(|image| concerns(&finding, image, &all));
        assert_eq!(concerned(RULE.finding("a → b", "m").of_image("dist/again.tar.gz")), [false, true, true]);
        assert_eq!(concerned(RULE.finding("dist/a.tar.gz: /etc/b", "m")), [true, false, false]);
        assert_eq!(concerned(RULE.finding("dist/a.tar.gz: /etc/x", "m")), [true, false, false]);
        let cases = [
            ("/etc/x", "dist/a.tar.gz: /etc/x"),
            ("dist/a.tar.gz:/etc/x", "dist/a.tar.gz: /etc/x"),
            ("dist/a.tar.gz: /etc/x", "dist/a.tar.gz: /etc/x"),
            ("dist/a.tar.gz", "dist/a.tar.gz"),
        ];
        for (subject, want) in cases {
            assert_eq!(about("dist/a.tar.gz", vec![RULE.finding(subject, "m")])[0].subject, want);
        }
    }
}
