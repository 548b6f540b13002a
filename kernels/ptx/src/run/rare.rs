//! Instructions that are not worth a place in the inner loop.

use super::float::{approximate, bits, directed, round, test, to_signed, to_unsigned};
use super::integer::{
    divide, field, field_insert, field_signed, find, funnel, logic, mask, mul_high,
    mul_high_signed, permute, remainder, signed,
};
use super::{Core, Next, Pause, double, half};
use crate::Cause;
use crate::instruction::{Function, Instruction, Op, SLOT_CARRY};
use crate::memory;

impl Core<'_> {
    /// Runs one instruction that the inner loop does not know.
    pub(super) fn rare(
        &mut self,
        function: &Function,
        i: &Instruction,
        r: &mut [u64],
        stack: &mut [u8],
    ) -> Result<Next, Cause> {
        let done = |()| Next::Done;
        match i.op {
            Op::LoadStack => self.load_stack(i, r, stack).map(Next::Value),
            Op::LoadShared => self.load_shared(i, r).map(Next::Value),
            Op::StoreStack => self.store_stack(i, r, stack).map(done),
            Op::StoreShared => self.store_shared(i, r).map(done),
            Op::LoadMany | Op::LoadStackMany | Op::LoadSharedMany => {
                self.load_many(function, i, r, stack).map(done)
            }
            Op::StoreMany | Op::StoreStackMany | Op::StoreSharedMany => {
                self.store_many(function, i, r, stack).map(done)
            }
            Op::Atomic => self.atomic(i, r, stack).map(Next::Value),
            Op::Pack | Op::Unpack => {
                pack(function, i, r);
                Ok(Next::Done)
            }
            Op::BranchTable => Ok(Next::Pause(Pause::Table)),
            Op::Call => Ok(Next::Pause(Pause::Call(i.imm as u32))),
            Op::Return => Ok(Next::Pause(Pause::Return)),
            Op::Exit => Ok(Next::Pause(Pause::Exit)),
            Op::Barrier | Op::WarpBarrier | Op::Shuffle | Op::Vote => Ok(Next::Pause(Pause::Wait)),
            Op::Trap => Err(Cause::Trapped),
            Op::Nothing => Ok(Next::Done),
            Op::Unsupported => Err(Cause::Unsupported),
            Op::ApproximateF | Op::ApproximateD if !self.settings.approximate => {
                Err(Cause::Unsupported)
            }
            _ => match single(i, r).or_else(|| integers(function, i, r)) {
                Some(value) => Ok(Next::Value(value)),
                None if self.settings.doubles => double::run(i, r).map(Next::Value),
                None => Err(Cause::Unsupported),
            },
        }
    }
}

/// Instructions on 32-bit floats.
fn single(i: &Instruction, r: &[u64]) -> Option<u64> {
    let float = |slot: u32| f32::from_bits(r[slot as usize] as u32);
    let (a, b) = (r[i.a as usize], r[i.b as usize]);
    Some(match i.op {
        Op::SaturateF => bits(if float(i.a) > 0.0 { float(i.a).min(1.0) } else { 0.0 }),
        Op::AddDirectedF => bits(directed(float(i.a), 1.0, float(i.b), i.flags)),
        Op::SubDirectedF => bits(directed(float(i.a), 1.0, -float(i.b), i.flags)),
        // A zero of the product's own sign leaves every product as it is.
        Op::MulDirectedF => bits(directed(
            float(i.a),
            float(i.b),
            0.0f32.copysign(float(i.a) * float(i.b)),
            i.flags,
        )),
        Op::FmaDirectedF => bits(directed(float(i.a), float(i.b), float(i.c), i.flags)),
        Op::OrderedF => u64::from(!float(i.a).is_nan() && !float(i.b).is_nan()),
        Op::TestF => u64::from(test(float(i.a), i.flags)),
        Op::CopySignF => (b & 0x7FFF_FFFF) | (a & 0x8000_0000),
        Op::FloatFromS => u64::from((signed(a, i.bits) as f32).to_bits()),
        Op::UFromFloat if float(i.a).is_nan() && i.count < 64 => 0,
        Op::UFromFloat => to_unsigned(f64::from(round(float(i.a), i.flags)), i.count) & i.imm,
        Op::SFromFloat if float(i.a).is_nan() && i.count < 64 => 0,
        Op::SFromFloat => to_signed(f64::from(round(float(i.a), i.flags)), i.count) & i.imm,
        Op::ApproximateF => {
            bits(approximate(f64::from(float(i.a)), f64::from(float(i.b)), i.flags) as f32)
        }
        _ => return None,
    })
}

