//! Results of a job's units, and rounds of its frames, as the records about them say.

use super::Job;
use super::counts::{open_of, parts_before_last};
use crate::journal::{Commit, EndedAttempt};
use crate::state::frame::Begun;
use crate::state::parts::{PARTS_MAX, total};
use crate::state::rounds::TileSet;
use tessera_protocol::ids::{Epoch, FrameNumber, NodeId, UnitIndex};
use tessera_protocol::node::SampleRange;

impl Job {
    /// Commits results of units.
    pub(crate) fn commit(&mut self, number: FrameNumber, commits: &[Commit]) -> Result<(), String> {
        let (grid, id) = (self.grid, self.id);
        let position = self.free_position_of(number)?;
        let open = self.frames.open_mut(position, &grid);
        let open = open.ok_or_else(|| format!("{id}/{number} takes no results any more"))?;
        let (mut sampled, mut samples, mut whole) = (0, 0, 0);
        for commit in commits {
            if commit.unit.0 >= grid.all_units() || !open.has(commit.unit, &grid) {
                return Err(format!("{id}/{number} has no unit {}", commit.unit.0));
            }
            let before = open.parts.samples(commit.unit);
            if !open.commit(commit, grid.unit_size(commit.unit)) {
                return Err(format!(
                    "unit {} of {id}/{number} is committed already",
                    commit.unit.0
                ));
            }
            samples +=
                grid.unit_camera_samples(commit.unit) - grid.camera_samples(commit.unit, before);
            whole += grid.unit_camera_samples(commit.unit);
            sampled += u64::from(!grid.is_finishing(commit.unit));
        }
        self.frames.settle(position, &grid);
        self.counts.units_committed += sampled;
        self.counts.units_open -= sampled;
        self.counts.samples_open -= whole;
        self.counts.samples_committed += samples;
        Ok(())
    }

    /// Counts the time for which a device waited for what a unit needs.
    pub(crate) fn note_waited(&mut self, millis: u64) -> Result<(), String> {
        if self.is_final() || millis == 0 {
            return Err(format!("a device waited {millis} ms for job {}", self.id));
        }
        self.devices_waited_millis = self.devices_waited_millis.saturating_add(millis);
        Ok(())
    }

    pub(crate) fn end_attempt(
        &mut self,
        node: NodeId,
        attempt: &EndedAttempt,
    ) -> Result<(), String> {
        let (unit, grid) = (attempt.lease.unit, self.grid);
        let position = self.position_of(unit.frame)?;
        let frame = self.frames.get(position);
        let is_open = frame.is_some_and(|frame| frame.unit_is_open(unit.unit, &grid));
        if unit.unit.0 >= grid.all_units() || !is_open {
            return Err(format!("{unit} is not open"));
        }
        if let Some(open) = self.frames.open_mut(position, &grid) {
            open.note_ending(unit.unit, attempt.lease.epoch, node, &attempt.ending);
        }
        Ok(())
    }

    /// Ends a round of a frame after so much of the farm's time. The next is for these tiles;
    /// without tiles the frame is complete.
    pub(crate) fn end_round(
        &mut self,
        number: FrameNumber,
        round: u32,
        spent_millis: u64,
        going: &TileSet,
    ) -> Result<(), String> {
        let grid = self.grid;
        let position = self.position_of(number)?;
        let frame = self.frames.begun_mut(position);
        let frame = frame.filter(|frame| frame.view().round_to_end(&grid) == Some(round));
        let frame =
            frame.ok_or_else(|| format!("round {round} of {number} ends, and is not to"))?;
        if let Begun::Open(open) = frame
            && let Some(rounds) = &mut open.rounds
        {
            rounds.end_round(round, going)?;
            rounds.note_spent(spent_millis);
        }
        let (units, samples) = open_of(frame.view(), &grid);
        frame.settle(&grid);
        self.counts.units_open += u64::from(units);
        self.counts.samples_open += samples;
        Ok(())
    }

