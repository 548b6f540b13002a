//! What was spent, and the rules of it.

use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::{Asked, Json};
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::CostReport;
use axum::extract::State;
use serde::Deserialize;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::cost::CostRules;
use utoipa::IntoParams;

/// Which month.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CostQuery {
    /// Month in UTC, such as `2026-11`; this month, if it is left out.
    month: Option<String>,
}

/// Show what was spent, and how far budgets are used
///
/// Operators see all owners, others themselves.
#[utoipa::path(get, path = "/costs", tag = "farm", params(CostQuery), responses(
    (status = 200, body = CostReport), (status = 400, body = Problem),
    (status = 401, body = Problem)))]
pub(crate) async fn costs(
    State(server): State<Shared>,
    signed: Signed,
    Asked(CostQuery { month }): Asked<CostQuery>,
) -> Result<axum::Json<CostReport>, Problem> {
    match ask(&server, signed.caller(), Request::Costs { month }).await? {
        Response::Costs(report) => Ok(axum::Json(CostReport::from(*report))),
        _ => Err(stopping()),
    }
}

/// Show what device time costs and what may be spent
#[utoipa::path(get, path = "/costs/rules", tag = "farm", responses(
    (status = 200, body = Object), (status = 401, body = Problem),
    (status = 403, body = Problem)))]
pub(crate) async fn rules(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<axum::Json<CostRules>, Problem> {
    match ask(&server, signed.caller(), Request::CostRules).await? {
        Response::CostRules(rules) => Ok(axum::Json(*rules)),
        _ => Err(stopping()),
    }
}

/// Set what device time costs and what may be spent
///
/// For what is spent from now on; the answer is what was set. The fields are those of the file of
/// `tessera cost rules`.
#[utoipa::path(put, path = "/costs/rules", tag = "farm", request_body = Object, responses(
    (status = 200, body = Object), (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn set_rules(
    State(server): State<Shared>,
    signed: Signed,
    Json(rules): Json<CostRules>,
) -> Result<axum::Json<CostRules>, Problem> {
    let request = Request::SetCostRules(Box::new(rules.clone()));
    match ask(&server, signed.caller(), request).await? {
        Response::Done => Ok(axum::Json(rules)),
        _ => Err(stopping()),
    }
}
