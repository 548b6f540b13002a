//! All durable state: exactly what the journal says. Changed only by records, so that replay and
//! normal operation share one path.

use crate::journal::{Commit, EndedAttempt, Record, Redone, Spending};
use crate::state::accounts::Accounts;
use crate::state::awaited::Awaited;
use crate::state::job::{Job, Pause};
use crate::state::presets::Presets;
use crate::state::register::{Drain, Register};
use crate::state::shelf::Shelf;
use crate::state::spent::Stored;
use crate::state::trust::{Suspect, Trust};
use crate::state::usage::{JobUsage, Usage};
use crate::time::Moment;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, NodeId, UnitKey};
use tessera_protocol::job::JobSpec;
use tessera_protocol::node::SampleRange;
use tessera_protocol::status::FailureNote;

/// Most commits that are remembered with their epoch, so that a repeated result is acknowledged
/// again. Results wait seconds for their acknowledgement; a later repeat is answered `Unwanted`,
/// which the node treats the same.
pub(crate) const RECENT_COMMITS_MAX: usize = 8192;

/// The farm as the journal describes it: jobs, nodes, trust and reserved epochs.
#[derive(Debug)]
pub(crate) struct Farm {
    /// Where the files of finished frames are.
    pub(in crate::state) shelf: Arc<dyn Shelf>,
    pub(in crate::state) epochs_reserved: Epoch,
    pub(in crate::state) jobs: BTreeMap<JobId, Job>,
    /// Jobs by the order of their acceptance.
    pub(in crate::state) order: BTreeMap<u64, JobId>,
    /// What the jobs of each owner have together; follows from the jobs.
    usage: Usage,
    /// Which jobs wait for which; follows from the jobs.
    pub(in crate::state) awaited: Awaited,
    /// Nodes of the present and the past.
    pub(in crate::state) register: Register,
    pub(in crate::state) recent: BTreeMap<Epoch, UnitKey>,
    pub(in crate::state) trust: Trust,
    pub(in crate::state) accounts: Accounts,
    pub(in crate::state) presets: Presets,
}

// Not where the files of finished frames are, but what they are.
impl PartialEq for Farm {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            shelf: _,
            usage: _,
            awaited: _,
            epochs_reserved,
            jobs,
            order,
            register,
            recent,
            trust,
            accounts,
            presets,
        } = self;
        *epochs_reserved == other.epochs_reserved
            && *jobs == other.jobs
            && *order == other.order
            && *register == other.register
            && *recent == other.recent
            && *trust == other.trust
            && *accounts == other.accounts
            && *presets == other.presets
    }
}

impl Farm {
    /// Creates a farm without jobs that keeps the files of finished frames on a shelf.
    pub(crate) fn new(shelf: Arc<dyn Shelf>) -> Self {
        Self {
            shelf,
            epochs_reserved: Epoch(0),
            jobs: BTreeMap::new(),
            order: BTreeMap::new(),
            usage: Usage::default(),
            awaited: Awaited::default(),
            register: Register::default(),
            recent: BTreeMap::new(),
            trust: Trust::default(),
            accounts: Accounts::default(),
            presets: Presets::default(),
        }
    }

    /// Whether the files of a finished frame can no longer be read.
    pub(crate) fn has_lost_files(&self) -> bool {
        self.shelf.is_lost()
    }

    /// Returns a job that was accepted and not forgotten.
    pub(crate) fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// Returns the templates that admins have published.
    pub(crate) fn presets(&self) -> &Presets {
        &self.presets
    }

    /// Returns all jobs, by id.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    /// Returns the jobs from an id on, by id.
    pub(crate) fn jobs_from(&self, from: Bound<JobId>) -> impl Iterator<Item = &Job> {
        self.jobs.range((from, Bound::Unbounded)).map(|(_, job)| job)
    }

    /// Returns the jobs with ids from the first to the last, by id.
    pub(crate) fn between(&self, first: JobId, last: JobId) -> impl Iterator<Item = &Job> {
        self.jobs.range(first..=last).map(|(_, job)| job)
    }

    /// Returns the jobs before a place in the order of acceptance, newest first.
    pub(crate) fn newest(&self, before: u64) -> impl Iterator<Item = &Job> {
        let newest = self.order.range(..before).rev();
        newest.filter_map(|(_, id)| self.jobs.get(id))
    }

