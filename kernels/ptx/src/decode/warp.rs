//! Instructions in which threads wait for each other: barriers, shuffles, votes.

use super::{Decoded, Reject, pair};
use crate::instruction::{Instruction, Op, SLOT_SINK, warp};
use crate::parse::body::{Body, Statement};

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    match &statement.parts[..] {
        ["bar", "warp", "sync"] => {
            statement.expect_operands(1)?;
            let b = body.source(statement.operand(0)?, 32)?;
            body.emit(Instruction { b, ..Instruction::new(Op::WarpBarrier) });
            Ok(())
        }
        ["bar" | "barrier", "sync"] | ["bar" | "barrier", "cta", "sync"] => {
            barrier(body, statement)
        }
        ["barrier", "sync", "aligned"] | ["barrier", "cta", "sync", "aligned"] => {
            barrier(body, statement)
        }
        ["shfl", "sync", mode, "b32"] => shuffle(body, statement, mode),
        ["vote", "sync", mode, "pred" | "b32"] => vote(body, statement, mode),
        _ => Err(Reject::Unsupported),
    }
}

/// Returns whether threads of a block work together by an instruction, known to the machine or not:
/// they wait for each other, exchange registers, or change shared memory in common.
pub(super) fn is_exchange(parts: &[&str]) -> bool {
    let in_shared = || parts.iter().any(|part| part.starts_with("shared"));
    match parts {
        ["bar" | "barrier" | "mbarrier" | "shfl" | "vote" | "match" | "redux" | "elect", ..] => {
            true
        }
        ["mma" | "wmma" | "wgmma" | "ldmatrix" | "stmatrix" | "movmatrix", ..] => true,
        ["atom" | "red", ..] => in_shared(),
        // Threads of a warp without a barrier, in the old way.
        ["ld" | "st", "volatile" | "relaxed" | "acquire" | "release", ..] => in_shared(),
        _ => false,
    }
}

/// `bar.sync which{, threads}`
fn barrier<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>) -> Decoded<()> {
    let a = body.source(statement.operand(0)?, 32)?;
    let b = match statement.operands.len() {
        1 => body.constant(0)?,
        2 => body.source(statement.operand(1)?, 32)?,
        _ => return Err(Reject::Wrong("a barrier has 1 or 2 operands".into())),
    };
    body.emit(Instruction { a, b, ..Instruction::new(Op::Barrier) });
    Ok(())
}

/// `shfl.sync.mode.b32 d|p, a, b, c, members`: all slots in a list, in this order, so that 6 fit.
fn shuffle<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>, mode: &str) -> Decoded<()> {
    let flags = match mode {
        "up" => warp::UP,
        "down" => warp::DOWN,
        "bfly" => warp::BUTTERFLY,
        "idx" => warp::INDEX,
        _ => return Err(Reject::Unsupported),
    };
    statement.expect_operands(5)?;
    let (first, second) = pair(statement.operand(0)?);
    let (d, _) = body.target(first)?;
    let a = body.source(statement.operand(1)?, 32)?;
    let members = body.source(statement.operand(4)?, 32)?;
    let found = match second {
        Some(second) => body.target(second)?.0,
        None => SLOT_SINK,
    };
    let lane = body.source(statement.operand(2)?, 32)?;
    let clamp = body.source(statement.operand(3)?, 32)?;
    let c = body.function.lists.len() as u32;
    body.function.lists.extend([found, lane, clamp]);
    body.emit(Instruction { d, a, b: members, c, flags, ..Instruction::new(Op::Shuffle) });
    Ok(())
}

fn vote<'a>(body: &mut Body<'a, '_>, statement: &Statement<'a>, mode: &str) -> Decoded<()> {
    let flags = match mode {
        "all" => warp::ALL,
        "any" => warp::ANY,
        "uni" => warp::UNIFORM,
        "ballot" => warp::BALLOT,
        _ => return Err(Reject::Unsupported),
    };
    statement.expect_operands(3)?;
    let (d, _) = body.target(statement.operand(0)?)?;
    let a = body.source(statement.operand(1)?, 1)?;
    let b = body.source(statement.operand(2)?, 32)?;
    body.emit(Instruction { d, a, b, flags, ..Instruction::new(Op::Vote) });
    Ok(())
}
