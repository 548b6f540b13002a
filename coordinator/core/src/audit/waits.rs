//! Records of waits: each ends once, for a reason that is there, and nothing counts before it.

use super::ledger::Ledger;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::job::{After, Until};

impl Ledger {
    /// Checks that what an accepted job waits for is known.
    pub(super) fn begin_waits(&mut self, id: JobId, after: &[After]) {
        if let Some(unknown) = after.iter().find(|after| !self.jobs.contains_key(&after.job)) {
            self.problem(format!("job {id} waits for job {}, which is unknown", unknown.job));
        }
    }

    /// Ends a wait, also without its reason where a snapshot tells of it.
    pub(super) fn forget_wait(&mut self, id: JobId, on: JobId) -> Option<After> {
        let waits = &mut self.jobs.get_mut(&id)?.waits;
        let place = waits.iter().position(|after| after.job == on)?;
        Some(waits.remove(place))
    }

    pub(super) fn end_wait(&mut self, id: JobId, on: JobId) {
        if self.open(id, "the end of a wait").is_none() {
            return;
        }
        let Some(after) = self.forget_wait(id, on) else {
            return self.problem(format!("job {id} does not wait for job {on}, and ends that"));
        };
        let has_reason = match (after.until, self.jobs.get(&on), self.jobs.get(&id)) {
            (Until::End, Some(other), _) => other.ended,
            (Until::Success, Some(other), _) => {
                other.ended && other.done.len() == other.numbers.len() as usize
            }
            (Until::Frames, Some(other), Some(own)) => {
                own.numbers.iter().all(|frame| other.done.contains(&frame))
            }
            _ => false,
        };
        if !has_reason {
            self.problem(format!("the wait of job {id} for job {on} ends without a reason"));
        }
    }

    /// Checks that a frame of which something is committed waits for nothing.
    pub(super) fn check_free(&mut self, id: JobId, frame: FrameNumber) {
        let waits = self.jobs.get(&id).map(|entry| entry.waits.as_slice()).unwrap_or_default();
        let is_shut = |after: &&After| {
            let done = self.jobs.get(&after.job).is_some_and(|other| other.done.contains(&frame));
            after.until != Until::Frames || !done
        };
        if let Some(after) = waits.iter().find(is_shut) {
            let on = after.job;
            self.problem(format!("{id}/{frame} has a result, and waits for job {on}"));
        }
    }
}
