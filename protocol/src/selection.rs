//! Selections of jobs: by id, by name and by what the jobs are. Listings and changes of many jobs
//! use them alike.

use crate::ids::JobId;
use crate::limits::{JOB_TEXTS_MAX, NAME_MAX, REASON_MAX};
use crate::request_error::RequestError;
use crate::status::{JobName, JobState, JobSummary};
use serde::{Deserialize, Serialize};

/// Fewest characters of an id's beginning that are looked up.
pub const ID_BEGINNING_MIN: usize = 4;

/// Selects the jobs that meet all conditions. The default selects all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSelection {
    /// Texts that each mean jobs: an id, its beginning ([`ID_BEGINNING_MIN`] characters or more),
    /// or a whole name. Empty: any job.
    pub jobs: Vec<String>,
    /// Owner of the jobs: the name, or `#` and the number of the identity.
    pub owner: Option<String>,
    /// States of the jobs. Empty: any state.
    pub states: Vec<JobState>,
    /// Least number of seconds since the job ended or, while it is open, since it was submitted.
    pub older_than_secs: Option<u64>,
    /// Pattern of the whole name: `*` is any text, `?` one character.
    pub name: Option<String>,
    /// Name that the jobs of one submission share.
    pub batch: Option<String>,
    /// Most jobs that are selected: the newest.
    pub limit: Option<u32>,
}

impl JobSelection {
    /// Selects one job by its id.
    pub fn of_job(job: JobId) -> Self {
        Self::of_text(job.to_string())
    }

    /// Selects the jobs that a text means.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { jobs: vec![text.into()], ..Self::default() }
    }

    /// Checks the lengths, which come from outside.
    pub fn check(&self) -> Result<(), RequestError> {
        if self.jobs.len() > JOB_TEXTS_MAX {
            return Err(RequestError::Invalid(format!(
                "{} jobs are named, and one request can name {JOB_TEXTS_MAX}",
                self.jobs.len()
            )));
        }
        let texts = self.jobs.iter().chain(&self.owner).chain(&self.name).chain(&self.batch);
        if texts.into_iter().any(|text| text.len() > NAME_MAX) {
            let text = format!("a job, owner, pattern or batch has more than {NAME_MAX} bytes");
            return Err(RequestError::Invalid(text));
        }
        if self.states.len() > JobState::ALL.len() {
            return Err(RequestError::Invalid("a state is given twice".to_owned()));
        }
        Ok(())
    }
}

/// Asks for a page of the selected jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobQuery {
    /// Which jobs.
    pub selection: JobSelection,
    /// Place to continue from: `next` of the page before. None begins with the first job.
    pub before: Option<u64>,
    /// Most jobs of the page; None is [`crate::limits::JOB_PAGE_MAX`], which also is the most.
    pub rows: Option<u32>,
    /// Order of the jobs.
    pub order: JobOrder,
}

/// Order of a listing. Jobs that are alike in it follow newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobOrder {
    /// Newest first.
    #[default]
    Newest,
    /// By name, in the order of its characters.
    Name,
    /// By the owner's name.
    Owner,
    /// Highest priority first.
    Priority,
    /// By state: running, queued, paused, failed, cancelled, done.
    State,
    /// The least part of its units committed first.
    Progress,
}

impl JobOrder {
    /// Every order.
    pub const ALL: [Self; 6] =
        [Self::Newest, Self::Name, Self::Owner, Self::Priority, Self::State, Self::Progress];

    /// Returns the name, as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Name => "name",
            Self::Owner => "owner",
            Self::Priority => "priority",
            Self::State => "state",
            Self::Progress => "progress",
        }
    }
}

impl JobQuery {
    /// Asks for the first page.
    pub fn first(selection: JobSelection) -> Self {
        Self { selection, ..Self::default() }
    }
}

/// One page of jobs, newest first, with at most [`crate::limits::JOB_PAGE_MAX`] jobs. A page may be
/// empty although others follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// Place from which the next page continues; None if this is the last page.
    pub next: Option<u64>,
}

/// What to do with jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobChange {
    /// Ends them. Finished frames are kept.
    Cancel {
        /// Reason, for the jobs' notes; empty if none is given.
        reason: String,
    },
    /// Gives them no more work until they are resumed.
    Pause,
    /// Gives paused jobs work again.
    Resume,
    /// Renders their failed frames again.
    Retry,
    /// Deletes jobs that have ended, and their frames.
    Forget,
}

