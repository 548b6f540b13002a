//! Behind whom a job waits that a node may have. Decides nothing.

use crate::books::Books;
use crate::state::job::Job;
use std::cmp::Reverse;
use tessera_protocol::ids::JobId;

/// Most owners that a note names.
const NAMED_MAX: usize = 3;

/// Returns the note of a job that waits for its turn: whose units the nodes work on.
pub(super) fn turn_note(books: &Books, job: &Job) -> String {
    let mut ahead: Vec<(u64, u64, Option<JobId>)> = books.shares().at_work().collect();
    ahead.sort_by_key(|(owner, leases, _)| (Reverse(*leases), *owner));
    let named = ahead.iter().take(NAMED_MAX).filter_map(|(owner, leases, last)| {
        let last = books.farm().job((*last)?)?;
        let whose = match *owner == job.owner_id() {
            true => "its owner's own jobs".to_owned(),
            false => format!("`{}`", last.owner()),
        };
        let units = if *leases == 1 { "unit" } else { "units" };
        Some(format!("{whose} ({leases} {units} in work, such as of `{}`)", last.spec().name))
    });
    let named: Vec<String> = named.collect();
    let more = match ahead.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        1 => " and one other".to_owned(),
        more => format!(" and {more} others"),
    };
    match named.is_empty() {
        true => "waits for its turn".to_owned(),
        false => format!("waits for its turn behind {}{more}", named.join(", ")),
    }
}
