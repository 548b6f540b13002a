//! Which instructions cannot differ from the host's arithmetic. Reads any PTX, also what the parser
//! refuses.
//!
//! The list holds what is exact on every GPU: integers, moves, and 32-bit floats rounded to nearest
//! even by name. All else is a violation: approximations, flushing of subnormal numbers, products
//! and sums that `ptxas` may fuse, 64-bit floats, atomics on floats, textures, and a fold of the
//! compiler that loses the sign of zero.

use crate::parse::cursor::split_commas;
use crate::text::{Token, TokenKind, tokens};

/// An instruction that the list does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Line of the text, from 1.
    pub line: u32,
    /// Opcode with its modifiers.
    pub instruction: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: `{}`: {}", self.line, self.instruction, self.why)
    }
}

const TYPES: [&str; 16] = [
    "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "pred",
    "v2", "v4",
];
const INTEGERS: [&str; 11] =
    ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "pred", "b8"];
const COMPARISONS: [&str; 18] = [
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu",
    "geu", "num", "nan",
];
/// State spaces, and hints about caches, which change no value.
const SPACES: [&str; 16] = [
    "global",
    "local",
    "param",
    "const",
    "shared",
    "param::func",
    "param::entry",
    "nc",
    "ca",
    "cg",
    "cs",
    "lu",
    "wb",
    "wt",
    "L1::no_allocate",
    "L1::evict_last",
];
/// Integer instructions, each exact on every GPU.
const INTEGER_OPCODES: [&str; 31] = [
    "add", "sub", "mul", "mad", "div", "rem", "min", "max", "neg", "abs", "and", "or", "xor",
    "not", "shl", "shr", "shf", "brev", "popc", "clz", "bfind", "bfe", "bfi", "prmt", "lop3",
    "addc", "subc", "madc", "cnot", "sad", "slct",
];
const INTEGER_MODIFIERS: [&str; 10] =
    ["lo", "hi", "wide", "cc", "l", "r", "wrap", "clamp", "shiftamt", "s32"];
/// How persistent threads share out work: whole warps agree on an index. No float goes through
/// them. And how blocks wait for what they share.
const WARP_OPCODES: [&str; 5] = [
    "shfl.sync.idx.b32",
    "vote.sync.ballot.b32",
    "vote.sync.any.pred",
    "bar.warp.sync",
    "bar.sync",
];
const ATOMIC_MODIFIERS: [&str; 19] = [
    "global", "shared", "relaxed", "gpu", "cta", "add", "min", "max", "and", "or", "xor", "exch",
    "cas", "u32", "u64", "b32", "b64", "s32", "s64",
];

/// Every instruction of the text that the list does not hold, in its order. Text that cannot be
/// read is one violation.
pub fn check(source: &str) -> Vec<Violation> {
    let tokens = match tokens(source) {
        Ok(tokens) => tokens,
        Err(error) => {
            let instruction = error.what;
            return vec![Violation {
                line: error.line,
                instruction,
                why: "the text cannot be read",
            }];
        }
    };
    let mut found = Vec::new();
    for statement in statements(&tokens) {
        let parts = opcode(statement);
        let operands = &statement[parts.len()..];
        if let Some(why) = violation(&parts, operands) {
            let line = statement.first().map_or(0, |token| token.line);
            found.push(Violation { line, instruction: parts.join("."), why });
        }
    }
    found
}

/// How often each opcode stands in the text, with its modifiers.
pub fn opcodes(source: &str) -> std::collections::BTreeMap<String, u32> {
    let mut counts = std::collections::BTreeMap::new();
    for statement in statements(&tokens(source).unwrap_or_default()) {
        *counts.entry(opcode(statement).join(".")).or_default() += 1;
    }
    counts
}

/// The opcode's parts, without dots.
fn opcode<'a>(statement: &[Token<'a>]) -> Vec<&'a str> {
    let modifiers = statement.iter().skip(1).take_while(|token| token.kind == TokenKind::Dot);
    let first = statement.first().into_iter();
    first.chain(modifiers).map(|token| token.text.trim_start_matches('.')).collect()
}

/// All instructions, each from its opcode to before its semicolon.
fn statements<'a, 't>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let colon = tokens.get(at + 1).is_some_and(|next| next.is(":"));
        at = match token.kind {
            TokenKind::Dot => after_directive(tokens, at),
            TokenKind::Word if colon => at + 2,
            TokenKind::Word => {
                let end = tokens[at..].iter().position(|token| token.is(";"));
                let end = end.map_or(tokens.len(), |length| at + length);
                found.push(&tokens[at..end]);
                end + 1
            }
            // A guard, then its predicate.
            TokenKind::Mark if token.is("@") => {
                at + 2 + usize::from(tokens.get(at + 1).is_some_and(|t| t.is("!")))
            }
            _ => at + 1,
        };
    }
    found
}

