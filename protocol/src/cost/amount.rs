//! Amounts of money, and exact sums of device time by its price.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Millionths in one.
const MILLION: f64 = 1e6;
/// Microseconds of an hour.
const HOUR_MICROS: u128 = 3_600_000_000;
/// Hours of a month in which space has its price: 30 days.
const MONTH_HOURS: u128 = 720;
/// Bytes of a gigabyte.
const GIGABYTE: u128 = 1_000_000_000;

/// An amount of the farm's currency in millionths of it. As text it is a decimal number, such as
/// 1.25.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(pub u64);

impl Amount {
    /// Largest amount of rules: a thousand millions. It is exact as a decimal number of 64 bits.
    pub const MOST: Self = Self(1_000_000_000_000_000);

    /// Converts a decimal number, rounded to millionths; None if it is negative, no number, or
    /// greater than [`Amount::MOST`].
    pub fn from_decimal(value: f64) -> Option<Self> {
        let millionths = (value * MILLION).round();
        let fits = (0.0..=Self::MOST.0 as f64).contains(&millionths);
        fits.then_some(Self(millionths as u64))
    }

    /// Returns the amount as a decimal number.
    pub fn decimal(self) -> f64 {
        self.0 as f64 / MILLION
    }
}

impl std::fmt::Display for Amount {
    /// Two decimals; more, up to six, below a hundredth.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, millionths) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if self.0 > 0 && self.0 < 10_000 {
            return write!(f, "{whole}.{millionths:06}");
        }
        let hundredths = (self.0 + 5000) / 10_000;
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_f64(self.decimal()),
            false => serializer.serialize_u64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(Self);
        }
        let value = f64::deserialize(deserializer)?;
        let wrong = || de::Error::custom(format!("{value} is not an amount from 0 to 1000000000"));
        Self::from_decimal(value).ok_or_else(wrong)
    }
}

/// A sum of device time, each part multiplied by its price: microseconds times millionths of the
/// currency an hour. It is a whole number, so that sums are the same in every order and nothing is
/// lost by rounding.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Worth(pub u128);

impl Worth {
    /// Returns what so many microseconds are worth at a price of an hour.
    pub fn of(micros: u64, an_hour: Amount) -> Self {
        Self(u128::from(micros) * u128::from(an_hour.0))
    }

    /// Returns what so many bytes × milliseconds are worth, at the price of a gigabyte for a month
    /// of 30 days; the most that there is where it would overflow.
    pub fn of_space(byte_millis: u128, gb_month: Amount) -> Self {
        let micros = 1000 * byte_millis.min(u128::MAX / 1000);
        let worth = micros.saturating_mul(u128::from(gb_month.0));
        Self(worth / (GIGABYTE * MONTH_HOURS))
    }

    /// Adds another sum.
    pub fn add(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    /// Takes away what was added.
    pub fn take(&mut self, other: Self) {
        self.0 = self.0.saturating_sub(other.0);
    }

    /// Returns the amount, rounded to the nearest millionth.
    pub fn amount(self) -> Amount {
        let rounded = (self.0 + HOUR_MICROS / 2) / HOUR_MICROS;
        Amount(rounded.min(u128::from(u64::MAX)) as u64)
    }

    /// Returns the sum that is worth an amount.
    pub fn of_amount(amount: Amount) -> Self {
        Self(u128::from(amount.0) * HOUR_MICROS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_decimals_as_text_and_whole_numbers_on_the_wire() {
        let amount: Amount = serde_json::from_str("1.25").unwrap();
        assert_eq!((amount, amount.to_string()), (Amount(1_250_000), "1.25".to_owned()));
        assert_eq!(serde_json::to_string(&amount).unwrap(), "1.25");
        let bytes = crate::encode(&amount).unwrap();
        assert_eq!(crate::decode::<Amount>(&bytes).unwrap(), amount);
        assert_eq!(Amount(1234).to_string(), "0.001234");
        assert_eq!(
            (Amount(0).to_string(), Amount(9_999_999).to_string()),
            ("0.00".into(), "10.00".into())
        );
        for wrong in ["-1", "1e10", "\"1\""] {
            assert!(serde_json::from_str::<Amount>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_hour_is_worth_its_price_and_parts_of_it_add_up() {
        let price = Amount(1_200_000);
        assert_eq!(Worth::of(3_600_000_000, price).amount(), price);
        let mut sum = Worth::default();
        (0..3600).for_each(|_| sum.add(Worth::of(1_000_000, price)));
        assert_eq!(sum, Worth::of_amount(price));
        assert_eq!(Worth::of(1, price).amount(), Amount(0));
        let month = 1_000_000_000 * 720 * 3_600_000;
        assert_eq!(Worth::of_space(month, price).amount(), price);
        assert!(Worth::of_space(u128::MAX, Amount::MOST) > Worth::of_amount(Amount::MOST));
    }
}
