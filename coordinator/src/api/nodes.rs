//! Requests about the nodes of the farm, answered with what the shell knows of them.

use super::caller::Caller;
use super::context::Context;
use crate::driver::{Ask, Question};
use std::collections::BTreeMap;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::status::NodeSummary;

/// Returns all nodes, each with the number of its identity. Notes say what happened to that, and
/// that results of the node have been arriving for long.
pub(super) async fn nodes(context: &Context) -> Result<Response, RequestError> {
    context.question(Question::Nodes).await.map(|answer| completed(context, answer))
}

/// Drains a node, or gives it work again.
pub(super) async fn drain(
    context: &Context,
    caller: &Caller,
    (node, drain, leave): (String, bool, bool),
) -> Result<Response, RequestError> {
    let ask = Ask::Drain { node, drain, leave, by: caller.name().to_owned() };
    context.durably(ask).await.map(|answer| completed(context, answer))
}

/// Takes an absent node off the list.
pub(super) async fn remove(
    context: &Context,
    caller: &Caller,
    node: String,
) -> Result<Response, RequestError> {
    let ask = Ask::RemoveNode { node, by: caller.name().to_owned() };
    context.durably(ask).await.map(|answer| completed(context, answer))
}

/// Adds what the shell knows to a list of nodes.
fn completed(context: &Context, answer: Response) -> Response {
    match answer {
        Response::Nodes(nodes) => Response::Nodes(with_identities(context, nodes)),
        other => other,
    }
}

fn with_identities(context: &Context, mut nodes: Vec<NodeSummary>) -> Vec<NodeSummary> {
    let mut members = context.access.members.nodes();
    let held: BTreeMap<_, _> = context
        .result_memory
        .held()
        .into_iter()
        .filter_map(|held| held.note().map(|note| (held.node, note)))
        .collect();
    for row in &mut nodes {
        let mut notes = vec![std::mem::take(&mut row.note)];
        if let Some((number, conflict)) = members.remove(&row.node) {
            row.identity = number;
            notes.extend([conflict, context.access.note_of(row.node).unwrap_or_default()]);
            let denied = context.access.denial_of(number);
            notes.extend(denied.map(|entry| format!("denied by {}: {}", entry.by, entry.reason)));
        }
        notes.extend(held.get(&row.node).cloned());
        notes.retain(|note| !note.is_empty());
        row.note = notes.join("; ");
    }
    nodes
}
