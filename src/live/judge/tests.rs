//! A healthy registry of three, and what each change of it makes the rules say.

mod joining;
mod replacing;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::etcd::birth::Birth;
use crate::live::credentials::{Files, Shown};
use crate::live::handshake::{Greeting, Kind, Trouble};
use crate::live::metrics::Metrics;
use crate::live::observe::{Member, View};

/// `renew-before` and `time-to-rebuild` of the tests, seconds.
const LIMITS: (i64, i64) = (1000, 100);
/// The present, seconds since 1970.
const NOW: i64 = 1_800_000_000;

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
        topology: Topology::Quorum,
        state: ClusterState::New,
        joins: None,
        members: birth.peers.clone(),
        sites: [("arb1", "arbiter"), ("lis1", "lisbon"), ("por1", "porto")].map(|(n, s)| (n.into(), s.into())).into(),
        first_ids,
        cluster: Some(birth.cluster_id.parse().unwrap()),
        token: birth.token,
        limits: Limits {
            renew_before: Duration::from_secs(LIMITS.0 as u64),
            time_to_rebuild: Duration::from_secs(LIMITS.1 as u64),
            quota: 10_000_000,
            ..Limits::default()
        },
        etcdctl: Etcdctl::with(Files {
            certificate: "/pki/anna.crt".into(),
            key: "/pki/anna.key".into(),
            encrypted: false,
            authority: Some("/pki/ca.crt".into()),
        }),
        replace: false,
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
            raft_index: 5000,
            applied_index: 5000,
            db_size: 1_000_000,
            db_in_use: 500_000,
            errors: Vec::new(),
            hash: None,
            members: Ok(members.clone()),
            round_trip: Duration::from_millis(30),
            metrics: Ok(Metrics::default()),
        }),
        greeting: Some(Greeting { validity: (NOW - 5000, NOW + 5000) }),
        stranger_let_in: Some(false),
    };
    let client = Shown {
        whose: "the image's client certificate".into(),
        given: false,
        user: Some("node:lis1".into()),
        issuer: "CN=harbour client authority".into(),
        validity: (NOW - 5000, NOW + 5000),
        of_the_mesh: true,
        for_clients: true,
    };
    Observed { views: NODES.iter().map(view).collect(), client, at: NOW }
}

/// The mean round trip that a member measured to another.
fn round_trip(observed: &mut Observed, from: usize, to: usize, ms: u64) {
    let id = answer(observed, to).member;
    answer(observed, from).metrics.as_mut().unwrap().round_trips.insert(id, Duration::from_millis(ms));
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
    observed.views[1].greeting = None;
    observed.views[1].stranger_let_in = None;
}

struct Case {
    name: &'static str,
    change: fn(&mut Declared, &mut Observed),
    /// Codes, each with a text that must stand in the finding (message, notes or help).
    want: &'static [(&'static str, &'static str)],
}

const ALREADY: (&str, &str) = ("live-next-step", "is a member (");
const ALL_UP: (&str, &str) = ("live-votes", "the loss of any one site leaves a majority");

fn cases() -> Vec<Case> {
    let mut all = registries();
    all.extend(joining::cases());
    all
}

fn case(
    name: &'static str,
    change: fn(&mut Declared, &mut Observed),
    want: &'static [(&'static str, &'static str)],
) -> Case {
    Case { name, change, want }
}

