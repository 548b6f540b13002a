//! Units in parts, in the books: what is there, and what is missing.

use crate::checks::violation::{Checked, violated};
use crate::model::books::{Books, FrameBook};
use crate::model::tasks::task_of;
use tessera_core::journal::Commit;
use tessera_protocol::ids::{
    BlobHash, Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::job::JobKind;
use tessera_protocol::node::{SampleRange, Task};

/// Parts that an open unit has at most.
const PARTS_MAX: usize = 4;

/// A committed part of a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PartBook {
    pub(crate) samples: u32,
    pub(crate) epoch: Epoch,
    pub(crate) node: NodeId,
    pub(crate) hash: BlobHash,
    /// Another node is to render it again.
    pub(crate) to_check: bool,
    /// Another node has rendered it alike.
    pub(crate) alike: bool,
}

/// Samples per pixel of a task, or indices.
pub(crate) fn size_of(task: Task) -> u32 {
    match task {
        Task::Tile { samples, .. } => samples.count,
        Task::Chunk { count, .. } => count,
        Task::Finish(_) => 0,
    }
}

/// Camera samples of so many samples per pixel of a task, or indices.
pub(crate) fn work_of(task: Task, size: u32) -> u64 {
    match task {
        Task::Tile { tile, .. } => u64::from(tile.width) * u64::from(tile.height) * u64::from(size),
        Task::Chunk { .. } => u64::from(size),
        Task::Finish(_) => 0,
    }
}

/// Some samples of a task, counted from its first.
pub(crate) fn cut(task: Task, first: u32, count: u32) -> Task {
    match task {
        Task::Tile { tile, samples } => {
            Task::Tile { tile, samples: SampleRange { first: samples.first + first, count } }
        }
        other => other,
    }
}

/// A task is the whole of another, or some of its samples.
pub(crate) fn is_within(task: Task, whole: Task) -> bool {
    match (task, whole) {
        (Task::Tile { samples: some, .. }, Task::Tile { samples: all, .. }) => {
            some.count > 0
                && some.first >= all.first
                && some.first + some.count <= all.first + all.count
                && cut(whole, some.first - all.first, some.count) == task
        }
        _ => task == whole,
    }
}

impl FrameBook {
    /// Samples of a unit that its parts have.
    pub(crate) fn in_parts(&self, unit: u32) -> u32 {
        self.parts.get(&unit).into_iter().flatten().map(|part| part.samples).sum()
    }

    /// What a lease of a unit is about.
    pub(crate) fn lease_of(&self, unit: u32, whole: Task) -> Task {
        let Some(parts) = self.parts.get(&unit) else { return whole };
        if !self.committed.contains_key(&unit) {
            let there = self.in_parts(unit);
            return cut(whole, there, size_of(whole) - there);
        }
        let mut first = 0;
        for part in parts {
            if part.to_check {
                return cut(whole, first, part.samples);
            }
            first += part.samples;
        }
        whole
    }

    /// The unit is whole: its last samples are in.
    pub(crate) fn complete(&mut self, commit: &Commit, whole: u32) {
        let unit = commit.unit.0;
        let before = self.in_parts(unit);
        let own = part_of(commit, whole - before);
        let Some(parts) = self.parts.get_mut(&unit) else {
            if commit.check {
                self.checks.insert(unit, vec![(commit.node, commit.hash)]);
            }
            return;
        };
        parts.push(own);
        self.begin_check(unit);
    }

    fn begin_check(&mut self, unit: u32) {
        let parts = self.parts.get(&unit).into_iter().flatten();
        if let Some(part) = parts.into_iter().find(|part| part.to_check) {
            self.checks.insert(unit, vec![(part.node, part.hash)]);
        }
    }

    /// The check of a unit, or of one of its parts, is over.
    pub(crate) fn end_check(&mut self, unit: u32, alike: bool) {
        self.checks.remove(&unit);
        match self.parts.get_mut(&unit) {
            Some(parts) => {
                if let Some(part) = parts.iter_mut().find(|part| part.to_check) {
                    (part.to_check, part.alike) = (false, alike);
                }
                self.begin_check(unit);
            }
            None if alike => {
                self.verified.insert(unit);
            }
            None => {}
        }
    }

