//! When the commands that remove or replace a member are printed, and when they must not be.

use super::*;

/// With these nodes silent, the next step of a node's image.
fn next(node: &str, away: &[&str], replace: bool) -> Finding {
    let (declared, observed) = (Declared { replace, ..declared(node, Part::Voter) }, without(away));
    judge(&declared, &observed).into_iter().find(|f| f.code == next::NEXT_STEP.code).unwrap()
}

fn without(away: &[&str]) -> Observed {
    let mut observed = healthy();
    for (n, (name, _)) in NODES.iter().enumerate() {
        if away.contains(name) {
            observed.views[n].answer = Err(Trouble::new(Kind::Silent, "silence"));
        }
    }
    observed
}

fn destroys(finding: &Finding) -> bool {
    finding.notes.iter().any(|n| n.contains("member remove") || n.contains("rm -rf") || n.contains("systemctl stop"))
}

#[test]
fn a_member_is_replaced_when_it_is_silent_or_on_request_and_the_others_have_a_quorum() {
    let one_more = "one more loss stops all writes";
    //   node    away               asked   printed  said
    let cases: &[(&str, &[&str], bool, bool, &str)] = &[
        ("lis1", &[], false, false, "nothing to do as long as its /var/lib/etcd is kept"),
        ("lis1", &[], true, true, one_more),
        ("lis1", &["lis1"], false, true, one_more),
        ("lis1", &["lis1"], true, true, one_more),
        ("lis1", &["por1"], false, false, "nothing to do"),
        ("lis1", &["por1"], true, false, "without it 1 of 2 voters are left, 2 are needed"),
        ("lis1", &["arb1", "por1"], false, false, "keep its /var/lib/etcd, the only copy"),
        ("lis1", &["arb1", "por1"], true, false, "1 of 3 voters answer and know a leader, 2 are needed"),
        ("por1", &["arb1", "por1"], false, false, "start it with its /var/lib/etcd"),
        ("por1", &["arb1", "por1"], true, false, "it cannot be replaced now: 1 of 3 voters"),
    ];
    for (node, away, replace, printed, said) in cases {
        let found = next(node, away, *replace);
        assert_eq!(destroys(&found), *printed, "{node} {away:?} {replace}: {found:#?}");
        let text = format!("{}\n{}\n{}", found.message, found.notes.join("\n"), found.help.unwrap_or_default());
        assert!(text.contains(said), "{node} {away:?} {replace}: `{said}` is not in {text}");
    }
}

#[test]
fn a_healthy_member_is_told_in_one_line() {
    assert!(next("lis1", &[], false).notes.is_empty());
}

#[test]
fn of_five_voters_one_more_may_be_lost() {
    let mut observed = without(&["lis1"]);
    let (mut more, mut views) = (Vec::new(), Vec::new());
    for (n, address) in [(90, "10.77.0.90"), (91, "10.77.0.91")] {
        more.push(member(&format!("extra{n}"), address, Id(n)));
        let mut view = observed.views[0].clone();
        view.endpoint = address.parse().unwrap();
        view.answer.as_mut().unwrap().member = Id(n);
        views.push(view);
    }
    observed.views.extend(views);
    for view in &mut observed.views {
        if let Ok(answer) = &mut view.answer {
            answer.members.as_mut().unwrap().extend(more.clone());
        }
    }
    let found = judge(&declared("lis1", Part::Voter), &observed);
    let next = found.iter().find(|f| f.code == next::NEXT_STEP.code).unwrap();
    assert!(destroys(next), "{next:#?}");
    assert!(next.notes.iter().all(|n| !n.contains("one more loss")), "{next:#?}");
}

#[test]
fn the_lost_quorum_says_what_brings_it_back() {
    let found = judge(&declared("lis1", Part::Voter), &without(&["arb1", "por1"]));
    let lost = found.iter().find(|f| f.code == quorum::NO_QUORUM.code).unwrap();
    assert_eq!(lost.severity, Severity::Error);
    let help = lost.help.clone().unwrap();
    assert!(help.starts_with("bring back 1 of arb1 (") && help.contains("por1 ("), "{help}");
    assert!(help.contains("from a backup"), "{help}");
    assert!(lost.notes[0].contains("never the data of one that lives"), "{lost:#?}");
}

