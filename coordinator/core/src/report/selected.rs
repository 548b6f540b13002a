//! Finds the jobs that a selection means: by the texts that name them, and by what they are.
//! Changes nothing.

use crate::books::Books;
use crate::report::job_state::job_state;
use crate::selection::Selection;
use crate::state::job::Job;
use crate::time::Moment;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tessera_protocol::client::RequestError;
use tessera_protocol::ids::JobId;
use tessera_protocol::limits::MEANINGS_NAMED_MAX;
use tessera_protocol::pattern::fits;
use tessera_protocol::selection::{ID_BEGINNING_MIN, JobSelection};
use tessera_protocol::status::JobName;

/// Digits of an id.
const ID_DIGITS: usize = 32;

/// Most jobs that the texts of one request may mean together, each text by itself: some tens of
/// milliseconds.
const MEANT_MAX: usize = 1 << 17;

/// What texts mean: an id, its beginning, or a whole name.
pub(crate) struct Meanings<'a> {
    books: &'a Books,
    /// Jobs that texts have meant so far.
    meant: usize,
    /// Jobs by name; filled for the first text that is no id.
    by_name: OnceCell<BTreeMap<&'a str, Vec<JobId>>>,
}

impl<'a> Meanings<'a> {
    pub(crate) fn new(books: &'a Books) -> Self {
        Self { books, meant: 0, by_name: OnceCell::new() }
    }

    /// Returns the jobs that a text means, in the order of their acceptance. A whole id means that
    /// job alone. Fails if the texts mean too many jobs.
    pub(crate) fn of(&mut self, text: &str) -> Result<Vec<&'a Job>, RequestError> {
        let farm = self.books.farm();
        if let Some(job) = text.parse().ok().and_then(|id| farm.job(id)) {
            return Ok(vec![job]);
        }
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name: BTreeMap<&'a str, Vec<JobId>> = BTreeMap::new();
            farm.jobs().for_each(|job| by_name.entry(&job.spec().name).or_default().push(job.id()));
            by_name
        });
        let named = by_name.get(text).into_iter().flatten().filter_map(|id| farm.job(*id));
        let lower = text.to_ascii_lowercase();
        let begun = bounds(&lower).into_iter().flat_map(|(first, last)| farm.between(first, last));
        let begun = begun.filter(|job| job.id().to_string().starts_with(&lower));
        let room = MEANT_MAX - self.meant;
        let all = named.chain(begun).take(room + 1).map(|job| (job.order(), job));
        let found: BTreeMap<u64, &Job> = all.collect();
        if found.len() > room {
            let text = format!("these texts mean more than {MEANT_MAX} jobs; name fewer at once");
            return Err(RequestError::Invalid(text));
        }
        self.meant += found.len();
        Ok(found.into_values().collect())
    }
}

/// Returns the first and the last id that can begin with a text; None if it is no beginning.
fn bounds(text: &str) -> Option<(JobId, JobId)> {
    let is_beginning = |c: char| c.is_ascii_hexdigit() || c == '-';
    if text.len() < ID_BEGINNING_MIN || !text.chars().all(is_beginning) {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let missing = ID_DIGITS.checked_sub(digits.len()).filter(|_| !digits.is_empty())?;
    let filled = |with: &str| format!("{digits}{}", with.repeat(missing)).parse().ok();
    Some((filled("0")?, filled("f")?))
}

/// Returns whether a job meets the conditions of a selection, its texts and its limit aside.
pub(crate) fn meets(books: &Books, job: &Job, selection: &Selection, now: Moment) -> bool {
    let JobSelection { jobs: _, owner: _, states, older_than_secs, name, batch, limit: _ } =
        &selection.jobs;
    let since = job.end().map_or(job.submitted_at(), |end| end.at);
    selection.owner.is_none_or(|owner| job.owner_id() == owner)
        && older_than_secs.is_none_or(|secs| now.since(since).as_secs() >= secs)
        && (states.is_empty() || states.contains(&job_state(books, job)))
        && name.as_ref().is_none_or(|pattern| fits(pattern, &job.spec().name))
        && (batch.is_none() || job.spec().batch == *batch)
}

/// Returns a job as messages name it.
pub(crate) fn name_of(books: &Books, job: &Job) -> JobName {
    JobName {
        job: job.id(),
        name: job.spec().name.clone(),
        owner: job.owner().to_owned(),
        owner_id: job.owner_id(),
        state: job_state(books, job),
        submitted_at: job.submitted_at().secs(),
    }
}

/// Returns the error for a text that means several jobs, in the order of their acceptance.
pub(crate) fn ambiguous(books: &Books, text: &str, meant: &[&Job]) -> RequestError {
    let newest = meant.iter().rev().take(MEANINGS_NAMED_MAX);
    RequestError::Ambiguous {
        text: text.to_owned(),
        count: meant.len() as u64,
        jobs: newest.map(|job| name_of(books, job)).collect(),
    }
}
