//! Floating-point instructions: 32-bit ones exactly, 64-bit and approximate ones for machines that
//! allow them.

use super::{Decoded, Reject, emit_comparison, emit_plain};
use crate::instruction::{Instruction, Op, rounding};
use crate::parse::body::{Body, Statement};

/// Numbers of the approximate functions, in an instruction's `flags`.
pub(crate) mod approximate {
    pub(crate) const EXP2: u8 = 0;
    pub(crate) const LOG2: u8 = 1;
    pub(crate) const SIN: u8 = 2;
    pub(crate) const COS: u8 = 3;
    pub(crate) const RSQRT: u8 = 4;
    pub(crate) const TANH: u8 = 5;
    pub(crate) const DIV: u8 = 6;
    pub(crate) const RECIPROCAL: u8 = 7;
    pub(crate) const SQRT: u8 = 8;
}

/// The instructions of one width.
struct Family {
    bits: u8,
    add: Op,
    sub: Op,
    mul: Op,
    fma: Op,
    div: Op,
    sqrt: Op,
    neg: Op,
    abs: Op,
    min: Op,
    max: Op,
    equal: Op,
    less: Op,
    less_equal: Op,
    not_equal: Op,
    not_less: Op,
    not_less_equal: Op,
    ordered: Op,
    approximate: Op,
    one: u64,
}

const SINGLE: Family = Family {
    bits: 32,
    add: Op::AddF,
    sub: Op::SubF,
    mul: Op::MulF,
    fma: Op::FmaF,
    div: Op::DivF,
    sqrt: Op::SqrtF,
    neg: Op::NegF,
    abs: Op::AbsF,
    min: Op::MinF,
    max: Op::MaxF,
    equal: Op::EqF,
    less: Op::LtF,
    less_equal: Op::LeF,
    not_equal: Op::NotEqF,
    not_less: Op::NotLtF,
    not_less_equal: Op::NotLeF,
    ordered: Op::OrderedF,
    approximate: Op::ApproximateF,
    one: 0x3F80_0000,
};

const DOUBLE: Family = Family {
    bits: 64,
    add: Op::AddD,
    sub: Op::SubD,
    mul: Op::MulD,
    fma: Op::FmaD,
    div: Op::DivD,
    sqrt: Op::SqrtD,
    neg: Op::NegD,
    abs: Op::AbsD,
    min: Op::MinD,
    max: Op::MaxD,
    equal: Op::EqD,
    less: Op::LtD,
    less_equal: Op::LeD,
    not_equal: Op::NotEqD,
    not_less: Op::NotLtD,
    not_less_equal: Op::NotLeD,
    ordered: Op::OrderedD,
    approximate: Op::ApproximateD,
    one: 0x3FF0_0000_0000_0000,
};

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let family =
        if statement.kind().is_some_and(|kind| kind.bits == 64) { &DOUBLE } else { &SINGLE };
    let of = |op| Instruction {
        bits: family.bits,
        imm: u64::MAX >> (64 - family.bits),
        ..Instruction::new(op)
    };
    let plain = |body: &mut Body<'a, '_>, op, sources| emit_plain(body, statement, of(op), sources);
    match (statement.parts[0], statement.modifiers()) {
        ("add", [] | ["rn"]) => plain(body, family.add, 2),
        ("sub", [] | ["rn"]) => plain(body, family.sub, 2),
        ("mul", [] | ["rn"]) => plain(body, family.mul, 2),
        ("fma" | "mad", ["rn"]) => plain(body, family.fma, 3),
        ("add" | "sub" | "mul" | "fma", [mode @ ("rz" | "rm" | "rp")]) if family.bits == 32 => {
            let flags = directed_mode(mode);
            let (op, sources) = match statement.parts[0] {
                "add" => (Op::AddDirectedF, 2),
                "sub" => (Op::SubDirectedF, 2),
                "mul" => (Op::MulDirectedF, 2),
                _ => (Op::FmaDirectedF, 3),
            };
            emit_plain(body, statement, Instruction { flags, ..of(op) }, sources)
        }
        ("div", ["rn"]) => plain(body, family.div, 2),
        ("sqrt", ["rn"]) => plain(body, family.sqrt, 1),
        ("rcp", ["rn"]) => reciprocal(body, statement, family),
        ("neg", []) => plain(body, family.neg, 1),
        ("abs", []) => plain(body, family.abs, 1),
        ("min", []) => plain(body, family.min, 2),
        ("max", []) => plain(body, family.max, 2),
        ("selp", []) => select(body, statement, family.bits),
        ("slct", _) => Err(Reject::Unsupported),
        ("copysign", []) if family.bits == 32 => plain(body, Op::CopySignF, 2),
        ("testp", [test]) if family.bits == 32 => {
            let flags = test_number(test).ok_or(Reject::Unsupported)?;
            emit_plain(body, statement, Instruction { flags, ..of(Op::TestF) }, 1)
        }
        ("setp", [name, ..]) => {
            emit_comparison(body, statement, |body, d| compare(body, statement, family, name, d))
        }
        (name, modifiers) => {
            let flags = approximate_number(name, modifiers).ok_or(Reject::Unsupported)?;
            let sources = if flags == approximate::DIV { 2 } else { 1 };
            emit_plain(body, statement, Instruction { flags, ..of(family.approximate) }, sources)
        }
    }
}

