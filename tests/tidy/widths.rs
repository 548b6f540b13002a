//! Widths of lines: 100 characters for code, comments and Markdown.

use crate::{all_files, none, shown};
use std::path::Path;

/// Characters of a line at most.
const WIDTH_MAX: usize = 100;

/// Files that a program wrote, and which.
const GENERATED: &[(&str, &str)] = &[("docs/third-party.md", "cargo-about")];

/// Whether lines of this file are measured.
fn is_measured(path: &Path) -> bool {
    let extensions = ["rs", "h", "cu", "cuh", "cpp", "c", "py", "sh", "toml", "md"];
    let in_ci = shown(path).starts_with(".ci/");
    in_ci || path.extension().is_some_and(|e| extensions.iter().any(|measured| e == *measured))
}

#[test]
fn lines_are_at_most_100_characters_wide() {
    let mut findings = Vec::new();
    for path in all_files().iter().filter(|path| is_measured(path)) {
        let name = shown(path);
        if GENERATED.iter().any(|(generated, _)| *generated == name) {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a text is UTF-8");
        let is_page = name.ends_with(".md");
        for (number, line) in text.lines().enumerate() {
            let is_row = is_page && line.trim_start().starts_with('|');
            let width = line.chars().count();
            let is_address = line.contains("://") || line.contains(";base64,");
            if width > WIDTH_MAX && !is_row && !is_address {
                findings.push(format!("{name}:{}: {width}", number + 1));
            }
        }
    }
    none("lines of more than 100 characters", findings);
}
