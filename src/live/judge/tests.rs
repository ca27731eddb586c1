//! A healthy registry of three, and what each change of it makes the rules say.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::etcd::birth::Birth;
use crate::finding::Severity;
use crate::live::handshake::{Kind, Trouble};
use crate::live::observe::{Answer, Member, Observed, View};

const NODES: [(&str, &str); 3] = [("arb1", "10.77.0.31"), ("lis1", "10.77.0.11"), ("por1", "10.77.0.21")];

fn url(address: &str) -> String {
    format!("https://{address}:2380")
}

fn birth() -> Birth {
    Birth::of(1, "harbour-g1".into(), NODES.map(|(n, a)| (n.to_owned(), url(a))).into())
}

fn declared(node: &str, part: Part) -> Declared {
    let birth = birth();
    let first_ids: BTreeMap<String, Id> =
        birth.member_ids.iter().map(|(n, id)| (n.clone(), id.parse().unwrap())).collect();
    Declared {
        node: node.into(),
        part,
        peer_url: part.runs_registry().then(|| birth.peers.get(node).cloned().unwrap_or_else(|| url("10.77.0.41"))),
        state: ClusterState::New,
        members: birth.peers.clone(),
        first_ids,
        cluster: Some(birth.cluster_id.parse().unwrap()),
        token: birth.token,
    }
}

fn member(name: &str, address: &str, id: Id) -> Member {
    Member {
        id,
        name: name.into(),
        peer_urls: vec![url(address)],
        client_urls: vec![format!("https://{address}:2379")],
        learner: false,
    }
}

fn healthy() -> Observed {
    let birth = birth();
    let id = |name: &str| birth.member_ids[name].parse::<Id>().unwrap();
    let members: Vec<Member> = NODES.iter().map(|(n, a)| member(n, a, id(n))).collect();
    let view = |(name, address): &(&str, &str)| View {
        endpoint: address.parse().unwrap(),
        answer: Ok(Answer {
            cluster: birth.cluster_id.parse().unwrap(),
            member: id(name),
            version: "3.6.14".into(),
            leader: Some(id("lis1")),
            learner: false,
            errors: Vec::new(),
            members: Ok(members.clone()),
        }),
        stranger_let_in: Some(false),
    };
    Observed { views: NODES.iter().map(view).collect(), client_validity: (100, 200), at: 150 }
}

fn answer(observed: &mut Observed, n: usize) -> &mut Answer {
    observed.views[n].answer.as_mut().unwrap()
}

/// Changes the member list of every answer.
fn lists(observed: &mut Observed, change: impl Fn(&mut Vec<Member>)) {
    for n in 0..observed.views.len() {
        change(answer(observed, n).members.as_mut().unwrap());
    }
}

fn trouble(observed: &mut Observed, kind: Kind) {
    observed.views[1].answer = Err(Trouble::new(kind, "the reason"));
    observed.views[1].stranger_let_in = None;
}

struct Case {
    name: &'static str,
    change: fn(&mut Declared, &mut Observed),
    /// Codes, each with a text that must stand in the finding (message, notes or help).
    want: &'static [(&'static str, &'static str)],
}

const ALREADY: (&str, &str) = ("live-next-step", "is already a member");

