//! 64-bit floats, for machines that allow them.

use super::float::{approximate, to_signed, to_unsigned};
use super::integer::signed;
use crate::Cause;
use crate::instruction::{Instruction, Op, rounding};

/// The NaN that every 64-bit arithmetic instruction gives.
const NAN: u64 = 0xFFF8_0000_0000_0000;

fn bits(value: f64) -> u64 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

fn round(value: f64, mode: u8) -> f64 {
    match mode {
        rounding::ZERO => value.trunc(),
        rounding::DOWN => value.floor(),
        rounding::UP => value.ceil(),
        _ => value.round_ties_even(),
    }
}

/// The smaller or the larger of two: a number rather than a NaN, and -0 below +0.
fn extreme(a: f64, b: f64, largest: bool) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() == largest {
                b
            } else {
                a
            }
        }
        _ => {
            if (a < b) == largest {
                b
            } else {
                a
            }
        }
    }
}

/// Runs one instruction on 64-bit floats.
///
/// # Errors
/// [`Cause::Unsupported`] for any other.
pub(super) fn run(i: &Instruction, r: &[u64]) -> Result<u64, Cause> {
    let double = |slot: u32| f64::from_bits(r[slot as usize]);
    let (a, b, c) = (double(i.a), double(i.b), double(i.c));
    let single = f32::from_bits(r[i.a as usize] as u32);
    Ok(match i.op {
        Op::AddD => bits(a + b),
        Op::SubD => bits(a - b),
        Op::MulD => bits(a * b),
        Op::FmaD => bits(a.mul_add(b, c)),
        Op::DivD => bits(a / b),
        Op::SqrtD => bits(a.sqrt()),
        Op::NegD => r[i.a as usize] ^ (1 << 63),
        Op::AbsD => r[i.a as usize] & !(1 << 63),
        Op::MinD => bits(extreme(a, b, false)),
        Op::MaxD => bits(extreme(a, b, true)),
        Op::RoundD => bits(round(a, i.flags)),
        Op::EqD => u64::from(a == b),
        Op::LtD => u64::from(a < b),
        Op::LeD => u64::from(a <= b),
        Op::NotEqD => u64::from(a != b),
        Op::NotLtD => u64::from(a.is_nan() || b.is_nan() || a >= b),
        Op::NotLeD => u64::from(a.is_nan() || b.is_nan() || a > b),
        Op::OrderedD => u64::from(!a.is_nan() && !b.is_nan()),
        Op::DoubleFromU => (r[i.a as usize] as f64).to_bits(),
        Op::DoubleFromS => (signed(r[i.a as usize], i.bits) as f64).to_bits(),
        // NaN gives the top bit alone, cut to the width of the result.
        Op::UFromDouble if a.is_nan() => (1 << (i.count - 1)) & i.imm,
        Op::SFromDouble if a.is_nan() => (1 << (i.count - 1)) & i.imm,
        Op::UFromDouble => to_unsigned(round(a, i.flags), i.count) & i.imm,
        Op::SFromDouble => to_signed(round(a, i.flags), i.count) & i.imm,
        Op::DoubleFromFloat => bits(f64::from(single)),
        Op::FloatFromDouble => super::float::bits(a as f32),
        Op::ApproximateD => bits(approximate(a, b, i.flags)),
        _ => return Err(Cause::Unsupported),
    })
}
