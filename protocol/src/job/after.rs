//! What a job waits for before its units are worked on: other jobs, or their frames one by one.

use super::error::{SpecError, wrong};
use crate::ids::JobId;
use crate::limits::AFTER_MAX;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::str::FromStr;

/// A job that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Job that is waited for.
    pub job: JobId,
    /// What has to happen to it.
    #[serde(default)]
    pub until: Until,
}

/// What has to happen to a job before another one goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Every frame of it is finished. If it ends otherwise, the job that waits ends too.
    #[default]
    Success,
    /// It has ended, whichever way.
    End,
    /// The frame of the same number is finished, for each frame that waits. If it ends without
    /// one of them, the job that waits ends too.
    Frames,
}

impl Until {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Success, Self::End, Self::Frames];

    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::End => "end",
            Self::Frames => "frames",
        }
    }

    /// Returns what is waited for, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Success => "until it succeeds",
            Self::End => "until it ends",
            Self::Frames => "frame by frame",
        }
    }
}

/// Text after a job for [`Until::Frames`].
const FRAMES: &str = ":frames";

/// A job as people name it, and whether its frames are waited for one by one: `JOB` or
/// `JOB:frames`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterText {
    /// Id, beginning of an id, or name of the job.
    pub job: String,
    /// Whether `:frames` follows.
    pub by_frames: bool,
}

impl FromStr for AfterText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let by_frames = text.ends_with(FRAMES);
        let job = text.strip_suffix(FRAMES).unwrap_or(text).trim();
        match job.is_empty() {
            true => Err("names no job; write JOB or JOB:frames".to_owned()),
            false => Ok(Self { job: job.to_owned(), by_frames }),
        }
    }
}

/// Checks the jobs that a job waits for.
pub(super) fn check(after: &[After]) -> Result<(), SpecError> {
    if after.len() > AFTER_MAX {
        wrong("after", format!("{} jobs are more than {AFTER_MAX}", after.len()))?;
    }
    let mut named = BTreeSet::new();
    match after.iter().find(|after| !named.insert(after.job)) {
        Some(twice) => wrong("after", format!("job {} is named twice", twice.job)),
        None => Ok(()),
    }
}

/// Cuts jobs, of which each stands after those that it waits for, into runs of which none waits for
/// one of the same run: those of a run can be submitted at once. `of` is a job's id, and what it
/// waits for.
pub fn independent_runs<T>(
    jobs: &[T],
    of: impl for<'a> Fn(&'a T) -> (JobId, &'a [After]),
) -> Vec<&[T]> {
    let mut runs = Vec::new();
    let (mut begin, mut here) = (0, BTreeSet::new());
    for (at, job) in jobs.iter().enumerate() {
        let (id, after) = of(job);
        if after.iter().any(|after| here.contains(&after.job)) {
            runs.push(&jobs[begin..at]);
            begin = at;
            here.clear();
        }
        here.insert(id);
    }
    runs.push(&jobs[begin..]);
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_what_is_waited_for_are_those_of_json() {
        for until in Until::ALL {
            let json = serde_json::to_string(&until).unwrap();
            assert_eq!(json, format!("\"{}\"", until.name()));
        }
        let plain: After =
            serde_json::from_str(&format!("{{\"job\":\"{}\"}}", JobId::default())).unwrap();
        assert_eq!(plain.until, Until::Success);
    }

    #[test]
    fn jobs_to_wait_for_are_read_with_and_without_frames() {
        let read = |text: &str| text.parse::<AfterText>();
        assert_eq!(read("film"), Ok(AfterText { job: "film".into(), by_frames: false }));
        assert_eq!(read("film:frames"), Ok(AfterText { job: "film".into(), by_frames: true }));
        assert!(read("").is_err() && read(":frames").is_err());
    }

    #[test]
    fn a_job_that_is_named_twice_is_refused_by_its_id() {
        let job = JobId::default();
        let after = |until| After { job, until };
        assert!(check(&[after(Until::End)]).is_ok());
        let error = check(&[after(Until::Success), after(Until::Frames)]).unwrap_err();
        assert!(error.field == "after" && error.problem.contains(&job.to_string()), "{error}");
        let many: Vec<After> =
            (0..=AFTER_MAX).map(|_| After { job: JobId::new(), until: Until::End }).collect();
        assert!(check(&many).unwrap_err().problem.contains("more than"));
    }

    #[test]
    fn jobs_that_wait_for_each_other_are_in_runs_after_each_other() {
        let ids: Vec<JobId> = (0..5).map(|_| JobId::new()).collect();
        let job = |at: usize, after: &[usize]| {
            let until = Until::Success;
            let after = after.iter().map(|at| After { job: ids[*at], until }).collect();
            (ids[at], after)
        };
        let jobs: [(JobId, Vec<After>); 5] =
            [job(0, &[]), job(1, &[]), job(2, &[0, 1]), job(3, &[0]), job(4, &[3])];
        let of = |jobs: &[(JobId, Vec<After>)]| -> Vec<usize> {
            let runs = independent_runs(jobs, |(id, after)| (*id, after.as_slice()));
            runs.iter().map(|run| run.len()).collect()
        };
        assert_eq!(of(&jobs), [2, 2, 1]);
        assert_eq!(of(&jobs[..1]), [1]);
    }
}
