//! What other parts of the coordinator's own process ask, which count as no user.

use super::answer::Api;
use super::follow::Follow;
use crate::driver::{Event, Question};
use crate::event_targets::EventTargets;
use std::sync::Arc;
use tessera_core::Quarantine;
use tessera_protocol::JobId;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::status::JobDetail;

impl Api {
    /// Says who sends events. Said once, when the coordinator begins to lead.
    pub fn tell_events_by(&self, targets: Arc<dyn EventTargets>) {
        let _ = self.context.targets.set(targets);
    }

    /// Returns everything about a job, for the coordinator's own process; None if there is no such
    /// job.
    pub async fn job_detail(&self, job: JobId) -> Result<Option<Box<JobDetail>>, RequestError> {
        match self.context.question(Question::Job(job)).await? {
            Response::Job(detail) => Ok(Some(detail)),
            _ => Ok(None),
        }
    }

    /// Returns which nodes and devices are quarantined or in doubt, for the coordinator's own
    /// process.
    pub async fn quarantines(&self) -> Result<Vec<Quarantine>, RequestError> {
        self.context.send(Event::Quarantines).await
    }

    /// Returns the time of the coordinator, in seconds since the Unix epoch.
    pub fn now_secs(&self) -> u64 {
        self.context.clock.now().secs()
    }

    /// Follows all jobs, with those that have ended at this time or later, in seconds since the
    /// Unix epoch.
    pub async fn follow_jobs(&self, since: u64) -> Result<Follow, RequestError> {
        Follow::begin(self.context.clone(), Some(since), None).await
    }
}
