//! What has changed since it was last told to those who follow the farm, and when it is due again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tessera_core::journal::EndedAttempt;
use tessera_core::{Action, Record};
use tessera_protocol::node::CoordinatorToNode;
use tessera_protocol::status::{NodeSummary, Waits};
use tessera_protocol::{FrameNumber, JobId, NodeId};

/// Shortest time between two batches.
const BATCH_EVERY: Duration = Duration::from_millis(250);
/// The same where a batch is large.
const LARGE_BATCH_EVERY: Duration = Duration::from_millis(800);
/// Jobs and frames from which on a batch is large.
const LARGE_BATCH: usize = 100;
/// How often nodes, and the reasons why jobs wait, are compared with what was told last.
pub(super) const COMPARE_EVERY: Duration = Duration::from_secs(2);

/// What has changed since the last batch.
#[derive(Default)]
pub(super) struct NewsRoom {
    /// When the newest batch was made; None while nobody follows.
    pub(super) last: Option<Instant>,
    pub(super) compared: Option<Instant>,
    pub(super) jobs: BTreeSet<JobId>,
    pub(super) frames: BTreeSet<(JobId, FrameNumber)>,
    pub(super) nodes_changed: bool,
    /// Nodes as they were told last.
    pub(super) nodes: BTreeMap<NodeId, NodeSummary>,
    /// Why jobs waited when they were compared last.
    pub(super) waits: BTreeMap<JobId, (Option<Waits>, String)>,
    /// Job from which on jobs are compared next.
    pub(super) next_job: Option<JobId>,
}

impl NewsRoom {
    /// Returns when the next batch is due; None while nobody follows.
    pub(super) fn due(&self) -> Option<Instant> {
        let last = self.last?;
        let compare = self.compared.map_or(last, |at| at + COMPARE_EVERY);
        let changed = self.jobs.len() + self.frames.len();
        if changed == 0 && !self.nodes_changed {
            return Some(compare);
        }
        let pause = if changed < LARGE_BATCH { BATCH_EVERY } else { LARGE_BATCH_EVERY };
        Some(compare.min(last + pause))
    }

    /// Notes what a record is about.
    pub(super) fn note(&mut self, record: &Record) {
        if self.last.is_none() {
            return;
        }
        match record {
            Record::AttemptsEnded { attempts, .. } => {
                for EndedAttempt { lease, .. } in attempts {
                    self.frame(lease.unit.job, lease.unit.frame);
                }
                self.nodes_changed = true;
            }
            Record::NodeSuspected { .. }
            | Record::NodeReleased { .. }
            | Record::NodeDrained { .. }
            | Record::NodeJoined { .. }
            | Record::NodeGone { .. }
            | Record::NodeReplaced { .. }
            | Record::NodesForgotten { .. } => self.nodes_changed = true,
            Record::EpochsReserved { .. }
            | Record::CostRulesSet { .. }
            | Record::StorageCounted { .. }
            | Record::PresetSet { .. } => {}
            Record::JobAccepted { job, .. }
            | Record::JobPinned { job, .. }
            | Record::JobEnded { job, .. }
            | Record::JobForgotten { job }
            | Record::JobPaused { job, .. }
            | Record::DeviceWaited { job, .. }
            | Record::TimeSpent { job, .. }
            | Record::WaitEnded { job, .. }
            | Record::JobResumed { job }
            | Record::JobRetried { job, .. }
            | Record::ExposureMetered { job, .. }
            | Record::NodeBarred { job, .. }
            | Record::JobChanged { job, .. } => {
                self.jobs.insert(*job);
            }
            Record::UnitsCommitted { job, frame, .. }
            | Record::FrameFinished { job, frame, .. }
            | Record::FrameFailed { job, frame, .. }
            | Record::UnitChecked { job, frame, .. }
            | Record::CheckWaived { job, frame, .. }
            | Record::UnitsTakenBack { job, frame, .. }
            | Record::CopyStopped { job, frame, .. }
            | Record::PartCommitted { job, frame, .. }
            | Record::PartsDropped { job, frame, .. }
            | Record::RoundMeasured { job, frame, .. }
            | Record::FinishingBegun { job, frame }
            | Record::FinishingClosed { job, frame, .. }
            | Record::ResultsLost { job, frame, .. } => self.frame(*job, *frame),
        }
    }

    /// Notes which jobs get work.
    pub(super) fn note_action(&mut self, action: &Action) {
        if self.last.is_none() {
            return;
        }
        if let Action::Send { message: CoordinatorToNode::Work(granted), .. } = action {
            self.jobs.extend(granted.iter().map(|granted| granted.job));
        }
    }

    /// Notes that a node came or went.
    pub(super) fn note_nodes(&mut self) {
        self.nodes_changed = true;
    }

    fn frame(&mut self, job: JobId, frame: FrameNumber) {
        self.jobs.insert(job);
        self.frames.insert((job, frame));
    }
}
