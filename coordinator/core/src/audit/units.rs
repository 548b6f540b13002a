//! Records of the results of units and of their parts: each counts once, under an epoch of its own.

use super::entry::total_of;
use super::ledger::Ledger;
use crate::journal::Commit;
use crate::state::bitmap::Bitmap;
use crate::state::parts::PARTS_MAX;
use crate::state::votes::Vote;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, UnitIndex};
use tessera_protocol::node::SampleRange;

impl Ledger {
    fn take_epoch(&mut self, id: JobId, frame: FrameNumber, epoch: Epoch) {
        if epoch >= self.reserved {
            self.problem(format!("{id}/{frame}: {epoch} was never reserved"));
        }
        if !self.epochs.insert(epoch) {
            self.problem(format!("{id}/{frame}: {epoch} is committed twice"));
        }
    }

    pub(super) fn commit_part(
        &mut self,
        id: JobId,
        frame: FrameNumber,
        commit: &Commit,
        range: SampleRange,
    ) {
        let SampleRange { first, count: samples } = range;
        self.take_epoch(id, frame, commit.epoch);
        self.check_free(id, frame);
        let unit = commit.unit;
        let Some(entry) = self.open(id, "a part") else { return };
        let whole = entry.grid.unit_size(unit);
        let closed = entry.done.contains(&frame) || entry.failed.contains(&frame);
        let committed = entry.committed.get(&frame).is_some_and(|units| units.get(unit.0));
        let known = entry.numbers.position(frame).is_some();
        let parts = entry.parts.entry((frame, unit)).or_default();
        let before = total_of(parts);
        let follows = first == before
            && samples > 0
            && first.checked_add(samples).is_some_and(|end| end < whole);
        let vote = Vote { node: commit.node, epoch: commit.epoch, hash: commit.hash };
        parts.push((samples, commit.check.then_some(vote)));
        let many = parts.len() > PARTS_MAX;
        if closed || committed || !known || !follows || many {
            self.problem(format!(
                "{id}/{frame}/u{:05}: {samples} samples from {first} are not a part of {whole}, of \
                    which {before} were there",
                unit.0
            ));
        }
    }

    pub(super) fn drop_parts(&mut self, id: JobId, frame: FrameNumber, unit: UnitIndex) {
        let Some(entry) = self.open(id, "parts") else { return };
        let committed = entry.committed.get(&frame).is_some_and(|units| units.get(unit.0));
        if entry.parts.remove(&(frame, unit)).is_none() || committed {
            self.problem(format!(
                "{id}/{frame}/u{:05} loses parts, and had none, or is committed",
                unit.0
            ));
        }
    }

    pub(super) fn commit(&mut self, id: JobId, frame: FrameNumber, commit: &Commit) {
        self.take_epoch(id, frame, commit.epoch);
        self.check_free(id, frame);
        let unit = commit.unit.0;
        let Some(entry) = self.open(id, "a result") else { return };
        let (units, sampled) = (entry.grid.all_units(), !entry.grid.is_finishing(commit.unit));
        let asked = entry.asks_for(frame, commit.unit);
        if unit >= units || !asked || entry.numbers.position(frame).is_none() {
            return self.problem(format!("{id}/{frame} has no unit {unit}"));
        }
        let closed = entry.done.contains(&frame) || entry.failed.contains(&frame);
        let fresh = entry.committed.entry(frame).or_insert_with(|| Bitmap::new(units)).set(unit);
        if fresh {
            self.report.units_committed += u64::from(sampled);
        } else {
            self.report.units_committed_twice += 1;
            self.problem(format!("{id}/{frame}/u{unit:05} is committed twice"));
        }
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.begin_checks(frame, commit);
        }
        if closed {
            self.problem(format!("{id}/{frame}/u{unit:05} is committed after the frame's end"));
        }
    }

    pub(super) fn stop_copy(
        &mut self,
        id: JobId,
        frame: FrameNumber,
        unit: UnitIndex,
        epoch: Epoch,
    ) {
        if epoch >= self.reserved || self.epochs.contains(&epoch) {
            self.problem(format!("{id}/{frame}: {epoch} is stopped, and is not a copy's own"));
        }
        let Some(entry) = self.open(id, "a copy") else { return };
        if !entry.committed.get(&frame).is_some_and(|units| units.get(unit.0)) {
            self.problem(format!("{id}/{frame}/u{:05} has a copy stopped, and no result", unit.0));
        }
    }

    pub(super) fn take_back(&mut self, id: JobId, frame: FrameNumber, unit: UnitIndex) {
        let Some(entry) = self.open(id, "a unit") else { return };
        entry.unchecked.remove(&(frame, unit));
        entry.parts.remove(&(frame, unit));
        let ended = entry.done.contains(&frame) || entry.failed.contains(&frame);
        let committed = entry.committed.get_mut(&frame).is_some_and(|units| units.clear(unit.0));
        let sampled = !entry.grid.is_finishing(unit);
        match committed && !ended {
            true => self.report.units_committed -= u64::from(sampled),
            false => self
                .problem(format!("{id}/{frame}/u{:05} is taken back, and was not there", unit.0)),
        }
    }
}
