//! The table of roles and owners that each request needs. The core applies the rule about owners,
//! in the same step that changes the job.

use super::caller::Caller;
use tessera_protocol::client::{Request, RequestError, Role};
use tessera_protocol::logs::LogTarget;

/// What a request can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The whole farm: only the role decides.
    Farm,
    /// One job: its owner, and the roles from operator on, have the right.
    OwnJob,
    /// Tokens for HTTP: whom they act for, and admins, have the right.
    OwnTokens,
}

/// Returns the lowest role for a request, and what the request can affect. A new request does not
/// compile until it has a line here.
pub(super) fn rule(request: &Request) -> (Role, Reach) {
    match request {
        Request::Jobs(_)
        | Request::Job(_)
        | Request::Frames { .. }
        | Request::Watch(_)
        | Request::WatchAll { .. }
        | Request::Live(_)
        | Request::Usage
        | Request::Costs { .. }
        | Request::Explain(_)
        | Request::Presets
        | Request::Preset { .. }
        | Request::Nodes => (Role::Viewer, Reach::Farm),
        Request::KernelText(_) => (Role::Viewer, Reach::OwnJob),
        // What a node says may be about anybody's jobs.
        Request::Logs(query) | Request::FollowLogs(query) => match query.target {
            LogTarget::Job(_) => (Role::Viewer, Reach::OwnJob),
            LogTarget::Node(_) => (Role::Operator, Reach::Farm),
        },
        Request::MissingBlobs(_) => (BLOB_PUT, Reach::Farm),
        // A repeated submit is for the same job, so its owner counts.
        Request::Submit { .. } | Request::EditJob { .. } | Request::ChangeJobs(_) => {
            (Role::Artist, Reach::OwnJob)
        }
        // Whether a copy of an operator's or admin's identity is kept is for an admin; that is
        // checked where the member is known.
        Request::Drain { .. }
        | Request::RemoveNode { .. }
        | Request::Members { .. }
        | Request::CostRules
        | Request::KeepMember { .. } => (Role::Operator, Reach::Farm),
        // The right to add machines does not include the right to add people.
        Request::CreateToken(scope) if scope.role == Role::Node && !scope.replace => {
            (Role::Operator, Reach::Farm)
        }
        Request::CreateApiToken(_)
        | Request::WebLink
        | Request::Tokens { .. }
        | Request::RevokeToken { .. } => (Role::Viewer, Reach::OwnTokens),
        Request::CreateToken(_)
        | Request::RemoveMember { .. }
        | Request::SetCostRules(_)
        | Request::SetPreset { .. }
        | Request::Deny { .. }
        | Request::Allow { .. }
        | Request::Denied
        | Request::Log { .. }
        | Request::Authority
        | Request::RotateAuthority { .. }
        | Request::Audit
        | Request::Sweep { .. }
        | Request::TestTarget { .. }
        | Request::Backup => (Role::Admin, Reach::Farm),
    }
}

/// Lowest role that can read blobs.
pub(super) const BLOB_GET: Role = Role::Viewer;
/// Lowest role that can write blobs.
pub(super) const BLOB_PUT: Role = Role::Artist;

/// Converts the caller for the core's rule about owners.
pub(super) fn owner(caller: &Caller) -> tessera_core::Caller {
    tessera_core::Caller {
        name: caller.name().to_owned(),
        id: caller.identity().number,
        admin: caller.role().covers(Role::Operator),
    }
}

/// Checks that the caller's role covers this one.
pub(super) fn check(caller: &Caller, needed: Role) -> Result<(), RequestError> {
    if caller.role().covers(needed) {
        return Ok(());
    }
    Err(RequestError::NotAllowed(format!(
        "this needs the role {needed}, and this identity is {caller}; an admin can make a token \
         for another: `tessera token create --role {needed}`"
    )))
}
