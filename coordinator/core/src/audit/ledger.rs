//! What the audit keeps: jobs, epochs and the report. Judges no record.

use super::entry::Entry;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::client::AuditReport;
use tessera_protocol::ids::{Epoch, JobId};

/// Most problems that a report lists.
const PROBLEMS_MAX: usize = 100;

/// The state according to the records so far, kept apart from the state of the core.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) report: AuditReport,
    pub(super) reserved: Epoch,
    /// Device time of all jobs, also of forgotten ones.
    pub(super) device_micros: u64,
    pub(super) jobs: BTreeMap<JobId, Entry>,
    /// Epochs of commits in records, without those in the snapshot.
    pub(super) epochs: BTreeSet<Epoch>,
}

impl Ledger {
    pub(super) fn problem(&mut self, text: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(text);
        }
    }

    /// The entry of an open job; a record about any other is a problem.
    pub(super) fn open(&mut self, id: JobId, what: &str) -> Option<&mut Entry> {
        let problem = match self.jobs.get(&id) {
            None => format!("{what} of job {id}, which was never accepted"),
            Some(entry) if entry.ended => format!("{what} of job {id}, which had ended"),
            Some(_) => return self.jobs.get_mut(&id),
        };
        self.problem(problem);
        None
    }
}
