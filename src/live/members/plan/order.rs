//! The order of the steps. The list is followed as it will be, so that each step is judged by the votes of its moment.

use super::{
    Blocked, Options, Place, Plan, Planned, Removal, Seen, Start, Step, Wanted, assign, forgets_promotion, label,
};
use crate::etcd::ids::Id;
use crate::etcd::versions::Version;
use crate::live::members::votes::{Stand, Votes, unstarted};

/// A member as it will be.
#[derive(Debug, Clone)]
struct One {
    id: Option<Id>,
    who: String,
    name: String,
    node: Option<String>,
    /// It is where it is declared.
    at_home: bool,
    urls: String,
    learner: bool,
    started: bool,
    stand: Stand,
    leads: bool,
    replaced: bool,
}

impl One {
    fn up(&self) -> bool {
        self.stand.counts()
    }
}

struct Planner<'a> {
    wanted: &'a Wanted,
    options: &'a Options,
    forgets: Option<Version>,
    list: Vec<One>,
    steps: Vec<Planned>,
}

type Done = Result<(), Box<Blocked>>;

pub(super) fn plan(wanted: &Wanted, seen: &[Seen], options: &Options) -> Plan {
    let nodes = assign(wanted, seen);
    let one = |(s, node): (&Seen, &Option<&str>)| {
        let home = node.and_then(|node| wanted.nodes.get(node));
        One {
            id: Some(s.member.id),
            who: label(&s.member),
            name: s.member.name.clone(),
            node: node.map(str::to_owned),
            at_home: home.is_some_and(|home| s.member.peer_urls.contains(&home.peer_url)),
            urls: s.member.peer_urls.join(", "),
            learner: s.member.learner,
            started: !unstarted(&s.member),
            stand: s.stand,
            leads: s.leads,
            replaced: options.replace.contains(&s.member.id),
        }
    };
    let mut list: Vec<One> = seen.iter().zip(&nodes).map(one).collect();
    // In the order in which people read them; removals take them in this order too.
    list.sort_by(|a, b| (&a.node, &a.name, a.id).cmp(&(&b.node, &b.name, b.id)));
    let mut planner = Planner { wanted, options, forgets: forgets_promotion(seen), list, steps: Vec::new() };
    let blocked = planner.run().err().map(|blocked| *blocked);
    Plan { steps: planner.steps, blocked }
}

