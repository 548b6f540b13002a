//! Nodes that cannot prepare a job's scene, or use its program. One word decides nothing for
//! others: the job ends when two nodes say so, or when the only node that may have it says so a
//! second time. Until then the unit goes to other nodes, and the node that said so is passed over
//! for this job. A node's word falls when another one has made a result of the same frame.

use crate::books::Books;
use crate::ends::end_job;
use crate::journal::Ending;
use crate::results::failed::{doubt, end_failed, pass_over};
use crate::schedule::memory::is_barred_from;
use crate::state::frame::Frame;
use crate::text::cut;
use tessera_protocol::ids::{JobId, Lease, NodeId, UnitKey};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::status::JobState;

/// Nodes that have to say so.
const NODES: usize = 2;
/// How often a node has to say so if no other may have the job.
const TIMES_ALONE: u32 = 2;

/// Handles a node's word that a job cannot be prepared. `what`: what it cannot do, for people.
pub(crate) fn on_unprepared(
    books: &mut Books,
    id: NodeId,
    lease: Lease,
    (what, reason): (&str, &str),
) {
    let (unit, job) = (lease.unit, lease.unit.job);
    let text = format!("{what}: {}", cut(reason, REASON_MAX));
    let refuted = has_result(books, unit);
    pass_over(books, id, job, &text);
    let alone = is_alone(books, id, job);
    if refuted {
        // Another node could, so that it is this node's ordinary failure.
        let ending = if alone { Ending::Failed(text) } else { Ending::Unprepared(text) };
        end_failed(books, id, lease, ending);
        return doubt(books, id, job);
    }
    end_failed(books, id, lease, Ending::Unprepared(text.clone()));
    if let Some(refusals) = books.refusals_mut(job) {
        refusals.note(id, unit.frame);
    }
    if let Some(who) = who_ends(books, id, job) {
        end_job(books, job, JobState::Failed, &format!("{text} ({who})"));
    }
}

/// Whether no other node may have the job that a node is passed over for.
fn is_alone(books: &Books, id: NodeId, job: JobId) -> bool {
    books.farm().job(job).is_none_or(|job| !is_barred_from(books, id, job))
}

/// Returns whose words end the job, for people; None while it goes on.
fn who_ends(books: &Books, id: NodeId, job: JobId) -> Option<String> {
    let refusals = books.queue(job)?.refusals();
    let names: Vec<String> =
        refusals.standing().map(|(node, _)| format!("`{}`", books.name_of(node))).collect();
    if names.len() >= NODES {
        return Some(format!("said by {}", names.join(" and ")));
    }
    let times = refusals.standing().find(|(node, _)| *node == id).map_or(0, |(_, times)| times);
    (times >= TIMES_ALONE && is_alone(books, id, job))
        .then(|| format!("said twice by {}, the only node that may have it", names.join("")))
}

/// Whether some unit of the frame has a result, so that it can be prepared.
fn has_result(books: &Books, unit: UnitKey) -> bool {
    match books.farm().job(unit.job).and_then(|job| job.frame(unit.frame)) {
        Some(Frame::Open(open)) => open.committed().ones() > 0 || !open.parts().is_empty(),
        Some(Frame::Complete(_) | Frame::Done(_)) => true,
        _ => false,
    }
}

/// A node has made a result of a frame: nodes that could not prepare it were wrong.
pub(crate) fn refute(books: &mut Books, unit: UnitKey, by: NodeId) {
    let Some(refusals) = books.refusals_mut(unit.job) else { return };
    for node in refusals.refute(unit.frame, by) {
        if books.roster().get(node).is_some() {
            doubt(books, node, unit.job);
        }
    }
}
