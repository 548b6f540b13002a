//! Loads, stores, atomics and address conversions.

use super::{Decoded, Reject};
use crate::instruction::{Atomic, Instruction, Op};
use crate::memory::{SHARED_WINDOW, STACK_WINDOW};
use crate::module::{Type, TypeKind};
use crate::parse::body::{Body, Statement};
use crate::parse::operand::Address;

/// State space of an access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Generic,
    /// Global and constant memory.
    Global,
    /// Local memory and parameters: the thread's stack.
    Stack,
    Shared,
}

/// Hints and orderings, which change nothing where threads run one after the other.
const HINTS: [&str; 24] = [
    "nc", "volatile", "relaxed", "acquire", "release", "acq_rel", "weak", "mmio", "cta", "cluster",
    "gpu", "sys", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified", "level", "noftz", "seq_cst",
    "aligned",
];

/// What the modifiers of an access say.
struct Access {
    space: Where,
    elements: u8,
    rest: Vec<String>,
}

fn access(statement: &Statement<'_>) -> Access {
    let mut access = Access { space: Where::Generic, elements: 1, rest: Vec::new() };
    for modifier in statement.modifiers() {
        match *modifier {
            "global" | "const" => access.space = Where::Global,
            "local" | "param" | "param::entry" | "param::func" => access.space = Where::Stack,
            "shared" | "shared::cta" => access.space = Where::Shared,
            "v2" => access.elements = 2,
            "v4" => access.elements = 4,
            hint if HINTS.contains(&hint)
                || hint.starts_with("L1::")
                || hint.starts_with("L2::") => {}
            other => access.rest.push(other.to_owned()),
        }
    }
    access
}

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    match statement.parts[0] {
        "cvta" => cvta(body, statement),
        "isspacep" => is_space(body, statement),
        "atom" | "red" => atomic(body, statement),
        "st" => store(body, statement),
        _ => load(body, statement),
    }
}

fn plain_type(statement: &Statement<'_>) -> Decoded<Type> {
    statement.kind().filter(|kind| kind.bits >= 8).ok_or(Reject::Unsupported)
}

fn load<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let (kind, access) = (plain_type(statement)?, access(statement));
    if !access.rest.is_empty() {
        return Err(Reject::Unsupported);
    }
    statement.expect_operands(2)?;
    let Address { base, offset } = body.address(statement.operand(1)?)?;
    let (one, many) = match access.space {
        Where::Generic | Where::Global => (Op::Load, Op::LoadMany),
        Where::Stack => (Op::LoadStack, Op::LoadStackMany),
        Where::Shared => (Op::LoadShared, Op::LoadSharedMany),
    };
    let flags = u8::from(kind.is_signed()) | (u8::from(access.space == Where::Global) << 1);
    let template =
        Instruction { a: base, imm: offset, bits: kind.bits, flags, ..Instruction::new(one) };
    let Some(parts) = Body::vector(statement.operand(0)?) else {
        if access.elements != 1 {
            return Err(Reject::Wrong("a vector in braces expected".into()));
        }
        let (d, width) = body.target(statement.operand(0)?)?;
        body.emit(Instruction { d, c: u32::from(width), ..template });
        return Ok(());
    };
    let mut slots = Vec::new();
    let mut widest = 8;
    for part in &parts {
        let (slot, width) = body.target(part)?;
        slots.push(slot);
        widest = widest.max(width);
    }
    if slots.len() != usize::from(access.elements) {
        return Err(Reject::Wrong("the vector has another length".into()));
    }
    let d = body.function.lists.len() as u32;
    body.function.lists.extend(slots);
    body.emit(Instruction {
        op: many,
        d,
        c: u32::from(widest),
        count: access.elements,
        ..template
    });
    Ok(())
}