/// What can be wrong with a registry, seen from a member.
fn registries() -> Vec<Case> {
    vec![
        case("all is well", |_, _| {}, &[ALREADY]),
        case(
            "one of three away",
            |_, o| trouble(o, Kind::Unreachable),
            &[
                ("live-unreachable", "the reason"),
                ALREADY,
                ("live-votes", "2 of 3 voters answer; the loss of arbiter or porto would stop all writes"),
            ],
        ),
        case(
            "two of three away",
            |_, o| {
                trouble(o, Kind::Unreachable);
                o.views[2].answer = Err(Trouble::new(Kind::Silent, "silence"));
            },
            &[
                ("live-unreachable", "10.77.0.11"),
                ("live-unreachable", "10.77.0.21"),
                ALREADY,
                ("live-no-quorum", "1 of 3 voters answer, 2 are needed: there are no writes now"),
            ],
        ),
        case(
            "all answer, and nobody knows a leader",
            |_, o| (0..3).for_each(|n| answer(o, n).leader = None),
            &[
                ("live-no-leader", "10.77.0.11"),
                ("live-no-leader", "10.77.0.21"),
                ("live-no-leader", "10.77.0.31"),
                ALREADY,
                ("live-no-quorum", "3 of 3 voters answer, and no 2 of them know a leader"),
            ],
        ),
        case(
            "two of three refuse this client, and work",
            |_, o| {
                trouble(o, Kind::ServerExpired);
                o.views[2].answer = Err(Trouble::new(Kind::ServerExpired, "the reason"));
            },
            &[
                ("live-server-expired", "10.77.0.11"),
                ("live-server-expired", "10.77.0.21"),
                ALREADY,
                ("live-votes", "1 of 3 voters answer, 2 are needed: whether there are writes is not known"),
            ],
        ),
        case(
            "only one endpoint was asked",
            |_, o| o.views.truncate(1),
            &[ALREADY, ("live-votes", "without lisbon: 2 of 3 votes, 2 needed: writes go on")],
        ),
        case(
            "two voters in one site",
            |d, _| {
                d.sites.insert("arb1".into(), "porto".into());
            },
            &[ALREADY, ("live-votes", "the loss of porto would stop all writes")],
        ),
        case(
            "a voter that nobody declared counts",
            |_, o| lists(o, |m| m.push(member("extra", "10.77.0.99", Id(5)))),
            &[
                ("live-member-extra", "`etcdctl member remove 0000000000000005`"),
                ALREADY,
                ("live-votes", "without a site that is not known: 3 of 4 votes, 3 needed: writes go on"),
            ],
        ),
        case(
            "topology single",
            |d, o| {
                d.topology = Topology::Single;
                d.members.retain(|name, _| name == "lis1");
                d.sites.retain(|name, _| name == "lis1");
                lists(o, |m| m.retain(|m| m.name == "lis1"));
                o.views = vec![o.views.remove(1)];
            },
            &[("live-next-step", "if that is lost, the registry is lost"), ("live-votes", "nothing takes over")],
        ),
        case("an image of an early version, which names no site", |d, _| d.sites.clear(), &[ALREADY]),
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
            "our certificate has expired",
            |_, o| o.client.validity.1 = NOW - 1,
            &[("live-client-expired", "`fitout build` issues a new one"), ALREADY, ALL_UP],
        ),
        case(
            "an operator's certificate has expired",
            |_, o| {
                o.client.validity.1 = NOW - 1;
                o.client.given = true;
            },
            &[("live-client-expired", "`fitout pki issue --operator NAME`"), ALREADY, ALL_UP],
        ),
        case(
            "our certificate is from the future",
            |_, o| o.client.validity.0 = NOW + 1,
            &[("live-client-not-yet-valid", "this host's clock says 2027-01-15"), ALREADY, ALL_UP],
        ),
        case(
            "our certificate is of another store",
            |_, o| o.client.of_the_mesh = false,
            &[("live-client-authority", "its issuer is `CN=harbour client authority`"), ALREADY, ALL_UP],
        ),
        case(
            "a server's certificate is shown",
            |_, o| o.client.for_clients = false,
            &[("live-client-usage", "use the certificate of an operator"), ALREADY, ALL_UP],
        ),
        case(
            "our certificate ends soon",
            |_, o| o.client.validity.1 = NOW + LIMITS.0 - 1,
            &[("live-client-ends-soon", "ends in 16 minutes"), ALREADY, ALL_UP],
        ),
        case(
            "a server's certificate ends soon",
            |_, o| {
                o.views[2].greeting = Some(Greeting { validity: (NOW - 1, NOW + LIMITS.0 - 1) });
            },
            &[("live-server-ends-soon", "10.77.0.21"), ALREADY, ALL_UP],
        ),
        case(
            "a member was measured too far away by its peers",
            |_, o| {
                round_trip(o, 0, 1, 20);
                round_trip(o, 0, 2, 120);
                round_trip(o, 2, 0, 110);
                answer(o, 1).round_trip = Duration::from_millis(500);
            },
            &[("live-round-trip", "arb1 to por1: the round trip is 120 ms, the timing bears 100 ms"), ALREADY, ALL_UP],
        ),
        case(
            "nobody has measured yet, and this host is far from one",
            |_, o| {
                answer(o, 1).round_trip = Duration::from_millis(101);
            },
            &[("live-round-trip", "https://10.77.0.11:2379: answers this host after 101 ms"), ALREADY, ALL_UP],
        ),
        case(
            "the quota is near, as declared",
            |_, o| answer(o, 0).db_size = 8_000_001,
            &[("live-quota-near", "`etcdctl --command-timeout=60s defrag`"), ALREADY, ALL_UP],
        ),
        case(
            "the quota is near, as it runs",
            |_, o| {
                answer(o, 0).metrics.as_mut().unwrap().quota = Some(1_100_000);
            },
            &[("live-quota-near", "has 1.0 MB of 1.1 MB"), ALREADY, ALL_UP],
        ),
        case(
            "a member is behind",
            |_, o| answer(o, 2).applied_index = 4899,
            &[("live-member-lags", "is 101 entries behind"), ALREADY, ALL_UP],
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
            |_, o| {
                let lone = answer(o, 0);
                (lone.cluster, lone.member) = (crate::etcd::ids::LONE_DEFAULT_CLUSTER, Id(1));
                lone.members = Ok(vec![member("default", "127.0.0.1", Id(1))]);
            },
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
            &[("live-alarm-nospace", "member 000000000000000a has reached its quota"), ALREADY],
        ),
        case(
            "a corrupt member",
            |_, o| answer(o, 0).errors = vec!["memberID:10 alarm:CORRUPT ".into()],
            &[("live-alarm-corrupt", "`etcdctl member remove 000000000000000a`"), ALREADY],
        ),
        case(
            "a corrupt leader blames another member",
            |_, o| {
                answer(o, 0).errors = vec!["memberID:10 alarm:CORRUPT ".into()];
                (0..3).for_each(|n| answer(o, n).hash = Some(if n == 2 { 7 } else { 8 }));
            },
            &[("live-alarm-corrupt", "the data of por1"), ALREADY],
        ),
        case(
            "a corrupt member that nobody names",
            |_, o| answer(o, 0).errors = vec!["alarm:CORRUPT ".into()],
            &[("live-alarm-corrupt", "`etcdctl endpoint hashkv`"), ALREADY],
        ),
        case(
            "all hashes differ",
            |_, o| {
                answer(o, 0).errors = vec!["alarm:CORRUPT ".into()];
                (0..3).for_each(|n| answer(o, n).hash = Some(n as u32));
            },
            &[("live-alarm-corrupt", "does not say whose"), ALREADY],
        ),
        case(
            "another complaint",
            |_, o| answer(o, 0).errors = vec!["something new".into()],
            &[("live-member-complains", "something new"), ALREADY],
        ),
        case(
            "another node was removed",
            |_, o| lists(o, |m| m.retain(|m| m.name != "por1")),
            &[("live-member-missing", "a check of por1's image"), ALREADY],
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
        // What is left after the loss of each site is always told; only some cases are about it.
        let about_votes = case.want.iter().any(|(code, _)| *code == votes::VOTES.code);
        let told = |f: &&Finding| about_votes || f.code != votes::VOTES.code;
        let mut codes: Vec<&str> = found.iter().filter(told).map(|f| f.code).collect();
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
    // Those of the keys have a table of their own.
    let of_keys = |rule: &Rule| keys::RULES.iter().any(|of_keys| of_keys.code == rule.code);
    for rule in RULES.iter().filter(|rule| !of_keys(rule)) {
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
