//! The request for the nodes of the farm, with what the shell knows of them.

use super::context::Context;
use crate::driver::Question;
use tessera_protocol::client::{RequestError, Response};

/// Returns the nodes. Those whose results have been arriving for long have a note about that.
pub(super) async fn nodes(context: &Context) -> Result<Response, RequestError> {
    let mut answer = context.question(Question::Nodes).await?;
    if let Response::Nodes(nodes) = &mut answer {
        for held in context.result_memory.held() {
            let row = nodes.iter_mut().find(|row| row.node == held.node);
            let (Some(row), Some(note)) = (row, held.note()) else { continue };
            if !row.note.is_empty() {
                row.note.push_str("; ");
            }
            row.note.push_str(&note);
        }
    }
    Ok(answer)
}
