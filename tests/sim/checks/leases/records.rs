//! What records do to leases: which end, and why.

use super::{Changes, Seen, Watch};
use crate::checks::violation::{Checked, violated};
use crate::model::books::Books;
use std::collections::BTreeSet;
use tessera_core::journal::{Commit, Gone};
use tessera_core::{Action, Record, Step};
use tessera_protocol::ids::{FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};

impl Watch {
    /// Results that are kept and commits that are recorded are the same.
    pub(super) fn check_results(&self, step: &Step) -> Checked {
        let mut kept = BTreeSet::new();
        for action in &step.actions {
            if let Action::KeepResult { lease, .. } = action
                && !kept.insert(*lease)
            {
                return violated(format!("the result of {lease} is kept twice"));
            }
        }
        let mut committed = BTreeSet::new();
        for record in &step.records {
            match record {
                Record::UnitsCommitted { job, frame, commits } => {
                    committed.extend(commits.iter().map(|commit| lease_of(*job, *frame, commit)));
                }
                Record::PartCommitted { job, frame, commit, .. } => {
                    committed.insert(lease_of(*job, *frame, commit));
                }
                _ => {}
            }
        }
        match kept == committed {
            true => Ok(()),
            false => violated(format!("results {kept:?} are kept, {committed:?} are recorded")),
        }
    }

    /// A node that leaves is said to have left, and one that is here is not said to be gone.
    pub(super) fn check_gone(&self, step: &Step, seen: &Seen, books: &Books) -> Checked {
        if seen.inputs != 1 {
            return Ok(());
        }
        let gone: Vec<(NodeId, Gone)> = step.records.iter().filter_map(gone_in).collect();
        if let Some(node) = seen.left
            && books.is_here(node)
            && !gone.contains(&(node, Gone::Left))
        {
            return violated(format!("{node} leaves, and is not said to have left"));
        }
        // Whoever joins may have been gone up to now.
        let here = |node: NodeId| self.session_of(node).is_some() && !seen.joined.contains(&node);
        match gone.iter().find(|(node, _)| here(*node)) {
            Some((node, _)) => violated(format!("{node} is here, and is said to be gone")),
            None => Ok(()),
        }
    }

    /// Units are to be done again: what was held of them ends, and checks of them.
    fn note_taken_back(
        &self,
        (job, frame): (JobId, FrameNumber),
        units: &[UnitIndex],
        books: &Books,
        changes: &mut Changes,
    ) {
        changes.ended.extend(self.of_pieces(job, frame, Some(units), books));
        changes.ended.extend(self.of_later_rounds(job, frame, units, books));
        changes.ended.extend(self.of_parts(job, frame, units, books));
        let units = units.iter().map(|unit| UnitKey { job, frame, unit: *unit });
        changes.checked.extend(units.filter(|unit| books.is_to_be_checked(*unit)));
    }

