//! Who may ask what: the one table of roles and owners. The core applies the owner's rule, in the
//! same step that changes the job.

use super::caller::Caller;
use tessera_protocol::client::{Request, RequestError, Role};

/// Whose things a request may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The farm's: the role decides.
    Farm,
    /// One job: its owner's, or from operator on anybody's.
    OwnJob,
}

/// Who may ask this: the least role, and whose things it reaches. A new request does not compile
/// until it has a line here.
pub(super) fn rule(request: &Request) -> (Role, Reach) {
    match request {
        Request::Jobs
        | Request::Job(_)
        | Request::Frames { .. }
        | Request::Watch(_)
        | Request::Nodes => (Role::Viewer, Reach::Farm),
        Request::MissingBlobs(_) => (BLOB_PUT, Reach::Farm),
        // A repeated submit is of the same job: its owner's.
        Request::Submit { .. }
        | Request::Cancel(_)
        | Request::Pause(_)
        | Request::Resume(_)
        | Request::Retry(_)
        | Request::Forget(_) => (Role::Artist, Reach::OwnJob),
        Request::Drain { .. } => (Role::Operator, Reach::Farm),
        // Adding machines does not need the right to add people.
        Request::CreateToken(scope) if scope.role == Role::Node => (Role::Operator, Reach::Farm),
        Request::CreateToken(_)
        | Request::Tokens { .. }
        | Request::RevokeToken { .. }
        | Request::Deny { .. }
        | Request::Allow { .. }
        | Request::Denied
        | Request::Log { .. }
        | Request::Authority
        | Request::RotateAuthority { .. }
        | Request::Audit
        | Request::Backup => (Role::Admin, Reach::Farm),
    }
}

/// The least role that may read blobs.
pub(super) const BLOB_GET: Role = Role::Viewer;
/// The least role that may give blobs.
pub(super) const BLOB_PUT: Role = Role::Artist;

/// The caller as the core's owner rule wants it.
pub(super) fn owner(caller: &Caller) -> tessera_core::Caller {
    tessera_core::Caller {
        name: caller.name().to_owned(),
        admin: caller.role().covers(Role::Operator),
    }
}

/// Fails unless the caller's role covers this one.
pub(super) fn check(caller: &Caller, needed: Role) -> Result<(), RequestError> {
    if caller.role().covers(needed) {
        return Ok(());
    }
    Err(RequestError::NotAllowed(format!(
        "this needs the role {needed}, and this identity is {caller}; an admin can make a token \
         for another: `tessera token create --role {needed}`"
    )))
}
