//! Which wants of offered jobs nodes meet: the jobs that are looked at for them.

use crate::books::Books;
use crate::nodes::ready::is_ready;
use crate::nodes::roster::Node;
use crate::schedule::dirty::Dirty;
use crate::schedule::wants::Wants;
use tessera_protocol::ids::NodeId;

/// Returns what offered jobs want and a node meets.
pub(crate) fn met_by(books: &Books, id: NodeId) -> Vec<Wants> {
    let Some(node) = books.roster().get(id) else { return Vec::new() };
    met(books, &|wants| wants.are_met_by(node))
}

/// Returns what offered jobs want and some node meets that may have work.
pub(crate) fn met_by_some(books: &Books) -> Vec<Wants> {
    met(books, &|wants| {
        let suits =
            |(id, node): (&NodeId, &Node)| wants.are_met_by(node) && is_ready(books, *id, node);
        books.roster().iter().any(suits)
    })
}

/// Returns what offered jobs want and some dirty node meets.
pub(crate) fn met_by_dirty(books: &Books, dirty: &Dirty) -> Vec<Wants> {
    let Some(nodes) = dirty.nodes() else { return met_by_some(books) };
    let suits = |wants: &Wants, id: &NodeId| {
        books.roster().get(*id).is_some_and(|node| wants.are_met_by(node))
    };
    met(books, &|wants| nodes.iter().any(|id| suits(wants, id)))
}

fn met(books: &Books, some_meet: &dyn Fn(&Wants) -> bool) -> Vec<Wants> {
    books.shares().wanted().filter(|wants| some_meet(wants)).cloned().collect()
}
