//! Pages of the listing of jobs.

use crate::books::Books;
use crate::report::job_state::job_state;
use crate::report::listing::job_summary;
use crate::report::selected::{Meanings, meets};
use crate::selection::Selection;
use crate::state::job::Job;
use crate::time::Moment;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use tessera_protocol::client::RequestError;
use tessera_protocol::limits::JOB_PAGE_MAX;
use tessera_protocol::selection::{JobOrder, JobPage};
use tessera_protocol::status::JobState;

/// Most jobs that are looked at for one page: a few milliseconds.
const LOOKED_AT_MAX: usize = 1 << 14;

/// Which page of a listing, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobsPage {
    /// Place to continue from: `next` of the page before.
    pub before: Option<u64>,
    /// Most jobs of the page.
    pub rows: Option<u32>,
    /// Order of the jobs.
    pub order: JobOrder,
}

impl JobsPage {
    fn rows(&self) -> usize {
        self.rows.map_or(JOB_PAGE_MAX, |rows| (rows as usize).clamp(1, JOB_PAGE_MAX))
    }
}

/// Returns a page of the selected jobs.
pub(crate) fn page(
    books: &Books,
    selection: &Selection,
    page: JobsPage,
    now: Moment,
) -> Result<JobPage, RequestError> {
    if page.order != JobOrder::Newest {
        return sorted(books, selection, page, now);
    }
    let (before, rows) = (page.before.unwrap_or(u64::MAX), page.rows());
    if selection.jobs.jobs.is_empty() {
        return Ok(filled(books, books.farm().newest(before), (selection, rows), now));
    }
    let meant = meant(books, selection)?;
    let newest = meant.range(..before).rev().map(|(_, job)| *job);
    Ok(filled(books, newest, (selection, rows), now))
}

/// Returns the jobs that the selection's texts mean, by their place in the order of acceptance.
fn meant<'a>(
    books: &'a Books,
    selection: &Selection,
) -> Result<BTreeMap<u64, &'a Job>, RequestError> {
    let mut meanings = Meanings::new(books);
    let mut meant: BTreeMap<u64, &Job> = BTreeMap::new();
    for text in &selection.jobs.jobs {
        meant.extend(meanings.of(text)?.into_iter().map(|job| (job.order(), job)));
    }
    Ok(meant)
}

/// Returns a page in another order than that of acceptance. The place to continue from is the
/// number of jobs before it. Of very many jobs, only the newest are sorted.
fn sorted(
    books: &Books,
    selection: &Selection,
    page: JobsPage,
    now: Moment,
) -> Result<JobPage, RequestError> {
    let meant = meant(books, selection)?;
    let all: Vec<&Job> = match selection.jobs.jobs.is_empty() {
        true => books.farm().newest(u64::MAX).take(LOOKED_AT_MAX).collect(),
        false => meant.values().rev().take(LOOKED_AT_MAX).copied().collect(),
    };
    let limit = selection.jobs.limit.map_or(usize::MAX, |limit| limit as usize);
    let jobs = all.into_iter().filter(|job| meets(books, job, selection, now)).take(limit);
    let mut jobs: Vec<&Job> = jobs.collect();
    jobs.sort_by(|a, b| compared(books, page.order, a, b));
    let from = page.before.map_or(0, |place| usize::try_from(place).unwrap_or(usize::MAX));
    let end = from.saturating_add(page.rows());
    let next = (end < jobs.len()).then_some(end as u64);
    let shown = jobs.into_iter().skip(from).take(page.rows());
    Ok(JobPage { jobs: shown.filter_map(|job| job_summary(books, job.id())).collect(), next })
}

/// Compares two jobs by an order. The sort is stable, so that those alike stay newest first.
fn compared(books: &Books, order: JobOrder, a: &Job, b: &Job) -> Ordering {
    let rank = |job: &Job| match job_state(books, job) {
        JobState::Running => 0,
        JobState::Queued => 1,
        JobState::Paused => 2,
        JobState::Failed => 3,
        JobState::Cancelled => 4,
        JobState::Done => 5,
    };
    // The share of the units, without a division: a/b < c/d where a·d < c·b.
    let share = |one: &Job, other: &Job| {
        u128::from(one.counts().units_committed) * u128::from(other.units().max(1))
    };
    match order {
        JobOrder::Newest => Ordering::Equal,
        JobOrder::Name => a.spec().name.cmp(&b.spec().name),
        JobOrder::Owner => a.owner().cmp(b.owner()),
        JobOrder::Priority => b.spec().priority.cmp(&a.spec().priority),
        JobOrder::State => rank(a).cmp(&rank(b)),
        JobOrder::Progress => share(a, b).cmp(&share(b, a)),
    }
}

fn filled<'a>(
    books: &Books,
    newest: impl Iterator<Item = &'a Job>,
    (selection, rows): (&Selection, usize),
    now: Moment,
) -> JobPage {
    let limit = selection.jobs.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut page = JobPage::default();
    for (looked_at, job) in newest.enumerate() {
        if page.jobs.len() == limit {
            break;
        }
        if page.jobs.len() == rows || looked_at == LOOKED_AT_MAX {
            page.next = Some(job.order() + 1);
            break;
        }
        if meets(books, job, selection, now) {
            page.jobs.extend(job_summary(books, job.id()));
        }
    }
    page
}
