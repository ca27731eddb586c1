//! A node that is not a member yet, or waits for its first start: what is said of it and of its image.

use super::*;

/// The node's image was built with `--join` for this list.
fn joins(declared: &mut Declared, list: &[(&str, &str)]) {
    declared.state = ClusterState::Existing;
    declared.joins = Some(list.iter().map(|(name, address)| ((*name).to_owned(), url(address))).collect());
}

/// lis1 was removed and added again, as a learner that waits.
fn added(observed: &mut Observed) {
    lists(observed, |m| {
        m[1] = Member { id: Id(8), name: String::new(), client_urls: Vec::new(), learner: true, ..m[1].clone() };
    });
    observed.views.remove(1);
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "this node was added and waits; image built as new",
            |_, o| added(o),
            &[
                ("live-member-unstarted", "member 0000000000000008"),
                ("live-member-learner", "has no vote"),
                ("live-member-rejoined", "was born as"),
                ("live-wrong-state", "`new`"),
                ("live-next-step", "`systemctl enable --now mesh-registry.target`"),
            ],
        ),
        case(
            "this node was added and waits; image built to join",
            |d, o| {
                added(o);
                joins(d, &NODES);
            },
            &[
                ("live-member-unstarted", "member 0000000000000008"),
                ("live-member-learner", "has no vote"),
                ("live-member-rejoined", "was born as"),
                ("live-next-step", "2. on lis1: `systemctl enable --now mesh-registry.target`"),
            ],
        ),
        case(
            "this node was added and waits; image built to join an earlier list",
            |d, o| {
                added(o);
                joins(
                    d,
                    &[("arb1", "10.77.0.31"), ("lis1", "10.77.0.11"), ("old", "10.77.0.99"), ("por1", "10.77.0.21")],
                );
            },
            &[
                ("live-member-unstarted", "member 0000000000000008"),
                ("live-member-learner", "has no vote"),
                ("live-member-rejoined", "was born as"),
                ("live-join-stale", "built for: arb1=https://10.77.0.31:2380, lis1=https://10.77.0.11:2380, old="),
                ("live-next-step", "initial-cluster-state: \"existing\""),
            ],
        ),
        case(
            "this node was born and never started",
            |_, o| {
                lists(o, |m| m[1].client_urls.clear());
                o.views.remove(1);
            },
            &[("live-member-unstarted", "lis1"), ("live-next-step", "waits for its first start")],
        ),
        case(
            "this node was removed; image built as new",
            |_, o| {
                lists(o, |m| m.retain(|m| m.name != "lis1"));
                o.views.remove(1);
            },
            &[
                ("live-member-missing", "lis1"),
                ("live-wrong-state", "is not in the member list"),
                ("live-next-step", "2. `etcdctl member add lis1 --learner"),
            ],
        ),
        case(
            "this node joins with an image built for it, in place of a dead one",
            |d, o| {
                d.node = "lis2".into();
                joins(d, &[("arb1", "10.77.0.31"), ("lis2", "10.77.0.41"), ("por1", "10.77.0.21")]);
                d.peer_url = Some(url("10.77.0.41"));
                d.members.remove("lis1");
                d.members.insert("lis2".into(), url("10.77.0.41"));
                trouble(o, Kind::Unreachable);
            },
            &[
                ("live-unreachable", "10.77.0.11"),
                ("live-member-missing", "lis2"),
                ("live-member-extra", "lis1"),
                ("live-next-step", "is removed first, if this node replaces it"),
            ],
        ),
        case(
            "this node's own address changed",
            |d, o| {
                d.peer_url = Some(url("10.77.0.12"));
                d.members.insert("lis1".into(), url("10.77.0.12"));
                joins(d, &[("arb1", "10.77.0.31"), ("lis1", "10.77.0.12"), ("por1", "10.77.0.21")]);
                o.views.remove(1);
            },
            &[("live-member-moved", "10.77.0.12"), ("live-next-step", "2. `etcdctl member remove")],
        ),
    ]
}
