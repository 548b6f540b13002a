//! What each instruction means: statements become decoded instructions. Knows no text and runs
//! nothing.

mod control;
mod convert;
mod float;
mod integer;
mod memory;
mod warp;

use crate::ParseError;
use crate::instruction::{Instruction, Op};
use crate::module::{Type, TypeKind};
use crate::parse::body::{Body, Statement};
use crate::text::Token;

pub(crate) use float::approximate;

/// Why a statement has no decoded form.
pub(crate) enum Reject {
    /// PTX, but nothing that the machine models.
    Unsupported,
    /// No PTX.
    Wrong(String),
    /// A limit was reached.
    Limit(ParseError),
}

pub(crate) type Decoded<T> = Result<T, Reject>;

impl From<ParseError> for Reject {
    fn from(error: ParseError) -> Reject {
        Reject::Limit(error)
    }
}

/// Decodes one statement; what the machine does not model becomes an instruction that faults.
pub(crate) fn statement<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
) -> Result<(), ParseError> {
    if warp::is_exchange(&statement.parts) {
        body.function.exchange.get_or_insert_with(|| statement.parts.join("."));
    }
    match decode(body, statement) {
        Ok(()) => Ok(()),
        Err(Reject::Unsupported) => {
            body.emit(Instruction::new(Op::Unsupported));
            Ok(())
        }
        Err(Reject::Wrong(what)) => Err(ParseError::new(statement.line, what)),
        Err(Reject::Limit(error)) => Err(error),
    }
}

fn decode<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    match statement.parts[0] {
        "ld" | "ldu" | "st" | "atom" | "red" | "cvta" | "isspacep" => {
            memory::decode(body, statement)
        }
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" => {
            control::decode(body, statement)
        }
        "membar" | "fence" | "prefetch" | "prefetchu" | "nanosleep" => {
            body.emit(Instruction::new(Op::Nothing));
            Ok(())
        }
        "bar" | "barrier" | "shfl" | "vote" => warp::decode(body, statement),
        "cvt" => convert::decode(body, statement),
        "mov" => convert::decode_move(body, statement),
        _ => match statement.kind() {
            Some(Type { kind: TypeKind::Float, bits: 32 | 64 }) => float::decode(body, statement),
            Some(Type { kind: TypeKind::Float, .. }) | None => Err(Reject::Unsupported),
            Some(_) => integer::decode(body, statement),
        },
    }
}

impl<'a> Statement<'a> {
    /// The last modifier, as a type.
    pub(crate) fn kind(&self) -> Option<Type> {
        self.parts.last().and_then(|name| Type::named(name))
    }

    /// What stands between the opcode and the last modifier.
    pub(crate) fn modifiers(&self) -> &[&'a str] {
        let last = self.parts.len().max(2) - 1;
        self.parts.get(1..last).unwrap_or_default()
    }

    /// Refuses another number of operands.
    pub(crate) fn expect_operands(&self, count: usize) -> Decoded<()> {
        match self.operands.len() == count {
            true => Ok(()),
            false => Err(Reject::Wrong(format!("`{}` has {count} operands", self.parts[0]))),
        }
    }

    pub(crate) fn operand(&self, at: usize) -> Decoded<&'a [Token<'a>]> {
        let found = self.operands.get(at).copied().filter(|operand| !operand.is_empty());
        found.ok_or_else(|| Reject::Wrong(format!("`{}` lacks operand {}", self.parts[0], at + 1)))
    }
}

/// Emits `d = op(a, b, c)` for a statement whose sources are all as wide as its type.
pub(crate) fn emit_plain<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    template: Instruction,
    sources: usize,
) -> Decoded<()> {
    statement.expect_operands(sources + 1)?;
    let mut slots = [0; 3];
    for (slot, operand) in slots.iter_mut().zip(&statement.operands[1..]) {
        *slot = body.source(operand, template.bits)?;
    }
    let (d, _) = body.target(statement.operand(0)?)?;
    let [a, b, c] = slots;
    body.emit(Instruction { d, a, b, c, ..template });
    Ok(())
}

/// Where a comparison puts its result: `p`, or `p|q`; then joins it with a third operand, as
/// `.and`, `.or` and `.xor` ask.
pub(crate) fn emit_comparison<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    comparison: impl FnOnce(&mut Body<'a, '_>, u32) -> Decoded<()>,
) -> Decoded<()> {
    let (name, join) = match statement.modifiers() {
        [name] => (name, None),
        [name, "and"] => (name, Some(Op::And)),
        [name, "or"] => (name, Some(Op::Or)),
        [name, "xor"] => (name, Some(Op::Xor)),
        _ => return Err(Reject::Unsupported),
    };
    debug_assert!(!name.is_empty());
    statement.expect_operands(if join.is_some() { 4 } else { 3 })?;
    let (first, second) = pair(statement.operand(0)?);
    let (d, _) = body.target(first)?;
    if join.is_none() && second.is_none() {
        return comparison(body, d);
    }
    let bit = |op| Instruction { bits: 1, imm: 1, ..Instruction::new(op) };
    let (result, opposite) = (body.new_slot(0, 1)?, body.new_slot(0, 1)?);
    let one = body.constant(1)?;
    let other = match join {
        Some(_) => Some(body.source(statement.operand(3)?, 1)?),
        None => None,
    };
    comparison(body, result)?;
    body.emit(Instruction { d: opposite, a: result, b: one, ..bit(Op::Xor) });
    if let (Some(join), Some(other)) = (join, other) {
        body.emit(Instruction { d: result, a: result, b: other, ..bit(join) });
        body.emit(Instruction { d: opposite, a: opposite, b: other, ..bit(join) });
    }
    body.emit(Instruction { d, a: result, ..bit(Op::Move) });
    if let Some(second) = second {
        let (q, _) = body.target(second)?;
        body.emit(Instruction { d: q, a: opposite, ..bit(Op::Move) });
    }
    Ok(())
}

/// `p|q` as two operands.
pub(crate) fn pair<'a>(operand: &'a [Token<'a>]) -> (&'a [Token<'a>], Option<&'a [Token<'a>]>) {
    match operand.iter().position(|token| token.is("|")) {
        Some(at) => (&operand[..at], Some(&operand[at + 1..])),
        None => (operand, None),
    }
}
