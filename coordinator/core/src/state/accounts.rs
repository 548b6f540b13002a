//! What was spent for the jobs of each owner, month by month, also of jobs that are forgotten; and
//! the rules by which it is spent. Changed only by records.

use crate::journal::Spending;
use crate::owner::Owner;
use crate::state::spent::{Spent, Stored};
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::cost::{Amount, CostRules, Period, Whose, Worth};
use tessera_protocol::utc;

/// Months that are told apart; what was spent before is one sum.
const MONTHS_MAX: usize = 36;

/// A month in UTC: 12 × the year + the month, counted from 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub(crate) struct Month(pub(crate) u32);

impl Month {
    /// Returns the month of a moment.
    pub(crate) fn of(at: Moment) -> Self {
        let (year, month, _) = utc::date(at.secs());
        Self((year * 12 + month - 1).min(u64::from(u32::MAX)) as u32)
    }

    /// Returns the month after it.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns its first moment.
    pub(crate) fn begins(self) -> Moment {
        Moment(utc::secs_of((self.0 / 12).into(), (self.0 % 12 + 1).into(), 1) * 1000)
    }

    /// Reads a month such as `2026-11`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
        ((1..=12).contains(&month) && year <= 9999).then_some(Self(year * 12 + month - 1))
    }
}

impl std::fmt::Display for Month {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}", self.0 / 12, self.0 % 12 + 1)
    }
}

/// What was spent for the jobs of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    /// Newest name of the owner.
    pub(crate) name: String,
    /// The newest months.
    pub(crate) months: BTreeMap<Month, Spent>,
    /// All months before.
    pub(crate) before: Spent,
    /// What was spent for jobs that are forgotten; part of the months.
    pub(crate) forgotten: Spent,
}

impl Account {
    fn total(&self) -> Spent {
        let mut total = self.before.clone();
        self.months.values().for_each(|month| total.add_all(month));
        total
    }
}

/// What was spent for the jobs of each owner, and the rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Accounts {
    rules: CostRules,
    /// When the space of finished frames was counted last, or got its price; None without one.
    storage_since: Option<Moment>,
    /// By the number of the owner's identity.
    owners: BTreeMap<u64, Account>,
}

impl Accounts {
    pub(crate) fn rules(&self) -> &CostRules {
        &self.rules
    }

    /// Sets the rules for what is spent from now on.
    pub(in crate::state) fn set_rules(&mut self, rules: CostRules, at: Moment) {
        self.storage_since = (rules.storage_price() > Amount(0)).then_some(at);
        self.rules = rules;
    }

    /// Takes the rules over from a snapshot.
    pub(in crate::state) fn restore_rules(&mut self, rules: CostRules, since: Option<Moment>) {
        (self.rules, self.storage_since) = (rules, since);
    }

    /// Returns when the space of finished frames was counted last; None if it has no price.
    pub(crate) fn storage_since(&self) -> Option<Moment> {
        self.storage_since
    }

    /// Notes that space is counted. Returns since when, and what a gigabyte costs for a month.
    pub(in crate::state) fn count_storage(
        &mut self,
        at: Moment,
    ) -> Result<(Moment, Amount), String> {
        match self.storage_since.replace(at) {
            Some(since) if since < at => Ok((since, self.rules.storage_price())),
            Some(since) => Err(format!("space is counted at {at:?}, after {since:?}")),
            None => Err("space is counted, and has no price".to_owned()),
        }
    }

    pub(crate) fn owners(&self) -> &BTreeMap<u64, Account> {
        &self.owners
    }

    /// Takes an account over from a snapshot.
    pub(in crate::state) fn restore(&mut self, owner: u64, account: Account) {
        self.owners.insert(owner, account);
    }

    /// Counts device time for an owner.
    pub(in crate::state) fn add(&mut self, owner: &Owner, at: Moment, spent: &[Spending]) {
        self.change(owner, at, |month| spent.iter().for_each(|spending| month.add(spending)));
    }

    /// Counts space for an owner.
    pub(in crate::state) fn store(&mut self, owner: &Owner, at: Moment, stored: &Stored) {
        self.change(owner, at, |month| month.store(stored));
    }

    /// Changes what an owner has spent in the month of a moment.
    fn change(&mut self, owner: &Owner, at: Moment, change: impl FnOnce(&mut Spent)) {
        let account = self.owners.entry(owner.id()).or_default();
        if account.name != owner.name() {
            account.name = owner.name().to_owned();
        }
        change(account.months.entry(Month::of(at)).or_default());
        while account.months.len() > MONTHS_MAX
            && let Some((_, oldest)) = account.months.pop_first()
        {
            account.before.add_all(&oldest);
        }
    }

