//! Whether a job may wait for the jobs that it names, when it is submitted or opened again.
//!
//! A job can name only jobs that were accepted before it, so that no two wait for each other.

use crate::books::Books;
use crate::state::farm_waits::Verdict;
use crate::state::job::Job;
use crate::waits::{end_words, first_missing, named};
use tessera_protocol::client::RequestError;
use tessera_protocol::ids::JobId;
use tessera_protocol::job::{After, Until};
use tessera_protocol::limits::AWAITED_MAX;

/// Checks what a new job waits for. Every job of the farm may be named: everybody who may submit
/// one sees them all.
pub(crate) fn check_after(books: &Books, planned: &Job) -> Result<(), RequestError> {
    planned.spec().after.iter().try_for_each(|after| check_one(books, planned, after))?;
    check_inputs(books, planned)
}

/// Checks the inputs that are frames of other jobs: that these make such frames. Frames may be read
/// by everybody who sees their job.
fn check_inputs(books: &Books, planned: &Job) -> Result<(), RequestError> {
    let Some(compute) = planned.kind().compute() else { return Ok(()) };
    let from = compute.inputs.iter().filter_map(|input| Some((input, input.from.as_ref()?.job)));
    for (input, on) in from {
        let (name, label) = (&input.name, named(books, on));
        let wrong = |text: String| RequestError::Invalid(format!("input `{name}`: {label} {text}"));
        if input.is_found() || input.length > 0 {
            return Err(wrong("is named beside a file; give one of them".to_owned()));
        }
        // That it is waited for was checked, and so was that it is there.
        let Some(other) = books.farm().job(on) else { continue };
        other.kind().gives(input).map_err(wrong)?;
        compute.frames_read(other.kind().frames()).map_err(|frame| {
            let (frame, frames) = (frame.0, other.kind().frames());
            wrong(format!(
                "has no frame {frame}; its frames are {frames}, and each frame reads \
                the one of its number"
            ))
        })?;
    }
    Ok(())
}

fn check_one(books: &Books, planned: &Job, after: &After) -> Result<(), RequestError> {
    let Some(on) = books.farm().job(after.job) else {
        return Err(RequestError::NotFound(format!("after: there is no job {}", after.job)));
    };
    let name = named(books, after.job);
    if books.farm().awaited().waiting_for(after.job).count() >= AWAITED_MAX {
        return Err(RequestError::Unavailable(format!(
            "after: {AWAITED_MAX} jobs wait for {name} already, and no more may; wait until it \
             has ended"
        )));
    }
    let by_frames = after.until == Until::Frames;
    let mut frames = planned.kind().frames().iter();
    if let Some(number) = frames.find(|number| by_frames && on.position(*number).is_none()) {
        let (number, known) = (number.0, on.kind().frames());
        return Err(RequestError::Invalid(format!(
            "after: {name} has no frame {number}; its frames are {known}, and each frame of this \
             job waits for the one of its number"
        )));
    }
    match verdict_of_new(books, planned, after, on) {
        Verdict::Lost => Err(RequestError::Invalid(lost(books, after, on, planned))),
        Verdict::Waits | Verdict::Over => Ok(()),
    }
}

/// Returns whether the wait of a job that is not accepted yet, or has ended, may go on.
fn verdict_of_new(books: &Books, job: &Job, after: &After, on: &Job) -> Verdict {
    let is_missing = on.is_final() && first_missing(job, on).is_some();
    books.farm().verdict(after, u32::from(is_missing || !on.is_final()))
}

fn lost(books: &Books, after: &After, on: &Job, planned: &Job) -> String {
    let (name, how, id) = (named(books, after.job), end_words(Some(on)), after.job);
    let without = first_missing(planned, on).filter(|_| after.until == Until::Frames);
    let without = without.map(|number| format!(" without frame {}", number.0)).unwrap_or_default();
    format!(
        "after: {name} {how}{without}; `tessera retry {id}` lets it run again, and --after-any \
         waits for its end whichever way"
    )
}

/// Checks that a job that has ended may wait again for what it waited for. `opens`: whether another
/// job is opened again before this one.
pub(crate) fn check_waits_again(
    books: &Books,
    job: &Job,
    opens: impl Fn(JobId) -> bool,
) -> Result<(), RequestError> {
    for after in job.waits().iter().map(|wait| wait.after).filter(|after| !opens(after.job)) {
        let on = books.farm().job(after.job);
        let verdict = on.map_or(Verdict::Lost, |on| verdict_of_new(books, job, &after, on));
        if verdict != Verdict::Lost {
            continue;
        }
        let (id, name, how) = (job.id(), named(books, after.job), end_words(on));
        let help = match on {
            Some(on) => format!("retry that one first: `tessera retry {}`", on.id()),
            None => "submit this one again".to_owned(),
        };
        return Err(RequestError::Invalid(format!(
            "job {id} waits for {name}, which {how}; {help}"
        )));
    }
    Ok(())
}
