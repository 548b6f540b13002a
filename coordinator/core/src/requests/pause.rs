//! Pausing and resuming jobs, only at a user's request. A pause takes the job's leases back at
//! once, and none of its units is leased until the job is resumed. Frames whose units are all
//! committed are still resolved.

use crate::books::Books;
use crate::input::Caller;
use crate::journal::Record;
use crate::requests::job_of;
use crate::state::job::Job;
use std::collections::BTreeMap;
use tessera_protocol::client::RequestError;
use tessera_protocol::ids::{Epoch, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::node::CoordinatorToNode;

/// Pauses or resumes a job.
pub(crate) fn set_paused(
    books: &mut Books,
    id: JobId,
    pause: bool,
    caller: &Caller,
) -> Result<(), RequestError> {
    if !changes(job_of(books, id, caller)?, pause)? {
        return Ok(());
    }
    if pause {
        books.record(Record::JobPaused { job: id, by: caller.name.clone(), at: books.now() });
        books.withdraw_job(id);
        take_leases_of(books, id);
        // Their end has made room on nodes.
        books.mark_all();
    } else {
        books.record(Record::JobResumed { job: id });
        books.resume_job(id);
    }
    Ok(())
}

/// Returns whether pausing a job, or resuming it, changes it.
pub(crate) fn changes(job: &Job, pause: bool) -> Result<bool, RequestError> {
    if job.is_final() {
        let (id, what) = (job.id(), if pause { "paused" } else { "resumed" });
        return Err(RequestError::Invalid(format!(
            "job {id} has ended already, and cannot be {what}"
        )));
    }
    Ok(job.paused().is_some() != pause)
}

/// Ends every lease of a job without counting attempts, and tells its nodes to stop.
fn take_leases_of(books: &mut Books, id: JobId) {
    let leases: Vec<(UnitKey, Epoch)> = books.leases().of_job(id).collect();
    let mut of_node: BTreeMap<NodeId, Vec<Lease>> = BTreeMap::new();
    for (unit, epoch) in leases {
        match books.release(epoch) {
            Some(held) => {
                of_node.entry(held.node).or_default().push(Lease { unit, epoch });
                books.give_back(unit, books.now());
            }
            None => books.fault("a lease of a job is not held"),
        }
    }
    for (node, leases) in of_node {
        books.tell(node, CoordinatorToNode::Revoke { leases });
    }
}
