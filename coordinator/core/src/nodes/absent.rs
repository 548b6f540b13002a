//! Nodes of the present and the past: keeps the durable roster in step with the sessions, finds
//! nodes by what people call them, and takes nodes off the list.

use crate::action::Action;
use crate::books::Books;
use crate::input::RequestId;
use crate::journal::{Gone, Record};
use crate::nodes::roster::Presence;
use crate::report::listing::node_row;
use crate::results::failed::lose;
use crate::state::register::Entry;
use crate::text::cut;
use crate::timers::Timer;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::NodeId;
use tessera_protocol::limits::ROWS_MAX;

/// Most bytes of the reason for which a node is gone.
const WHY_MAX: usize = 256;
/// Most ids that an error names.
const NAMED_MAX: usize = 8;

/// After a restart, nodes that were connected have time to come back.
pub(crate) fn take_up(books: &mut Books) {
    let entries = books.farm().register().entries().iter();
    let here: Vec<NodeId> =
        entries.filter(|(_, entry)| entry.is_here()).map(|(id, _)| *id).collect();
    let until = books.await_nodes();
    here.into_iter().for_each(|id| books.set_timer(until, Timer::Away(id)));
    forget_oldest(books);
}

/// A node has joined. Absent nodes of its name are replaced: names belong to one holder, which the
/// shell sees to.
pub(crate) fn on_joined(books: &mut Books, id: NodeId) {
    let Some(node) = books.roster().get(id) else {
        return books.fault("a node that joined is unknown");
    };
    let (name, pool) = (node.name().to_owned(), node.pool().map(str::to_owned));
    let same = |entry: &Entry| entry.is_here() && entry.name == name && entry.pool == pool;
    if books.farm().register().get(id).is_some_and(same) {
        return;
    }
    let others = books.farm().register().entries().iter().filter(|(other, entry)| {
        let absent = !entry.is_here() && !entry.is_removed();
        **other != id && absent && entry.name.eq_ignore_ascii_case(&name)
    });
    let others: Vec<NodeId> = others.map(|(other, _)| *other).collect();
    books.record(Record::NodeJoined { node: id, name, pool, at: books.now() });
    for old in others {
        books.record(Record::NodeReplaced { old, new: id, at: books.now() });
        forget_if_lost(books, old);
    }
    forget_oldest(books);
}

/// A node has left by itself. Its leases are kept for its grace.
pub(crate) fn on_left(books: &mut Books, id: NodeId, why: &str) {
    go(books, id, Gone::Left, why);
}

/// A node has not come back within its grace, or after a restart.
pub(crate) fn on_lost(books: &mut Books, id: NodeId, why: &str) {
    go(books, id, Gone::Lost, why);
    forget_if_lost(books, id);
}

fn go(books: &mut Books, id: NodeId, how: Gone, why: &str) {
    let register = books.farm().register();
    let Some(entry) = register.get(id).filter(|entry| entry.is_here()) else { return };
    let same = |entry: &Entry, other: &Entry| {
        other.is_here() && other.name.eq_ignore_ascii_case(&entry.name)
    };
    let mut others = register.entries().iter();
    let new = others.find(|(other, of)| **other != id && same(entry, of)).map(|(new, _)| *new);
    let at = books.now();
    books.record(Record::NodeGone { node: id, how, at, why: cut(why, WHY_MAX) });
    if let Some(new) = new {
        books.record(Record::NodeReplaced { old: id, new, at });
    }
    forget_oldest(books);
}

/// Forgets the nodes that have been gone for longest, beyond the number that is kept.
fn forget_oldest(books: &mut Books) {
    let most = books.settings().absent_nodes.min(ROWS_MAX);
    let nodes = books.farm().register().beyond(most);
    if nodes.is_empty() {
        return;
    }
    books.record(Record::NodesForgotten { nodes: nodes.clone() });
    nodes.into_iter().for_each(|id| forget_if_lost(books, id));
}

