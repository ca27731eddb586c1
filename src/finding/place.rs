//! What a finding is about, split from its subject where nobody has said it apart.

use super::Finding;

impl Finding {
    /// Fills in the image's path and the nodes that the subject names, where they are not set. The forms of subjects:
    /// `/etc/x`, `dist/lis1.tar.gz: /etc/x`, `lis1:/etc/x:12`, `lis1 → por1`, `node lis1`, `node.lis1.address`.
    pub fn located(mut self) -> Finding {
        if self.path.is_none() {
            self.path = path_in(&self.subject).map(str::to_owned);
        }
        if self.nodes.is_empty() {
            self.nodes = nodes_in(&self.subject);
        }
        self
    }
}

/// The absolute path at the end of a subject, without a line number.
fn path_in(subject: &str) -> Option<&str> {
    let start = if subject.starts_with('/') {
        0
    } else {
        let colon = subject.find(": /").map(|at| at + 2).or_else(|| subject.find(":/").map(|at| at + 1))?;
        // `https://…` is no path.
        if subject[colon..].starts_with("//") {
            return None;
        }
        colon
    };
    let path = &subject[start..];
    match path.rsplit_once(':') {
        Some((before, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => Some(before),
        _ => Some(path),
    }
}

/// Node names where the form of the subject shows that they are some.
fn nodes_in(subject: &str) -> Vec<String> {
    let label = |text: &str| {
        let good = !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        good.then(|| text.to_owned())
    };
    if let Some((from, to)) = subject.split_once(" → ") {
        return [from, to].into_iter().filter_map(label).collect();
    }
    let named = subject.strip_prefix("node ").or_else(|| subject.strip_prefix("node."));
    let name = named.and_then(|rest| rest.split(['.', ' ', ':']).next());
    let at_path = subject.split_once(":/").filter(|(_, rest)| !rest.starts_with('/'));
    let name = name.or_else(|| at_path.map(|(before, _)| before));
    name.and_then(label).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::finding::{Rule, Severity};

    static RULE: Rule = Rule { code: "x", family: "x", severity: Severity::Error, summary: "", explanation: "" };

    #[test]
    fn subjects_are_split() {
        let cases: &[(&str, &[&str], Option<&str>)] = &[
            ("/etc/x", &[], Some("/etc/x")),
            ("dist/lis1.tar.gz: /etc/x", &[], Some("/etc/x")),
            ("dist/lis1.tar.gz", &[], None),
            ("lis1:/etc/etcd/etcd.yaml:12", &["lis1"], Some("/etc/etcd/etcd.yaml")),
            ("lis1 → por1", &["lis1", "por1"], None),
            ("node lis1", &["lis1"], None),
            ("node.lis1.address", &["lis1"], None),
            ("image.base", &[], None),
            ("https://10.0.0.1:2379", &[], None),
        ];
        for (subject, nodes, path) in cases {
            let finding = RULE.finding(*subject, "m").located();
            assert_eq!(finding.nodes, *nodes, "{subject}");
            assert_eq!(finding.path.as_deref(), *path, "{subject}");
        }
    }

    #[test]
    fn what_is_said_apart_stays() {
        let finding = RULE.finding("lis1: /etc/x", "m").of_node("por1").of_image("a.tar.gz").located();
        assert_eq!((finding.nodes, finding.image.as_deref()), (vec!["por1".to_owned()], Some("a.tar.gz")));
    }
}
