//! Waits of jobs for each other: when they end, and what follows from it. Ends no job itself; see
//! `ends`.

use crate::books::Books;
use crate::state::farm_waits::Verdict;
use crate::state::job::Job;
use crate::state::waits::OpenWait;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::job::{After, Until};
use tessera_protocol::status::JobState;

/// Ends the waits of a job that are over. Returns why the job cannot go on, if one of them cannot
/// end well any more.
pub(crate) fn end_waits(books: &mut Books, id: JobId) -> Option<String> {
    let job = books.farm().job(id).filter(|job| !job.is_final())?;
    let waits: Vec<OpenWait> = job.waits().to_vec();
    let mut lost = None;
    for OpenWait { after, missing } in waits {
        match books.farm().verdict(&after, missing) {
            Verdict::Waits => {}
            Verdict::Over => match books.farm().found_inputs(id, after.job) {
                Ok(_) => books.end_wait_for(id, after.job),
                Err(problem) => lost = lost.or(Some(format!("an input is not there: {problem}"))),
            },
            Verdict::Lost => lost = lost.or_else(|| Some(lost_note(books, id, &after))),
        }
    }
    lost
}

/// Ends the waits for a job that has ended. Returns the jobs that cannot go on, and why.
pub(crate) fn after_end(books: &mut Books, on: JobId) -> Vec<(JobId, String)> {
    let waiting: Vec<JobId> = books.farm().awaited().waiting_for(on).collect();
    let lost = |id| Some((id, end_waits(books, id)?));
    waiting.into_iter().filter_map(lost).collect()
}

/// Lets frames go ahead that waited for a frame, which is finished now.
pub(crate) fn after_frame(books: &mut Books, on: JobId, number: FrameNumber) {
    let waiting: Vec<JobId> = books.farm().awaited().waiting_for(on).collect();
    for id in waiting {
        let Some(job) = books.farm().job(id) else { continue };
        let Some(OpenWait { after, missing }) =
            job.wait_for(on).filter(|wait| wait.after.until == Until::Frames)
        else {
            continue;
        };
        let position = job.position(number).filter(|position| !job.waits_at(*position));
        if books.farm().verdict(&after, missing) == Verdict::Over {
            books.end_wait_for(id, on);
        }
        if let Some(position) = position {
            books.rewind(id, position);
        }
    }
}

/// Returns how a job is named where it is waited for.
pub(crate) fn named(books: &Books, on: JobId) -> String {
    match books.farm().job(on) {
        Some(job) => format!("job `{}` ({on})", job.spec().name),
        None => format!("job {on}"),
    }
}

/// Returns how a job ended that can no longer be waited for.
pub(crate) fn end_words(on: Option<&Job>) -> &'static str {
    match on.map(|job| job.end().map(|end| end.state)) {
        Some(Some(JobState::Cancelled)) => "was cancelled",
        Some(Some(JobState::Failed)) => "has failed",
        Some(_) => "has ended",
        None => "is not known any more",
    }
}

/// Returns the first frame of a job that is not finished in another.
pub(crate) fn first_missing(job: &Job, on: &Job) -> Option<FrameNumber> {
    job.kind().frames().iter().find(|number| !on.has_done(*number))
}

/// Says why a job cannot go on.
fn lost_note(books: &Books, id: JobId, after: &After) -> String {
    let on = books.farm().job(after.job);
    let (name, how) = (named(books, after.job), end_words(on));
    let missing = books
        .farm()
        .job(id)
        .zip(on)
        .filter(|_| after.until == Until::Frames)
        .and_then(|(job, on)| first_missing(job, on));
    match missing {
        Some(frame) => format!("{name} {how} without {frame}, for which this job waits"),
        None => format!("{name}, for which this job waits, {how}"),
    }
}
