//! Who votes, where, and what is left when a site is lost.

use std::collections::BTreeMap;

use super::model::{Mesh, Part};

/// Votes after the loss of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VotesLeft {
    /// Votes that are left.
    pub left: usize,
    /// Votes that make a quorum; always of all voters, lost or not.
    pub needed: usize,
    /// All votes.
    pub total: usize,
}

impl VotesLeft {
    /// True when what is left can still elect and write.
    pub fn has_quorum(self) -> bool {
        self.left >= self.needed
    }
}

/// A majority of `votes`.
pub fn quorum_of(votes: usize) -> usize {
    votes / 2 + 1
}

impl Mesh {
    /// Votes per site that has any, by site: voters and arbiter, or the control plane.
    pub fn votes_by_site(&self) -> BTreeMap<&str, usize> {
        let mut votes = BTreeMap::new();
        for node in self.registry_nodes() {
            *votes.entry(node.site.value.as_str()).or_insert(0) += 1;
        }
        votes
    }

    /// What is left when a whole site is lost.
    pub fn votes_left_without(&self, site: &str) -> VotesLeft {
        let total = self.registry_nodes().count();
        let lost = self.registry_nodes().filter(|n| n.site.value == site).count();
        VotesLeft { left: total - lost, needed: quorum_of(total), total }
    }

    /// The arbiter, when there is one.
    pub fn arbiters(&self) -> impl Iterator<Item = &super::model::Node> {
        self.nodes.values().filter(|n| self.part_of(n) == Part::Arbiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::testing;

    #[test]
    fn each_site_of_three_may_be_lost() {
        let mesh = testing::mesh();
        assert_eq!(mesh.votes_by_site().into_iter().collect::<Vec<_>>(), [("lisbon", 1), ("madrid", 1), ("porto", 1)]);
        for site in ["lisbon", "porto", "madrid"] {
            let votes = mesh.votes_left_without(site);
            assert_eq!((votes.left, votes.needed, votes.total), (2, 2, 3));
            assert!(votes.has_quorum());
        }
        assert_eq!(mesh.votes_left_without("nowhere").left, 3);
        assert_eq!([1, 2, 3, 4, 5].map(quorum_of), [1, 2, 2, 3, 3]);
    }
}
