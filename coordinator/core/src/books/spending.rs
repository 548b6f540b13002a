//! Device time is spent here, and here it is known which budgets are used up. The jobs of those who
//! have used one up are not offered; what runs goes on.

use super::Books;
use super::budgets::{Budgets, budgets_of};
use crate::journal::{Record, Spending};
use crate::state::accounts::Month;
use crate::state::job::Job;
use crate::timers::Timer;
use std::collections::BTreeSet;
use tessera_protocol::cost::{AtLimit, Budget, CostRules, Worth};
use tessera_protocol::ids::{JobId, NodeId};

/// Most bytes of a device's product name that are kept.
const DEVICE_NAME_MAX: usize = 96;
/// Name of a device of which nothing is known.
const UNKNOWN: &str = "unknown device";

impl Books {
    /// Counts device time of a job: at the price of now, of a device of a node.
    pub(super) fn spend(
        &mut self,
        id: JobId,
        (node, device): (NodeId, u8),
        micros: u64,
        lost: bool,
    ) {
        let known = self.roster.get(node);
        let name = known.and_then(|node| node.devices().get(usize::from(device)));
        let name = name.map_or(UNKNOWN, |device| device.name.as_str());
        let name = crate::text::cut(name, DEVICE_NAME_MAX);
        let of = known.map_or((None, ""), |node| (node.pool(), node.name()));
        let an_hour = self.farm.accounts().rules().price_of(&name, of, self.now.secs());
        let lost_micros = if lost { micros } else { 0 };
        let spending = Spending { device: name, an_hour, micros, lost_micros };
        self.farm.record_spent(id, self.now, spending);
        if !self.budgets.spent.is_empty() && an_hour.0 > 0 {
            self.note_spent(id, Worth::of(micros, an_hour));
        }
    }

    /// Returns what a lease of a node should cost that should take so many microseconds.
    pub(super) fn expected_cost(&self, id: NodeId, micros: u64) -> Worth {
        if self.budgets.spent.is_empty() {
            return Worth(0);
        }
        let Some(node) = self.roster.get(id) else { return Worth(0) };
        let device = node.devices().first().map_or(UNKNOWN, |device| device.name.as_str());
        let rules = self.farm.accounts().rules();
        Worth::of(micros, rules.price_of(device, (node.pool(), node.name()), self.now.secs()))
    }

    /// Holds back what a lease should cost. No unit more is leased of a budget that would be spent.
    pub(super) fn reserve(&mut self, job: JobId, expected: Worth) {
        if expected > Worth(0) {
            self.change_budgets(job, |budgets, index| budgets.held[index].add(expected));
            self.withhold_by_budgets();
        }
    }

    /// Frees what was held back for a lease.
    pub(super) fn unreserve(&mut self, job: JobId, expected: Worth) {
        if expected > Worth(0) {
            self.change_budgets(job, |budgets, index| budgets.held[index].take(expected));
        }
    }

    fn note_spent(&mut self, job: JobId, worth: Worth) {
        self.change_budgets(job, |budgets, index| budgets.spent[index].add(worth));
    }

    /// Changes what is counted of each budget that the owner of a job spends of.
    fn change_budgets(&mut self, id: JobId, change: impl Fn(&mut Budgets, usize)) {
        let Some(job) = self.farm.job(id) else { return };
        let (rules, budgets) = (self.farm.accounts().rules(), &mut self.budgets);
        let new = || budgets_of(rules, job.owner(), job.owner_id());
        let own = budgets.of_owner.entry(job.owner_id()).or_insert_with(new).clone();
        // The rules and what is counted have the same length.
        for (index, budget) in own.iter().filter_map(|at| Some((*at, rules.budgets.get(*at)?))) {
            if index < budgets.spent.len() {
                change(budgets, index);
                budgets.look_at(index, budget);
            }
        }
    }

    /// Adds up anew what is spent of each budget and held back: at a start, in a new month, under
    /// new rules.
    pub(crate) fn recount_budgets(&mut self) {
        let (accounts, now) = (self.farm.accounts(), self.now);
        let rules = accounts.rules();
        let all = rules.budgets.iter();
        self.budgets.spent =
            all.map(|budget| accounts.spent_by(&budget.whose, budget.period, now)).collect();
        self.budgets.held = self.held_of_budgets();
        self.budgets.month = Month::of(now);
        self.budgets.of_owner.clear();
        let count = rules.budgets.len();
        self.budgets.reached.retain(|index| *index < count);
        self.budgets.full.retain(|index| *index < count);
        for (index, budget) in rules.budgets.iter().enumerate() {
            self.budgets.look_at(index, budget);
        }
        self.budgets.changed = true;
    }

