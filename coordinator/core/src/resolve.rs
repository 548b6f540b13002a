//! Frames whose units are all in: their files are asked for until they are made.

use crate::action::Action;
use crate::core::Core;
use crate::frame::Frame;
use crate::input::ResolveFailure;
use crate::journal::Record;
use crate::lease::backoff;
use crate::moment::Moment;
use crate::roster::cut;
use crate::timers::Timer;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::status::FrameFile;

/// A frame that could not be made yet.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) failures: u32,
    pub(crate) reason: String,
    /// When it is asked for again; None: it has been.
    again: Option<Moment>,
}

impl Core {
    /// The frame waits for its files, in a job that goes on.
    fn is_complete(&self, job: JobId, frame: FrameNumber) -> bool {
        let known = self.farm.jobs.get(&job).filter(|job| !job.is_final());
        matches!(known.and_then(|job| job.frame(frame)), Some(Frame::Complete(_)))
    }

    /// Asks for the files of a frame that lacks nothing. An order that is under way, and has become stale, is answered first.
    pub(crate) fn resolve_if_complete(&mut self, job: JobId, frame: FrameNumber) {
        if self.is_complete(job, frame) && !self.resolves.contains_key(&(job, frame)) {
            self.order(job, frame);
        }
    }

    fn order(&mut self, job: JobId, frame: FrameNumber) {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.resolving.entry((job, frame)) {
            entry.insert(false);
            self.act(Action::ResolveFrame { job, frame });
        }
    }

    /// An order is answered. True where the answer is of no use, because units of the frame have been taken back since.
    fn is_stale(&mut self, job: JobId, frame: FrameNumber) -> bool {
        let stale = self.resolving.remove(&(job, frame)) == Some(true);
        if stale {
            self.resolve_if_complete(job, frame);
        }
        stale
    }

    pub(crate) fn on_resolved(&mut self, job: JobId, frame: FrameNumber, files: Vec<FrameFile>) {
        if self.is_stale(job, frame) || !self.is_complete(job, frame) {
            return;
        }
        let formats = self.farm.jobs.get(&job).map_or(0, |job| job.kind().extensions().len());
        if files.len() != formats {
            let reason = format!("{} files were made instead of {formats}", files.len());
            return self.on_resolve_failed(job, frame, ResolveFailure::Retry(reason));
        }
        self.record(Record::FrameFinished { job, frame, files });
        self.resolves.remove(&(job, frame));
        self.act(Action::FrameFinished { job, frame });
        self.end_if_over(job);
        if self.is_open(job) && self.farm.jobs.get(&job).is_some_and(|job| job.is_chained()) {
            // The next frame was waiting for this one.
            self.offer_job(job);
        }
    }

    pub(crate) fn on_resolve_failed(&mut self, job: JobId, frame: FrameNumber, failure: ResolveFailure) {
        if self.is_stale(job, frame) || !self.is_complete(job, frame) {
            return;
        }
        match failure {
            ResolveFailure::Fatal(reason) => self.fail_frame(job, frame, cut(&reason, REASON_MAX)),
            ResolveFailure::Retry(reason) => {
                let before = self.resolves.get(&(job, frame));
                if before.is_some_and(|wait| wait.again.is_some()) {
                    return;
                }
                let failures = before.map_or(0, |wait| wait.failures).saturating_add(1);
                let again = self.now.after(backoff(failures, &self.settings));
                let wait = Wait { failures, reason: cut(&reason, REASON_MAX), again: Some(again) };
                self.resolves.insert((job, frame), wait);
                self.timers.set(again, Timer::Resolve(job, frame));
            }
        }
    }

    pub(crate) fn on_resolve_due(&mut self, job: JobId, frame: FrameNumber) {
        if let Some(wait) = self.resolves.get_mut(&(job, frame))
            && wait.again.is_some_and(|again| again <= self.now)
        {
            wait.again = None;
            self.order(job, frame);
        }
    }
}
