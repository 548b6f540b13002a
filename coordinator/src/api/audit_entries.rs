//! The table of what each request writes to the audit log. Stores nothing; see
//! [`crate::access::audit_log`].

use tessera_protocol::access::Keep;
use tessera_protocol::client::Request;
use tessera_protocol::limits::REASON_MAX;
use tessera_transport::close::cut;

/// Returns a request's action and its object, also of requests that change nothing.
pub(crate) fn name_of(request: &Request) -> (&'static str, String) {
    let reading = match request {
        Request::Jobs => "list of jobs",
        Request::Job(_) => "job",
        Request::Frames { .. } => "frames of a job",
        Request::Watch(_) => "progress of a job",
        Request::KernelText(_) => "text of a kernel",
        Request::Nodes => "list of nodes",
        Request::MissingBlobs(_) => "upload",
        Request::Tokens { .. } => "list of tokens",
        Request::Denied => "list of denied identities",
        Request::Log { .. } => "audit log",
        Request::Authority => "the farm's authority",
        Request::Audit => "audit of the records",
        _ => "request",
    };
    entry_of(request).unwrap_or_else(|| (reading, String::new()))
}

/// Returns the action and its object; None for a request that changes nothing. A new request does
/// not compile until it has an entry here.
pub(crate) fn entry_of(request: &Request) -> Option<(&'static str, String)> {
    match request {
        Request::Jobs
        | Request::Job(_)
        | Request::Frames { .. }
        | Request::Watch(_)
        | Request::KernelText(_)
        | Request::Nodes
        | Request::MissingBlobs(_)
        | Request::Tokens { .. }
        | Request::Members { .. }
        | Request::Denied
        | Request::Log { .. }
        | Request::Authority
        | Request::Usage
        | Request::Sweep { dry_run: true, .. }
        | Request::Audit => None,
        Request::Submit { job, .. } => Some(("job submitted", format!("job {job}"))),
        Request::Cancel(job) => Some(("job cancelled", format!("job {job}"))),
        Request::CancelFor { job, reason } => {
            let reason = cut(reason, REASON_MAX);
            Some(("job cancelled", format!("job {job}: {reason}")))
        }
        Request::SetJob { job, change } => {
            let words = change.words();
            Some(("job changed", format!("job {job}: {}", cut(&words, REASON_MAX))))
        }
        Request::Pause(job) => Some(("job paused", format!("job {job}"))),
        Request::Resume(job) => Some(("job resumed", format!("job {job}"))),
        Request::Retry(job) => Some(("job retried", format!("job {job}"))),
        Request::Forget(job) => Some(("job forgotten", format!("job {job}"))),
        Request::CancelAll { owner } => Some(("all jobs cancelled", format!("of `{owner}`"))),
        Request::Sweep { owner, dry_run: false } => Some(("swept", format!("all of `{owner}`"))),
        Request::Backup => Some(("backup made", "all but the keys and the deny-list".to_owned())),
        Request::Drain { node, drain: true } => Some(("node drained", node.clone())),
        Request::Drain { node, drain: false } => Some(("node undrained", node.clone())),
        Request::CreateToken(scope) => {
            let pool = scope.pool.as_ref().map(|pool| format!(", pool {pool}")).unwrap_or_default();
            let name =
                scope.name.as_ref().map(|name| format!(", for `{name}`")).unwrap_or_default();
            let replace = if scope.replace { ", replaces the present holder" } else { "" };
            let text = format!(
                "role {}{pool}{name}{replace}, {} uses, {} s",
                scope.role, scope.uses, scope.ttl_secs
            );
            Some(("token created", text))
        }
        Request::RevokeToken { id } => Some(("token revoked", format!("token {id}"))),
        Request::Deny { identity, reason } => Some(("denied", format!("{identity} ({reason})"))),
        Request::KeepMember { member, keep } => {
            let copy = match keep {
                Keep::Newer => "the newer certificate",
                Keep::Older => "the older certificate",
            };
            Some(("one of two copies kept", format!("{member}: {copy}")))
        }
        Request::RemoveMember { member } => Some(("name taken away", member.clone())),
        Request::Allow { identity } => Some(("allowed", identity.clone())),
        Request::RotateAuthority { overlap_secs } => {
            let overlap = overlap_secs.map(|secs| format!("overlap {secs} s"));
            Some(("authority rotated", overlap.unwrap_or_default()))
        }
    }
}
