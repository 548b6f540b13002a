//! The targets of events: what monitoring and requests know of whoever sends webhooks and mails.
//! Sends nothing.

use super::answer::Api;
use super::context::Context;
use crate::driver::{Event, Question};
use std::pin::Pin;
use std::sync::Arc;
use tessera_core::Quarantine;
use tessera_protocol::JobId;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::status::JobDetail;

/// Counts of one target since the coordinator began to lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetFigures {
    /// Name of the target in the file of events.
    pub name: String,
    /// `webhook` or `mail`.
    pub kind: &'static str,
    /// Events that were delivered.
    pub delivered: u64,
    /// Attempts to deliver that failed.
    pub failed: u64,
    /// Events that were given up: for want of room, or because they were too old.
    pub dropped: u64,
    /// Events that wait.
    pub waiting: u64,
    /// Whether the newest attempt failed.
    pub is_failing: bool,
}

/// Outcome of a test of a target.
pub type Tested = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Whoever sends events to targets.
pub trait EventTargets: Send + Sync {
    /// Returns the counts of all targets.
    fn figures(&self) -> Vec<TargetFigures>;

    /// Returns the names of the targets that jobs can name.
    fn on_request(&self) -> Vec<String>;

    /// Sends a test event to a target at once, and says what came of it. None if there is no such
    /// target.
    fn test(&self, name: &str) -> Option<Tested>;
}

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
}

/// Checks that jobs can name these targets.
pub(super) fn check(context: &Context, names: &[String]) -> Result<(), RequestError> {
    if names.is_empty() {
        return Ok(());
    }
    let known = context.targets.get().map(|targets| targets.on_request()).unwrap_or_default();
    let Some(unknown) = names.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let text = match known.is_empty() {
        true => "this coordinator has no targets that jobs can name".to_owned(),
        false => format!("jobs can name {}, and not `{unknown}`", known.join(", ")),
    };
    Err(RequestError::Invalid(format!("notify: {text}")))
}

/// Sends a test event to a target.
pub(super) async fn test(context: &Context, name: &str) -> Result<Response, RequestError> {
    let shown = tessera_protocol::names::printable(name);
    let Some(targets) = context.targets.get() else {
        let text = "this coordinator tells no events: start it with --events FILE";
        return Err(RequestError::Invalid(text.to_owned()));
    };
    let Some(tested) = targets.test(name) else {
        let names: Vec<String> = targets.figures().into_iter().map(|target| target.name).collect();
        let known = names.join(", ");
        return Err(RequestError::NotFound(format!("there is no target `{shown}`, only {known}")));
    };
    let failed = |problem| RequestError::Unavailable(format!("`{shown}`: {problem}"));
    tested.await.map_err(failed).map(|()| Response::Done)
}
