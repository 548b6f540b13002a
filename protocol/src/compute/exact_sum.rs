//! An exact sum of floating-point values, rounded once at its end. It has the same bits for every
//! grouping of the values.
//!
//! The algorithm is Neal's small superaccumulator ("Fast exact summation using small and large
//! superaccumulators", 2015). It is a fixed-point number that is wide enough for every binary64
//! value. Each limb of 32 bits is stored in 64, so that carries can wait for 2^30 additions.

/// Number of limbs. Bit 0 is 2^-1074, and the largest value has bit 2097. A sum of 2^40 such values
/// reaches bit 2137, in limb 66. Limb 67 holds the sign.
const LIMBS: usize = 68;
/// Additions between two rounds of carries. Each addition changes a limb by less than 2^32, so 2^30
/// of them stay below 2^62.
const ADDITIONS_MAX: u32 = 1 << 30;

/// A sum of binary64 values.
#[derive(Clone, Debug)]
pub struct ExactSum {
    limbs: [i64; LIMBS],
    additions: u32,
    special: Special,
}

/// Values that a fixed-point sum cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Special {
    nan: bool,
    infinite: bool,
    minus_infinite: bool,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { limbs: [0; LIMBS], additions: 0, special: Special::default() }
    }
}

impl ExactSum {
    /// Length of [`Self::to_bytes`].
    pub const BYTES: usize = 1 + 4 * (LIMBS - 1) + 8;

