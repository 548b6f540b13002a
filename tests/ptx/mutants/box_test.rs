//! Finds the instructions of the box test, which only decide what a ray need not look at. Reads
//! text, runs nothing.
//!
//! The rule by which mutants are left out of the count: in a kernel that uses the values of its box
//! test in comparisons alone, a change in the last bit of such a value is no fault. Hits are
//! canonical: they are computed from triangles alone, and a box can only hide one. Boxes are wider
//! than what they hold by `bvh_padding` and by the rounding of their compression, which is many
//! last places, so that one place hides nothing. A box that is kept without need costs time and
//! changes nothing either.

use std::collections::{BTreeMap, BTreeSet};

/// `0x47000000`: with a byte of a compressed box in its middle, which `prmt` puts there, it is a
/// float, 32768 + that byte. Nothing else uses it.
const BOX_BYTE: &str = "1191182336";
/// Arithmetic through which a box's values pass.
const PASSES: [&str; 9] = [
    "mov.b32",
    "mov.f32",
    "fma.rn.f32",
    "sub.rn.f32",
    "mul.rn.f32",
    "add.rn.f32",
    "max.f32",
    "min.f32",
    "selp.f32",
];

/// Lines, from 1, whose result comes from the box test and is nothing but compared in their kernel.
pub(super) fn lines(source: &str) -> BTreeSet<u32> {
    let numbered: Vec<(u32, &str)> = (1..).zip(source.lines().map(str::trim)).collect();
    let mut found = BTreeSet::new();
    for kernel in numbered.split(|(_, line)| line.contains(".entry ")) {
        let values = values_of_boxes(kernel);
        let escapes = kernel.iter().any(|(_, line)| {
            let is_known =
                line.starts_with("setp.") || PASSES.iter().any(|opcode| line.starts_with(opcode));
            !is_known && names(line).iter().skip(1).any(|name| values.contains(name))
        });
        if !escapes {
            let results = kernel.iter().filter(|(_, line)| {
                let passes = PASSES.iter().any(|opcode| line.starts_with(opcode));
                passes && names(line).first().is_some_and(|name| values.contains(name))
            });
            found.extend(results.map(|(number, _)| *number));
        }
    }
    found
}

/// Lines, from 1, whose minimum may be a maximum, or the other way round, and the box test only
/// keeps more: of those in [`lines`] a maximum that is nothing but the smaller side of `setp.le`,
/// or a minimum that is nothing but its larger side, be it by way of other extremes, where the
/// predicate's truth sets a bit of what is kept.
pub(super) fn widening(source: &str) -> BTreeSet<u32> {
    let of_boxes = lines(source);
    let numbered: Vec<(u32, &str)> = (1..).zip(source.lines().map(str::trim)).collect();
    let mut found = BTreeSet::new();
    for kernel in numbered.split(|(_, line)| line.contains(".entry ")) {
        let uses = uses(kernel);
        for (opcode, side) in [("max.f32", 1), ("min.f32", 2)] {
            let extremes = kernel.iter().filter(|(number, line)| {
                of_boxes.contains(number)
                    && line.starts_with(opcode)
                    && names(line)
                        .first()
                        .is_some_and(|name| only_on_side(&uses, opcode, side, name))
            });
            found.extend(extremes.map(|(number, _)| *number));
        }
    }
    found
}

/// Lines, from 1, that the box test may lack, and only keeps more: of those in [`lines`] a product
/// that is nothing but one of the maxima on the smaller side of `setp.le`, with 0 among them. A
/// register that nothing writes holds a negative number in the interpreter, and beside 0 that is no
/// maximum.
pub(super) fn spare(source: &str) -> BTreeSet<u32> {
    let of_boxes = lines(source);
    let numbered: Vec<(u32, &str)> = (1..).zip(source.lines().map(str::trim)).collect();
    let mut found = BTreeSet::new();
    for kernel in numbered.split(|(_, line)| line.contains(".entry ")) {
        let uses = uses(kernel);
        let mut writers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (_, line) in kernel {
            if let Some(target) = names(line).first() {
                writers.entry(target).or_default().push(line);
            }
        }
        let products = kernel.iter().filter(|(number, line)| {
            of_boxes.contains(number)
                && line.starts_with("mul.rn.f32")
                && names(line).first().is_some_and(|name| {
                    let beside_zero =
                        ends(&uses, name).iter().all(|end| is_zero_among(&writers, end));
                    writers[name].len() == 1
                        && only_on_side(&uses, "max.f32", 1, name)
                        && beside_zero
                })
        });
        found.extend(products.map(|(number, _)| *number));
    }
    found
}

