//! The table of what each request writes to the audit log. Stores nothing; see
//! [`crate::access::audit_log`].

use tessera_protocol::access::{ApiTokenScope, Keep, TokenScope};
use tessera_protocol::client::Request;
use tessera_protocol::cost::CostRules;
use tessera_protocol::limits::{NAME_MAX, REASON_MAX};
use tessera_protocol::selection::{JobChange, JobSelection};
use tessera_transport::close::cut;

/// Most jobs that an entry names.
const JOBS_NAMED_MAX: usize = 8;

/// Returns a request's action and its object, also of requests that change nothing.
pub(crate) fn name_of(request: &Request) -> (&'static str, String) {
    let reading = match request {
        Request::Jobs(_) => "list of jobs",
        Request::ChangeJobs(_) => "change of jobs",
        Request::Job(_) => "job",
        Request::Frames { .. } => "frames of a job",
        Request::Watch(_) => "progress of a job",
        Request::WatchAll { .. } => "news of all jobs",
        Request::Live(_) => "live tiles of a job",
        Request::KernelText(_) => "text of a kernel",
        Request::Nodes => "list of nodes",
        Request::Explain(_) => "explanation",
        Request::Logs(_) | Request::FollowLogs(_) => "lines of a log",
        Request::MissingBlobs(_) => "upload",
        Request::Tokens { .. } => "list of tokens",
        Request::WebLink => "link to sign in",
        Request::Denied => "list of denied identities",
        Request::Log { .. } => "audit log",
        Request::Authority => "the farm's authority",
        Request::Audit => "audit of the records",
        Request::Costs { .. } | Request::CostRules => "costs",
        Request::Presets | Request::Preset { .. } => "presets",
        _ => "request",
    };
    entry_of(request).unwrap_or_else(|| (reading, String::new()))
}

/// Returns the action and its object; None for a request that changes nothing. A new request does
/// not compile until it has an entry here.
pub(crate) fn entry_of(request: &Request) -> Option<(&'static str, String)> {
    match request {
        Request::Jobs(_)
        | Request::Job(_)
        | Request::Frames { .. }
        | Request::Watch(_)
        | Request::WatchAll { .. }
        | Request::Live(_)
        | Request::KernelText(_)
        | Request::Nodes
        | Request::Explain(_)
        | Request::Logs(_)
        | Request::FollowLogs(_)
        | Request::MissingBlobs(_)
        | Request::Tokens { .. }
        | Request::Members { .. }
        | Request::Denied
        | Request::Log { .. }
        | Request::Authority
        | Request::Usage
        | Request::Costs { .. }
        | Request::CostRules
        | Request::Presets
        | Request::Preset { .. }
        // That a browser has signed in with it is entered.
        | Request::WebLink
        | Request::Sweep { dry_run: true, .. }
        | Request::Audit => None,
        Request::TestTarget { target } => Some(("target tested", cut(target, NAME_MAX).to_owned())),
        Request::Submit { job, .. } => Some(("job submitted", format!("job {job}"))),
        Request::EditJob { job, edit } => {
            Some(("job changed", format!("job {job}: {}", cut(&edit.words(), REASON_MAX))))
        }
        Request::SetCostRules(rules) => Some(("cost rules set", counted(rules))),
        Request::SetPreset { name, text } => Some(published(name, text.as_deref())),
        Request::ChangeJobs(wanted) if wanted.dry_run => None,
        Request::ChangeJobs(wanted) => {
            let what = match &wanted.change {
                JobChange::Cancel { .. } => "jobs cancelled",
                JobChange::Pause => "jobs paused",
                JobChange::Resume => "jobs resumed",
                JobChange::Retry => "jobs retried",
                JobChange::Forget => "jobs forgotten",
            };
            Some((what, selected(&wanted.selection)))
        }
        Request::Sweep { owner, dry_run: false } => Some(("swept", format!("all of `{owner}`"))),
        Request::Backup => Some(("backup made", "all but the keys and the deny-list".to_owned())),
        Request::Drain { node, drain: true, leave: false } => Some(("node drained", node.clone())),
        Request::Drain { node, drain: true, leave: true } => {
            Some(("node drained", format!("{node}, and it leaves")))
        }
        Request::Drain { node, drain: false, .. } => Some(("node undrained", node.clone())),
        Request::RemoveNode { node } => Some(("node taken off the list", node.clone())),
        Request::CreateToken(scope) => Some(("token created", described(scope))),
        Request::CreateApiToken(scope) => Some(("API token created", of_api(scope))),
        Request::RevokeToken { id } => Some(("token revoked", format!("token {id}"))),
        Request::Deny { identity, reason } => Some(("denied", format!("{identity} ({reason})"))),
        Request::KeepMember { member, keep } => {
            Some(("one of two copies kept", format!("{member}: {}", copy(*keep))))
        }
        Request::RemoveMember { member } => Some(("name taken away", member.clone())),
        Request::Allow { identity } => Some(("allowed", identity.clone())),
        Request::RotateAuthority { overlap_secs } => Some((
            "authority rotated",
            overlap_secs.map(|secs| format!("overlap {secs} s")).unwrap_or_default(),
        )),
    }
}