    pub(super) fn note_record(
        &self,
        record: &Record,
        seen: &Seen,
        books: &Books,
        changes: &mut Changes,
    ) -> Checked {
        match record {
            Record::UnitsCommitted { job, frame, commits } => {
                for commit in commits {
                    let lease = lease_of(*job, *frame, commit);
                    self.check_fence(lease, commit.node, seen, books)?;
                    changes.ended.insert(lease);
                }
            }
            Record::PartCommitted { job, frame, commit, .. } => {
                let lease = lease_of(*job, *frame, commit);
                self.check_fence(lease, commit.node, seen, books)?;
                changes.ended.insert(lease);
            }
            Record::PartsDropped { job, frame, units, .. } => {
                changes.ended.extend(self.of_parts(*job, *frame, units, books));
            }
            Record::FinishingClosed { job, frame, .. } => {
                changes.ended.extend(self.of_pieces(*job, *frame, None, books));
            }
            Record::UnitsTakenBack { job, frame, units, .. }
            | Record::ResultsLost { job, frame, units, .. } => {
                self.note_taken_back((*job, *frame), units, books, changes);
            }
            Record::AttemptsEnded { attempts, .. } => {
                changes.ended.extend(attempts.iter().map(|attempt| attempt.lease));
            }
            Record::UnitChecked { job, frame, redone } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: redone.unit };
                let lease = Lease { unit, epoch: redone.epoch };
                self.check_fence_of_check(lease, redone.node, seen)?;
                changes.ended.insert(lease);
            }
            Record::NodeBarred { job, node, .. } => {
                let held = self
                    .held_in(*job)
                    .filter(|lease| self.held.get(lease).is_some_and(|held| held.node == *node));
                changes.ended.extend(held);
            }
            Record::JobPinned { job, .. } => {
                changes.pinned.insert(*job);
            }
            Record::JobPaused { job, .. } => {
                changes.shut.insert(*job);
                changes.paused.insert(*job);
            }
            Record::CopyStopped { job, frame, unit, epoch, node, .. } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: *unit };
                let lease = Lease { unit, epoch: *epoch };
                if seen.inputs == 1 && self.held.get(&lease).is_none_or(|held| held.node != *node) {
                    return violated(format!("{lease} of {node} is stopped, and was not held"));
                }
                changes.ended.insert(lease);
            }
            Record::JobEnded { job, .. } | Record::FrameFailed { job, .. } => {
                changes.shut.insert(*job);
            }
            _ => {}
        }
        Ok(())
    }

    /// Leases of units that have parts. When the parts go, whoever has the rest of a unit, or
    /// checks a part, has too little of it.
    fn of_parts(
        &self,
        job: JobId,
        frame: FrameNumber,
        units: &[UnitIndex],
        books: &Books,
    ) -> Vec<Lease> {
        let keys = units.iter().map(|unit| UnitKey { job, frame, unit: *unit });
        let in_parts = keys.filter(|unit| {
            books.frame(*unit).is_some_and(|frame| frame.parts.contains_key(&unit.unit.0))
        });
        in_parts.flat_map(|unit| self.held_of(unit)).map(|(lease, _)| *lease).collect()
    }

    /// Leases of what finishes a frame: of all, or of what depends on some units.
    fn of_pieces(
        &self,
        job: JobId,
        frame: FrameNumber,
        units: Option<&[UnitIndex]>,
        books: &Books,
    ) -> Vec<Lease> {
        let book = books.jobs.get(&job).and_then(|book| book.frames.get(&frame));
        let Some(book) = book else { return Vec::new() };
        let after = units.map(|units| book.pieces_after(units));
        let void = |unit: u32| {
            unit >= book.units && after.as_ref().is_none_or(|after| after.contains(&unit))
        };
        let leases = self.held_in(job).filter(|lease| lease.unit.frame == frame);
        leases.filter(|lease| void(lease.unit.unit.0)).copied().collect()
    }

    /// Leases of rounds after those of some units of a frame.
    fn of_later_rounds(
        &self,
        job: JobId,
        frame: FrameNumber,
        units: &[UnitIndex],
        books: &Books,
    ) -> Vec<Lease> {
        let book = books.jobs.get(&job).and_then(|book| book.frames.get(&frame));
        let Some((book, rounds)) = book.and_then(|book| Some((book, book.rounds.as_ref()?))) else {
            return Vec::new();
        };
        let sampled = |unit: &UnitIndex| unit.0 < book.units;
        let units: Vec<UnitIndex> = units.iter().copied().filter(sampled).collect();
        let round = rounds.first_round(&units);
        let leases = self.held_in(job).filter(|lease| lease.unit.frame == frame);
        let after = |unit: UnitIndex| sampled(&unit) && rounds.is_after(unit.0, round);
        leases.filter(|lease| after(lease.unit.unit)).copied().collect()
    }
}

fn lease_of(job: JobId, frame: FrameNumber, commit: &Commit) -> Lease {
    Lease { unit: UnitKey { job, frame, unit: commit.unit }, epoch: commit.epoch }
}

/// Which node a record says is gone, and how.
fn gone_in(record: &Record) -> Option<(NodeId, Gone)> {
    match record {
        Record::NodeGone { node, how, .. } => Some((*node, *how)),
        _ => None,
    }
}
