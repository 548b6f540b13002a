//! 32-bit float arithmetic as a GPU has it: correctly rounded, subnormal numbers kept, one NaN.

use crate::decode::approximate;
use crate::instruction::rounding;

/// The NaN that every arithmetic instruction gives.
const NAN: u64 = 0x7FFF_FFFF;

/// The bits of a result.
#[inline(always)]
pub(super) fn bits(value: f32) -> u64 {
    if value.is_nan() { NAN } else { u64::from(value.to_bits()) }
}

/// `min.f32`: a number rather than a NaN, and -0 below +0.
#[inline(always)]
pub(super) fn min(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

/// `max.f32`: a number rather than a NaN, and +0 above -0.
#[inline(always)]
pub(super) fn max(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        _ => {
            if a > b {
                a
            } else {
                b
            }
        }
    }
}

/// To an integer, in a float.
#[inline(always)]
pub(super) fn round(value: f32, mode: u8) -> f32 {
    match mode {
        rounding::ZERO => value.trunc(),
        rounding::DOWN => value.floor(),
        rounding::UP => value.ceil(),
        _ => value.round_ties_even(),
    }
}

/// a * b + c, rounded once, towards zero, down or up.
pub(super) fn directed(a: f32, b: f32, c: f32, mode: u8) -> f32 {
    // A product of two 24-bit numbers is exact in 53 bits; the sum's error is found by Knuth's
    // TwoSum.
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    if !sum.is_finite() {
        return sum as f32;
    }
    if sum == 0.0 && product == -c {
        let is_down = mode == rounding::DOWN && product.is_sign_negative() != c.is_sign_negative();
        return if is_down { -0.0 } else { sum as f32 };
    }
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let nearest = sum as f32;
    let above = sum - f64::from(nearest);
    let above = if above == 0.0 { error } else { above };
    let towards_zero = mode == rounding::ZERO;
    let is_negative = sum < 0.0;
    if above > 0.0 && (mode == rounding::UP || (towards_zero && is_negative)) {
        nearest.next_up()
    } else if above < 0.0 && (mode == rounding::DOWN || (towards_zero && !is_negative)) {
        nearest.next_down()
    } else {
        nearest
    }
}

/// To an unsigned integer of some width, clamped to its range; NaN gives 0, or the top bit alone in
/// 64 bits.
pub(super) fn to_unsigned(value: f64, width: u8) -> u64 {
    match width {
        64 if value.is_nan() => 1 << 63,
        64 => value as u64,
        width => (value as u64).min(u64::MAX >> (64 - u32::from(width))),
    }
}

/// To a signed integer of some width, clamped to its range; NaN gives 0, or the least number in 64
/// bits.
pub(super) fn to_signed(value: f64, width: u8) -> u64 {
    match width {
        64 if value.is_nan() => 1 << 63,
        64 => value as i64 as u64,
        width => {
            let limit = 1i64 << (width - 1);
            (value as i64).clamp(-limit, limit - 1) as u64
        }
    }
}

/// `testp`
pub(super) fn test(value: f32, which: u8) -> bool {
    match which {
        0 => value.is_finite(),
        1 => value.is_infinite(),
        2 => !value.is_nan(),
        3 => value.is_nan(),
        4 => value.is_normal(),
        _ => value.is_subnormal(),
    }
}

/// An approximate function, as exactly as `f64` allows: a GPU may differ from it in the last bits.
pub(super) fn approximate(a: f64, b: f64, which: u8) -> f64 {
    match which {
        approximate::EXP2 => a.exp2(),
        approximate::LOG2 => a.log2(),
        approximate::SIN => a.sin(),
        approximate::COS => a.cos(),
        approximate::RSQRT => 1.0 / a.sqrt(),
        approximate::TANH => a.tanh(),
        approximate::DIV => a / b,
        approximate::RECIPROCAL => 1.0 / a,
        _ => a.sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directed_rounding_brackets_the_exact_value() {
        let (third, tiny) = (1.0f32 / 3.0, f32::from_bits(1));
        for (a, b, c) in [
            (third, third, third),
            (1.0, 1.0, tiny),
            (-third, 3.0, 1.0),
            (tiny, third, 0.0),
            (-1e-30, 1e-20, tiny),
        ] {
            let down = directed(a, b, c, rounding::DOWN);
            let (up, zero) = (directed(a, b, c, rounding::UP), directed(a, b, c, rounding::ZERO));
            let nearest = a.mul_add(b, c);
            assert!(
                down <= nearest && nearest <= up && (up == down || up == down.next_up()),
                "{a} {b} {c}"
            );
            assert_eq!(zero, if down.is_sign_negative() { up } else { down }, "{a} {b} {c}");
        }
        assert_eq!(directed(f32::MAX, 2.0, 0.0, rounding::ZERO), f32::MAX);
        assert_eq!(directed(f32::MAX, 2.0, 0.0, rounding::UP), f32::INFINITY);
        assert!(directed(1.0, 1.0, -1.0, rounding::DOWN).is_sign_negative());
        assert!(directed(1.0, 1.0, -1.0, rounding::UP).is_sign_positive());
    }

    #[test]
    fn extremes_know_the_sign_of_zero_and_prefer_numbers() {
        assert!(min(0.0, -0.0).is_sign_negative() && max(-0.0, 0.0).is_sign_positive());
        assert_eq!((min(f32::NAN, 1.0), max(1.0, f32::NAN)), (1.0, 1.0));
        assert_eq!(bits(min(f32::NAN, -f32::NAN)), NAN);
    }
}
