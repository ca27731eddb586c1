//! The list by which a node joins: what `fitout build --join` puts into its image.

use super::command::initial_cluster;
use super::look::Look;
use super::plan::Wanted;
use super::votes::at;
use crate::finding::Failure;

/// `initial-cluster` of a declared node, from the living list.
///
/// # Errors
/// When it is not in the list, with the command that puts it there.
pub fn list(node: &str, wanted: &Wanted, look: &Look) -> Result<Vec<(String, String)>, Failure> {
    let Some(place) = wanted.nodes.get(node) else {
        return Err(Failure::new(format!("{node} is no declared voter")));
    };
    let (peer, living) = (&place.peer_url, look.list());
    if at(&living, peer).is_some() {
        return Ok(initial_cluster((node, peer), &living, None, |url| wanted.node_of(url)));
    }
    let moved = look.seen.iter().zip(look.nodes(wanted)).find(|(_, is)| *is == Some(node));
    Err(match moved {
        Some((seen, _)) => Failure::new(format!(
            "{node} is at {} in the member list, and declared at {peer}",
            seen.member.peer_urls.join(", ")
        ))
        .help("the list is changed first: `fitout registry members` says the steps; then build again"),
        None => Failure::new(format!("{node} is not in the member list yet: no member has the peer URL {peer}")).help(
            format!(
                "it is added first, and dead members are removed before: `fitout registry members` says the steps, `--apply` \
                 takes them; by hand: `etcdctl member add {node} --learner --peer-urls={peer}`; then build again"
            ),
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::plan::model::{all_wanted, healthy};
    use super::*;

    #[test]
    fn a_node_joins_the_list_that_has_it() {
        let look = |n| Look { seen: healthy(n).members, answers: BTreeMap::new() };
        let wanted = all_wanted(3);
        let names = |list: Vec<(String, String)>| list.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(list("n2", &wanted, &look(3)).unwrap()), ["n0", "n1", "n2"]);
        let failure = list("n2", &wanted, &look(2)).unwrap_err();
        assert!(failure.message.starts_with("n2 is not in the member list yet"), "{failure}");
        assert!(failure.help.unwrap().contains("etcdctl member add n2 --learner --peer-urls=https://10.0.0.2:2380"));
        let mut moved = look(3);
        moved.seen[2].member.peer_urls = vec!["https://10.9.9.9:2380".into()];
        let failure = list("n2", &wanted, &moved).unwrap_err();
        assert_eq!(
            failure.message,
            "n2 is at https://10.9.9.9:2380 in the member list, and declared at https://10.0.0.2:2380"
        );
    }
}
