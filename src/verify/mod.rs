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

/// True when a finding is about this image: by its file name, or by the name of its node.
pub fn concerns(finding: &Finding, image: &Image) -> bool {
    let node = image.manifest.as_ref().map(|m| m.node.as_str());
    let mut words = finding.subject.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    is_of(finding, image) || node.is_some_and(|node| words.any(|w| w == node))
}

/// True when the subject is this image's file, or something in it.
fn is_of(finding: &Finding, image: &Image) -> bool {
    finding.subject.strip_prefix(&image.name).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
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
            assert_eq!(concerns(&RULE.finding(subject, "m"), &image), want, "{subject}");
        }
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
