//! A second compiler: clang makes PTX of the same source, with no file of NVIDIA's, and the machine
//! gives the same bits.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::ptx::{functions, pictures};
use tessera_kernels::test_hooks;
use tessera_ptx::{Module, whitelist};
use tessera_support::scenes;

/// Exactness as for the host builds; warp operations need PTX 6.3, which old clangs do not choose
/// by themselves.
const FLAGS: [&str; 13] = [
    "-x",
    "cuda",
    "--cuda-device-only",
    "--cuda-gpu-arch=sm_75",
    "-nocudainc",
    "-nocudalib",
    "-O3",
    "-std=c++17",
    "-ffp-contract=off",
    "-Xclang",
    "-target-feature",
    "-Xclang",
    "+ptx63",
];

/// Pixels across and down of the scenes for every push: a ninth of the pixels of a nightly run.
const SIZE: u32 = 8;

/// A nightly run compares clang's PTX over as many pixels as the PTX that ships.
pub(crate) fn is_whole() -> bool {
    std::env::var("TESSERA_IMAGES").is_ok_and(|value| value == "all")
}

/// The first clang that has NVIDIA's target; says by name what is not run where there is none.
pub(crate) fn compiler(test: &str) -> Option<String> {
    let names = [
        "clang++",
        "clang++-22",
        "clang++-19",
        "clang++-18",
        "clang++-17",
        "clang++-16",
        "clang++-15",
        "clang++-14",
    ];
    let has_target = |name: &&&str| {
        let targets = Command::new(name).arg("-print-targets").output();
        targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("nvptx64"))
    };
    let found = names.iter().find(has_target);
    if found.is_none() {
        eprintln!("NOT RUN: {test}: no clang++ with the target nvptx64");
    }
    found.map(|name| (*name).to_owned())
}

pub(crate) fn compile(compiler: &str, entry: &str) -> Arc<Module> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let to = folder.path().join("image.ptx");
    let sources = Path::new(test_hooks::SOURCE_FOLDER);
    let status = Command::new(compiler)
        .args(FLAGS)
        .arg("-I")
        .arg(sources)
        .arg("-S")
        .arg(sources.join(entry))
        .arg("-o")
        .arg(&to)
        .status();
    assert!(status.expect("it was found").success(), "{compiler} does not compile {entry}");
    let text = std::fs::read_to_string(&to).expect("clang wrote it");
    let violations = whitelist::check(&text);
    assert!(
        violations.is_empty(),
        "{entry}: {} violations, first {}",
        violations.len(),
        violations[0]
    );
    Arc::new(Module::parse(&text).expect("clang's PTX can be read"))
}

#[test]
fn ptx_by_clang_matches_the_host() {
    let Some(compiler) = compiler("ptx_by_clang_matches_the_host") else { return };
    let cases = if is_whole() { scenes::all() } else { scenes::sized(SIZE) };
    pictures::compare(&compile(&compiler, "entry/cuda.cu"), &cases);
}

#[test]
fn functions_by_clang_match_the_host() {
    let Some(compiler) = compiler("functions_by_clang_match_the_host") else {
        return;
    };
    functions::compare_all(&compile(&compiler, "tests/functions.cu"), functions::inputs() / 10);
}
