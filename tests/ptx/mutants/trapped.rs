//! Rewrites a text so that it traps where a fault of one place would have changed anything that is
//! compared, instead of planting the fault. Runs nothing.
//!
//! What is looked at is the result of the instruction, unless nothing reads that but
//! - a floor: then the whole number;
//! - the choice of a texture's level: then the exponent;
//! - the comparison by which a floor sees that it has to go one down: then what comes of that;
//! - the next step of a polynomial with constant coefficients by Horner's rule: then the whole
//!   polynomial.

use std::collections::BTreeMap;

use super::mutations::{self, Instruction, LAST_BIT, Mutation, ROUNDED, kernel_of, parse, writes};

/// The bounds to which a number is clamped before it is floored (`floor_to_int` in `arithmetic.h`).
/// Nothing else has them.
const FLOOR_BOUNDS: [&str; 2] = ["0fCE800000", "0f4E800000"];

/// A text, and what it costs.
pub(super) struct Watched {
    pub(super) text: String,
    /// Instructions that it has more, each time that the fault would have happened.
    pub(super) steps: u64,
}

/// Where what comes of an instruction is looked at.
enum Place<'a> {
    Result,
    Floor,
    Exponent,
    Comparison { floored: &'a str },
    Polynomial { rest: Vec<Step<'a>> },
}

/// A step of a polynomial: its line, and the register with what came before.
struct Step<'a> {
    number: u32,
    text: &'a str,
    before: &'a str,
}

/// The text for a fault of one place; None for another fault, and for a last bit of which anything
/// is made.
pub(super) fn watched(source: &str, mutation: &Mutation) -> Option<Watched> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let line = lines[mutation.line as usize - 1];
    let target = *parse(line)?.operands.first()?;
    // The right result in its register, and the other in `%otherwise`.
    let (both, steps) = match mutation.kind {
        ROUNDED => {
            (format!("{} {line}", mutation.text.trim().replacen(target, "%otherwise", 1)), 1)
        }
        LAST_BIT => {
            let flip =
                format!("mov.b32 %one, {target}; xor.b32 %one, %one, 1; mov.b32 %otherwise, %one;");
            (format!("{line} {flip}"), 3)
        }
        _ => return None,
    };
    let place = place(&lines, mutation.line);
    if matches!(place, Place::Result) && mutation.kind == LAST_BIT {
        return None;
    }
    let registers = ".reg .f32 %otherwise; .reg .b32 %one, %two; .reg .pred %differ;";
    let mut changed = BTreeMap::from([(mutation.line, format!("{registers} {both}"))]);
    if let Place::Polynomial { rest } = &place {
        changed.extend(rest.iter().map(|step| (step.number, step.of_both())));
    }
    let last = *changed.keys().next_back()?;
    let result = *parse(lines[last as usize - 1])?.operands.first()?;
    let (look, more) = look(&place, result);
    let trap = "setp.ne.s32 %differ, %one, %two; @%differ trap;";
    changed.get_mut(&last)?.push_str(&format!(" {look} {trap}"));
    let steps = steps + (changed.len() as u64 - 1) + more + 2;
    Some(Watched { text: mutations::with_lines(source, &changed), steps })
}

/// Instructions that bring what is looked at to `%one` and `%two`, and how many they are.
fn look(place: &Place<'_>, result: &str) -> (String, u64) {
    match place {
        Place::Result | Place::Polynomial { .. } => {
            (format!("mov.b32 %one, {result}; mov.b32 %two, %otherwise;"), 2)
        }
        Place::Floor => {
            (format!("cvt.rmi.s32.f32 %one, {result}; cvt.rmi.s32.f32 %two, %otherwise;"), 2)
        }
        Place::Exponent => {
            let shifted =
                |from: &str, to: &str| format!("mov.b32 {to}, {from}; shr.u32 {to}, {to}, 23;");
            (format!("{} {}", shifted(result, "%one"), shifted("%otherwise", "%two")), 4)
        }
        Place::Comparison { floored } => {
            let compare = |with: &str, to: &str| {
                format!("setp.lt.f32 %differ, {floored}, {with}; selp.u32 {to}, 1, 0, %differ;")
            };
            (format!("{} {}", compare(result, "%one"), compare("%otherwise", "%two")), 4)
        }
    }
}