/// Every spoiled registry of the table, with each set of members silent or without a leader, seen from each image.
#[test]
fn nothing_destroys_without_a_quorum_and_no_list_of_endpoints_is_empty() {
    let mut printed = 0;
    for case in cases() {
        for mask in 0..27_usize {
            for (node, replace) in NODES.iter().flat_map(|(node, _)| [(*node, false), (*node, true)]) {
                let (mut declared, mut observed) = (declared(node, Part::Voter), healthy());
                (case.change)(&mut declared, &mut observed);
                declared.replace = replace;
                let mut state = mask;
                for view in &mut observed.views {
                    match (state % 3, &mut view.answer) {
                        (1, answer) => *answer = Err(Trouble::new(Kind::Silent, "silence")),
                        (2, Ok(answer)) => answer.leader = None,
                        _ => {}
                    }
                    state /= 3;
                }
                let serving = endpoints_without(&declared, &observed, None).len();
                let asked = observed.views.len();
                for finding in judge(&declared, &observed) {
                    let all = finding.notes.join("\n");
                    let what = || format!("{} {mask} {node} {replace}: {finding:#?}", case.name);
                    assert!(!all.contains("ENDPOINTS=''"), "{}", what());
                    let destructive = destroys(&finding);
                    printed += usize::from(destructive);
                    // A majority of those that were asked serves, and at least one serves in any case.
                    assert!(!destructive || serving > 0, "{}", what());
                    assert!(!destructive || asked < 3 || serving >= 2, "{}", what());
                }
            }
        }
    }
    assert!(printed > 100, "the table prints such commands: {printed}");
}

/// What check prints for one node is a step of what `fitout registry members` plans for all, seen from the same.
#[test]
fn check_and_members_never_disagree() {
    use crate::live::members::plan::{Options, Place, Plan, Seen, Step, Wanted, plan};
    use crate::live::members::votes::stand;

    fn planned(declared: &Declared, observed: &Observed, live: &[Member], replace: &[Id]) -> Plan {
        let place =
            |(node, url): (&String, &String)| (node.clone(), Place { peer_url: url.clone(), site: String::new() });
        let wanted = Wanted { nodes: declared.members.iter().map(place).collect() };
        let seen = |m: &Member| {
            let stand = stand(declared.cluster, observed, live, m);
            Seen { member: m.clone(), stand, leads: false, version: None }
        };
        let seen: Vec<Seen> = live.iter().map(seen).collect();
        plan(&wanted, &seen, &Options { replace: replace.iter().copied().collect(), ..Options::default() })
    }

    let (mut removals, mut additions, mut silent) = (0, 0, 0);
    for case in cases() {
        for mask in 0..8_usize {
            for (node, _) in NODES {
                let (mut declared, mut observed) = (declared(node, Part::Voter), healthy());
                (case.change)(&mut declared, &mut observed);
                declared.replace = true;
                for (n, view) in observed.views.iter_mut().enumerate() {
                    if mask >> n & 1 == 1 {
                        view.answer = Err(Trouble::new(Kind::Silent, "silence"));
                    }
                }
                let Some(live) = members::reference(&declared, &observed) else { continue };
                let found = judge(&declared, &observed);
                // A corrupt member is removed for a reason that is not in the list.
                let text: String = found
                    .iter()
                    .filter(|f| f.code != alarms::CORRUPT.code)
                    .flat_map(|f| f.notes.iter().map(move |n| format!("{n}\n")))
                    .collect();
                let what = || format!("{} {mask} {node}: {found:#?}", case.name);
                let ids = text.split("`etcdctl member remove ").skip(1).filter_map(|t| t.get(..16)?.parse::<Id>().ok());
                let ids: Vec<Id> = ids.collect();
                let plan = planned(&declared, &observed, &live, &ids);
                if plan.blocked.as_ref().is_some_and(|b| b.step.is_none()) {
                    silent += 1;
                    assert!(!text.contains("etcdctl member "), "nothing can be changed: {}", what());
                    continue;
                }
                for id in ids {
                    removals += 1;
                    let there = plan.steps.iter().any(|p| matches!(p.step, Step::Remove { id: it, .. } if it == id));
                    assert!(there || plan.blocked.is_some(), "{id}: {plan:#?}\n{}", what());
                }
                let node = declared.node.clone();
                if text.contains(&format!("`etcdctl member add {node} --learner"))
                    && declared.members.contains_key(&node)
                {
                    additions += 1;
                    let there = plan.steps.iter().any(|p| matches!(&p.step, Step::Add { node: it, .. } if *it == node));
                    assert!(there || plan.blocked.is_some(), "{plan:#?}\n{}", what());
                }
            }
        }
    }
    assert!(removals > 100 && additions > 100 && silent > 100, "{removals} {additions} {silent}");
}
