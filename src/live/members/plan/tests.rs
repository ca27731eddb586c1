//! What is planned, as a table.

use super::*;
use crate::live::members::votes::Votes;

/// Where a node is declared.
fn url(node: &str) -> String {
    format!("https://{node}.mesh:2380")
}

/// `a b c`.
fn wanted(names: &str) -> Wanted {
    let place = |n: &str| (n.to_owned(), Place { peer_url: url(n), site: format!("site-{n}") });
    Wanted { nodes: names.split_whitespace().map(place).collect() }
}

/// `a` serves, `-a` is silent, `?a` was never started, `+a` is a learner, `+?a` one that was never started, `*a` leads,
/// `a@x` is where x is declared, `a=x` calls itself x.
fn seen(members: &str, version: &str) -> Vec<Seen> {
    let one = |(n, text): (usize, &str)| {
        let name = text.trim_start_matches(['-', '?', '+', '*', '!']);
        let (name, called) = name.split_once('=').unwrap_or((name, name));
        let at = name.split_once('@').map_or(name, |(_, at)| at);
        let called = called.split('@').next().unwrap_or(called);
        let unstarted = text.contains('?');
        let stand = match text {
            _ if unstarted => Stand::Unstarted,
            _ if text.contains('-') => Stand::Silent,
            _ if text.contains('!') => Stand::Foreign,
            _ => Stand::Serves,
        };
        let member = Member {
            id: Id(n as u64 + 1),
            name: if unstarted { String::new() } else { called.to_owned() },
            peer_urls: vec![url(at)],
            client_urls: if unstarted { vec![] } else { vec![format!("https://{at}.mesh:2379")] },
            learner: text.contains('+'),
        };
        Seen { member, stand, leads: text.contains('*'), version: Version::parse(version) }
    };
    members.split_whitespace().enumerate().map(one).collect()
}

/// `add d`, `remove lis1 (…)` and so on, in a line.
fn line(plan: &Plan) -> String {
    let step = |p: &Planned| match &p.step {
        Step::Remove { who, .. } if who.starts_with("a member") => "remove nameless".to_owned(),
        Step::Remove { who, .. } => format!("remove {}", who.split(' ').next().unwrap()),
        Step::Add { node, learner: true, .. } => format!("add {node}"),
        Step::Add { node, .. } => format!("vote {node}"),
        Step::Start { node, how: Start::Back(_) } => format!("back {node}"),
        Step::Start { node, how: Start::Born } => format!("born {node}"),
        Step::Start { node, how: Start::Moved } => format!("moved {node}"),
        Step::Start { node, .. } => format!("start {node}"),
        Step::Promote { node, .. } => format!("promote {node}"),
        Step::Update { node, .. } => format!("update {node}"),
        Step::Rename { node, .. } => format!("rename {node}"),
    };
    let mut all: Vec<String> = plan.steps.iter().map(step).collect();
    all.extend(plan.blocked.iter().map(|b| format!("! {}", b.why)));
    all.join(", ")
}

fn planned(want: &str, is: &str, replace: &[u64], learner: bool) -> Plan {
    let born = [("a", 1), ("b", 2), ("c", 3)].map(|(n, id)| (n.to_owned(), Id(id))).into();
    let options = Options { learner, replace: replace.iter().map(|id| Id(*id)).collect(), born };
    plan(&wanted(want), &seen(is, "3.5.21"), &options)
}

#[test]
fn the_way_from_what_is_to_what_is_wanted() {
    //   wanted       there              replaced  steps
    let rows: &[(&str, &str, &[u64], &str)] = &[
        ("a b c", "a b c", &[], ""),
        // Replace: the dead goes first, then its successor comes.
        ("a b c", "a b -c", &[3], "remove c, add c, start c, promote c"),
        ("a b d", "a b -c", &[], "remove c, add d, start d, promote d"),
        // One that lives is replaced after all else; one that lives and is not declared goes last.
        ("a b c", "a b c", &[3], "remove c, add c, start c, promote c"),
        ("a b d", "a b c", &[], "add d, start d, promote d, remove c"),
        // Away is not dead: only a person can say so.
        ("a b c", "a b -c", &[], "back c"),
        ("a b c", "a b !c", &[], "back c"),
        // Grow.
        ("a b c", "a", &[], "add b, start b, promote b, add c, start c, promote c"),
        ("a b c d e", "a b c", &[], "add d, start d, promote d, add e, start e, promote e"),
        ("a b c d e", "a b -c", &[], "back c, add d, start d, promote d, add e, start e, promote e"),
        // Half-way, whatever was interrupted.
        ("a b c", "a b ?c", &[], "born c"),
        ("a b d", "a b ?d", &[], "start d"),
        ("a b c d e", "a b c +?d", &[], "start d, promote d, add e, start e, promote e"),
        ("a b c d e", "a b c +d", &[], "promote d, add e, start e, promote e"),
        ("a b d", "a b +-d", &[], "back d, promote d"),
        // Shrink: the dead first, the leader last.
        ("a b c", "a b c d e", &[], "remove d, remove e"),
        ("a b c", "a b c *d e", &[], "remove e, remove d"),
        ("a b c", "a b c d -e", &[], "remove e, remove d"),
        ("a", "a b c", &[], "remove b, remove c"),
        ("d", "a", &[], "add d, start d, promote d, remove a"),
        // Learners that nobody wants.
        ("a b c", "a b c +x", &[], "remove x"),
        ("a b c", "a b ?c +?x", &[], "remove nameless, born c"),
        ("a b c", "a b c +d", &[4], "remove d"),
        // Another address, another name.
        ("a b c", "a b c@x", &[], "update c, moved c"),
        ("a b c", "a b -c@x", &[], "update c, moved c"),
        ("a", "a@x", &[], "update a, moved a"),
        ("a b c", "a b c@x", &[3], "remove c, add c, start c, promote c"),
        ("a b d", "a b +d@x", &[], "remove d, add d, start d, promote d"),
        ("a b c", "a b c=x", &[], "rename c"),
        ("a b c", "a b=c c=b", &[], "rename b, rename c"),
        // No quorum, or none after it.
        (
            "a b c",
            "a -b -c",
            &[],
            "! 1 of 3 voters answer and know a leader, 2 are needed: first mend what is said of the others",
        ),
        (
            "a b c",
            "a -b -c",
            &[2, 3],
            "! 1 of 3 voters answer and know a leader, 2 are needed: first mend what is said of the others",
        ),
        ("a", "a", &[1], "! without it 0 of 0 voters are left, 1 are needed: first bring back what is away"),
        (
            "a b c",
            "a ?b",
            &[],
            "! 1 of 2 voters answer and know a leader, 2 are needed: first mend what is said of the others",
        ),
        ("a b", "a b@x", &[], "! until b runs at its new address 1 of 2 voters are left, 2 are needed"),
    ];
    for (want, is, replace, steps) in rows {
        let plan = planned(want, is, replace, true);
        assert_eq!(line(&plan), *steps, "{want} from {is}: {plan:#?}");
    }
}

