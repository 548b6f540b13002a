//! A snapshot's parts, as the state that the records after it begin from.

use super::ledger::Ledger;
use crate::state::bitmap::Bitmap;
use crate::state::frame::{Frame, Spent};
use crate::state::parts::{Standing, UnitPart};
use crate::state::rounds::{FrameRounds, WrittenRounds};
use crate::state::snapshot::Part;
use tessera_protocol::ids::{JobId, UnitIndex};

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
            Part::CommittedBy { .. }
            | Part::Trust { .. }
            | Part::Copies { .. }
            | Part::Retried { .. }
            | Part::Barred { .. }
            | Part::Kept { .. } => {}
            Part::UnitParts { job, position, units } => self.take_unit_parts(job, position, units),
            Part::FrameRounds { job, position, written } => {
                self.take_rounds(job, position, written)
            }
            Part::Spent { job, frames } => self.take_spent(job, &frames),
            Part::Frames { job, from, frames } => {
                for (position, frame) in (from as usize..).zip(frames) {
                    self.take_frame(job, position, frame);
                }
            }
        }
    }

    fn take_unit_parts(&mut self, id: JobId, position: u32, units: UnitsInParts) {
        let entry = self.jobs.get_mut(&id);
        let number = entry.as_ref().and_then(|entry| entry.numbers.get(position as usize).copied());
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

    fn take_spent(&mut self, id: JobId, frames: &[(u32, Spent)]) {
        let units: u64 = frames.iter().map(|(_, spent)| u64::from(spent.units)).sum();
        self.report.units_committed += units;
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.units_of_done += units;
        }
    }

    fn take_rounds(&mut self, id: JobId, position: u32, written: WrittenRounds) {
        let entry = self.jobs.get_mut(&id);
        let number = entry.as_ref().and_then(|entry| entry.numbers.get(position as usize).copied());
        let rounds = entry.as_ref().and_then(|entry| FrameRounds::restored(&entry.grid, written));
        match (entry, number, rounds) {
            (Some(entry), Some(frame), Some(rounds)) => drop(entry.rounds_of.insert(frame, rounds)),
            _ => self.problem(format!("rounds of a frame of job {id} are invalid")),
        }
    }

    fn take_frame(&mut self, id: JobId, position: usize, frame: Frame) {
        let Some(entry) = self.jobs.get_mut(&id) else {
            return self.problem(format!("frames of job {id}, which was never accepted"));
        };
        let Some(number) = entry.numbers.get(position).copied() else {
            return self.problem(format!("job {id} has no frame at {position}"));
        };
        let units = entry.grid.units();
        let mut all = Bitmap::new(units);
        match frame {
            Frame::Untouched => {}
            Frame::Open(open) => {
                self.report.units_committed += u64::from(open.committed().ones());
                entry.committed.insert(number, open.committed().clone());
                entry.unchecked.extend(
                    open.checks().iter().map(|(unit, check)| ((number, *unit), check.clone())),
                );
            }
            Frame::Complete(open) if entry.grid.has_rounds() => {
                self.report.units_committed += u64::from(open.committed().ones());
                entry.committed.insert(number, open.committed().clone());
            }
            Frame::Done(_) if entry.grid.has_rounds() => {
                entry.done.insert(number);
                self.report.frames += 1;
            }
            Frame::Complete(_) | Frame::Done(_) => {
                (0..units).for_each(|unit| {
                    all.set(unit);
                });
                entry.committed.insert(number, all);
                self.report.units_committed += u64::from(units);
                if let Frame::Done(_) = frame {
                    entry.done.insert(number);
                    self.report.frames += 1;
                }
            }
            Frame::Failed(failed) => {
                self.report.units_committed += u64::from(failed.units_committed);
                entry.units_of_failed += u64::from(failed.units_committed);
                entry.failed.insert(number);
            }
        }
    }
}
