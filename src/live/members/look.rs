//! Looking: the member list and how each member stands, asked of all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::plan::{Place, Seen, Wanted, assign, label};
use super::votes::{answers_of, stand, unstarted};
use crate::declaration::Mesh;
use crate::etcd::birth::Birth;
use crate::etcd::ids::{Id, LONE_DEFAULT_CLUSTER};
use crate::etcd::urls::peer_url;
use crate::etcd::versions::Version;
use crate::finding::Failure;
use crate::live::credentials::Credentials;
use crate::live::endpoint::Endpoint;
use crate::live::observe::{Answer, Member, Observed, answers};

/// So many entries behind the leader a learner may be and count as in sync. (etcd asks for nine tenths of the leader's
/// log, `etcdserver/server.go` isLearnerReady, which an almost empty log gives away.)
pub const IN_SYNC: u64 = 100;

/// Where to look and by what.
#[derive(Debug)]
pub struct Registry<'a> {
    /// What the declaration wants.
    pub wanted: Wanted,
    /// The registry that is meant.
    pub birth: Birth,
    /// Endpoints to begin with; the members' own are added.
    pub endpoints: Vec<Endpoint>,
    /// What is shown.
    pub credentials: &'a Credentials,
    /// How long one look may take.
    pub timeout: Duration,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The members, for the planner.
    pub seen: Vec<Seen>,
    /// What each says of itself, by id.
    pub answers: BTreeMap<Id, (Endpoint, Answer)>,
}

impl Wanted {
    /// The nodes of a mesh on which etcd runs.
    pub fn of(mesh: &Mesh) -> Wanted {
        let place = |node: &crate::declaration::Node| Place {
            peer_url: peer_url(node.address.value),
            site: node.site.value.clone(),
        };
        Wanted { nodes: mesh.registry_nodes().map(|node| (node.name.value.clone(), place(node))).collect() }
    }

    /// The node that is declared at a peer URL.
    pub fn node_of(&self, url: &str) -> Option<&str> {
        self.nodes.iter().find(|(_, place)| place.peer_url == url).map(|(node, _)| node.as_str())
    }
}

impl Look {
    /// The member list.
    pub fn list(&self) -> Vec<Member> {
        self.seen.iter().map(|seen| seen.member.clone()).collect()
    }

    /// By how many entries a member is behind the leader; `None` when one of them is not heard.
    pub fn behind(&self, id: Id) -> Option<u64> {
        let leader = self.seen.iter().find(|seen| seen.leads).and_then(|seen| self.answers.get(&seen.member.id))?;
        let (_, one) = self.answers.get(&id)?;
        Some(leader.1.raft_index.saturating_sub(one.applied_index.min(one.raft_index)))
    }

    /// The declared node that each member is.
    pub fn nodes<'a>(&self, wanted: &'a Wanted) -> Vec<Option<&'a str>> {
        assign(wanted, &self.seen)
    }

    /// The ids of the members that run as these nodes and are to be replaced. One that was never started has nothing to
    /// lose, and a learner that runs is what a replacement has left: neither is replaced again.
    ///
    /// # Errors
    /// When a name is no declared voter's.
    pub fn to_replace(&self, wanted: &Wanted, names: &[String]) -> Result<BTreeSet<Id>, Failure> {
        if let Some(name) = names.iter().find(|name| !wanted.nodes.contains_key(*name)) {
            let all: Vec<&str> = wanted.nodes.keys().map(String::as_str).collect();
            return Err(Failure::new(format!("`{name}` is no declared voter, so nothing takes its place")).help(
                format!(
                    "declared are: {}; a member that is not declared is removed without being named",
                    all.join(", ")
                ),
            ));
        }
        let nodes = self.nodes(wanted);
        let named = self.seen.iter().zip(nodes).filter(|(_, node)| node.is_some_and(|n| names.iter().any(|x| x == n)));
        let waits = |seen: &Seen| unstarted(&seen.member) || (seen.member.learner && seen.stand.counts());
        Ok(named.filter(|(seen, _)| !waits(seen)).map(|(seen, _)| seen.member.id).collect())
    }
}

