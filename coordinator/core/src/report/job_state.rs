//! The state of a job in a word, derived from what is kept. Decides nothing.

use crate::books::Books;
use crate::state::job::Job;
use tessera_protocol::status::JobState;

/// Returns the state of a job.
pub(crate) fn job_state(books: &Books, job: &Job) -> JobState {
    let begun = || {
        let counts = job.counts();
        books.queue(job.id()).is_some_and(|work| work.begun()) || counts.units_committed > 0
    };
    match job.end() {
        Some(end) => end.state,
        None if job.paused().is_some() => JobState::Paused,
        None if begun() => JobState::Running,
        None => JobState::Queued,
    }
}
