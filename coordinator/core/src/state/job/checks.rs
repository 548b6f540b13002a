//! Checks of a job's committed units, as the records about them say.

use super::Job;
use crate::journal::Redone;
use crate::state::frame::{Begun, OpenFrame};
use crate::state::kernel_votes::Blame;
use crate::state::votes::{Check, Vote};
use tessera_protocol::ids::{FrameNumber, NodeId, UnitIndex};

impl Job {
    /// Returns a frame that has checks.
    fn checked_mut(&mut self, number: FrameNumber) -> Result<&mut OpenFrame, String> {
        let position = self.position_of(number)?;
        match self.frames.begun_mut(position) {
            Some(Begun::Open(open)) => Ok(open),
            _ => Err(format!("frame {number} has no checks")),
        }
    }

    /// Makes a frame complete that waited only for a check.
    fn settle(&mut self, number: FrameNumber) -> Result<(), String> {
        let (position, grid) = (self.position_of(number)?, self.grid);
        self.frames.settle(position, &grid);
        Ok(())
    }

    /// Compares a result with the committed one. If it stands, the check is over; the check is
    /// returned if another node has confirmed it.
    pub(crate) fn compare(
        &mut self,
        number: FrameNumber,
        redone: &Redone,
    ) -> Result<Option<Check>, String> {
        let Redone { unit, epoch, node, hash } = *redone;
        let blame = self.blame();
        let open = self.checked_mut(number)?;
        let check = open
            .checks
            .get_mut(&unit)
            .ok_or_else(|| format!("unit {} is not to be checked", unit.0))?;
        let vote = Vote { node, epoch, hash };
        let stands =
            check.decide(blame, &vote).is_some_and(|found| found.truth == check.committed.hash);
        check.add(vote);
        // A node that is alone may only have agreed with itself.
        let confirmed = blame == Blame::Node || check.is_confirmed();
        let over = if stands { open.end_check(unit, confirmed) } else { None };
        self.settle(number)?;
        Ok(over.filter(|_| confirmed))
    }

    /// Ends a check that was not made.
    pub(crate) fn waive(&mut self, number: FrameNumber, unit: UnitIndex) -> Result<(), String> {
        let ended = self.checked_mut(number)?.end_check(unit, false);
        ended.ok_or_else(|| format!("unit {} is not to be checked", unit.0))?;
        self.settle(number)?;
        Ok(())
    }

    /// Removes a suspect's votes about the units of other nodes.
    pub(crate) fn unhear(&mut self, node: NodeId) {
        for open in self.frames.unfinished_mut() {
            open.checks.values_mut().for_each(|check| check.strike(node));
        }
    }
}
