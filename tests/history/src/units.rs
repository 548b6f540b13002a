//! Acknowledged results: each unit once, and none lost from the counts that people are shown.

use crate::told::{Asked, Broken, JobSeen, broken};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::ids::{Epoch, JobId, Lease, UnitKey};

/// Results that nodes were told the farm has.
#[derive(Debug, Default)]
pub(crate) struct Units {
    committed: BTreeMap<UnitKey, Epoch>,
    /// Leases that were acknowledged as parts.
    parts: BTreeSet<Lease>,
    /// When each further unit of a job was acknowledged: as many are committed from then on.
    counts: BTreeMap<JobId, Vec<Asked>>,
}

impl Units {
    pub(crate) fn committed(&mut self, now: Asked, lease: Lease) -> Result<(), Broken> {
        if self.parts.contains(&lease) {
            return broken("P2", format!("{lease} is acknowledged for all, and was for a part"));
        }
        match self.committed.insert(lease.unit, lease.epoch) {
            None => self.counts.entry(lease.unit.job).or_default().push(now),
            Some(epoch) if epoch == lease.epoch => {}
            Some(epoch) => {
                return broken(
                    "P2",
                    format!("{lease} is acknowledged, and {epoch} of that unit was before"),
                );
            }
        }
        Ok(())
    }

    /// A part of a unit, which does not make it count: it is no whole result at the same time.
    pub(crate) fn part_committed(&mut self, lease: Lease) -> Result<(), Broken> {
        self.parts.insert(lease);
        match self.committed.get(&lease.unit) {
            Some(epoch) if *epoch == lease.epoch => {
                broken("P2", format!("{lease} is acknowledged for a part, and was for all"))
            }
            _ => Ok(()),
        }
    }

    /// A unit's result turned out to be wrong, and the unit is open again: its next result may be
    /// acknowledged too.
    pub(crate) fn taken_back(&mut self, unit: UnitKey) {
        if self.committed.remove(&unit).is_some()
            && let Some(counts) = self.counts.get_mut(&unit.job)
        {
            counts.pop();
        }
    }

    /// A job's count of units.
    pub(crate) fn counted(&self, asked: Asked, seen: &JobSeen) -> Result<(), Broken> {
        let JobSeen { job, units, units_committed, .. } = *seen;
        if units_committed > units {
            return broken("P2", format!("job {job} has {units_committed} of {units} units"));
        }
        let acknowledged =
            self.counts.get(&job).map_or(0, |at| at.partition_point(|since| *since <= asked));
        match units_committed < acknowledged as u64 {
            true => broken(
                "P1",
                format!(
                    "job {job} has {units_committed} units, and {acknowledged} were acknowledged \
                        before"
                ),
            ),
            false => Ok(()),
        }
    }
}