    /// Adds up what the leases that are held should cost, of each budget.
    fn held_of_budgets(&self) -> Vec<Worth> {
        let rules = self.farm.accounts().rules();
        let mut held = vec![Worth(0); rules.budgets.len()];
        let leases = self.leases.iter().filter(|(_, lease)| lease.expected > Worth(0));
        for (of, lease) in leases {
            let Some(job) = self.farm.job(of.unit.job) else { continue };
            for index in budgets_of(rules, job.owner(), job.owner_id()) {
                held[index].add(lease.expected);
            }
        }
        held
    }

    /// Withdraws the jobs of those who may not spend more, and offers those of others again. Called
    /// before and after units are handed out.
    pub(crate) fn settle_budgets(&mut self) {
        if !self.budgets.spent.is_empty() && self.budgets.month < Month::of(self.now) {
            self.recount_budgets();
        }
        if std::mem::take(&mut self.budgets.changed) {
            self.withhold_by_budgets();
            for job in self.open_jobs_where(|withheld, was| was && !withheld) {
                self.offer_job(job);
            }
            self.budgets.withheld = self.owners_withheld();
            if !self.budgets.withheld.is_empty() {
                self.set_timer(self.budgets.month.next().begins(), Timer::Month);
            }
        }
    }

    /// Withdraws the jobs of those who may not spend more.
    fn withhold_by_budgets(&mut self) {
        if self.budgets.full.is_empty() {
            return;
        }
        // Some of an owner's jobs may be withdrawn already.
        for job in self.open_jobs_where(|withheld, _| withheld) {
            self.withdraw_job(job);
        }
        let owners = self.owners_withheld();
        self.budgets.withheld.extend(owners);
    }

    /// Returns the open jobs by whether they are withheld, and whether those of their owners were.
    fn open_jobs_where(&self, which: impl Fn(bool, bool) -> bool) -> Vec<JobId> {
        let open = self.queues.keys().filter_map(|id| self.farm.job(*id));
        let those = open.filter(|job| {
            let was = self.budgets.withheld.contains(&job.owner_id());
            which(self.is_withheld(job), was)
        });
        those.map(Job::id).collect()
    }

    fn owners_withheld(&self) -> BTreeSet<u64> {
        let open = self.queues.keys().filter_map(|id| self.farm.job(*id));
        open.filter(|job| self.is_withheld(job)).map(Job::owner_id).collect()
    }

    /// Returns the budget that holds a job back because it is used up; None if there is none.
    pub(crate) fn withheld_by(&self, job: &Job) -> Option<&Budget> {
        self.used_up_of(&self.budgets.full, (job.owner(), job.owner_id()), AtLimit::Pause)
    }

    /// Whether a job is not offered because a budget is used up.
    pub(crate) fn is_withheld(&self, job: &Job) -> bool {
        !self.budgets.full.is_empty() && self.withheld_by(job).is_some()
    }

    /// Whether a job gets no work because it is paused, begins later, or a budget is used up.
    pub(crate) fn is_held_back(&self, job: &Job) -> bool {
        job.paused().is_some() || self.begins_later(job).is_some() || self.is_withheld(job)
    }

    /// Returns a budget of an owner, by name and number of the identity, that is used up and does
    /// at least this; None if there is none.
    pub(crate) fn used_up(&self, owner: (&str, u64), does: AtLimit) -> Option<&Budget> {
        self.used_up_of(&self.budgets.reached, owner, does)
    }

    fn used_up_of(
        &self,
        which: &BTreeSet<usize>,
        (owner, owner_id): (&str, u64),
        does: AtLimit,
    ) -> Option<&Budget> {
        let rules = self.farm.accounts().rules();
        let mut budgets = which.iter().filter_map(|index| rules.budgets.get(*index));
        budgets.find(|budget| {
            budget.at_limit >= does && rules.includes(&budget.whose, owner, owner_id)
        })
    }

    /// Sets the rules for what is spent from now on.
    pub(crate) fn set_cost_rules(&mut self, rules: Box<CostRules>, by: &str) {
        self.count_storage();
        self.record(Record::CostRulesSet { rules, by: by.to_owned(), at: self.now });
        self.plan_storage();
        self.recount_budgets();
    }

    /// Checks what is counted of each budget against the accounts.
    pub(crate) fn check_budgets(&self) -> Result<(), String> {
        if self.is_following {
            return Ok(());
        }
        let accounts = self.farm.accounts();
        let held = self.held_of_budgets();
        if held != self.budgets.held {
            return Err(format!("leases should cost {held:?}, {:?} are counted", self.budgets));
        }
        for (index, budget) in accounts.rules().budgets.iter().enumerate() {
            let spent = accounts.spent_by(&budget.whose, budget.period, self.now);
            if self.budgets.spent.get(index) != Some(&spent) {
                return Err(format!(
                    "budget {index} has {spent:?}, {:?} are counted",
                    self.budgets
                ));
            }
            let known = (self.budgets.reached.contains(&index), self.budgets.full.contains(&index));
            if self.budgets.standing(index, budget) != known {
                return Err(format!("budget {index} is otherwise: {:?}", self.budgets));
            }
        }
        Ok(())
    }
}