impl Step<'_> {
    /// It, and the same with what would have been otherwise.
    fn of_both(&self) -> String {
        let operands =
            self.text.split_once(' ').or(self.text.split_once('\t')).map_or("", |(_, rest)| rest);
        let (_, sources) = operands.split_once(',').unwrap_or_default();
        let sources = sources.split(',').map(|name| match name.trim().trim_end_matches(';') {
            name if name == self.before => "%otherwise",
            name => name,
        });
        format!("fma.rn.f32 %otherwise, {}; {}", sources.collect::<Vec<_>>().join(", "), self.text)
    }
}

/// Where what comes of a line is looked at.
fn place<'a>(lines: &[&'a str], line: u32) -> Place<'a> {
    let at = line as usize - 1;
    if let Some(floored) = compared_in_floor(lines, at) {
        return Place::Comparison { floored };
    }
    if is_floored(lines, at) {
        return Place::Floor;
    }
    if is_exponent(lines, at) {
        return Place::Exponent;
    }
    match rest_of_polynomial(lines, at) {
        rest if rest.is_empty() => Place::Result,
        rest => Place::Polynomial { rest },
    }
}

/// Whether a result goes nowhere but into a floor: that of its clamp, or what is clamped.
fn is_floored(lines: &[&str], at: usize) -> bool {
    let Some(instruction) = parse(lines[at]) else { return false };
    let last = instruction.operands.last().copied().unwrap_or_default();
    let mut readers = readers(lines, at, instruction.operands[0]).map(|(_, line)| line).peekable();
    let is_read = readers.peek().is_some();
    is_read
        && match instruction.opcode {
            "max.f32" if last == FLOOR_BOUNDS[0] => {
                readers.all(|line| line.starts_with("min.f32") && line.contains(FLOOR_BOUNDS[1]))
            }
            "min.f32" if last == FLOOR_BOUNDS[1] => readers
                .all(|line| line.starts_with("cvt.rzi.s32.f32") || line.starts_with("setp.lt.f32")),
            _ => readers.all(|line| line.starts_with("max.f32") && line.contains(FLOOR_BOUNDS[0])),
        }
}

/// Whether nothing is read of a result but its exponent: its bits without the lower 23, or compared
/// with a power of two.
fn is_exponent(lines: &[&str], at: usize) -> bool {
    let Some(instruction) = parse(lines[at]).filter(|it| it.opcode.ends_with(".f32")) else {
        return false;
    };
    let reads_exponent = |line: &str| {
        let Some(reader) = parse(line) else { return false };
        let constant = reader.operands.last().copied().unwrap_or_default();
        let is_power = || constant.parse::<u32>().is_ok_and(|bits| bits & 0x7f_ffff == 0);
        (reader.opcode == "shr.u32" && constant == "23")
            || (reader.opcode.starts_with("setp.") && is_power())
    };
    let mut moves = readers(lines, at, instruction.operands[0]).peekable();
    moves.peek().is_some()
        && moves.all(|(number, line)| {
            let Some(bits) = parse(line).filter(|it| it.opcode == "mov.b32") else { return false };
            let mut readers = readers(lines, number, bits.operands[0]).peekable();
            readers.peek().is_some() && readers.all(|(_, line)| reads_exponent(line))
        })
}

/// The clamped number of a floor whose whole part an instruction makes a float of again, if that is
/// nothing but compared with it.
fn compared_in_floor<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    let whole = parse(lines[at]).filter(|it| it.opcode == "cvt.rn.f32.s32")?;
    let writer = |name: &str, opcode: &str| {
        lines[kernel_of(lines, at)]
            .iter()
            .filter_map(|line| parse(line))
            .find(|it| it.operands[0] == name && it.opcode == opcode)
    };
    let floored = writer(whole.operands[1], "cvt.rzi.s32.f32")?.operands[1];
    let clamp = writer(floored, "min.f32")?;
    let compares = format!(", {floored}, {};", whole.operands[0]);
    let mut readers = readers(lines, at, whole.operands[0]);
    (clamp.operands[2] == FLOOR_BOUNDS[1]
        && readers.all(|(_, line)| line.starts_with("setp.lt.f32") && line.ends_with(&compares)))
    .then_some(floored)
}

