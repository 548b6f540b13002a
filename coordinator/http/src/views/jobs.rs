//! Jobs and frames in JSON.

use super::costs::{Spent, Stored};
use super::hex;
use serde::Serialize;
use serde_json::Value;
use tessera_coordinator::api::json;
use tessera_protocol::selection;
use tessera_protocol::status::{self, Waits};
use utoipa::ToSchema;

/// A job in a listing. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Job {
    /// Id of the job, a UUID.
    pub(crate) job: String,
    /// Name of the job.
    pub(crate) name: String,
    /// Name of who submitted the job.
    pub(crate) owner: String,
    /// Number of that identity.
    pub(crate) owner_id: u64,
    /// `queued`, `running`, `paused`, `done`, `failed` or `cancelled`.
    pub(crate) state: String,
    /// Priority, 0 to 100.
    pub(crate) priority: u8,
    /// When the job was accepted.
    pub(crate) submitted_at: u64,
    /// When the job ended.
    pub(crate) ended_at: Option<u64>,
    /// Number of frames.
    pub(crate) frames: u32,
    /// Number of finished frames.
    pub(crate) frames_done: u32,
    /// Number of frames that cannot finish.
    pub(crate) frames_failed: u32,
    /// Number of units, as far as they are known.
    pub(crate) units: u64,
    /// Number of committed units.
    pub(crate) units_committed: u64,
    /// Number of units that are leased now.
    pub(crate) units_leased: u64,
    /// Committed camera samples: samples per pixel × pixels.
    pub(crate) samples_committed: u64,
    /// Committed camera samples that came as parts of units.
    pub(crate) samples_kept: u64,
    /// Why the job waits or failed; empty if it does neither.
    pub(crate) note: String,
    /// Why the job waits, in a word; null if it does not.
    pub(crate) waits: Option<String>,
    /// Pool whose nodes can work on the job; null allows any node.
    pub(crate) pool: Option<String>,
    /// Seconds until the job should end; null if that is not known.
    pub(crate) left_secs: Option<u64>,
    /// Device time that was spent for the job, in milliseconds, with what was lost.
    pub(crate) device_millis: u64,
    /// What that time and the space of its finished frames cost, by the prices of when they were
    /// used.
    pub(crate) cost: f64,
}

impl From<&status::JobSummary> for Job {
    fn from(job: &status::JobSummary) -> Self {
        Self {
            job: job.job.to_string(),
            name: job.name.clone(),
            owner: job.owner.clone(),
            owner_id: job.owner_id,
            state: job.state.name().to_owned(),
            priority: job.priority,
            submitted_at: job.submitted_at,
            ended_at: job.ended_at,
            frames: job.frames,
            frames_done: job.frames_done,
            frames_failed: job.frames_failed,
            units: job.units,
            units_committed: job.units_committed,
            units_leased: job.units_leased,
            samples_committed: job.samples_committed,
            samples_kept: job.samples_kept,
            note: job.note.clone(),
            waits: job.waits.map(word),
            pool: job.pool.clone(),
            left_secs: job.left_secs,
            device_millis: job.device_millis,
            cost: job.cost.decimal(),
        }
    }
}

/// The word for why a job waits, as it is in the protocol's JSON.
fn word(waits: Waits) -> String {
    match serde_json::to_value(waits) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// One page of jobs, newest first. It may be empty although others follow.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobPage {
    /// The jobs.
    pub(crate) jobs: Vec<Job>,
    /// `cursor` of the next page; null if this is the last one.
    pub(crate) next: Option<String>,
}

/// A job as messages name it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobName {
    /// Id of the job.
    job: String,
    /// Name of the job.
    name: String,
    /// Name of the owner.
    owner: String,
    /// Number of the owner's identity.
    owner_id: u64,
    /// State of the job.
    state: String,
    /// When the job was accepted.
    submitted_at: u64,
}

impl From<&status::JobName> for JobName {
    fn from(job: &status::JobName) -> Self {
        Self {
            job: job.job.to_string(),
            name: job.name.clone(),
            owner: job.owner.clone(),
            owner_id: job.owner_id,
            state: job.state.name().to_owned(),
            submitted_at: job.submitted_at,
        }
    }
}

/// Everything about one job.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobDetail {
    /// The job's line in the listing.
    pub(crate) summary: Job,
    /// What was submitted, with all options.
    #[schema(value_type = Object)]
    pub(crate) spec: Value,
    /// Fingerprint of the job's results; null before the first result.
    pub(crate) fingerprint: Option<String>,
    /// Failed attempts, newest last.
    pub(crate) failures: Vec<FailureNote>,
    /// Units that two nodes worked on at the same time.
    pub(crate) copies: CopyCount,
    /// For how long devices had nothing to do because a frame was not prepared, in all, in seconds.
    pub(crate) devices_waited_s: f64,
    /// Jobs that this one waits for or has waited for.
    pub(crate) after: Vec<AfterStatus>,
    /// Jobs that wait for this one or have waited for it: the first 64.
    pub(crate) awaited_by: Vec<AfterStatus>,
    /// Number of all jobs that wait for this one or have waited for it.
    pub(crate) awaited_count: u64,
    /// Device time that was spent for the job, by product name.
    pub(crate) spent: Vec<Spent>,
    /// Space of the job's finished frames.
    pub(crate) stored: Stored,
    /// Expected device time of what is left to do, in milliseconds; null if it is not known.
    pub(crate) left_millis: Option<u64>,
    /// Name of the currency of costs; empty where nothing has a price.
    pub(crate) currency: String,
}

