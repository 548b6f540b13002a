//! The durable state of a running core, and the records of the current step. Makes sure that only
//! records change the state, so that a replay gives the same state.

use crate::journal::{Commit, Record};
use crate::state::farm::Farm;
use std::collections::BTreeMap;
use std::ops::Deref;
use tessera_protocol::ids::{FrameNumber, JobId, UnitKey};

/// Most commits in one record: 4096 of 60 bytes are a quarter of a megabyte.
const COMMITS_MAX: usize = 4096;

/// The durable state, which anyone may read and only records change.
#[derive(Debug)]
pub(crate) struct Ledger {
    farm: Farm,
    /// Records of this step, in order.
    records: Vec<Record>,
    /// Commits of this step that are not in a record yet, by frame.
    commits: BTreeMap<(JobId, FrameNumber), Vec<Commit>>,
}

impl Deref for Ledger {
    type Target = Farm;

    fn deref(&self) -> &Farm {
        &self.farm
    }
}

impl Ledger {
    /// Creates a ledger that continues from a state.
    pub(crate) fn new(farm: Farm) -> Self {
        Self { farm, records: Vec::new(), commits: BTreeMap::new() }
    }

    /// Takes a record over that another process has made.
    pub(crate) fn follow(&mut self, record: &Record) -> Result<(), String> {
        self.farm.apply(record)
    }

    /// Returns the state.
    pub(crate) fn into_farm(self) -> Farm {
        self.farm
    }

    /// Records a fact: it is true from now on, here and after a restart.
    pub(crate) fn record(&mut self, record: Record) {
        self.flush_commits();
        self.farm.apply(&record).expect("what is recorded has been checked against the state");
        self.records.push(record);
    }

    /// Records a commit, in one record with the others of its frame in this step.
    pub(crate) fn record_commit(&mut self, unit: UnitKey, commit: Commit) {
        let record =
            Record::UnitsCommitted { job: unit.job, frame: unit.frame, commits: vec![commit] };
        self.farm.apply(&record).expect("what is committed has been checked against the state");
        self.commits.entry((unit.job, unit.frame)).or_default().push(commit);
    }

    /// Takes the records of the finished step.
    pub(crate) fn take_records(&mut self) -> Vec<Record> {
        self.flush_commits();
        std::mem::take(&mut self.records)
    }

    fn flush_commits(&mut self) {
        for ((job, frame), commits) in std::mem::take(&mut self.commits) {
            for part in commits.chunks(COMMITS_MAX) {
                let commits = part.to_vec();
                self.records.push(Record::UnitsCommitted { job, frame, commits });
            }
        }
    }
}