fn published(name: &str, text: Option<&str>) -> (&'static str, String) {
    let name = cut(name, NAME_MAX);
    match text {
        Some(text) => ("preset published", format!("`{name}`, {} bytes", text.len())),
        None => ("preset taken away", format!("`{name}`")),
    }
}

fn copy(keep: Keep) -> &'static str {
    match keep {
        Keep::Newer => "the newer certificate",
        Keep::Older => "the older certificate",
    }
}

/// Describes a token for HTTP in one line.
fn of_api(ApiTokenScope { role, owner, ttl_secs }: &ApiTokenScope) -> String {
    let role = role.map_or("full rights".to_owned(), |role| format!("role {role}"));
    let owner = owner.as_deref().unwrap_or("the caller");
    format!("for {owner}, {role}, {ttl_secs} s")
}

/// Says how many rules of cost there are.
fn counted(rules: &CostRules) -> String {
    format!("{} prices, {} budgets", rules.prices.len(), rules.budgets.len())
}

/// Describes a token in one line.
fn described(TokenScope { role, pool, name, ttl_secs, uses, replace }: &TokenScope) -> String {
    let pool = pool.as_ref().map(|pool| format!(", pool {pool}")).unwrap_or_default();
    let name = name.as_ref().map(|name| format!(", for `{name}`")).unwrap_or_default();
    let replace = if *replace { ", replaces the present holder" } else { "" };
    let uses = if *uses == 1 { "1 use".to_owned() } else { format!("{uses} uses") };
    format!("role {role}{pool}{name}{replace}, {uses}, {ttl_secs} s")
}

/// Says in one line which jobs a selection means.
fn selected(selection: &JobSelection) -> String {
    let JobSelection { jobs, owner, states, older_than_secs, name, batch, limit } = selection;
    let mut parts = Vec::new();
    if !jobs.is_empty() {
        let named = jobs.iter().take(JOBS_NAMED_MAX).map(String::as_str).collect::<Vec<_>>();
        let more = match jobs.len().saturating_sub(JOBS_NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        parts.push(format!("job {}{more}", named.join(", ")));
    }
    parts.extend(owner.as_ref().map(|owner| format!("of `{owner}`")));
    if !states.is_empty() {
        let states: Vec<_> = states.iter().map(|state| state.name()).collect();
        parts.push(states.join(" or "));
    }
    parts.extend(older_than_secs.map(|secs| format!("older than {secs} s")));
    parts.extend(name.as_ref().map(|name| format!("named {name:?}")));
    parts.extend(batch.as_ref().map(|batch| format!("of the batch {batch:?}")));
    if parts.is_empty() {
        parts.push("all".to_owned());
    }
    parts.extend(limit.map(|limit| format!("the newest {limit}")));
    parts.join(", ")
}
