//! Pages of the listing of jobs.

use crate::books::Books;
use crate::report::listing::job_summary;
use crate::report::selected::{Meanings, meets};
use crate::selection::Selection;
use crate::state::job::Job;
use crate::time::Moment;
use std::collections::BTreeMap;
use tessera_protocol::client::RequestError;
use tessera_protocol::limits::JOB_PAGE_MAX;
use tessera_protocol::selection::JobPage;

/// Most jobs that are looked at for one page: a few milliseconds.
const LOOKED_AT_MAX: usize = 1 << 14;

/// Returns a page of the selected jobs, newest first, of those before a place in the order of
/// acceptance.
pub(crate) fn page(
    books: &Books,
    selection: &Selection,
    before: Option<u64>,
    now: Moment,
) -> Result<JobPage, RequestError> {
    let before = before.unwrap_or(u64::MAX);
    if selection.jobs.jobs.is_empty() {
        return Ok(filled(books, books.farm().newest(before), selection, now));
    }
    let mut meanings = Meanings::new(books);
    let mut meant: BTreeMap<u64, &Job> = BTreeMap::new();
    for text in &selection.jobs.jobs {
        meant.extend(meanings.of(text)?.into_iter().map(|job| (job.order(), job)));
    }
    Ok(filled(books, meant.range(..before).rev().map(|(_, job)| *job), selection, now))
}

fn filled<'a>(
    books: &Books,
    newest: impl Iterator<Item = &'a Job>,
    selection: &Selection,
    now: Moment,
) -> JobPage {
    let limit = selection.jobs.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut page = JobPage::default();
    for (looked_at, job) in newest.enumerate() {
        if page.jobs.len() == limit {
            break;
        }
        if page.jobs.len() == JOB_PAGE_MAX || looked_at == LOOKED_AT_MAX {
            page.next = Some(job.order() + 1);
            break;
        }
        if meets(books, job, selection, now) {
            page.jobs.extend(job_summary(books, job.id()));
        }
    }
    page
}