fn cases() -> Vec<Case> {
    let case = |name, change, want| Case { name, change, want };
    vec![
        case("all is well", |_, _| {}, &[ALREADY]),
        case("one of three away", |_, o| trouble(o, Kind::Unreachable), &[("live-unreachable", "the reason"), ALREADY]),
        case("black hole", |_, o| trouble(o, Kind::Silent), &[("live-unreachable", "cannot be reached"), ALREADY]),
        case("a http URL", |_, o| trouble(o, Kind::PlainUrl), &[("live-plain-http", "is not TLS"), ALREADY]),
        case("HTTP behind https", |_, o| trouble(o, Kind::NotTls), &[("live-plain-http", "is not TLS"), ALREADY]),
        case("expired", |_, o| trouble(o, Kind::ServerExpired), &[("live-server-expired", "the reason"), ALREADY]),
        case(
            "not yet valid",
            |_, o| trouble(o, Kind::ServerNotYetValid),
            &[("live-server-not-yet-valid", "clocks"), ALREADY],
        ),
        case("missing SAN", |_, o| trouble(o, Kind::ServerName), &[("live-server-name", "other names"), ALREADY]),
        case(
            "wrong authority",
            |_, o| trouble(o, Kind::ServerAuthority),
            &[("live-server-authority", "another authority"), ALREADY],
        ),
        case("wrong usage", |_, o| trouble(o, Kind::ServerUsage), &[("live-server-usage", "wrong usage"), ALREADY]),
        case("no common cipher", |_, o| trouble(o, Kind::Tls), &[("live-tls", "the reason"), ALREADY]),
        case(
            "our certificate refused",
            |_, o| trouble(o, Kind::ClientRefused),
            &[("live-client-refused", "same store"), ALREADY],
        ),
        case(
            "our certificate expired",
            |_, o| {
                trouble(o, Kind::ClientRefused);
                o.at = 201;
            },
            &[("live-client-refused", "it has expired"), ALREADY],
        ),
        case(
            "our certificate from the future",
            |_, o| {
                trouble(o, Kind::ClientRefused);
                o.at = 99;
            },
            &[("live-client-refused", "it is not valid yet"), ALREADY],
        ),
        case("no status", |_, o| trouble(o, Kind::Request), &[("live-no-answer", "journalctl"), ALREADY]),
        case(
            "open to strangers",
            |_, o| o.views[0].stranger_let_in = Some(true),
            &[("live-stranger-let-in", "client-cert-auth"), ALREADY],
        ),
        case(
            "another cluster, of another generation",
            |d, _| d.cluster = Some(Id(7)),
            &[("live-cluster-foreign", "the image's birth record says 0000000000000007")],
        ),
        case(
            "one member started alone by Debian's defaults",
            |_, o| answer(o, 0).cluster = crate::etcd::ids::LONE_DEFAULT_CLUSTER,
            &[("live-cluster-lone-default", "empty /var/lib/etcd"), ("live-cluster-split", "2 different"), ALREADY],
        ),
        case(
            "one member with another token",
            |_, o| answer(o, 0).cluster = Id(9),
            &[("live-cluster-foreign", "0000000000000009"), ("live-cluster-split", "10.77.0.31"), ALREADY],
        ),
        case(
            "no leader",
            |_, o| {
                answer(o, 1).leader = None;
                answer(o, 1).errors = vec!["etcdserver: no leader".into()];
            },
            &[("live-no-leader", "knows of no leader"), ALREADY],
        ),
        case(
            "no quorum: nobody gives the list",
            |_, o| {
                for n in 0..3 {
                    answer(o, n).members = Err(Trouble::new(Kind::Silent, "no answer in time"));
                }
            },
            &[("live-members-unknown", "no answer in time")],
        ),
        case(
            "an upgrade under way",
            |_, o| answer(o, 2).version = "3.7.0".into(),
            &[("live-version-skew", "3.7.0: https://10.77.0.21:2379"), ALREADY],
        ),
        case(
            "a version that loses data",
            |_, o| (0..3).for_each(|n| answer(o, n).version = "3.5.2".into()),
            &[("live-version-bad", "etcd 3.5.2 must not hold data"), ALREADY],
        ),
        case(
            "a version with defects",
            |_, o| (0..3).for_each(|n| answer(o, n).version = "3.5.16".into()),
            &[("live-version-bad", "etcd#19557"), ALREADY],
        ),
        case(
            "quota reached",
            |_, o| (0..3).for_each(|n| answer(o, n).errors = vec!["memberID:10 alarm:NOSPACE ".into()]),
            &[("live-alarm", "NOSPACE of member 000000000000000a"), ALREADY],
        ),
        case(
            "a corrupt member",
            |_, o| answer(o, 0).errors = vec!["memberID:10 alarm:CORRUPT ".into()],
            &[("live-alarm", "join it anew"), ALREADY],
        ),
        case(
            "another complaint",
            |_, o| answer(o, 0).errors = vec!["something new".into()],
            &[("live-member-complains", "something new"), ALREADY],
        ),
        case(
            "another node was removed",
            |_, o| lists(o, |m| m.retain(|m| m.name != "por1")),
            &[("live-member-missing", "member add por1 --learner"), ALREADY],
        ),
        case(
            "one voter more",
            |_, o| lists(o, |m| m.push(member("extra", "10.77.0.99", Id(5)))),
            &[("live-member-extra", "member remove 0000000000000005"), ALREADY],
        ),
        case(
            "one name changed",
            |_, o| lists(o, |m| m[2].name = "porto".into()),
            &[("live-member-renamed", "calls itself `porto`"), ALREADY],
        ),
        case(
            "a node with a new address",
            |d, _| {
                d.members.insert("por1".into(), url("10.77.0.22"));
            },
            &[("live-member-moved", "--peer-urls=https://10.77.0.22:2380"), ALREADY],
        ),
        case(
            "a first member that never started",
            |_, o| lists(o, |m| m[2].client_urls.clear()),
            &[("live-member-unstarted", "has never been started"), ALREADY],
        ),
        case(
            "a learner that replaced a first member",
            |_, o| {
                lists(o, |m| {
                    m[2].id = Id(77);
                    m[2].learner = true;
                });
                answer(o, 2).member = Id(77);
            },
            &[("live-member-learner", "member promote"), ("live-member-rejoined", "was born as"), ALREADY],
        ),
        case(
            "two nodes with each other's data",
            |_, o| {
                let (a, b) = (answer(o, 0).member, answer(o, 2).member);
                (answer(o, 0).member, answer(o, 2).member) = (b, a);
            },
            &[("live-member-swapped", "por1"), ("live-member-swapped", "arb1"), ALREADY],
        ),
        case(
            "a member that lags behind",
            |_, o| answer(o, 2).members.as_mut().unwrap().truncate(2),
            &[("live-members-disagree", "lists 2 members where others list 3"), ALREADY],
        ),
        case(
            "this node was added and waits; image built as new",
            |_, o| {
                lists(o, |m| {
                    m[1] = Member { name: String::new(), client_urls: Vec::new(), learner: true, ..m[1].clone() };
                    m[1].id = Id(8);
                });
                o.views.remove(1);
            },
            &[
                ("live-member-unstarted", "member 0000000000000008"),
                ("live-member-learner", "has no vote"),
                ("live-member-rejoined", "was born as"),
                ("live-wrong-state", "`new`"),
                ("live-next-step", "2. when it has caught up: `etcdctl member promote 0000000000000008`"),
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
                ("live-next-step", "1. `etcdctl member add lis1 --learner"),
            ],
        ),
        case(
            "this node joins with an image built for it, in place of a dead one",
            |d, o| {
                d.node = "lis2".into();
                d.state = ClusterState::Existing;
                d.peer_url = Some(url("10.77.0.41"));
                d.members.remove("lis1");
                d.members.insert("lis2".into(), url("10.77.0.41"));
                trouble(o, Kind::Unreachable);
            },
            &[
                ("live-unreachable", "10.77.0.11"),
                ("live-member-missing", "lis2"),
                ("live-member-extra", "lis1"),
                ("live-next-step", "1. if it replaces lis1"),
            ],
        ),
        case(
            "this node's own address changed",
            |d, o| {
                d.peer_url = Some(url("10.77.0.12"));
                d.members.insert("lis1".into(), url("10.77.0.12"));
                d.state = ClusterState::Existing;
                o.views.remove(1);
            },
            &[("live-member-moved", "10.77.0.12"), ("live-next-step", "2. else `etcdctl member remove")],
        ),
        case(
            "a client node",
            |d, _| *d = declared("edge1", Part::Client),
            &[("live-next-step", "a client has no part in the registry")],
        ),
    ]
}