impl JobChange {
    /// Returns the verb's past participle, for people.
    pub fn done(&self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancelled",
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Retry => "retried",
            Self::Forget => "forgotten",
        }
    }
}

/// Changes all selected jobs in one step. At least one condition must be given, or `all`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsChange {
    /// What to do.
    pub change: JobChange,
    /// Which jobs. Where no job is named, only those that the change applies to are selected: for
    /// callers below operator, of their own jobs.
    pub selection: JobSelection,
    /// True says that a selection without a condition is meant.
    pub all: bool,
    /// True only tells what would be done.
    pub dry_run: bool,
}

impl JobsChange {
    /// Changes one job.
    pub fn of_job(change: JobChange, job: JobId) -> Self {
        Self { change, selection: JobSelection::of_job(job), all: false, dry_run: false }
    }

    /// Checks the lengths, and that all jobs are meant where no condition is given.
    pub fn check(&self) -> Result<(), RequestError> {
        self.selection.check()?;
        let JobSelection { jobs, owner, states, older_than_secs, name, batch, limit: _ } =
            &self.selection;
        let is_any = jobs.is_empty() && owner.is_none() && states.is_empty() && batch.is_none();
        if is_any && older_than_secs.is_none() && name.is_none() && !self.all {
            let text = "no job is selected: name jobs, give a condition, or say that all are meant";
            return Err(RequestError::Invalid(text.to_owned()));
        }
        match &self.change {
            JobChange::Cancel { reason } if reason.len() > REASON_MAX => {
                Err(RequestError::Invalid(format!("the reason has more than {REASON_MAX} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// Something that was asked for and not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The text of the request, or the id of the job.
    pub what: String,
    /// Why it was not done.
    pub why: RequestError,
}

/// What was done to the selected jobs, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsChanged {
    /// Jobs that were changed, with the state that they had before, in the order of their
    /// acceptance. At most [`crate::limits::JOBS_CHANGED_MAX`].
    pub jobs: Vec<JobName>,
    /// Named jobs that were like this already.
    pub unchanged: u64,
    /// Number of refusals.
    pub refused: u64,
    /// The first refusals, at most [`crate::limits::REFUSALS_NAMED_MAX`].
    pub refusals: Vec<Refusal>,
    /// Number of jobs that are selected too, and for which one request has no room.
    pub left: u64,
}

impl JobsChanged {
    /// Adds a refusal.
    pub fn refuse(&mut self, what: impl Into<String>, why: RequestError) {
        self.refused += 1;
        if self.refusals.len() < crate::limits::REFUSALS_NAMED_MAX {
            self.refusals.push(Refusal { what: what.into(), why });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_have_bounds() {
        let long = "x".repeat(NAME_MAX + 1);
        for selection in [
            JobSelection { jobs: vec!["x".to_owned(); JOB_TEXTS_MAX + 1], ..Default::default() },
            JobSelection::of_text(long.clone()),
            JobSelection { owner: Some(long.clone()), ..Default::default() },
            JobSelection { name: Some(long.clone()), ..Default::default() },
            JobSelection { batch: Some(long.clone()), ..Default::default() },
            JobSelection { states: vec![JobState::Done; 7], ..Default::default() },
        ] {
            assert!(matches!(selection.check(), Err(RequestError::Invalid(_))));
        }
        assert_eq!(JobSelection::of_job(JobId::new()).check(), Ok(()));
    }

    #[test]
    fn a_change_of_all_jobs_says_so() {
        let change = |selection, all| {
            JobsChange { change: JobChange::Pause, selection, all, dry_run: false }.check()
        };
        let newest = JobSelection { limit: Some(3), ..Default::default() };
        assert!(change(JobSelection::default(), false).is_err());
        assert!(change(newest.clone(), false).is_err());
        assert_eq!(change(newest, true), Ok(()));
        let done = JobSelection { states: vec![JobState::Done], ..Default::default() };
        assert_eq!(change(done, false), Ok(()));
        let reason = "r".repeat(REASON_MAX + 1);
        let cancel = JobsChange::of_job(JobChange::Cancel { reason }, JobId::new());
        assert!(cancel.check().is_err());
    }
}
