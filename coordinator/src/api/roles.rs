//! Which role each request needs: the one table. Who owns a job is the core's to look at.

use tessera_protocol::client::{Request, RequestError, Role};
use tessera_transport::PeerIdentity;

/// The least role that may ask this. A new request has no place until it is given one here.
pub(crate) fn needed(request: &Request) -> Role {
    match request {
        Request::Jobs
        | Request::Job(_)
        | Request::Frames { .. }
        | Request::Watch(_)
        | Request::Nodes => Role::Viewer,
        // An artist's own jobs; the core knows whose they are.
        Request::MissingBlobs(_)
        | Request::Submit { .. }
        | Request::Cancel(_)
        | Request::Pause(_)
        | Request::Resume(_)
        | Request::Retry(_)
        | Request::Forget(_) => Role::Artist,
        Request::Drain { .. } => Role::Operator,
        // Whoever adds machines need not be able to add people.
        Request::CreateToken(scope) if scope.role == Role::Node => Role::Operator,
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
        | Request::Backup => Role::Admin,
    }
}

/// May this peer touch what others own?
pub(crate) fn rules_others(peer: &PeerIdentity) -> bool {
    peer.role.covers(Role::Operator)
}

/// The least role that may give blobs.
pub(crate) const BLOB_PUT: Role = Role::Artist;

/// May this peer do what needs this role?
pub(crate) fn check(peer: &PeerIdentity, needed: Role) -> Result<(), RequestError> {
    if peer.role.covers(needed) {
        return Ok(());
    }
    Err(RequestError::NotAllowed(format!(
        "this needs the role {needed}, and this identity is {peer}; an admin can make a token \
         for another: \
         `tessera token create --role {needed}`"
    )))
}
