//! Finds the instructions that widen the bounds by which lights are left out. Reads text, runs
//! nothing.
//!
//! The rule by which mutants are left out of the count: one place of a bound with that slack, which
//! nothing reads but a comparison. The slack is ten thousand of its last places, and the angles
//! that are compared with it are known to a few: what one place more or less leaves out could not
//! shine here anyway (`light_tree.h`).

use std::collections::BTreeSet;

use super::mutations::parse;
use super::trapped::readers;

/// `-COSINE_SLACK`. Nothing else uses it.
const SLACK: &str = "0fBA83126F";

/// Lines, from 1, of such bounds.
pub(super) fn lines(source: &str) -> BTreeSet<u32> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let bounds = (0..lines.len()).filter(|at| {
        let Some(bound) = parse(lines[*at]).filter(|it| it.opcode == "add.rn.f32") else {
            return false;
        };
        bound.operands.last() == Some(&SLACK)
            && readers(&lines, *at, bound.operands[0]).all(|(_, line)| line.starts_with("setp."))
    });
    bounds.map(|at| at as u32 + 1).collect()
}
