//! What has happened, by what the coordinator says of jobs, quarantines and budgets. Each end of a
//! job is told once; a wait once it has lasted, a quarantine and a budget at once, and none of them
//! again before it has been over for a while. Sends nothing.

use crate::event::BudgetFacts;
use std::collections::{BTreeMap, BTreeSet};
use tessera_core::Quarantine;
use tessera_protocol::JobId;
use tessera_protocol::status::{JobSummary, Waits};

/// Ends of jobs that are remembered, so that none is told again. More than end while the
/// coordinator starts again.
const TOLD_MAX: usize = 4096;
/// How long a wait or a quarantine has to be over before a new one is told, in seconds.
const OVER_FOR: u64 = 600;

/// A wait or a quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Episode {
    began: u64,
    is_told: bool,
    /// Since when it is over.
    over: Option<u64>,
}

impl Episode {
    fn is_past(&self, now: u64) -> bool {
        self.over.is_some_and(|over| now.saturating_sub(over) >= OVER_FOR)
    }
}

/// A job that cannot go on.
#[derive(Clone, Debug)]
struct Wait {
    episode: Episode,
    /// The job, until it is told.
    job: Option<JobSummary>,
}

/// What a quarantine is of: a node, a device of it, and the reason in a word.
pub(crate) type QuarantineKey = (String, Option<String>, String);

/// What is remembered over a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Jobs that ended before this were told, in seconds since the Unix epoch.
    pub(crate) horizon: u64,
    /// Ends that were told since then.
    pub(crate) ends: Vec<(u64, JobId)>,
    /// Waits that were told, with when they began.
    pub(crate) waits: Vec<(JobId, u64)>,
    /// Quarantines that were told, with when they began.
    pub(crate) quarantines: Vec<(QuarantineKey, u64)>,
    /// Budgets that were told, by how far they were used, with when that began.
    pub(crate) budgets: Vec<(String, u64)>,
}

/// Follows jobs, quarantines and budgets.
#[derive(Debug)]
pub(crate) struct Tracker {
    /// How long a job has to wait before it is told, in seconds.
    patience: u64,
    horizon: u64,
    ends: BTreeSet<(u64, JobId)>,
    waits: BTreeMap<JobId, Wait>,
    quarantines: BTreeMap<QuarantineKey, Episode>,
    budgets: BTreeMap<String, Episode>,
}

impl Tracker {
    /// Goes on from what is remembered.
    pub(crate) fn new(patience: u64, memory: Memory, now: u64) -> Self {
        // What is not seen again was over already.
        let told = |began| Episode { began, is_told: true, over: Some(now) };
        let wait = |(job, began)| (job, Wait { episode: told(began), job: None });
        Self {
            patience,
            horizon: memory.horizon,
            ends: memory.ends.into_iter().collect(),
            waits: memory.waits.into_iter().map(wait).collect(),
            quarantines: memory.quarantines.into_iter().map(|(key, at)| (key, told(at))).collect(),
            budgets: memory.budgets.into_iter().map(|(key, at)| (key, told(at))).collect(),
        }
    }

    /// Returns what is to be remembered.
    pub(crate) fn memory(&self) -> Memory {
        let told = |episode: &Episode| episode.is_told.then_some(episode.began);
        let waits = self.waits.iter().filter_map(|(job, wait)| Some((*job, told(&wait.episode)?)));
        let all = self.quarantines.iter();
        let budgets = self.budgets.iter();
        Memory {
            horizon: self.horizon,
            ends: self.ends.iter().copied().collect(),
            waits: waits.collect(),
            quarantines: all.filter_map(|(key, one)| Some((key.clone(), told(one)?))).collect(),
            budgets: budgets.filter_map(|(key, one)| Some((key.clone(), told(one)?))).collect(),
        }
    }

    /// Returns the time from which on ended jobs matter.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Returns when a job ended, if that is to be told.
    pub(crate) fn new_end(&self, job: &JobSummary) -> Option<u64> {
        let is_new =
            |ended: &u64| *ended >= self.horizon && !self.ends.contains(&(*ended, job.job));
        job.ended_at.filter(|ended| job.state.is_final() && is_new(ended))
    }

    /// Takes a job as it is now: its end, if it has ended, counts as told.
    pub(crate) fn see_job(&mut self, job: &JobSummary, now: u64) {
        if job.state.is_final() {
            self.waits.remove(&job.job);
            if let Some(ended) = self.new_end(job) {
                self.ends.insert((ended, job.job));
                if self.ends.len() > TOLD_MAX
                    && let Some((oldest, _)) = self.ends.pop_first()
                {
                    self.horizon = oldest;
                }
            }
            return;
        }
        match (job.waits.is_some_and(Waits::is_stuck), self.waits.get_mut(&job.job)) {
            (true, None) => {
                let episode = Episode { began: now, is_told: false, over: None };
                self.waits.insert(job.job, Wait { episode, job: Some(job.clone()) });
            }
            (true, Some(wait)) => {
                wait.episode.over = None;
                wait.job = Some(job.clone()).filter(|_| !wait.episode.is_told);
            }
            (false, Some(wait)) if wait.episode.is_told => {
                wait.episode.over.get_or_insert(now);
            }
            (false, _) => drop(self.waits.remove(&job.job)),
        }
    }

    /// Takes that a job was forgotten.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.waits.remove(&job);
    }

    /// Returns the jobs that have waited for long enough to be told, with when the wait began.
    pub(crate) fn due(&mut self, now: u64) -> Vec<(JobSummary, u64)> {
        self.waits.retain(|_, wait| !wait.episode.is_past(now));
        let due = self.waits.values().filter_map(|Wait { episode, job }| {
            let lasted = now.saturating_sub(episode.began) >= self.patience;
            job.clone().filter(|_| lasted && !episode.is_told).map(|job| (job, episode.began))
        });
        due.collect()
    }

    /// Takes that a job's wait was told.
    pub(crate) fn wait_told(&mut self, job: JobId) {
        if let Some(wait) = self.waits.get_mut(&job) {
            wait.episode.is_told = true;
            wait.job = None;
        }
    }

    /// Takes all quarantines as they are now. Returns those that are to be told.
    pub(crate) fn see_quarantines(&mut self, all: Vec<Quarantine>, now: u64) -> Vec<Quarantine> {
        let key =
            |one: &Quarantine| (one.node.to_string(), one.device.clone(), one.word.to_owned());
        see_all(&mut self.quarantines, all, key, now)
    }

    /// Takes all budgets that are nearly used up, or used up, as they are now. Returns those that
    /// are to be told.
    pub(crate) fn see_budgets(&mut self, all: Vec<BudgetFacts>, now: u64) -> Vec<BudgetFacts> {
        see_all(&mut self.budgets, all, BudgetFacts::key, now)
    }
}

/// Takes all that is so now, and returns what is new of it: that counts as told.
fn see_all<K: Ord, T>(
    known: &mut BTreeMap<K, Episode>,
    all: Vec<T>,
    key: impl Fn(&T) -> K,
    now: u64,
) -> Vec<T> {
    let here: BTreeSet<K> = all.iter().map(&key).collect();
    known.retain(|_, episode| !episode.is_past(now));
    for (key, episode) in known.iter_mut() {
        match here.contains(key) {
            true => episode.over = None,
            false => drop(episode.over.get_or_insert(now)),
        }
    }
    let mut new = all;
    new.retain(|one| !known.contains_key(&key(one)));
    for one in &new {
        known.insert(key(one), Episode { began: now, is_told: true, over: None });
    }
    new
}
