//! Sizes of files: lines of source files, bytes of any file.

use crate::{all_files, files, none, shown};

/// Lines of a source file at most.
const FILE_LINES_MAX: usize = 800;
/// Median of all source files at most, lines.
const FILE_LINES_MEDIAN_MAX: usize = 200;
/// Bytes of any file at most: a clone is fetched by everybody, for ever.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Files that may be larger, and why.
const LARGE: &[(&str, &str)] = &[
    ("tests/render/scenes/textured-knot.glb", "a scene whose stored picture pins texture lookups"),
    ("kernels/images/tessera.ptx.zst", "the product's kernels; no CUDA toolkit is needed to build"),
    ("kernels/images/tessera-instances.ptx.zst", "the same for scenes with instances"),
    ("docs/openapi.json", "every operation of the API, as programs read it"),
    ("kernels/images/unit-tests.ptx.zst", "the kernels' functions one by one, for tests"),
];

#[test]
fn source_files_are_short() {
    let mut lengths = Vec::new();
    let mut findings = Vec::new();
    for path in files(&["rs", "h", "cu", "cuh", "cpp", "c", "py"]) {
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
fn large_files_are_on_the_list() {
    let mut findings = Vec::new();
    let mut unused: Vec<&str> = LARGE.iter().map(|(path, _)| *path).collect();
    for path in all_files() {
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if bytes <= FILE_BYTES_MAX {
            continue;
        }
        let name = shown(&path);
        match unused.iter().position(|listed| *listed == name) {
            Some(index) => drop(unused.remove(index)),
            None => findings.push(format!("{name}: {} KiB", bytes >> 10)),
        }
    }
    findings.extend(unused.iter().map(|name| format!("{name}: on the list for nothing")));
    none("files above 256 KiB that are not on the list in tests/tidy/sizes.rs", findings);
}
