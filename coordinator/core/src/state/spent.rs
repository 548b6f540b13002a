//! Device time by the product name of the devices, and what it is worth. Sums only.

use crate::journal::Spending;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tessera_protocol::cost::{Spent as SpentLine, Worth};

/// Most product names that are told apart in one sum; further ones are counted together.
const DEVICES_MAX: usize = 64;
/// Name under which further devices are counted.
const OTHER: &str = "other devices";

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

/// Sums of device time by product name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent(BTreeMap<String, Sum>);

impl Spent {
    /// Adds device time.
    pub(crate) fn add(&mut self, spending: &Spending) {
        let Spending { device, an_hour, micros, lost_micros } = spending;
        let worth = Worth::of(*micros, *an_hour);
        self.sum_of(device).add(&Sum { micros: *micros, lost_micros: *lost_micros, worth });
    }

    /// Adds other sums.
    pub(crate) fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|(device, sum)| self.sum_of(device).add(sum));
    }

    fn sum_of(&mut self, device: &str) -> &mut Sum {
        let is_new = !self.0.contains_key(device);
        let device = if is_new && self.0.len() >= DEVICES_MAX { OTHER } else { device };
        self.0.entry(device.to_owned()).or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the sum over all devices.
    pub(crate) fn all(&self) -> Sum {
        let mut all = Sum::default();
        self.0.values().for_each(|sum| all.add(sum));
        all
    }

    /// Returns a line for each product name.
    pub(crate) fn lines(&self) -> Vec<SpentLine> {
        let line = |(device, sum): (&String, &Sum)| SpentLine {
            device: device.clone(),
            millis: sum.micros / 1000,
            lost_millis: sum.lost_micros / 1000,
            cost: sum.worth.amount(),
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::cost::Amount;

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
}