impl Registry<'_> {
    /// Asks all endpoints, and then those of the members that the list names beside them.
    ///
    /// # Errors
    /// When nobody answers, or none of those who do belongs to the registry that is meant, or has a list.
    pub fn look(&self) -> Result<Look, Failure> {
        let mut asked = self.endpoints.clone();
        let mut observed = answers(&asked, self.credentials, self.timeout);
        let mut list = self.list(&observed)?;
        let more: Vec<Endpoint> = list.1.iter().flat_map(|m| self.own(m)).filter(|e| !asked.contains(e)).collect();
        if !more.is_empty() {
            asked.extend(more.iter().cloned());
            observed.views.extend(answers(&more, self.credentials, self.timeout).views);
            list = self.list(&observed)?;
        }
        let (leader, list) = list;
        let cluster = self.cluster();
        let answers: BTreeMap<Id, (Endpoint, Answer)> = observed
            .views
            .iter()
            .filter_map(|view| Some((view.endpoint.clone(), view.answer.as_ref().ok()?.clone())))
            .filter(|(_, answer)| cluster == Some(answer.cluster))
            .map(|(endpoint, answer)| (answer.member, (endpoint, answer)))
            .collect();
        let seen = list.iter().map(|member| Seen {
            member: member.clone(),
            stand: stand(cluster, &observed, &list, member),
            leads: leader == Some(member.id),
            version: answers.get(&member.id).and_then(|(_, answer)| Version::parse(&answer.version)),
        });
        Ok(Look { seen: seen.collect(), answers })
    }

    fn cluster(&self) -> Option<Id> {
        self.birth.cluster_id.parse().ok()
    }

    /// Where a member should answer: beside its peer URL, or, when it is not declared, where it says.
    fn own(&self, member: &Member) -> Vec<Endpoint> {
        let declared = member.peer_urls.iter().any(|url| self.wanted.node_of(url).is_some());
        let said = member.client_urls.iter().filter(|_| !declared).filter_map(|url| url.parse::<Endpoint>().ok());
        let said: Vec<Endpoint> = said.filter(|e| !e.address().is_some_and(|a| a.is_unspecified())).collect();
        let beside = member.peer_urls.iter().filter_map(|url| Endpoint::of_peer_url(url).ok());
        if said.is_empty() { beside.collect() } else { said }
    }

    /// The leader and the list as it has it; without a leader the list of who knows most.
    fn list(&self, observed: &Observed) -> Result<(Option<Id>, Vec<Member>), Failure> {
        let cluster = self.cluster();
        let mut all: Vec<&Answer> =
            answers_of(cluster, observed).map(|(_, answer)| answer).filter(|a| a.members.is_ok()).collect();
        all.sort_by_key(|a| (a.leader == Some(a.member), a.leader.is_some(), a.applied_index));
        let Some((newest, list)) = all.last().and_then(|a| Some((*a, a.members.as_ref().ok()?))) else {
            return Err(self.nobody(observed));
        };
        let mut list = list.clone();
        list.sort_by(|a, b| a.peer_urls.cmp(&b.peer_urls));
        // Who is no member any more may still lead for a moment.
        let leader = newest.leader.filter(|id| list.iter().any(|m| m.id == *id));
        Ok((leader, list))
    }

    fn nobody(&self, observed: &Observed) -> Failure {
        let (mut lines, mut foreign) = (String::new(), None);
        for view in &observed.views {
            let text = match &view.answer {
                Err(trouble) => trouble.reason.clone(),
                Ok(answer) if Some(answer.cluster) == self.cluster() => match &answer.members {
                    Err(trouble) => format!("no member list: {}", trouble.reason),
                    Ok(list) => format!("{} members", list.len()),
                },
                Ok(answer) => {
                    foreign = Some(answer.cluster);
                    format!("belongs to the registry {}", answer.cluster)
                }
            };
            lines.push_str(&format!("\n  {}: {text}", view.endpoint));
        }
        let silent = observed.views.iter().all(|v| v.answer.as_ref().is_err_and(|t| t.kind.is_silence()));
        let (what, help) = match foreign {
            Some(id) => (
                format!("no member of this mesh's registry ({}) answers", self.birth.cluster_id),
                if id == LONE_DEFAULT_CLUSTER {
                    "that is the id of a node that was started alone with etcd's defaults; `fitout check` says more"
                } else {
                    "is it another mesh's, or of another generation? fitout.lock holds the birth record; `fitout check` says more"
                },
            ),
            None if silent => (
                format!("no member of the registry answers within {} s", self.timeout.as_secs_f32()),
                "is this host in the mesh's network, and was the registry started? `systemctl enable --now \
                 mesh-registry.target` on each voter",
            ),
            None => (
                "no member of the registry can be used".to_owned(),
                "`fitout check` of an image says what is wrong with each endpoint",
            ),
        };
        Failure::new(format!("{what}:{lines}")).help(help)
    }
}

/// `lis1 (8211f1d0f64f3269)`, with the node when that is another word.
pub fn named(seen: &Seen, node: Option<&str>) -> String {
    match node {
        Some(node) if node != seen.member.name => format!("{node}: {}", label(&seen.member)),
        _ => label(&seen.member),
    }
}
