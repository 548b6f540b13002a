//! Checks a journal against itself with bookkeeping of its own, so that a fault of the core does
//! not hide itself.

mod checks;
mod entry;
pub(crate) mod invariants;
mod jobs;
mod ledger;
mod rounds;
mod snapshot;
mod units;
mod waits;

use crate::journal::Record;
use crate::state::snapshot::SnapshotPart;
use ledger::Ledger;
use rounds::Measurement;
use tessera_protocol::client::AuditReport;
use tessera_protocol::node::SampleRange;

/// Checks a snapshot (may be empty) and the records after it: every unit committed at most once
/// (and again only where it was taken back) and under a reserved epoch used for no other unit,
/// every finished frame with all its units, every job that is done with all its frames.
pub(crate) fn audit(
    snapshot: impl IntoIterator<Item = SnapshotPart>,
    records: impl IntoIterator<Item = Record>,
) -> AuditReport {
    let mut ledger = Ledger::default();
    for part in snapshot {
        ledger.report.records += 1;
        ledger.take_part(part.0);
    }
    for record in records {
        ledger.report.records += 1;
        ledger.take(record);
    }
    ledger.report.device_millis = ledger.device_micros / 1000;
    ledger.report
}

impl Ledger {
    fn take(&mut self, record: Record) {
        match record {
            Record::EpochsReserved { up_to } if up_to <= self.reserved => {
                self.problem(format!("epochs are reserved up to {up_to} after {}", self.reserved));
            }
            Record::EpochsReserved { up_to } => self.reserved = up_to,
            Record::JobAccepted { job, spec, .. } => {
                self.begin_waits(job, &spec.after);
                self.accept(job, &spec)
            }
            Record::WaitEnded { job, on } => self.end_wait(job, on),
            Record::JobPinned { job, fingerprint } => self.pin(job, fingerprint),
            Record::UnitsCommitted { job, frame, commits } => {
                commits.iter().for_each(|commit| self.commit(job, frame, commit));
            }
            Record::AttemptsEnded { attempts, .. } => {
                for attempt in attempts {
                    self.open(attempt.lease.unit.job, "an attempt");
                }
            }
            Record::FrameFinished { job, frame, .. } => self.finish(job, frame),
            Record::FrameFailed { job, frame, .. } => self.fail(job, frame),
            Record::JobEnded { job, state, .. } => self.end(job, state),
            Record::UnitChecked { job, frame, redone } => self.check(job, frame, &redone),
            Record::CheckWaived { job, frame, unit } => self.end_check(job, frame, unit),
            Record::UnitsTakenBack { job, frame, units, .. }
            | Record::ResultsLost { job, frame, units, .. } => {
                units.iter().for_each(|unit| self.take_back(job, frame, *unit));
                self.rewind(job, frame, &units);
            }
            Record::RoundMeasured { job, frame, round, going, spent_millis } => {
                self.measure(job, frame, Measurement { round, spent_millis, going: &going });
            }
            Record::FinishingBegun { job, frame } => self.begin_finishing(job, frame),
            Record::FinishingClosed { job, frame, .. } => self.close_finishing(job, frame),
            Record::NodeSuspected { node, .. } => self.suspect(node),
            Record::NodeBarred { job, node, .. } => self.bar(job, node),
            Record::CopyStopped { job, frame, unit, epoch, .. } => {
                self.stop_copy(job, frame, unit, epoch)
            }
            Record::PartCommitted { job, frame, commit, first, samples } => {
                self.commit_part(job, frame, &commit, SampleRange { first, count: samples });
            }
            Record::PartsDropped { job, frame, units, .. } => {
                units.iter().for_each(|unit| self.drop_parts(job, frame, *unit));
            }
            Record::NodeDrained { .. }
            | Record::NodeReleased { .. }
            | Record::NodeJoined { .. }
            | Record::NodeGone { .. }
            | Record::NodeReplaced { .. }
            | Record::NodesForgotten { .. }
            | Record::CostRulesSet { .. }
            | Record::StorageCounted { .. }
            | Record::PresetSet { .. }
            | Record::ExposureMetered { .. } => {}
            Record::JobForgotten { job } => self.forget(job),
            Record::JobPaused { job, .. } => self.pause(job, true),
            Record::JobResumed { job } => self.pause(job, false),
            Record::JobRetried { job, .. } => self.retry(job),
            Record::JobChanged { job, .. } => drop(self.open(job, "a change")),
            Record::DeviceWaited { job, .. } => drop(self.open(job, "a wait of a device")),
            Record::TimeSpent { job, spent, .. } => self.spend(job, &spent),
        }
    }
}
