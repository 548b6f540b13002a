//! Restores a job's frames from a snapshot. Rejects contradictions.

use super::Job;
use crate::state::frame::{Frame, OpenFrame, Spent};
use crate::state::parts::{PARTS_MAX, UnitPart, total};
use crate::state::rounds::{FrameRounds, WrittenRounds};
use tessera_protocol::ids::{NodeId, UnitIndex};

impl Job {
    /// Restores frames from a part of a snapshot.
    pub(crate) fn restore_frames(&mut self, from: u32, frames: Vec<Frame>) -> Result<(), String> {
        let targets = self.frames.get_mut(from as usize..).unwrap_or_default();
        if frames.len() > targets.len() {
            return Err(format!("job {} has fewer frames than its snapshot", self.id));
        }
        for (target, mut frame) in targets.iter_mut().zip(frames) {
            let units = self.grid.units();
            let sound = |open: &OpenFrame| {
                let exist = open.checks.keys().all(|unit| open.committed.get(unit.0));
                open.committed.is_sound(units) && open.verified.is_sound(units) && exist
            };
            if frame.unfinished().is_some_and(|open| !sound(open)) {
                return Err(format!("a bitmap of job {} is damaged", self.id));
            }
            if let Frame::Open(open) | Frame::Complete(open) = &mut frame {
                open.rounds = FrameRounds::of(&self.grid).map(Box::new);
            }
            *target = frame;
        }
        self.counts = self.derived_counts();
        Ok(())
    }

    /// Restores the nodes of a frame's units from a part of a snapshot, after those of earlier
    /// parts.
    pub(crate) fn restore_committed_by(
        &mut self,
        position: u32,
        nodes: Vec<NodeId>,
        of: Vec<u16>,
    ) -> Result<(), String> {
        let units = self.grid.units() as usize;
        let sound = match self.frames.get_mut(position as usize) {
            Some(Frame::Open(open) | Frame::Complete(open)) => {
                open.committed_by.extend(nodes, of, units)
            }
            _ => false,
        };
        sound
            .then_some(())
            .ok_or_else(|| format!("committed_by of a frame of job {} is invalid", self.id))
    }

    /// Restores the rounds of a frame.
    pub(crate) fn restore_rounds(
        &mut self,
        position: u32,
        written: WrittenRounds,
    ) -> Result<(), String> {
        let (id, rounds) = (self.id, FrameRounds::restored(&self.grid, written));
        let damaged = || format!("rounds of a frame of job {id} are invalid");
        let rounds = rounds.ok_or_else(damaged)?;
        match self.frames.get_mut(position as usize) {
            Some(Frame::Open(open) | Frame::Complete(open)) => {
                rounds.check(&open.committed).map_err(|_| damaged())?;
                open.rounds = Some(Box::new(rounds));
            }
            _ => return Err(damaged()),
        }
        self.counts = self.derived_counts();
        Ok(())
    }

    /// Restores the costs of finished frames.
    pub(crate) fn restore_spent(&mut self, spent: Vec<(u32, Spent)>) -> Result<(), String> {
        for (position, spent) in spent {
            match self.frames.get_mut(position as usize) {
                Some(Frame::Done(done)) if self.grid.has_rounds() => done.spent = Some(spent),
                _ => return Err(format!("the cost of a frame of job {} is invalid", self.id)),
            }
        }
        self.counts = self.derived_counts();
        Ok(())
    }

    /// Restores parts of a frame's units from a part of a snapshot.
    pub(crate) fn restore_parts(
        &mut self,
        position: u32,
        parts: Vec<(UnitIndex, Vec<UnitPart>)>,
    ) -> Result<(), String> {
        let (grid, id) = (self.grid, self.id);
        let damaged = || format!("parts of a frame of job {id} are invalid");
        let Some(Frame::Open(open) | Frame::Complete(open)) =
            self.frames.get_mut(position as usize)
        else {
            return Err(damaged());
        };
        for (unit, parts) in parts {
            let (whole, committed) = (grid.unit_size(unit), open.committed.get(unit.0));
            let sound = !parts.is_empty()
                && parts.len() <= PARTS_MAX + usize::from(committed)
                && parts.iter().all(|part| part.samples > 0)
                && if committed { total(&parts) == whole } else { total(&parts) < whole };
            if !sound || !open.parts.restore(unit, parts) {
                return Err(damaged());
            }
        }
        self.counts = self.derived_counts();
        Ok(())
    }
}
