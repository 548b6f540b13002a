//! An event, as receivers get it. `docs/events.md` describes the form.

use serde::{Deserialize, Serialize};
use tessera_core::Quarantine;
use tessera_protocol::JobId;
use tessera_protocol::status::{JobState, JobSummary};

/// Version of the body of a webhook. A field more does not change it.
pub(crate) const VERSION: u32 = 1;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EventKind {
    /// A job has ended with all its frames.
    Done,
    /// A job has ended without some or all of its frames.
    Failed,
    /// Somebody has cancelled a job.
    Cancelled,
    /// A job goes on only once somebody changes something.
    Waiting,
    /// A node or a device is quarantined or in doubt.
    Quarantine,
    /// Somebody tries a target.
    Test,
}

impl EventKind {
    /// The kinds that a target can ask for.
    pub(crate) const ASKED: [Self; 5] =
        [Self::Done, Self::Failed, Self::Cancelled, Self::Waiting, Self::Quarantine];

    /// Returns the name, as in JSON and in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Waiting => "waiting",
            Self::Quarantine => "quarantine",
            Self::Test => "test",
        }
    }

    /// Returns whether it is about a job.
    pub(crate) fn is_of_job(self) -> bool {
        match self {
            Self::Done | Self::Failed | Self::Cancelled | Self::Waiting => true,
            Self::Quarantine | Self::Test => false,
        }
    }

    /// Returns the event of a job that has ended in this state; None for an open one.
    pub(crate) fn of_end(state: JobState) -> Option<Self> {
        match state {
            JobState::Done => Some(Self::Done),
            JobState::Failed => Some(Self::Failed),
            JobState::Cancelled => Some(Self::Cancelled),
            JobState::Queued | JobState::Running | JobState::Paused => None,
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// The same at each attempt and after each start, so that a receiver can drop a repeated one.
    pub(crate) id: String,
    /// What has happened.
    pub(crate) kind: EventKind,
    /// When, in seconds since the Unix epoch.
    pub(crate) at: u64,
    /// The job that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<JobFacts>,
    /// The node that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<NodeFacts>,
}

/// A job, as it was at the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobFacts {
    pub(crate) id: JobId,
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) owner_id: u64,
    pub(crate) batch: Option<String>,
    /// Targets that the job names.
    #[serde(default)]
    pub(crate) notify: Vec<String>,
    pub(crate) state: String,
    /// Why it waits, in a word.
    pub(crate) waits: Option<String>,
    /// Why it waits or failed, for people.
    pub(crate) note: String,
    pub(crate) frames: u32,
    pub(crate) frames_done: u32,
    pub(crate) frames_failed: u32,
    pub(crate) submitted_at: u64,
    pub(crate) ended_at: Option<u64>,
}

/// What a job's spec says of its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) batch: Option<String>,
    /// Targets that the job names.
    pub(crate) notify: Vec<String>,
}

/// A node or a device of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeFacts {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The device; None means the whole node.
    pub(crate) device: Option<String>,
    /// Why, in a word.
    pub(crate) reason: String,
    /// Why, for people.
    pub(crate) note: String,
}

/// Returns an id that the same facts always have.
fn id_of(kind: EventKind, about: &str, at: u64) -> String {
    let hash = blake3::hash(format!("{} {about} {at}", kind.name()).as_bytes());
    hash.to_hex()[..32].to_owned()
}

impl Event {
    /// An event about a job. `at`: when it ended, or when the wait began.
    pub(crate) fn of_job(kind: EventKind, (job, asked): (&JobSummary, Asked), at: u64) -> Self {
        let facts = JobFacts {
            id: job.job,
            name: job.name.clone(),
            owner: job.owner.clone(),
            owner_id: job.owner_id,
            batch: asked.batch,
            notify: asked.notify,
            state: job.state.name().to_owned(),
            waits: job.waits.map(|waits| waits.name().to_owned()),
            note: job.note.clone(),
            frames: job.frames,
            frames_done: job.frames_done,
            frames_failed: job.frames_failed,
            submitted_at: job.submitted_at,
            ended_at: job.ended_at,
        };
        let id = id_of(kind, &job.job.to_string(), at);
        Self { id, kind, at, job: Some(facts), node: None }
    }

    /// An event about a quarantine that was first seen at a time.
    pub(crate) fn of_quarantine(found: &Quarantine, at: u64) -> Self {
        let facts = NodeFacts {
            id: found.node.to_string(),
            name: found.name.clone(),
            device: found.device.clone(),
            reason: found.word.to_owned(),
            note: found.why.clone(),
        };
        let device = found.device.as_deref().unwrap_or_default();
        let about = format!("{} {device} {}", found.node, found.word);
        let id = id_of(EventKind::Quarantine, &about, at);
        Self { id, kind: EventKind::Quarantine, at, job: None, node: Some(facts) }
    }

    /// An event that says only that somebody tries the target.
    pub(crate) fn of_test(target: &str, at: u64) -> Self {
        let id = id_of(EventKind::Test, target, at);
        Self { id, kind: EventKind::Test, at, job: None, node: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for kind in EventKind::ASKED.into_iter().chain([EventKind::Test]) {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.name()));
        }
    }

    #[test]
    fn an_id_depends_on_all_that_the_event_is() {
        let id = id_of(EventKind::Done, "a", 1);
        assert_eq!((id.len(), &id), (32, &id_of(EventKind::Done, "a", 1)));
        for other in [
            id_of(EventKind::Failed, "a", 1),
            id_of(EventKind::Done, "b", 1),
            id_of(EventKind::Done, "a", 2),
        ] {
            assert_ne!(id, other);
        }
    }
}
