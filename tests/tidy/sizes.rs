//! Sizes: small files, short functions.

use crate::{files, none, shown};

/// Lines of a source file at most.
const FILE_LINES_MAX: usize = 800;
/// Median of all source files at most, lines.
const FILE_LINES_MEDIAN_MAX: usize = 200;
/// Lines of a Rust function at most.
const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn files_are_small() {
    let mut lengths = Vec::new();
    let mut findings = Vec::new();
    for path in files(&["rs", "h", "cu", "cpp"]) {
        let lines = std::fs::read_to_string(&path).expect("a source file is UTF-8").lines().count();
        lengths.push(lines);
        if lines > FILE_LINES_MAX {
            findings.push(format!("{}: {lines} lines", shown(&path)));
        }
    }
    none("files above 800 lines: split them by noun", findings);
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median <= FILE_LINES_MEDIAN_MAX, "the median source file has {median} lines");
}

#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    for path in files(&["rs"]) {
        let text = std::fs::read_to_string(&path).expect("a source file is UTF-8");
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate().filter(|(_, line)| opens_function(line)) {
            let indent = line.len() - line.trim_start().len();
            let end = lines[start..].iter().position(|l| {
                l.trim_start().starts_with('}') && l.len() - l.trim_start().len() == indent
            });
            if end.is_some_and(|length| length >= FUNCTION_LINES_MAX) {
                findings.push(format!("{}:{}: {}", shown(&path), start + 1, line.trim()));
            }
        }
    }
    none("functions above 70 lines", findings);
}

/// A line, as rustfmt leaves it, on which a function with a body begins.
fn opens_function(line: &str) -> bool {
    let code = line.trim_start();
    let head = code.split('(').next().unwrap_or_default();
    let named = head.split_whitespace().any(|word| word == "fn");
    named && !code.starts_with("//") && !code.ends_with(';') && !code.ends_with('}')
}
