//! Finds instructions whose result no other reads, such as the colour of a texel where only its
//! alpha is wanted: the compiler looks it up all the same. Reads text, runs nothing.
//!
//! The rule by which mutants are left out of the count: no store, no comparison, no branch, no
//! atomic sum and no other instruction with an effect has the result among its operands, directly
//! or by way of others. Loads are ways, not effects.

use std::collections::BTreeSet;

/// What leaves no trace but its result.
const PURE: [&str; 27] = [
    "abs.", "add.", "and.", "bfe.", "clz.", "cvt.", "cvta.", "div.", "fma.", "ld.", "mad.", "max.",
    "min.", "mov.", "mul.", "neg.", "not.", "or.", "popc.", "prmt.", "rcp.", "rem.", "selp.",
    "shl.", "shr.", "sqrt.", "sub.",
];

/// Lines, from 1, of whose result nothing comes.
pub(super) fn lines(source: &str) -> BTreeSet<u32> {
    let numbered: Vec<(u32, &str)> = (1..).zip(source.lines().map(str::trim)).collect();
    let mut found = BTreeSet::new();
    for kernel in numbered.split(|(_, line)| line.contains(".entry ")) {
        // A pure line's target and sources; of all others every register is read.
        let (pure, others): (Vec<_>, Vec<_>) = kernel.iter().partition(|(_, line)| is_pure(line));
        let mut read: BTreeSet<&str> = others.iter().flat_map(|(_, line)| names(line)).collect();
        loop {
            let before = read.len();
            for (_, line) in &pure {
                let operands = names(line);
                if operands.first().is_some_and(|target| read.contains(target)) {
                    read.extend(operands);
                }
            }
            if read.len() == before {
                break;
            }
        }
        let unread = pure
            .iter()
            .filter(|(_, line)| names(line).first().is_some_and(|name| !read.contains(name)));
        found.extend(unread.map(|(number, _)| *number));
    }
    found
}

/// Several results in braces count as read.
pub(super) fn is_pure(line: &str) -> bool {
    PURE.iter().any(|opcode| line.starts_with(opcode))
        && !line.contains('{')
        && !line.contains(".volatile")
}

/// The registers of a line, in order.
pub(super) fn names(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '%'))
        .filter(|word| word.starts_with('%'))
        .collect()
}
