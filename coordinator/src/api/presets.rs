//! Templates that admins publish.

use super::caller::Caller;
use super::context::Context;
use crate::driver::{Ask, Question};
use tessera_protocol::client::{Request, RequestError, Response};
use tessera_protocol::preset;

/// Answers a request about presets.
pub(super) async fn answer(
    context: &Context,
    caller: &Caller,
    request: Request,
) -> Result<Response, RequestError> {
    match request {
        Request::SetPreset { name, text } => {
            preset::check(&name, text.as_deref()).map_err(RequestError::Invalid)?;
            let by = caller.name().to_owned();
            context.durably(Ask::SetPreset { preset: (name, text), by }).await
        }
        Request::Preset { name } => context.question(Question::Preset(name)).await,
        _ => context.question(Question::Presets).await,
    }
}
