//! Finds instructions whose readers ignore a part of the result: the sign of what is squared or
//! made positive, and all of what is multiplied by zero. Reads text, runs nothing.
//!
//! The rule by which mutants are left out of the count: the sign of a result is turned, and nothing
//! reads it but squares, magnitudes, and selections and copies of which the same holds; or the
//! result is anything else that is finite, and nothing reads it but the factor of a constant 0 in a
//! step of a polynomial, which a compiler may not leave out.

use std::collections::{BTreeMap, BTreeSet};

use super::dead_results::{is_pure, names};
use super::mutations::Mutation;

/// How many selections and copies a sign is followed through.
const WAYS_MAX: usize = 4;

/// The lines of one kernel that read each register.
type Readers<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// What nobody heeds, by line from 1.
pub(super) struct IgnoredSigns {
    signs: BTreeSet<u32>,
    values: BTreeSet<u32>,
}

impl IgnoredSigns {
    pub(super) fn of(source: &str) -> IgnoredSigns {
        let numbered: Vec<(u32, &str)> = (1..).zip(source.lines().map(str::trim)).collect();
        let mut found = IgnoredSigns { signs: BTreeSet::new(), values: BTreeSet::new() };
        for kernel in numbered.split(|(_, line)| line.contains(".entry ")) {
            let readers = readers(kernel);
            let zeros = zeros(kernel);
            for (number, line) in kernel.iter().filter(|(_, line)| is_pure(line)) {
                let Some(result) = names(line).first().copied() else { continue };
                if is_only_a_magnitude(&readers, result, WAYS_MAX) {
                    found.signs.insert(*number);
                }
                if is_only_times_zero(&readers, &zeros, result) {
                    found.values.insert(*number);
                }
            }
        }
        found
    }

    /// Whether nobody can tell the fault. `line`: the sound one.
    pub(super) fn hides(&self, mutation: &Mutation, line: &str) -> bool {
        let turns_sign = match mutation.kind {
            "lost sign" => true,
            "swapped operands" => line.trim_start().starts_with("sub.rn.f32"),
            _ => false,
        };
        (turns_sign && self.signs.contains(&mutation.line)) || self.values.contains(&mutation.line)
    }
}

fn readers<'a>(kernel: &[(u32, &'a str)]) -> Readers<'a> {
    let mut readers = Readers::new();
    for (_, line) in kernel {
        let written = usize::from(is_pure(line));
        for name in names(line).into_iter().skip(written).collect::<BTreeSet<_>>() {
            readers.entry(name).or_default().push(line);
        }
    }
    readers
}

/// Registers that are never anything but 0.
fn zeros<'a>(kernel: &[(u32, &'a str)]) -> BTreeSet<&'a str> {
    let is_zero = |line: &str| line.starts_with("mov.f32") && line.ends_with(", 0f00000000;");
    let (mut zeros, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (_, line) in kernel {
        let Some(first) = names(line).first().copied() else { continue };
        if is_zero(line) {
            zeros.insert(first)
        } else {
            others.insert(first)
        };
    }
    zeros.difference(&others).copied().collect()
}

fn is_only_a_magnitude(readers: &Readers<'_>, name: &str, ways: usize) -> bool {
    let Some(lines) = readers.get(name) else { return false };
    lines.iter().all(|line| {
        let operands = names(line);
        match line.split_whitespace().next().unwrap_or_default() {
            "abs.f32" => true,
            "mul.rn.f32" => operands[1..] == [name, name],
            "fma.rn.f32" => operands[1..3] == [name, name] && operands.get(3) != Some(&name),
            "mov.b32" => readers.get(operands[0]).is_some_and(|bits| {
                bits.iter()
                    .all(|line| line.starts_with("and.b32") && line.ends_with(", 2147483647;"))
            }),
            "selp.f32" | "mov.f32" | "neg.f32" => {
                ways > 0 && is_only_a_magnitude(readers, operands[0], ways - 1)
            }
            _ => false,
        }
    })
}

/// The step's addend is a constant other than 0 by the same way: another register than the zero.
fn is_only_times_zero(readers: &Readers<'_>, zeros: &BTreeSet<&str>, name: &str) -> bool {
    let Some(lines) = readers.get(name) else { return false };
    lines.iter().all(|line| {
        let operands = names(line);
        let is_product =
            line.starts_with("fma.rn.f32") && operands.len() == 4 && operands[3] != name;
        is_product
            && !zeros.contains(operands[3])
            && ((operands[1] == name && zeros.contains(operands[2]))
                || (operands[2] == name && zeros.contains(operands[1])))
    })
}

#[test]
fn only_signs_of_squares_and_magnitudes_are_ignored() {
    let source = "\
.visible .entry k(
	sub.rn.f32 	%f1, %f8, %f9;
	mul.rn.f32 	%f2, %f1, %f1;
	neg.f32 	%f3, %f2;
	selp.f32 	%f4, %f3, %f2, %p1;
	mov.b32 	%r1, %f4;
	and.b32  	%r2, %r1, 2147483647;
	neg.f32 	%f5, %f9;
	mul.rn.f32 	%f6, %f5, %f1;
	mov.f32 	%f7, 0f00000000;
	fma.rn.f32 	%f10, %f7, %f6, %f9;
	st.global.f32 	[%rd1], %f10;
";
    let unheeded = IgnoredSigns::of(source);
    assert_eq!(unheeded.signs, BTreeSet::from([3, 4, 5]), "%f1 and %f5 are factors of others");
    assert_eq!(unheeded.values, BTreeSet::from([9]));
    let lost = Mutation { line: 4, kind: "lost sign", text: String::new() };
    assert!(unheeded.hides(&lost, "neg.f32 %f3, %f2;"));
    assert!(!unheeded.hides(&Mutation { kind: "dropped", ..lost }, "neg.f32 %f3, %f2;"));
}
