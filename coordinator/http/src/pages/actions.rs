//! What forms of the pages do. Each leads back to the page that it came from.

use super::access;
use super::layout;
use super::visitor::{Failed, Visitor};
use crate::api::jobs;
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::{FromRequest, Path, Request as HttpRequest, State};
use axum::response::Redirect;
use http_body_util::{BodyExt, Limited};
use maud::Markup;
use std::time::Duration;
use tessera_protocol::access::{ApiTokenScope, TokenScope};
use tessera_protocol::client::{Request, Response, Role};
use tessera_protocol::job::JobEdit;
use tessera_protocol::selection::{JobChange, JobSelection, JobsChange};
use tessera_protocol::utc::Civil;

/// Longest form: a thousand jobs that are ticked.
const FORM_BYTES_MAX: usize = 256 << 10;
/// Longest time for a form.
const FORM_WITHIN: Duration = Duration::from_secs(30);

/// The fields of a form, in order.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let named: Vec<&str> =
            self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect();
        named.into_iter()
    }

    fn one(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default().trim()
    }

    fn given(&self, name: &str) -> Option<String> {
        Some(self.one(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A date and time in UTC, as seconds since the Unix epoch.
    fn moment(&self, name: &str) -> Result<Option<u64>, Problem> {
        let wrong =
            || Problem::form(format!("{name} is no date and time such as 2026-12-01T20:00"));
        let moment = self.given(name).map(|text| Civil::parse(&text).ok_or_else(wrong));
        moment.map(|civil| civil.map(Civil::utc_secs)).transpose()
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, Problem> {
        self.one(name).parse().map_err(|_| Problem::form(format!("{name} is not a number")))
    }
}

impl<S: Sync> FromRequest<S> for Fields {
    type Rejection = Problem;

    async fn from_request(request: HttpRequest, _: &S) -> Result<Self, Problem> {
        let body = Limited::new(request.into_body(), FORM_BYTES_MAX).collect();
        let read = tokio::time::timeout(FORM_WITHIN, body).await;
        let bytes = read.ok().and_then(Result::ok).map(|body| body.to_bytes());
        let bytes = bytes.ok_or_else(|| Problem::form("the form is too long, or was cut"))?;
        serde_urlencoded::from_bytes(&bytes)
            .map(Self)
            .map_err(|_| Problem::form("the body is not a form"))
    }
}

type Led = Result<Redirect, Failed>;

async fn done(server: &Shared, signed: &Signed, request: Request) -> Result<Response, Problem> {
    ask(server, signed.caller(), request).await
}

/// Leads back to a page of ours.
fn back(to: &str) -> Redirect {
    // Another server's address begins with two slashes, or with a scheme.
    let ours = to.starts_with('/') && !to.starts_with("//") && !to.contains('\\');
    Redirect::to(if ours { to } else { "/jobs" })
}

/// Changes the ticked jobs.
pub(super) async fn change_jobs(
    State(server): State<Shared>,
    visitor: Visitor,
    fields: Fields,
) -> Led {
    let changed = change(&server, &visitor.0, &fields).await;
    changed.map_err(visitor.fails())
}

async fn change(server: &Shared, signed: &Signed, fields: &Fields) -> Result<Redirect, Problem> {
    let change = match fields.one("change") {
        "cancel" => JobChange::Cancel { reason: String::new() },
        "pause" => JobChange::Pause,
        "resume" => JobChange::Resume,
        "retry" => JobChange::Retry,
        "forget" => JobChange::Forget,
        other => return Err(Problem::form(format!("there is no change {other:?}"))),
    };
    let jobs: Vec<String> = fields.all("job").map(str::to_owned).collect();
    if jobs.is_empty() {
        return Err(Problem::form("no job is ticked"));
    }
    let forgets = change == JobChange::Forget;
    let selection = JobSelection { jobs, ..JobSelection::default() };
    let wanted = JobsChange { change, selection, all: false, dry_run: false };
    let Response::Changed(changed) =
        done(server, signed, Request::ChangeJobs(Box::new(wanted))).await?
    else {
        return Err(stopping());
    };
    if let Some(refusal) = changed.refusals.first() {
        let count = changed.refused;
        let more = if count > 1 { format!(" ({count} jobs were refused)") } else { String::new() };
        let text = format!("{}: {}{more}", refusal.what, refusal.why);
        return Err(Problem::new(axum::http::StatusCode::CONFLICT, text));
    }
    // The page of a job that is gone is gone.
    Ok(back(if forgets { "/jobs" } else { fields.one("back") }))
}

/// Sets when and where a job is worked on.
pub(super) async fn set_job(
    State(server): State<Shared>,
    visitor: Visitor,
    Path(job): Path<String>,
    fields: Fields,
) -> Led {
    set(&server, &visitor.0, &job, &fields).await.map_err(visitor.fails())
}

async fn set(
    server: &Shared,
    signed: &Signed,
    job: &str,
    fields: &Fields,
) -> Result<Redirect, Problem> {
    let nodes = match fields.one("max_nodes") {
        "" => None,
        _ => Some(fields.number("max_nodes")?),
    };
    let edit = JobEdit {
        name: None,
        priority: Some(fields.number("priority")?),
        pool: Some(fields.given("pool")),
        max_nodes: Some(nodes),
        not_before: Some(fields.moment("not_before")?),
    };
    let request = Request::EditJob { job: jobs::id(job)?, edit: Box::new(edit) };
    done(server, signed, request).await?;
    Ok(back(&format!("/jobs/{job}")))
}

/// Drains, undrains or removes a node.
pub(super) async fn change_node(
    State(server): State<Shared>,
    visitor: Visitor,
    Path(node): Path<String>,
    fields: Fields,
) -> Led {
    let drain = |drain, leave| Request::Drain { node: node.clone(), drain, leave };
    let (request, to) = match fields.one("change") {
        "drain" => (drain(true, false), format!("/nodes/{node}")),
        "leave" => (drain(true, true), format!("/nodes/{node}")),
        "undrain" => (drain(false, false), format!("/nodes/{node}")),
        "remove" => (Request::RemoveNode { node: node.clone() }, "/nodes".to_owned()),
        other => {
            let problem = Problem::form(format!("there is no change {other:?}"));
            return Err(visitor.fails()(problem));
        }
    };
    done(&server, &visitor.0, request).await.map_err(visitor.fails())?;
    Ok(back(&to))
}

/// Makes a token, and shows it once.
pub(super) async fn create_token(
    State(server): State<Shared>,
    visitor: Visitor,
    fields: Fields,
) -> Result<Markup, Failed> {
    let token = token(&server, &visitor.0, &fields).await.map_err(visitor.fails())?;
    let body = access::all(&server, &visitor.0, Some(&token)).await.map_err(visitor.fails())?;
    Ok(layout::page(Some(&visitor.0), "Access", &body))
}

async fn token(server: &Shared, signed: &Signed, fields: &Fields) -> Result<String, Problem> {
    let role: Role =
        fields.one("role").parse().map_err(|error| Problem::form(format!("{error}")))?;
    let ttl_secs = fields.number("ttl_secs")?;
    let request = match fields.one("kind") {
        "api" => Request::CreateApiToken(ApiTokenScope { role: Some(role), owner: None, ttl_secs }),
        _ => Request::CreateToken(TokenScope {
            role,
            pool: fields.given("pool"),
            name: fields.given("name"),
            ttl_secs,
            uses: fields.number("uses")?,
            replace: false,
        }),
    };
    match done(server, signed, request).await? {
        Response::Token(token) => Ok(token),
        _ => Err(stopping()),
    }
}

/// Revokes a token.
pub(super) async fn revoke_token(
    State(server): State<Shared>,
    visitor: Visitor,
    fields: Fields,
) -> Led {
    let request = Request::RevokeToken { id: fields.one("id").to_owned() };
    done(&server, &visitor.0, request).await.map_err(visitor.fails())?;
    Ok(back("/access"))
}

/// Denies an identity, or allows it again.
pub(super) async fn deny(State(server): State<Shared>, visitor: Visitor, fields: Fields) -> Led {
    let identity = fields.one("identity").to_owned();
    let request = match fields.one("change") {
        "allow" => Request::Allow { identity },
        _ => Request::Deny { identity, reason: fields.one("reason").to_owned() },
    };
    done(&server, &visitor.0, request).await.map_err(visitor.fails())?;
    Ok(back("/access"))
}

/// Takes a name away from its holder.
pub(super) async fn remove_member(
    State(server): State<Shared>,
    visitor: Visitor,
    fields: Fields,
) -> Led {
    let request = Request::RemoveMember { member: fields.one("member").to_owned() };
    done(&server, &visitor.0, request).await.map_err(visitor.fails())?;
    Ok(back("/access"))
}
