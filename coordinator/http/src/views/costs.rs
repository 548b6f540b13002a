//! What was spent, in JSON.

use serde::Serialize;
use tessera_protocol::cost;
use utoipa::ToSchema;

/// Time of devices of one product name, and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Spent {
    /// Product name of the devices.
    device: String,
    /// Device time in milliseconds, with what was lost.
    millis: u64,
    /// Device time in milliseconds of which no result was taken.
    lost_millis: u64,
    /// What the time costs, by the prices of when it was spent.
    cost: f64,
}

impl From<&cost::Spent> for Spent {
    fn from(spent: &cost::Spent) -> Self {
        let cost::Spent { device, millis, lost_millis, cost } = spent;
        let cost = cost.decimal();
        Self { device: device.clone(), millis: *millis, lost_millis: *lost_millis, cost }
    }
}

/// Space of finished frames over time, and what it costs; counted where space has a price.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Stored {
    /// Bytes × hours.
    byte_hours: u64,
    /// What the space costs, by the prices of when it was used.
    cost: f64,
}

impl From<&cost::Stored> for Stored {
    fn from(stored: &cost::Stored) -> Self {
        Self { byte_hours: stored.byte_hours, cost: stored.cost.decimal() }
    }
}

/// What the jobs of one owner have cost in a month.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct OwnerCost {
    /// Name of the owner.
    owner: String,
    /// Number of the identity.
    owner_id: u64,
    /// Group of the owner now; null if it is in none.
    group: Option<String>,
    /// Month in UTC.
    month: String,
    /// Device time by product name.
    spent: Vec<Spent>,
    /// Space of finished frames.
    stored: Stored,
}

/// How far a budget is spent.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct BudgetStatus {
    /// Who spends it: `farm`, or an object with `group` or `owner`.
    #[schema(value_type = Object)]
    whose: cost::Whose,
    /// `month` or `total`.
    #[schema(value_type = String)]
    period: cost::Period,
    /// Amount that may be spent.
    amount: f64,
    /// Amount that is spent so far.
    spent: f64,
    /// Whether the part is spent from which on it is said.
    warns: bool,
    /// What has happened because it is spent: `warn`, `refuse` or `pause`; null if it is not spent.
    #[schema(value_type = Option<String>)]
    reached: Option<cost::AtLimit>,
}

/// What everybody has spent.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CostReport {
    /// Name of the currency; empty where nothing has a price.
    currency: String,
    /// Owners, by name.
    owners: Vec<OwnerCost>,
    /// Budgets, in the order of the rules.
    budgets: Vec<BudgetStatus>,
    /// What a gigabyte of finished frames costs for 30 days from now on, with the factor.
    gb_month: f64,
}

impl From<cost::CostReport> for CostReport {
    fn from(report: cost::CostReport) -> Self {
        let owners = report.owners.into_iter().map(|row| OwnerCost {
            owner: row.owner,
            owner_id: row.owner_id,
            group: row.group,
            month: row.month,
            spent: row.spent.iter().map(Spent::from).collect(),
            stored: Stored::from(&row.stored),
        });
        let budgets = report.budgets.into_iter().map(|budget| BudgetStatus {
            whose: budget.whose,
            period: budget.period,
            amount: budget.amount.decimal(),
            spent: budget.spent.decimal(),
            warns: budget.warns,
            reached: budget.reached,
        });
        Self {
            currency: report.currency,
            owners: owners.collect(),
            budgets: budgets.collect(),
            gb_month: report.gb_month.decimal(),
        }
    }
}
