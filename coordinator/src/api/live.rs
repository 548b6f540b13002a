//! Watching live tiles of a frame, or of all frames of a job. Who may see a frame when it is
//! finished may see how it becomes.

use super::askers::{Entered, Kind};
use super::caller::Caller;
use super::context::{Context, unavailable};
use crate::driver::Question;
use crate::live::Watcher;
use std::sync::Arc;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::live::{LiveTile, Watched};
use tessera_protocol::status::{FrameState, JobDetail};

/// Live tiles as they come.
#[derive(Debug)]
pub struct Live {
    watcher: Watcher,
    _entered: Entered,
}

impl Live {
    /// Returns the next live tile: first those that are kept, then others as they come; None once
    /// the frame or job is over, or if the coordinator stops. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arc<LiveTile>> {
        self.watcher.next().await
    }

    /// Begins. What is over at once gives no live tile.
    pub(super) async fn begin(
        context: &Context,
        caller: &Caller,
        what: Watched,
    ) -> Result<Self, RequestError> {
        let entered = context.askers.enter(&caller.owner(), Kind::Watcher)?;
        let detail = job_of(context, what).await?;
        if detail.spec.kind.render().is_none() {
            let text = "a compute job has no picture that could be watched".to_owned();
            return Err(RequestError::Invalid(text));
        }
        // It is watched before its state is read, so that its end is not missed.
        let watcher = context.live.watch(what, caller.number())?;
        if is_over(context, what).await? {
            match what.frame {
                Some(frame) => context.live.end_frame(what.job, frame),
                None => context.live.end_job(what.job),
            }
        }
        Ok(Self { watcher, _entered: entered })
    }
}

async fn job_of(context: &Context, what: Watched) -> Result<Box<JobDetail>, RequestError> {
    match context.question(Question::Job(what.job)).await? {
        Response::Job(detail) => Ok(detail),
        Response::Error(error) => Err(error),
        _ => Err(unavailable("the coordinator does not know its own jobs")),
    }
}

/// Returns whether a frame or job has ended.
async fn is_over(context: &Context, what: Watched) -> Result<bool, RequestError> {
    let Some(frame) = what.frame else {
        return Ok(job_of(context, what).await?.summary.state.is_final());
    };
    let question = Question::Frame { job: what.job, frame };
    let Response::Frames(frames) = context.question(question).await? else {
        return Err(unavailable("the coordinator does not know its own frames"));
    };
    let Some(status) = frames.into_iter().next() else {
        let text = format!("there is no frame {} in job {}", frame.0, what.job);
        return Err(RequestError::NotFound(text));
    };
    let ended = matches!(status.state, FrameState::Done(_) | FrameState::Failed(_));
    Ok(ended || job_of(context, what).await?.summary.state.is_final())
}
