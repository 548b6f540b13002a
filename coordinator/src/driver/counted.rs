//! What happened since this process began, counted by the records and actions of the core as they
//! go to the store. For monitoring, which wants counts that only grow; decides nothing.

use std::collections::BTreeMap;
use tessera_core::journal::{EndedAttempt, Ending};
use tessera_core::{Arrived, Core, Record};
use tessera_protocol::node::Failure;
use tessera_protocol::status::JobState;

/// Counts by name; a name that never occurred has 0.
pub type Named = BTreeMap<&'static str, u64>;

/// How an attempt may end without a result.
const ENDINGS: [&str; 8] = [
    "failed",
    "expired",
    "lost",
    "timed_out",
    "not_prepared",
    "node_limit",
    "failed_again",
    "idle",
];
/// What nodes may report of a unit that they could not make.
const FAILURES: [&str; 10] = [
    "scene",
    "not_able",
    "asset",
    "device",
    "out_of_memory",
    "worker",
    "timed_out",
    "program",
    "kernel",
    "node_limit",
];
/// How a job may end.
const ENDS: [&str; 3] = ["done", "failed", "cancelled"];
/// How a check may end.
const CHECKS: [&str; 2] = ["made", "waived"];
/// How a frame may end.
const FRAMES: [&str; 2] = ["done", "failed"];

/// What happened since this process began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Committed units, those that finish frames included.
    pub units_committed: u64,
    /// Camera samples of the results that were taken.
    pub samples: u64,
    /// Device time of the results that were taken, in microseconds, as nodes report it.
    pub device_micros: u64,
    /// Attempts that ended without a result, by how.
    pub attempts_ended: Named,
    /// Failures that nodes reported, by what failed.
    pub failures_reported: Named,
    /// Jobs that were accepted.
    pub jobs_accepted: u64,
    /// Jobs that ended, by how.
    pub jobs_ended: Named,
    /// Frames that ended, by how.
    pub frames_ended: Named,
    /// Results that were rendered again on another node, and those that no other node was there
    /// for.
    pub checks: Named,
    /// Times that a node came under suspicion.
    pub suspicions: u64,
}

fn zeros(names: &[&'static str]) -> Named {
    names.iter().map(|name| (*name, 0)).collect()
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            units_committed: 0,
            samples: 0,
            device_micros: 0,
            attempts_ended: zeros(&ENDINGS),
            failures_reported: zeros(&FAILURES),
            jobs_accepted: 0,
            jobs_ended: zeros(&ENDS),
            frames_ended: zeros(&FRAMES),
            checks: zeros(&CHECKS),
            suspicions: 0,
        }
    }
}

impl Counted {
    /// Counts what a record says.
    pub(super) fn note(&mut self, record: &Record) {
        match record {
            Record::UnitsCommitted { commits, .. } => self.units_committed += commits.len() as u64,
            Record::AttemptsEnded { attempts, .. } => {
                attempts.iter().for_each(|attempt| self.note_attempt(attempt));
            }
            Record::JobAccepted { .. } => self.jobs_accepted += 1,
            Record::JobEnded { state: JobState::Done, .. } => add(&mut self.jobs_ended, "done"),
            Record::JobEnded { state: JobState::Failed, .. } => {
                add(&mut self.jobs_ended, "failed");
            }
            Record::JobEnded { .. } => add(&mut self.jobs_ended, "cancelled"),
            Record::FrameFinished { .. } => add(&mut self.frames_ended, "done"),
            Record::FrameFailed { .. } => add(&mut self.frames_ended, "failed"),
            Record::UnitChecked { .. } => add(&mut self.checks, "made"),
            Record::CheckWaived { .. } => add(&mut self.checks, "waived"),
            Record::NodeSuspected { .. } => self.suspicions += 1,
            _ => {}
        }
    }

    fn note_attempt(&mut self, attempt: &EndedAttempt) {
        let ending = match &attempt.ending {
            Ending::Failed(_) => "failed",
            Ending::Expired => "expired",
            Ending::Lost => "lost",
            Ending::TimedOut(_) => "timed_out",
            Ending::Unprepared(_) => "not_prepared",
            Ending::Limited(_) => "node_limit",
            Ending::Repeated(_) => "failed_again",
            Ending::Idle(_) => "idle",
        };
        add(&mut self.attempts_ended, ending);
    }

    /// Counts a failure that a node reports, whether or not its lease still counts.
    pub(super) fn note_failure(&mut self, failure: &Failure) {
        let what = match failure {
            Failure::Scene(_) => "scene",
            Failure::Unable(_) => "not_able",
            Failure::Asset(_) => "asset",
            Failure::Device(_) => "device",
            Failure::OutOfMemory(_) => "out_of_memory",
            Failure::Worker(_) => "worker",
            Failure::TimedOut(_) => "timed_out",
            Failure::Program(_) => "program",
            Failure::Kernel(_) => "kernel",
            Failure::Limit(_) => "node_limit",
        };
        add(&mut self.failures_reported, what);
    }

    /// Counts the work in a result that is kept.
    pub(super) fn note_result(&mut self, core: &Core, arrived: &Arrived) {
        self.samples += core.camera_samples(arrived.lease.unit, arrived.shape.size());
        self.device_micros = self.device_micros.saturating_add(arrived.device_micros);
    }
}

fn add(counts: &mut Named, name: &'static str) {
    *counts.entry(name).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_core::Moment;
    use tessera_protocol::{Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};

    #[test]
    fn every_ending_and_failure_has_a_name_of_the_lists() {
        let text = String::new;
        let endings = [
            Ending::Failed(text()),
            Ending::Expired,
            Ending::Lost,
            Ending::TimedOut(text()),
            Ending::Unprepared(text()),
            Ending::Limited(text()),
            Ending::Repeated(text()),
            Ending::Idle(text()),
        ];
        let (job, node) = (JobId(uuid::Uuid::nil()), NodeId(uuid::Uuid::nil()));
        let unit = UnitKey { job, frame: FrameNumber(1), unit: UnitIndex(0) };
        let lease = Lease { unit, epoch: Epoch(1) };
        let attempts = endings.map(|ending| EndedAttempt { lease, ending }).to_vec();
        let mut counted = Counted::default();
        counted.note(&Record::AttemptsEnded { at: Moment(0), node, name: text(), attempts });
        assert_eq!(counted.attempts_ended, ENDINGS.map(|name| (name, 1)).into());
        for failure in [
            Failure::Scene(text()),
            Failure::Unable(text()),
            Failure::Asset(text()),
            Failure::Device(text()),
            Failure::Worker(text()),
            Failure::TimedOut(text()),
            Failure::Program(text()),
            Failure::Kernel(text()),
        ] {
            counted.note_failure(&failure);
        }
        let seen = counted.failures_reported.values().filter(|count| **count == 1).count();
        assert_eq!((seen, counted.failures_reported.len()), (8, FAILURES.len()));
        for (state, name) in [
            (JobState::Done, "done"),
            (JobState::Failed, "failed"),
            (JobState::Cancelled, "cancelled"),
        ] {
            counted.note(&Record::JobEnded { job, state, at: Moment(0), note: text() });
            assert_eq!(counted.jobs_ended[name], 1);
        }
        assert_eq!(counted.jobs_ended.len(), ENDS.len());
    }
}
