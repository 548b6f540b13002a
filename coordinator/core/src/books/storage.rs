//! The space of finished frames is counted here, where it has a price: now and then, and before the
//! price changes.

use super::Books;
use crate::journal::Record;
use crate::time::Moment;
use crate::timers::Timer;

impl Books {
    /// Counts the space of finished frames up to now, where it has a price.
    pub(super) fn count_storage(&mut self) {
        if self.farm.accounts().storage_since().is_some_and(|since| since < self.now) {
            self.record(Record::StorageCounted { at: self.now });
        }
    }

    /// Counts the space of finished frames if that is due, and plans the next time.
    pub(crate) fn count_storage_if_due(&mut self) {
        if self.storage_due().is_some_and(|due| due <= self.now) {
            self.count_storage();
            self.recount_budgets();
            self.plan_storage();
        }
    }

    /// Plans when the space of finished frames is counted next.
    pub(crate) fn plan_storage(&mut self) {
        if let Some(due) = self.storage_due() {
            self.set_timer(due, Timer::Storage);
        }
    }

    fn storage_due(&self) -> Option<Moment> {
        Some(self.farm.accounts().storage_since()?.after(self.settings.storage_every))
    }

    /// Checks that the space of finished frames is going to be counted.
    pub(crate) fn check_storage(&self) -> Result<(), String> {
        match self.storage_due() {
            Some(due) if !self.is_following && !self.timers.contains(due, Timer::Storage) => {
                Err("space has a price, and nothing counts it".to_owned())
            }
            _ => Ok(()),
        }
    }
}
