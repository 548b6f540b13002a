//! What is spent of each budget, and which are used up: data only. It follows from the accounts and
//! the leases.

use crate::state::accounts::Month;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::cost::{Budget, CostRules, Worth};

/// What is spent of each budget, kept beside the accounts because each lease and result asks for
/// it.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    /// Month of what is spent.
    pub(super) month: Month,
    /// What is spent of each budget of the rules, in their order.
    pub(super) spent: Vec<Worth>,
    /// What the leases that are held should cost, of each.
    pub(super) held: Vec<Worth>,
    /// Budgets of owners, by the number of the identity, as they were asked for.
    pub(super) of_owner: BTreeMap<u64, Vec<usize>>,
    /// Budgets that are spent.
    pub(super) reached: BTreeSet<usize>,
    /// Budgets that are spent once the leases that are held have ended.
    pub(super) full: BTreeSet<usize>,
    /// Owners whose jobs are not offered.
    pub(super) withheld: BTreeSet<u64>,
    /// Whether it may be others now.
    pub(super) changed: bool,
}

impl Budgets {
    /// Whether a budget is spent, and whether it is with what is held.
    pub(super) fn standing(&self, index: usize, budget: &Budget) -> (bool, bool) {
        let amount = Worth::of_amount(budget.amount);
        let of = |sums: &[Worth]| sums.get(index).copied().unwrap_or_default();
        let mut all = of(&self.spent);
        let reached = all >= amount;
        all.add(of(&self.held));
        (reached, all >= amount)
    }

    /// Notes that jobs of an owner are not offered, until its budgets are looked at.
    pub(super) fn note_withheld(&mut self, owner_id: u64) {
        self.withheld.insert(owner_id);
    }

    pub(super) fn look_at(&mut self, index: usize, budget: &Budget) {
        let (reached, full) = self.standing(index, budget);
        for (set, is_in) in [(&mut self.reached, reached), (&mut self.full, full)] {
            let was_in = if is_in { !set.insert(index) } else { set.remove(&index) };
            self.changed |= is_in != was_in;
        }
    }
}

/// Returns the places of the budgets that an owner spends of.
pub(super) fn budgets_of(rules: &CostRules, owner: &str, owner_id: u64) -> Vec<usize> {
    let budgets = rules.budgets.iter().enumerate();
    let own = budgets.filter(|(_, budget)| rules.includes(&budget.whose, owner, owner_id));
    own.map(|(index, _)| index).collect()
}
