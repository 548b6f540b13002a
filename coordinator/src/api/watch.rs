//! Watching a job: its summary at each change, at most ten times a second, with the frames that
//! have finished since. The end is told at once.

use super::finished_frames::FinishedFrames;
use crate::driver::Event;
use crate::quic::{Shared, Trouble};
use std::time::Duration;
use tessera_protocol::client::{Progress, RequestError, Response};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::status::JobSummary;
use tessera_protocol::{FrameNumber, JobId};
use tessera_transport::FrameSender;
use tokio::sync::oneshot;

/// Pause after a message: at most ten a second.
const PAUSE: Duration = Duration::from_millis(100);

/// One watcher.
struct Watcher<'a> {
    shared: &'a Shared,
    job: JobId,
    finished: FinishedFrames,
}

/// Sends progress until the job has ended or the watcher has gone.
pub(crate) async fn serve(
    shared: &Shared,
    job: JobId,
    sender: &mut FrameSender,
) -> Result<(), Trouble> {
    // Before the first look, so that no frame falls between.
    let finished = FinishedFrames::new(job, shared.finished.subscribe());
    let mut revision = shared.revision.clone();
    let mut watcher = Watcher { shared, job, finished };
    revision.mark_unchanged();
    let Some((mut summary, mut frames)) = watcher.look().await? else {
        let error = RequestError::NotFound(format!("there is no job {job}"));
        sender.send(&Response::Error(error)).await?;
        sender.finish();
        return Ok(());
    };
    loop {
        watcher.finished.tell(&frames);
        let ended = summary.state.is_final();
        // A job has at most as many frames as a set.
        let finished = FrameSet::from_frames(std::mem::take(&mut frames)).unwrap_or_default();
        let progress = Progress { summary: summary.clone(), finished };
        sender.send(&Response::Progress(Box::new(progress))).await?;
        if ended {
            sender.finish();
            return Ok(());
        }
        watcher.pause(&summary).await;
        loop {
            revision.changed().await.map_err(|_| Trouble::Stopping)?;
            revision.mark_unchanged();
            let Some((now, new)) = watcher.look_again().await? else { return Ok(()) };
            if now != summary || !new.is_empty() {
                (summary, frames) = (now, new);
                break;
            }
            watcher.pause(&summary).await;
        }
    }
}

impl Watcher<'_> {
    /// Waits before the next message; no longer than until the last frame has finished.
    async fn pause(&mut self, last: &JobSummary) {
        let ended = last.frames_done.saturating_add(last.frames_failed);
        self.finished.pause(PAUSE, last.frames.saturating_sub(ended) as usize).await;
    }

    /// The job and all its finished frames that have not been told; None for no such job.
    async fn look(&mut self) -> Result<Option<(JobSummary, Vec<FrameNumber>)>, Trouble> {
        let (reply, told) = oneshot::channel();
        let event = Event::Progress { job: self.job, reply };
        self.shared.events.send(event).await.map_err(|_| Trouble::Stopping)?;
        let mut answer = told.await.map_err(|_| Trouble::Stopping)?;
        if let Some((_, frames)) = &mut answer {
            *frames = self.finished.new_ones(std::mem::take(frames));
        }
        Ok(answer)
    }

    /// The job and the frames that finished since, as they were finished.
    async fn look_again(&mut self) -> Result<Option<(JobSummary, Vec<FrameNumber>)>, Trouble> {
        let (reply, told) = oneshot::channel();
        let event = Event::Summary { job: self.job, reply };
        self.shared.events.send(event).await.map_err(|_| Trouble::Stopping)?;
        let Some(summary) = told.await.map_err(|_| Trouble::Stopping)? else { return Ok(None) };
        match self.finished.take() {
            Some(frames) => Ok(Some((summary, frames))),
            None => self.look().await,
        }
    }
}
