//! Which units moved from one state to another in a step, for the log. Off unless units are
//! watched; then nothing is derived or kept.
//!
//! A move of the books first calls `touch` for the units that it changes, which derives their state
//! before; at the end of the step, their state then is compared with it.

use super::Books;
use super::watched::Watched;
use crate::journal::Record;
use crate::state::job::{Job, Place};
use crate::unit_state::UnitMove;
use tessera_protocol::ids::{FrameNumber, JobId, UnitIndex, UnitKey};

/// Most units of one record that are looked at: those of more frames move without a line in the
/// log, so that a job of very many frames can be watched too.
const UNITS_MAX: usize = 1 << 18;

/// Units of frames of a job, at most [`UNITS_MAX`].
fn units_of(job: &Job, positions: impl Iterator<Item = u32>) -> Vec<UnitKey> {
    let places = positions.flat_map(|position| {
        (0..job.grid().all_units()).map(move |unit| Place { position, unit: UnitIndex(unit) })
    });
    places.filter_map(|place| job.key(place)).take(UNITS_MAX).collect()
}

impl Books {
    /// Begins to note which units move, or ends it.
    pub(crate) fn watch_units(&mut self, watch: bool) {
        self.watched = Watched::new(watch);
    }

    /// Notes the state of a unit that is about to change.
    pub(super) fn touch(&mut self, unit: UnitKey) {
        if self.watched.is_on() {
            self.note_before(&[unit]);
        }
    }

    /// Notes the states of a unit whose result is about to count, and of the unit that needs it.
    pub(super) fn touch_result(&mut self, unit: UnitKey) {
        if self.watched.is_on() {
            let units = self.with_assembly(unit);
            self.note_before(&units);
        }
    }

    /// A unit, and the assembly of its frame if it is a band.
    fn with_assembly(&self, unit: UnitKey) -> Vec<UnitKey> {
        let grid = self.farm.job(unit.job).map(|job| job.grid());
        let assembly = grid.filter(|grid| grid.is_finishing(unit.unit)).and_then(|g| g.assembly());
        let assembly = assembly.filter(|assembly| *assembly != unit.unit);
        let assembly = assembly.map(|assembly| UnitKey { unit: assembly, ..unit });
        [unit].into_iter().chain(assembly).collect()
    }

    /// Notes the states of the units that a record is about to change.
    pub(super) fn touch_units_of(&mut self, record: &Record) {
        if self.watched.is_on() {
            let units = self.units_changed_by(record);
            self.note_before(&units);
        }
    }

    fn note_before(&mut self, units: &[UnitKey]) {
        for unit in units {
            if !self.watched.has(*unit)
                && let Ok(state) = self.state_of(*unit)
            {
                self.watched.note(*unit, state);
            }
        }
    }

    /// The units whose state a record may change by itself, without a move of a lease or a queue.
    fn units_changed_by(&self, record: &Record) -> Vec<UnitKey> {
        let job_of = |job| self.farm.job(job);
        match record {
            Record::UnitChecked { job, frame, redone } => {
                self.with_assembly(UnitKey { job: *job, frame: *frame, unit: redone.unit })
            }
            Record::CheckWaived { job, frame, unit } => {
                self.with_assembly(UnitKey { job: *job, frame: *frame, unit: *unit })
            }
            Record::UnitsTakenBack { job, frame, .. }
            | Record::ResultsLost { job, frame, .. }
            | Record::FinishingBegun { job, frame }
            | Record::FinishingClosed { job, frame, .. }
            | Record::RoundMeasured { job, frame, .. }
            | Record::FrameFailed { job, frame, .. } => job_of(*job)
                .map_or_else(Vec::new, |job| units_of(job, job.position(*frame).into_iter())),
            Record::FrameFinished { job, frame, .. } => self.waiting_for(*job, *frame),
            Record::JobEnded { job, .. }
            | Record::JobRetried { job, .. }
            | Record::WaitEnded { job, .. } => job_of(*job).map_or_else(Vec::new, |job| {
                let all = 0..job.frames().len();
                units_of(job, all.filter(|position| !job.frames().done().contains(*position)))
            }),
            _ => Vec::new(),
        }
    }

    /// The units that may have waited for a frame: those of the next one, and in other jobs.
    fn waiting_for(&self, job: JobId, frame: FrameNumber) -> Vec<UnitKey> {
        let next = self.farm.job(job).filter(|job| job.is_chained());
        let next = next.and_then(|job| Some((job, job.position(frame)? + 1)));
        let others = self.farm.awaited().waiting_for(job).filter_map(|id| self.farm.job(id));
        let others = others.filter_map(|other| Some((other, other.position(frame)?)));
        let all = next.into_iter().chain(others);
        all.flat_map(|(job, position)| units_of(job, std::iter::once(position))).collect()
    }

    /// Takes the units that have moved since the last call, in their order.
    pub(super) fn take_moves(&mut self) -> Vec<UnitMove> {
        let before = self.watched.take();
        let mut moves = Vec::with_capacity(before.len());
        for (unit, from) in before {
            match self.state_of(unit) {
                Ok(to) if to != from => moves.push(UnitMove { unit, from, to }),
                Ok(_) => {}
                // The unit of a job that was forgotten is gone.
                Err(_) if self.farm.job(unit.job).is_none() => {}
                Err(_) => self.fault("the books contradict each other about a unit that moved"),
            }
        }
        moves
    }
}