    /// Camera samples that are committed, and those of them that came in parts.
    pub(crate) fn samples(&self, kind: &JobKind, job: JobId, frame: FrameNumber) -> (u64, u64) {
        let task = |unit: u32| task_of(kind, UnitKey { job, frame, unit: UnitIndex(unit) });
        let whole = self.committed.keys().filter_map(|unit| task(*unit));
        let mut all: u64 = whole.map(|task| work_of(task, size_of(task))).sum();
        let mut kept = 0;
        for (unit, parts) in &self.parts {
            let committed = self.committed.contains_key(unit);
            let Some(task) = task(*unit) else { continue };
            let last = if committed { parts.last().map_or(0, |part| part.samples) } else { 0 };
            let samples = work_of(task, self.in_parts(*unit) - last);
            all += if committed { 0 } else { samples };
            kept += samples;
        }
        (all, kept)
    }
}

fn part_of(commit: &Commit, samples: u32) -> PartBook {
    let Commit { epoch, node, hash, check, .. } = *commit;
    PartBook { samples, epoch, node, hash, to_check: check, alike: false }
}

impl Books {
    /// A unit has as many parts as it may have: another one is set aside, and the rest is leased
    /// anew.
    pub(crate) fn takes_no_part(&self, unit: UnitKey) -> bool {
        let parts = self.frame(unit).and_then(|frame| frame.parts.get(&unit.unit.0));
        parts.is_some_and(|parts| parts.len() >= PARTS_MAX)
    }

    /// What a lease of a unit is about now, worked out anew.
    pub(crate) fn lease_task(&self, unit: UnitKey) -> Option<Task> {
        let whole = task_of(self.jobs.get(&unit.job)?.kind(), unit)?;
        Some(self.frame(unit).map_or(whole, |frame| frame.lease_of(unit.unit.0, whole)))
    }

    pub(crate) fn commit_part(
        &mut self,
        (job, frame): (JobId, FrameNumber),
        commit: &Commit,
        (first, samples): (u32, u32),
    ) -> Checked {
        let unit = UnitKey { job, frame, unit: commit.unit };
        let lease = Lease { unit, epoch: commit.epoch };
        self.check_commit(unit, commit)?;
        let whole =
            self.jobs.get(&job).and_then(|book| task_of(book.kind(), unit)).map_or(0, size_of);
        let book = self.open_frame(job, frame)?;
        let before = book.in_parts(commit.unit.0);
        if book.committed.contains_key(&commit.unit.0) {
            return violated(format!("a part of {unit} is committed, which is whole"));
        }
        if first != before || samples == 0 || first + samples >= whole {
            return violated(format!(
                "{samples} samples from {first} of {unit} of {whole}, which has {before}"
            ));
        }
        let parts = book.parts.entry(commit.unit.0).or_default();
        parts.push(part_of(commit, samples));
        if parts.len() > PARTS_MAX {
            return violated(format!("{unit} has {} parts", parts.len()));
        }
        book.attempts.insert(commit.unit.0, (commit.epoch, commit.node, true));
        self.part_leases.insert(lease);
        Ok(())
    }

    pub(crate) fn drop_parts(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        unit: UnitIndex,
        below: Epoch,
    ) -> Checked {
        let book = self.open_frame(job, frame)?;
        let whole = book.committed.contains_key(&unit.0);
        let Some(part) = book.parts.remove(&unit.0).and_then(|parts| parts.last().copied()) else {
            return violated(format!("{job}/{frame}/{unit:?} loses parts, and had none"));
        };
        book.attempts.insert(unit.0, (below, part.node, true));
        match whole {
            true => violated(format!("{job}/{frame}/{unit:?} loses parts, and is whole")),
            false => Ok(()),
        }
    }
}
