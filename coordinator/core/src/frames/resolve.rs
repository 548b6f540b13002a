//! Frames whose units are all in, or those of a round: their files, or what they come to, are asked
//! for until they are there.

use crate::action::Action;
use crate::core::Core;
use crate::input::ResolveFailure;
use crate::journal::Record;
use crate::lease::backoff;
use crate::nodes::roster::cut;
use crate::state::frame::Frame;
use crate::time::Moment;
use crate::timers::Timer;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::status::FrameFile;

/// A frame that could not be made, or measured, yet.
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
        let known = self.farm.job(job).filter(|job| !job.is_final());
        matches!(known.and_then(|job| job.frame(frame)), Some(Frame::Complete(_)))
    }

    /// What a frame waits for, that lacks nothing or nothing of its newest round.
    fn due(&self, job: JobId, frame: FrameNumber) -> Option<Action> {
        match self.round_to_end(job, frame) {
            Some(_) => Some(Action::MeasureFrame { job, frame }),
            None => self.is_complete(job, frame).then_some(Action::ResolveFrame { job, frame }),
        }
    }

    /// Asks for the files of a frame that lacks nothing, or for a round of it to be measured; ends
    /// a round that need not be. An order that is under way, and has become stale, is answered
    /// first.
    pub(crate) fn ask_if_due(&mut self, job: JobId, frame: FrameNumber) {
        self.end_unmeasured(job, frame);
        if !self.resolves.contains_key(&(job, frame)) {
            self.order(job, frame);
        }
    }

    fn order(&mut self, job: JobId, frame: FrameNumber) {
        let Some(action) = self.due(job, frame) else { return };
        if let std::collections::btree_map::Entry::Vacant(entry) =
            self.resolving.entry((job, frame))
        {
            entry.insert(false);
            self.act(action);
        }
    }

    /// An order is answered. True where the answer is of no use, because units of the frame have
    /// been taken back since.
    pub(crate) fn is_stale(&mut self, job: JobId, frame: FrameNumber) -> bool {
        let stale = self.resolving.remove(&(job, frame)) == Some(true);
        if stale {
            self.ask_if_due(job, frame);
        }
        stale
    }

    pub(crate) fn on_resolved(&mut self, job: JobId, frame: FrameNumber, files: Vec<FrameFile>) {
        if self.is_stale(job, frame) || !self.is_complete(job, frame) {
            return;
        }
        let formats = self.farm.job(job).map_or(0, |job| job.kind().extensions().len());
        if files.len() != formats {
            let reason = format!("{} files were made instead of {formats}", files.len());
            return self.on_resolve_failed(job, frame, ResolveFailure::Retry(reason));
        }
        self.record(Record::FrameFinished { job, frame, files });
        self.resolves.remove(&(job, frame));
        self.act(Action::FrameFinished { job, frame });
        self.end_if_over(job);
        if self.is_open(job) && self.farm.job(job).is_some_and(|job| job.is_chained()) {
            // The next frame was waiting for this one.
            self.offer_job(job);
        }
    }

    pub(crate) fn on_resolve_failed(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        failure: ResolveFailure,
    ) {
        if self.is_stale(job, frame) || self.due(job, frame).is_none() {
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
