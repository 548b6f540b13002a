//! Nodes that are connected and do nothing about their leases: the leases end after `stall`. A unit
//! that a device has begun is looked after in `stalled`; this is about nodes that begin nothing.
//!
//! Each heartbeat says on how many units and frames the node works. A node is idle from its last
//! sign of work on: a result, a failure, a lease that it gave back, a scene, or such a heartbeat.

use crate::books::Books;
use crate::journal::{EndedAttempt, Ending};
use crate::lease::Held;
use crate::nodes::ready::is_ready;
use crate::nodes::roster::Node;
use crate::results::failed::end_attempts;
use crate::text::cut;
use crate::timers::Timer;
use tessera_protocol::ids::{Lease, NodeId};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::node::Heartbeat;

/// Looks at what a node does, and ends its leases if it has done nothing about them for too long.
pub(crate) fn on_work_told(books: &mut Books, id: NodeId, told: &Heartbeat) {
    let (now, stall) = (books.now(), books.settings().stall);
    if told.working > 0 || told.outbox > 0 {
        return books.note_active(id);
    }
    let Some(active) = books.roster().get(id).map(Node::active) else {
        return books.fault("a session belongs to an unknown node");
    };
    let is_idle = |held: &Held| now.since(held.granted.max(active)) > stall;
    let idle: Vec<Lease> = books
        .leases()
        .of_node(id)
        .filter(|(_, held)| is_idle(held))
        .map(|(lease, _)| lease)
        .collect();
    if !idle.is_empty() {
        end_idle(books, id, &idle);
    }
}

/// Ends leases of an idle node, and gives it no work for a while, unless it is the last node.
fn end_idle(books: &mut Books, id: NodeId, idle: &[Lease]) {
    let (now, stall) = (books.now(), books.settings().stall.as_secs());
    let reason = format!("the node is connected and began none of its units for {stall} s");
    for lease in idle {
        // The unit before may have ended the frame, and with it this lease.
        if books.leases().get(*lease).is_some() {
            books.revoke(lease.unit, lease.epoch);
            let ending = Ending::Idle(cut(&reason, REASON_MAX));
            end_attempts(books, id, vec![EndedAttempt { lease: *lease, ending }]);
        }
    }
    let is_other = |(other, node): (&NodeId, &Node)| *other != id && is_ready(books, *other, node);
    let (others, first) = (books.roster().iter().any(is_other), books.settings().unfit);
    let Some(node) = books.node_mut(id) else {
        return books.fault("a node that failed is unknown");
    };
    if others && node.fitness().unfit().is_none() {
        let why = format!("it is connected and began none of {} units for {stall} s", idle.len());
        let until = node.fitness_mut().set_idle(now, first, &why);
        books.set_timer(until, Timer::Fit(id));
    }
}
