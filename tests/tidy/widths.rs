//! Widths of lines: 100 characters for code, comments and Markdown.

use crate::{all_files, none, root, shown};
use std::path::Path;

/// Characters of a line at most.
const WIDTH_MAX: usize = 100;

/// Ends of the names of files that people write.
const EXTENSIONS: [&str; 15] = [
    "rs", "h", "cu", "cuh", "cpp", "c", "py", "sh", "toml", "md", "service", "sbatch", "css", "js",
    "mjs",
];

/// Files without such an end that people write.
const NAMES: [&str; 4] = ["Containerfile", "postinst", "postrm", "prerm"];

/// Whether lines of this file are measured.
fn is_measured(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    shown(path).starts_with(".ci/")
        || EXTENSIONS.iter().any(|measured| extension == *measured)
        || NAMES.iter().any(|name| path.ends_with(name))
}

/// Lines that are too wide, by number and width. Rows of tables and addresses cannot be broken.
fn wide(text: &str, is_page: bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let is_row = is_page && line.trim_start().starts_with('|');
        let width = line.chars().count();
        let is_address = line.contains("://") || line.contains(";base64,");
        if width > WIDTH_MAX && !is_row && !is_address {
            found.push((index + 1, width));
        }
    }
    found
}

#[test]
fn lines_are_at_most_100_characters_wide() {
    let mut findings = Vec::new();
    for path in all_files().iter().filter(|path| is_measured(path)) {
        let name = shown(path);
        let text = std::fs::read_to_string(path).expect("a text is UTF-8");
        let found = wide(&text, name.ends_with(".md"));
        findings.extend(found.iter().map(|(number, width)| format!("{name}:{number}: {width}")));
    }
    none("lines of more than 100 characters", findings);
}

#[test]
fn widths_of_every_kind_of_file_are_measured() {
    let measured = [
        ".ci/run",
        "deploy/container/Containerfile",
        "deploy/debian/postinst",
        "deploy/debian/postrm",
        "deploy/systemd/tessera-node.service",
        "coordinator/http/assets/live.js",
        "docs/style.md",
        "examples/slurm/node.sbatch",
        "kernels/source/compute/tessera.cuh",
        "tests/farm/preload.c",
    ];
    for file in measured {
        let path = root().join(file);
        assert!(path.is_file() && is_measured(&path), "{file}");
    }
    assert!(!is_measured(&root().join("Cargo.lock")));
    let long = "x".repeat(WIDTH_MAX + 1);
    let text = format!("{}\n{long}\n| {long} |\nhttps://{long}\n", &long[1..]);
    assert_eq!(wide(&text, true), [(2, 101)]);
    assert_eq!(wide(&text, false), [(2, 101), (3, 105)]);
}
