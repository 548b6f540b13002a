//! A snapshot's parts, as the state that the records after it begin from.

use super::entry::Entry;
use super::ledger::Ledger;
use crate::state::done::DoneFrame;
use crate::state::finishing::Finishing;
use crate::state::frame::Begun;
use crate::state::parts::{Standing, UnitPart};
use crate::state::rounds::{FrameRounds, WrittenRounds};
use crate::state::snapshot::Part;
use tessera_protocol::ids::{FrameNumber, JobId, UnitIndex};

/// Units in parts, as a snapshot has them.
type UnitsInParts = Vec<(UnitIndex, Vec<UnitPart>)>;

impl Ledger {
    pub(super) fn take_part(&mut self, part: Part) {
        match part {
            Part::Farm(farm) => self.reserved = farm.epochs_reserved,
            Part::Job(job) => {
                self.accept(job.id, &job.spec);
                if let Some(entry) = self.jobs.get_mut(&job.id) {
                    entry.fingerprint = job.fingerprint;
                    entry.ended = job.end.is_some();
                }
            }
            Part::Paused { job, .. } => self.pause(job, true),
            Part::WaitsEnded { job, on } => {
                if !on.iter().all(|on| self.forget_wait(job, *on).is_some()) {
                    self.problem(format!("job {job} has waited for what it does not name"));
                }
            }
            Part::Account { account, .. } => {
                let months = account.months.values().chain([&account.before]);
                self.device_micros += months.map(|spent| spent.all().micros).sum::<u64>();
            }
            Part::CommittedBy { .. }
            | Part::Trust { .. }
            | Part::Copies { .. }
            | Part::DevicesWaited { .. }
            | Part::Retried { .. }
            | Part::Barred { .. }
            | Part::Nodes { .. }
            | Part::Changed { .. }
            | Part::Spent { .. }
            | Part::CostRules { .. }
            | Part::Preset { .. }
            | Part::Kept { .. } => {}
            Part::UnitParts { job, position, units } => self.take_unit_parts(job, position, units),
            Part::FrameRounds { job, position, written } => {
                self.take_rounds(job, position, written)
            }
            Part::Frames { job, frames } => {
                frames.iter().for_each(|(position, begun)| self.take_frame(job, *position, begun));
            }
            Part::Done { job, frames } => {
                frames.iter().for_each(|(position, done)| self.take_done(job, *position, done));
            }
        }
    }

    fn take_unit_parts(&mut self, id: JobId, position: u32, units: UnitsInParts) {
        let entry = self.jobs.get_mut(&id);
        let number = entry.as_ref().and_then(|entry| entry.numbers.get(position));
        let (Some(entry), Some(frame)) = (entry, number) else {
            return self.problem(format!("parts of a frame of job {id} that does not exist"));
        };
        for (unit, parts) in units {
            let to_check = |part: &UnitPart| {
                (part.samples, (part.standing == Standing::ToCheck).then_some(part.result))
            };
            entry.parts.insert((frame, unit), parts.iter().map(to_check).collect());
        }
    }

    fn take_rounds(&mut self, id: JobId, position: u32, written: WrittenRounds) {
        let entry = self.jobs.get_mut(&id);
        let number = entry.as_ref().and_then(|entry| entry.numbers.get(position));
        let rounds = entry.as_ref().and_then(|entry| FrameRounds::restored(&entry.grid, written));
        match (entry, number, rounds) {
            (Some(entry), Some(frame), Some(rounds)) => drop(entry.rounds_of.insert(frame, rounds)),
            _ => self.problem(format!("rounds of a frame of job {id} are invalid")),
        }
    }

    /// Returns the entry of a job, and the number of its frame at a position.
    fn at(&mut self, id: JobId, position: u32) -> Option<(&mut Entry, FrameNumber)> {
        let Some(entry) = self.jobs.get_mut(&id) else {
            self.problem(format!("frames of job {id}, which was never accepted"));
            return None;
        };
        match entry.numbers.get(position) {
            Some(number) => self.jobs.get_mut(&id).map(|entry| (entry, number)),
            None => {
                self.problem(format!("job {id} has no frame at {position}"));
                None
            }
        }
    }

    fn take_done(&mut self, id: JobId, position: u32, done: &DoneFrame) {
        let Some((entry, number)) = self.at(id, position) else { return };
        let units = u64::from(done.spent.map_or(entry.grid.units(), |spent| spent.units));
        entry.done.insert(number);
        entry.units_of_done += units;
        self.report.units_committed += units;
        self.report.frames += 1;
    }

    fn take_frame(&mut self, id: JobId, position: u32, begun: &Begun) {
        let Some((entry, number)) = self.at(id, position) else { return };
        if let Begun::Open(open) | Begun::Complete(open) = begun
            && open.finishing() != Finishing::Unbegun
        {
            entry.finished_by.insert(number, open.finishing());
        }
        let sampled = entry.grid.units();
        let units = match begun {
            Begun::Open(open) => {
                entry.committed.insert(number, open.committed().clone());
                entry.unchecked.extend(
                    open.checks().iter().map(|(unit, check)| ((number, *unit), check.clone())),
                );
                open.committed().ones_below(sampled)
            }
            Begun::Complete(open) => {
                entry.committed.insert(number, open.committed().clone());
                open.committed().ones_below(sampled)
            }
            Begun::Failed(failed) => {
                entry.units_of_failed += u64::from(failed.units_committed);
                entry.failed.insert(number);
                failed.units_committed
            }
        };
        self.report.units_committed += u64::from(units);
    }
}
