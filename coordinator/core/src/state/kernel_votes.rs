//! Votes about a chunk of a user's kernel. Data only, as `state::votes`, by other rules: a
//! difference may be the kernel's fault as well as a node's, so a node is asked to run the chunk a
//! second time before it counts as wrong.

use crate::state::votes::{Check, Verdict, Vote};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::ids::{BlobHash, NodeId};

/// Whose fault it may be that results of a unit differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Only a node's: renders and built-in kernels give the same bits everywhere.
    Node,
    /// A node's, or the kernel's own: it is the user's.
    Kernel,
}

/// Results that no deterministic kernel gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// Two nodes whose results differ; the same node twice if it was the only one.
    pub(crate) nodes: [NodeId; 2],
    /// The node that has contradicted itself; None if three nodes differ.
    pub(crate) twice: Option<NodeId>,
}

/// For each node, how often it ran the chunk, and its results.
type Runs = BTreeMap<NodeId, (u32, BTreeSet<BlobHash>)>;

impl Check {
    fn runs(&self, last: Option<&Vote>) -> Runs {
        let mut runs = Runs::new();
        for vote in self.all().chain(last) {
            let (count, hashes) = runs.entry(vote.node).or_default();
            *count += 1;
            hashes.insert(vote.hash);
        }
        runs
    }

    /// Returns the verdict after one more vote, by the rules for whose fault it may be.
    pub(crate) fn decide(&self, blame: Blame, last: &Vote) -> Option<Verdict> {
        match blame {
            Blame::Node => self.verdict(last),
            Blame::Kernel => decide(&self.runs(Some(last))),
        }
    }

    /// Returns the result that at least two nodes have, and more than any other, with the nodes
    /// that have another. These have not been asked a second time, or not all of them.
    pub(crate) fn majority(&self) -> Option<Verdict> {
        majority(&self.runs(None))
    }

    /// Returns what shows, after one more vote if there is one, that the kernel is not
    /// deterministic.
    pub(crate) fn contradiction(&self, last: Option<&Vote>) -> Option<Contradiction> {
        let runs = self.runs(last);
        let twice = runs.iter().find(|(_, (_, hashes))| hashes.len() > 1).map(|(node, _)| *node);
        let results: BTreeSet<BlobHash> =
            runs.values().flat_map(|(_, hashes)| hashes).copied().collect();
        if twice.is_none() && results.len() < 3 {
            return None;
        }
        let first = self.committed();
        let mut votes = self.all().chain(last);
        let other = votes.find(|vote| vote.node != first.node && vote.hash != first.hash);
        let nodes = match (other, twice) {
            (Some(other), _) => [first.node, other.node],
            (None, twice) => [twice.unwrap_or(first.node); 2],
        };
        Some(Contradiction { nodes, twice })
    }

    /// Whether results differ so far.
    pub(crate) fn is_split(&self) -> bool {
        self.all().any(|vote| vote.hash != self.committed().hash)
    }

    /// Whether another node has the committed result.
    pub(crate) fn is_confirmed(&self) -> bool {
        let first = self.committed();
        self.all().any(|vote| vote.node != first.node && vote.hash == first.hash)
    }

    /// Whether a run by a node helps to decide: a first one while no result leads, or a second one
    /// of a node that is not with the leading result. `alone`: whether nodes run their own chunks
    /// again although no result differs.
    pub(crate) fn needs_run_of(&self, id: NodeId, alone: bool) -> bool {
        let leading = self.majority();
        let own = self.all().find(|vote| vote.node == id);
        match (self.heard(id), own) {
            (0, _) => leading.is_none(),
            (1, Some(own)) if self.is_split() => {
                leading.is_none_or(|leading| leading.truth != own.hash)
            }
            (1, _) => alone,
            _ => false,
        }
    }
}

/// Two nodes that agree, each with itself too, are right. One that differs is wrong once it has
/// given its result a second time. A node that was asked twice and is alone is believed.
fn decide(runs: &Runs) -> Option<Verdict> {
    if runs.values().any(|(_, hashes)| hashes.len() > 1) {
        return None;
    }
    if let [(count, hashes)] = runs.values().collect::<Vec<_>>().as_slice() {
        let truth = hashes.first().copied().filter(|_| *count > 1)?;
        return Some(Verdict { truth, guilty: BTreeSet::new() });
    }
    let verdict = majority(runs)?;
    let twice = |node: &NodeId| runs.get(node).is_some_and(|(count, _)| *count > 1);
    verdict.guilty.iter().all(twice).then_some(verdict)
}

