//! Lines of the ledger, as commands and programs see them.

use super::amount::Amount;
use super::rules::{AtLimit, Period, Whose};
use serde::{Deserialize, Serialize};

/// Time of devices of one product name, and what it costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Product name of the devices.
    pub device: String,
    /// Device time in milliseconds, with what was lost.
    pub millis: u64,
    /// Device time in milliseconds of which no result was taken: of attempts that failed, of
    /// copies that came second, of units that were stopped.
    pub lost_millis: u64,
    /// What the time costs, by the prices of when it was spent.
    pub cost: Amount,
}

/// Space of finished frames over time, and what it costs. Counted where space has a price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Bytes × hours.
    pub byte_hours: u64,
    /// What the space costs, by the prices of when it was used.
    pub cost: Amount,
}

/// What the jobs of one owner have cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerCost {
    /// Name of the owner.
    pub owner: String,
    /// Number of the identity.
    pub owner_id: u64,
    /// Group of the owner now; None if it is in none.
    pub group: Option<String>,
    /// Month in UTC, such as `2026-11`.
    pub month: String,
    /// Device time by product name.
    pub spent: Vec<Spent>,
    /// Space of finished frames.
    pub stored: Stored,
}

/// How far a budget is spent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStatus {
    /// Who spends it.
    pub whose: Whose,
    /// Time in which it may be spent.
    pub period: Period,
    /// Amount that may be spent.
    pub amount: Amount,
    /// Amount that is spent so far.
    pub spent: Amount,
    /// Whether the part is spent from which on it is said.
    pub warns: bool,
    /// What has happened because it is spent; None if it is not spent.
    pub reached: Option<AtLimit>,
}

/// What everybody has spent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostReport {
    /// Name of the currency; empty where nothing has a price.
    pub currency: String,
    /// Owners by name, and their months from the newest on.
    pub owners: Vec<OwnerCost>,
    /// Budgets in the order of the rules.
    pub budgets: Vec<BudgetStatus>,
    /// What a gigabyte of finished frames costs for 30 days from now on, with the factor.
    pub gb_month: Amount,
}
