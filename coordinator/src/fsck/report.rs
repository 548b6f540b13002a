//! The report of `fsck`: counts and findings.

use super::finding::{Finding, FindingKind, Severity};
use serde::Serialize;
use tessera_protocol::client::AuditReport;

/// Most findings in a report. A disk that lost a folder has one for each file.
const FINDINGS_MAX: usize = 1000;

/// How much `fsck` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Checks only names and lengths of blobs.
    Quick,
    /// Reads every byte of every blob.
    Whole,
}

/// Counts and findings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FsckReport {
    /// Number of values in the journal.
    pub values: u64,
    /// Number of records and of parts of the snapshot.
    pub records: u64,
    /// Number of jobs in the journal.
    pub jobs: u64,
    /// Number of jobs that have not ended.
    pub jobs_open: u64,
    /// Number of committed units.
    pub units_committed: u64,
    /// Number of units that were committed more than once. It must be 0.
    pub units_committed_twice: u64,
    /// Number of units of open jobs that wait for a result. Each can be leased.
    pub units_open: u64,
    /// Number of finished frames.
    pub frames: u64,
    /// Device time that was spent for all jobs, in milliseconds, also for forgotten ones.
    pub device_millis: u64,
    /// Number of join tokens.
    pub tokens: u64,
    /// Number of members: people and nodes that hold names.
    pub members: u64,
    /// Number of spools on the disk.
    pub spools: u64,
    /// Number of results in spools.
    pub results: u64,
    /// Number of files among the blobs.
    pub blobs: u64,
    /// Bytes of these files.
    pub blob_bytes: u64,
    /// The faults that were found.
    pub findings: Vec<Finding>,
    /// Number of findings that are not listed, because there are too many.
    pub findings_left_out: u64,
}

impl FsckReport {
    /// Adds a finding.
    pub(super) fn find(
        &mut self,
        kind: FindingKind,
        place: impl Into<String>,
        problem: impl Into<String>,
    ) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding::new(kind, place, problem));
        } else {
            self.findings_left_out += 1;
        }
    }

    /// Returns the findings that report a loss.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }

    /// Returns whether no promised data is lost.
    pub fn is_clean(&self) -> bool {
        self.findings_left_out == 0 && self.errors().next().is_none()
    }

    /// Returns the short form that is sent to clients.
    pub fn audit(&self) -> AuditReport {
        let line = |finding: &Finding| format!("{}: {}", finding.place, finding.problem);
        AuditReport {
            records: self.records,
            jobs: self.jobs,
            units_committed: self.units_committed,
            units_committed_twice: self.units_committed_twice,
            frames: self.frames,
            device_millis: self.device_millis,
            problems: self.errors().map(line).collect(),
        }
    }
}