    /// Notes that a job is forgotten for which this was spent.
    pub(in crate::state) fn forget(&mut self, owner: u64, spent: &Spent) {
        if let Some(account) = self.owners.get_mut(&owner).filter(|_| !spent.is_empty()) {
            account.forgotten.add_all(spent);
        }
    }

    /// Returns what was spent by those who spend together: in the month of a moment, or in all.
    pub(crate) fn spent_by(&self, whose: &Whose, period: Period, at: Moment) -> Worth {
        let month = Month::of(at);
        let mut sum = Worth::default();
        let own =
            |(id, account): &(&u64, &Account)| self.rules.includes(whose, &account.name, **id);
        for (_, account) in self.owners.iter().filter(own) {
            match period {
                Period::Month => {
                    sum.add(account.months.get(&month).map_or(Worth(0), |spent| spent.all().worth));
                }
                Period::Total => sum.add(account.total().all().worth),
            }
        }
        sum
    }

    /// Checks that what was spent for each owner is what was spent for the owner's jobs.
    pub(crate) fn check<'a>(
        &self,
        jobs: impl Iterator<Item = (u64, &'a Spent)>,
    ) -> Result<(), String> {
        let mut by_jobs: BTreeMap<u64, Spent> = BTreeMap::new();
        for (owner, spent) in jobs.filter(|(_, spent)| !spent.is_empty()) {
            by_jobs.entry(owner).or_default().add_all(spent);
        }
        for (id, account) in &self.owners {
            let mut jobs = by_jobs.remove(id).unwrap_or_default();
            jobs.add_all(&account.forgotten);
            let total = account.total();
            let (all, of_jobs) = (total.all(), jobs.all());
            if all != of_jobs || total.stored() != jobs.stored() {
                return Err(format!("owner {id} has spent {all:?}, and its jobs {of_jobs:?}"));
            }
        }
        match by_jobs.keys().next() {
            Some(owner) => Err(format!("jobs of owner {owner} have spent, and it has no account")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds of a day.
    const DAY: u64 = 86_400_000;

    fn spending(micros: u64) -> Vec<Spending> {
        let (device, an_hour) = ("a".to_owned(), Amount(3_600_000_000));
        vec![Spending { device, an_hour, micros, lost_micros: 0 }]
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let at = |days: u64| Month::of(Moment(days * DAY)).to_string();
        assert_eq!([at(0), at(31), at(58), at(59)], ["1970-01", "1970-02", "1970-02", "1970-03"]);
        assert_eq!(Month::parse("1970-02"), Some(Month::of(Moment(31 * DAY))));
        for wrong in ["1970", "1970-13", "1970-00", "x-01", "10000-01"] {
            assert_eq!(Month::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sums_of_months_groups_and_forgotten_jobs_agree() {
        let mut accounts = Accounts::default();
        let (ada, bob) = (Owner::new(1, "ada"), Owner::new(2, "bob"));
        let mut job = Spent::default();
        for month in 0..40 {
            accounts.add(&ada, Moment(month * 31 * DAY), &spending(10));
            spending(10).iter().for_each(|spending| job.add(spending));
        }
        accounts.add(&bob, Moment(0), &spending(7));
        let of = |accounts: &Accounts, whose: &Whose, period| {
            accounts.spent_by(whose, period, Moment(0)).0 / 3_600_000_000
        };
        assert_eq!(accounts.owners()[&1].months.len(), MONTHS_MAX);
        assert_eq!(of(&accounts, &Whose::Owner("ada".into()), Period::Total), 400);
        assert_eq!(of(&accounts, &Whose::Farm, Period::Total), 407);
        assert_eq!(of(&accounts, &Whose::Owner("bob".into()), Period::Month), 7);
        let groups = BTreeMap::from([("both".to_owned(), vec!["ada".into(), "#2".into()])]);
        accounts.set_rules(CostRules { groups, ..CostRules::default() }, Moment(0));
        assert_eq!(of(&accounts, &Whose::Group("both".into()), Period::Total), 407);

        let mut bobs = Spent::default();
        spending(7).iter().for_each(|spending| bobs.add(spending));
        assert_eq!(accounts.check([(1, &job), (2, &bobs)].into_iter()), Ok(()));
        assert!(accounts.check([(1, &job)].into_iter()).is_err());
        accounts.forget(2, &bobs);
        assert_eq!(accounts.check([(1, &job)].into_iter()), Ok(()));
        assert!(accounts.check([(1, &job), (3, &bobs)].into_iter()).is_err());
    }
}