impl Planner<'_> {
    fn run(&mut self) -> Done {
        self.quorum_is_there()?;
        self.remove_all(Removal::Learner, |one| one.learner && (!one.at_home || one.replaced))?;
        self.remove_all(Removal::Dead, |one| one.node.is_none() && !one.up())?;
        self.remove_all(Removal::Replaced, |one| one.replaced && !one.up())?;
        self.bring_back()?;
        self.start_first()?;
        self.promote_learners()?;
        self.move_all()?;
        self.add_missing()?;
        self.replace_living()?;
        self.remove_all(Removal::Undeclared, |one| one.node.is_none())?;
        self.rename()
    }

    fn votes(&self) -> Votes {
        let voters = || self.list.iter().filter(|one| !one.learner);
        Votes { all: voters().count(), up: voters().filter(|one| one.up()).count() }
    }

    fn push(&mut self, step: Step, after: Votes, warning: Option<String>) {
        let before = self.votes();
        self.steps.push(Planned { step, before, after, warning });
    }

    /// Without a majority nothing can be changed, and nothing should be: what is left may be the only copy.
    fn quorum_is_there(&self) -> Done {
        let Some(why) = self.votes().obstacle() else { return Ok(()) };
        let away: Vec<&str> =
            self.list.iter().filter(|one| !one.learner && !one.up()).map(|one| one.who.as_str()).collect();
        let help = format!(
            "bring back {} with its data; when so many data directories are lost that no majority can come back, the \
             registry is restored from a backup",
            away.join(" or ")
        );
        Err(Box::new(Blocked { step: None, why, help }))
    }

    fn remove_all(&mut self, why: Removal, which: impl Fn(&One) -> bool) -> Done {
        let mut all: Vec<One> = self.list.iter().filter(|one| which(one)).cloned().collect();
        // The leader last: each other removal goes without an election.
        all.sort_by_key(|one| one.leads);
        all.iter().try_for_each(|one| self.remove(one, why))
    }

    fn remove(&mut self, one: &One, why: Removal) -> Done {
        // What is planned is in the list: only what was added by this plan has no id, and that is never removed.
        let Some(id) = one.id else { return Ok(()) };
        let step = Step::Remove { id, who: one.who.clone(), node: one.node.clone(), why };
        let after = if one.learner { self.votes() } else { self.votes().without(one.up()) };
        if let Some(why) = after.obstacle_to_removal() {
            let help = if after.all == 0 {
                "it is the only voter: add another one first, or restore the registry from a backup"
            } else {
                "look again when that is mended"
            };
            return Err(Box::new(Blocked { step: Some(step), why, help: help.to_owned() }));
        }
        self.push(step, after, None);
        self.list.retain(|other| other.id != one.id);
        Ok(())
    }

    fn start(&mut self, node: &str, how: Start) {
        let after = match self.list.iter().find(|one| one.node.as_deref() == Some(node)) {
            Some(one) if !one.learner && !one.up() => self.votes().back(),
            _ => self.votes(),
        };
        self.push(Step::Start { node: node.to_owned(), how }, after, None);
        for one in self.list.iter_mut().filter(|one| one.node.as_deref() == Some(node)) {
            one.started = true;
            one.stand = Stand::Serves;
            node.clone_into(&mut one.name);
        }
    }

    fn nodes(&self, which: impl Fn(&One) -> bool) -> Vec<One> {
        self.list.iter().filter(|one| one.node.is_some() && which(one)).cloned().collect()
    }

    /// What is declared and was started, and takes no part now.
    fn bring_back(&mut self) -> Done {
        for one in self.nodes(|one| one.at_home && one.started && !one.up()) {
            self.start(one.node.as_deref().unwrap_or_default(), Start::Back(one.stand));
        }
        Ok(())
    }

    fn first(&self, one: &One) -> Start {
        let born = one.node.as_ref().and_then(|node| self.options.born.get(node));
        if born.is_some() && born.copied() == one.id { Start::Born } else { Start::Joins }
    }

    /// Voters that were never started: each counts, and gives no vote.
    fn start_first(&mut self) -> Done {
        for one in self.nodes(|one| one.at_home && !one.learner && !one.started && !one.up()) {
            let how = self.first(&one);
            self.start(one.node.as_deref().unwrap_or_default(), how);
        }
        Ok(())
    }

    fn promote_learners(&mut self) -> Done {
        for one in self.nodes(|one| one.learner) {
            let node = one.node.clone().unwrap_or_default();
            if !one.up() {
                let how = self.first(&one);
                self.start(&node, how);
            }
            self.promote(&node, one.id);
        }
        Ok(())
    }

    fn promote(&mut self, node: &str, id: Option<Id>) {
        let Some(place) = self.wanted.nodes.get(node) else { return };
        let after = self.votes().with(true);
        let step = Step::Promote { node: node.to_owned(), peer_url: place.peer_url.clone(), id };
        let warning = self.forgets.map(|version| self.warning(version, id));
        self.push(step, after, warning);
        for one in self.list.iter_mut().filter(|one| one.node.as_deref() == Some(node)) {
            one.learner = false;
        }
    }

    /// What a promotion costs on these versions, and whether there is another way.
    fn warning(&self, version: Version, added: Option<Id>) -> String {
        let what = format!(
            "etcd {version} does not write the promotion to the membership that etcd 3.6 reads (etcd#19557; 3.5.1 to \
             3.5.19), so an upgrade to 3.6 may end in `too many learner members in cluster`: run the newest 3.5 on all \
             voters before"
        );
        let other = match added {
            _ if !self.votes().with(false).hold() => "there is no other way from here: added as a voter at once, it would stop \
                 all writes until it has started"
                .to_owned(),
            Some(id) => format!(
                "to have it as a voter at once instead, take it out by hand (`etcdctl member remove {id}`) and begin anew \
                 with `--no-learner`"
            ),
            None => "`--no-learner` adds it as a voter at once instead: it counts before it has started, so one loss less is \
                 borne until then"
                .to_owned(),
        };
        format!("{what}; {other}")
    }

    /// Members that are declared at another address.
    fn move_all(&mut self) -> Done {
        for one in self.nodes(|one| !one.at_home && !one.replaced) {
            let (Some(id), Some(node)) = (one.id, one.node.clone()) else { continue };
            let Some(place) = self.wanted.nodes.get(&node) else { continue };
            let step = Step::Update { node: node.clone(), id, from: one.urls.clone(), to: place.peer_url.clone() };
            // A lone voter needs no one to reach it; any other is cut off until it has the new address.
            let alone = self.votes().all == 1;
            let after = if one.up() && !alone { self.votes().away() } else { self.votes() };
            if !after.hold() {
                let why = format!(
                    "until {node} runs at its new address {} of {} voters are left, {} are needed",
                    after.up,
                    after.all,
                    after.needed()
                );
                let help = "bring back what is away first, or declare it where it is";
                return Err(Box::new(Blocked { step: Some(step), why, help: help.to_owned() }));
            }
            self.push(step, after, None);
            for it in self.list.iter_mut().filter(|it| it.id == one.id) {
                it.at_home = true;
                if !alone {
                    it.stand = if it.started { Stand::Silent } else { Stand::Unstarted };
                }
            }
            let how = if one.started { Start::Moved } else { Start::Joins };
            self.start(&node, how);
        }
        Ok(())
    }

    fn add_missing(&mut self) -> Done {
        let there = |node: &String| self.list.iter().any(|one| one.node.as_ref() == Some(node));
        let missing: Vec<(String, Place)> =
            self.wanted.nodes.iter().filter(|(node, _)| !there(node)).map(|(n, p)| (n.clone(), p.clone())).collect();
        missing.iter().try_for_each(|(node, place)| self.add(node, place))
    }

    fn add(&mut self, node: &str, place: &Place) -> Done {
        let learner = self.options.learner;
        let step = Step::Add { node: node.to_owned(), peer_url: place.peer_url.clone(), learner };
        let after = if learner { self.votes() } else { self.votes().with(false) };
        if !after.hold() {
            let why = format!(
                "as a voter that has not started it would count at once: {} of {} voters, {} are needed, and there \
                 would be no writes until it has started",
                after.up,
                after.all,
                after.needed()
            );
            let help = "add it as a learner: without `--no-learner`";
            return Err(Box::new(Blocked { step: Some(step), why, help: help.to_owned() }));
        }
        self.push(step, after, None);
        self.list.push(One {
            id: None,
            who: node.to_owned(),
            name: String::new(),
            node: Some(node.to_owned()),
            at_home: true,
            urls: place.peer_url.clone(),
            learner,
            started: false,
            stand: Stand::Unstarted,
            leads: false,
            replaced: false,
        });
        self.start(node, Start::Joins);
        if learner {
            self.promote(node, None);
        }
        Ok(())
    }

    /// Members that live and are replaced all the same, one after the other.
    fn replace_living(&mut self) -> Done {
        for one in self.nodes(|one| one.replaced) {
            let node = one.node.clone().unwrap_or_default();
            self.remove(&one, Removal::Replaced)?;
            if let Some(place) = self.wanted.nodes.get(&node) {
                self.add(&node, &place.clone())?;
            }
        }
        Ok(())
    }

    fn rename(&mut self) -> Done {
        for one in self.nodes(|one| one.started && !one.name.is_empty() && one.node.as_ref() != Some(&one.name)) {
            let node = one.node.clone().unwrap_or_default();
            let step = Step::Rename { node: node.clone(), is: one.name.clone() };
            let during = self.votes().away();
            if self.votes().all > 1 && !during.hold() {
                let why = format!(
                    "while {node} starts again {} of {} voters are left, {} are needed",
                    during.up,
                    during.all,
                    during.needed()
                );
                return Err(Box::new(Blocked {
                    step: Some(step),
                    why,
                    help: "bring back what is away first".to_owned(),
                }));
            }
            let after = self.votes();
            self.push(step, after, None);
        }
        Ok(())
    }
}