#[test]
fn as_voters_at_once_where_the_votes_allow_it() {
    //   wanted       there     steps
    let rows: &[(&str, &str, &str)] = &[
        ("a b c d e", "a b c", "vote d, start d, vote e, start e"),
        ("a b d", "a b -c", "remove c, vote d, start d"),
        (
            "a b c",
            "a",
            "! as a voter that has not started it would count at once: 1 of 2 voters, 2 are needed, and there would be no writes until it has started",
        ),
    ];
    for (want, is, steps) in rows {
        assert_eq!(line(&planned(want, is, &[], false)), *steps, "{want} from {is}");
    }
}

#[test]
fn each_step_says_what_it_does_to_the_votes() {
    let plan = planned("a b d", "a b -c", &[], true);
    let votes: Vec<String> = plan.steps.iter().map(|p| super::words::votes(p.before, p.after)).collect();
    assert_eq!(
        votes,
        [
            "2 of 3 votes, 2 needed -> 2 of 2 votes, 2 needed; one more loss stops all writes",
            "2 of 2 votes, 2 needed; one more loss stops all writes",
            "2 of 2 votes, 2 needed; one more loss stops all writes",
            "2 of 2 votes, 2 needed -> 3 of 3 votes, 2 needed"
        ]
    );
    assert_eq!(Votes { all: 5, up: 5 }.spare(), 2);
}

#[test]
fn a_promotion_on_a_version_that_forgets_it_is_warned_of() {
    //   version   wanted   there       no-learner  said
    let rows: [(&str, &str, &str, bool, &str); 8] = [
        ("3.5.0", "a b c", "a b", true, ""),
        ("3.5.1", "a b c", "a b", true, "`--no-learner` adds it as a voter at once instead"),
        (
            "3.5.16",
            "a b c",
            "a b +c",
            true,
            "(`etcdctl member remove 0000000000000003`) and begin anew with `--no-learner`",
        ),
        ("3.5.19", "a b c", "a", true, "there is no other way from here"),
        ("3.5.16", "a b c", "a b", false, ""),
        ("3.5.20", "a b c", "a b", true, ""),
        ("3.4.23", "a b c", "a b", true, ""),
        ("3.6.1", "a b c", "a b", true, ""),
    ];
    for (version, want, is, learner, said) in rows {
        let plan = plan(&wanted(want), &seen(is, version), &Options { learner, ..Options::default() });
        let warning = plan.steps.iter().find_map(|p| p.warning.clone()).unwrap_or_default();
        assert_eq!(warning.is_empty(), said.is_empty(), "{version}: {warning}");
        assert!(warning.contains(said), "{version}: {warning}");
        assert!(warning.is_empty() || warning.contains(version), "{warning}");
    }
}

#[test]
fn commands_are_made_of_what_is_harmless() {
    let commands = Commands { fitout: "fitout -C mesh".into() };
    let said = |plan: &Plan| -> Vec<String> {
        plan.steps.iter().flat_map(|p| commands.of(&p.step)).map(|step| step.to_string()).collect()
    };
    let all = said(&planned("a b c", "a b -c", &[3], true));
    assert_eq!(
        all[..6],
        [
            "on c, if it still runs: `systemctl stop mesh-registry.target`",
            "`etcdctl member remove 0000000000000003`",
            "`etcdctl member add c --learner --peer-urls=https://c.mesh:2380`",
            "`fitout -C mesh build --node c --join`",
            "on c, whose old data must not come back: `rm -rf /var/lib/etcd/member`",
            "on c: `systemctl enable --now mesh-registry.target`",
        ]
    );
    assert!(all[6].contains("ETCDCTL_ENDPOINTS=https://c.mesh:2379 etcdctl endpoint status && etcdctl member promote"));
    let update = Step::Update { node: "c".into(), id: Id(3), from: "x".into(), to: "https://c';reboot:2380".into() };
    assert!(commands.of(&update).is_empty(), "nothing is made of a URL that is none");
}
