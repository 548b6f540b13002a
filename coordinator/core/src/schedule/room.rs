//! Room for a job of which nothing is leased, on nodes that are full: a node that holds units which
//! it has not begun is asked to give them back. Nothing is taken back that has begun: only the node
//! knows, and returns what it can.
//!
//! Without this, a short job would wait until a node has worked on everything that it holds ahead.

use crate::books::Books;
use crate::nodes::roster::Node;
use crate::schedule::bound::is_full;
use crate::schedule::dirty::Dirty;
use crate::schedule::fair::{Party, Turn};
use crate::schedule::memory::{may_work_at, usable};
use crate::schedule::met::met_by_dirty;
use crate::state::job::Job;
use crate::time::Moment;
use tessera_protocol::ids::{Lease, NodeId};
use tessera_protocol::limits::LEASES_MAX;
use tessera_protocol::node::CoordinatorToNode;

/// Most jobs, from the one whose turn it is on, that room is made for in a step.
const JOBS_MAX: usize = 4;
/// Most nodes that are compared for a job.
const NODES_MAX: usize = 64;

/// Asks full nodes for what they have not begun, for the jobs whose turn it is and of which nothing
/// is leased.
pub(crate) fn make_room(books: &mut Books, dirty: &Dirty) {
    let met = met_by_dirty(books, dirty);
    let mut after: Option<Turn> = None;
    for _ in 0..JOBS_MAX {
        let Some(turn) = books.shares().next(after.as_ref(), Some(&met)) else { return };
        after = Some(turn);
        let Some(job) = books.farm().job(turn.job) else {
            return books.fault("an offered job is unknown");
        };
        let (id, owner, now) = (job.id(), job.owner_id(), books.now());
        let idle = books.leases().of_job(id).next().is_none();
        if idle
            && books.rooms().may_ask(owner, now)
            && let Some((node, leases)) = who_makes_room(books, dirty, job)
        {
            books.rooms_mut().ask(node, (id, owner), now);
            books.tell(node, CoordinatorToNode::GiveBack { leases });
        }
    }
}

/// Returns the node that is likely to be ready for the job first, and what it is asked for.
fn who_makes_room(books: &Books, dirty: &Dirty, job: &Job) -> Option<(NodeId, Vec<Lease>)> {
    let roster = books.roster();
    let of = |id: NodeId, node: &Node| {
        let held = books.leases().count_of(id);
        let may = held >= node.capacity()
            && books.rooms().job_for(id).is_none_or(|other| !books.is_offered_job(other))
            && may_work_at(books, id, node, job)
            && !is_full(books, id, job.id());
        let leases = may.then(|| not_begun(books, id, node, job))?;
        let since = books.leases().of_node(id).next().map(|(_, held)| held.granted);
        (!leases.is_empty()).then_some((since, id, leases))
    };
    let oldest = |found: &mut dyn Iterator<Item = (Option<Moment>, NodeId, Vec<Lease>)>| {
        found.take(NODES_MAX).min_by_key(|(since, id, _)| (*since, *id))
    };
    let found = match dirty.nodes() {
        Some(nodes) => {
            let known = nodes.iter().filter_map(|id| Some((*id, roster.get(*id)?)));
            oldest(&mut known.filter_map(|(id, node)| of(id, node)))
        }
        None => oldest(&mut roster.iter().filter_map(|(id, node)| of(*id, node))),
    };
    found.map(|(_, id, leases)| (id, leases))
}

/// Returns the leases of a node that its devices have probably not begun, and whose jobs are ahead
/// of this one.
fn not_begun(books: &Books, id: NodeId, node: &Node, job: &Job) -> Vec<Lease> {
    let devices = usable(books, id, node, job).count();
    let own = Party::of(job, books.settings());
    let is_ahead = |lease: &Lease| {
        let other = books.farm().job(lease.unit.job);
        other.is_some_and(|other| {
            books.shares().is_behind(&own, &Party::of(other, books.settings()))
        })
    };
    let leases = books.leases().of_node(id).skip(devices);
    let waiting = leases.filter(|(_, held)| held.progress.is_none()).map(|(lease, _)| lease);
    waiting.filter(is_ahead).take(LEASES_MAX).collect()
}
