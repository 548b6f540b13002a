//! The bound on the nodes that work on a job at a time. Checks of results are not bound.

use crate::books::Books;
use tessera_protocol::ids::{JobId, NodeId};

/// Whether a node may have no unit of a job because as many nodes work on it as may. Where there
/// are more, because the bound was lowered, none gets a unit until some have ended theirs.
pub(crate) fn is_full(books: &Books, id: NodeId, job: JobId) -> bool {
    let Some(most) = books.farm().job(job).and_then(|job| job.spec().max_nodes) else {
        return false;
    };
    let at_work = books.leases().nodes_of(job);
    at_work > most as usize || at_work == most as usize && !books.leases().works_on(id, job)
}
