//! Which nodes may have work at all, whatever the job. Chooses none.

use crate::books::Books;
use crate::nodes::devices;
use crate::nodes::roster::{Node, Presence};
use tessera_protocol::ids::NodeId;

/// Whether a node gets no work because it lied: only while another node may have work.
pub(crate) fn is_barred(books: &Books, id: NodeId) -> bool {
    let trust = books.farm().trust();
    let may_work = |(other, node): (&NodeId, &Node)| {
        *other != id
            && node.presence() != Presence::Lost
            && !node.leaving()
            && node.devices().iter().any(devices::is_ready)
            && !books.farm().is_drained(*other)
            && !trust.is_guilty(*other)
    };
    trust.is_guilty(id) && books.roster().iter().any(may_work)
}

/// Whether a node may have work: it wants some, and nothing forbids it.
pub(crate) fn is_ready(books: &Books, id: NodeId, node: &Node) -> bool {
    node.is_willing() && !books.farm().is_drained(id) && !is_barred(books, id)
}
