//! Votes of several nodes about one unit, and the verdict. Data only: which nodes are asked, and
//! what happens to a liar, is in `checks`. How users' kernels are judged is in
//! `state::kernel_votes`.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::ids::{BlobHash, Epoch, NodeId};

/// Most results of one unit that are compared. After that, the check is given up.
pub(crate) const VOTES_MAX: usize = 6;

/// A result that was compared or is to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Vote {
    pub(crate) node: NodeId,
    pub(crate) epoch: Epoch,
    pub(crate) hash: BlobHash,
}

/// A committed unit that must be rendered again before its frame is resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Check {
    /// The result that was committed.
    pub(in crate::state) committed: Vote,
    /// Results that differ from it.
    pub(in crate::state) others: Vec<Vote>,
    /// Leases below this one may have been heard before the unit was taken back.
    after: Epoch,
}

/// Outcome of the votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) truth: BlobHash,
    /// Nodes that voted for another result.
    pub(crate) guilty: BTreeSet<NodeId>,
}

impl Check {
    /// Returns the committed result.
    pub(crate) fn committed(&self) -> &Vote {
        &self.committed
    }

    pub(crate) fn new(committed: Vote) -> Self {
        Self { committed, others: Vec::new(), after: Epoch(0) }
    }

    /// Creates a check of a unit that was taken back and committed again, by a lease that may be
    /// older than those that were heard about it before: they are below `after`.
    pub(crate) fn new_after(committed: Vote, after: Epoch) -> Self {
        Self { after, ..Self::new(committed) }
    }

    /// Adds the vote of a node.
    pub(crate) fn add(&mut self, vote: Vote) {
        self.others.push(vote);
    }

    /// Removes a suspect's votes about another node's result.
    pub(crate) fn strike(&mut self, node: NodeId) {
        self.others.retain(|other| other.node != node);
    }

    pub(in crate::state) fn all(&self) -> impl Iterator<Item = &Vote> {
        std::iter::once(&self.committed).chain(&self.others)
    }

    /// Returns the number of votes of a node.
    pub(crate) fn heard(&self, node: NodeId) -> usize {
        self.all().filter(|vote| vote.node == node).count()
    }

    /// Returns an epoch up to which every lease may have been heard: that of the newest vote, or
    /// the one below which leases were void when the unit was taken back.
    pub(crate) fn newest(&self) -> Epoch {
        self.all().map(|vote| vote.epoch).max().unwrap_or_default().max(self.after)
    }

    pub(crate) fn is_disputed(&self) -> bool {
        !self.others.is_empty()
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.all().count() >= VOTES_MAX
    }

    /// Returns the nodes that have voted.
    pub(crate) fn nodes(&self) -> BTreeSet<NodeId> {
        self.all().map(|vote| vote.node).collect()
    }

    /// Decides with one more vote. A result is true if at least two nodes vote for it that do not
    /// contradict themselves, and more than for any other. Rendering is deterministic, so a node
    /// that contradicts itself is wrong, and the vote of the only other one decides.
    pub(crate) fn verdict(&self, last: &Vote) -> Option<Verdict> {
        let mut said: BTreeMap<NodeId, BTreeSet<BlobHash>> = BTreeMap::new();
        for vote in self.all().chain([last]) {
            said.entry(vote.node).or_default().insert(vote.hash);
        }
        let mut votes: BTreeMap<BlobHash, u32> = BTreeMap::new();
        for hashes in said.values().filter(|hashes| hashes.len() == 1) {
            hashes.iter().for_each(|hash| *votes.entry(*hash).or_default() += 1);
        }
        let (truth, most) =
            votes.iter().max_by_key(|(_, count)| **count).map(|(hash, most)| (*hash, *most))?;
        let alone = votes.values().filter(|count| **count == most).count() == 1;
        let contradicted = said.values().any(|hashes| hashes.len() > 1);
        if !alone || (most < 2 && !(contradicted && votes.len() == 1)) {
            return None;
        }
        let lies = |(node, hashes): (&NodeId, &BTreeSet<BlobHash>)| {
            (hashes.len() > 1 || !hashes.contains(&truth)).then_some(*node)
        };
        Some(Verdict { truth, guilty: said.iter().filter_map(lies).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vote of a node by its number, which is its epoch too.
    fn said(node: u128, hash: u8) -> Vote {
        let id = NodeId(uuid::Uuid::from_u128(node));
        Vote { node: id, epoch: Epoch(node as u64), hash: BlobHash([hash; 32]) }
    }

    /// What comes of votes given one after another: what is true, and who lied.
    fn verdict(votes: &[(u128, u8)]) -> Option<(u8, Vec<u128>)> {
        let mut check = Check::new(said(votes[0].0, votes[0].1));
        let (last, others) = votes[1..].split_last().unwrap();
        check.others = others.iter().map(|(node, hash)| said(*node, *hash)).collect();
        let verdict = check.verdict(&said(last.0, last.1))?;
        Some((verdict.truth.0[0], verdict.guilty.iter().map(|node| node.0.as_u128()).collect()))
    }

    #[test]
    fn two_nodes_are_believed_against_one() {
        assert_eq!(verdict(&[(1, 7), (2, 7)]), Some((7, vec![])));
        assert_eq!(verdict(&[(1, 7), (2, 8)]), None);
        assert_eq!(verdict(&[(1, 7), (2, 8), (3, 7)]), Some((7, vec![2])));
        assert_eq!(verdict(&[(1, 7), (2, 8), (3, 8)]), Some((8, vec![1])));
        assert_eq!(verdict(&[(1, 7), (2, 8), (3, 9)]), None);
        assert_eq!(verdict(&[(1, 7), (2, 8), (3, 9), (4, 9)]), Some((9, vec![1, 2])));
        assert_eq!(verdict(&[(1, 7), (2, 8), (3, 7), (4, 8)]), None);
    }

    #[test]
    fn of_two_nodes_the_one_that_contradicts_itself_lies() {
        assert_eq!(verdict(&[(1, 7), (2, 8), (1, 8)]), Some((8, vec![1])));
        assert_eq!(verdict(&[(1, 7), (2, 8), (1, 9)]), Some((8, vec![1])));
        assert_eq!(verdict(&[(1, 7), (2, 8), (1, 7)]), None);
        assert_eq!(verdict(&[(1, 7), (2, 8), (1, 7), (2, 9)]), Some((7, vec![2])));
        assert_eq!(verdict(&[(1, 7), (2, 8), (1, 7), (2, 8)]), None);
        assert_eq!(verdict(&[(1, 7), (2, 8), (1, 9), (2, 6)]), None);
    }
}