/// The steps of a polynomial that come after an instruction, which is one itself.
fn rest_of_polynomial<'a>(lines: &[&'a str], at: usize) -> Vec<Step<'a>> {
    let mut rest = Vec::new();
    let mut before = at;
    while is_horner(lines, before)
        && let Some(step) = next_of_polynomial(lines, before)
    {
        before = step.number as usize - 1;
        rest.push(step);
    }
    rest
}

/// The only reader of a result, where that multiplies it and adds a constant, and no way but one
/// leads there.
fn next_of_polynomial<'a>(lines: &[&'a str], at: usize) -> Option<Step<'a>> {
    let before = parse(lines[at])?.operands[0];
    let mut readers = readers(lines, at, before);
    let ((next, text), None) = (readers.next()?, readers.next()) else { return None };
    let [_, a, b, c] = parse(text)?.operands[..] else { return None };
    let is_straight =
        next > at && lines[at..next].iter().all(|line| parse(line).is_some_and(is_plain));
    let is_step = is_horner(lines, next) && (a == before) != (b == before) && c != before;
    (is_straight && is_step && writers(lines, at, before).count() == 1).then_some(Step {
        number: next as u32 + 1,
        text,
        before,
    })
}

/// Neither a jump nor a place to jump to: those have no operands, or a guard.
fn is_plain(instruction: Instruction<'_>) -> bool {
    !instruction.opcode.starts_with(['@', '$']) && !instruction.opcode.starts_with("bra")
}

/// `fma` with an addend that is constant.
fn is_horner(lines: &[&str], at: usize) -> bool {
    let Some(step) = parse(lines[at]).filter(|it| it.opcode == "fma.rn.f32") else { return false };
    let is_literal = |name: &str| name.starts_with("0f");
    let moves = |line: &str| {
        parse(line).is_some_and(|it| {
            it.opcode == "mov.f32" && it.operands[1..].iter().all(|name| is_literal(name))
        })
    };
    let addend = step.operands[3];
    let mut writers = writers(lines, at, addend).map(|(_, line)| line).peekable();
    is_literal(addend) || (writers.peek().is_some() && writers.all(moves))
}

/// The lines, from 0, that read a register in the kernel of a line.
pub(super) fn readers<'a>(
    lines: &[&'a str],
    at: usize,
    name: &str,
) -> impl Iterator<Item = (usize, &'a str)> {
    let reads =
        move |line: &str| parse(line).is_some_and(|read| read.operands[1..].contains(&name));
    in_kernel(lines, at).filter(move |(_, line)| reads(line))
}

/// The lines that write it.
fn writers<'a>(lines: &[&'a str], at: usize, name: &str) -> impl Iterator<Item = (usize, &'a str)> {
    in_kernel(lines, at).filter(move |(_, line)| writes(line, name))
}

fn in_kernel<'a>(lines: &[&'a str], at: usize) -> impl Iterator<Item = (usize, &'a str)> {
    let kernel = kernel_of(lines, at);
    kernel.clone().zip(lines[kernel].iter().copied())
}

#[test]
fn polynomials_are_trapped_at_their_end_and_sums_are_not() {
    let source = "\
.visible .entry k(
	mov.f32 	%f9, 0f3F000000;
	fma.rn.f32 	%f2, %f1, 0f3E000000, %f9;
	fma.rn.f32 	%f3, %f1, %f2, 0f3F800000;
	mul.rn.f32 	%f4, %f3, %f3;
	fma.rn.f32 	%f5, %f1, %f4, %f3;
	st.global.f32 	[%rd1], %f5;
";
    let of = |line| watched(source, &Mutation { line, kind: LAST_BIT, text: String::new() });
    let text = of(3).expect("it is a step of a polynomial").text;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[2].ends_with("mov.b32 %otherwise, %one;"), "{text}");
    assert!(lines[3].contains("fma.rn.f32 %otherwise, %f1, %otherwise, 0f3F800000;"), "{text}");
    assert!(lines[3].ends_with(
        "mov.b32 %one, %f3; mov.b32 %two, %otherwise; setp.ne.s32 %differ, %one, %two; @%differ \
            trap;"
    ));
    assert!(of(4).is_none() && of(5).is_none() && of(6).is_none());
}
