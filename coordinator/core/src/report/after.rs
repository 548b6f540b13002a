//! What jobs wait for, and what waits for them: for listings, explanations and the page. Decides
//! nothing.

use crate::books::Books;
use crate::report::job_state::job_state;
use crate::report::reason::wait::Wait;
use crate::state::job::Job;
use crate::state::waits::OpenWait;
use crate::waits::named;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::job::{After, Until};
use tessera_protocol::limits::AWAITED_NAMED_MAX;
use tessera_protocol::status::AfterStatus;

/// Returns what a job waits for, as a reason.
pub(crate) fn waits_for(books: &Books, job: &Job) -> Wait {
    Wait::After {
        on: job.waits().iter().map(|wait| words(books, job, wait)).collect(),
        job: job.id(),
    }
}

/// Returns what one frame of a job waits for, as a reason; None if it waits for no other job.
pub(crate) fn frame_waits_for(books: &Books, job: &Job, number: FrameNumber) -> Option<Wait> {
    if job.is_final() || !job.waits_at(job.position(number)?) {
        return None;
    }
    let lacks = |wait: &&OpenWait| {
        let other = books.farm().job(wait.after.job);
        wait.after.until != Until::Frames || !other.is_some_and(|other| other.has_done(number))
    };
    let on = job.waits().iter().filter(lacks).map(|wait| match wait.after.until {
        Until::Frames => format!("{number} of {}", named(books, wait.after.job)),
        Until::Success | Until::End => words(books, job, wait),
    });
    Some(Wait::After { on: on.collect(), job: job.id() })
}

/// Returns one wait in words: "job `film` (ID) (12 of 40 frames, running)".
fn words(books: &Books, job: &Job, wait: &OpenWait) -> String {
    let (done, frames) = progress(books, job, &wait.after);
    let state = books.farm().job(wait.after.job).map(|on| job_state(books, on).name());
    let end = if wait.after.until == Until::End { ", until it ends" } else { "" };
    let (name, state) = (named(books, wait.after.job), state.unwrap_or("forgotten"));
    format!("{name} ({done} of {frames} frames, {state}{end})")
}

/// Returns how many frames are finished of those that are waited for, and how many these are.
fn progress(books: &Books, job: &Job, after: &After) -> (u32, u32) {
    let Some(on) = books.farm().job(after.job) else { return (0, 0) };
    if after.until != Until::Frames {
        return (on.counts().frames_done, on.frames().len());
    }
    let frames = job.frames().len();
    match job.wait_for(after.job) {
        Some(wait) if !job.is_final() => (frames - wait.missing, frames),
        Some(_) => {
            let numbers = job.kind().frames().iter();
            (numbers.filter(|number| on.has_done(*number)).count() as u32, frames)
        }
        None => (frames, frames),
    }
}

/// Returns the jobs that a job waits for, or has waited for.
pub(crate) fn after(books: &Books, job: &Job) -> Vec<AfterStatus> {
    let after = job.spec().after.iter();
    after.map(|after| status(books, (job, after), after.job)).collect()
}

/// Returns the first jobs that wait for a job, or have waited for it, and their number.
pub(crate) fn awaited_by(books: &Books, job: &Job) -> (Vec<AfterStatus>, u64) {
    let (naming, count) = books.farm().awaited().naming(job.id());
    let known = naming.take(AWAITED_NAMED_MAX).filter_map(|id| books.farm().job(id));
    let status_of = |other: &Job| {
        let after = other.spec().after.iter().find(|after| after.job == job.id())?;
        Some(status(books, (other, after), other.id()))
    };
    (known.filter_map(status_of).collect(), count as u64)
}

/// Returns a wait, with the job at the end of it that is to be named.
fn status(books: &Books, (job, after): (&Job, &After), named: JobId) -> AfterStatus {
    let other = books.farm().job(named);
    let (frames_done, frames) = progress(books, job, after);
    AfterStatus {
        job: named,
        name: other.map(|other| other.spec().name.clone()).unwrap_or_default(),
        state: other.map(|other| job_state(books, other)),
        until: after.until,
        frames,
        frames_done,
        over: job.wait_for(after.job).is_none(),
    }
}