    /// Adds one value without rounding.
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as usize, bits & ((1 << 52) - 1));
        let negative = bits >> 63 == 1;
        if exponent == 0x7ff {
            self.special.nan |= fraction != 0;
            self.special.infinite |= fraction == 0 && !negative;
            self.special.minus_infinite |= fraction == 0 && negative;
            return;
        }
        // The value is ± mantissa · 2^(position - 1074).
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let position = exponent.saturating_sub(1);
        let shifted = u128::from(mantissa) << (position % 32);
        for (place, limb) in self.limbs[position / 32..].iter_mut().take(3).enumerate() {
            let part = (shifted >> (32 * place) & 0xffff_ffff) as i64;
            *limb += if negative { -part } else { part };
        }
        self.count_addition();
    }

    /// Adds another sum without rounding.
    pub fn merge(&mut self, other: &Self) {
        let other = other.clone().settled();
        for (limb, added) in self.limbs.iter_mut().zip(other.limbs) {
            *limb = limb.wrapping_add(added);
        }
        self.special.nan |= other.special.nan;
        self.special.infinite |= other.special.infinite;
        self.special.minus_infinite |= other.special.minus_infinite;
        self.count_addition();
    }

    fn count_addition(&mut self) {
        self.additions += 1;
        if self.additions >= ADDITIONS_MAX {
            self.carry();
        }
    }

    /// Brings every limb but the last into [0, 2^32). Each number then has exactly one form.
    fn carry(&mut self) {
        let mut carry = 0;
        for limb in &mut self.limbs[..LIMBS - 1] {
            let value = *limb + carry;
            carry = value >> 32;
            *limb = value & 0xffff_ffff;
        }
        self.limbs[LIMBS - 1] = self.limbs[LIMBS - 1].wrapping_add(carry);
        self.additions = 1;
    }

    fn settled(mut self) -> Self {
        self.carry();
        self
    }

    /// Returns the nearest binary64, with ties to even. A NaN always has the same payload. A sum
    /// beyond the range is an infinity.
    pub fn round(&self) -> f64 {
        let special = self.special;
        if special.nan || (special.infinite && special.minus_infinite) {
            return f64::from_bits(0x7ff8_0000_0000_0000);
        }
        if special.infinite || special.minus_infinite {
            return if special.infinite { f64::INFINITY } else { f64::NEG_INFINITY };
        }
        let mut sum = self.clone().settled();
        let negative = sum.limbs[LIMBS - 1] < 0;
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = limb.wrapping_neg());
            sum.carry();
        }
        let magnitude = f64::from_bits(sum.magnitude_bits());
        if negative { -magnitude } else { magnitude }
    }

    /// Returns the bits of a number that is not negative and whose carries are done.
    fn magnitude_bits(&self) -> u64 {
        let bit = |index: usize| self.limbs[index / 32] >> (index % 32) & 1 == 1;
        let Some(top) = self.limbs.iter().rposition(|limb| *limb != 0) else { return 0 };
        if top == LIMBS - 1 {
            // The number is far beyond the range. Additions cannot reach this limb, but bytes from
            // outside can.
            return f64::INFINITY.to_bits();
        }
        let highest = top * 32 + 63 - self.limbs[top].leading_zeros() as usize;
        let lowest = highest.saturating_sub(52);
        let mantissa =
            (lowest..=highest).rev().fold(0u64, |value, index| value << 1 | u64::from(bit(index)));
        if lowest == 0 {
            // The number is subnormal or has the least exponent: the bits are the number itself.
            return mantissa;
        }
        let half = bit(lowest - 1);
        let more = (0..lowest - 1).any(bit);
        let up = half && (more || mantissa & 1 == 1);
        // A mantissa that rounds up to 2^53 carries into the exponent, as it should.
        let bits = ((lowest as u64) << 52) + mantissa + u64::from(up);
        bits.min(f64::INFINITY.to_bits())
    }

    /// Encodes the sum. Equal sums have equal bytes: flags, limbs as u32, the last limb as i64, all
    /// little endian.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let sum = self.clone().settled();
        let mut bytes = [0; Self::BYTES];
        bytes[0] = u8::from(sum.special.nan)
            | u8::from(sum.special.infinite) << 1
            | u8::from(sum.special.minus_infinite) << 2;
        let (low, last) = bytes[1..].split_at_mut(4 * (LIMBS - 1));
        for (target, limb) in low.chunks_exact_mut(4).zip(sum.limbs) {
            target.copy_from_slice(&(limb as u32).to_le_bytes());
        }
        last.copy_from_slice(&sum.limbs[LIMBS - 1].to_le_bytes());
        bytes
    }

    /// Decodes [`Self::to_bytes`]. Returns None for bytes of another length or with unknown flags.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (flags, rest) = bytes.split_first().filter(|(flags, _)| **flags < 8)?;
        let (low, last) = rest.split_at_checked(4 * (LIMBS - 1))?;
        let mut sum = Self { additions: 1, ..Self::default() };
        for (limb, source) in sum.limbs.iter_mut().zip(low.chunks_exact(4)) {
            *limb = i64::from(u32::from_le_bytes(source.try_into().ok()?));
        }
        sum.limbs[LIMBS - 1] = i64::from_le_bytes(last.try_into().ok()?);
        sum.special = Special {
            nan: flags & 1 != 0,
            infinite: flags & 2 != 0,
            minus_infinite: flags & 4 != 0,
        };
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|value| sum.add(*value));
        sum
    }

    /// Returns values with random bits, except infinities and NaN.
    fn values(count: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        std::iter::repeat_with(|| f64::from_bits(next()))
            .filter(|v| v.is_finite())
            .take(count)
            .collect()
    }

    #[test]
    fn one_value_is_itself() {
        let special =
            [0.0, 5e-324, f64::MIN_POSITIVE, f64::MAX, -f64::MAX, 1.0, -1.5, f64::EPSILON];
        for value in special.into_iter().chain(values(2000)) {
            assert_eq!(sum(&[value]).round().to_bits(), (value + 0.0).to_bits(), "{value:e}");
        }
    }

    #[test]
    fn two_values_are_rounded_as_the_processor_does() {
        for pair in values(4000).chunks_exact(2) {
            assert_eq!(sum(pair).round(), pair[0] + pair[1], "{pair:?}");
            let near = [pair[0], pair[0] * 1e-16];
            assert_eq!(sum(&near).round(), near[0] + near[1], "{near:?}");
        }
        // Ties go to even, upwards and downwards.
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]).round(), 1.0);
        assert_eq!(
            sum(&[1.0 + f64::EPSILON, f64::EPSILON / 2.0]).round(),
            1.0 + 2.0 * f64::EPSILON
        );
    }

    #[test]
    fn nothing_is_lost_to_cancellation() {
        assert_eq!(sum(&[1e300, 1.0, -1e300]).round(), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).round(), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).round(), f64::INFINITY);
        let mut all = values(1000);
        all.extend(all.clone().into_iter().map(|value| -value));
        assert_eq!(sum(&all).round().to_bits(), 0);
    }

    #[test]
    fn every_grouping_has_the_same_bytes() {
        let all = values(999);
        let whole = sum(&all);
        for size in [1, 7, 100] {
            let mut parts: Vec<ExactSum> = all.chunks(size).map(sum).collect();
            parts.reverse();
            let mut total = ExactSum::default();
            for part in parts {
                total.merge(&ExactSum::from_bytes(&part.to_bytes()).unwrap());
            }
            assert_eq!(total.to_bytes(), whole.to_bytes());
            assert_eq!(total.round(), whole.round());
        }
    }

    #[test]
    fn infinities_and_nan_come_through() {
        assert_eq!(sum(&[1.0, f64::INFINITY]).round(), f64::INFINITY);
        assert_eq!(sum(&[f64::NEG_INFINITY, 1.0]).round(), f64::NEG_INFINITY);
        assert!(sum(&[f64::NEG_INFINITY, f64::INFINITY]).round().is_nan());
        let nan = ExactSum::from_bytes(&sum(&[f64::NAN]).to_bytes()).unwrap();
        assert!(nan.round().is_nan());
        assert!(ExactSum::from_bytes(&[8; ExactSum::BYTES]).is_none());
        for last in [0x7f, 0x80, 0xff] {
            let mut bytes = [last; ExactSum::BYTES];
            bytes[0] = 0;
            let _ = ExactSum::from_bytes(&bytes).unwrap().round();
        }
        assert!(ExactSum::from_bytes(&[0; ExactSum::BYTES - 1]).is_none());
    }
}
