//! Offline rules over a finished image, one file per family. A rule takes the scanned image and returns findings.

pub mod container;
pub mod declared;
pub mod etcd;
pub mod image;
pub mod ledger;
pub mod scan;
pub mod tls;
pub mod units;

use time::OffsetDateTime;

pub use image::Image;

use crate::finding::{Finding, Rule};
use tls::Matrix;

/// The rules of all families.
pub fn rules() -> Vec<&'static Rule> {
    [container::RULES, ledger::RULES, units::RULES, etcd::RULES, tls::RULES, declared::RULES].concat()
}

/// Applies every family that needs nothing but the images; `images` come with the container's findings. Gives the
/// findings, each about an image or a pair of nodes, and the matrix of who accepts whom.
pub fn verify(images: &[(Image, Vec<Finding>)], now: OffsetDateTime) -> (Vec<Finding>, Matrix) {
    let mut findings = Vec::new();
    for (image, container) in images {
        let mut found = container.clone();
        ledger::check(image, &mut found);
        units::check(image, &mut found);
        etcd::check(image, &mut found);
        findings.extend(about(&image.name, found));
    }
    let all: Vec<&Image> = images.iter().map(|(image, _)| image).collect();
    let matrix = tls::check(&all, now, &mut findings);
    (findings, matrix)
}

/// Puts an image's name in front of the subjects of findings.
pub fn about(image: &str, findings: Vec<Finding>) -> Vec<Finding> {
    let prefix = format!("{image}: ");
    findings
        .into_iter()
        .map(|mut finding| {
            if !finding.subject.starts_with(&prefix) {
                finding.subject.insert_str(0, &prefix);
            }
            finding
        })
        .collect()
}

/// True when a finding is about this image: by its file name, or by the name of its node.
pub fn concerns(finding: &Finding, image: &Image) -> bool {
    let node = image.manifest.as_ref().map(|m| m.node.as_str());
    let mut words = finding.subject.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    finding.subject.starts_with(&format!("{}: ", image.name)) || node.is_some_and(|node| words.any(|w| w == node))
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
        let findings = about("dist/a.tar.gz", vec![RULE.finding("/etc/x", "m")]);
        assert_eq!(findings[0].subject, "dist/a.tar.gz: /etc/x");
        assert_eq!(about("dist/a.tar.gz", findings.clone()), findings);
    }
}
