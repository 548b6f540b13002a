//! Drained nodes: they get no new work at an operator's request, which outlives sessions and
//! restarts. What a node does at its own wish is in `sessions`.

use crate::books::Books;
use crate::checks::release_node;
use crate::input::{RequestId, SessionId};
use crate::journal::Record;
use crate::nodes::absent;
use crate::report::listing::node_row;
use crate::state::register::Entry;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::NodeId;
use tessera_protocol::node::CoordinatorToNode;

/// What an operator wishes of a node that is to be drained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// Whether it leaves as well.
    pub(crate) leave: bool,
}

/// An operator drains a node, or ends its draining: then there is no wish.
pub(crate) fn on_drain(
    books: &mut Books,
    request: RequestId,
    node: &str,
    wish: Option<Wish>,
    by: &str,
) {
    let answer = set_drained(books, node, wish, by);
    books.reply(request, answer);
}

fn set_drained(
    books: &mut Books,
    text: &str,
    wish: Option<Wish>,
    by: &str,
) -> Result<Response, RequestError> {
    let id = match (absent::find(books, text), wish) {
        (Ok(id), _) => id,
        // A suspected node that is not listed any more can be trusted again too.
        (Err(error @ RequestError::NotFound(_)), None) => {
            suspect_named(books, text).ok_or(error)?
        }
        (Err(error), _) => return Err(error),
    };
    if wish.is_none() {
        release_node(books, id);
    }
    let register = books.farm().register();
    let here = register.get(id).is_some_and(Entry::is_here);
    let before = register.drain_of(id).map(|drain| drain.leave);
    // Who was told to leave does so, whatever is asked later.
    let leave =
        wish.is_some_and(|wish| wish.leave && here) || (wish.is_some() && before == Some(true));
    let (drained, changed) = (wish.is_some(), before != wish.map(|_| leave));
    if changed {
        let (by, at) = (by.to_owned(), books.now());
        books.record(Record::NodeDrained { node: id, drained, leave, by, at });
        books.mark_all();
    }
    if leave {
        books.tell(id, CoordinatorToNode::Leave);
    } else if changed {
        books.tell(id, CoordinatorToNode::Drained { drained });
    }
    Ok(Response::Nodes(vec![node_row(books, id, books.now())]))
}

fn suspect_named(books: &Books, text: &str) -> Option<NodeId> {
    let mut suspects = books.farm().trust().suspects().iter();
    let named = suspects.find(|(id, of)| of.name == text || id.to_string() == text);
    named.map(|(id, _)| *id)
}

/// Tells a node that joins that it is drained.
pub(crate) fn on_joined(books: &mut Books, id: NodeId, session: SessionId) {
    match books.farm().register().drain_of(id).map(|drain| drain.leave) {
        Some(true) => books.send(session, CoordinatorToNode::Leave),
        Some(false) => books.send(session, CoordinatorToNode::Drained { drained: true }),
        None => {}
    }
}
