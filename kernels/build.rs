//! Builds the kernels for this machine's family of processors, and lists their sources for the
//! fingerprint.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Rules of exactness (no contraction, no fast-math) and of linking (nothing of the C++ run time).
const FLAGS: [&str; 8] = [
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-exceptions",
    "-fno-rtti",
];
/// How vectors are passed to functions depends on the machine, and GCC warns about this. None of
/// our vectors leaves its translation unit.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wdouble-promotion", "-Wno-psabi"];

fn main() {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("source");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=source");
    println!("cargo:rerun-if-env-changed=TESSERA_KERNEL_WERROR");
    if !is_for_clippy() {
        compile_all(&root);
    }
    println!("cargo:rustc-env=TESSERA_KERNEL_FLAGS={}", FLAGS.join(" "));
    println!("cargo:rustc-env=TESSERA_KERNEL_SOURCE={}", root.display());
    fs::write(out.join("sources.rs"), list_of_sources(&root))
        .expect("the build folder can be written");
}

/// Whether clippy looks at the crate: nothing is linked then, and its build is one by itself.
fn is_for_clippy() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER");
    wrapper.is_some_and(|wrapper| {
        Path::new(&wrapper).file_stem().is_some_and(|program| program == "clippy-driver")
    })
}

fn compile_all(root: &Path) {
    for (isa, machine) in instruction_sets() {
        let entries =
            ["entry/host.cpp", "entry/rays.cpp", "entry/denoise.cpp", "compute/entry.cpp"];
        compile(root, &entries, isa, machine);
        compile(root, &["tests/lanes.cpp"], &format!("lanes_{isa}"), machine);
    }
    compile(root, &["tests/functions.cpp", "tests/stages.cpp"], "test", None);
}

/// Returns the name and `-march` of every host build for the target.
fn instruction_sets() -> Vec<(&'static str, Option<&'static str>)> {
    match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => vec![("v2", Some("-march=x86-64-v2")), ("v3", Some("-march=x86-64-v3"))],
        _ => vec![("base", None)],
    }
}

fn compile(root: &Path, entries: &[&str], isa: &str, machine: Option<&str>) {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .cpp_link_stdlib(None)
        .include(root)
        .files(entries.iter().map(|entry| root.join(entry)))
        .define("TESSERA_ISA", isa)
        .opt_level(3)
        .warnings(false);
    for flag in FLAGS.iter().chain(&WARNINGS).chain(machine.as_ref()) {
        build.flag(flag);
    }
    if env::var_os("TESSERA_KERNEL_WERROR").is_some() {
        build.flag("-Werror");
    }
    build.compile(&format!("tessera_kernels_{isa}"));
}

/// The folder of sources that only tests use. They are not in the fingerprint.
const TEST_FOLDER: &str = "tests";

/// Returns two Rust arrays of (path, text), sorted by path: the kernel sources, and the sources of
/// tests.
fn list_of_sources(root: &Path) -> String {
    let mut paths = files_of(root);
    paths.sort();
    let is_test = |path: &PathBuf| path.starts_with(root.join(TEST_FOLDER));
    let (tests, product): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(is_test);
    array(
        "/// Path and text of every kernel source, sorted by path.\npub const SOURCES",
        root,
        &product,
    ) + &array(
        "/// Path and text of every source of tests, sorted by path.\npub const TEST_SOURCES",
        root,
        &tests,
    )
}

/// Lists the files of a folder and of its subfolders.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the kernel sources are beside build.rs");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    paths.flat_map(|path| if path.is_dir() { files_of(&path) } else { vec![path] }).collect()
}

fn array(head: &str, root: &Path, paths: &[PathBuf]) -> String {
    let mut list = format!("{head}: &[(&str, &str)] = &[\n");
    for path in paths {
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
        list.push_str(&format!(
            "    ({name:?}, include_str!({:?})),\n",
            path.display().to_string()
        ));
    }
    list.push_str("];\n");
    list
}
