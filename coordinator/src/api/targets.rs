//! Requests about the targets of events: whether jobs can name them, and a test.

use super::context::Context;
use tessera_protocol::client::{RequestError, Response};

/// Checks that jobs can name these targets.
pub(super) fn check(context: &Context, names: &[String]) -> Result<(), RequestError> {
    if names.is_empty() {
        return Ok(());
    }
    let known = context.targets.get().map(|targets| targets.on_request()).unwrap_or_default();
    let Some(unknown) = names.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let text = match known.is_empty() {
        true => "this coordinator has no targets that jobs can name".to_owned(),
        false => format!("jobs can name {}, and not `{unknown}`", known.join(", ")),
    };
    Err(RequestError::Invalid(format!("notify: {text}")))
}

/// Sends a test event to a target.
pub(super) async fn test(context: &Context, name: &str) -> Result<Response, RequestError> {
    let shown = tessera_protocol::names::printable(name);
    let Some(targets) = context.targets.get() else {
        let text = "this coordinator tells no events: start it with --events FILE";
        return Err(RequestError::Invalid(text.to_owned()));
    };
    let Some(tested) = targets.test(name) else {
        let names: Vec<String> = targets.figures().into_iter().map(|target| target.name).collect();
        let known = names.join(", ");
        return Err(RequestError::NotFound(format!("there is no target `{shown}`, only {known}")));
    };
    let failed = |problem| RequestError::Unavailable(format!("`{shown}`: {problem}"));
    tested.await.map_err(failed).map(|()| Response::Done)
}
