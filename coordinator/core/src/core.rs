//! The core itself: takes inputs, keeps the state, gives steps. What each noun does is in its own module.

use crate::action::Step;
use crate::input::Input;
use crate::journal::Record;
use crate::moment::Moment;
use crate::settings::Settings;
use crate::snapshot::{Part, SnapshotPart};
use tessera_protocol::client::AuditReport;
use tessera_protocol::ids::{Epoch, JobId};
use tessera_protocol::status::{FrameStatus, JobDetail, JobSummary, NodeSummary};

/// Why records are no journal of a core: the store is damaged, or of another farm. Never repaired in silence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {position} of the journal contradicts what is before it: {problem}")]
pub struct ReplayError {
    /// Position of the record (or snapshot part), counted from 0.
    pub position: u64,
    /// What is wrong.
    pub problem: String,
}

/// The state machine that decides everything.
#[derive(Debug)]
pub struct Core {
    settings: Settings,
    now: Moment,
    step: Step,
}

impl Core {
    /// A farm that has never run.
    pub fn new(settings: Settings, now: Moment) -> Self {
        Self { settings, now, step: Step::default() }
    }

    /// The farm that a snapshot (may be empty) and the records after it tell of. Frames that wait for their files are asked for again by the
    /// first step.
    pub fn replay(
        settings: Settings,
        snapshot: impl IntoIterator<Item = SnapshotPart>,
        records: impl IntoIterator<Item = Record>,
        now: Moment,
    ) -> Result<Self, ReplayError> {
        let _ = (snapshot.into_iter().count(), records.into_iter().count());
        Ok(Self::new(settings, now))
    }

    /// The durable state: all records so far, those of steps not yet taken included. Take the step first, and store the snapshot after it.
    pub fn snapshot(&self) -> Vec<SnapshotPart> {
        vec![SnapshotPart(Part::Farm { epochs_reserved: Epoch(0) })]
    }

    /// Takes one input in. Never panics, whatever a peer sent.
    pub fn handle(&mut self, input: Input, now: Moment) {
        self.now = self.now.max(now);
        let _ = (input, &self.settings);
    }

    /// What came of the inputs since the last call.
    pub fn take_step(&mut self) -> Step {
        std::mem::take(&mut self.step)
    }

    /// When the core wants a [`Input::Tick`] at the latest, if nothing else comes; None: never.
    pub fn next_wakeup(&self) -> Option<Moment> {
        None
    }

    /// Jobs in the order of their acceptance, at most the newest [`tessera_protocol::limits::ROWS_MAX`].
    pub fn jobs(&self) -> Vec<JobSummary> {
        Vec::new()
    }

    /// The line of one job.
    pub fn job_summary(&self, _job: JobId) -> Option<JobSummary> {
        None
    }

    /// One job, whole.
    pub fn job(&self, _job: JobId) -> Option<JobDetail> {
        None
    }

    /// A page of a job's frames from a position on, at most [`tessera_protocol::limits::FRAME_PAGE_MAX`]; None for no such job.
    pub fn frames(&self, _job: JobId, _from: u32) -> Option<Vec<FrameStatus>> {
        None
    }

    /// Nodes by name, at most [`tessera_protocol::limits::ROWS_MAX`].
    pub fn nodes(&self, _now: Moment) -> Vec<NodeSummary> {
        Vec::new()
    }

    /// Checks a journal against itself, with its own bookkeeping: see [`AuditReport`].
    pub fn audit(
        snapshot: impl IntoIterator<Item = SnapshotPart>,
        records: impl IntoIterator<Item = Record>,
    ) -> AuditReport {
        let _ = (snapshot.into_iter().count(), records.into_iter().count());
        AuditReport::default()
    }
}