/// Drops what is in memory of a node that is off the list, unless it has leases: then it goes with
/// its grace.
fn forget_if_lost(books: &mut Books, id: NodeId) {
    let listed = books.farm().register().get(id).is_some_and(|entry| !entry.is_removed());
    let lost = books.roster().get(id).is_some_and(|node| node.presence() == Presence::Lost);
    if lost && !listed {
        books.forget_node(id);
    }
}

/// Finds the node that a person names, by id or by name.
pub(crate) fn find(books: &Books, text: &str) -> Result<NodeId, RequestError> {
    find_among(books, text, |entry| !entry.is_removed())
}

/// The same, also for a node that was taken off the list, if none on it is called so.
pub(crate) fn find_any(books: &Books, text: &str) -> Result<NodeId, RequestError> {
    match find(books, text) {
        Err(RequestError::NotFound(_)) => find_among(books, text, Entry::is_removed),
        found => found,
    }
}

fn find_among(
    books: &Books,
    text: &str,
    counts: impl Fn(&Entry) -> bool,
) -> Result<NodeId, RequestError> {
    let listed = || books.farm().register().entries().iter().filter(|(_, of)| counts(of));
    if let Ok(id) = text.parse::<NodeId>()
        && listed().any(|(other, _)| *other == id)
    {
        return Ok(id);
    }
    let named: Vec<NodeId> =
        listed().filter(|(_, entry)| entry.name == text).map(|(id, _)| *id).collect();
    match named.as_slice() {
        [] => Err(RequestError::NotFound(format!("no node has the id or name `{text}`"))),
        [id] => Ok(*id),
        several => {
            let ids: Vec<String> = several.iter().take(NAMED_MAX).map(NodeId::to_string).collect();
            let more = if several.len() > NAMED_MAX { ", and more" } else { "" };
            let ids = ids.join(", ");
            let text = format!("several nodes are named `{text}`; give the id: {ids}{more}");
            Err(RequestError::SeveralNodes(text))
        }
    }
}

/// An operator takes an absent node off the list.
pub(crate) fn on_remove(books: &mut Books, request: RequestId, node: &str, by: &str) {
    let answer = remove(books, node, by);
    books.reply(request, answer);
}

fn remove(books: &mut Books, text: &str, by: &str) -> Result<Response, RequestError> {
    let id = find(books, text)?;
    let name = books.name_of(id);
    if books.roster().session_of(id).is_some() {
        return Err(RequestError::Invalid(format!(
            "node `{name}` is connected: `tessera drain {name} --leave` lets it end, or stop it on \
             its machine; then it can be removed"
        )));
    }
    if books.farm().register().get(id).is_some_and(Entry::is_here) {
        return Err(RequestError::Invalid(format!(
            "node `{name}` has lost its connection a moment ago, and may come back; it can be \
             removed once it is listed as lost"
        )));
    }
    take_off(books, id, &format!("removed by `{by}`"));
    Ok(Response::Nodes(vec![node_row(books, id, books.now())]))
}

/// The identity of a node is void.
pub(crate) fn on_retire(books: &mut Books, request: RequestId, id: NodeId, why: &str) {
    if let Some(session) = books.roster().session_of(id) {
        books.act(Action::CloseSession { session, reason: why.to_owned() });
    }
    if books.roster().get(id).is_some() {
        books.leave(id, Presence::Lost);
        let lost = books.leases().epochs_of(id);
        lose(books, id, &lost);
        books.mark_all();
    }
    if books.farm().register().get(id).is_some_and(|entry| !entry.is_removed()) {
        take_off(books, id, why);
    }
    books.reply(request, Ok(Response::Done));
}

fn take_off(books: &mut Books, id: NodeId, why: &str) {
    let (at, why) = (books.now(), cut(why, WHY_MAX));
    books.record(Record::NodeGone { node: id, how: Gone::Removed, at, why });
    forget_if_lost(books, id);
    forget_oldest(books);
}
