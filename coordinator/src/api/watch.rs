//! Watching a job: its summary after each change, at most ten times per second, with the frames
//! that have finished since. The end is reported at once.

use super::askers::{Entered, Kind};
use super::context::Context;
use super::finished_frames::FinishedFrames;
use crate::changes::Changes;
use crate::driver::Event;
use std::sync::Arc;
use std::time::Duration;
use tessera_core::Owner;
use tessera_protocol::client::{Progress, RequestError};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::status::JobSummary;
use tessera_protocol::{FrameNumber, JobId};

/// Pause after an update, for at most ten updates per second.
const PAUSE: Duration = Duration::from_millis(100);

/// State of a job, with frames that have finished.
type Seen = (JobSummary, Vec<FrameNumber>);

/// A stream of a job's progress.
pub struct Watch {
    context: Arc<Context>,
    job: JobId,
    finished: FinishedFrames,
    changes: Changes,
    /// State that was read but not returned yet.
    next: Option<Seen>,
    /// The last summary that was returned.
    last: Option<JobSummary>,
    _entered: Entered,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("job", &self.job).finish_non_exhaustive()
    }
}

impl Watch {
    /// Reads the job for the first time. It subscribes before it reads, so that no frame is lost in
    /// between.
    pub(super) async fn begin(
        context: Arc<Context>,
        job: JobId,
        owner: &Owner,
    ) -> Result<Self, RequestError> {
        let entered = context.askers.enter(owner, Kind::Watcher)?;
        let mut changes = context.changes.clone();
        let finished = FinishedFrames::new(job, changes.finished_frames());
        changes.mark_seen();
        let mut watch =
            Self { context, job, finished, changes, next: None, last: None, _entered: entered };
        match watch.look().await? {
            None => Err(RequestError::NotFound(format!("there is no job {job}"))),
            seen => {
                watch.next = seen;
                Ok(watch)
            }
        }
    }

    /// Returns the next update; None after the job's end, or if the coordinator stops.
    pub async fn next(&mut self) -> Option<Progress> {
        if self.next.is_none() {
            self.next = self.change().await;
        }
        let (summary, frames) = self.next.take()?;
        self.finished.tell(&frames);
        self.last = Some(summary.clone());
        // A set holds as many frames as a job can have.
        let finished = FrameSet::from_frames(frames).unwrap_or_default();
        Some(Progress { summary, finished })
    }

    /// Waits for a change that the watcher has not seen.
    async fn change(&mut self) -> Option<Seen> {
        let last = self.last.clone().filter(|last| !last.state.is_final())?;
        self.pause(&last).await;
        loop {
            if !self.changes.changed().await {
                return None;
            }
            let (summary, frames) = self.look_again().await.ok()??;
            if summary != last || !frames.is_empty() {
                return Some((summary, frames));
            }
            self.pause(&last).await;
        }
    }

    /// Waits before the next update, at most until the last frame has finished.
    async fn pause(&mut self, last: &JobSummary) {
        let ended = last.frames_done.saturating_add(last.frames_failed);
        self.finished.pause(PAUSE, last.frames.saturating_sub(ended) as usize).await;
    }

    /// Reads the job and all its finished frames that the watcher does not know; None if there is
    /// no such job.
    async fn look(&mut self) -> Result<Option<Seen>, RequestError> {
        let job = self.job;
        let mut seen = self.context.send(|reply| Event::Progress { job, reply }).await?;
        if let Some((_, frames)) = &mut seen {
            *frames = self.finished.new_ones(std::mem::take(frames));
        }
        Ok(seen)
    }

    /// Reads the job and the frames that were announced since the last time.
    async fn look_again(&mut self) -> Result<Option<Seen>, RequestError> {
        let job = self.job;
        let summary = self.context.send(|reply| Event::Summary { job, reply }).await?;
        let Some(summary) = summary else { return Ok(None) };
        match self.finished.take() {
            Some(frames) => Ok(Some((summary, frames))),
            None => self.look().await,
        }
    }
}
