//! What was spent, and how far budgets are used.

use super::layout;
use super::visitor::{Failed, Visitor};
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::Asked;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::cost::{
    Amount, AtLimit, BudgetStatus, CostReport, OwnerCost, Period, Spent, Stored, Whose,
    device_time, money, space_time,
};

/// Which month is shown.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    /// Month in UTC, such as `2026-11`; empty for this month.
    #[serde(default)]
    month: String,
}

/// `/costs`.
pub(super) async fn page(
    State(server): State<Shared>,
    visitor: Visitor,
    Asked(Wanted { month }): Asked<Wanted>,
) -> Result<Markup, Failed> {
    let asked = (!month.is_empty()).then_some(month.clone());
    let report = report(&server, &visitor.0, asked).await.map_err(visitor.fails())?;
    let body = html! {
        div.title { h1 { "Costs" } }
        form.inline method="get" action="/costs" {
            label { "Month, in UTC (empty: this one) "
                input name="month" value=(month) placeholder="2026-11" size="8"
                    pattern="[0-9]{4}-[0-9]{2}"; }
            button { "Show" }
        }
        (owners(&report))
        @if !report.budgets.is_empty() { (budgets(&report)) }
    };
    Ok(layout::page(Some(&visitor.0), "Costs", &body))
}

async fn report(
    server: &Shared,
    signed: &Signed,
    month: Option<String>,
) -> Result<CostReport, Problem> {
    match ask(server, signed.caller(), Request::Costs { month }).await? {
        Response::Costs(report) => Ok(*report),
        _ => Err(stopping()),
    }
}

fn owners(report: &CostReport) -> Markup {
    html! {
        @if report.owners.is_empty() {
            p.empty { "Nothing was spent in that month." }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Owners" {
                table {
                    thead { tr {
                        th scope="col" { "Owner" } th scope="col" { "Group" }
                        th scope="col" { "Devices" } th.number scope="col" { "Time" }
                        th.number scope="col" { "Lost" } th.number scope="col" { "Cost" }
                    } }
                    tbody #owners {
                        @for row in &report.owners {
                            @for spent in &row.spent { (line(row, spent, &report.currency)) }
                            @if row.stored != Stored::default() {
                                (stored_line(row, &report.currency))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn line(row: &OwnerCost, spent: &Spent, currency: &str) -> Markup {
    html! {
        tr data-owner=(row.owner_id) {
            th scope="row" { bdi { (row.owner) } " #" (row.owner_id) }
            td { bdi { (row.group.as_deref().unwrap_or("–")) } }
            td { bdi { (spent.device) } }
            td.number { (device_time(spent.millis)) }
            td.number { (device_time(spent.lost_millis)) }
            td.number data-field="cost" { (price(spent.cost, currency)) }
        }
    }
}

/// Space of finished frames.
fn stored_line(row: &OwnerCost, currency: &str) -> Markup {
    html! {
        tr data-owner=(row.owner_id) {
            th scope="row" { bdi { (row.owner) } " #" (row.owner_id) }
            td { bdi { (row.group.as_deref().unwrap_or("–")) } }
            td { "storage" }
            td.number { (space_time(row.stored.byte_hours)) }
            td.number { "–" }
            td.number data-field="cost" { (price(row.stored.cost, currency)) }
        }
    }
}

fn budgets(report: &CostReport) -> Markup {
    html! {
        h2 { "Budgets" }
        div.wide tabindex="0" role="region" aria-label="Budgets" {
            table {
                thead { tr {
                    th scope="col" { "Of" } th scope="col" { "For" }
                    th.number scope="col" { "Spent" } th.number scope="col" { "Of" }
                    th scope="col" { "State" }
                } }
                tbody #budgets {
                    @for budget in &report.budgets { (budget_row(budget, &report.currency)) }
                }
            }
        }
    }
}

fn budget_row(budget: &BudgetStatus, currency: &str) -> Markup {
    let period = match budget.period {
        Period::Month => "this month",
        Period::Total => "all time",
    };
    let state = match (budget.reached, budget.warns) {
        (Some(AtLimit::Warn), _) => "used up",
        (Some(AtLimit::Refuse), _) => "used up: new jobs are refused",
        (Some(AtLimit::Pause), _) => "used up: no unit begins",
        (None, true) => "nearly used up",
        (None, false) => "–",
    };
    html! {
        tr {
            th scope="row" { bdi { (whose(&budget.whose)) } }
            td { (period) }
            td.number { (price(budget.spent, currency)) }
            td.number { (price(budget.amount, currency)) }
            td { (state) }
        }
    }
}

fn whose(whose: &Whose) -> String {
    match whose {
        Whose::Farm => "the farm".to_owned(),
        Whose::Group(name) => format!("group {name}"),
        Whose::Owner(name) => name.clone(),
    }
}

/// An amount with its currency; a dash where nothing has a price.
pub(super) fn price(amount: Amount, currency: &str) -> String {
    money(amount, currency).unwrap_or_else(|| "–".to_owned())
}
