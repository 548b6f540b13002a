//! What a job waits for: which of its waits are not over, and which of its frames may go ahead.

use super::{Job, bytes_of};
use crate::state::waits::{OpenWait, Waits};
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::compute::InputFile;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::job::{After, JobKind, Until};

impl Job {
    /// Returns the waits that are not over, in the order of the spec.
    pub(crate) fn waits(&self) -> &[OpenWait] {
        &self.waits.pending
    }

    /// Returns the wait for a job, if it is not over.
    pub(crate) fn wait_for(&self, on: JobId) -> Option<OpenWait> {
        self.waits.pending.iter().find(|wait| wait.after.job == on).copied()
    }

    /// Whether no unit of the job may be leased yet, because of another job.
    pub(crate) fn is_waiting(&self) -> bool {
        let Waits { pending, opened } = &self.waits;
        !pending.is_empty() && (self.waits.holds_all() || opened.is_empty())
    }

    /// Whether no unit of the frame at this position may be leased yet, because of another job.
    pub(crate) fn waits_at(&self, position: u32) -> bool {
        let Waits { pending, opened } = &self.waits;
        !pending.is_empty() && (self.waits.holds_all() || !opened.contains(&position))
    }

    /// Returns how many frames wait for no other job; None if the job waits for none.
    pub(crate) fn free_frames(&self) -> Option<usize> {
        let Waits { pending, opened } = &self.waits;
        let free = if self.waits.holds_all() { 0 } else { opened.len() };
        (!pending.is_empty()).then_some(free)
    }

    /// Returns the first position from this one on that waits for no other job.
    pub(crate) fn next_free(&self, from: u32) -> Option<u32> {
        let Waits { pending, opened } = &self.waits;
        match pending.is_empty() {
            true => Some(from),
            false if self.waits.holds_all() => None,
            false => opened.range(from..).next().copied(),
        }
    }

    /// Returns the jobs whose waits are over.
    pub(crate) fn waits_over(&self) -> impl Iterator<Item = JobId> + '_ {
        let over = |after: &&After| self.wait_for(after.job).is_none();
        self.spec.after.iter().filter(over).map(|after| after.job)
    }

    /// Ends the wait for a job.
    pub(in crate::state) fn end_wait(&mut self, on: JobId) -> Result<(), String> {
        let before = self.waits.pending.len();
        self.waits.pending.retain(|wait| wait.after.job != on);
        if self.waits.pending.len() == before {
            return Err(format!(
                "the wait of job {} for job {on} ends, and there is none",
                self.id
            ));
        }
        if !self.waits.pending.iter().any(|wait| wait.after.until == Until::Frames) {
            self.waits.opened.clear();
        }
        Ok(())
    }

    /// Enters the files of inputs that are frames of another job.
    pub(in crate::state) fn set_inputs(&mut self, found: Vec<(String, Vec<InputFile>)>) {
        let JobKind::Compute(compute) = &mut self.spec.kind else { return };
        if found.is_empty() {
            return;
        }
        found.into_iter().for_each(|(name, files)| compute.set_found(&name, files));
        self.scene = self.spec.kind.data_hash();
        self.spec_bytes = bytes_of(&self.spec);
    }

    /// Notes that the frame at a position is finished in a job that is waited for. `free`: it is
    /// finished in all whose frames are waited for.
    pub(in crate::state) fn note_ready(&mut self, on: JobId, position: u32, free: bool) {
        let wait = self.waits.pending.iter_mut().find(|wait| wait.after.job == on);
        if let Some(wait) = wait {
            wait.missing = wait.missing.saturating_sub(1);
        }
        if free {
            self.waits.opened.insert(position);
        }
    }

    /// Drops what is known of the frames that are waited for, because the job has ended.
    pub(in crate::state) fn rest_waits(&mut self) {
        self.waits.pending.iter_mut().for_each(|wait| wait.missing = 0);
        self.waits.opened.clear();
    }

    /// Finds out anew which frames may go ahead. `jobs`: those that are known.
    pub(in crate::state) fn found_waits(&self, jobs: &BTreeMap<JobId, Job>) -> Waits {
        let mut pending = self.waits.pending.clone();
        let mut others: Vec<(&mut OpenWait, Option<&Job>)> = pending
            .iter_mut()
            .filter(|wait| wait.after.until == Until::Frames)
            .map(|wait| {
                let other = jobs.get(&wait.after.job);
                (wait, other)
            })
            .collect();
        let mut opened = BTreeSet::new();
        others.iter_mut().for_each(|(wait, _)| wait.missing = 0);
        let frames = self.kind().frames().iter().filter(|_| !others.is_empty());
        for (position, number) in (0..).zip(frames.collect::<Vec<_>>()) {
            let mut free = true;
            for (wait, other) in &mut others {
                if !other.is_some_and(|other| other.has_done(number)) {
                    wait.missing += 1;
                    free = false;
                }
            }
            if free {
                opened.insert(position);
            }
        }
        Waits { pending, opened }
    }

    pub(in crate::state) fn set_waits(&mut self, waits: Waits) {
        self.waits = waits;
    }

    pub(in crate::state) fn has_waits(&self, waits: &Waits) -> bool {
        self.waits == *waits
    }

    /// Whether a frame is finished; false if there is no such frame.
    pub(crate) fn has_done(&self, number: FrameNumber) -> bool {
        self.position(number).is_some_and(|position| self.frames.done().contains(position))
    }
}
