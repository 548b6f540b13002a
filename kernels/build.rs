//! Builds the kernels for this machine's family of processors, and lists their sources for the
//! fingerprint.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Rules of exactness (no contraction, no fast-math) and of linking (nothing of the C++ run time).
/// They come last on the command line, behind whatever the environment adds (`CXXFLAGS` and its
/// kin), so each of them takes back what would change a result. They are in the fingerprint.
const FLAGS: [&str; 14] = [
    "-std=c++17",
    "-O3",
    "-fno-fast-math",
    "-fno-unsafe-math-optimizations",
    "-fno-associative-math",
    "-fno-reciprocal-math",
    "-fno-finite-math-only",
    "-fsigned-zeros",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-lto",
    "-fno-exceptions",
    "-fno-rtti",
];
/// Macros of compilers that may change results, with the only value that is right; None for macros
/// that may not be there at all. Not every compiler has all of them.
const MACROS: [(&str, Option<&str>); 6] = [
    ("__FAST_MATH__", None),
    ("__ASSOCIATIVE_MATH__", None),
    ("__RECIPROCAL_MATH__", None),
    ("__NO_SIGNED_ZEROS__", None),
    ("__FINITE_MATH_ONLY__", Some("0")),
    ("__FLT_EVAL_METHOD__", Some("0")),
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
    compile(root, &["tests/functions.cpp", "tests/stages.cpp"], "test", &[]);
}

/// Returns the name and the flags of every host build for the target.
fn instruction_sets() -> Vec<(&'static str, &'static [&'static str])> {
    match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => vec![
            ("v2", &["-march=x86-64-v2", "-mfpmath=sse"]),
            ("v3", &["-march=x86-64-v3", "-mfpmath=sse"]),
        ],
        _ => vec![("base", &[])],
    }
}

/// Builds a library of these sources. The `cc` crate puts the environment's flags behind all that
/// it is told, so it only finds the compiler and makes the archive.
fn compile(root: &Path, entries: &[&str], isa: &str, machine: &[&str]) {
    let mut build = cc::Build::new();
    // Not `warnings(false)`, which gives `-w`: then nothing at all is warned of.
    build.cpp(true).cpp_link_stdlib(None).include(root).opt_level(3);
    let compiler = build.define("TESSERA_ISA", isa).get_compiler();
    let command = || {
        let mut command = compiler.to_command();
        command.args(FLAGS).args(WARNINGS).args(machine);
        command
    };
    check_macros(command());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let object = |entry: &&str| {
        let object = out.join(format!("{isa}-{}.o", entry.replace('/', "-")));
        let mut command = command();
        if env::var_os("TESSERA_KERNEL_WERROR").is_some() {
            command.arg("-Werror");
        }
        command.arg("-c").arg(root.join(entry)).arg("-o").arg(&object);
        run(&mut command);
        object
    };
    let objects: Vec<PathBuf> = entries.iter().map(object).collect();
    cc::Build::new()
        .cpp(true)
        .cpp_link_stdlib(None)
        .objects(objects)
        .compile(&format!("tessera_kernels_{isa}"));
}

/// Refuses a compiler that changes results in spite of the flags, as one does that a wrapper in
/// `CXX` gives more of them.
fn check_macros(mut command: Command) {
    let macros = run(command.args(["-dM", "-E", "-x", "c++", "/dev/null"]));
    for (name, right) in MACROS {
        let value = macros.lines().find_map(|line| {
            line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' ').map(str::trim)
        });
        assert!(
            value.is_none() || value == right,
            "the C++ compiler would change the kernels' results: it has {name} as {value:?}, where \
            {right:?} is right. Look for flags in CXX and in the program that it names, and take \
            them away."
        );
    }
}

/// Runs a command of the compiler, and returns its standard output.
fn run(command: &mut Command) -> String {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?} failed: {}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
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
