//! Behind whom a job waits that a node may have. Decides nothing.

use crate::books::Books;
use crate::state::job::Job;
use std::cmp::Reverse;
use tessera_protocol::explain::Ahead;
use tessera_protocol::ids::JobId;

/// Most owners that are named.
const NAMED_MAX: usize = 3;

/// Returns whose units the nodes work on while a job waits for its turn: those with the most units,
/// and how many owners there are beside them.
pub(super) fn ahead_of(books: &Books, job: &Job) -> (Vec<Ahead>, usize) {
    let mut ahead: Vec<(u64, u64, Option<JobId>)> = books.shares().at_work().collect();
    ahead.sort_by_key(|(owner, leases, _)| (Reverse(*leases), *owner));
    let named = ahead.iter().take(NAMED_MAX).filter_map(|(owner, leases, last)| {
        let last = books.farm().job((*last)?)?;
        let owner = match *owner == job.owner_id() {
            true => "its owner's own jobs".to_owned(),
            false => format!("`{}`", last.owner()),
        };
        Some(Ahead { owner, units: *leases, job: last.spec().name.clone() })
    });
    (named.collect(), ahead.len().saturating_sub(NAMED_MAX))
}
