//! What `fsck` saw: counts and findings.

use super::finding::{Finding, FindingKind, Severity};
use serde::Serialize;
use tessera_protocol::client::AuditReport;

/// Findings listed at most: a disk that lost a folder has one for each file.
const FINDINGS_MAX: usize = 1000;

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Blobs are looked for, by name and length.
    Quick,
    /// Every byte of every blob is read.
    Whole,
}

/// What `fsck` saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FsckReport {
    /// Values of the journal.
    pub values: u64,
    /// Records and parts of the snapshot.
    pub records: u64,
    /// Jobs.
    pub jobs: u64,
    /// Jobs that have not ended.
    pub jobs_open: u64,
    /// Units committed.
    pub units_committed: u64,
    /// Units committed more than once: must be 0.
    pub units_committed_twice: u64,
    /// Units of open jobs that wait for a result, each of which can be leased.
    pub units_open: u64,
    /// Finished frames.
    pub frames: u64,
    /// Join tokens.
    pub tokens: u64,
    /// Spools, and the results in them.
    pub spools: u64,
    /// Results in spools.
    pub results: u64,
    /// Files among the blobs.
    pub blobs: u64,
    /// Their bytes.
    pub blob_bytes: u64,
    /// Everything that is not as it should be.
    pub findings: Vec<Finding>,
    /// Findings that are not listed, because there are too many.
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

    /// Findings that say that something is lost.
    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error)
    }

    /// Nothing that was promised is lost.
    pub fn is_clean(&self) -> bool {
        self.findings_left_out == 0 && self.errors().next().is_none()
    }

    /// The short form that goes over the wire.
    pub fn audit(&self) -> AuditReport {
        let line = |finding: &Finding| format!("{}: {}", finding.place, finding.problem);
        AuditReport {
            records: self.records,
            jobs: self.jobs,
            units_committed: self.units_committed,
            units_committed_twice: self.units_committed_twice,
            frames: self.frames,
            problems: self.errors().map(line).collect(),
        }
    }
}
