//! What was spent, by whom, and how far budgets are used. Decides nothing.

use crate::books::Books;
use crate::state::accounts::{Account, Month};
use crate::state::job::Job;
use crate::time::Moment;
use tessera_protocol::client::RequestError;
use tessera_protocol::cost::{BudgetStatus, CostReport, OwnerCost, Worth};
use tessera_protocol::limits::ROWS_MAX;

/// Returns what owners have spent in a month such as `2026-11`, or in that of now; and how far
/// budgets are used now.
pub(crate) fn report(
    books: &Books,
    month: Option<&str>,
    now: Moment,
) -> Result<CostReport, RequestError> {
    let month = match month {
        None => Month::of(now),
        Some(text) => Month::parse(text).ok_or_else(|| {
            RequestError::Invalid(format!("`{text}` is not a month, such as `2026-11`"))
        })?,
    };
    let accounts = books.farm().accounts();
    let rules = accounts.rules();
    let row = |(id, account): (&u64, &Account)| {
        let spent = account.months.get(&month)?;
        Some(OwnerCost {
            owner: account.name.clone(),
            owner_id: *id,
            group: rules.group_of(&account.name, *id).map(str::to_owned),
            month: month.to_string(),
            spent: spent.lines(),
            stored: spent.stored().line(),
        })
    };
    let mut owners: Vec<OwnerCost> = accounts.owners().iter().filter_map(row).collect();
    owners.sort_by(|one, other| (&one.owner, one.owner_id).cmp(&(&other.owner, other.owner_id)));
    owners.truncate(ROWS_MAX);
    let budgets = rules.budgets.iter().map(|budget| {
        let spent = accounts.spent_by(&budget.whose, budget.period, now);
        let limit = Worth::of_amount(budget.amount);
        let warns_at = Worth(limit.0 / 100 * u128::from(budget.warn_percent));
        BudgetStatus {
            whose: budget.whose.clone(),
            period: budget.period,
            amount: budget.amount,
            spent: spent.amount(),
            warns: spent >= warns_at && spent > Worth(0),
            reached: (spent >= limit).then_some(budget.at_limit),
        }
    });
    let (currency, gb_month) = (rules.currency.clone(), rules.storage_price());
    Ok(CostReport { currency, owners, budgets: budgets.collect(), gb_month })
}

/// Returns the expected device time of what is left to do of a job, in milliseconds, by what its
/// results took so far; None before the first result, and once it has ended.
pub(crate) fn left_millis(books: &Books, job: &Job) -> Option<u64> {
    let cost = books.queue(job.id())?.estimates().cost();
    cost.is_known().then(|| {
        let counts = job.counts();
        cost.rest(counts.samples_open, counts.units_open) / 1000
    })
}
