//! Integer, bit and predicate instructions.

use super::float::select;
use super::{Decoded, Reject, emit_comparison, emit_plain};
use crate::instruction::{Instruction, Op, SLOT_CARRY};
use crate::module::Type;
use crate::parse::body::{Body, Statement};

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let kind = statement.kind().ok_or(Reject::Unsupported)?;
    let of = |op| Instruction { bits: kind.bits, imm: kind.mask(), ..Instruction::new(op) };
    let by_sign = |signed, unsigned| of(if kind.is_signed() { signed } else { unsigned });
    let (name, modifiers) = (statement.parts[0], statement.modifiers());
    let (template, sources) = match (name, modifiers) {
        ("add", []) => (of(Op::Add), 2),
        ("sub", []) => (of(Op::Sub), 2),
        ("add" | "addc" | "sub" | "subc" | "mad" | "madc", [.., "cc"] | ["hi" | "lo"] | [])
            if name.ends_with('c') || modifiers.last() == Some(&"cc") =>
        {
            return carry(body, statement, kind);
        }
        ("mul", ["lo"]) => (of(Op::Mul), 2),
        ("mul", ["hi"]) => (by_sign(Op::MulHighS, Op::MulHighU), 2),
        ("mul", ["wide"]) => (wide(by_sign(Op::MulWideS, Op::Mul))?, 2),
        ("mad", ["lo"]) => (of(Op::MulAdd), 3),
        ("mad", ["hi"]) => (by_sign(Op::MulAddHighS, Op::MulAddHighU), 3),
        ("mad", ["wide"]) => {
            return mad_wide(body, statement, by_sign(Op::MulAddWideS, Op::MulAdd));
        }
        ("div", []) => (by_sign(Op::DivS, Op::DivU), 2),
        ("rem", []) => (by_sign(Op::RemS, Op::RemU), 2),
        ("min", []) => (by_sign(Op::MinS, Op::MinU), 2),
        ("max", []) => (by_sign(Op::MaxS, Op::MaxU), 2),
        ("abs", []) => (of(Op::AbsS), 1),
        ("sad", []) => (by_sign(Op::SadS, Op::SadU), 3),
        ("neg", []) => return negate(body, statement, of(Op::Sub)),
        ("and", []) => (of(Op::And), 2),
        ("or", []) => (of(Op::Or), 2),
        ("xor", []) => (of(Op::Xor), 2),
        ("not", []) => (of(Op::Not), 1),
        ("shl" | "shr", []) => return shift(body, statement, kind),
        ("shf", [_, _]) if kind.bits == 32 => (of(funnel(modifiers)?), 3),
        ("brev", []) => (of(Op::Brev), 1),
        ("popc", []) => (of(Op::Popc), 1),
        ("clz", []) => (of(Op::Clz), 1),
        ("bfind", []) => (by_sign(Op::FindS, Op::FindU), 1),
        ("bfind", ["shiftamt"]) => (Instruction { flags: 1, ..by_sign(Op::FindS, Op::FindU) }, 1),
        ("bfe", []) => (by_sign(Op::FieldS, Op::FieldU), 3),
        ("bfi", []) => return field_insert(body, statement, of(Op::FieldInsert)),
        ("prmt", []) if kind.bits == 32 => (of(Op::Permute), 3),
        ("lop3", []) if kind.bits == 32 => return logic3(body, statement),
        ("setp", [name, ..]) => {
            return emit_comparison(body, statement, |body, d| {
                compare(body, statement, kind, name, d)
            });
        }
        ("selp", []) => return select(body, statement, kind.bits),
        ("slct", [of]) => return select_sign(body, statement, of),
        _ => return Err(Reject::Unsupported),
    };
    emit_plain(body, statement, template, sources)
}

/// The result is twice as wide as the operands.
fn wide(template: Instruction) -> Decoded<Instruction> {
    match template.bits {
        16 | 32 => {
            Ok(Instruction { imm: u64::MAX >> (64 - 2 * u32::from(template.bits)), ..template })
        }
        _ => Err(Reject::Wrong("only 16 and 32 bits have a wide product".into())),
    }
}

fn mad_wide<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    template: Instruction,
) -> Decoded<()> {
    let template = wide(template)?;
    statement.expect_operands(4)?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, template.bits)?;
    let b = body.source(statement.operand(2)?, template.bits)?;
    let c = body.source(statement.operand(3)?, template.bits * 2)?;
    body.emit(Instruction { d, a, b, c, ..template });
    Ok(())
}

fn negate<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    template: Instruction,
) -> Decoded<()> {
    statement.expect_operands(2)?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let b = body.source(statement.operand(1)?, template.bits)?;
    let a = body.constant(0)?;
    body.emit(Instruction { d, a, b, ..template });
    Ok(())
}

fn shift<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>, kind: Type) -> Decoded<()> {
    statement.expect_operands(3)?;
    let op = match (statement.parts[0], kind.is_signed()) {
        ("shl", _) => Op::Shl,
        (_, true) => Op::ShrS,
        (_, false) => Op::ShrU,
    };
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, kind.bits)?;
    let b = body.source(statement.operand(2)?, 32)?;
    body.emit(Instruction { d, a, b, bits: kind.bits, imm: kind.mask(), ..Instruction::new(op) });
    Ok(())
}

