//! `cvt` between types, and `mov` with its packing and unpacking of vectors.

use super::{Decoded, Reject};
use crate::instruction::{Instruction, Op, rounding};
use crate::module::{Type, TypeKind};
use crate::parse::body::{Body, Statement};

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    statement.expect_operands(2)?;
    let [modifiers @ .., to, from] = &statement.parts[1..] else { return Err(Reject::Unsupported) };
    let (Some(to), Some(from)) = (Type::named(to), Type::named(from)) else {
        return Err(Reject::Unsupported);
    };
    let template = conversion(modifiers, to, from).ok_or(Reject::Unsupported)?;
    let (d, width) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, from.bits)?;
    body.emit(Instruction { d, a, imm: u64::MAX >> (64 - u32::from(width)), ..template });
    Ok(())
}

/// The instruction from one type to another; none where it is not modelled.
fn conversion(modifiers: &[&str], to: Type, from: Type) -> Option<Instruction> {
    let of = |op| Instruction { bits: from.bits, count: to.bits, ..Instruction::new(op) };
    let is_float = |kind: Type| kind.kind == TypeKind::Float;
    let wide = |kind: Type| kind.bits == 64;
    let half = |kind: Type| is_float(kind) && kind.bits == 16;
    if half(to) || half(from) {
        return match (from.bits, to.bits, modifiers) {
            (16, 32, []) if is_float(to) => Some(of(Op::FloatFromHalf)),
            (32, 16, ["rn"]) if is_float(from) => Some(of(Op::HalfFromFloat)),
            _ => None,
        };
    }
    Some(match (is_float(from), is_float(to)) {
        (false, false) if modifiers.is_empty() => {
            let flags = u8::from(from.is_signed()) | (u8::from(to.is_signed()) << 1);
            Instruction { flags, ..of(Op::Convert) }
        }
        (false, true) if modifiers == ["rn"] => of(match (from.is_signed(), wide(to)) {
            (true, false) => Op::FloatFromS,
            (false, false) => Op::FloatFromU,
            (true, true) => Op::DoubleFromS,
            (false, true) => Op::DoubleFromU,
        }),
        (true, false) => {
            let flags = integer_rounding(modifiers)?;
            let op = match (to.is_signed(), wide(from)) {
                (true, false) => Op::SFromFloat,
                (false, false) => Op::UFromFloat,
                (true, true) => Op::SFromDouble,
                (false, true) => Op::UFromDouble,
            };
            Instruction { flags, ..of(op) }
        }
        (true, true) => match (wide(from), wide(to), modifiers) {
            (false, true, []) => of(Op::DoubleFromFloat),
            (true, false, ["rn"]) => of(Op::FloatFromDouble),
            (false, false, ["sat"]) => of(Op::SaturateF),
            (false, false, []) | (true, true, []) => of(Op::Move),
            (false, false, _) => {
                Instruction { flags: integer_rounding(modifiers)?, ..of(Op::RoundF) }
            }
            (true, true, _) => {
                Instruction { flags: integer_rounding(modifiers)?, ..of(Op::RoundD) }
            }
            _ => return None,
        },
        _ => return None,
    })
}

fn integer_rounding(modifiers: &[&str]) -> Option<u8> {
    match modifiers {
        ["rni"] => Some(rounding::NEAREST),
        ["rzi"] => Some(rounding::ZERO),
        ["rmi"] => Some(rounding::DOWN),
        ["rpi"] => Some(rounding::UP),
        _ => None,
    }
}

/// `mov`: a value, an address, or a vector to or from one register.
pub(super) fn decode_move<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let kind = statement.kind().ok_or(Reject::Unsupported)?;
    statement.expect_operands(2)?;
    let (to, from) = (statement.operand(0)?, statement.operand(1)?);
    if let Some(parts) = Body::vector(to) {
        let a = body.source(from, kind.bits)?;
        let mut slots = Vec::new();
        for part in &parts {
            slots.push(body.target(part)?.0);
        }
        return vector(body, kind, Instruction { a, ..Instruction::new(Op::Unpack) }, &slots);
    }
    let (d, _) = body.target(to)?;
    if let Some(parts) = Body::vector(from) {
        let part_bits = part_bits(kind, parts.len())?;
        let mut slots = Vec::new();
        for part in &parts {
            slots.push(body.source(part, part_bits)?);
        }
        return vector(body, kind, Instruction { a: d, ..Instruction::new(Op::Pack) }, &slots);
    }
    let a = body.source(from, kind.bits)?;
    body.emit(Instruction {
        d,
        a,
        bits: kind.bits,
        imm: kind.mask(),
        ..Instruction::new(Op::Move)
    });
    Ok(())
}

fn part_bits(kind: Type, parts: usize) -> Decoded<u8> {
    match parts {
        2 | 4 if usize::from(kind.bits) / parts >= 8 => Ok(kind.bits / parts as u8),
        _ => Err(Reject::Wrong("a vector of `mov` has 2 or 4 parts of at least 8 bits".into())),
    }
}

fn vector(
    body: &mut Body<'_, '_>,
    kind: Type,
    template: Instruction,
    slots: &[u32],
) -> Decoded<()> {
    let bits = part_bits(kind, slots.len())?;
    let d = body.function.lists.len() as u32;
    body.function.lists.extend_from_slice(slots);
    body.emit(Instruction {
        d,
        bits,
        count: slots.len() as u8,
        imm: u64::MAX >> (64 - u32::from(bits)),
        ..template
    });
    Ok(())
}
