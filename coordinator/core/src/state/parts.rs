//! Units that are committed in several parts because nodes had to leave before the end: which
//! samples are present, which node made them, and what is still to be checked. Data only, for one
//! frame; stored as exceptions, so that a frame without parts pays nothing.

use crate::state::votes::Vote;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::ids::{NodeId, UnitIndex};
use tessera_protocol::node::SampleRange;

/// Most parts of an open unit; further parts are not kept. Each part costs a lease, and a check if
/// it is chosen.
pub(crate) const PARTS_MAX: usize = 4;

/// Whether a part was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// No node will check it.
    Unchecked,
    /// Another node renders it again once the unit is complete.
    ToCheck,
    /// Another node rendered it alike.
    Alike,
}

/// A committed range of a unit's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitPart {
    /// Samples per pixel, after those of earlier parts.
    pub(crate) samples: u32,
    pub(crate) result: Vote,
    pub(crate) standing: Standing,
}

/// The parts of all units of a frame that have any, each unit's in the order of its samples. A unit
/// that is committed has its last one here too.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parts(BTreeMap<UnitIndex, Vec<UnitPart>>);

impl Parts {
    pub(crate) fn of(&self, unit: UnitIndex) -> &[UnitPart] {
        self.0.get(&unit).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, unit: UnitIndex) -> bool {
        self.0.contains_key(&unit)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (UnitIndex, &[UnitPart])> {
        self.0.iter().map(|(unit, parts)| (*unit, parts.as_slice()))
    }

    /// Returns the samples per pixel of a unit's parts together.
    pub(crate) fn samples(&self, unit: UnitIndex) -> u32 {
        total(self.of(unit))
    }

    pub(crate) fn push(&mut self, unit: UnitIndex, part: UnitPart) {
        self.0.entry(unit).or_default().push(part);
    }

    /// Restores a unit from a snapshot; false if it is present already.
    pub(crate) fn restore(&mut self, unit: UnitIndex, parts: Vec<UnitPart>) -> bool {
        self.0.insert(unit, parts).is_none()
    }

    pub(crate) fn remove(&mut self, unit: UnitIndex) -> Vec<UnitPart> {
        self.0.remove(&unit).unwrap_or_default()
    }

    /// Returns the part that is to be checked next, and its samples, counted from the unit's first.
    pub(crate) fn to_check(&self, unit: UnitIndex) -> Option<(&UnitPart, SampleRange)> {
        let parts = self.of(unit);
        let position = parts.iter().position(|part| part.standing == Standing::ToCheck)?;
        let part = parts.get(position)?;
        Some((part, SampleRange { first: total(&parts[..position]), count: part.samples }))
    }

    /// Ends the check of the part that was to be checked next.
    pub(crate) fn end_check(&mut self, unit: UnitIndex, alike: bool) {
        let parts = self.0.get_mut(&unit).into_iter().flatten();
        if let Some(part) = parts.into_iter().find(|part| part.standing == Standing::ToCheck) {
            part.standing = if alike { Standing::Alike } else { Standing::Unchecked };
        }
    }

    /// Returns the units with a part of a node that no other node has rendered alike.
    pub(crate) fn units_of(&self, node: NodeId) -> impl Iterator<Item = UnitIndex> + '_ {
        let blind =
            move |part: &UnitPart| part.result.node == node && part.standing != Standing::Alike;
        self.0.iter().filter(move |(_, parts)| parts.iter().any(blind)).map(|(unit, _)| *unit)
    }

    /// Samples of a lease on a unit that has these in all, counted as those are: of a check, the
    /// part's; otherwise what is missing.
    pub(crate) fn wanted(
        &self,
        unit: UnitIndex,
        whole: SampleRange,
        committed: bool,
    ) -> SampleRange {
        let range = match committed {
            true => self.to_check(unit).map(|(_, range)| range),
            false => {
                let first = self.samples(unit);
                Some(SampleRange { first, count: whole.count.saturating_sub(first) })
            }
        };
        let Some(range) = range.filter(|_| self.has(unit)) else { return whole };
        SampleRange { first: whole.first + range.first, count: range.count }
    }
}

/// Samples per pixel of some parts.
pub(crate) fn total(parts: &[UnitPart]) -> u32 {
    parts.iter().map(|part| part.samples).fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::ids::{BlobHash, Epoch};

    const UNIT: UnitIndex = UnitIndex(3);

    fn part(node: u128, samples: u32, standing: Standing) -> UnitPart {
        let id = NodeId(uuid::Uuid::from_u128(node));
        UnitPart {
            samples,
            result: Vote { node: id, epoch: Epoch(1), hash: BlobHash([1; 32]) },
            standing,
        }
    }

    fn range(first: u32, count: u32) -> SampleRange {
        SampleRange { first, count }
    }

    #[test]
    fn leases_get_missing_samples_and_checks_get_their_part() {
        let mut parts = Parts::default();
        let whole = range(100, 32);
        assert_eq!(parts.wanted(UNIT, whole, false), whole);
        assert_eq!(parts.wanted(UNIT, whole, true), whole, "a unit without parts is checked whole");
        parts.push(UNIT, part(1, 10, Standing::ToCheck));
        parts.push(UNIT, part(2, 6, Standing::Unchecked));
        assert_eq!(parts.wanted(UNIT, whole, false), range(116, 16));
        parts.push(UNIT, part(3, 16, Standing::ToCheck));
        assert_eq!(parts.wanted(UNIT, whole, true), range(100, 10));
        parts.end_check(UNIT, true);
        assert_eq!(parts.wanted(UNIT, whole, true), range(116, 16));
        parts.end_check(UNIT, false);
        assert_eq!(parts.to_check(UNIT), None);
    }

    #[test]
    fn a_node_is_blamed_for_parts_that_no_other_node_confirms() {
        let mut parts = Parts::default();
        parts.push(UNIT, part(1, 10, Standing::ToCheck));
        parts.push(UNIT, part(2, 6, Standing::Unchecked));
        let of = |parts: &Parts, node| parts.units_of(NodeId(uuid::Uuid::from_u128(node))).count();
        assert_eq!((of(&parts, 1), of(&parts, 2), of(&parts, 3)), (1, 1, 0));
        parts.end_check(UNIT, true);
        assert_eq!((of(&parts, 1), of(&parts, 2)), (0, 1));
        assert_eq!(parts.remove(UNIT).len(), 2);
        assert!(!parts.has(UNIT) && parts.samples(UNIT) == 0);
    }
}