fn majority(runs: &Runs) -> Option<Verdict> {
    let mut nodes: BTreeMap<BlobHash, BTreeSet<NodeId>> = BTreeMap::new();
    for (node, (_, hashes)) in runs {
        for hash in hashes {
            nodes.entry(*hash).or_default().insert(*node);
        }
    }
    let (truth, most) = nodes.iter().max_by_key(|(_, nodes)| nodes.len())?;
    let alone = nodes.values().filter(|others| others.len() == most.len()).count() == 1;
    if !alone || most.len() < 2 {
        return None;
    }
    let guilty = runs.keys().filter(|node| !most.contains(node)).copied().collect();
    Some(Verdict { truth: *truth, guilty })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::ids::Epoch;

    fn node(number: u128) -> NodeId {
        NodeId(uuid::Uuid::from_u128(number))
    }

    fn vote((number, hash): (u128, u8)) -> Vote {
        Vote { node: node(number), epoch: Epoch(1), hash: BlobHash([hash; 32]) }
    }

    /// The check after all votes but the last, and that.
    fn votes(votes: &[(u128, u8)]) -> (Check, Vote) {
        let (last, before) = votes.split_last().unwrap();
        let mut check = Check::new(vote(before[0]));
        before[1..].iter().for_each(|other| check.add(vote(*other)));
        (check, vote(*last))
    }

    fn decided(given: &[(u128, u8)]) -> Option<(u8, Vec<u128>)> {
        let (check, last) = votes(given);
        let verdict = check.decide(Blame::Kernel, &last)?;
        assert_eq!(check.contradiction(Some(&last)), None, "either or neither");
        let guilty = verdict.guilty.iter().map(|node| node.0.as_u128()).collect();
        Some((verdict.truth.0[0], guilty))
    }

    /// The two nodes that a contradiction names, and the one that contradicts itself.
    fn found(given: &[(u128, u8)]) -> Option<([u128; 2], Option<u128>)> {
        let (check, last) = votes(given);
        let found = check.contradiction(Some(&last))?;
        assert_eq!(check.decide(Blame::Kernel, &last), None, "either or neither");
        let mut all = check.clone();
        all.add(last);
        assert_eq!(all.contradiction(None), Some(found), "it stays one");
        let number = |node: NodeId| node.0.as_u128();
        Some((found.nodes.map(number), found.twice.map(number)))
    }

    #[test]
    fn a_third_result_and_a_repetition_find_the_wrong_node() {
        assert_eq!(decided(&[(1, 7), (2, 7)]), Some((7, vec![])));
        assert_eq!(decided(&[(1, 7), (2, 8)]), None);
        assert_eq!(decided(&[(1, 7), (2, 8), (3, 8)]), None, "1 was asked once");
        assert_eq!(decided(&[(1, 7), (2, 8), (3, 8), (1, 7)]), Some((8, vec![1])));
        assert_eq!(decided(&[(1, 7), (2, 8), (2, 8), (3, 7)]), Some((7, vec![2])));
        assert_eq!(decided(&[(1, 7), (2, 8), (1, 7), (2, 8)]), None, "each stays with its own");
        assert_eq!(decided(&[(1, 7), (1, 7)]), Some((7, vec![])), "there is no other node");
    }

    #[test]
    fn a_node_against_itself_or_three_apart_are_the_kernels_fault() {
        assert_eq!(found(&[(1, 7), (2, 8)]), None);
        assert_eq!(found(&[(1, 7), (2, 8), (3, 8), (1, 7)]), None);
        assert_eq!(found(&[(1, 7), (2, 8), (2, 9)]), Some(([1, 2], Some(2))));
        assert_eq!(found(&[(1, 7), (2, 8), (1, 8)]), Some(([1, 2], Some(1))));
        assert_eq!(found(&[(1, 7), (2, 8), (3, 9)]), Some(([1, 2], None)));
        assert_eq!(found(&[(1, 7), (2, 8), (3, 8), (1, 8)]), Some(([1, 2], Some(1))));
        assert_eq!(found(&[(1, 7), (1, 8)]), Some(([1, 1], Some(1))));
    }

    #[test]
    fn only_runs_that_help_to_decide_are_asked_for() {
        let needs = |given: &[(u128, u8)], number: u128, alone: bool| {
            let (mut check, last) = votes(given);
            check.add(last);
            check.needs_run_of(node(number), alone)
        };
        let split = [(1, 7), (2, 8)];
        assert!([1, 2, 3].iter().all(|number| needs(&split, *number, false)));
        let led = [(1, 7), (2, 8), (3, 8)];
        assert_eq!(
            [1, 2, 3, 4].map(|number| needs(&led, number, false)),
            [true, false, false, false]
        );
        let fresh = Check::new(vote((1, 7)));
        assert!(fresh.needs_run_of(node(2), false) && !fresh.needs_run_of(node(1), false));
        assert!(fresh.needs_run_of(node(1), true) && !fresh.is_split() && !fresh.is_confirmed());
    }
}
