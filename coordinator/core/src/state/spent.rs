//! Device time by the product name of the devices, the space of finished frames, and what both are
//! worth. Sums only.

use crate::journal::Spending;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tessera_protocol::cost::{Amount, Spent as SpentLine, Stored as StoredLine, Worth};

/// Most product names that are told apart in one sum; further ones are counted together.
const DEVICES_MAX: usize = 64;
/// Name under which further devices are counted.
const OTHER: &str = "other devices";
/// Milliseconds of an hour.
const HOUR_MILLIS: u128 = 3_600_000;

/// A sum of device time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sum {
    pub(crate) micros: u64,
    pub(crate) lost_micros: u64,
    pub(crate) worth: Worth,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.micros = self.micros.saturating_add(other.micros);
        self.lost_micros = self.lost_micros.saturating_add(other.lost_micros);
        self.worth.add(other.worth);
    }
}

/// A sum of space over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// Bytes × milliseconds.
    byte_millis: u128,
    worth: Worth,
}

impl Stored {
    /// Returns what bytes are for a time, at the price of a gigabyte and a month.
    pub(crate) fn of(bytes: u64, time: Duration, gb_month: Amount) -> Self {
        let byte_millis = u128::from(bytes).saturating_mul(time.as_millis());
        Self { byte_millis, worth: Worth::of_space(byte_millis, gb_month) }
    }

    fn add(&mut self, other: &Self) {
        self.byte_millis = self.byte_millis.saturating_add(other.byte_millis);
        self.worth.add(other.worth);
    }

    /// Returns the sum as it is shown.
    pub(crate) fn line(self) -> StoredLine {
        let byte_hours = self.byte_millis / HOUR_MILLIS;
        StoredLine {
            byte_hours: byte_hours.min(u128::from(u64::MAX)) as u64,
            cost: self.worth.amount(),
        }
    }
}

/// Sums of device time by product name, and of space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    devices: BTreeMap<String, Sum>,
    stored: Stored,
}

impl Spent {
    /// Adds device time.
    pub(crate) fn add(&mut self, spending: &Spending) {
        let Spending { device, an_hour, micros, lost_micros } = spending;
        let worth = Worth::of(*micros, *an_hour);
        self.sum_of(device).add(&Sum { micros: *micros, lost_micros: *lost_micros, worth });
    }

    /// Adds other sums.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.devices.iter().for_each(|(device, sum)| self.sum_of(device).add(sum));
        self.stored.add(&other.stored);
    }

    fn sum_of(&mut self, device: &str) -> &mut Sum {
        let is_new = !self.devices.contains_key(device);
        let device = if is_new && self.devices.len() >= DEVICES_MAX { OTHER } else { device };
        self.devices.entry(device.to_owned()).or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.stored == Stored::default()
    }

    /// Returns the sum over all devices, with what space is worth.
    pub(crate) fn all(&self) -> Sum {
        let mut all = Sum { worth: self.stored.worth, ..Sum::default() };
        self.devices.values().for_each(|sum| all.add(sum));
        all
    }

    /// Adds space.
    pub(crate) fn store(&mut self, stored: &Stored) {
        self.stored.add(stored);
    }

    /// Returns the space.
    pub(crate) fn stored(&self) -> Stored {
        self.stored
    }

    /// Returns a line for each product name.
    pub(crate) fn lines(&self) -> Vec<SpentLine> {
        let line = |(device, sum): (&String, &Sum)| SpentLine {
            device: device.clone(),
            millis: sum.micros / 1000,
            lost_millis: sum.lost_micros / 1000,
            cost: sum.worth.amount(),
        };
        self.devices.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_many_devices_none_is_told_apart_and_nothing_is_lost() {
        let mut spent = Spent::default();
        for number in 0..100 {
            let device = format!("device {number}");
            spent.add(&Spending { device, an_hour: Amount(5), micros: 1500, lost_micros: 500 });
        }
        let lines = spent.lines();
        assert_eq!(lines.len(), DEVICES_MAX + 1);
        let Sum { micros, lost_micros, worth } = spent.all();
        assert_eq!((micros, lost_micros, worth), (150_000, 50_000, Worth(750_000)));
        let mut twice = spent.clone();
        twice.add_all(&spent);
        assert_eq!(twice.all().micros, 300_000);
    }

    #[test]
    fn space_has_the_price_of_a_gigabyte_and_a_month() {
        let (gigabyte, month) = (1_000_000_000, Duration::from_secs(720 * 3600));
        let price = Amount(20_000);
        let whole = Stored::of(gigabyte, month, price).line();
        assert_eq!((whole.byte_hours, whole.cost), (720 * gigabyte, price));
        let mut spent = Spent::default();
        assert!(spent.is_empty());
        for _ in 0..720 {
            spent.store(&Stored::of(3 * gigabyte, Duration::from_secs(3600), price));
        }
        assert_eq!(spent.stored().line().cost, Amount(60_000));
        assert_eq!((spent.all().micros, spent.all().worth.amount()), (0, Amount(60_000)));
        assert!(!spent.is_empty());
        // Whatever clocks and rules say, nothing overflows.
        let most = Stored::of(u64::MAX, Duration::from_millis(u64::MAX), Amount::MOST);
        spent.store(&most);
        assert_eq!(spent.stored().line().byte_hours, u64::MAX);
    }
}
