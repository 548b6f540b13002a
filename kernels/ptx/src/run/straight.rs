//! The inner loop: instructions one after the other until a thread calls, ends or waits.
//!
//! Frequent instructions stand here, one line each; the others are `rare`. Slots hold values
//! without bits above their width, so that most operators need no masks on what they read.

use super::float::{bits, max, min, round};
use super::integer::{shift_left, shift_right, shift_right_signed, signed};
use super::{Core, Next, Pause};
use crate::Cause;
use crate::instruction::{Function, Op};

/// Runs one frame from `at`, which afterwards is the next instruction. `r` are its slots. Only
/// `WATCHED` it notes what ran, and what it touched.
///
/// # Errors
/// The [`Cause`] of a fault in the instruction before `at`.
pub(super) fn straight<const WATCHED: bool>(
    core: &mut Core<'_>,
    function: &Function,
    index: usize,
    r: &mut [u64],
    stack: &mut [u8],
    at: &mut usize,
) -> Result<Pause, Cause> {
    let mut next = *at;
    let mut steps = core.steps;
    // Where the run of instructions without a jump has begun.
    let mut from = next;
    // The loop ends in this value, so that both counters are put back in one place.
    let outcome = loop {
        let Some(i) = function.code.get(next) else { break Ok(Pause::Return) };
        if WATCHED {
            core.watch(i, index, next, r);
        }
        next += 1;
        steps += 1;
        macro_rules! int {
            ($slot:ident) => {
                r[i.$slot as usize]
            };
        }
        macro_rules! flt {
            ($slot:ident) => {
                f32::from_bits(r[i.$slot as usize] as u32)
            };
        }
        macro_rules! jump {
            ($condition:expr) => {{
                if $condition {
                    if WATCHED {
                        core.note_run(index, from, next);
                        from = i.imm as usize;
                    }
                    next = i.imm as usize;
                    if steps >= core.pause_at {
                        break Ok(Pause::Check);
                    }
                }
                continue;
            }};
        }
        let result = match i.op {
            Op::AddF => bits(flt!(a) + flt!(b)),
            Op::SubF => bits(flt!(a) - flt!(b)),
            Op::MulF => bits(flt!(a) * flt!(b)),
            Op::FmaF => bits(flt!(a).mul_add(flt!(b), flt!(c))),
            Op::DivF => bits(flt!(a) / flt!(b)),
            Op::SqrtF => bits(flt!(a).sqrt()),
            Op::NegF => (int!(a) ^ 0x8000_0000) & 0xFFFF_FFFF,
            Op::AbsF => int!(a) & 0x7FFF_FFFF,
            Op::MinF => bits(min(flt!(a), flt!(b))),
            Op::MaxF => bits(max(flt!(a), flt!(b))),
            Op::RoundF => bits(round(flt!(a), i.flags)),
            Op::EqF => u64::from(flt!(a) == flt!(b)),
            Op::LtF => u64::from(flt!(a) < flt!(b)),
            Op::LeF => u64::from(flt!(a) <= flt!(b)),
            Op::NotEqF => u64::from(flt!(a) != flt!(b)),
            Op::NotLtF => 1 - u64::from(flt!(a) < flt!(b)),
            Op::NotLeF => 1 - u64::from(flt!(a) <= flt!(b)),
            Op::Add => int!(a).wrapping_add(int!(b)) & i.imm,
            Op::Sub => int!(a).wrapping_sub(int!(b)) & i.imm,
            Op::Mul => int!(a).wrapping_mul(int!(b)) & i.imm,
            Op::MulAdd => int!(a).wrapping_mul(int!(b)).wrapping_add(int!(c)) & i.imm,
            Op::MulWideS => {
                signed(int!(a), i.bits).wrapping_mul(signed(int!(b), i.bits)) as u64 & i.imm
            }
            Op::And => int!(a) & int!(b) & i.imm,
            Op::Or => (int!(a) | int!(b)) & i.imm,
            Op::Xor => (int!(a) ^ int!(b)) & i.imm,
            Op::Not => !int!(a) & i.imm,
            Op::Shl => shift_left(int!(a), int!(b), i.bits) & i.imm,
            Op::ShrU => shift_right(int!(a), int!(b), i.bits),
            Op::ShrS => shift_right_signed(int!(a), int!(b), i.bits) & i.imm,
            Op::Eq => u64::from(int!(a) == int!(b)),
            Op::Ne => u64::from(int!(a) != int!(b)),
            Op::LtU => u64::from(int!(a) < int!(b)),
            Op::LeU => u64::from(int!(a) <= int!(b)),
            Op::LtS => u64::from(signed(int!(a), i.bits) < signed(int!(b), i.bits)),
            Op::LeS => u64::from(signed(int!(a), i.bits) <= signed(int!(b), i.bits)),
            Op::Move => int!(a) & i.imm,
            Op::Select => {
                if int!(c) & 1 == 1 {
                    int!(a)
                } else {
                    int!(b)
                }
            }
            Op::FloatFromU => u64::from((int!(a) as f32).to_bits()),
            Op::Branch => jump!(true),
            Op::BranchIf => jump!(int!(a) & 1 == 1),
            Op::BranchUnless => jump!(int!(a) & 1 == 0),
            Op::Load => match core.load(i, r, stack) {
                Ok(value) => value,
                Err(cause) => break Err(cause),
            },
            Op::Store => match core.store(i, r, stack) {
                Ok(()) => continue,
                Err(cause) => break Err(cause),
            },
            _ => match core.rare(function, i, r, stack) {
                Ok(Next::Value(value)) => value,
                Ok(Next::Done) => continue,
                Ok(Next::Pause(pause)) => break Ok(pause),
                Err(cause) => break Err(cause),
            },
        };
        r[i.d as usize] = result;
    };
    if WATCHED {
        core.note_run(index, from, next);
    }
    core.steps = steps;
    *at = next;
    outcome
}
