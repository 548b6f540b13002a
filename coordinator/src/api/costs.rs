//! What was spent, by whom, and the rules of it. What a caller may see depends on its role.

use super::caller::Caller;
use super::context::Context;
use crate::driver::{Ask, Question};
use tessera_protocol::client::{Request, RequestError, Response, Role};
use tessera_protocol::cost::{CostReport, CostRules};

/// Most bytes of a month's name.
const MONTH_BYTES_MAX: usize = 16;

/// Answers a request about costs.
pub(super) async fn answer(
    context: &Context,
    caller: &Caller,
    request: Request,
) -> Result<Response, RequestError> {
    match request {
        Request::Costs { month } => costs(context, caller, month).await,
        Request::SetCostRules(rules) => set_rules(context, caller, rules).await,
        _ => context.question(Question::CostRules).await,
    }
}

/// Returns what was spent: to operators by all owners, to others by themselves, with the budgets
/// that they spend of.
async fn costs(
    context: &Context,
    caller: &Caller,
    month: Option<String>,
) -> Result<Response, RequestError> {
    if month.as_ref().is_some_and(|month| month.len() > MONTH_BYTES_MAX) {
        return Err(RequestError::Invalid("a month is written as `2026-11`".to_owned()));
    }
    let answer = context.question(Question::Costs { month }).await?;
    let Response::Costs(report) = answer else { return Ok(answer) };
    if caller.role().covers(Role::Operator) {
        return Ok(Response::Costs(report));
    }
    let CostReport { currency, mut owners, mut budgets, gb_month } = *report;
    owners.retain(|row| row.owner_id == caller.identity().number);
    let Response::CostRules(rules) = context.question(Question::CostRules).await? else {
        return Err(RequestError::Unavailable("the rules of cost are not known".to_owned()));
    };
    budgets.retain(|budget| rules.includes(&budget.whose, caller.name(), caller.identity().number));
    Ok(Response::Costs(Box::new(CostReport { currency, owners, budgets, gb_month })))
}

/// Sets the rules.
async fn set_rules(
    context: &Context,
    caller: &Caller,
    rules: Box<CostRules>,
) -> Result<Response, RequestError> {
    let invalid = |problem| RequestError::Invalid(format!("the rules of cost: {problem}"));
    rules.check().map_err(invalid)?;
    context.durably(Ask::SetCostRules { rules, by: caller.name().to_owned() }).await
}