fn reciprocal<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    family: &Family,
) -> Decoded<()> {
    statement.expect_operands(2)?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let b = body.source(statement.operand(1)?, family.bits)?;
    let a = body.constant(family.one)?;
    body.emit(Instruction { d, a, b, bits: family.bits, ..Instruction::new(family.div) });
    Ok(())
}

/// `selp`: the predicate chooses.
pub(super) fn select<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    bits: u8,
) -> Decoded<()> {
    statement.expect_operands(4)?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, bits)?;
    let b = body.source(statement.operand(2)?, bits)?;
    let c = body.source(statement.operand(3)?, 1)?;
    body.emit(Instruction { d, a, b, c, bits, ..Instruction::new(Op::Select) });
    Ok(())
}

fn compare<'a>(
    body: &mut Body<'a, '_>,
    statement: &Statement<'a>,
    family: &Family,
    name: &str,
    d: u32,
) -> Decoded<()> {
    let a = body.source(statement.operand(1)?, family.bits)?;
    let b = body.source(statement.operand(2)?, family.bits)?;
    let set = |body: &mut Body<'a, '_>, op, d, a, b| {
        body.emit(Instruction { d, a, b, bits: family.bits, ..Instruction::new(op) });
    };
    match name {
        "eq" => set(body, family.equal, d, a, b),
        "neu" => set(body, family.not_equal, d, a, b),
        "lt" => set(body, family.less, d, a, b),
        "gt" => set(body, family.less, d, b, a),
        "le" => set(body, family.less_equal, d, a, b),
        "ge" => set(body, family.less_equal, d, b, a),
        "ltu" => set(body, family.not_less_equal, d, b, a),
        "leu" => set(body, family.not_less, d, b, a),
        "gtu" => set(body, family.not_less_equal, d, a, b),
        "geu" => set(body, family.not_less, d, a, b),
        "num" => set(body, family.ordered, d, a, b),
        "ne" | "equ" | "nan" => {
            let (ordered, one) = (body.new_slot(0, 1)?, body.constant(1)?);
            let bit = |op| Instruction { bits: 1, imm: 1, ..Instruction::new(op) };
            set(body, family.ordered, ordered, a, b);
            match name {
                // Ordered and not equal.
                "ne" => {
                    set(body, family.not_equal, d, a, b);
                    body.emit(Instruction { d, a: d, b: ordered, ..bit(Op::And) });
                }
                // Not ordered, or equal: not (ordered and not equal).
                "equ" => {
                    set(body, family.not_equal, d, a, b);
                    body.emit(Instruction { d, a: d, b: ordered, ..bit(Op::And) });
                    body.emit(Instruction { d, a: d, b: one, ..bit(Op::Xor) });
                }
                _ => drop(body.emit(Instruction { d, a: ordered, b: one, ..bit(Op::Xor) })),
            }
        }
        _ => return Err(Reject::Wrong(format!("`{name}` compares nothing"))),
    }
    Ok(())
}

fn directed_mode(name: &str) -> u8 {
    match name {
        "rm" => rounding::DOWN,
        "rp" => rounding::UP,
        _ => rounding::ZERO,
    }
}

fn test_number(name: &str) -> Option<u8> {
    let names = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
    names.iter().position(|test| *test == name).map(|at| at as u8)
}

fn approximate_number(name: &str, modifiers: &[&str]) -> Option<u8> {
    let approximates =
        matches!(modifiers, ["approx"] | ["approx", "ftz"] | ["full"] | ["full", "ftz"]);
    if !approximates {
        return None;
    }
    Some(match name {
        "ex2" => approximate::EXP2,
        "lg2" => approximate::LOG2,
        "sin" => approximate::SIN,
        "cos" => approximate::COS,
        "rsqrt" => approximate::RSQRT,
        "tanh" => approximate::TANH,
        "div" => approximate::DIV,
        "rcp" => approximate::RECIPROCAL,
        "sqrt" => approximate::SQRT,
        _ => return None,
    })
}