    /// Jobs in the order of their acceptance.
    pub(crate) fn order(&self) -> impl Iterator<Item = JobId> + '_ {
        self.order.values().copied()
    }

    /// Returns what the jobs of each owner have together.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Counts anew what the jobs of each owner have, and who waits for whom.
    pub(crate) fn recount(&mut self) {
        self.usage = Usage::of(self.jobs.values());
        self.recount_waits();
    }

    /// Checks what is counted of each owner against the jobs.
    pub(crate) fn check_usage(&self) -> Result<(), String> {
        let derived = Usage::of(self.jobs.values());
        match derived == self.usage {
            true => Ok(()),
            false => Err(format!("owners have {:?}, their jobs {derived:?}", self.usage)),
        }
    }

    /// Whether an operator has drained the node.
    pub(crate) fn is_drained(&self, node: NodeId) -> bool {
        self.register.drain_of(node).is_some()
    }

    /// Returns the nodes of the present and the past.
    pub(crate) fn register(&self) -> &Register {
        &self.register
    }

    /// Returns the newest commits, by epoch; at most [`RECENT_COMMITS_MAX`].
    pub(crate) fn recent_commits(&self) -> &BTreeMap<Epoch, UnitKey> {
        &self.recent
    }

    /// Returns how well nodes are known.
    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns what was spent for the jobs of each owner, and the rules.
    pub(crate) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Checks that what was spent for each owner is what was spent for the owner's jobs.
    pub(crate) fn check_accounts(&self) -> Result<(), String> {
        self.accounts.check(self.jobs.values().map(|job| (job.owner_id, &job.spent)))
    }

    /// Returns the first epoch that is not reserved.
    pub(crate) fn epochs_reserved(&self) -> Epoch {
        self.epochs_reserved
    }

    /// Applies a record. An error says how it contradicts the state, which must then be discarded.
    pub(crate) fn apply(&mut self, record: &Record) -> Result<(), String> {
        let job = record.job();
        let used = |farm: &Self| {
            let job = farm.jobs.get(&job?)?;
            Some((job.held_by(), JobUsage::of(job)))
        };
        let before = used(self);
        self.change(record)?;
        let after = used(self);
        if before != after
            && let Some((owner, _)) = before.as_ref().or(after.as_ref())
        {
            let owner = owner.clone();
            self.usage.change(&owner, before.map(|(_, used)| used), after.map(|(_, used)| used));
        }
        Ok(())
    }

    /// Takes over what an admin has set.
    fn set(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::CostRulesSet { rules, at, .. } => {
                self.accounts.set_rules(rules.as_ref().clone(), *at);
            }
            Record::PresetSet { name, text, by, at } => {
                self.presets.set(name, text.as_deref(), by, *at);
            }
            _ => {}
        }
        Ok(())
    }

    fn change(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::EpochsReserved { up_to } => self.reserve(*up_to),
            Record::JobAccepted { .. }
            | Record::FrameFinished { .. }
            | Record::JobEnded { .. }
            | Record::JobForgotten { .. }
            | Record::JobRetried { .. }
            | Record::WaitEnded { .. } => self.change_awaited(record),
            Record::JobPinned { job, fingerprint } => self.job_mut(*job)?.pin(*fingerprint),
            Record::UnitsCommitted { job, frame, commits } => self.commit(*job, *frame, commits),
            Record::AttemptsEnded { at, node, name, attempts } => {
                attempts.iter().try_for_each(|attempt| self.end_attempt(*at, *node, name, attempt))
            }
            Record::FrameFailed { job, frame, reason } => {
                self.job_mut(*job)?.fail_frame(*frame, reason)
            }
            Record::UnitChecked { job, frame, redone } => self.compare(*job, *frame, redone),
            Record::CheckWaived { job, frame, unit } => self.job_mut(*job)?.waive(*frame, *unit),
            Record::UnitsTakenBack { job, frame, units, below } => {
                self.job_mut(*job)?.take_back(*frame, units, *below)
            }
            Record::ResultsLost { .. }
            | Record::FinishingBegun { .. }
            | Record::FinishingClosed { .. } => self.change_finishing(record),
            Record::NodeSuspected { node, name, at, reason, guilty } => {
                let (name, reason) = (name.clone(), reason.clone());
                self.suspect(*node, Suspect { name, at: *at, reason, guilty: *guilty });
                Ok(())
            }
            Record::NodeBarred { job, frame, unit, node, name, at, reason } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: *unit };
                self.job_mut(*job)?.bar((*node, name), *at, unit, reason)
            }
            Record::JobPaused { job, by, at } => {
                self.job_mut(*job)?.pause(Pause { by: by.clone(), at: *at })
            }
            Record::JobResumed { job } => self.job_mut(*job)?.resume(),
            Record::CopyStopped { job, epoch, winner, millis, .. } => {
                self.job_mut(*job)?.stop_copy(*epoch, *winner, *millis)
            }
            Record::DeviceWaited { job, millis } => self.job_mut(*job)?.note_waited(*millis),
            Record::PartCommitted { job, frame, commit, first, samples } => {
                let samples = SampleRange { first: *first, count: *samples };
                self.commit_part(*job, *frame, commit, samples)
            }
            Record::PartsDropped { job, frame, units, below } => {
                self.job_mut(*job)?.drop_parts(*frame, units, *below)
            }
            Record::RoundMeasured { job, frame, round, going, spent_millis } => {
                self.job_mut(*job)?.end_round(*frame, *round, *spent_millis, going)
            }
            Record::ExposureMetered { job, stops } => self.job_mut(*job)?.meter(*stops),
            Record::NodeReleased { node } => self.release(*node),
            Record::NodeDrained { node, drained, leave, by, at } => {
                let drain = || Drain { leave: *leave, by: by.clone(), at: *at };
                self.register.set_drain(*node, drained.then(drain))
            }
            Record::NodeJoined { .. }
            | Record::NodeGone { .. }
            | Record::NodeReplaced { .. }
            | Record::NodesForgotten { .. } => self.register.change(record),
            Record::JobChanged { job, change, .. } => self.job_mut(*job)?.change(change.clone()),
            Record::TimeSpent { job, at, spent } => self.spend(*job, *at, spent),
            Record::StorageCounted { at } => self.count_storage(*at),
            Record::CostRulesSet { .. } | Record::PresetSet { .. } => self.set(record),
        }
    }

    /// Changes a job in a way that matters to those that wait for it, or for which it waits.
    fn change_awaited(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::JobAccepted { job, spec, owner, owner_id, at } => {
                self.insert(self.planned(*job, spec, (owner, *owner_id), *at))?;
                self.begin_waits(*job)
            }
            Record::FrameFinished { job, frame, files } => {
                self.job_mut(*job)?.finish_frame(*frame, files)?;
                self.note_ready(*job, *frame);
                Ok(())
            }
            Record::JobEnded { job, state, at, note } => {
                self.job_mut(*job)?.end_as(*state, *at, note)?;
                self.rest_waits(*job)
            }
            Record::JobForgotten { job } => self.forget(*job),
            Record::JobRetried { job, below, .. } => self.retry(*job, *below),
            Record::WaitEnded { job, on } => self.end_wait(*job, *on),
            _ => Ok(()),
        }
    }

    /// Opens the failed frames of a job again, and the waits of one that had ended.
    fn retry(&mut self, id: JobId, below: Epoch) -> Result<(), String> {
        let job = self.job_mut(id)?;
        let had_ended = job.is_final();
        job.retry(below)?;
        if had_ended { self.begin_waits(id) } else { Ok(()) }
    }

    /// Changes who finishes a frame, or what of it is lost, and says so.
    fn change_finishing(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::FinishingBegun { job, frame } => self.job_mut(*job)?.begin_finishing(*frame),
            Record::FinishingClosed { job, frame, at, reason } => {
                let job = self.job_mut(*job)?;
                job.close_finishing(*frame)?;
                job.note_failure(note_of(frame.to_string(), *at, reason));
                Ok(())
            }
            Record::ResultsLost { job, frame, units, below, at, reason } => {
                let job = self.job_mut(*job)?;
                job.take_back(*frame, units, *below)?;
                let first = units.first().map_or(0, |unit| unit.0);
                job.note_failure(note_of(format!("{frame}/u{first:05}"), *at, reason));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts device time for a job, which may have ended, and for its owner.
    fn spend(&mut self, id: JobId, at: Moment, spent: &[Spending]) -> Result<(), String> {
        let job = self.job_mut(id)?;
        spent.iter().for_each(|spending| job.spent.add(spending));
        let owner = job.held_by();
        self.accounts.add(&owner, at, spent);
        Ok(())
    }

    /// Counts the space of all finished frames since it was counted last.
    fn count_storage(&mut self, at: Moment) -> Result<(), String> {
        let (since, price) = self.accounts.count_storage(at)?;
        for job in self.jobs.values_mut() {
            let bytes = job.frames().done().sums().bytes;
            let stored = Stored::of(bytes, at.since(since), price);
            if bytes > 0 {
                job.spent.store(&stored);
                self.accounts.store(&job.held_by(), at, &stored);
            }
        }
        Ok(())
    }

    fn suspect(&mut self, node: NodeId, suspect: Suspect) {
        self.trust.suspect(node, suspect);
        let open = self.jobs.values_mut().filter(|job| !job.is_final());
        open.for_each(|job| job.unhear(node));
    }

    fn release(&mut self, node: NodeId) -> Result<(), String> {
        match self.trust.suspects.remove(&node) {
            Some(_) => Ok(()),
            None => Err(format!("node {node} is released, and was not suspected")),
        }
    }

    /// Returns a job as it would be accepted, with its owner's name and number.
    pub(crate) fn planned(
        &self,
        id: JobId,
        spec: &JobSpec,
        (owner, owner_id): (&str, u64),
        at: Moment,
    ) -> Job {
        let (order, shelf) = (self.next_order(), self.shelf.clone());
        Job::new(id, spec.clone(), (owner.to_owned(), owner_id), order, at, shelf)
    }

    pub(crate) fn job_mut(&mut self, job: JobId) -> Result<&mut Job, String> {
        self.jobs.get_mut(&job).ok_or_else(|| format!("job {job} was never accepted"))
    }

    /// Adds a job at the end of the order.
    pub(crate) fn insert(&mut self, job: Job) -> Result<(), String> {
        if self.jobs.contains_key(&job.id) {
            return Err(format!("job {} is accepted twice", job.id));
        }
        if self.order.last_key_value().is_some_and(|(last, _)| *last >= job.order) {
            return Err(format!("job {} is accepted before one that was there", job.id));
        }
        self.order.insert(job.order, job.id);
        self.jobs.insert(job.id, job);
        Ok(())
    }

    fn reserve(&mut self, up_to: Epoch) -> Result<(), String> {
        if up_to <= self.epochs_reserved {
            return Err(format!(
                "epochs are reserved up to {up_to} after {}",
                self.epochs_reserved
            ));
        }
        self.epochs_reserved = up_to;
        Ok(())
    }

    fn commit(&mut self, job: JobId, frame: FrameNumber, commits: &[Commit]) -> Result<(), String> {
        if let Some(commit) = commits.iter().find(|commit| commit.epoch >= self.epochs_reserved) {
            return Err(format!(
                "a result of {} is committed, which was never reserved",
                commit.epoch
            ));
        }
        self.job_mut(job)?.commit(frame, commits)?;
        for commit in commits {
            self.remember(commit.epoch, UnitKey { job, frame, unit: commit.unit });
        }
        Ok(())
    }

    fn commit_part(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        commit: &Commit,
        samples: SampleRange,
    ) -> Result<(), String> {
        if commit.epoch >= self.epochs_reserved {
            return Err(format!(
                "a part of {} is committed, which was never reserved",
                commit.epoch
            ));
        }
        self.job_mut(job)?.commit_part(frame, commit, samples)?;
        self.remember(commit.epoch, UnitKey { job, frame, unit: commit.unit });
        Ok(())
    }

    fn remember(&mut self, epoch: Epoch, unit: UnitKey) {
        self.recent.insert(epoch, unit);
        while self.recent.len() > RECENT_COMMITS_MAX {
            self.recent.pop_first();
        }
    }

    fn compare(&mut self, job: JobId, frame: FrameNumber, redone: &Redone) -> Result<(), String> {
        if let Some(check) = self.job_mut(job)?.compare(frame, redone)? {
            let agreeing = check.others.iter().filter(|other| other.hash == check.committed.hash);
            for vote in agreeing.chain([&check.committed]) {
                self.trust.note_passed(vote.node);
            }
        }
        Ok(())
    }

    fn end_attempt(
        &mut self,
        at: Moment,
        node: NodeId,
        name: &str,
        attempt: &EndedAttempt,
    ) -> Result<(), String> {
        let job = self.job_mut(attempt.lease.unit.job)?;
        job.end_attempt(node, attempt)?;
        if attempt.ending.has_failed() {
            let unit = attempt.lease.unit;
            let unit = format!("{}/u{:05}", unit.frame, unit.unit.0);
            job.note_failure(FailureNote {
                at: at.secs(),
                unit,
                node: name.to_owned(),
                reason: attempt.ending.words(),
            });
        }
        Ok(())
    }

    /// Removes a job that has ended.
    pub(crate) fn forget(&mut self, id: JobId) -> Result<(), String> {
        match self.jobs.get(&id) {
            None => Err(format!("job {id} is forgotten, and was never accepted")),
            Some(job) if !job.is_final() => Err(format!("job {id} is forgotten before its end")),
            Some(job) => {
                if let Some(waiting) = self.awaited.waiting_for(id).next() {
                    return Err(format!("job {id} is forgotten, and job {waiting} waits for it"));
                }
                self.awaited.forget(job);
                self.accounts.forget(job.owner_id, &job.spent);
                self.order.remove(&job.order);
                self.jobs.remove(&id);
                Ok(())
            }
        }
    }

    /// Returns the number of the next job in the order of acceptance, after every known job.
    pub(crate) fn next_order(&self) -> u64 {
        self.order.last_key_value().map_or(0, |(last, _)| last + 1)
    }
}

/// What the coordinator notes of a frame that it had to do again, or by itself.
fn note_of(unit: String, at: Moment, reason: &str) -> FailureNote {
    FailureNote {
        at: at.secs(),
        unit,
        node: "the coordinator".to_owned(),
        reason: reason.to_owned(),
    }
}
