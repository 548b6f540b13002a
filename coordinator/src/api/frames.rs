//! Frames of a job, a few at a time, for a transport that shows them one by one.

use super::answer::Api;
use super::caller::Caller;
use super::context::unavailable;
use super::live::Live;
use crate::driver::Question;
use tessera_protocol::client::{Request, RequestError, Response};
use tessera_protocol::live::Watched;
use tessera_protocol::status::FrameStatus;
use tessera_protocol::{FrameNumber, JobId};

impl Api {
    /// Returns frames of a job from a position on, at most `most`.
    pub async fn some_frames(
        &self,
        caller: &Caller,
        job: JobId,
        (from, most): (u32, u32),
    ) -> Result<Vec<FrameStatus>, RequestError> {
        self.ask_frames(caller, Question::Frames { job, from, most }).await
    }

    /// Returns one frame of a job, by its number.
    pub async fn frame(
        &self,
        caller: &Caller,
        job: JobId,
        frame: FrameNumber,
    ) -> Result<FrameStatus, RequestError> {
        let found = self.ask_frames(caller, Question::Frame { job, frame }).await?;
        found.into_iter().next().ok_or_else(|| {
            RequestError::NotFound(format!("there is no frame {} in job {job}", frame.0))
        })
    }

    /// Watches live tiles of a frame or a job, for everybody who may see the finished frames.
    pub async fn live(&self, caller: &Caller, what: Watched) -> Result<Live, RequestError> {
        self.check(caller, &Request::Live(what))?;
        let _entered = self.context.askers.request(&caller.owner()).await?;
        Live::begin(&self.context, caller, what).await
    }

    /// Asks for frames with the rights and the share that [`Request::Frames`] needs.
    async fn ask_frames(
        &self,
        caller: &Caller,
        question: Question,
    ) -> Result<Vec<FrameStatus>, RequestError> {
        self.check(caller, &Request::Frames { job: JobId::default(), from: 0 })?;
        let _entered = self.context.askers.request(&caller.owner()).await?;
        match self.context.question(question).await? {
            Response::Frames(frames) => Ok(frames),
            Response::Error(error) => Err(error),
            _ => Err(unavailable("the coordinator does not know its own frames")),
        }
    }
}