/// Where the directive at `at` ends: a semicolon, the brace of a body, or its line.
fn after_directive(tokens: &[Token<'_>], at: usize) -> usize {
    let directive = &tokens[at];
    let by_line =
        [".version", ".target", ".address_size", ".file", ".loc"].contains(&directive.text);
    let mut has_value = false;
    for (index, token) in tokens.iter().enumerate().skip(at + 1) {
        has_value |= token.is("=");
        let ends = match token.text {
            ";" => true,
            "{" => !has_value,
            _ => by_line && token.line != directive.line,
        };
        if ends {
            return if by_line && token.line != directive.line { index } else { index + 1 };
        }
    }
    tokens.len()
}

fn violation(parts: &[&str], operands: &[Token<'_>]) -> Option<&'static str> {
    let (name, modifiers) = parts.split_first()?;
    let last = modifiers.last().copied().unwrap_or_default();
    let all = |modifiers: &[&str], lists: &[&[&str]]| {
        modifiers.iter().all(|modifier| lists.iter().any(|list| list.contains(modifier)))
    };
    if modifiers.iter().any(|modifier| matches!(*modifier, "approx" | "full")) {
        return Some("an approximation: its last bits are the GPU's own");
    }
    if modifiers.contains(&"ftz") {
        return Some("flushes subnormal numbers to zero");
    }
    if modifiers
        .iter()
        .any(|modifier| ["f64", "f16", "f16x2", "bf16", "bf16x2", "tf32"].contains(modifier))
    {
        return Some("floats of another width than 32 bits");
    }
    let listed = match *name {
        "atom" | "red" if last == "f32" => {
            return Some("an atomic on floats: its order is not fixed");
        }
        "atom" | "red" => all(modifiers, &[&ATOMIC_MODIFIERS]),
        "add" | "sub" | "mul" if last == "f32" && modifiers == ["f32"] => {
            return Some("not rounded by name: `ptxas` may fuse it");
        }
        "add" | "sub" | "mul" | "div" | "rcp" | "sqrt" | "fma" if last == "f32" => {
            modifiers == ["rn", "f32"]
        }
        "min" | "max" if last == "f32" => {
            return fold_of_zero(name, operands)
                .or_else(|| (modifiers != ["f32"]).then_some(UNLISTED));
        }
        "neg" | "abs" if last == "f32" => modifiers == ["f32"],
        "setp" => all(modifiers, &[&COMPARISONS, &["and", "or", "xor"], &TYPES]),
        "selp" | "mov" => all(modifiers, &[&TYPES]),
        "ld" | "st" => all(modifiers, &[&SPACES, &TYPES]),
        "cvt" => is_exact_conversion(modifiers),
        "cvta" => all(modifiers, &[&["to", "u64"], &SPACES]),
        "bra" | "call" => all(modifiers, &[&["uni"]]),
        "brx" => modifiers == ["idx"] || modifiers == ["idx", "uni"],
        "ret" | "exit" => all(modifiers, &[&["uni"]]),
        "shfl" | "vote" | "bar" => WARP_OPCODES.contains(&parts.join(".").as_str()),
        _ if INTEGER_OPCODES.contains(name) => all(modifiers, &[&INTEGERS, &INTEGER_MODIFIERS]),
        _ => false,
    };
    (!listed).then_some(UNLISTED)
}

const UNLISTED: &str = "not in the list of exact instructions";

/// `x < 0 ? x : 0` becomes `min x, 0`, which gives -0 for -0 where C++ gives +0; and `max x, -0`
/// the like.
fn fold_of_zero(name: &str, operands: &[Token<'_>]) -> Option<&'static str> {
    let hazard =
        if name == "min" { ["0f00000000", "0F00000000"] } else { ["0f80000000", "0F80000000"] };
    let folds = split_commas(operands).iter().skip(1).any(|operand| match operand {
        [token] => hazard.contains(&token.text),
        _ => false,
    });
    folds.then_some("loses the sign of zero")
}

/// Between integers; to a float by rounding to nearest; to an integer by a named rounding.
fn is_exact_conversion(modifiers: &[&str]) -> bool {
    let is_integer = |name: &str| INTEGERS.contains(&name) || name == "u8" || name == "s8";
    match modifiers {
        [to, from] => (is_integer(to) && is_integer(from)) || (*to == "f32" && *from == "f32"),
        ["rn", "f32", from] => is_integer(from),
        ["rzi" | "rni" | "rmi" | "rpi", to, "f32"] => is_integer(to) || *to == "f32",
        _ => false,
    }
}