/// The registers on the smaller side of `setp.le` to which maxima lead from a register.
fn ends<'a>(uses: &Uses<'a>, name: &'a str) -> Vec<&'a str> {
    let of_line = |line: &'a str| {
        let operands = names(line);
        if line.starts_with("setp.le.f32") { vec![operands[1]] } else { ends(uses, operands[0]) }
    };
    uses.get(name).into_iter().flatten().flat_map(|line| of_line(line)).collect()
}

/// Whether a register is 0, or a maximum of numbers of which one is.
fn is_zero_among(writers: &BTreeMap<&str, Vec<&str>>, name: &str) -> bool {
    let Some([line]) = writers.get(name).map(Vec::as_slice) else { return false };
    let mut sources = names(line).into_iter().skip(1);
    (line.starts_with("mov.f32") && line.contains("0f00000000"))
        || (line.starts_with("max.f32") && sources.any(|source| is_zero_among(writers, source)))
}

/// The lines that read each register.
type Uses<'a> = BTreeMap<&'a str, Vec<&'a str>>;

fn uses<'a>(kernel: &[(u32, &'a str)]) -> Uses<'a> {
    let mut uses = Uses::new();
    for (_, line) in kernel {
        // What stands first is written, but for a guard.
        let written = usize::from(!line.starts_with('@'));
        for name in names(line).into_iter().skip(written) {
            uses.entry(name).or_default().push(line);
        }
    }
    uses
}

/// Whether every use of a register is one side (1: smaller, 2: larger) of a comparison that keeps a
/// box, or an extreme of the same kind of which that is true.
fn only_on_side(uses: &Uses<'_>, opcode: &str, side: usize, name: &str) -> bool {
    uses.get(name).into_iter().flatten().all(|line| {
        let operands = names(line);
        if line.starts_with("setp.le.f32") {
            return operands.len() == 3
                && operands[3 - side] != name
                && sets_a_bit(uses, operands[0]);
        }
        line.starts_with(opcode)
            && operands[0] != name
            && only_on_side(uses, opcode, side, operands[0])
    })
}

/// Whether a predicate does nothing but choose between a number and 0.
fn sets_a_bit(uses: &Uses<'_>, predicate: &str) -> bool {
    uses.get(predicate).into_iter().flatten().all(|line| {
        line.starts_with("selp.")
            && line.split(',').nth(2).is_some_and(|otherwise| otherwise.trim() == "0")
    })
}

/// Registers that hold a value of the box test, found by passing from line to line until nothing is
/// added.
fn values_of_boxes<'a>(kernel: &[(u32, &'a str)]) -> BTreeSet<&'a str> {
    let is_constant = |line: &str| line.starts_with("mov.u32") && line.contains(BOX_BYTE);
    let constants = kernel.iter().filter(|(_, line)| is_constant(line));
    let constants: BTreeSet<&str> =
        constants.filter_map(|(_, line)| names(line).first().copied()).collect();
    let is_start = |line: &str| {
        line.starts_with("prmt.b32")
            && names(line).iter().skip(1).any(|name| constants.contains(name))
    };
    let starts = kernel.iter().filter(|(_, line)| is_start(line));
    let mut values: BTreeSet<&str> =
        starts.filter_map(|(_, line)| names(line).first().copied()).collect();
    loop {
        let before = values.len();
        for (_, line) in
            kernel.iter().filter(|(_, line)| PASSES.iter().any(|opcode| line.starts_with(opcode)))
        {
            if let [target, sources @ ..] = &names(line)[..]
                && sources.iter().any(|source| values.contains(source))
            {
                values.insert(target);
            }
        }
        if values.len() == before {
            return values;
        }
    }
}

/// The registers of a line, in order.
fn names(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '%'))
        .filter(|word| word.starts_with('%'))
        .collect()
}
