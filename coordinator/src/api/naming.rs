//! Whom the texts in requests name.

use super::caller::Caller;
use super::context::Context;
use tessera_core::Owner;
use tessera_protocol::client::RequestError;
use tessera_transport::member::{ADMIN_NAME, ADMIN_NUMBER, MemberRecord};

/// Finds the owner that a text names: the caller, a member, the data folder's own admin, or `#` and
/// the number of an identity, whose name may have been taken away.
pub(super) fn find_owner(
    context: &Context,
    caller: &Caller,
    text: &str,
) -> Result<Owner, RequestError> {
    if text == caller.name() {
        return Ok(caller.owner());
    }
    if is_own_admin(text) {
        return Ok(Owner::new(ADMIN_NUMBER, ADMIN_NAME));
    }
    let number = text.strip_prefix('#').and_then(|digits| digits.parse().ok());
    match (find(context, text), number) {
        (Ok(member), _) => Ok(Owner::new(member.number, &member.name)),
        (Err(_), Some(number)) => Ok(Owner::new(number, text)),
        (Err(error), None) => Err(error),
    }
}

/// Finds the member that a text names.
pub(super) fn find(context: &Context, text: &str) -> Result<MemberRecord, RequestError> {
    context.access.members.find(text).ok_or_else(|| {
        RequestError::NotFound(format!(
            "nobody holds the name {text:?}; `tessera members list` shows who is there"
        ))
    })
}

/// Whether a text names the data folder's own admin.
pub(super) fn is_own_admin(text: &str) -> bool {
    [ADMIN_NAME, "user:admin", "#1"].contains(&text)
}