fn store<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let (kind, access) = (plain_type(statement)?, access(statement));
    if !access.rest.is_empty() {
        return Err(Reject::Unsupported);
    }
    statement.expect_operands(2)?;
    let Address { base, offset } = body.address(statement.operand(0)?)?;
    let (one, many) = match access.space {
        Where::Generic | Where::Global => (Op::Store, Op::StoreMany),
        Where::Stack => (Op::StoreStack, Op::StoreStackMany),
        Where::Shared => (Op::StoreShared, Op::StoreSharedMany),
    };
    let flags = u8::from(access.space == Where::Global) << 1;
    let template =
        Instruction { a: base, imm: offset, bits: kind.bits, flags, ..Instruction::new(one) };
    let Some(parts) = Body::vector(statement.operand(1)?) else {
        if access.elements != 1 {
            return Err(Reject::Wrong("a vector in braces expected".into()));
        }
        let b = body.source(statement.operand(1)?, kind.bits)?;
        body.emit(Instruction { b, ..template });
        return Ok(());
    };
    if parts.len() != usize::from(access.elements) {
        return Err(Reject::Wrong("the vector has another length".into()));
    }
    let mut slots = Vec::new();
    for part in &parts {
        slots.push(body.source(part, kind.bits)?);
    }
    let d = body.function.lists.len() as u32;
    body.function.lists.extend(slots);
    body.emit(Instruction { op: many, d, count: access.elements, ..template });
    Ok(())
}

fn atomic<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let (kind, access) = (plain_type(statement)?, access(statement));
    let [what] = &access.rest[..] else { return Err(Reject::Unsupported) };
    if kind.kind == TypeKind::Float || kind.bits < 32 || access.elements != 1 {
        return Err(Reject::Unsupported);
    }
    let what = match (what.as_str(), kind.is_signed()) {
        ("add", _) => Atomic::Add,
        ("min", true) => Atomic::MinS,
        ("max", true) => Atomic::MaxS,
        ("min", false) => Atomic::MinU,
        ("max", false) => Atomic::MaxU,
        ("and", _) => Atomic::And,
        ("or", _) => Atomic::Or,
        ("xor", _) => Atomic::Xor,
        ("exch", _) => Atomic::Exchange,
        ("cas", _) => Atomic::CompareExchange,
        ("inc", _) => Atomic::Increment,
        ("dec", _) => Atomic::Decrement,
        _ => return Err(Reject::Unsupported),
    };
    // A reduction has no result; otherwise they are the same.
    let first = usize::from(statement.parts[0] == "atom");
    let sources = if what == Atomic::CompareExchange { 2 } else { 1 };
    statement.expect_operands(first + 1 + sources)?;
    let d = if first == 1 {
        body.target(statement.operand(0)?)?.0
    } else {
        crate::instruction::SLOT_SINK
    };
    let Address { base, offset } = body.address(statement.operand(first)?)?;
    let b = body.source(statement.operand(first + 1)?, kind.bits)?;
    let c = if sources == 2 { body.source(statement.operand(first + 2)?, kind.bits)? } else { b };
    let count = match access.space {
        Where::Generic | Where::Global => 0,
        Where::Shared => 1,
        Where::Stack => return Err(Reject::Unsupported),
    };
    let template =
        Instruction { flags: what as u8, bits: kind.bits, count, ..Instruction::new(Op::Atomic) };
    body.emit(Instruction { d, a: base, b, c, imm: offset, ..template });
    Ok(())
}

/// The generic window of a state space, 0 for global memory, which has the generic addresses.
fn window(name: &str) -> Decoded<u64> {
    match name {
        "global" | "const" => Ok(0),
        "local" | "param" | "param::entry" => Ok(STACK_WINDOW),
        "shared" | "shared::cta" => Ok(SHARED_WINDOW),
        _ => Err(Reject::Unsupported),
    }
}

fn cvta<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    statement.expect_operands(2)?;
    let (op, space) = match statement.modifiers() {
        ["to", space] => (Op::FromGeneric, window(space)?),
        [space] => (Op::ToGeneric, window(space)?),
        _ => return Err(Reject::Unsupported),
    };
    let op = if space == 0 { Op::Move } else { op };
    let imm = if space == 0 { u64::MAX } else { space };
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, 64)?;
    body.emit(Instruction { d, a, imm, ..Instruction::new(op) });
    Ok(())
}

fn is_space<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    statement.expect_operands(2)?;
    let space = window(statement.parts.last().copied().unwrap_or_default())?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, 64)?;
    body.emit(Instruction {
        d,
        a,
        imm: space,
        flags: u8::from(space == 0),
        ..Instruction::new(Op::IsSpace)
    });
    Ok(())
}
