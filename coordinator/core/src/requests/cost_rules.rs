//! What device time costs and what may be spent: set by admins, and asked of each new job.

use crate::books::Books;
use crate::input::RequestId;
use crate::report::reason::wait::budget_used;
use crate::state::job::Job;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::cost::{AtLimit, CostRules};

/// Sets the rules, and replies.
pub(crate) fn on_set(books: &mut Books, request: RequestId, rules: Box<CostRules>, by: &str) {
    let answer = match rules.check() {
        Ok(()) => {
            if *rules != *books.farm().accounts().rules() {
                books.set_cost_rules(rules, by);
            }
            Ok(Response::Done)
        }
        Err(problem) => Err(RequestError::Invalid(format!("the rules of cost: {problem}"))),
    };
    books.reply(request, answer);
}

/// Checks that the owner of a new job may spend anything for it.
pub(crate) fn check_budget(books: &Books, job: &Job) -> Result<(), RequestError> {
    match books.used_up((job.owner(), job.owner_id()), AtLimit::Refuse) {
        None => Ok(()),
        Some(budget) => {
            let currency = &books.farm().accounts().rules().currency;
            let text = budget_used(budget, currency);
            Err(RequestError::Unavailable(text.note()))
        }
    }
}
