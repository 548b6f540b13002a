//! Branches, calls and ends.

use super::{Decoded, Reject};
use crate::instruction::{CallSite, Instruction, Op, Place};
use crate::parse::body::{Body, Statement};
use crate::parse::cursor::split_commas;
use crate::text::{Token, TokenKind};

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let op = match statement.parts[0] {
        "bra" => {
            statement.expect_operands(1)?;
            let label = word(statement.operand(0)?)?;
            body.branch_to(Instruction::new(Op::Branch), label);
            return Ok(());
        }
        "brx" => {
            statement.expect_operands(2)?;
            let a = body.source(statement.operand(0)?, 32)?;
            let table = word(statement.operand(1)?)?;
            body.branch_by(Instruction { a, ..Instruction::new(Op::BranchTable) }, table);
            return Ok(());
        }
        "call" => return call(body, statement),
        "ret" => Op::Return,
        "exit" => Op::Exit,
        _ => Op::Trap,
    };
    body.emit(Instruction::new(op));
    Ok(())
}

fn word<'a>(tokens: &'a [Token<'a>]) -> Decoded<&'a str> {
    match tokens {
        [token] if token.kind == TokenKind::Word => Ok(token.text),
        _ => Err(Reject::Wrong("a name expected".into())),
    }
}

/// `call (results), name, (arguments)`, without either where there is none.
fn call<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let mut operands = statement.operands.iter().copied().peekable();
    let results = match operands.next_if(|operand| is_list(operand)) {
        Some(list) => places(body, list)?,
        None => Vec::new(),
    };
    let name = word(operands.next().ok_or_else(|| Reject::Wrong("a call of nothing".into()))?)?;
    if name.starts_with('%') {
        // A pointer to a function: who is called is not known.
        body.function.calls_pointers = true;
        return Err(Reject::Unsupported);
    }
    let arguments = match operands.next() {
        Some(list) if is_list(list) => places(body, list)?,
        Some(_) => return Err(Reject::Wrong("arguments in parentheses expected".into())),
        None => Vec::new(),
    };
    let site = body.function.calls.len() as u64;
    let line = statement.line;
    body.function.calls.push(CallSite {
        name: name.to_owned(),
        line,
        callee: None,
        arguments,
        results,
    });
    body.emit(Instruction { imm: site, ..Instruction::new(Op::Call) });
    Ok(())
}

fn is_list(tokens: &[Token<'_>]) -> bool {
    tokens.first().is_some_and(|token| token.is("("))
}

/// Where the named parameters lie in the caller's frame.
fn places<'a>(body: &mut Body<'a, '_>, list: &'a [Token<'a>]) -> Decoded<Vec<Place>> {
    let [_, inner @ .., close] = list else { return Err(Reject::Wrong("a list expected".into())) };
    if !close.is(")") {
        return Err(Reject::Wrong("a list ends with `)`".into()));
    }
    let mut places = Vec::new();
    for part in split_commas(inner) {
        let name = word(part)?;
        places.push(body.frame_place(name)?.ok_or(Reject::Unsupported)?);
    }
    Ok(places)
}
