//! The request for the nodes of the farm, with what the shell knows of them.

use super::context::Context;
use crate::driver::Question;
use std::collections::BTreeMap;
use tessera_protocol::client::{RequestError, Response};

/// Returns all nodes, each with the number of its identity. Notes say what happened to that, and
/// that results of the node have been arriving for long.
pub(super) async fn nodes(context: &Context) -> Result<Response, RequestError> {
    let answer = context.question(Question::Nodes).await?;
    let Response::Nodes(mut nodes) = answer else { return Ok(answer) };
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
        }
        notes.extend(held.get(&row.node).cloned());
        notes.retain(|note| !note.is_empty());
        row.note = notes.join("; ");
    }
    Ok(Response::Nodes(nodes))
}
