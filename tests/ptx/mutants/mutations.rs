//! Faults of one instruction, as a compiler or a translator of PTX might make them. Plants them in
//! text, runs nothing.

use std::collections::{BTreeMap, BTreeSet};

/// The kinds that others know.
pub(super) const ROUNDED: &str = "rounded towards zero";
pub(super) const LAST_BIT: &str = "last bit";
const DROPPED: &str = "dropped";

/// One changed line.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    /// Line of the text, from 1.
    pub(super) line: u32,
    /// What kind of fault it is.
    pub(super) kind: &'static str,
    /// What stands there instead.
    pub(super) text: String,
}

impl Mutation {
    /// The result differs in its last place, or not at all.
    pub(super) fn is_one_place(&self) -> bool {
        matches!(self.kind, LAST_BIT | ROUNDED)
    }
}

/// An instruction of the text: `opcode destination, sources;` without guard.
pub(super) struct Instruction<'a> {
    pub(super) opcode: &'a str,
    pub(super) operands: Vec<&'a str>,
}

/// Every mutation of the given lines.
pub(super) fn all(source: &str, lines: &BTreeSet<u32>) -> Vec<Mutation> {
    let mut found = Vec::new();
    for (number, text) in (1..).zip(source.lines()).filter(|(number, _)| lines.contains(number)) {
        let mut add = |kind, text| found.push(Mutation { line: number, kind, text });
        if let Some(branch) = text.trim().strip_prefix('@') {
            let turned = branch
                .strip_prefix('!')
                .map_or_else(|| format!("@!{branch}"), |rest| format!("@{rest}"));
            add("negated branch", turned);
        } else if let Some(instruction) = parse(text) {
            of_instruction(&instruction, text, add);
        }
    }
    found
}

/// The text with one mutation in it, and without the kernels in which it is not. Lines keep their
/// numbers.
pub(super) fn planted(source: &str, mutation: &Mutation) -> String {
    with_line(source, mutation.line, &mutation.text)
}

/// A dropped instruction again, if nothing else in its kernel writes the register: that register
/// then holds anything on a device, the interpreter's poison in [`planted`], and 0 here.
pub(super) fn dropped_to_zero(source: &str, mutation: &Mutation) -> Option<String> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let at = mutation.line as usize - 1;
    let target = *parse(lines[at]).filter(|_| mutation.kind == DROPPED)?.operands.first()?;
    if lines[kernel_of(&lines, at)].iter().filter(|line| writes(line, target)).count() > 1 {
        return None;
    }
    let zero = match target.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "%f" => "mov.f32",
        "%r" => "mov.u32",
        "%rd" => "mov.u64",
        _ => return None,
    };
    let value = if zero == "mov.f32" { "0f00000000" } else { "0" };
    Some(with_line(source, mutation.line, &format!("{zero} {target}, {value};")))
}

/// Whether a line writes a register.
pub(super) fn writes(line: &str, name: &str) -> bool {
    match line.split_once('{').filter(|_| line.starts_with("ld.")) {
        Some((_, vector)) => vector
            .split('}')
            .next()
            .is_some_and(|names| names.split(", ").any(|other| other == name)),
        None => parse(line).is_some_and(|instruction| instruction.operands[0] == name),
    }
}

/// The lines of the kernel in which a line stands.
pub(super) fn kernel_of(lines: &[&str], at: usize) -> std::ops::Range<usize> {
    let is_entry = |line: &&str| line.contains(".entry ");
    let start = lines[..at].iter().rposition(is_entry).unwrap_or(0);
    start..lines[at..].iter().position(is_entry).map_or(lines.len(), |more| at + more)
}

