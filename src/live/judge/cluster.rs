//! Rules about the cluster as a whole: which one it is, its leader, versions and alarms.

use std::collections::{BTreeMap, BTreeSet};

use super::{Declared, answers, rule};
use crate::etcd::ids::{Id, LONE_DEFAULT_CLUSTER};
use crate::etcd::versions::{self, Known, Version};
use crate::finding::{Finding, Rule, Severity};
use crate::live::observe::Observed;

/// Another cluster.
pub static FOREIGN: Rule = rule(
    "live-cluster-foreign",
    Severity::Error,
    "the living cluster is not the one of the birth record",
    "A cluster's id follows from the peer URLs of its first members and the token, and stays for life (etcd \
     `membership/cluster.go` genID). Another id means another cluster: one of another generation (a restore raises \
     it), one started with another token or other first members, or another mesh. etcd ignores `initial-cluster` and \
     the token once it has a data directory, so a changed image does not mend it: a member that was started wrongly \
     must be removed, its /var/lib/etcd emptied, and started again. Tested by comparing the id in the status.",
);
/// A lone start with the defaults.
pub static LONE_DEFAULT: Rule = rule(
    "live-cluster-lone-default",
    Severity::Error,
    "a member was started alone with etcd's defaults",
    "The cluster id cdf818194e3a8c32 is that of `http://localhost:2380` with the token `etcd-cluster`: what Debian's \
     package starts when it is installed, before any configuration is there (the id in etcd#11562). The member \
     knows nothing of the mesh. Stop it, empty its /var/lib/etcd, and start `mesh-registry.target`.",
);
/// Two clusters.
pub static SPLIT: Rule = rule(
    "live-cluster-split",
    Severity::Error,
    "the endpoints belong to different clusters",
    "Members that report different cluster ids never talk to each other (`request cluster ID mismatch` in their \
     logs): at least one was started with another token or other first members. Tested by comparing all endpoints.",
);
/// No leader.
pub static NO_LEADER: Rule = rule(
    "live-no-leader",
    Severity::Error,
    "a member knows of no leader",
    "Without a leader nothing can be written, and linearizable reads fail. A majority of the voters must run and reach \
     each other on port 2380 in both directions: the listener also compares the address from which a peer comes \
     with the names in its certificate. Tested by the status of each member.",
);
/// Different versions.
pub static VERSIONS: Rule = rule(
    "live-version-skew",
    Severity::Warning,
    "the members run different versions of etcd",
    "During an upgrade this is normal for a while; etcd supports neighbouring minor versions in one cluster and no \
     more, so a larger distance is an error. Tested by the version in each member's status.",
);
/// Known-bad versions.
pub static BAD_VERSION: Rule = rule(
    "live-version-bad",
    Severity::Error,
    "a member runs a version of etcd against which something is known",
    "An error when its data are in danger: etcd 3.5.0 to 3.5.2 can lose consistency after a crash (etcd#13766), they \
     must not hold data. Else a warning that names the defects. Upgrade the base and rebuild. Tested by the version in \
     each member's status against the list that `verify` uses too.",
);
/// The rules of this file.
pub static RULES: &[&Rule] = &[&FOREIGN, &LONE_DEFAULT, &SPLIT, &NO_LEADER, &VERSIONS, &BAD_VERSION];

/// Judges identity, leader and versions.
pub fn judge(declared: &Declared, observed: &Observed, out: &mut Vec<Finding>) {
    identity(declared, observed, out);
    versions(observed, out);
    for (endpoint, answer) in answers(observed).filter(|(_, answer)| answer.leader.is_none()) {
        out.push(
            NO_LEADER
                .finding(&endpoint, format!("member {} knows of no leader", answer.member))
                .note(
                    "it is cut off from a majority of the voters: they are down, the network between them is cut, or \
                     they refuse each other's peer certificates",
                )
                .help("on the voters: `systemctl status etcd`, then `journalctl -u etcd -e`"),
        );
    }
}

fn identity(declared: &Declared, observed: &Observed, out: &mut Vec<Finding>) {
    let mut clusters: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    for (endpoint, answer) in answers(observed) {
        clusters.entry(answer.cluster).or_default().push(endpoint);
    }
    for (id, endpoints) in &clusters {
        let at = endpoints.join(", ");
        if *id == LONE_DEFAULT_CLUSTER {
            let text = format!("cluster {id}: started alone with etcd's defaults, without the mesh's configuration");
            out.push(LONE_DEFAULT.finding(at, text).help(
                "on that node: `systemctl stop etcd`, empty /var/lib/etcd, `systemctl enable --now mesh-registry.target`",
            ));
        } else if declared.cluster != Some(*id) {
            let want = declared.cluster.map_or("none".to_owned(), |id| id.to_string());
            let text = format!("is cluster {id}; the image's birth record says {want} (token `{}`)", declared.token);
            let urls: Vec<&str> = declared.members.values().map(String::as_str).collect();
            out.push(
                FOREIGN
                    .finding(at, text)
                    .note(format!("first members of the birth record: {}", urls.join(", ")))
                    .help("another generation, another token or another mesh: compare `fitout.lock` of both builds"),
            );
        }
    }
    if clusters.len() > 1 {
        let mut finding = SPLIT.finding("the registry", format!("{} different clusters answer", clusters.len()));
        for (id, endpoints) in &clusters {
            finding = finding.note(format!("{id}: {}", endpoints.join(", ")));
        }
        out.push(finding.help("stop the ones that are not the birth record's, and empty their /var/lib/etcd"));
    }
}

fn versions(observed: &Observed, out: &mut Vec<Finding>) {
    let mut seen: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (endpoint, answer) in answers(observed) {
        seen.entry(&answer.version).or_default().push(endpoint);
    }
    for (version, endpoints) in &seen {
        let Some(parsed) = parse(version) else { continue };
        let known: Vec<&Known> = versions::known_against(parsed).collect();
        if known.is_empty() {
            continue;
        }
        let harmful = known.iter().any(|k| k.harmful);
        let text = if harmful { "must not hold data" } else { "has known defects" };
        let mut finding = BAD_VERSION.finding(endpoints.join(", "), format!("etcd {version} {text}"));
        if !harmful {
            finding.severity = Severity::Warning;
        }
        finding.notes = known.iter().map(|k| k.what.to_owned()).collect();
        out.push(finding.help("upgrade the base and rebuild the images"));
    }
    if seen.len() > 1 {
        let mut finding = VERSIONS.finding("the registry", "the members run different versions of etcd");
        for (version, endpoints) in &seen {
            finding = finding.note(format!("{version}: {}", endpoints.join(", ")));
        }
        let minors: BTreeSet<(u32, u32)> = seen.keys().filter_map(|v| parse(v)).map(|v| (v.major, v.minor)).collect();
        if let (Some((a, b)), Some((c, d))) = (minors.first(), minors.last())
            && (a != c || d - b > 1)
        {
            finding.severity = Severity::Error;
            finding = finding.help("bring all members to neighbouring minor versions, one step at a time");
        }
        out.push(finding);
    }
}

/// `3.5.16` or `3.6.0-rc.1`.
fn parse(version: &str) -> Option<Version> {
    Version::parse(version.split(['-', '+']).next()?)
}
