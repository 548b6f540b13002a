//! Weights of owners in the fair shares of the farm. Decides nothing.

use std::collections::BTreeMap;

/// Weight of an owner without one of its own, in hundredths.
const NORMAL: u32 = 100;

/// How many times the normal part of the farm owners get, where it is not once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights(BTreeMap<String, u32>);

impl Weights {
    /// Largest weight, and the reciprocal of the smallest.
    pub const MOST: f64 = 100.0;

    /// Sets the weight of an owner: a name, or `#` and the number of an identity. Rounded to
    /// hundredths. Returns whether the weight is in 0.01 to 100.
    pub fn set(&mut self, owner: &str, weight: f64) -> bool {
        let hundredths = weight * f64::from(NORMAL);
        let fits = (1.0..=Self::MOST * f64::from(NORMAL)).contains(&hundredths);
        if fits {
            self.0.insert(owner.to_owned(), hundredths.round() as u32);
        }
        fits
    }

    /// Weight of an owner in hundredths. The number counts for more than the name.
    pub(crate) fn of(&self, id: u64, name: &str) -> u32 {
        if self.0.is_empty() {
            return NORMAL;
        }
        let own = self.0.get(&format!("#{id}")).or_else(|| self.0.get(name));
        own.copied().unwrap_or(NORMAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_of_a_name_or_of_a_number() {
        let mut weights = Weights::default();
        assert_eq!(weights.of(7, "ada"), 100);
        assert!(weights.set("ada", 2.0) && weights.set("#7", 0.255) && weights.set("bob", 100.0));
        assert_eq!((weights.of(7, "ada"), weights.of(8, "ada")), (26, 200));
        assert_eq!((weights.of(9, "bob"), weights.of(9, "eve")), (10_000, 100));
        for wrong in [0.0, -1.0, 0.001, 100.1, f64::NAN, f64::INFINITY] {
            assert!(!weights.set("ada", wrong), "{wrong}");
        }
    }
}