    /// Opens committed units of an unfinished frame again; their measurements are void.
    pub(crate) fn take_back(
        &mut self,
        number: FrameNumber,
        taken: &[UnitIndex],
        below: Epoch,
    ) -> Result<(), String> {
        let grid = self.grid;
        let position = self.position_of(number)?;
        let closed = || format!("units of {number} are taken back, which is not open");
        let frame = self.frames.begun_mut(position).ok_or_else(closed)?;
        let (units_before, samples_before) = open_of(frame.view(), &grid);
        let open = frame.unfinished_mut().ok_or_else(closed)?;
        let (mut samples, mut kept) = (0, 0);
        for unit in taken {
            kept += parts_before_last(open, *unit, &grid);
            if !open.take_back(*unit, below) {
                return Err(format!(
                    "unit {} of {number} is taken back, and was not committed",
                    unit.0
                ));
            }
            samples += grid.unit_camera_samples(*unit);
        }
        if !open.rewind(taken, below, &grid) {
            return Err(format!("units of {number} are taken back, and not those that need them"));
        }
        frame.settle(&grid);
        let (units_open, samples_open) = open_of(frame.view(), &grid);
        let sampled = taken.iter().filter(|unit| !grid.is_finishing(**unit)).count();
        self.counts.units_committed -= sampled as u64;
        self.counts.units_open =
            self.counts.units_open + u64::from(units_open) - u64::from(units_before);
        self.counts.samples_open = self.counts.samples_open + samples_open - samples_before;
        self.counts.samples_committed -= samples;
        self.samples_kept = self.samples_kept.saturating_sub(kept);
        Ok(())
    }

    /// Commits the first of an open unit's missing samples.
    pub(crate) fn commit_part(
        &mut self,
        number: FrameNumber,
        commit: &Commit,
        range: SampleRange,
    ) -> Result<(), String> {
        let SampleRange { first, count: samples } = range;
        let (grid, unit, id) = (self.grid, commit.unit, self.id);
        let position = self.free_position_of(number)?;
        let open = self.frames.open_mut(position, &grid);
        let open = open.filter(|open| unit.0 < grid.units() && open.has(unit, &grid));
        let open = open.ok_or_else(|| format!("{id}/{number} takes no part of unit {}", unit.0))?;
        if open.parts.of(unit).len() >= PARTS_MAX
            || !open.commit_part(commit, range, grid.unit_size(unit))
        {
            let text = format!(
                "{samples} samples from {first} are not a part of unit {} of {id}/{number}",
                unit.0
            );
            return Err(text);
        }
        let samples = grid.camera_samples(unit, samples);
        self.counts.samples_committed += samples;
        self.samples_kept += samples;
        Ok(())
    }

    /// Drops the parts of open units.
    pub(crate) fn drop_parts(
        &mut self,
        number: FrameNumber,
        units: &[UnitIndex],
        below: Epoch,
    ) -> Result<(), String> {
        let grid = self.grid;
        let position = self.position_of(number)?;
        let Some(Begun::Open(open)) = self.frames.begun_mut(position) else {
            return Err(format!("parts of {number} are dropped, which is not open"));
        };
        let mut samples = 0;
        for unit in units {
            let parts = open.drop_parts(*unit, below).ok_or_else(|| {
                format!("parts of unit {} of {number} are dropped, and there were none", unit.0)
            })?;
            samples += grid.camera_samples(*unit, total(&parts));
        }
        self.counts.samples_committed -= samples;
        self.samples_kept = self.samples_kept.saturating_sub(samples);
        Ok(())
    }

    /// Lets nodes finish a frame whose samples are all in.
    pub(crate) fn begin_finishing(&mut self, number: FrameNumber) -> Result<(), String> {
        let (grid, position) = (self.grid, self.position_of(number)?);
        let begins = match self.frames.begun_mut(position) {
            Some(Begun::Complete(open)) => grid.finishing() > 0 && open.begin_finishing(),
            _ => false,
        };
        self.frames.settle(position, &grid);
        begins.then_some(()).ok_or_else(|| format!("finishing of {number} begins, and is not to"))
    }

    /// Lets the coordinator finish a frame that nodes could not.
    pub(crate) fn close_finishing(&mut self, number: FrameNumber) -> Result<(), String> {
        let (grid, position) = (self.grid, self.position_of(number)?);
        let open = self.frames.begun_mut(position).and_then(Begun::unfinished_mut);
        let closed = open.is_some_and(|open| open.close_finishing(&grid));
        self.frames.settle(position, &grid);
        closed.then_some(()).ok_or_else(|| format!("finishing of {number} ends, and had not begun"))
    }
}
