//! Asks the coordinator, and turns its refusals into problems.

pub(crate) use crate::problem::stopping;

use crate::problem::Problem;
use crate::state::State;
use tessera_coordinator::api::Caller;
use tessera_protocol::client::{Request, Response};

/// Asks the coordinator for one answer.
pub(crate) async fn ask(
    state: &State,
    caller: &Caller,
    request: Request,
) -> Result<Response, Problem> {
    match state.api.answer(caller, request).await.next().await {
        Some(Response::Error(error)) => Err(error.into()),
        Some(response) => Ok(response),
        None => Err(stopping()),
    }
}
