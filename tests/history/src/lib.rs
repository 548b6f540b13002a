//! What clients and nodes of a farm were told, checked against promises P1 to P3: nothing that was
//! acknowledged is lost, no unit counts twice, no finished frame changes. Knows nothing of the
//! farm's inside, so that the simulator and tests of real processes share it.
//!
//! ```text
//! let asked = history.ask();                          // before the request leaves
//! history.saw(asked, &Seen::Accepted(job))?;          // when its answer is here
//! ```
//!
//! Answers overtake each other. An answer is bound only by what had been told before its question
//! was asked; that is what [`History::ask`] is for.

mod frames;
mod told;
mod units;

use crate::frames::Frames;
use crate::told::broken;
pub use crate::told::{Asked, Broken, JobSeen};
use crate::units::Units;
use std::collections::BTreeMap;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId, Lease, UnitKey};
use tessera_protocol::status::JobState;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A submit was accepted.
    Accepted(JobId),
    /// A cancel was done.
    Cancelled(JobId),
    /// A node was told that the farm has its result.
    Committed(Lease),
    /// A node was told that the farm has its part of a unit.
    PartCommitted(Lease),
    /// A unit's result was taken back, because its node gave wrong ones.
    TakenBack(UnitKey),
    /// Failed frames of a job are open again, and so is the job; what was committed of them is to
    /// be told as taken back before.
    Retried(JobId),
    /// All jobs of the farm, as a listing gives them.
    Listed(Vec<JobId>),
    /// There is no such job.
    Unknown(JobId),
    /// A job, as `job` or a listing shows it.
    Job(JobSeen),
    /// A frame that is not finished.
    Unfinished {
        /// Its job.
        job: JobId,
        /// Which.
        frame: FrameNumber,
    },
    /// A finished frame.
    Finished {
        /// Its job.
        job: JobId,
        /// Which.
        frame: FrameNumber,
        /// Its file, or all of its files as one hash: always made the same way by whoever feeds one
        /// history.
        hash: BlobHash,
    },
}

/// A job that somebody was told of.
#[derive(Debug)]
struct Known {
    since: Asked,
    /// Its end, once somebody was shown it, and since when.
    end: Option<(Asked, JobState)>,
    /// When it was opened again last: what was asked for before says nothing of its end.
    opened: Asked,
}

impl Known {
    fn new(since: Asked) -> Self {
        Self { since, end: None, opened: Asked(0) }
    }
}

/// Everything that was told so far.
#[derive(Debug, Default)]
pub struct History {
    answers: u64,
    jobs: BTreeMap<JobId, Known>,
    units: Units,
    frames: Frames,
}

impl History {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A question leaves now.
    pub fn ask(&self) -> Asked {
        Asked(self.answers)
    }

    /// Answers seen.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Jobs that clients were told are accepted, in the order of their ids.
    pub fn accepted(&self) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.keys().copied()
    }

    /// Takes an answer in that was asked for at `asked`. An error says which promise is broken, and
    /// by what.
    pub fn saw(&mut self, asked: Asked, seen: &Seen) -> Result<(), Broken> {
        self.answers += 1;
        let now = Asked(self.answers);
        match seen {
            Seen::Accepted(job) => {
                self.jobs.entry(*job).or_insert(Known::new(now));
                Ok(())
            }
            Seen::Retried(job) => {
                let known = self.jobs.entry(*job).or_insert(Known::new(now));
                (known.end, known.opened) = (None, now);
                Ok(())
            }
            Seen::Cancelled(job) => self.note_end(asked, now, *job, JobState::Cancelled),
            Seen::Committed(lease) => self.units.committed(now, *lease),
            Seen::PartCommitted(lease) => self.units.part_committed(*lease),
            Seen::TakenBack(unit) => {
                self.units.taken_back(*unit);
                Ok(())
            }
            Seen::Listed(jobs) => {
                let missing = self
                    .jobs
                    .iter()
                    .find(|(job, known)| known.since <= asked && !jobs.contains(job));
                missing.map_or(Ok(()), |(job, _)| lost(*job, "a listing does not have it"))
            }
            Seen::Unknown(job) => match self.jobs.get(job) {
                Some(known) if known.since <= asked => lost(*job, "there is no such job now"),
                _ => Ok(()),
            },
            Seen::Job(seen) => self.saw_job(asked, now, seen),
            Seen::Unfinished { job, frame } => self.frames.unfinished(asked, *job, *frame),
            Seen::Finished { job, frame, hash } => self.frames.finished(now, *job, *frame, *hash),
        }
    }

    fn saw_job(&mut self, asked: Asked, now: Asked, seen: &JobSeen) -> Result<(), Broken> {
        self.units.counted(asked, seen)?;
        self.frames.counted(asked, seen)?;
        if seen.state.is_final() {
            return self.note_end(asked, now, seen.job, seen.state);
        }
        match self.jobs.get(&seen.job).and_then(|known| known.end) {
            Some((since, end)) if since <= asked => broken(
                "P1",
                format!("job {} is {:?} again after it was {end:?}", seen.job, seen.state),
            ),
            _ => Ok(()),
        }
    }

    /// A job ends once.
    fn note_end(
        &mut self,
        asked: Asked,
        now: Asked,
        job: JobId,
        state: JobState,
    ) -> Result<(), Broken> {
        let known = self.jobs.entry(job).or_insert(Known::new(now));
        match known.end {
            _ if asked < known.opened => Ok(()),
            Some((_, end)) if end != state => broken(
                "P1",
                format!("job {job} ended as {end:?}, and now as {state:?} (asked at {})", asked.0),
            ),
            Some(_) => Ok(()),
            None => {
                known.end = Some((now, state));
                Ok(())
            }
        }
    }
}

fn lost(job: JobId, how: &str) -> Result<(), Broken> {
    broken("P1", format!("job {job} was accepted, and {how}"))
}

#[cfg(test)]
mod tests;
