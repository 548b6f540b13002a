//! Conversions between 16-bit and 32-bit floats. There is no arithmetic on 16 bits.

/// The NaN that a conversion to 16 bits gives.
const NAN: u16 = 0x7FFF;

/// Returns the value of 16 bits, exactly.
pub(super) fn widen(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10 & 31), u32::from(bits & 1023));
    match exponent {
        // A fraction of 10 bits times 2^-24 is exact.
        0 => f32::from_bits(sign | (fraction as f32 * f32::from_bits(103 << 23)).to_bits()),
        31 if fraction != 0 => f32::NAN,
        31 => f32::from_bits(sign | 255 << 23),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// Rounds to 16 bits: to the nearest, ties to even.
pub(super) fn narrow(value: f32) -> u16 {
    if value.is_nan() {
        return NAN;
    }
    let bits = value.to_bits();
    let sign = (bits >> 31 << 15) as u16;
    let magnitude = bits & 0x7FFF_FFFF;
    // 65520 and more, half a unit above the largest.
    if magnitude >= 0x477F_F000 {
        return sign | 0x7C00;
    }
    // Below 2^-14 the unit is 2^-24.
    if magnitude < 113 << 23 {
        let units = f32::from_bits(magnitude) * f32::from_bits(151 << 23);
        return sign | units.round_ties_even() as u16;
    }
    let (kept, rest) = (magnitude >> 13, magnitude & 0x1FFF);
    let up = rest > 0x1000 || (rest == 0x1000 && kept & 1 == 1);
    sign | (kept + u32::from(up) - (112 << 10)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        for bits in 0..=u16::MAX {
            let wide = widen(bits);
            let expected = if wide.is_nan() { NAN } else { bits };
            assert_eq!(narrow(wide), expected, "{bits:04x}");
        }
        assert_eq!([0x3C00, 0xC000, 0x7BFF].map(widen), [1.0, -2.0, 65504.0]);
        assert_eq!(widen(1), 2f32.powi(-24));
    }

    #[test]
    fn ties_go_to_even() {
        for bits in 0..0x7BFFu16 {
            let middle = (widen(bits) + widen(bits + 1)) / 2.0;
            assert_eq!(narrow(middle), bits + (bits & 1), "{bits:04x}");
            assert_eq!(narrow(middle.next_down()), bits, "{bits:04x}");
            assert_eq!(narrow(middle.next_up()), bits + 1, "{bits:04x}");
        }
        assert_eq!([65519.0, 65520.0, -1e9, 0.1].map(narrow), [0x7BFF, 0x7C00, 0xFC00, 0x2E66]);
    }
}