/// Lines of one kernel changed, by number from 1, and the other kernels left out.
pub(super) fn with_lines(source: &str, changed: &BTreeMap<u32, String>) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let first = changed.keys().next().map_or(0, |line| *line as usize - 1);
    let entries: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].contains(".entry ")).collect();
    let kernel = entries.iter().rposition(|at| *at <= first);
    let kept = kernel
        .map_or(0..lines.len(), |at| entries[at]..*entries.get(at + 1).unwrap_or(&lines.len()));
    let header = 0..entries.first().map_or(0, |at| *at);
    let shown = (1..).zip(lines.iter().enumerate()).map(|(number, (at, line))| {
        let is_kept = kept.contains(&at) || header.contains(&at);
        changed.get(&number).map_or(if is_kept { line } else { "" }, String::as_str)
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn with_line(source: &str, line: u32, text: &str) -> String {
    with_lines(source, &BTreeMap::from([(line, text.to_owned())]))
}

pub(super) fn parse(line: &str) -> Option<Instruction<'_>> {
    let statement = line.trim().strip_suffix(';')?;
    let (opcode, operands) = statement.split_once(char::is_whitespace)?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    (!opcode.starts_with('.') && !opcode.starts_with('{'))
        .then_some(Instruction { opcode, operands })
}

fn of_instruction(i: &Instruction<'_>, text: &str, mut add: impl FnMut(&'static str, String)) {
    let target = i.operands[0];
    let is = |name: &str| i.opcode.starts_with(name);
    let is_float = i.opcode.ends_with(".f32");
    let rounded = ["add.rn", "sub.rn", "mul.rn", "fma.rn", "div.rn", "sqrt.rn", "rcp.rn"]
        .iter()
        .any(|name| is(name));
    if rounded
        || ((is("min.") || is("max.")) && is_float)
        || i.opcode == "cvt.rn.f32.s32"
        || i.opcode == "cvt.rn.f32.u32"
    {
        let flip = format!(
            "mov.b32 %mutant, {target}; xor.b32 %mutant, %mutant, 1; mov.b32 {target}, %mutant;"
        );
        add(LAST_BIT, format!("{{ .reg .b32 %mutant; {} {flip} }}", text.trim()));
    }
    if is("add.rn.f32") || is("mul.rn.f32") || is("fma.rn.f32") || is("sub.rn.f32") {
        add(ROUNDED, text.replace(".rn.", ".rz."));
    }
    if rounded
        || is("add.s")
        || is("and.b")
        || is("or.b")
        || is("xor.b")
        || is("shl.")
        || is("shr.")
        || is("selp.")
    {
        add(DROPPED, String::new());
    }
    if is("min.") || is("max.") {
        let (from, to) = if is("min.") { ("min.", "max.") } else { ("max.", "min.") };
        add("other extreme", text.replacen(from, to, 1));
    }
    if is("selp.") && i.operands[1] != i.operands[2] {
        let [_, a, b, predicate] = i.operands[..] else { return };
        add("swapped select", format!("{} {target}, {b}, {a}, {predicate};", i.opcode));
    }
    if is("setp.") {
        add("negated compare", negated(i));
    }
    if is("add.s32") || is("add.s64") || is("sub.s32") || is("mad.lo.s32") || is("mul.lo.s32") {
        let width = &i.opcode[i.opcode.len() - 3..];
        add("one too many", format!("{} add.{width} {target}, {target}, 1;", text.trim()));
    }
    if is("shl.b32") || is("shr.u32") {
        add("one place too far", format!("{} {} {target}, {target}, 1;", text.trim(), i.opcode));
    }
    let swap = [
        ("and.b32", "or.b32"),
        ("or.b32", "and.b32"),
        ("xor.b32", "or.b32"),
        ("and.pred", "or.pred"),
        ("or.pred", "and.pred"),
    ];
    if let Some((from, to)) = swap.iter().find(|(from, _)| is(from)) {
        add("other operator", text.replacen(from, to, 1));
    }
    if is("sub.rn.f32") || is("div.rn.f32") {
        let [_, a, b] = i.operands[..] else { return };
        add("swapped operands", format!("{} {target}, {b}, {a};", i.opcode));
    }
    if is("neg.f32") {
        add("lost sign", text.replacen("neg.f32", "mov.f32", 1));
    }
}

/// The comparison, and then its opposite.
fn negated(i: &Instruction<'_>) -> String {
    let target = i.operands[0];
    format!("{} {}; not.pred {target}, {target};", i.opcode, i.operands.join(", "))
}
