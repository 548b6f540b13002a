//! Templates that admins publish. The core keeps them; whoever submits reads them.

use crate::books::Books;
use crate::input::RequestId;
use crate::journal::Record;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::limits::PRESETS_MAX;
use tessera_protocol::preset;

/// Publishes a preset, or takes it away, and replies.
pub(crate) fn on_set(
    books: &mut Books,
    request: RequestId,
    (name, text): (String, Option<String>),
    by: String,
) {
    let answer = match check(books, &name, text.as_deref()) {
        Ok(()) => {
            if books.farm().presets().text_of(&name) != text.as_deref() {
                let at = books.now();
                books.record(Record::PresetSet { name, text, by, at });
            }
            Ok(Response::Done)
        }
        Err(error) => Err(error),
    };
    books.reply(request, answer);
}

fn check(books: &Books, name: &str, text: Option<&str>) -> Result<(), RequestError> {
    preset::check(name, text).map_err(RequestError::Invalid)?;
    let presets = books.farm().presets();
    match (presets.text_of(name), text) {
        (None, None) => Err(RequestError::NotFound(format!("there is no preset `{name}`"))),
        (None, Some(_)) if presets.len() >= PRESETS_MAX => Err(RequestError::Unavailable(format!(
            "there are {PRESETS_MAX} presets, and no room for more; take one away first"
        ))),
        _ => Ok(()),
    }
}
