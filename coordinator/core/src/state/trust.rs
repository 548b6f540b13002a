//! How well nodes are known: how many of their results were checked, and which nodes gave wrong
//! ones. Durable. Checks nothing itself.

use crate::settings::Settings;
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::ids::NodeId;

/// Nodes that are remembered at most; beyond, the least known is new again. Some 4 MiB.
const NODES_MAX: usize = 65_536;
/// All of a share.
pub(crate) const WHOLE: u64 = 1024;

/// A node that gave wrong results, or may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Suspect {
    pub(crate) name: String,
    pub(crate) at: Moment,
    pub(crate) reason: String,
    /// Whether the node is known to be wrong: it gets no work while another node is connected.
    /// Otherwise it is one of several nodes that may be wrong.
    pub(crate) guilty: bool,
}

/// All nodes with checked results or suspicions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trust {
    /// For each node, the number of its results that another node has rendered alike.
    pub(in crate::state) passed: BTreeMap<NodeId, u32>,
    pub(in crate::state) suspects: BTreeMap<NodeId, Suspect>,
}

impl Trust {
    /// Returns why a node is suspected; None if it is not.
    pub(crate) fn suspect_of(&self, node: NodeId) -> Option<&Suspect> {
        self.suspects.get(&node)
    }

    /// Returns all suspected nodes, by id.
    pub(crate) fn suspects(&self) -> &BTreeMap<NodeId, Suspect> {
        &self.suspects
    }

    /// Counts a result of a node that another node has rendered alike.
    pub(crate) fn note_passed(&mut self, node: NodeId) {
        let passed = self.passed.entry(node).or_default();
        *passed = passed.saturating_add(1);
        if self.passed.len() > NODES_MAX
            && let Some(least) =
                self.passed.iter().filter(|(id, _)| **id != node).min_by_key(|(_, passed)| **passed)
        {
            let least = *least.0;
            self.passed.remove(&least);
        }
    }

    /// A node is suspected: nothing that it did speaks for it any more.
    pub(crate) fn suspect(&mut self, node: NodeId, suspect: Suspect) {
        self.passed.remove(&node);
        self.suspects.insert(node, suspect);
    }

    pub(crate) fn is_guilty(&self, node: NodeId) -> bool {
        self.suspects.get(&node).is_some_and(|suspect| suspect.guilty)
    }

    /// Of 1024 results of a node, so many are checked.
    pub(crate) fn share(&self, node: NodeId, settings: &Settings) -> u64 {
        if self.suspects.contains_key(&node) {
            return WHOLE;
        }
        share_after(self.passed.get(&node).copied().unwrap_or(0), settings)
    }

    /// Returns how many of a node's next results are expected to be checked, if all pass.
    pub(crate) fn checks_of(&self, node: NodeId, results: f64, settings: &Settings) -> f64 {
        if self.suspects.contains_key(&node) {
            return results;
        }
        let mut passed = self.passed.get(&node).copied().unwrap_or(0);
        let (mut rest, mut checks) = (results, 0.0);
        loop {
            let share = share_after(passed, settings);
            let part = share as f64 / WHOLE as f64;
            let falls = share_falls_at(passed, settings).filter(|_| share > least(settings));
            // Checks until so many have passed that fewer follow.
            let window = falls.map(|at| f64::from(at - passed));
            let Some((at, window)) = falls.zip(window).filter(|(_, most)| rest * part > *most)
            else {
                return checks + rest * part;
            };
            (checks, rest, passed) = (checks + window, rest - window / part, at);
        }
    }
}

/// Of 1024 results of a node that has passed so many checks, so many are checked.
fn share_after(passed: u32, settings: &Settings) -> u64 {
    if settings.check_first == 0 {
        return least(settings);
    }
    match passed.checked_sub(settings.check_first) {
        None => WHOLE,
        Some(beyond) => (WHOLE >> (beyond / half(settings) + 1).min(63)).max(least(settings)),
    }
}

/// Returns the number of passed checks, above this one, at which the share of a node falls; None if
/// it does not.
fn share_falls_at(passed: u32, settings: &Settings) -> Option<u32> {
    match passed.checked_sub(settings.check_first) {
        None => Some(settings.check_first),
        Some(beyond) => passed.checked_add(half(settings) - beyond % half(settings)),
    }
}

fn least(settings: &Settings) -> u64 {
    u64::from(settings.check_share).min(WHOLE)
}

fn half(settings: &Settings) -> u32 {
    (settings.check_first / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_nodes_are_checked_less() {
        let node = NodeId(uuid::Uuid::from_u128(1));
        let settings = Settings::default();
        let mut trust = Trust::default();
        let mut shares = Vec::new();
        for passed in 0..1000 {
            if [0, 199, 200, 299, 300, 800, 999].contains(&passed) {
                shares.push(trust.share(node, &settings));
            }
            trust.note_passed(node);
        }
        assert_eq!(shares, [1024, 1024, 512, 512, 256, 10, 10]);
        let reason = String::new();
        let suspect = Suspect { name: reason.clone(), at: Moment(0), reason, guilty: true };
        trust.suspect(node, suspect);
        assert_eq!(trust.share(node, &settings), WHOLE);
        assert_eq!(trust.share(node, &settings.clone().without_checks()), WHOLE);
        trust.suspects.clear();
        assert_eq!(trust.share(node, &settings), WHOLE);
        assert_eq!(trust.share(node, &settings.without_checks()), 0);
    }

    #[test]
    fn expected_checks_follow_the_share() {
        let node = NodeId(uuid::Uuid::from_u128(1));
        let (mut trust, settings) = (Trust::default(), Settings::default());
        // The first 200 results, half of the next 200, a quarter of the 400 after these.
        for (results, checks) in [(0.0, 0.0), (50.0, 50.0), (300.0, 250.0), (800.0, 400.0)] {
            assert_eq!(trust.checks_of(node, results, &settings), checks, "{results}");
        }
        let many = trust.checks_of(node, 1e6, &settings);
        assert!((many / 1e6 - 10.0 / 1024.0).abs() < 2e-3, "{many}");
        (0..250).for_each(|_| trust.note_passed(node));
        assert_eq!(trust.checks_of(node, 200.0, &settings), 75.0);
        assert_eq!(trust.checks_of(node, 200.0, &settings.clone().without_checks()), 0.0);
        let suspect =
            Suspect { name: String::new(), at: Moment(0), reason: String::new(), guilty: false };
        trust.suspect(node, suspect);
        assert_eq!(trust.checks_of(node, 200.0, &settings), 200.0);
    }
}
