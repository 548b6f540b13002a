//! Restores a job's frames from a snapshot. Rejects contradictions.

use super::{End, Job};
use crate::state::done::DoneFrame;
use crate::state::frame::{Begun, OpenFrame};
use crate::state::parts::{PARTS_MAX, UnitPart, total};
use crate::state::rounds::{FrameRounds, WrittenRounds};
use tessera_protocol::ids::{NodeId, UnitIndex};

impl Job {
    /// Returns the state of a frame that has begun and is not finished.
    fn unfinished_mut(&mut self, position: u32) -> Option<&mut OpenFrame> {
        self.frames.begun_mut(position)?.unfinished_mut()
    }

    /// Restores the end of the job, before any of its frames.
    pub(crate) fn restore_end(&mut self, end: End) {
        self.frames.end(&self.grid, &end.note);
        self.end = Some(end);
        self.counts = self.derived_counts();
    }

    /// Restores frames that have begun from a part of a snapshot.
    pub(crate) fn restore_frames(&mut self, frames: Vec<(u32, Begun)>) -> Result<(), String> {
        let (grid, units) = (self.grid, self.grid.all_units());
        let sound = |open: &OpenFrame| {
            let exist = open.checks.keys().all(|unit| open.committed.get(unit.0));
            let finishing =
                open.is_finished_by_nodes() || open.sampled(&grid) == open.committed.ones();
            open.committed.is_sound(units) && open.verified.is_sound(units) && exist && finishing
        };
        for (position, mut begun) in frames {
            if begun.view().unfinished().is_some_and(|open| !sound(open) || self.is_final()) {
                return Err(format!("a frame of job {} is damaged", self.id));
            }
            if let Some(open) = begun.unfinished_mut() {
                open.rounds = FrameRounds::of(&self.grid).map(Box::new);
            }
            let restored = self.frames.restore(position, begun);
            restored.map_err(|problem| format!("job {}: {problem}", self.id))?;
        }
        self.counts = self.derived_counts();
        Ok(())
    }

    /// Restores finished frames from a part of a snapshot.
    pub(crate) fn restore_done(&mut self, frames: Vec<(u32, DoneFrame)>) -> Result<(), String> {
        for (position, done) in frames {
            if done.spent.is_some() != self.grid.has_rounds() {
                return Err(format!("the cost of a frame of job {} is invalid", self.id));
            }
            if self.frames.begun_mut(position).is_some() {
                return Err(format!("a frame of job {} is finished and not", self.id));
            }
            let restored = self.frames.finish(position, &done);
            restored.map_err(|problem| format!("job {}: {problem}", self.id))?;
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
        let units = self.grid.all_units() as usize;
        let sound = match self.unfinished_mut(position) {
            Some(open) => open.committed_by.extend(nodes, of, units),
            None => false,
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
        match self.unfinished_mut(position) {
            Some(open) => {
                rounds.check(&open.committed).map_err(|_| damaged())?;
                open.rounds = Some(Box::new(rounds));
            }
            None => return Err(damaged()),
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
        let Some(open) = self.unfinished_mut(position) else { return Err(damaged()) };
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
