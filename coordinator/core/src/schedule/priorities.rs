//! Shares: which priority is served next, and in what order the jobs of one priority are. Knows
//! nothing of units or nodes.
//!
//! Priority is a share, not a rank. All jobs of one priority form a class; classes are served by
//! stride: leasing `n` camera samples moves a class forward by `n / weight`, and the class that is
//! furthest behind goes first. Work that is given back moves it back.

use std::collections::BTreeMap;
use tessera_protocol::ids::JobId;

/// Priority `p` above 0 weighs `4 p`, priority 0 weighs 1: a quarter of priority 1, so that it
/// never starves.
fn weight(priority: u8) -> u128 {
    (4 * u128::from(priority)).max(1)
}

/// Number of fraction bits of a pass.
const FRACTION: u32 = 20;

/// A class that could not be served (no node suits its jobs) catches up by no more than this many
/// camera samples at weight 1.
const CATCH_UP: u128 = (1 << 32) << FRACTION;

/// All jobs of one priority.
#[derive(Debug, Default)]
struct Class {
    /// Camera samples leased or committed, over the weight.
    pass: u128,
    /// Jobs with something to lease, by the order of their acceptance.
    jobs: BTreeMap<u64, JobId>,
}

/// Jobs with something to lease.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    classes: BTreeMap<u8, Class>,
    /// Pass of the class that was served last.
    served: u128,
}

impl Shares {
    /// Adds a job that has something to lease.
    pub(crate) fn insert(&mut self, priority: u8, order: u64, job: JobId) {
        let served = self.served;
        let class = self.classes.entry(priority).or_default();
        if class.jobs.is_empty() {
            // A class without work has no claim on the work that others got meanwhile.
            class.pass = class.pass.max(served);
        }
        class.jobs.insert(order, job);
    }

    /// Removes a job that has nothing to lease now.
    pub(crate) fn remove(&mut self, priority: u8, order: u64) {
        if let Some(class) = self.classes.get_mut(&priority) {
            class.jobs.remove(&order);
        }
    }

    pub(crate) fn contains(&self, priority: u8, order: u64) -> bool {
        self.classes.get(&priority).is_some_and(|class| class.jobs.contains_key(&order))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.classes.values().all(|class| class.jobs.is_empty())
    }

    /// Returns the priorities with something to lease, the one furthest behind first; of equals,
    /// the higher.
    pub(crate) fn order(&self) -> Vec<u8> {
        let asking = self.classes.iter().filter(|(_, class)| !class.jobs.is_empty());
        let mut order: Vec<(u128, std::cmp::Reverse<u8>)> =
            asking.map(|(priority, class)| (class.pass, std::cmp::Reverse(*priority))).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, priority)| priority.0).collect()
    }

    /// Returns the oldest job of a priority after a position in their order.
    pub(crate) fn next_job(&self, priority: u8, after: Option<u64>) -> Option<(u64, JobId)> {
        let from = after.map_or(0, |order| order + 1);
        let (order, job) = self.classes.get(&priority)?.jobs.range(from..).next()?;
        Some((*order, *job))
    }

    /// Charges leased work to its priority.
    pub(crate) fn charge(&mut self, priority: u8, camera_samples: u64) {
        let class = self.classes.entry(priority).or_default();
        class.pass = class.pass.max(self.served.saturating_sub(CATCH_UP));
        self.served = self.served.max(class.pass);
        class.pass =
            class.pass.saturating_add((u128::from(camera_samples) << FRACTION) / weight(priority));
    }

    /// Refunds leased work that came back undone.
    pub(crate) fn refund(&mut self, priority: u8, camera_samples: u64) {
        if let Some(class) = self.classes.get_mut(&priority) {
            class.pass = class
                .pass
                .saturating_sub((u128::from(camera_samples) << FRACTION) / weight(priority));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(shares: &mut Shares, turns: u32) -> BTreeMap<u8, u32> {
        let mut counts = BTreeMap::new();
        for _ in 0..turns {
            let priority = shares.order()[0];
            shares.charge(priority, 1 << 20);
            *counts.entry(priority).or_default() += 1;
        }
        counts
    }

    fn job(number: u128) -> JobId {
        JobId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn priorities_get_their_shares_and_zero_gets_a_little() {
        let mut shares = Shares::default();
        for (order, priority) in [100, 50, 0].into_iter().enumerate() {
            shares.insert(priority, order as u64, job(order as u128));
        }
        let counts = served(&mut shares, 6010);
        assert!((3990..=4010).contains(&counts[&100]), "{counts:?}");
        assert!((1995..=2005).contains(&counts[&50]), "{counts:?}");
        assert!((8..=13).contains(&counts[&0]), "{counts:?}");
    }

    #[test]
    fn a_class_that_was_idle_does_not_take_everything() {
        let mut shares = Shares::default();
        shares.insert(50, 0, job(0));
        served(&mut shares, 1000);
        shares.insert(25, 1, job(1));
        let counts = served(&mut shares, 300);
        assert!((195..=205).contains(&counts[&50]), "{counts:?}");
    }

    #[test]
    fn jobs_of_one_priority_stand_in_line() {
        let mut shares = Shares::default();
        shares.insert(50, 7, job(7));
        shares.insert(50, 3, job(3));
        assert_eq!(shares.next_job(50, None), Some((3, job(3))));
        assert_eq!(shares.next_job(50, Some(3)), Some((7, job(7))));
        assert_eq!(shares.next_job(50, Some(7)), None);
        shares.remove(50, 3);
        assert_eq!(shares.next_job(50, None), Some((7, job(7))));
    }
}
