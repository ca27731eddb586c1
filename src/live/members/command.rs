//! The commands by which members come and go, one place for all that print them.

use crate::etcd::birth;
use crate::etcd::ids::Id;
use crate::live::endpoint::Endpoint;
use crate::live::etcdctl::{Step, name, url};
use crate::live::observe::Member;

/// Starts the registry on a node.
pub const START: &str = "systemctl enable --now mesh-registry.target";
/// Stops it.
pub const STOP: &str = "systemctl stop mesh-registry.target";
/// Data of an earlier life must not come back: the living ones refuse a member that was removed, for ever.
pub const EMPTY: &str = "rm -rf /var/lib/etcd/member";

/// Takes a member out of the list.
pub fn remove(id: Id) -> Step {
    Step::here(format!("etcdctl member remove {id}"))
}

/// Gives a member another peer URL.
pub fn update(id: Id, peer: &str) -> Step {
    Step::here(format!("etcdctl member update {id} --peer-urls={peer}"))
}

/// Puts a node into the list.
pub fn add(node: &str, peer: &str, learner: bool) -> Step {
    let learner = if learner { " --learner" } else { "" };
    Step::here(format!("etcdctl member add {node}{learner} --peer-urls={peer}"))
}

/// Promotes the learner with this peer URL, once it has caught up; tried for a minute. A learner answers on its client
/// port from when it has its place in the log (etcd `embed/etcd.go` serves after ReadyNotify), and that is waited for:
/// etcd before 3.4.24 and 3.5.7 may promote one that was never started (etcd#15096), which costs a vote at once. (By the
/// variable: etcdctl refuses `--endpoints` beside it.)
pub fn promoted(peer: &str) -> Step {
    let client = Endpoint::of_peer_url(peer).map_or_else(|_| peer.to_owned(), |endpoint| endpoint.to_string());
    let id = format!("$(etcdctl member list | grep -F '{peer}' | cut -d, -f1)");
    Step::here(format!(
        "for n in $(seq 60); do ETCDCTL_ENDPOINTS={client} etcdctl endpoint status && etcdctl member promote \"{id}\" && break; \
         sleep 1; done"
    ))
}

/// `initial-cluster` of a node that joins: exactly the living list with this node in it (etcd `membership/cluster.go`
/// ValidateClusterAndAssignIDs compares peer URLs, not names). `gone` is a member that is removed before. Members that
/// were never started have no name: `node_of` says whose a peer URL is.
pub fn initial_cluster<'a>(
    (node, peer): (&str, &str),
    live: &'a [Member],
    gone: Option<Id>,
    node_of: impl Fn(&str) -> Option<&'a str>,
) -> Vec<(String, String)> {
    let mut members = vec![(node.to_owned(), peer.to_owned())];
    for member in live.iter().filter(|m| Some(m.id) != gone && m.peer_urls.iter().all(|u| u != peer)) {
        let urls: Vec<String> = member.peer_urls.iter().filter_map(|u| url(u)).collect();
        let known = urls.iter().find_map(|u| node_of(u)).or_else(|| name(&member.name)).map(str::to_owned);
        // One name twice would be one member with two URLs.
        let free = known.filter(|name| members.iter().all(|(taken, _)| taken != name));
        let name = free.unwrap_or_else(|| format!("member-{}", member.id));
        members.extend(urls.into_iter().map(|url| (name.clone(), url)));
    }
    members.sort();
    members
}

/// The two lines of etcd.yaml with which a node joins; they are read while the data directory is empty. For an image that
/// was built as `new`: one of `fitout build --join` has them.
pub fn existing(node: &str, initial_cluster: &[(String, String)]) -> Step {
    let command = format!(
        "sed -i -e 's|^initial-cluster-state:.*|initial-cluster-state: \"existing\"|' \
         -e 's|^initial-cluster:.*|initial-cluster: \"{}\"|' /etc/etcd/etcd.yaml",
        birth::initial_cluster(initial_cluster.iter().map(|(name, url)| (name, url)))
    );
    Step::on(node, "before its first start", command)
}

/// Empties a node's data directory.
pub fn empty(node: &str) -> Step {
    Step::on(node, "whose old data must not come back", EMPTY)
}

/// Starts a node.
pub fn start(node: &str) -> Step {
    Step::on(node, "", START)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::birth::{Birth, Entrance};

    fn member(name: &str, id: u64, urls: &[&str]) -> Member {
        let peer_urls = urls.iter().map(|u| format!("https://10.0.0.{u}:2380")).collect();
        Member { id: Id(id), name: name.into(), peer_urls, client_urls: vec![], learner: false }
    }

    #[test]
    fn the_initial_cluster_is_the_living_list() {
        let node_of = |url: &str| match url {
            "https://10.0.0.1:2380" => Some("a"),
            "https://10.0.0.2:2380" => Some("b"),
            _ => None,
        };
        //   living                                                  what joins  gone  list
        type Row<'a> = (&'a [Member], (&'a str, &'a str), Option<Id>, &'a str);
        let rows: &[Row<'_>] = &[
            (&[member("a", 1, &["1"]), member("", 2, &["2"])], ("b", "2"), None, "a=1,b=2"),
            (&[member("a", 1, &["1"]), member("", 2, &["2"])], ("c", "3"), None, "a=1,b=2,c=3"),
            // Not declared: by its name; without one, or with one that is taken, or is no name: by its id.
            (&[member("x", 9, &["9"])], ("c", "3"), None, "c=3,x=9"),
            (&[member("", 9, &["9"])], ("c", "3"), None, "c=3,member-0000000000000009=9"),
            (&[member("c", 9, &["9"])], ("c", "3"), None, "c=3,member-0000000000000009=9"),
            (&[member("x'; y", 9, &["9"])], ("c", "3"), None, "c=3,member-0000000000000009=9"),
            (&[member("x", 9, &["8", "9"])], ("c", "3"), None, "c=3,x=8,x=9"),
            (&[member("x", 9, &["9"]), member("a", 1, &["1"])], ("c", "3"), Some(Id(9)), "a=1,c=3"),
        ];
        for (live, (node, at), gone, want) in rows {
            let peer = format!("https://10.0.0.{at}:2380");
            let list = Entrance::Joins(initial_cluster((node, &peer), live, *gone, node_of));
            let list = list.initial_cluster(&Birth::of(1, String::new(), [].into()));
            assert_eq!(list.replace("https://10.0.0.", "").replace(":2380", ""), *want);
        }
    }
}
