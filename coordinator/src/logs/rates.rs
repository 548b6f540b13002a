//! How many lines one node may say, over all its sessions. Pure: the time is an argument.

use crate::farm_log::{Bucket, Rate};
use std::collections::BTreeMap;
use tessera_protocol::NodeId;

/// Lines of one node: 2,000 at once, then 40 a second. A node keeps to half of it by itself.
const OF_ONE: Rate = Rate { at_once: 2000, every_millis: 25 };
/// Lines of all nodes together: 50,000 at once, then 1,000 a second.
const OF_ALL: Rate = Rate { at_once: 50_000, every_millis: 1 };
/// Most nodes that are told apart. Others share what is left for all.
const NODES_MAX: usize = 16_384;
/// Milliseconds between two lines with the number of those that were left out.
const COUNT_EVERY_MILLIS: u64 = 10_000;

#[derive(Debug)]
struct OfNode {
    bucket: Bucket,
    left_out: u64,
    counted_at: u64,
}

/// Lines that may still be said.
#[derive(Debug, Default)]
pub(super) struct Rates {
    nodes: BTreeMap<NodeId, OfNode>,
    all: Option<Bucket>,
}

impl Rates {
    /// Decides about a line: true if it is kept.
    pub(super) fn take(&mut self, node: NodeId, now: u64) -> bool {
        if !self.nodes.contains_key(&node) && self.nodes.len() >= NODES_MAX {
            self.nodes.retain(|_, of| {
                of.bucket.refill(OF_ONE, now);
                !of.bucket.is_full(OF_ONE) || of.left_out > 0
            });
            if self.nodes.len() >= NODES_MAX {
                return false;
            }
        }
        let new = || OfNode { bucket: Bucket::new(OF_ONE, now), left_out: 0, counted_at: 0 };
        let of = self.nodes.entry(node).or_insert_with(new);
        let all = self.all.get_or_insert_with(|| Bucket::new(OF_ALL, now));
        let taken = of.bucket.take(OF_ONE, now) && all.take(OF_ALL, now);
        of.left_out += u64::from(!taken);
        taken
    }

    /// Returns the number of a node's lines that were left out, once it is time to tell.
    pub(super) fn due(&mut self, node: NodeId, now: u64) -> Option<u64> {
        let of = self.nodes.get_mut(&node)?;
        let is_due = of.left_out > 0 && now >= of.counted_at + COUNT_EVERY_MILLIS;
        is_due.then(|| {
            of.counted_at = now;
            std::mem::take(&mut of.left_out)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn node(number: u128) -> NodeId {
        NodeId(Uuid::from_u128(number))
    }

    // promise: P8
    #[test]
    fn a_node_that_floods_leaves_room_for_others() {
        let mut rates = Rates::default();
        let taken = (0..1_000_000).filter(|n| rates.take(node(1), n / 100)).count();
        assert_eq!(taken, 2000 + 399, "of ten seconds");
        assert!(rates.take(node(2), 10_000), "others have their own");
        assert_eq!(rates.due(node(1), 10_000), Some(1_000_000 - 2399));
        assert_eq!(rates.due(node(1), 30_000), None, "a count is told once");
    }

    // promise: P8
    #[test]
    fn many_nodes_need_bounded_memory() {
        let mut rates = Rates::default();
        let taken = (0..100_000).filter(|number| rates.take(node(*number), 0)).count();
        assert_eq!(taken, NODES_MAX, "one of each");
        assert!(rates.nodes.len() <= NODES_MAX);
        assert!(rates.take(node(200_000), 3_600_000), "those that were silent are forgotten");
    }
}
