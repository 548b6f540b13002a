//! Records of jobs and frames: accepted, paused, tried again, ended. Counts no results of units.

use super::entry::Entry;
use super::ledger::Ledger;
use crate::journal::Spending;
use crate::state::finishing::Finishing;
use std::collections::BTreeSet;
use tessera_protocol::ids::{Fingerprint, FrameNumber, JobId, UnitIndex};
use tessera_protocol::job::JobSpec;
use tessera_protocol::status::JobState;

impl Ledger {
    pub(super) fn accept(&mut self, id: JobId, spec: &JobSpec) {
        self.report.jobs += 1;
        if self.jobs.insert(id, Entry::new(spec)).is_some() {
            self.problem(format!("job {id} is accepted twice"));
        }
    }

    pub(super) fn forget(&mut self, id: JobId) {
        match self.jobs.remove(&id) {
            None => self.problem(format!("job {id} is forgotten, and was never accepted")),
            Some(entry) => {
                let frames = entry.committed.keys();
                let units: u64 = frames.map(|frame| u64::from(entry.sampled(*frame))).sum();
                // Of frames that failed before it, a snapshot holds only a number.
                let told = entry.units_of_failed + entry.units_of_done;
                self.report.units_committed -= (units + told).min(self.report.units_committed);
                self.report.frames -= entry.done.len() as u64;
                self.report.jobs -= 1;
                if !entry.ended {
                    self.problem(format!("job {id} is forgotten before its end"));
                }
            }
        }
    }

    /// Counts device time, of a job that may have ended.
    pub(super) fn spend(&mut self, id: JobId, spent: &[Spending]) {
        if !self.jobs.contains_key(&id) {
            self.problem(format!("time is spent for job {id}, which is not known"));
        }
        for spending in spent {
            self.device_micros = self.device_micros.saturating_add(spending.micros);
            if spending.lost_micros > spending.micros {
                self.problem(format!("job {id} has lost more time than it spent"));
            }
        }
    }

    pub(super) fn pause(&mut self, id: JobId, pause: bool) {
        if let Some(entry) = self.open(id, "a pause")
            && std::mem::replace(&mut entry.paused, pause) == pause
        {
            self.problem(format!("job {id} is paused or resumed twice"));
        }
    }

    /// Drops what was committed of failed frames. If the job has ended, that is all frames that are
    /// not done.
    pub(super) fn retry(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get_mut(&id) else {
            return self.problem(format!("job {id} is retried, and was never accepted"));
        };
        let failed = |entry: &Entry, frame: &FrameNumber| {
            entry.failed.contains(frame) || (entry.ended && !entry.done.contains(frame))
        };
        let frames: Vec<FrameNumber> =
            entry.numbers.iter().filter(|frame| failed(entry, frame)).collect();
        let mut units = std::mem::take(&mut entry.units_of_failed);
        for frame in &frames {
            units += u64::from(entry.sampled(*frame));
            entry.committed.remove(frame);
            entry.finished_by.remove(frame);
            entry.unchecked.retain(|(of, _), _| of != frame);
            entry.parts.retain(|(of, _), _| of != frame);
            entry.rounds_of.remove(frame);
        }
        (entry.failed, entry.ended) = (BTreeSet::new(), false);
        let none = entry.committed.values().all(|units| units.ones() == 0);
        if none && entry.done.is_empty() && entry.parts.is_empty() {
            entry.fingerprint = None;
        }
        self.report.units_committed -= units.min(self.report.units_committed);
        if frames.is_empty() {
            self.problem(format!("job {id} is retried, and none of its frames has failed"));
        }
    }

    pub(super) fn pin(&mut self, id: JobId, fingerprint: Fingerprint) {
        if let Some(entry) = self.open(id, "the fingerprint")
            && entry.fingerprint.replace(fingerprint).is_some()
        {
            self.problem(format!("job {id} is pinned twice"));
        }
    }

    pub(super) fn finish(&mut self, id: JobId, frame: FrameNumber) {
        let Some(entry) = self.open(id, "a frame") else { return };
        let (committed, units, unchecked) = entry.standing(frame);
        let early = entry.rounds(frame).is_some_and(|rounds| !rounds.is_over());
        let twice = !entry.done.insert(frame) || entry.failed.contains(&frame);
        if committed != units || early {
            self.problem(format!("{id}/{frame} is finished with {committed} of {units} units"));
        }
        if unchecked > 0 {
            self.problem(format!(
                "{id}/{frame} is finished, and {unchecked} of its units are to be checked"
            ));
        }
        match twice {
            true => self.problem(format!("{id}/{frame} ends twice")),
            false => self.report.frames += 1,
        }
    }

    pub(super) fn fail(&mut self, id: JobId, frame: FrameNumber) {
        let Some(entry) = self.open(id, "a frame") else { return };
        if !entry.failed.insert(frame) || entry.done.contains(&frame) {
            self.problem(format!("{id}/{frame} ends twice"));
        }
    }

    pub(super) fn end(&mut self, id: JobId, state: JobState) {
        let Some(entry) = self.open(id, "the end") else { return };
        (entry.ended, entry.paused) = (true, false);
        let (done, all) = (entry.done.len(), entry.numbers.len() as usize);
        if (state == JobState::Done) != (done == all) {
            self.problem(format!("job {id} ends as {state:?} with {done} of {all} frames"));
        }
    }

    /// Nodes finish a frame whose samples are all in and checked, once.
    pub(super) fn begin_finishing(&mut self, id: JobId, frame: FrameNumber) {
        let Some(entry) = self.open(id, "finishing") else { return };
        let (committed, units, unchecked) = entry.standing(frame);
        let early = entry.rounds(frame).is_some_and(|rounds| !rounds.is_over());
        let over = entry.done.contains(&frame) || entry.failed.contains(&frame);
        let again = entry.finished_by.insert(frame, Finishing::ByNodes).is_some();
        if committed != units || unchecked > 0 || early || over || again {
            self.problem(format!(
                "{id}/{frame} is to be finished with {committed} of {units} units"
            ));
        }
    }

    /// The coordinator finishes a frame that nodes could not.
    pub(super) fn close_finishing(&mut self, id: JobId, frame: FrameNumber) {
        let Some(entry) = self.open(id, "finishing") else { return };
        let before = entry.finished_by.insert(frame, Finishing::ByCoordinator);
        let pieces: Vec<UnitIndex> = entry.grid.pieces().collect();
        if let Some(committed) = entry.committed.get_mut(&frame) {
            pieces.iter().for_each(|unit| {
                committed.clear(unit.0);
            });
        }
        entry.unchecked.retain(|(of, unit), _| *of != frame || !pieces.contains(unit));
        if before != Some(Finishing::ByNodes) {
            self.problem(format!("{id}/{frame} is finished by nodes no more, and was not"));
        }
    }
}
