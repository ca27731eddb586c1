//! Which image and which nodes a finding is about, from its subject and what the images say of themselves.

use super::Image;
use crate::finding::Finding;

/// Fills in image, nodes and path of findings. One about a single node belongs to that node's image; one about a pair
/// belongs to no single image.
pub fn locate(findings: &mut [Finding], images: &[&Image]) {
    let node_of = |image: &Image| image.manifest.as_ref().map(|m| m.node.clone());
    for finding in findings {
        let mut located = finding.clone().located();
        if located.image.is_none() {
            let named = |image: &&&Image| {
                located.subject.strip_prefix(&image.name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            };
            let by_node = |image: &&&Image| match located.nodes.as_slice() {
                [node] => node_of(image).as_ref() == Some(node),
                _ => false,
            };
            // Of two images of a node neither is known to be the one.
            let of_node = || images.iter().find(by_node).filter(|_| images.iter().filter(by_node).count() == 1);
            let image = images.iter().find(named).or_else(of_node);
            located.image = image.map(|image| image.name.clone());
        }
        if located.nodes.is_empty()
            && let Some(name) = &located.image
        {
            let image = images.iter().find(|image| image.name == *name);
            located.nodes = image.and_then(|image| node_of(image)).into_iter().collect();
        }
        *finding = located;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Rule, Severity};
    use crate::image::manifest::tests::sample;
    use crate::tree::Tree;
    use crate::verify::scan::from_tree;

    static RULE: Rule = Rule { code: "x", family: "x", severity: Severity::Error, summary: "x", explanation: "x" };

    #[test]
    fn findings_get_their_image_and_nodes() {
        let mut image = from_tree("dist/a.tar.gz", Tree::default());
        image.manifest = Some(sample());
        let node = sample().node;
        let other = from_tree("dist/b.tar.gz", Tree::default());
        let pair = format!("{node} → zz");
        let at_node = format!("{node}:/etc/x");
        type Case<'a> = (&'a str, Option<&'a str>, Vec<&'a str>, Option<&'a str>);
        let cases: [Case<'_>; 5] = [
            ("dist/a.tar.gz: /etc/x", Some("dist/a.tar.gz"), vec![&node], Some("/etc/x")),
            ("dist/b.tar.gz", Some("dist/b.tar.gz"), vec![], None),
            (&at_node, Some("dist/a.tar.gz"), vec![&node], Some("/etc/x")),
            (&pair, None, vec![&node, "zz"], None),
            ("the images", None, vec![], None),
        ];
        for (subject, image_name, nodes, path) in cases {
            let mut findings = [RULE.finding(subject, "m")];
            locate(&mut findings, &[&image, &other]);
            let [found] = findings;
            assert_eq!((found.image.as_deref(), found.path.as_deref()), (image_name, path), "{subject}");
            assert_eq!(found.nodes, nodes, "{subject}");
        }
    }
}