/// Instructions on integers and addresses.
fn integers(function: &Function, i: &Instruction, r: &mut [u64]) -> Option<u64> {
    let (a, b, c) = (r[i.a as usize], r[i.b as usize], r[i.c as usize]);
    let (w, m) = (i.bits, i.imm);
    let (sa, sb) = (signed(a, w), signed(b, w));
    Some(match i.op {
        Op::MulHighU => mul_high(a, b, w) & m,
        Op::MulHighS => mul_high_signed(a, b, w) & m,
        Op::MulAddHighU => mul_high(a, b, w).wrapping_add(c) & m,
        Op::MulAddHighS => mul_high_signed(a, b, w).wrapping_add(c) & m,
        Op::MulAddWideS => (sa.wrapping_mul(sb) as u64).wrapping_add(c) & m,
        Op::AddCarry | Op::SubCarry => with_carry(i, r),
        Op::DivU => divide(a, b) & m,
        Op::RemU => remainder(a, b) & m,
        Op::DivS => sa.checked_div(sb).unwrap_or(if sb == 0 { -1 } else { sa }) as u64 & m,
        Op::RemS => sa.checked_rem(sb).unwrap_or(if sb == 0 { sa } else { 0 }) as u64 & m,
        Op::MinU => a.min(b),
        Op::MaxU => a.max(b),
        Op::MinS => sa.min(sb) as u64 & m,
        Op::MaxS => sa.max(sb) as u64 & m,
        Op::AbsS => sa.wrapping_abs() as u64 & m,
        Op::SadU => c.wrapping_add(a.abs_diff(b)) & m,
        Op::SadS => c.wrapping_add(sa.abs_diff(sb)) & m,
        Op::FunnelL => funnel(a, b, c, true, false),
        Op::FunnelR => funnel(a, b, c, false, false),
        Op::FunnelLClamp => funnel(a, b, c, true, true),
        Op::FunnelRClamp => funnel(a, b, c, false, true),
        Op::Brev => a.reverse_bits() >> (64 - u32::from(w)),
        Op::Popc => u64::from((a & m).count_ones()),
        Op::Clz => u64::from((a & m).leading_zeros()) + u64::from(w) - 64,
        Op::FindU => find(a & m, w, i.flags == 1),
        Op::FindS => find(if sa < 0 { !a & m } else { a & m }, w, i.flags == 1),
        Op::FieldU => field(a, b, c, w) & m,
        Op::FieldS => field_signed(a, b, c, w) & m,
        Op::FieldInsert => {
            let [start, length] = [0, 1].map(|at| r[function.lists[i.c as usize + at] as usize]);
            field_insert(a, b, start, length, w) & m
        }
        Op::Permute => permute(a, b, c),
        Op::Logic3 => logic(a, b, c, i.flags),
        Op::SelectSign => {
            if signed(c, 32) >= 0 {
                a
            } else {
                b
            }
        }
        Op::Convert => convert(i, a),
        Op::FloatFromHalf => bits(half::widen(a as u16)),
        Op::HalfFromFloat => u64::from(half::narrow(f32::from_bits(a as u32))),
        Op::ToGeneric => memory::offset(a) | m,
        Op::FromGeneric => memory::offset(a),
        Op::IsSpace if i.flags == 1 => u64::from(memory::window(a) > memory::SHARED_WINDOW),
        Op::IsSpace => u64::from(memory::window(a) == m),
        _ => return None,
    })
}

/// From one width to another, then to the width of the register.
fn convert(i: &Instruction, value: u64) -> u64 {
    let from = if i.flags & 1 == 1 { signed(value, i.bits) as u64 } else { value & mask(i.bits) };
    let to = if i.flags & 2 == 2 { signed(from, i.count) as u64 } else { from & mask(i.count) };
    to & i.imm
}

fn with_carry(i: &Instruction, r: &mut [u64]) -> u64 {
    let carry = if i.flags & 1 == 1 { r[SLOT_CARRY as usize] } else { 0 };
    let (a, b) = (i128::from(r[i.a as usize]), i128::from(r[i.b as usize]));
    let wide = match i.op {
        Op::AddCarry => a + b + i128::from(carry),
        _ => a - b - i128::from(carry),
    };
    if i.flags & 2 == 2 {
        // A carry or a borrow: what does not fit the width.
        r[SLOT_CARRY as usize] = u64::from(wide < 0 || wide > i128::from(i.imm));
    }
    wide as u64 & i.imm
}

fn pack(function: &Function, i: &Instruction, r: &mut [u64]) {
    let parts = &function.lists[i.d as usize..][..usize::from(i.count)];
    if i.op == Op::Unpack {
        let value = r[i.a as usize];
        for (at, slot) in parts.iter().enumerate() {
            r[*slot as usize] = (value >> (usize::from(i.bits) * at)) & i.imm;
        }
        return;
    }
    let packed = parts.iter().enumerate().fold(0, |packed, (at, slot)| {
        packed | ((r[*slot as usize] & i.imm) << (usize::from(i.bits) * at))
    });
    r[i.a as usize] = packed;
}
