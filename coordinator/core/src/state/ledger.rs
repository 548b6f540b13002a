//! The durable state of a running core, and the records of the current step. Makes sure that only
//! records change the state, so that a replay gives the same state.

use crate::journal::{Commit, Record, Spending};
use crate::state::farm::Farm;
use crate::time::Moment;
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
    /// Device time of this step that is not in a record yet, by job.
    spent: BTreeMap<JobId, (Moment, Vec<Spending>)>,
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
        Self { farm, records: Vec::new(), commits: BTreeMap::new(), spent: BTreeMap::new() }
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
        // Nothing is said of a job after it is forgotten.
        if let Record::JobForgotten { job } = &record {
            self.flush_spent(*job);
        }
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

    /// Records device time, in one record with the others of its job in this step.
    pub(crate) fn record_spent(&mut self, job: JobId, at: Moment, spending: Spending) {
        let record = Record::TimeSpent { job, at, spent: vec![spending.clone()] };
        self.farm.apply(&record).expect("time is spent for jobs that are known");
        let (_, all) = self.spent.entry(job).or_insert((at, Vec::new()));
        let alike = |other: &&mut Spending| {
            other.device == spending.device && other.an_hour == spending.an_hour
        };
        match all.iter_mut().find(alike) {
            Some(other) => {
                other.micros += spending.micros;
                other.lost_micros += spending.lost_micros;
            }
            None => all.push(spending),
        }
    }

    /// Takes the records of the finished step.
    pub(crate) fn take_records(&mut self) -> Vec<Record> {
        self.flush_commits();
        let jobs: Vec<JobId> = self.spent.keys().copied().collect();
        jobs.into_iter().for_each(|job| self.flush_spent(job));
        std::mem::take(&mut self.records)
    }

    fn flush_spent(&mut self, job: JobId) {
        if let Some((at, spent)) = self.spent.remove(&job) {
            self.records.push(Record::TimeSpent { job, at, spent });
        }
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