/// One job that waits for another: how far the wait is, and the job at its other end.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AfterStatus {
    /// Id of the job at the other end.
    pub(crate) job: String,
    /// Name of that job; empty if it was forgotten.
    pub(crate) name: String,
    /// State of that job; null if it was forgotten.
    pub(crate) state: Option<String>,
    /// `success`, `end` or `frames`.
    pub(crate) until: String,
    /// Number of frames that are waited for.
    pub(crate) frames: u32,
    /// Number of those that are finished.
    pub(crate) frames_done: u32,
    /// Whether the wait is over.
    pub(crate) over: bool,
}

impl From<&status::AfterStatus> for AfterStatus {
    fn from(after: &status::AfterStatus) -> Self {
        Self {
            job: after.job.to_string(),
            name: after.name.clone(),
            state: after.state.map(|state| state.name().to_owned()),
            until: after.until.name().to_owned(),
            frames: after.frames,
            frames_done: after.frames_done,
            over: after.over,
        }
    }
}

impl From<&status::JobDetail> for JobDetail {
    fn from(detail: &status::JobDetail) -> Self {
        Self {
            summary: Job::from(&detail.summary),
            spec: json::value(&detail.spec).unwrap_or_default(),
            fingerprint: detail.fingerprint.map(|fingerprint| hex(&fingerprint.0)),
            failures: detail.failures.iter().map(FailureNote::from).collect(),
            copies: CopyCount::from(&detail.copies),
            devices_waited_s: detail.devices_waited_millis as f64 / 1e3,
            after: detail.after.iter().map(AfterStatus::from).collect(),
            awaited_by: detail.awaited_by.iter().map(AfterStatus::from).collect(),
            awaited_count: detail.awaited_count,
            spent: detail.spent.iter().map(Spent::from).collect(),
            stored: Stored::from(&detail.stored),
            left_millis: detail.left_millis,
            currency: detail.currency.clone(),
        }
    }
}

/// One failed attempt.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct FailureNote {
    /// Time of the failure.
    pub(crate) at: u64,
    /// Unit of the attempt, as text.
    pub(crate) unit: String,
    /// Name of the node.
    pub(crate) node: String,
    /// Reason of the failure.
    pub(crate) reason: String,
}

impl From<&status::FailureNote> for FailureNote {
    fn from(note: &status::FailureNote) -> Self {
        let status::FailureNote { at, unit, node, reason } = note.clone();
        Self { at, unit, node, reason }
    }
}

/// Units that got a second lease beside the first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CopyCount {
    /// Units that have two leases now.
    running: u64,
    /// Units whose copy finished first.
    won: u64,
    /// Units whose first lease finished first.
    lost: u64,
    /// How long the stopped leases had been held, in milliseconds.
    wasted_millis: u64,
}

impl From<&status::CopyCount> for CopyCount {
    fn from(count: &status::CopyCount) -> Self {
        let status::CopyCount { running, won, lost, wasted_millis } = *count;
        Self { running, won, lost, wasted_millis }
    }
}

/// State of one frame of a job.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Frame {
    /// Number of the frame.
    pub(crate) frame: u32,
    /// `open` with `committed` of `units`, `resolving`, `finishing` with `done` of `pieces`, `done`
    /// with its files, or `failed` with the reason.
    #[schema(value_type = serde_json::Value)]
    pub(crate) state: Value,
    /// Samples per pixel of a frame that was sampled for a time and gets no more.
    pub(crate) samples: Option<u32>,
}

impl From<&status::FrameStatus> for Frame {
    fn from(status: &status::FrameStatus) -> Self {
        let state = json::value(&status.state).unwrap_or_default();
        Self { frame: status.frame.0, state, samples: status.samples }
    }
}

/// What was done to the selected jobs, or would be.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Changed {
    /// Jobs that were changed, with the state that they had before.
    jobs: Vec<JobName>,
    /// Named jobs that were like this already.
    unchanged: u64,
    /// Number of refusals.
    refused: u64,
    /// The first refusals.
    refusals: Vec<Refusal>,
    /// Number of jobs that are selected too, and for which one request has no room.
    left: u64,
}

/// Something that was asked for and not done.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Refusal {
    /// The text of the request, or the id of the job.
    what: String,
    /// Why it was not done.
    why: String,
}

impl From<&selection::JobsChanged> for Changed {
    fn from(changed: &selection::JobsChanged) -> Self {
        let refusal = |refusal: &selection::Refusal| Refusal {
            what: refusal.what.clone(),
            why: refusal.why.to_string(),
        };
        Self {
            jobs: changed.jobs.iter().map(JobName::from).collect(),
            unchanged: changed.unchanged,
            refused: changed.refused,
            refusals: changed.refusals.iter().map(refusal).collect(),
            left: changed.left,
        }
    }
}