fn funnel(modifiers: &[&str]) -> Decoded<Op> {
    match modifiers {
        ["l", "wrap"] => Ok(Op::FunnelL),
        ["r", "wrap"] => Ok(Op::FunnelR),
        ["l", "clamp"] => Ok(Op::FunnelLClamp),
        ["r", "clamp"] => Ok(Op::FunnelRClamp),
        _ => Err(Reject::Unsupported),
    }
}

/// `add.cc`, `addc`, `mad.lo.cc`, `madc.hi` and their like: a product, where there is one, then a
/// sum with carries.
fn carry<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>, kind: Type) -> Decoded<()> {
    let of = |op| Instruction { bits: kind.bits, imm: kind.mask(), ..Instruction::new(op) };
    let name = statement.parts[0];
    let takes = name.ends_with('c');
    let gives = statement.modifiers().last() == Some(&"cc");
    let flags = u8::from(takes) | (u8::from(gives) << 1);
    let (d, _) = body.target(statement.operand(0)?)?;
    let mut slots = Vec::new();
    for operand in &statement.operands[1..] {
        slots.push(body.source(operand, kind.bits)?);
    }
    let (a, b) = match (name.starts_with("mad"), &slots[..]) {
        (false, [a, b]) => (*a, *b),
        (true, [a, b, c]) => {
            let product = body.new_slot(0, kind.bits)?;
            let op = match (statement.modifiers().first(), kind.is_signed()) {
                (Some(&"lo"), _) => Op::Mul,
                (Some(&"hi"), true) => Op::MulHighS,
                (Some(&"hi"), false) => Op::MulHighU,
                _ => return Err(Reject::Unsupported),
            };
            body.emit(Instruction { d: product, a: *a, b: *b, ..of(op) });
            (product, *c)
        }
        _ => return Err(Reject::Wrong(format!("`{name}` has other operands"))),
    };
    let op = if name.starts_with("sub") { Op::SubCarry } else { Op::AddCarry };
    body.emit(Instruction { d, a, b, c: SLOT_CARRY, flags, ..of(op) });
    Ok(())
}

/// Insert the low bits of a into b at a place and of a length: four sources, so the last two share
/// a list.
fn field_insert<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    template: Instruction,
) -> Decoded<()> {
    statement.expect_operands(5)?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, template.bits)?;
    let b = body.source(statement.operand(2)?, template.bits)?;
    let place = body.source(statement.operand(3)?, 32)?;
    let length = body.source(statement.operand(4)?, 32)?;
    let c = body.function.lists.len() as u32;
    body.function.lists.extend([place, length]);
    body.emit(Instruction { d, a, b, c, ..template });
    Ok(())
}

fn logic3<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    statement.expect_operands(5)?;
    let [table] = statement.operand(4)? else { return Err(Reject::Unsupported) };
    let table = crate::parse::cursor::number(table.text).and_then(|table| u8::try_from(table).ok());
    let flags =
        table.ok_or_else(|| Reject::Wrong("the table of `lop3` is a number below 256".into()))?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, 32)?;
    let b = body.source(statement.operand(2)?, 32)?;
    let c = body.source(statement.operand(3)?, 32)?;
    body.emit(Instruction { d, a, b, c, flags, ..Instruction::new(Op::Logic3) });
    Ok(())
}

fn compare<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    kind: Type,
    name: &str,
    d: u32,
) -> Decoded<()> {
    let a = body.source(statement.operand(1)?, kind.bits)?;
    let b = body.source(statement.operand(2)?, kind.bits)?;
    let signed = kind.is_signed();
    let (op, a, b) = match (name, signed) {
        ("eq", _) => (Op::Eq, a, b),
        ("ne", _) => (Op::Ne, a, b),
        ("lt", true) => (Op::LtS, a, b),
        ("le", true) => (Op::LeS, a, b),
        ("gt", true) => (Op::LtS, b, a),
        ("ge", true) => (Op::LeS, b, a),
        ("lt" | "lo", false) => (Op::LtU, a, b),
        ("le" | "ls", false) => (Op::LeU, a, b),
        ("gt" | "hi", false) => (Op::LtU, b, a),
        ("ge" | "hs", false) => (Op::LeU, b, a),
        _ => return Err(Reject::Wrong(format!("`{name}` compares nothing"))),
    };
    body.emit(Instruction { d, a, b, bits: kind.bits, ..Instruction::new(op) });
    Ok(())
}

/// `slct.u32.s32`: the sign of the third source chooses.
fn select_sign<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>, of: &str) -> Decoded<()> {
    let bits = Type::named(of).ok_or(Reject::Unsupported)?.bits;
    if statement.parts.last() != Some(&"s32") {
        return Err(Reject::Unsupported);
    }
    statement.expect_operands(4)?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, bits)?;
    let b = body.source(statement.operand(2)?, bits)?;
    let c = body.source(statement.operand(3)?, 32)?;
    body.emit(Instruction { d, a, b, c, ..Instruction::new(Op::SelectSign) });
    Ok(())
}