fn judged(case: &Case) -> Vec<Finding> {
    let (mut declared, mut observed) = (declared("lis1", Part::Voter), healthy());
    (case.change)(&mut declared, &mut observed);
    judge(&declared, &observed)
}

#[test]
fn each_change_is_told_and_nothing_else() {
    for case in cases() {
        let found = judged(&case);
        let text = |f: &Finding| {
            let help = f.help.clone().unwrap_or_default();
            format!("{}: {}\n{}\n{help}", f.subject, f.message, f.notes.join("\n"))
        };
        let mut codes: Vec<&str> = found.iter().map(|f| f.code).collect();
        let mut want: Vec<&str> = case.want.iter().map(|(code, _)| *code).collect();
        codes.sort_unstable();
        want.sort_unstable();
        assert_eq!(codes, want, "{}: {found:#?}", case.name);
        for (code, part) in case.want {
            assert!(
                found.iter().any(|f| f.code == *code && text(f).contains(part)),
                "{}: `{part}` is not in {code}: {found:#?}",
                case.name
            );
        }
    }
}

#[test]
fn every_rule_fires() {
    let fired: BTreeSet<&str> = cases().iter().flat_map(judged).map(|f| f.code).collect();
    for rule in RULES.iter() {
        assert!(fired.contains(rule.code), "no fixture makes {} fire", rule.code);
    }
}

#[test]
fn neighbouring_minors_are_a_warning_and_farther_ones_an_error() {
    for (version, severity) in [
        ("3.7.0", Severity::Warning),
        ("3.5.33", Severity::Warning),
        ("3.8.1", Severity::Error),
        ("4.6.0", Severity::Error),
    ] {
        let mut observed = healthy();
        answer(&mut observed, 0).version = version.into();
        let found = judge(&declared("lis1", Part::Voter), &observed);
        let skew = found.iter().find(|f| f.code == cluster::VERSIONS.code).unwrap();
        assert_eq!(skew.severity, severity, "{version}");
    }
}

#[test]
fn only_versions_that_lose_data_are_errors() {
    for (version, severity) in
        [("3.5.1", Severity::Error), ("3.5.16", Severity::Warning), ("3.4.23", Severity::Warning)]
    {
        let mut observed = healthy();
        (0..3).for_each(|n| answer(&mut observed, n).version = version.into());
        let found = judge(&declared("lis1", Part::Voter), &observed);
        let bad = found.iter().find(|f| f.code == cluster::BAD_VERSION.code).unwrap();
        assert_eq!(bad.severity, severity, "{version}");
    }
}
