//! IEEE 754 binary16, to and from f64. Both are exact except for one rounding to the nearest, ties
//! to even.

/// Returns the value of the bits of a binary16.
pub fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * power_of_two(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * power_of_two(exponent - 25),
    };
    sign * magnitude
}

/// Returns the bits of the nearest binary16. A NaN becomes 0x7e00; what is too large becomes
/// infinite.
pub fn half_of_f64(value: f64) -> u16 {
    if value.is_nan() {
        return 0x7e00;
    }
    let sign = u16::from(value.is_sign_negative()) << 15;
    let magnitude = value.abs();
    let exponent = ((magnitude.to_bits() >> 52) as i32) - 1023;
    let bits = match exponent {
        ..-14 => (magnitude * power_of_two(24)).round_ties_even() as u16,
        // A fraction that is rounded up to the next power of two carries into the exponent.
        -14..=15 => {
            let whole = (magnitude * power_of_two(10 - exponent)).round_ties_even() as u16;
            (((exponent + 15) as u16) << 10) + (whole - 1024)
        }
        _ => 0x7c00,
    };
    sign | bits
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_its_own_value() {
        for bits in 0..=u16::MAX {
            let value = half_to_f64(bits);
            let is_nan = bits & 0x7fff > 0x7c00;
            assert_eq!(value.is_nan(), is_nan, "{bits:04x}");
            assert_eq!(half_of_f64(value), if is_nan { 0x7e00 } else { bits }, "{bits:04x}");
        }
        let known = [(0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333251953125), (0x7bff, 65504.0)];
        for (bits, value) in known {
            assert_eq!(half_to_f64(bits), value);
        }
        assert_eq!(half_to_f64(1), 2f64.powi(-24));
    }

    #[test]
    fn values_between_two_halves_go_to_the_nearest_ties_to_even() {
        for bits in 0..0x7bffu16 {
            let (low, high) = (half_to_f64(bits), half_to_f64(bits + 1));
            let middle = (low + high) / 2.0;
            let even = if bits & 1 == 0 { bits } else { bits + 1 };
            assert_eq!(half_of_f64(middle), even, "{bits:04x}");
            assert_eq!(half_of_f64(middle.next_down()), bits, "{bits:04x}");
            assert_eq!(half_of_f64(middle.next_up()), bits + 1, "{bits:04x}");
        }
        assert_eq!(half_of_f64(65519.999), 0x7bff);
        assert_eq!(half_of_f64(65520.0), 0x7c00);
        assert_eq!(half_of_f64(-1e300), 0xfc00);
        assert_eq!(half_of_f64(0.1), 0x2e66);
    }
}
