//! Requests about the nodes of the farm, answered with what the shell knows of them.

use super::caller::Caller;
use super::context::Context;
use crate::driver::{Ask, Question};
use std::collections::BTreeMap;
use tessera_protocol::NodeId;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::explain::{Reason, Subject};
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

/// Explains a job, a frame or a node.
pub(super) async fn explain(context: &Context, subject: Subject) -> Result<Response, RequestError> {
    let named = match &subject {
        Subject::Node(node) => Some(node.clone()),
        Subject::Job(_) | Subject::Frame { .. } => None,
    };
    let answer = context.question(Question::Explain(subject)).await?;
    let (Response::Explained(mut explained), Some(named)) = (answer.clone(), named) else {
        return Ok(answer);
    };
    // What the shell knows of the node is in its row of the list.
    if let Response::Nodes(rows) = context.question(Question::Nodes).await? {
        let is_named = |row: &&NodeSummary| row.node.to_string() == named;
        let row = rows.iter().find(is_named).or_else(|| rows.iter().find(|row| row.name == named));
        let known = row.map(|row| Known::of(context).about(row)).unwrap_or_default();
        explained.reasons.extend(known);
    }
    Ok(Response::Explained(explained))
}

/// Adds what the shell knows to a list of nodes.
fn completed(context: &Context, answer: Response) -> Response {
    match answer {
        Response::Nodes(nodes) => Response::Nodes(with_identities(context, nodes)),
        other => other,
    }
}

/// What the shell knows of nodes.
struct Known<'a> {
    context: &'a Context,
    members: BTreeMap<NodeId, (u64, String)>,
    held: BTreeMap<NodeId, String>,
}

impl<'a> Known<'a> {
    fn of(context: &'a Context) -> Self {
        let members = context.access.members.nodes();
        let held = context.result_memory.held().into_iter();
        let held = held.filter_map(|held| held.note().map(|note| (held.node, note))).collect();
        Self { context, members, held }
    }

    /// Returns what is wrong with a node's identity and its results, and what helps.
    fn about(&self, row: &NodeSummary) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let mut say = |word: &str, why: String, help: String| {
            if !why.is_empty() {
                reasons.push(Reason { word: word.to_owned(), why, help, ends_secs: None });
            }
        };
        let name = &row.name;
        if let Some((number, conflict)) = self.members.get(&row.node) {
            let access = &self.context.access;
            let keep = format!("`tessera members keep {name}` decides which copy counts");
            say("two_copies", conflict.clone(), keep);
            let noted = access.note_of(row.node).unwrap_or_default();
            say("identity", noted, String::new());
            if let Some(entry) = access.denial_of(*number) {
                let why = format!("denied by {}: {}", entry.by, entry.reason);
                say("denied", why, format!("`tessera allow node:{name}` lets it in again"));
            }
        }
        let held = self.held.get(&row.node).cloned().unwrap_or_default();
        say("results", held, "look at its network: its results arrive slowly".to_owned());
        reasons
    }
}

fn with_identities(context: &Context, mut nodes: Vec<NodeSummary>) -> Vec<NodeSummary> {
    let known = Known::of(context);
    for row in &mut nodes {
        row.identity = known.members.get(&row.node).map_or(row.identity, |(number, _)| *number);
        let mut notes = vec![std::mem::take(&mut row.note)];
        notes.extend(known.about(row).into_iter().map(|reason| reason.why));
        notes.retain(|note| !note.is_empty());
        row.note = notes.join("; ");
    }
    nodes
}
