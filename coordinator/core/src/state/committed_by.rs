//! Which node committed each unit of a frame: two bytes a unit, so that a liar's work can be found.
//! Kept until the frame is finished.

use std::collections::BTreeMap;
use tessera_protocol::ids::{NodeId, UnitIndex};

/// Most nodes of one frame that are told apart. The node of further units is unknown, and they
/// cannot be taken back.
const NODES_MAX: usize = u16::MAX as usize - 1;

/// For each unit, the node that committed it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CommittedBy {
    nodes: Vec<NodeId>,
    places: BTreeMap<NodeId, u16>,
    /// Index of each unit's node among `nodes`, from 1; 0 if none. Ends with the largest unit that
    /// has one.
    of: Vec<u16>,
}

impl CommittedBy {
    /// Appends a part, as [`Self::parts`] returned it; false if it is invalid.
    pub(crate) fn extend(&mut self, nodes: Vec<NodeId>, of: Vec<u16>, units_max: usize) -> bool {
        self.nodes.extend(nodes);
        self.of.extend(of);
        self.places = self.nodes.iter().zip(1..).map(|(node, place)| (*node, place)).collect();
        self.nodes.len() <= NODES_MAX
            && self.of.len() <= units_max
            && self.of.iter().all(|place| usize::from(*place) <= self.nodes.len())
    }

    /// Returns all nodes, and the index of each unit's node among them, from 1.
    pub(crate) fn parts(&self) -> (&[NodeId], &[u16]) {
        (&self.nodes, &self.of)
    }

    /// Notes the node of a committed unit.
    pub(crate) fn set(&mut self, unit: UnitIndex, node: NodeId) {
        let place = match self.places.get(&node) {
            Some(place) => *place,
            None if self.nodes.len() >= NODES_MAX => 0,
            None => {
                self.nodes.push(node);
                self.places.insert(node, self.nodes.len() as u16);
                self.nodes.len() as u16
            }
        };
        self.put(unit, place);
    }

    /// Forgets the node of a unit that is open again.
    pub(crate) fn clear(&mut self, unit: UnitIndex) {
        self.put(unit, 0);
    }

    fn put(&mut self, unit: UnitIndex, place: u16) {
        let index = unit.0 as usize;
        if index >= self.of.len() {
            self.of.resize(index + 1, 0);
        }
        self.of[index] = place;
    }

    /// Returns the units of a node, in their order.
    pub(crate) fn units_of(&self, node: NodeId) -> impl Iterator<Item = UnitIndex> + '_ {
        let place = self.places.get(&node).copied();
        let units = place
            .into_iter()
            .flat_map(|place| (0..).zip(&self.of).filter(move |(_, of)| **of == place));
        units.map(|(unit, _)| UnitIndex(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_by_their_node_until_they_are_taken_back() {
        let node = |number| NodeId(uuid::Uuid::from_u128(number));
        let mut committed_by = CommittedBy::default();
        for (unit, maker) in [(5, 1), (0, 2), (7, 1), (2, 2)] {
            committed_by.set(UnitIndex(unit), node(maker));
        }
        let units = |committed_by: &CommittedBy, maker| {
            committed_by.units_of(node(maker)).map(|unit| unit.0).collect::<Vec<_>>()
        };
        assert_eq!((units(&committed_by, 1), units(&committed_by, 2)), (vec![5, 7], vec![0, 2]));
        committed_by.clear(UnitIndex(5));
        committed_by.set(UnitIndex(5), node(2));
        assert_eq!(
            (units(&committed_by, 1), units(&committed_by, 2), units(&committed_by, 3)),
            (vec![7], vec![0, 2, 5], vec![])
        );
        let (nodes, of) = committed_by.parts();
        let mut again = CommittedBy::default();
        assert!(
            again.extend(nodes.to_vec(), of[..3].to_vec(), 8)
                && again.extend(vec![], of[3..].to_vec(), 8)
        );
        assert_eq!(again, committed_by);
        assert!(!again.extend(vec![], vec![1], 8), "more units than the frame has");
        assert!(
            !CommittedBy::default().extend(vec![node(1)], vec![0, 2], 8),
            "a maker that is no node"
        );
    }
}
