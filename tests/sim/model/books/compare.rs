//! What the core says, compared with the books.

use super::{Books, FrameBook, FrameEnd, JobBook};
use crate::checks::violation::{Checked, Violation, violated};
use tessera_core::{Core, Moment, Selection, UnitState};
use tessera_protocol::ids::{FrameNumber, JobId, UnitIndex, UnitKey};
use tessera_protocol::status::{CopyCount, FrameState, JobState};

/// Milliseconds of an hour.
const HOUR_MILLIS: u128 = 3_600_000;

impl Books {
    /// The core says of every job and frame what the books say.
    pub(crate) fn compare(&self, core: &Core) -> Checked {
        self.compare_nodes(core)?;
        let page = core.jobs(&Selection::default(), None, Moment(0)).unwrap_or_default();
        let mut listed = page.jobs;
        listed.reverse();
        if !listed.iter().map(|row| row.job).eq(self.order.iter().copied()) {
            return violated(format!(
                "the core lists {} jobs, {} were accepted",
                listed.len(),
                self.order.len()
            ));
        }
        for row in &listed {
            let book = &self.jobs[&row.job];
            let state = row.state.is_final().then_some(row.state);
            let committed: usize = book.frames.values().map(|frame| frame.sampled()).sum();
            if (row.state == JobState::Paused) != book.paused
                || state != book.ended
                || row.units_committed != committed as u64
                || row.owner != book.owner
                || (&row.name, row.priority) != (&book.spec.name, book.spec.priority)
            {
                let called = |name: &str, priority: u8| format!("{name:?} at {priority}");
                let said = format!(
                    "{:?} with {} units, of {}, {}",
                    row.state,
                    row.units_committed,
                    row.owner,
                    called(&row.name, row.priority)
                );
                let known = format!(
                    "{:?} with {committed}, of {}, {}",
                    book.ended,
                    book.owner,
                    called(&book.spec.name, book.spec.priority)
                );
                return violated(format!(
                    "the core says of job {}: {said}; the records: {known}",
                    row.job
                ));
            }
            compare_counts(row.job, book, core)?;
            let samples = book
                .frames
                .iter()
                .map(|(number, frame)| frame.samples(book.kind(), row.job, *number));
            let known = samples
                .fold((0, book.kept_before), |(all, kept), (more, also)| (all + more, kept + also));
            if known != (row.samples_committed, row.samples_kept) {
                let said = (row.samples_committed, row.samples_kept);
                return violated(format!(
                    "the core counts {said:?} samples of job {}, the records {known:?}",
                    row.job
                ));
            }
            self.compare_waits(row, core)?;
            compare_frames(row.job, book, core)?;
        }
        Ok(())
    }
}

/// What is counted of copies, waits of devices, device time and space is what the records say.
fn compare_counts(job: JobId, book: &JobBook, core: &Core) -> Checked {
    let counted = core.job(job).map(|detail| {
        let copies = CopyCount { running: 0, ..detail.copies };
        let stored = u128::from(detail.stored.byte_hours);
        (copies, detail.devices_waited_millis, detail.summary.device_millis, stored)
    });
    let (spent, stored) = (book.spent_micros / 1000, book.stored_byte_millis / HOUR_MILLIS);
    let known = (book.copies, book.devices_waited_millis, spent, stored);
    if counted != Some(known) {
        return violated(format!(
            "the core says of job {}: {counted:?}; the records: {known:?}",
            job
        ));
    }
    Ok(())
}

fn compare_frames(job: JobId, book: &JobBook, core: &Core) -> Checked {
    let rows = core.frames(job, 0).unwrap_or_default();
    if rows.len() != book.frames.len() {
        return violated(format!("the core lists {} frames of job {job}", rows.len()));
    }
    for (row, (number, frame)) in rows.iter().zip(&book.frames) {
        let (committed, by_nodes) = (frame.sampled() as u32, frame.is_by_nodes());
        let lacks =
            committed < frame.wanted() || !frame.checks.is_empty() || !frame.is_last_round();
        let same = match (&row.state, frame.end) {
            (FrameState::Open { committed: said, units, round }, FrameEnd::Open) => {
                let rounds = round.map(|status| status.round)
                    == frame.rounds.as_ref().map(|rounds| rounds.round);
                *said == committed && *units == frame.wanted() && lacks && rounds && !by_nodes
            }
            (FrameState::Resolving, FrameEnd::Open) => !lacks && !by_nodes,
            (FrameState::Finishing { done, pieces }, FrameEnd::Open) => by_nodes && done <= pieces,
            (FrameState::Done(_), FrameEnd::Done) | (FrameState::Failed(_), FrameEnd::Failed) => {
                true
            }
            _ => false,
        };
        if !same || row.frame != *number {
            let known = format!("{:?} with {committed} of {}", frame.end, frame.wanted());
            return violated(format!(
                "the core says of {job}/{number}: {:?}; the records: {known}",
                row.state
            ));
        }
        if frame.end == FrameEnd::Open {
            compare_units(job, *number, frame, core)?;
        }
    }
    Ok(())
}

/// Every unit of an unfinished frame is committed, and in check, where the books say so.
fn compare_units(job: JobId, number: FrameNumber, frame: &FrameBook, core: &Core) -> Checked {
    for unit in 0..frame.units + frame.pieces {
        let key = UnitKey { job, frame: number, unit: UnitIndex(unit) };
        let state = core.state_of(key).map_err(Violation)?;
        let known = (frame.committed.contains_key(&unit), frame.checks.contains_key(&unit));
        let said = (state.is_committed(), matches!(state, UnitState::InCheck { .. }));
        if said != known || state == UnitState::Dead {
            return violated(format!(
                "the core says that {key} is {state:?}; the records: committed, in check: {known:?}"
            ));
        }
    }
    Ok(())
}
