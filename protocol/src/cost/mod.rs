//! What device time costs, what may be spent, and what was spent: rules of an admin, and lines of a
//! ledger.

mod amount;
mod report;
mod rules;
mod words;

pub use amount::{Amount, Worth};
pub use report::{BudgetStatus, CostReport, OwnerCost, Spent, Stored};
pub use rules::{
    AtLimit, BUDGETS_MAX, Budget, CostRules, GROUPS_MAX, Hours, MEMBERS_MAX, PRICES_MAX, Period,
    Price, Whose,
};
pub use words::{device_time, money, space_time};
